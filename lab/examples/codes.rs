//! The time of dual LPN: correlated OTs from connection to last output, and the code alone.
//!
//! `cargo run --profile dist --example codes [number] [runs]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a program for measuring: a failure ends it, and its output is its purpose"
)]

use std::{hint::black_box, time::Instant};

use volery_channel::{SessionId, run_two_parties};
use volery_field::Gf128;
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::{
    Kind, Plan, PlanOptions, Protocol, Security, cot,
    lpn::dual::{Compression, params::Shape},
};
use volery_primitives::{Block, bits, prg::Prg};

fn main() {
    let mut arguments = std::env::args().skip(1).map(|word| word.parse().unwrap());
    let n = arguments.next().unwrap_or(1 << 20);
    let runs = arguments.next().unwrap_or(9);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    pool.unwrap().install(|| measure(n, runs));
}

fn measure(n: usize, runs: usize) {
    for security in [Security::SemiHonest, Security::Malicious] {
        let options = PlanOptions {
            total: Some(n as u64),
            security,
            protocol: Protocol::LowCommunication,
            ..PlanOptions::default()
        };
        let plan = Plan::new(Kind::Cot, &options).unwrap();
        print(&format!("cot, {security}"), n, runs, || cots(&plan, n));
        if security == Security::Malicious {
            let shape = plan.dual().unwrap();
            print("code alone", n, runs, || encode(shape, n));
        }
    }
}

/// The median and the range in nanoseconds for an output; the first run does not count.
fn print(what: &str, n: usize, runs: usize, mut run: impl FnMut() -> f64) {
    let mut all: Vec<_> = (0..=runs).map(|_| run()).skip(1).collect();
    all.sort_by(f64::total_cmp);
    let [median, least, most] = [runs / 2, 0, runs - 1].map(|place| 1e9 * all[place] / n as f64);
    println!("{what}, n = {n}: {median:.1} ns ({least:.1} to {most:.1})");
}

fn cots(plan: &Plan, n: usize) -> f64 {
    const SESSION: SessionId = SessionId::from_bytes([1; 32]);
    let rng = |seed: u128| Prg::new(Block::from(seed));
    let start = Instant::now();
    run_two_parties(
        |channel| {
            let mut sender = cot::Sender::setup(plan, None, SESSION, rng(1), channel).unwrap();
            let mut v = vec![Block::ZERO; 1 << 16];
            for left in (0..n).step_by(v.len()).map(|done| n - done) {
                let now = left.min(v.len());
                sender.extend(&mut v[..now], channel).unwrap();
                black_box(&v);
            }
        },
        |channel| {
            let mut receiver = cot::Receiver::setup(plan, SESSION, rng(2), channel).unwrap();
            let mut w = vec![Block::ZERO; 1 << 16];
            let mut u = vec![0; bits::bytes_for(w.len())];
            for left in (0..n).step_by(w.len()).map(|done| n - done) {
                let now = left.min(w.len());
                let u = &mut u[..bits::bytes_for(now)];
                receiver.extend(u, &mut w[..now], channel).unwrap();
                black_box(&w);
            }
        },
    );
    start.elapsed().as_secs_f64()
}

fn encode(shape: Shape, n: usize) -> f64 {
    let values = vec![Gf128::new(Block::from(7)); 1 << 13];
    let start = Instant::now();
    let mut code = Compression::new(Block::from(3), shape.leaves());
    for left in (0..shape.leaves())
        .step_by(values.len())
        .map(|done| shape.leaves() - done)
    {
        code.absorb(&values[..left.min(values.len())]);
    }
    let mut left = n;
    while left > 0 {
        left -= black_box(code.draw(left)).len();
    }
    start.elapsed().as_secs_f64()
}
