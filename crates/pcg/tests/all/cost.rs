//! The cost of a run: the sum of the bytes and messages in the docs of the parts equals the
//! counters of both channels.

mod wire;

use volery_channel::{Channel, SessionId, Stats, run_two_parties};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::{CotReceiver, CotSender, softspoken::SmallField};
use volery_pcg::{
    Base, Kind, Link, Noise, Plan, PlanOptions, Protocol, Security, Trees, cot,
    lpn::{estimate::Field, set_named},
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

use crate::common::every_mode;
use wire::{Wire, batches, expected, levels, need, rounds};

/// A party of a stream.
trait Party {
    fn prepare(&mut self, channel: &mut Channel) -> usize;
    fn draw(&mut self, n: usize, channel: &mut Channel);

    /// Draws all, and returns the channel's counters at each step of [`expected`].
    fn run(mut self, wanted: usize, channel: &mut Channel) -> Vec<Stats>
    where
        Self: Sized,
    {
        let mut counted = vec![channel.stats()];
        let mut left = wanted;
        while left > 0 {
            let ready = self.prepare(channel);
            if ready == 0 {
                self.draw(left, channel);
            }
            counted.push(channel.stats());
            let now = if ready == 0 { left } else { ready.min(left) };
            if ready > 0 {
                batches(now, 1 << 18).for_each(|n| self.draw(n, channel));
            }
            left -= now;
        }
        counted
    }
}

macro_rules! party {
    ($party:ty, $(<$ring:ident>,)? |$self:ident, $n:ident, $channel:ident| $draw:expr) => {
        impl $(<$ring: VoleRing>)? Party for $party {
            fn prepare(&mut self, channel: &mut Channel) -> usize {
                Self::prepare(self, channel).unwrap()
            }

            fn draw(&mut $self, $n: usize, $channel: &mut Channel) {
                $draw.unwrap();
            }
        }
    };
}

party!(cot::Sender, |self, n, channel| self.extend(&mut vec![Block::ZERO; n], channel));
party!(cot::Receiver, |self, n, channel| {
    self.extend(&mut vec![0; bits::bytes_for(n)], &mut vec![Block::ZERO; n], channel)
});
party!(vole::Sender<R>, <R>, |self, n, channel| {
    self.extend(&mut vec![R::ZERO; n], &mut vec![R::ZERO; n], channel)
});
party!(vole::Receiver<R>, <R>, |self, n, channel| self.extend(&mut vec![R::ZERO; n], channel));

/// The counters of both parties' channels: the key holder's and the value holder's.
fn counted(plan: &Plan, n: usize) -> Vec<(Stats, Stats)> {
    fn of_vole<R: VoleRing>(plan: &Plan, n: usize) -> (Vec<Stats>, Vec<Stats>) {
        let (session, rng) = (SessionId::from_bytes([5; 32]), |i| Prg::new(Block::from(i)));
        run_two_parties(
            |channel| {
                vole::Receiver::<R>::setup(plan, None, session, rng(1), channel)
                    .unwrap()
                    .run(n, channel)
            },
            |channel| {
                vole::Sender::<R>::setup(plan, session, rng(2), channel).unwrap().run(n, channel)
            },
        )
    }
    let (session, rng) = (SessionId::from_bytes([5; 32]), |i| Prg::new(Block::from(i)));
    let (key_holder, value_holder) = match plan.kind() {
        Kind::Cot => run_two_parties(
            |channel| {
                cot::Sender::setup(plan, None, session, rng(1), channel).unwrap().run(n, channel)
            },
            |channel| cot::Receiver::setup(plan, session, rng(2), channel).unwrap().run(n, channel),
        ),
        Kind::Vole(Field::Fp61) => of_vole::<Fp61>(plan, n),
        Kind::Vole(Field::Gf128) => of_vole::<Gf128>(plan, n),
        Kind::Vole(_) => of_vole::<Z64>(plan, n),
    };
    key_holder.into_iter().zip(value_holder).collect()
}

fn check(plan: &Plan, n: usize) {
    let counted = counted(plan, n);
    let mut expected_now = expected(plan, n, levels);
    if plan.noise() == Noise::Uniform && !plan.schedule().is_empty() {
        // The depth of the trees follows from a hash key. The key holder's bytes reveal it, and all
        // other costs follow.
        assert_eq!(plan.schedule().len(), 1, "one instance: {}", plan.describe());
        let (set, trees) = rounds(plan, n)[0];
        let without = expected(plan, n, |_, _| 0)[1].stats().0.bytes_sent;
        let each = if plan.trees() == Trees::Ggm { 32 } else { 16 };
        let found = (counted[1].0.bytes_sent - without) as usize / each;
        let most = levels(set, trees);
        assert!((most - 2 * trees..=most).contains(&found), "{found} of {most} levels");
        expected_now = expected(plan, n, |_, _| found);
    }
    let expected: Vec<_> = expected_now.iter().map(Wire::stats).collect();
    assert_eq!(counted, expected, "{:?} {} {n}", plan.kind(), plan.describe());
}

const SECURITIES: [Security; 2] = [Security::SemiHonest, Security::Malicious];

fn slow() -> Link {
    Link { bits_per_second: 1e6, round_trip: 0.1 }
}

fn kinds(security: Security) -> impl Iterator<Item = Kind> {
    let kinds =
        [Kind::Cot, Kind::Vole(Fp61::FIELD), Kind::Vole(Gf128::FIELD), Kind::Vole(Z64::FIELD)];
    let count = if security == Security::Malicious { 3 } else { 4 };
    kinds.into_iter().take(count)
}

/// Every mode, over every ring, in several rounds of the smallest instance; the base made at once,
/// and by rounds.
#[test]
fn rounds_cost_what_the_docs_say() {
    for options in every_mode() {
        let regular = options.noise == Noise::Regular;
        for kind in kinds(options.security) {
            for total in [Some(1500), Some(30_011), None] {
                let options = PlanOptions {
                    total,
                    set: Some(if regular { "r14" } else { "u14" }),
                    ..options
                };
                check(
                    &Plan::new(kind, &options).unwrap(),
                    30_011.min(total.unwrap_or(40_000) as usize),
                );
            }
        }
    }
    for security in SECURITIES {
        for kind in kinds(security) {
            let options = PlanOptions {
                total: Some(900_000),
                security,
                link: slow(),
                protocol: Protocol::Primal,
                ..PlanOptions::default()
            };
            let plan = Plan::new(kind, &options).unwrap();
            assert!(plan.schedule().len() > 1, "{}", plan.describe());
            check(&plan, 900_000);
        }
    }
}

/// Few correlations, from the base itself; and the plans of the papers.
#[test]
fn other_bases_cost_what_the_docs_say() {
    for security in SECURITIES {
        for kind in kinds(security) {
            for (n, link) in [(1000, Link::default()), (3, slow()), (0, slow())] {
                let options =
                    PlanOptions { total: Some(n), security, link, ..PlanOptions::default() };
                let plan = Plan::new(kind, &options).unwrap();
                assert!(plan.schedule().is_empty(), "{}", plan.describe());
                check(&plan, n as usize);
            }
        }
        check(&Plan::ferret(Some(1000), Noise::Regular, security), 1000);
    }
    for (n, bits) in [(1000, 8), (300, 64), (1000, 80), (1, 88), (257, 127), (0, 72)] {
        let options = PlanOptions {
            total: Some(n),
            security: Security::SemiHonest,
            value_bits: Some(bits),
            ..PlanOptions::default()
        };
        check(&Plan::new(Kind::Vole(Gf128::FIELD), &options).unwrap(), n as usize);
    }
    let many = PlanOptions {
        total: Some(100_000),
        protocol: Protocol::Direct(Base::SoftSpoken(SmallField::Bits4)),
        ..PlanOptions::default()
    };
    let plan = Plan::new(Kind::Cot, &many).unwrap();
    assert!(plan.schedule().is_empty(), "{}", plan.describe());
    check(&plan, 100_000);
}

/// A round of the largest instance of correlated OT: at most 0.50 bits for each, and five messages
/// (the first goes with the last one of the round before).
#[test]
fn less_than_half_a_bit() {
    let n = 30_000_000;
    let options = PlanOptions { set: Some("b13"), ..PlanOptions::default() };
    let plan = Plan::new(Kind::Cot, &options).unwrap();
    let counted = counted(&plan, n);
    let expected: Vec<_> = expected(&plan, n, levels).iter().map(Wire::stats).collect();
    assert_eq!(counted, expected);
    let [.., (before, _), (after, _)] = counted[..] else {
        panic!("two rounds");
    };
    let all = |stats: Stats| stats.bytes_sent + stats.bytes_received;
    let set = set_named("b13").unwrap();
    let made = set.n - need(&plan, (set, 1), set.t);
    let bits = 8.0 * (all(after) - all(before)) as f64 / made as f64;
    assert!(bits <= 0.50, "{bits} bits each");
    let messages = |stats: Stats| stats.messages_sent + stats.messages_received;
    assert_eq!(messages(after) - messages(before), 4);
}

/// Over fp61, 2^20 correlations including setup: below 5 MB in both directions. A round of b12 in a
/// long stream: below 1 bit each.
#[test]
fn vector_ole_stays_in_its_bounds() {
    let plan = |total, set| {
        let options =
            PlanOptions { total, set, protocol: Protocol::Primal, ..PlanOptions::default() };
        Plan::new(Kind::Vole(Fp61::FIELD), &options).unwrap()
    };
    let all = |stats: Stats| stats.bytes_sent + stats.bytes_received;
    let counted = counted(&plan(Some(1 << 20), None), 1 << 20);
    let bytes = all(counted.last().unwrap().0);
    assert!(bytes < 5_000_000, "{bytes} bytes");
    let (plan, set) = (plan(None, Some("b12")), set_named("b12").unwrap());
    assert_eq!(plan.instances(), 1);
    let mut round = Wire::default();
    round.round(&plan, set.t, levels(set, set.t));
    let bits = 8 * all(round.stats().0);
    let made = (set.n - need(&plan, (set, 1), set.t)) as u64;
    assert!(bits < made, "{bits} bits for {made} correlations");
}
