//! The speed of both parties at work: `cards KIND SECURITY SET SUBSTREAMS PLACE PLACE ROUNDS`.
//!
//! KIND is cot, ot (hashed), fp61 or gf128; SET as b11/4; PLACE, first that of the holder of
//! `delta` or `x`, is cpu, or cuda:N with outputs on the card, or cuda:N=host with outputs in
//! pinned memory. All over TCP on this machine. Prints 10^9 correlations a second, of the faster
//! draws of ROUNDS rounds.
#![allow(clippy::print_stdout, reason = "a program that prints its result")]

use std::time::Instant;

use volery_channel::{Channel, SessionId, run_two_parties_tcp};
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

/// Where a party computes, and whether its outputs stay there.
#[derive(Clone, Copy)]
struct Place {
    device: Device,
    on_card: bool,
}

fn place(name: &str) -> Place {
    let (name, host) = name.split_once('=').map_or((name, false), |(name, _)| (name, true));
    let device = name.parse().expect("cpu, cuda:N or cuda:N=host");
    Place { device, on_card: matches!(device, Device::Cuda(_)) && !host }
}

fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// Memory of this machine for outputs: pinned, if a card fills it.
enum Host<T: bytemuck::Pod> {
    Plain(Vec<T>),
    Pinned(Pinned<T>),
}

impl<T: bytemuck::Pod> Host<T> {
    fn new(plan: &Plan, len: usize) -> Self {
        match plan.device() {
            Device::Cuda(number) => {
                let card = Card::open(number).expect(WORKS);
                Self::Pinned(Pinned::zeroed(&card, len).expect(WORKS))
            }
            _ => Self::Plain(vec![T::zeroed(); len]),
        }
    }

    fn all(&mut self) -> &mut [T] {
        match self {
            Self::Plain(all) => all,
            Self::Pinned(all) => all,
        }
    }
}

/// The seconds of each draw.
fn draws(mut draw: impl FnMut()) -> Vec<f64> {
    let time = |_| {
        let start = Instant::now();
        draw();
        start.elapsed().as_secs_f64()
    };
    (0..DRAWS).map(time).collect()
}

fn cots(
    plan: &Plan,
    sends: bool,
    on_card: bool,
    n: usize,
    hashed: bool,
    channel: &mut Channel,
) -> Vec<f64> {
    match (sends, on_card) {
        (true, false) => {
            let mut sender = cot::Sender::setup(plan, None, SESSION, rng(1), channel).expect(WORKS);
            let mut v = Host::new(plan, n);
            draws(|| sender.extend(v.all(), channel).expect(WORKS))
        }
        (false, false) => {
            let mut receiver = cot::Receiver::setup(plan, SESSION, rng(2), channel).expect(WORKS);
            let (mut u, mut w) = (vec![0; bits::bytes_for(n)], Host::new(plan, n));
            draws(|| receiver.extend(&mut u, w.all(), channel).expect(WORKS))
        }
        (true, true) => {
            let mut sender =
                card::CotSender::setup(plan, None, SESSION, rng(1), channel).expect(WORKS);
            let mut v = Memory::zeroed(sender.device(), n).expect(WORKS);
            if !hashed {
                return draws(|| sender.extend(&mut v.all(), channel).expect(WORKS));
            }
            let mut m = Memory::zeroed(sender.device(), 2 * n).expect(WORKS);
            let mut sender = card::RandomSender::new(sender, SESSION);
            draws(|| sender.extend(&mut m.all(), channel).expect(WORKS))
        }
        (false, true) => {
            let mut receiver =
                card::CotReceiver::setup(plan, SESSION, rng(2), channel).expect(WORKS);
            let mut w = Memory::zeroed(receiver.device(), n).expect(WORKS);
            let mut u = Memory::zeroed(receiver.device(), n.div_ceil(32)).expect(WORKS);
            if !hashed {
                return draws(|| {
                    receiver.extend(&mut u.all(), &mut w.all(), channel).expect(WORKS)
                });
            }
            let mut receiver = card::RandomReceiver::new(receiver, SESSION);
            draws(|| receiver.extend(&mut u.all(), &mut w.all(), channel).expect(WORKS))
        }
    }
}

