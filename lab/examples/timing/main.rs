//! A search for secrets in the time of a step.
//!
//! Reparaz, Balasch, Verbauwhede, *Dude, is my code constant time?*, DATE 2017 (ePrint 2016/1123):
//! the step runs very often on secrets of two classes, one fixed and one random, in a random order,
//! and Welch's t-test shows whether the two classes take the same time.
//!
//! ```text
//! cargo run --profile dist --example timing [-- SAMPLES]
//! ```
//!
//! Exits with 1 if a step that must be constant time is not, or if the run is blind: a comparison
//! that ends early is one of the steps, and must be detected. Two of the steps are not promised to
//! be constant time, and are only reported. Nothing here runs in `cargo test`: a test must not
//! depend on the time.
//!
//! A large |t| on a machine that does other work may be noise: so a step fails only if it exceeds
//! the limit twice. A small one proves nothing about other processors and other compilers.
#![allow(clippy::print_stdout, reason = "a program that prints a table for whoever runs it")]

mod parties;
mod replay;
mod steps;
mod welch;

use std::process::ExitCode;

use volery_primitives::{Block, prg::Prg};
use welch::{Bench, Of};

/// Above this the classes differ for certain.
const LIMIT: f64 = 10.0;

/// The expectation for a step before its measurement.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Promise {
    /// It takes the same time for all secrets.
    Constant,
    /// It must be detected.
    Leaks,
    /// The documentation says that the secret indexes or branches in its owner's memory.
    Nothing,
}

/// One step, and its number of runs.
struct Step {
    name: String,
    promise: Promise,
    samples: usize,
    bench: Box<dyn Bench>,
}

impl Step {
    /// A step that must be constant time: draws of secrets, given whether to draw the fixed one,
    /// and the work on one of them.
    fn constant<I: Send + 'static>(
        name: impl Into<String>,
        samples: usize,
        draw: impl FnMut(bool, &mut Prg) -> I + Send + 'static,
        run: impl FnMut(&mut I) + Send + 'static,
    ) -> Self {
        Self::new(name, Promise::Constant, samples, Of::new(draw, run))
    }

    fn new(
        name: impl Into<String>,
        promise: Promise,
        samples: usize,
        bench: impl Bench + 'static,
    ) -> Self {
        Self { name: name.into(), promise, samples, bench: Box::new(bench) }
    }

    /// Prints a line; returns whether the step meets the expectation.
    fn judge(&mut self, rng: &mut Prg) -> bool {
        let differ = |t: f64| t.abs() > LIMIT;
        let mut t = welch::largest_t(&mut *self.bench, self.samples, rng);
        if differ(t) && self.promise == Promise::Constant {
            t = welch::largest_t(&mut *self.bench, 2 * self.samples, rng);
        }
        let (kept, verdict) = match (self.promise, differ(t)) {
            (Promise::Constant, false) => (true, "constant time"),
            (Promise::Constant, true) => (false, "LEAKS"),
            (Promise::Leaks, true) => (true, "leaks, as it must"),
            (Promise::Leaks, false) => (false, "NOT FOUND: this run sees nothing"),
            (Promise::Nothing, _) => (true, "not promised"),
        };
        println!("{:<52} {t:>9.1}  {verdict}", self.name);
        kept
    }
}

fn main() -> ExitCode {
    let samples = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 100_000,
        Some(Ok(samples @ 1000..)) => samples,
        Some(_) => {
            println!("the number of samples is a number, at least 1000");
            return ExitCode::from(2);
        }
    };
    // Parallel steps stay on the measuring thread: waking others takes longer than the differences
    // to detect.
    let alone = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let alone = alone.expect("a thread");
    let mut rng = Prg::new(Block::from(2017));
    println!("{:<52} {:>9}", "step", "t");
    let mut kept = true;
    for mut step in steps::all(samples).into_iter().chain(parties::all(samples)) {
        kept &= alone.install(|| step.judge(&mut rng));
    }
    if kept { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Packed bits that are zero or random.
fn bits(count: usize) -> impl Fn(bool, &mut Prg) -> Vec<u8> + Copy {
    move |zero, rng| {
        let mut bits = vec![0; count / 8];
        rng.fill_bytes(&mut bits);
        if zero {
            bits.fill(0);
        }
        bits
    }
}

/// Blocks that are zero or random.
fn blocks(count: usize) -> impl Fn(bool, &mut Prg) -> Vec<Block> + Copy {
    move |zero, rng| {
        let mut blocks = vec![Block::ZERO; count];
        rng.fill_blocks(&mut blocks);
        if zero {
            blocks.fill(Block::ZERO);
        }
        blocks
    }
}
