//! False messages in the check, of both parties.

use std::sync::atomic::Ordering;

use volery_channel::{Transport, memory, tamper::Tampered};
use volery_field::Ring;
use volery_primitives::Block;

use super::{
    FEW, MANY, MaliciousKeyHolder, Setup, Stage, counted, honest, key_holder::GrownTrees,
    key_holder::Lie, plan, round_by_round, run_malicious,
};
use crate::{Noise, Plan, Trees, check};

const TREES: [Trees; 2] = [Trees::Ggm, Trees::Half];

/// The key holder's opening differs from its commitment.
#[test]
fn a_key_holder_who_opens_something_else() {
    fn check<K: Stage>() {
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, FEW);
            let lies = [
                Lie::Commitment,
                Lie::Salt,
                Lie::Value,
                Lie::Echo,
                Lie::Round,
                Lie::Session,
                Lie::First,
                Lie::Last,
                Lie::EchoLast,
            ];
            for lie in lies {
                for setup in [Setup::Dealt(1), Setup::Real] {
                    let lies = MaliciousKeyHolder { lie, ..MaliciousKeyHolder::HONEST };
                    run_malicious::<K>(setup, &plan, &[FEW], &lies)
                        .assert_value_holder_aborts(0, &format!("{trees} {lie:?} {setup:?}"));
                }
            }
        }
    }
    of_each_kind!(check());
}

/// A key holder with wrong trees that waits for the value to which it should have committed.
#[test]
fn a_key_holder_who_repeats_what_it_hears() {
    fn check<K: Stage>() {
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, FEW);
            for lie in [Lie::Echo, Lie::None] {
                let wrong = |grown: &mut GrownTrees<K::Ring>| {
                    for sums in &mut grown.sums {
                        *sums = sums.map(|sum| sum ^ Block::from(6));
                    }
                };
                let wrong = MaliciousKeyHolder { sums: &wrong, lie, ..MaliciousKeyHolder::HONEST };
                run_malicious::<K>(Setup::Dealt(1), &plan, &[FEW], &wrong)
                    .assert_value_holder_aborts(0, &format!("{trees} {lie:?}"));
            }
        }
    }
    of_each_kind!(check());
}

#[test]
fn a_key_holder_who_replays_a_round() {
    fn check<K: Stage>() {
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, MANY);
            let pieces = round_by_round(&plan);
            for setup in [Setup::Dealt(1), Setup::Real] {
                let replay =
                    MaliciousKeyHolder { round: 1, lie: Lie::Replay, ..MaliciousKeyHolder::HONEST };
                run_malicious::<K>(setup, &plan, &pieces, &replay)
                    .assert_value_holder_aborts(pieces[0], &format!("{trees} {setup:?}"));
            }
        }
    }
    of_each_kind!(check());
}

/// All bytes of an honest value holder.
fn length<K: Stage>(setup: Setup, plan: &Plan, pieces: &[usize]) -> u64 {
    let (key, value) = memory::pair();
    let (value, sent) = counted(value);
    honest::<K>(setup, plan, pieces, key, value).assert_right("honest");
    sent.load(Ordering::Relaxed)
}

/// Bytes of `x'`, and of all messages of a value holder in a check: nonce, `x'` and `W`.
fn sizes<K: Stage>() -> (u64, u64) {
    let elements = K::Ring::encoded_len(check::repetitions::<K::Ring>()) as u64;
    (elements, 16 + 2 * elements)
}

/// Another nonce than the one used in the computation, another `x'`, another `W`.
#[test]
fn a_value_holder_who_lies() {
    fn run<K: Stage>() {
        let (elements, said) = sizes::<K>();
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, FEW);
            for setup in [Setup::Dealt(1), Setup::Real] {
                let start = length::<K>(setup, &plan, &[FEW]) - said;
                // The top bits of an element would not be canonical.
                for place in [0, 15, 16, 14 + elements, 16 + elements, said - 2] {
                    let (key, value) = memory::pair();
                    let value = Tampered::flip(value, start + place, 2);
                    honest::<K>(setup, &plan, &[FEW], key, value)
                        .assert_key_holder_aborts(0, &format!("{trees}, byte {place}, {setup:?}"));
                }
            }
        }
    }
    of_each_kind!(run());
}

/// Sends some bytes again at a later place of its stream.
fn replayed(inner: impl Transport, from: u64, to: u64, len: u64) -> impl Transport {
    let mut kept = vec![0; len as usize];
    Tampered::new(inner, move |offset, bytes| {
        for (i, byte) in (offset..).zip(bytes) {
            if (from..from + len).contains(&i) {
                kept[(i - from) as usize] = *byte;
            }
            if (to..to + len).contains(&i) {
                *byte = kept[(i - to) as usize];
            }
        }
    })
}

#[test]
fn a_value_holder_who_replays_a_round() {
    fn run<K: Stage>() {
        let (elements, said) = sizes::<K>();
        let plan = plan(K::KIND, Trees::Half, Noise::Regular, MANY);
        let pieces = round_by_round(&plan);
        let second = plan.step(1, pieces[0] as u64);
        let corrections = K::Ring::encoded_len(K::VALUES * second.trees) as u64;
        for setup in [Setup::Dealt(1), Setup::Real] {
            let to = length::<K>(setup, &plan, &pieces) - said;
            let from = to - corrections - said;
            let parts = [
                ("the nonce", 0, 16),
                ("x'", 16, elements),
                ("nonce and x'", 0, 16 + elements),
                ("W", 16 + elements, elements),
                ("all of it", 0, said),
            ];
            for (what, at, len) in parts {
                let (key, value) = memory::pair();
                let value = replayed(value, from + at, to + at, len);
                honest::<K>(setup, &plan, &pieces, key, value)
                    .assert_key_holder_aborts(pieces[0], &format!("{what}, {setup:?}"));
            }
        }
    }
    of_each_kind!(run());
}