fn voles<R: VoleRing>(
    plan: &Plan,
    key: bool,
    on_card: bool,
    n: usize,
    channel: &mut Channel,
) -> Vec<f64> {
    match (key, on_card) {
        (true, false) => {
            let mut receiver =
                vole::Receiver::<R>::setup(plan, None, SESSION, rng(1), channel).expect(WORKS);
            let mut w = vec![R::ZERO; n];
            draws(|| receiver.extend(&mut w, channel).expect(WORKS))
        }
        (false, false) => {
            let mut sender = vole::Sender::<R>::setup(plan, SESSION, rng(2), channel).expect(WORKS);
            let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
            draws(|| sender.extend(&mut u, &mut v, channel).expect(WORKS))
        }
        (true, true) => {
            let mut receiver =
                card::VoleReceiver::<R>::setup(plan, None, SESSION, rng(1), channel).expect(WORKS);
            let mut w = Memory::zeroed(receiver.device(), n * R::WORDS).expect(WORKS);
            draws(|| receiver.extend(&mut w.all(), channel).expect(WORKS))
        }
        (false, true) => {
            let mut sender =
                card::VoleSender::<R>::setup(plan, SESSION, rng(2), channel).expect(WORKS);
            let memory = || Memory::zeroed(sender.device(), n * R::WORDS).expect(WORKS);
            let (mut u, mut v) = (memory(), memory());
            draws(|| sender.extend(&mut u.all(), &mut v.all(), channel).expect(WORKS))
        }
    }
}

fn main() {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [kind, security, set, substreams, key, value, rounds] = &arguments[..] else {
        panic!("cards KIND SECURITY SET SUBSTREAMS PLACE PLACE ROUNDS");
    };
    let (name, instances) = set.split_once('/').expect("a set, as b11/4");
    let substreams: usize = substreams.parse().expect("a number");
    let options = PlanOptions {
        security: security.parse().expect("semi-honest or malicious"),
        set: Some(name),
        instances: Some(instances.parse().expect("1, 2 or 4")),
        substreams: Some(substreams),
        ..PlanOptions::default()
    };
    let of = match &kind[..] {
        "fp61" => Kind::Vole(Fp61::FIELD),
        "gf128" => Kind::Vole(Gf128::FIELD),
        _ => Kind::Cot,
    };
    let plan = Plan::new(of, &options).expect("a plan");
    // Whole rounds: what a round returns.
    let set = plan.schedule().last().expect("a plan of rounds");
    let rounds: usize = rounds.parse().expect("a number");
    let n = (set.n - 2 * set.k) * plan.instances() * rounds;
    let run = |name: &str, holds_key: bool, channel: &mut Channel| {
        let place = place(name);
        let plan = plan.clone().on(place.device).expect("a plan for the card");
        match &kind[..] {
            "fp61" => voles::<Fp61>(&plan, holds_key, place.on_card, n, channel),
            "gf128" => voles::<Gf128>(&plan, holds_key, place.on_card, n, channel),
            _ => cots(&plan, holds_key, place.on_card, n, kind == "ot", channel),
        }
    };
    let times: [_; 2] = run_two_parties_tcp(
        |channel| run(key, true, channel),
        |channel| run(value, false, channel),
    )
    .into();
    let rates = times.map(|mut times: Vec<f64>| {
        times.remove(0);
        times.sort_by(f64::total_cmp);
        n as f64 / times[times.len() / 4] / 1e9
    });
    println!(
        "{kind} {security} {} {key} {value}, {n} a draw: {:.2} and {:.2}",
        plan.describe(),
        rates[0],
        rates[1]
    );
}
