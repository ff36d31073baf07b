//! Vector-OLEs that share a shared setup: their results, their common failure, and their cost.

use std::panic::{AssertUnwindSafe, catch_unwind};

use volery_channel::{Stats, run_two_parties, run_two_unchecked};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_primitives::Block;

use super::*;
use crate::{
    Noise, Security,
    vole::{self, VoleRing},
};

const SESSION: SessionId = SessionId::from_bytes([5; 32]);

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

fn plan<R: VoleRing>(n: usize) -> Plan {
    let security = if R::NAME == "z64" { Security::SemiHonest } else { Security::Malicious };
    rounds::<R>(n, Noise::Regular, security)
}

fn rounds<R: VoleRing>(n: usize, noise: Noise, security: Security) -> Plan {
    vole::tests::plan::<R>(Some(n as u64), noise, security).unwrap()
}

fn values<R: VoleRing>(
    shared: &mut Sender,
    n: usize,
    channel: &mut Channel,
) -> Result<(Vec<R>, Vec<R>)> {
    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    // The same randomness each time: differences must come from the shared setup.
    let mut sender = vole::Sender::setup_with(shared, &plan::<R>(n), rng(1), channel)?;
    sender.extend(&mut u, &mut v, channel)?;
    Ok((u, v))
}

fn key<R: VoleRing>(
    shared: &mut Receiver,
    x: R,
    n: usize,
    channel: &mut Channel,
) -> Result<Vec<R>> {
    let mut w = vec![R::ZERO; n];
    let mut receiver = vole::Receiver::setup_with(shared, &plan::<R>(n), Some(x), rng(2), channel)?;
    receiver.extend(&mut w, channel)?;
    Ok(w)
}

fn check<R: VoleRing>(sizes: &[usize]) {
    let mut dealer = rng(9);
    let xs: Vec<R> = sizes.iter().map(|_| R::random(&mut dealer)).collect();
    let (uv, w) = run_two_parties(
        |channel| {
            let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
            let one = |n| values::<R>(shared, n, channel).unwrap();
            sizes.iter().copied().map(one).collect::<Vec<_>>()
        },
        |channel| {
            let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
            let one = |(n, x): (&usize, &R)| key(shared, *x, *n, channel).unwrap();
            sizes.iter().zip(&xs).map(one).collect::<Vec<_>>()
        },
    );
    for (((u, v), w), x) in uv.iter().zip(&w).zip(&xs) {
        for i in 0..w.len() {
            assert!(w[i] == u[i] * *x + v[i], "{i} of {} over {}", w.len(), R::NAME);
        }
    }
    // The two of one length differ, although the randomness of the parties is the same.
    let (a, b) = (&uv[0], &uv[1]);
    assert_eq!(a.0.len(), b.0.len());
    assert!(a.1.iter().zip(&b.1).all(|(a, b)| a != b));
}

#[test]
fn several_vector_oles_hold_and_differ() {
    check::<Fp61>(&[3000, 3000, 0, 1, 20_011, 150_001]);
    check::<Z64>(&[3000, 3000, 0, 1, 20_011]);
    check::<Gf128>(&[3000, 3000, 0, 1, 20_011]);
}

