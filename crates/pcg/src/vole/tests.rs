//! Prepared rounds, and sessions.

use volery_channel::run_two_parties;
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
            sender.extend(&mut u[..3000], &mut v[..3000], &mut lonely()).unwrap();
            sender.extend(&mut u[3000..], &mut v[3000..], &mut lonely()).unwrap();
            assert_eq!(sender.prepare(channel).unwrap(), 0);
            assert!(format!("{sender:?}").contains("left: Some(0), failed: false, .."));
            (u, v)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let mut receiver = Receiver::<Fp61>::setup(&plan, None, session, rng, channel).unwrap();
            assert_eq!(receiver.prepare(channel).unwrap(), 10_000);
            let mut w = vec![Fp61::ZERO; 10_000];
            VoleReceiver::extend(&mut &mut receiver, &mut w, &mut lonely()).unwrap();
            (VoleReceiver::x(&receiver), w)
        },
    );
    assert!((0..10_000).all(|i| w[i] == u[i] * x + v[i]));
}

/// The name of the ring is in the sessions, separately from the plan, which also contains it.
#[test]
fn sessions_depend_on_ring_and_part() {
    let plan = plan::<Fp61>(Some(100), Noise::Regular, Security::Malicious).unwrap();
    let sessions = [[5; 32], [6; 32]].map(SessionId::from_bytes);
    let all = [
        sub::<Fp61, Fp61>(sessions[0], &plan, "ot"),
        sub::<Fp61, Fp61>(sessions[1], &plan, "ot"),
        sub::<Fp61, Fp61>(sessions[0], &plan, "base"),
        plan.session(RandomOracle::new("volery vole part"), sessions[0], "ot"),
    ];
    assert!((0..all.len()).all(|i| !all[..i].contains(&all[i])));
}
