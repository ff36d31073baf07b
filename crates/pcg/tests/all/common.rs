//! Both parties of a stream, and the relation of their outputs.

use volery_channel::{Channel, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Noise, Plan, PlanOptions, Security, Trees, cot,
    vole::{Receiver, Sender, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

pub(crate) const SESSION: SessionId = SessionId::from_bytes([5; 32]);

pub(crate) fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// Every mode of rounds of primal LPN.
pub(crate) fn every_mode() -> impl Iterator<Item = PlanOptions<'static>> {
    [Security::SemiHonest, Security::Malicious].into_iter().flat_map(|security| {
        [Noise::Regular, Noise::Uniform].into_iter().flat_map(move |noise| {
            [Trees::Half, Trees::Ggm].map(|trees| PlanOptions {
                security,
                noise,
                trees,
                ..PlanOptions::default()
            })
        })
    })
}

/// The next step of both parties.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Draw(usize),
    Prepare,
}

/// The number of correlations of all draws.
pub(crate) fn total(steps: &[Step]) -> usize {
    let draws = steps.iter().map(|step| match step {
        Step::Draw(n) => *n,
        Step::Prepare => 0,
    });
    draws.sum()
}

/// A sender's `delta` and `v`.
pub(crate) type SentCots = (Block, Vec<Block>);

/// A receiver's `u`, not packed, and `w`.
pub(crate) type ReceivedCots = (Vec<bool>, Vec<Block>);

pub(crate) fn cot_sender(
    plan: &Plan,
    delta: Option<Block>,
    steps: &[Step],
    channel: &mut Channel,
) -> SentCots {
    let mut sender = cot::Sender::setup(plan, delta, SESSION, rng(1), channel).unwrap();
    let mut v = vec![Block::ZERO; total(steps)];
    let mut rest = &mut v[..];
    for step in steps {
        match step {
            Step::Draw(n) => {
                let now = rest.split_off_mut(..*n).unwrap();
                sender.extend(now, channel).unwrap();
            }
            Step::Prepare => drop(sender.prepare(channel).unwrap()),
        }
    }
    (sender.delta(), v)
}

pub(crate) fn cot_receiver(plan: &Plan, steps: &[Step], channel: &mut Channel) -> ReceivedCots {
    let mut receiver = cot::Receiver::setup(plan, SESSION, rng(2), channel).unwrap();
    let mut w = vec![Block::ZERO; total(steps)];
    let mut u = Vec::with_capacity(w.len());
    let mut rest = &mut w[..];
    for step in steps {
        match step {
            Step::Draw(n) => {
                let now = rest.split_off_mut(..*n).unwrap();
                let mut packed = vec![0; bits::bytes_for(*n)];
                receiver.extend(&mut packed, now, channel).unwrap();
                u.extend(bits::unpack(&packed, *n));
            }
            Step::Prepare => drop(receiver.prepare(channel).unwrap()),
        }
    }
    (u, w)
}

pub(crate) fn assert_cots(((delta, v), (u, w)): &(SentCots, ReceivedCots)) {
    assert_eq!((v.len(), v.len()), (u.len(), w.len()));
    for i in 0..v.len() {
        let shift = if u[i] { *delta } else { Block::ZERO };
        assert!(w[i] == v[i] ^ shift, "correlation {i} of {}", v.len());
    }
    // Six standard deviations from the mean
    let ones = u.iter().filter(|u| **u).count() as f64;
    let n = u.len() as f64;
    assert!((ones - n / 2.0).abs() <= 3.0 * n.sqrt() + 1.0, "{ones} of {n}");
}

/// A sender's `u` and `v`.
pub(crate) type SentVoles<R> = (Vec<R>, Vec<R>);

/// A receiver's `x` and `w`.
pub(crate) type ReceivedVoles<R> = (R, Vec<R>);

/// The correlations of a sender in draws of these lengths.
pub(crate) fn vole_sender<R: VoleRing>(
    plan: &Plan,
    draws: &[usize],
    channel: &mut Channel,
) -> SentVoles<R> {
    let mut sender = Sender::<R>::setup(plan, SESSION, rng(1), channel).unwrap();
    let n = draws.iter().sum();
    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    let (mut us, mut vs) = (&mut u[..], &mut v[..]);
    for &n in draws {
        let (u, v) = (us.split_off_mut(..n), vs.split_off_mut(..n));
        sender.extend(u.unwrap(), v.unwrap(), channel).unwrap();
    }
    (u, v)
}

/// The correlations of a receiver in draws of these lengths.
pub(crate) fn vole_receiver<R: VoleRing>(
    plan: &Plan,
    draws: &[usize],
    channel: &mut Channel,
) -> ReceivedVoles<R> {
    let mut receiver = Receiver::<R>::setup(plan, None, SESSION, rng(2), channel).unwrap();
    let mut w = vec![R::ZERO; draws.iter().sum()];
    let mut rest = &mut w[..];
    for &n in draws {
        let w = rest.split_off_mut(..n).unwrap();
        receiver.extend(w, channel).unwrap();
    }
    (receiver.x(), w)
}

pub(crate) fn assert_voles<R: Ring>(((u, v), (x, w)): &(SentVoles<R>, ReceivedVoles<R>)) {
    assert_eq!([u.len(), v.len()], [w.len(); 2]);
    for (i, w) in w.iter().enumerate() {
        let right = *w == u[i] * *x + v[i];
        assert!(right, "correlation {i} of {} over {}", u.len(), R::NAME);
    }
}