/// Rings may alternate on one shared setup, and several streams may exist at once.
#[test]
fn streams_of_one_setup_are_drawn_in_any_order() {
    let n = 20_011;
    let ((fp, gf), (w_fp, w_gf)) = run_two_parties(
        |channel| {
            let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
            let (fp, gf) = (plan::<Fp61>(n), plan::<Gf128>(n));
            let mut fp = vole::Sender::<Fp61>::setup_with(shared, &fp, rng(3), channel).unwrap();
            let mut gf = vole::Sender::<Gf128>::setup_with(shared, &gf, rng(4), channel).unwrap();
            let (mut a, mut b) = (vec![Fp61::ZERO; n], vec![Fp61::ZERO; n]);
            let (mut c, mut d) = (vec![Gf128::ZERO; n], vec![Gf128::ZERO; n]);
            fp.extend(&mut a[..7], &mut b[..7], channel).unwrap();
            gf.extend(&mut c, &mut d, channel).unwrap();
            fp.extend(&mut a[7..], &mut b[7..], channel).unwrap();
            ((a, b), (c, d))
        },
        |channel| {
            let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
            let (fp, gf) = (plan::<Fp61>(n), plan::<Gf128>(n));
            let mut fp =
                vole::Receiver::<Fp61>::setup_with(shared, &fp, None, rng(3), channel).unwrap();
            let mut gf =
                vole::Receiver::<Gf128>::setup_with(shared, &gf, None, rng(4), channel).unwrap();
            let (mut a, mut c) = (vec![Fp61::ZERO; n], vec![Gf128::ZERO; n]);
            fp.extend(&mut a[..7], channel).unwrap();
            gf.extend(&mut c, channel).unwrap();
            fp.extend(&mut a[7..], channel).unwrap();
            ((fp.x(), a), (gf.x(), c))
        },
    );
    assert!((0..n).all(|i| w_fp.1[i] == fp.0[i] * w_fp.0 + fp.1[i]));
    assert!((0..n).all(|i| w_gf.1[i] == gf.0[i] * w_gf.0 + gf.1[i]));
}

/// A peer that aborts one vector-OLE ends the shared setup and every stream made with it.
#[test]
fn a_failed_vector_ole_ends_the_setup() {
    let n = 20_011;
    run_two_unchecked(
        |channel| {
            let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
            let plan = plan::<Fp61>(n);
            let mut first =
                vole::Sender::<Fp61>::setup_with(shared, &plan, rng(3), channel).unwrap();
            assert!(vole::Sender::<Fp61>::setup_with(shared, &plan, rng(3), channel).is_err());
            let (mut u, mut v) = (vec![Fp61::ONE; n], vec![Fp61::ONE; n]);
            let broken = |result: Result<()>| assert!(matches!(result, Err(Error::Broken)));
            broken(first.extend(&mut u, &mut v, channel));
            assert!(u.iter().chain(&v).all(|value| *value == Fp61::ZERO));
            broken(first.prepare(channel).map(|_| ()));
            broken(vole::Sender::<Fp61>::setup_with(shared, &plan, rng(3), channel).map(|_| ()));
        },
        |channel| {
            let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
            let plan = plan::<Fp61>(n);
            vole::Receiver::<Fp61>::setup_with(shared, &plan, None, rng(3), channel).unwrap();
        },
    );
}

/// The costs in the doc for the setup of a shared setup, and for the replacement of steps 1 and 2
/// of a vector-OLE.
#[test]
fn a_setup_costs_what_the_doc_says() {
    fn cost<R: VoleRing>() -> (Stats, Stats) {
        run_two_parties(
            |channel| {
                let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                let before = channel.stats();
                // For this few correlations the base suffices: step 3 makes nothing.
                vole::Sender::<R>::setup_with(shared, &plan::<R>(1), rng(3), channel).unwrap();
                (before, channel.stats() - before)
            },
            |channel| {
                let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                vole::Receiver::<R>::setup_with(shared, &plan::<R>(1), None, rng(3), channel)
                    .unwrap();
            },
        )
        .0
    }
    let of_trees = 16 * 7 * 32 + 17 * 32;
    for (setup, one) in [cost::<Fp61>(), cost::<Z64>()] {
        assert_eq!(setup.bytes_sent, 32 + of_trees + 64 * 128);
        assert_eq!(setup.bytes_received, 64 * 128 + 32 + of_trees);
        assert_eq!(one.bytes_sent, 32);
        assert_eq!(one.bytes_received, 32 + 15 * 256 / 8 + 48 + 8);
    }
    let (_, one) = cost::<Gf128>();
    let crate::Base::Packed(field) = plan::<Gf128>(1).base() else {
        panic!("another base");
    };
    let of_trees = field.trees() * (field.bits() - 1) * 32 + (field.trees() + 1) * 32;
    assert_eq!(one.bytes_received, 32 + 15 * 256 / 8 + 48 + 16);
    assert_eq!(one.bytes_sent, 32 + of_trees as u64);
}

