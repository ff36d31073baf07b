//! The speed of both parties at work: `cards KIND SECURITY SET SUBSTREAMS PLACE PLACE ROUNDS`.
//!
//! KIND is cot, ot (hashed), fp61 or gf128; SET as b11/4; PLACE, first that of the holder of
//! `delta` or `x`, is cpu, or cuda:N with outputs on the card, or cuda:N=host with outputs in
//! pinned memory. All over TCP on this machine. Prints 10^9 correlations a second, of the faster
//! draws of ROUNDS rounds.
#![allow(clippy::print_stdout, reason = "a program that prints its result")]

use std::time::Instant;

use bytemuck::Pod;
use volery_channel::{Channel, Result, SessionId, run_two_parties_tcp};
use volery_field::{Fp61, Gf128};
use volery_ot::{CotReceiver as _, CotSender as _};
use volery_pcg::{
    Device, Kind, Plan, PlanOptions,
    card::{self, Card, Memory, Pinned},
    cot,
    vole::{self, VoleRing},
};
use volery_primitives::{Block, bits, prg::Prg};

const SESSION: SessionId = SessionId::from_bytes([7; 32]);
const DRAWS: usize = 9;
const WORKS: &str = "the protocol and the card work";

/// One party: what it makes and draws, and whether its outputs stay on its card.
struct Party<'a> {
    kind: &'a str,
    plan: Plan,
    holds_key: bool,
    card: Option<Card>,
    on_card: bool,
    n: usize,
}

/// The seconds of each draw.
fn timed(mut draw: impl FnMut() -> Result<()>) -> Result<Vec<f64>> {
    let time = |_| {
        let start = Instant::now();
        draw()?;
        Ok(start.elapsed().as_secs_f64())
    };
    (0..DRAWS).map(time).collect()
}

impl Party<'_> {
    fn memory<T: Pod>(&self, len: usize) -> Memory<T> {
        Memory::zeroed(self.card.as_ref().expect("a card"), len).expect(WORKS)
    }

    /// Memory of this machine: pinned, if a card fills it.
    fn host<T: Pod>(&self) -> Box<dyn std::ops::DerefMut<Target = [T]>> {
        match &self.card {
            Some(card) => Box::new(Pinned::zeroed(card, self.n).expect(WORKS)),
            None => Box::new(vec![T::zeroed(); self.n]),
        }
    }

    fn run(&self, channel: &mut Channel) -> Result<Vec<f64>> {
        match self.kind {
            "fp61" => self.voles::<Fp61>(channel),
            "gf128" => self.voles::<Gf128>(channel),
            _ => self.cots(channel),
        }
    }

    fn cots(&self, channel: &mut Channel) -> Result<Vec<f64>> {
        let (plan, n, hashed) = (&self.plan, self.n, self.kind == "ot");
        let rng = Prg::new(Block::from(1 + u128::from(self.holds_key)));
        match (self.holds_key, self.on_card) {
            (true, false) => {
                let mut sender = cot::Sender::setup(plan, None, SESSION, rng, channel)?;
                let mut v = self.host();
                timed(|| sender.extend(&mut v, channel))
            }
            (false, false) => {
                let mut receiver = cot::Receiver::setup(plan, SESSION, rng, channel)?;
                let (mut u, mut w) = (vec![0; bits::bytes_for(n)], self.host());
                timed(|| receiver.extend(&mut u, &mut w, channel))
            }
            (true, true) => {
                let mut sender = card::CotSender::setup(plan, None, SESSION, rng, channel)?;
                let mut v = self.memory(if hashed { 2 * n } else { n });
                if !hashed {
                    return timed(|| sender.extend(&mut v.all(), channel));
                }
                let mut sender = card::RandomSender::new(sender, SESSION);
                timed(|| sender.extend(&mut v.all(), channel))
            }
            (false, true) => {
                let mut receiver = card::CotReceiver::setup(plan, SESSION, rng, channel)?;
                let (mut u, mut w) = (self.memory(n.div_ceil(32)), self.memory(n));
                if !hashed {
                    return timed(|| receiver.extend(&mut u.all(), &mut w.all(), channel));
                }
                let mut receiver = card::RandomReceiver::new(receiver, SESSION);
                timed(|| receiver.extend(&mut u.all(), &mut w.all(), channel))
            }
        }
    }

    fn voles<R: VoleRing>(&self, channel: &mut Channel) -> Result<Vec<f64>> {
        let (plan, n, words) = (&self.plan, self.n, self.n * R::WORDS);
        let rng = Prg::new(Block::from(1 + u128::from(self.holds_key)));
        match (self.holds_key, self.on_card) {
            (true, false) => {
                let mut receiver = vole::Receiver::<R>::setup(plan, None, SESSION, rng, channel)?;
                let mut w = vec![R::ZERO; n];
                timed(|| receiver.extend(&mut w, channel))
            }
            (false, false) => {
                let mut sender = vole::Sender::<R>::setup(plan, SESSION, rng, channel)?;
                let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
                timed(|| sender.extend(&mut u, &mut v, channel))
            }
            (true, true) => {
                let mut receiver =
                    card::VoleReceiver::<R>::setup(plan, None, SESSION, rng, channel)?;
                let mut w = self.memory(words);
                timed(|| receiver.extend(&mut w.all(), channel))
            }
            (false, true) => {
                let mut sender = card::VoleSender::<R>::setup(plan, SESSION, rng, channel)?;
                let (mut u, mut v) = (self.memory(words), self.memory(words));
                timed(|| sender.extend(&mut u.all(), &mut v.all(), channel))
            }
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [kind, security, set, substreams, key, value, rounds] = &arguments[..] else {
        panic!("cards KIND SECURITY SET SUBSTREAMS PLACE PLACE ROUNDS");
    };
    let (name, instances) = set.split_once('/').expect("a set, as b11/4");
    let options = PlanOptions {
        security: security.parse().expect("semi-honest or malicious"),
        set: Some(name),
        instances: Some(instances.parse().expect("1, 2 or 4")),
        substreams: Some(substreams.parse().expect("a number")),
        ..PlanOptions::default()
    };
    let of = match &kind[..] {
        "fp61" => Kind::Vole(Fp61::FIELD),
        "gf128" => Kind::Vole(Gf128::FIELD),
        _ => Kind::Cot,
    };
    let plan = Plan::new(of, &options).expect("a plan");
    let set = plan.schedule().last().expect("a plan of rounds");
    let rounds: usize = rounds.parse().expect("a number");
    let n = (set.n - 2 * set.k) * plan.instances() * rounds;
    let [left, right] = [(key, true), (value, false)].map(|(place, holds_key)| {
        let (device, to_host) =
            place.split_once('=').map_or((&place[..], false), |(device, _)| (device, true));
        let device = device.parse().expect("cpu, cuda:N or cuda:N=host");
        let plan = plan.clone().on(device).expect("a plan for the card");
        let card = match device {
            Device::Cuda(number) => Some(Card::open(number).expect(WORKS)),
            _ => None,
        };
        let on_card = card.is_some() && !to_host;
        Party { kind, plan, holds_key, card, on_card, n }
    });
    let times: [_; 2] =
        run_two_parties_tcp(|channel| left.run(channel), |channel| right.run(channel)).into();
    let rates = times.map(|times| {
        let mut times = times.expect(WORKS);
        times.remove(0);
        times.sort_by(f64::total_cmp);
        n as f64 / times[times.len() / 4] / 1e9
    });
    let [left, right] = rates;
    let plan = plan.describe();
    println!("{kind} {security} {plan} {key} {value}, {n} a draw: {left:.2} and {right:.2}");
}
