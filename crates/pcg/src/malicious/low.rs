//! Deviations in an instance of dual LPN: in the coin for the code, in the trees before it, and in
//! the check after it. The honest code runs over a transport that changes its messages; every case
//! also runs as a user would meet it.

use volery_channel::{Error, memory, tamper::Tampered};
use volery_field::Ring;

use super::{Ends, FEW, Setup, Stage, counted, honest};
use crate::{Plan, PlanOptions, Protocol, Security, check, correlation::Cot};

/// Bytes of a commitment, and of an element opened.
const COMMITMENT: u64 = 32;
const COIN: u64 = 16;

const NOT_COMMITTED: &str = "the coin for the code is not the one committed to";

fn plan<K: Stage>(security: Security) -> Plan {
    let options = PlanOptions {
        total: Some(FEW as u64),
        security,
        protocol: Protocol::LowCommunication,
        ..PlanOptions::default()
    };
    Plan::new(K::KIND, &options).expect("a plan")
}

/// All bytes of an honest key holder, and of an honest value holder.
fn lengths<K: Stage>(plan: &Plan) -> [u64; 2] {
    let (key, value) = memory::pair();
    let ((key, by_key), (value, by_value)) = (counted(key), counted(value));
    honest::<K>(Setup::Real, plan, &[FEW], key, value).assert_right("honest");
    [by_key, by_value].map(|sent| sent.load(std::sync::atomic::Ordering::Relaxed))
}

/// Bytes of the elements in a message of the check.
fn elements<K: Stage>() -> u64 {
    K::Ring::encoded_len(check::repetitions::<K::Ring>()) as u64
}

/// A key holder with one changed message.
fn key_holder_lies<K: Stage>(plan: &Plan, at: u64) -> Ends<K> {
    let (key, value) = memory::pair();
    honest::<K>(Setup::Real, plan, &[FEW], Tampered::flip(key, at, 2), value)
}

/// The value holder reports the fault, has returned nothing, and is unusable afterwards (which
/// [`Setup::Real`] tests).
fn assert_not_committed<K: Stage>(ends: &Ends<K>, what: &str) {
    let found_out = matches!(ends.value, Err(Error::PeerMisbehaved(NOT_COMMITTED)));
    assert!(found_out, "{what}: {:?}", ends.value);
    ends.assert_value_holder_aborts(0, what);
}

/// Commits to another coin, opens another, or opens it with another salt.
#[test]
fn a_key_holder_whose_coin_is_another() {
    fn run<K: Stage>() {
        let plan = plan::<K>(Security::Malicious);
        let after = 2 * COMMITMENT + elements::<K>();
        let start = lengths::<K>(&plan)[0] - after - (COMMITMENT + COIN + 32);
        for place in [0, 31, 32, 47, 48, 79] {
            let ends = key_holder_lies::<K>(&plan, start + place);
            assert_not_committed(&ends, &format!("byte {place}"));
        }
        // Changes before and after are detected by other means.
        for place in [start - 1, start + 80] {
            let ends = key_holder_lies::<K>(&plan, place);
            let other = !matches!(ends.value, Err(Error::PeerMisbehaved(NOT_COMMITTED)));
            assert!(other && ends.value.is_err(), "{:?}", ends.value);
        }
    }
    of_each_named_kind!(run());
}

/// The same without a later check.
#[test]
fn a_semi_honest_key_holder_whose_coin_is_another() {
    let plan = plan::<Cot>(Security::SemiHonest);
    let trees = 16 * plan.dual().expect("an instance").levels() as u64;
    let start = lengths::<Cot>(&plan)[0] - trees - (COMMITMENT + COIN + 32);
    for place in [0, 32, 79] {
        let ends = key_holder_lies::<Cot>(&plan, start + place);
        assert_not_committed(&ends, &format!("byte {place}"));
    }
}

/// Wrong sums of a tree, wrong openings of the check.
#[test]
fn a_key_holder_who_lies_around_the_coin() {
    fn run<K: Stage>() {
        let plan = plan::<K>(Security::Malicious);
        let checked = 2 * COMMITMENT + elements::<K>();
        let [end, _] = lengths::<K>(&plan);
        let trees = end - checked - (COMMITMENT + COIN + 32);
        // The key holder receives a value that does not belong to its leaves, and does not open its
        // own.
        key_holder_lies::<K>(&plan, trees - 2000).assert_key_holder_aborts(0, "a tree");
        let places = [
            ("the commitment", end - checked),
            ("the salt", end - checked + COMMITMENT),
            ("the value", end - 2),
        ];
        for (what, at) in places {
            key_holder_lies::<K>(&plan, at).assert_value_holder_aborts(0, what);
        }
    }
    of_each_named_kind!(run());
}

/// Another coin than the one used in the computation, so that the codes differ; another nonce, `x'`
/// or `W`.
#[test]
fn a_value_holder_who_lies() {
    fn run<K: Stage>() {
        let plan = plan::<K>(Security::Malicious);
        let said = 16 + 2 * elements::<K>();
        let end = lengths::<K>(&plan)[1];
        let places = [
            ("the coin", end - said - COIN),
            ("the nonce", end - said),
            ("x'", end - said + 16),
            ("W", end - elements::<K>()),
        ];
        for (what, at) in places {
            let (key, value) = memory::pair();
            let value = Tampered::flip(value, at, 2);
            honest::<K>(Setup::Real, &plan, &[FEW], key, value).assert_key_holder_aborts(0, what);
        }
    }
    of_each_named_kind!(run());
}