/// At the holder of `x`: the outputs so far remain, but neither `x` nor another correlation is
/// available.
#[test]
fn a_failed_vector_ole_ends_the_holders_of_x() {
    let n = 20_011;
    run_two_unchecked(
        |channel| {
            let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
            let plan = plan::<Fp61>(n);
            for _ in 0..2 {
                vole::Sender::<Fp61>::setup_with(shared, &plan, rng(3), channel).unwrap();
            }
        },
        |channel| {
            let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
            let plan = plan::<Fp61>(n);
            let mut one = |channel: &mut Channel| {
                vole::Receiver::<Fp61>::setup_with(shared, &plan, None, rng(3), channel)
            };
            let (mut first, mut second) = (one(channel).unwrap(), one(channel).unwrap());
            assert!(one(channel).is_err());
            let broken = |result: Result<()>| assert!(matches!(result, Err(Error::Broken)));
            let x = |of: &vole::Receiver<Fp61>| catch_unwind(AssertUnwindSafe(|| of.x()));
            assert!(x(&first).is_err() && x(&second).is_err(), "at once");
            let mut w = vec![Fp61::ONE; n];
            broken(first.extend(&mut w, channel));
            assert!(w.iter().all(|value| *value == Fp61::ZERO));
            broken(second.prepare(channel).map(|_| ()));
            broken(one(channel).map(|_| ()));
        },
    );
}

/// Both parties detect it, also where the plans take the same messages or none.
#[test]
fn another_plan_is_noticed() {
    fn refused<R: VoleRing>(plans: [Plan; 2]) {
        let refused = |result: Result<()>| {
            assert!(matches!(result, Err(Error::Mismatch { .. })), "{result:?}");
        };
        run_two_unchecked(
            |channel| {
                let shared = &mut Sender::setup(SESSION, rng(1), channel).unwrap();
                let mut one = || vole::Sender::<R>::setup_with(shared, &plans[0], rng(3), channel);
                refused(one().map(|_| ()));
                assert!(matches!(one(), Err(Error::Broken)));
            },
            |channel| {
                let shared = &mut Receiver::setup(SESSION, rng(2), channel).unwrap();
                let mut one =
                    || vole::Receiver::<R>::setup_with(shared, &plans[1], None, rng(3), channel);
                refused(one().map(|_| ()));
                assert!(matches!(one(), Err(Error::Broken)));
            },
        );
    }
    assert!(plan::<Z64>(3).schedule().is_empty() && plan::<Fp61>(3).schedule().is_empty());
    refused::<Z64>([3, 4].map(plan::<Z64>));
    refused::<Fp61>([3, 4].map(plan::<Fp61>));
    refused::<Z64>([3, 20_011].map(plan::<Z64>));
    refused::<Z64>([20_011, 20_012].map(plan::<Z64>));
    refused::<Fp61>([20_011, 20_012].map(plan::<Fp61>));
    refused::<Fp61>(
        [Noise::Regular, Noise::Uniform]
            .map(|noise| rounds::<Fp61>(20_011, noise, Security::SemiHonest)),
    );
}

#[test]
fn sessions_depend_on_number_and_part() {
    let other = SessionId::from_bytes([6; 32]);
    let mut all = vec![SESSION, other];
    for session in [SESSION, other] {
        let mut guarded = GuardedExtensions::new(session, ());
        all.extend([(); 3].map(|()| guarded.next_session()));
        all.extend(["trees", "bits"].map(|part| sub(session, part)));
    }
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}
