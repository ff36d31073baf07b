//! How light the code words of the code are: an expectation over its permutations.
//!
//! The weight distribution of the block code is known: RM(3, 7) is self-dual and doubly even, and has 94488 words of weight 16,
//! none below and none of weight 20, which by Gleason's theorem determines the others. After a uniformly random permutation all
//! words of one weight are equally likely, and of the `C(N, w)` words of weight `w`
//!
//! ```text
//! C(N - h, floor(w/2)) * C(h - 1, ceil(w/2) - 1)
//! ```
//!
//! become words of weight `h` by running sums (Divsalar, Jin, McEliece, *Coding theorems for turbo-like codes*, 1998): `h` is the
//! length of the runs between the first and second one, the third and fourth, and so on. So the expected number of words of `G` of
//! weight `h` is a sum of products over the weights in between, and with Markov's inequality the expected number of words of
//! weight `d` or less bounds the probability, over the seed, that there is one.
//!
//! | `N` | log2 of the probability that a word has weight `0.105 N` or less |
//! |---|---|
//! | 2^14 | -55 |
//! | 2^15 | -62 |
//! | 2^17 | -76 |
//! | 2^19 | -90 |
//! | 2^21 | -104 |
//! | 2^25 | -132 |
//!
//! (A random code of rate 1/2 has words of weight `0.110 N`, by the Gilbert-Varshamov bound, and no code of this rate is known that
//! has none.) The exponents come from the lightest words of one block, whose number grows with `N` while the probability that
//! one stays light falls with `N^8`.
//!
//! **Other rings.** A word over gf128 is a combination of binary words with coefficients that are independent over F2: its weight
//! is at least that of one of them. A word over z64, divided by the largest power of two in all of its places, is a binary word
//! that is not zero modulo two. A word over the rationals, with coprime integers, likewise; over fp61 there could be lighter words
//! than over the rationals only where the prime divides all minors of a matrix with as many rows as the code has
//! dimensions, of which there is no reason that it should. That is assumed.
//!
//! **Blocks of bits.** Where every noise value is one, a test sees the product over the blocks of `|1 - 2f|`, `f` the part of the block
//! where the word has ones: a heavy word that is constant on most blocks too. That there is none is not computed here;
//! docs/low-communication.md has what was argued by hand.
//!
//! Not proven: anything about adversaries other than [linear tests](super::params).

/// The weights of RM(3, 7) up to the middle, with the number of words; above it they are those below in reverse.
const OUTER: [(u32, u64); 13] = [
    (0, 1),
    (16, 94_488),
    (24, 74_078_592),
    (28, 3_128_434_688),
    (32, 312_335_197_020),
    (36, 18_125_860_315_136),
    (40, 552_366_841_342_848),
    (44, 9_491_208_609_103_872),
    (48, 94_117_043_084_875_944),
    (52, 549_823_502_398_291_968),
    (56, 1_920_604_779_257_215_744),
    (60, 4_051_966_906_789_380_096),
    (64, 5_193_595_576_952_890_822),
];

/// Length of the block code.
const BLOCK: f64 = 128.0;

/// The least weight of a word that is not zero.
const LEAST: f64 = 16.0;

/// All weights divide by this.
const STEP: usize = 4;

/// Weights up to here are taken one by one, larger ones in steps of a part of [`RATIO`] of them.
const SINGLE: usize = 1200;
const RATIO: f64 = 0.015;

/// Bounds the probability, over a uniformly random choice of both permutations, that the code of length `len` has a word
/// other than zero of weight `distance * len` or less: its logarithm to base 2.
///
/// Larger weights in between are taken in steps, each with the larger one of its ends, so that the last digit is not to be relied
/// on.
///
/// # Panics
/// If `len` is no positive multiple of 128.
#[must_use]
pub fn failure_bits(len: usize, distance: f64) -> f64 {
    assert!(len > 0 && len.is_multiple_of(128), "whole blocks");
    let n = len as f64;
    let light = (distance * n).floor();
    let outer = Outer::new();
    let words: Vec<_> = steps(LEAST as usize, len, STEP)
        .into_iter()
        .map(|step| (step, outer.ln_words(n / BLOCK, step.weight)))
        .collect();
    let mut sum = f64::NEG_INFINITY;
    let mut before = f64::NEG_INFINITY;
    for step in steps(1, len, 1) {
        // The words of this weight after the first sums that become light words by the second ones
        let mut here = f64::NEG_INFINITY;
        for (word, ln_words) in &words {
            if (word.weight / 2.0).ceil() > step.weight {
                break;
            }
            let term = ln_words + ln_becomes(n, word.weight, step.weight);
            here = ln_add(here, term + word.count.ln());
        }
        here += ln_becomes_light(n, step.weight, light);
        sum = ln_add(sum, before.max(here) + step.count.ln());
        before = here;
    }
    sum / std::f64::consts::LN_2
}

