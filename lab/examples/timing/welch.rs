//! Two classes of times, and the test whether they differ.

use std::time::Instant;

use volery_primitives::{bits, prg::Prg};

/// Inputs that are drawn before they are run, so that both classes lie in memory alike.
const BATCH: usize = 128;

/// Samples discarded at first.
const WARM_UP: usize = 512;

/// Shares of the samples, the fastest ones, for the test: the slow ones were most often disturbed.
const CROPS: [f64; 8] = [0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0];

/// A function that runs on secrets.
pub(crate) trait Bench: Send {
    /// Prepares the runs of a batch; `fixed[i]` is the class of secret number `i`.
    fn draw(&mut self, fixed: &[bool], rng: &mut Prg);

    /// Runs on secret number `i` of the batch.
    fn run(&mut self, i: usize);
}

/// A [`Bench`] of two functions: one that draws a secret, one that works on it.
pub(crate) struct Of<I, D, R> {
    draw: D,
    run: R,
    inputs: Vec<I>,
}

impl<I, D: FnMut(bool, &mut Prg) -> I, R: FnMut(&mut I)> Of<I, D, R> {
    /// `draw` receives whether to draw the fixed secret; `run` does the measured work.
    pub(crate) fn new(draw: D, run: R) -> Self {
        Self { draw, run, inputs: Vec::new() }
    }
}

impl<I, D, R> Bench for Of<I, D, R>
where
    I: Send,
    D: FnMut(bool, &mut Prg) -> I + Send,
    R: FnMut(&mut I) + Send,
{
    fn draw(&mut self, fixed: &[bool], rng: &mut Prg) {
        self.inputs.clear();
        for &fixed in fixed {
            self.inputs.push((self.draw)(fixed, rng));
        }
    }

    fn run(&mut self, i: usize) {
        (self.run)(&mut self.inputs[i]);
    }
}

/// Mean and variance of a class, by Welford's recurrence.
#[derive(Clone, Copy, Default)]
struct Class {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Class {
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let difference = x - self.mean;
        self.mean += difference / self.count;
        self.squares += difference * (x - self.mean);
    }

    fn variance_of_mean(&self) -> f64 {
        self.squares / (self.count - 1.0) / self.count
    }
}

/// Welch's t of the random class against the fixed one, the largest over all [`CROPS`].
pub(crate) fn largest_t(bench: &mut dyn Bench, samples: usize, rng: &mut Prg) -> f64 {
    let mut times = measure(bench, samples + WARM_UP, rng).split_off(WARM_UP);
    times.sort_by_key(|(_, time)| *time);
    let mut classes = [Class::default(); 2];
    let mut largest: f64 = 0.0;
    let mut next = 0;
    for crop in CROPS {
        let mut end = (times.len() as f64 * crop) as usize;
        // Equal times stay together: the clock is coarse.
        while end < times.len() && times[end].1 == times[end - 1].1 {
            end += 1;
        }
        for (fixed, time) in &times[next.min(end)..end] {
            classes[usize::from(*fixed)].add(*time as f64);
        }
        next = end;
        let [random, fixed] = classes;
        if random.count.min(fixed.count) < 100.0 {
            // Nearly all of the fastest are of one class: the difference is certain.
            largest = (random.count - fixed.count) / (random.count + fixed.count).sqrt();
            continue;
        }
        let spread = random.variance_of_mean() + fixed.variance_of_mean();
        let t = (random.mean - fixed.mean) / spread.max(f64::MIN_POSITIVE).sqrt();
        if t.abs() > largest.abs() {
            largest = t;
        }
    }
    largest
}

/// The class of each run, whether it was the fixed one, with its time in nanoseconds.
fn measure(bench: &mut dyn Bench, samples: usize, rng: &mut Prg) -> Vec<(bool, u64)> {
    let mut times = Vec::with_capacity(samples + BATCH);
    while times.len() < samples {
        let mut order = [0; BATCH / 8];
        rng.fill_bytes(&mut order);
        let fixed = bits::unpack(&order, BATCH);
        bench.draw(&fixed, rng);
        for (i, fixed) in fixed.into_iter().enumerate() {
            let start = Instant::now();
            bench.run(i);
            times.push((fixed, start.elapsed().as_nanos() as u64));
        }
    }
    times
}
