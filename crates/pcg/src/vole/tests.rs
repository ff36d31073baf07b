//! Streams of every length over every ring.

use volery_channel::{run_two_parties, run_two_unchecked};
use volery_primitives::Block;

use super::*;
use crate::{Noise, Protocol};

/// Rounds, also where another plan would take less time.
pub(super) fn plan<R: VoleRing>(
    total: Option<u64>,
    noise: Noise,
    security: Security,
) -> std::result::Result<Plan, PlanError> {
    let options = PlanOptions {
        total,
        noise,
        security,
        protocol: if total.is_some_and(|total| total < 4500) {
            Protocol::Auto
        } else {
            Protocol::Primal
        },
        ..PlanOptions::default()
    };
    Plan::new(Kind::Vole(R::FIELD), &options)
}

/// `w = u*x + v` for a stream drawn in the given pieces.
fn check<R: VoleRing>(plan: &Plan, pieces: &[usize]) {
    let session = SessionId::from_bytes([5; 32]);
    let n = pieces.iter().sum();
    let ((u, v), (x, w)) = run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<R>::setup(plan, session, rng, channel).unwrap();
            let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
            let mut at = 0;
            for piece in pieces {
                let range = at..at + piece;
                sender
                    .extend(&mut u[range.clone()], &mut v[range], channel)
                    .unwrap();
                at += piece;
            }
            (u, v)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = Receiver::<R>::setup(plan, None, session, rng, channel).unwrap();
            let mut w = vec![R::ZERO; n];
            let mut at = 0;
            for piece in pieces {
                receiver.extend(&mut w[at..at + piece], channel).unwrap();
                at += piece;
            }
            (receiver.x(), w)
        },
    );
    for i in 0..n {
        assert!(
            w[i] == u[i] * x + v[i],
            "correlation {i} of {n} over {}",
            R::NAME
        );
    }
}

fn check_ring<R: VoleRing>() {
    for noise in [Noise::Regular, Noise::Uniform] {
        for n in [0, 1, 4000, 4001, 4609, 17_537, 134_145] {
            let plan = plan::<R>(Some(n), noise, Security::SemiHonest).unwrap();
            check::<R>(&plan, &[n as usize]);
        }
    }
    let plan = plan::<R>(Some(30_011), Noise::Regular, Security::SemiHonest).unwrap();
    check::<R>(&plan, &[0, 1, 2, 47, 48, 49, 10_007, 1, 10_000, 9856]);
}

#[test]
#[should_panic(expected = "no more correlations than the plan was made for")]
fn no_more_than_planned() {
    let plan = plan::<Fp61>(Some(5), Noise::Regular, Security::SemiHonest).unwrap();
    check::<Fp61>(&plan, &[3, 3]);
}

#[test]
#[should_panic(expected = "a plan for z64")]
fn a_plan_is_for_one_ring() {
    let plan = plan::<Fp61>(Some(5), Noise::Regular, Security::SemiHonest).unwrap();
    check::<Z64>(&plan, &[3]);
}

/// Separate setup and expansion: a prepared round is drawn without a peer.
#[test]
fn a_prepared_round_needs_no_peer() {
    let plan = plan::<Fp61>(Some(10_000), Noise::Regular, Security::SemiHonest).unwrap();
    let session = SessionId::from_bytes([5; 32]);
    let lonely = || Channel::memory_pair().0;
    let ((u, v), (x, w)) = run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let mut sender = Sender::<Fp61>::setup(&plan, session, rng, channel).unwrap();
            assert_eq!(sender.prepare(channel).unwrap(), 10_000);
            let (mut u, mut v) = (vec![Fp61::ZERO; 10_000], vec![Fp61::ZERO; 10_000]);
            sender
                .extend(&mut u[..3000], &mut v[..3000], &mut lonely())
                .unwrap();
            sender
                .extend(&mut u[3000..], &mut v[3000..], &mut lonely())
                .unwrap();
            assert_eq!(sender.prepare(channel).unwrap(), 0);
            (u, v)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = Receiver::<Fp61>::setup(&plan, None, session, rng, channel).unwrap();
            assert_eq!(receiver.prepare(channel).unwrap(), 10_000);
            let mut w = vec![Fp61::ZERO; 10_000];
            receiver.extend(&mut w, &mut lonely()).unwrap();
            (receiver.x(), w)
        },
    );
    assert!((0..10_000).all(|i| w[i] == u[i] * x + v[i]));
}

/// Different plans end the setup, even if the first messages have the same lengths.
#[test]
fn another_plan_is_noticed_in_the_setup() {
    let session = SessionId::from_bytes([5; 32]);
    let plans = [6_300_000, 9_000_000]
        .map(|n| plan::<Z64>(Some(n), Noise::Regular, Security::SemiHonest).unwrap());
    let (sender, receiver) = run_two_unchecked(
        |channel| {
            let rng = Prg::new(Block::from(1));
            Sender::<Z64>::setup(&plans[0], session, rng, channel).map(|_| ())
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            Receiver::<Z64>::setup(&plans[1], None, session, rng, channel).map(|_| ())
        },
    );
    assert!(matches!(receiver, Err(crate::Error::PeerMisbehaved(_))));
    assert!(matches!(sender, Err(crate::Error::Disconnected)));
}

#[test]
fn fp61_every_size() {
    check_ring::<Fp61>();
}

#[test]
fn z64_every_size() {
    check_ring::<Z64>();
}

#[test]
fn gf128_every_size() {
    check_ring::<Gf128>();
}

/// The name of the ring is in the sessions, separately from the plan, which also contains it.
#[test]
fn sessions_depend_on_ring_and_part() {
    let plan = plan::<Fp61>(Some(100), Noise::Regular, Security::Malicious).unwrap();
    let sessions = [[5; 32], [6; 32]].map(SessionId::from_bytes);
    let all = [
        sub::<Fp61>(sessions[0], &plan, "ot"),
        sub::<Fp61>(sessions[1], &plan, "ot"),
        sub::<Fp61>(sessions[0], &plan, "base"),
        plan.session(RandomOracle::new("volery vole part"), sessions[0], "ot"),
    ];
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}