/// Some weights, represented by the first of them.
#[derive(Clone, Copy)]
struct Weights {
    weight: f64,
    count: f64,
}

fn steps(first: usize, last: usize, unit: usize) -> Vec<Weights> {
    let mut all = Vec::new();
    let mut weight = first;
    while weight <= last {
        let count = if weight < SINGLE {
            1
        } else {
            ((weight as f64 * RATIO) as usize / unit).max(1)
        };
        all.push(Weights {
            weight: weight as f64,
            count: count as f64,
        });
        weight += count * unit;
    }
    all
}

/// The weights of one block, as logarithms.
struct Outer(Vec<(f64, f64)>);

impl Outer {
    fn new() -> Self {
        let all = OUTER.iter().flat_map(|(weight, words)| {
            let ln = (*words as f64).ln();
            let above = (*weight < 64).then_some((BLOCK - f64::from(*weight), ln));
            [Some((f64::from(*weight), ln)), above]
        });
        Self(all.flatten().collect())
    }

    /// A bound on the words of weight `weight` in so many blocks: the coefficient of `z^weight` in `W(z)^blocks`, which is at
    /// most `W(z)^blocks / z^weight` for every positive `z`.
    fn ln_words(&self, blocks: f64, weight: f64) -> f64 {
        let bound = |ln_z: f64| {
            let terms = self.0.iter().map(|(j, ln)| ln + j * ln_z);
            blocks * terms.fold(f64::NEG_INFINITY, ln_add) - weight * ln_z
        };
        // Convex in the logarithm of z.
        let (mut low, mut high) = (-60.0, 60.0);
        for _ in 0..80 {
            let third = (high - low) / 3.0;
            if bound(low + third) < bound(high - third) {
                high -= third;
            } else {
                low += third;
            }
        }
        bound(low)
    }
}

/// The probability that running sums turn a random word of weight `w` into one of weight `h`.
fn ln_becomes(n: f64, w: f64, h: f64) -> f64 {
    let ends = (w / 2.0).floor();
    ln_binomial(n - h, ends) + ln_binomial(h - 1.0, (w / 2.0).ceil() - 1.0) - ln_binomial(n, w)
}

/// A bound on the probability that it is one of weight `most` or less.
fn ln_becomes_light(n: f64, w: f64, most: f64) -> f64 {
    // Heavier words do not come of this weight.
    let most = most.min(n - (w / 2.0).floor());
    let last = ln_becomes(n, w, most);
    let ratio = (ln_becomes(n, w, most - 1.0) - last).exp();
    if last == f64::NEG_INFINITY {
        return last;
    }
    if ratio < 1.0 {
        // Downwards each is smaller than the one above by that factor or a smaller one: the probabilities are log-concave.
        return last - (-ratio).ln_1p();
    }
    0.0
}

fn ln_add(a: f64, b: f64) -> f64 {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY {
        return high;
    }
    high + (low - high).exp().ln_1p()
}

fn ln_binomial(n: f64, k: f64) -> f64 {
    if k < 0.0 || k > n {
        return f64::NEG_INFINITY;
    }
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// Stirling's series, from 16 on.
fn ln_factorial(n: f64) -> f64 {
    let mut x = n + 1.0;
    let mut product = 1.0;
    while x < 16.0 {
        product *= x;
        x += 1.0;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (x - 0.5) * x.ln() - x + 0.5 * std::f64::consts::TAU.ln() + series - product.ln()
}

#[cfg(test)]
mod tests;
