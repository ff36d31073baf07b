//! The probability of light words in the code: an expectation over its permutations.
//!
//! The weight distribution of the block code RM(3, 8) is known (Sugita, Kasami and Fujiwara, *The
//! weight distribution of the third-order Reed-Muller code of length 512*, 1996, and its
//! references). After a uniformly random permutation all words of one weight are equally likely,
//! and of the `C(N, w)` words of weight `w`
//!
//! ```text
//! C(N - h, floor(w/2)) * C(h - 1, ceil(w/2) - 1)
//! ```
//!
//! become words of weight `h` by running sums (Divsalar, Jin, McEliece, *Coding theorems for
//! turbo-like codes*, 1998): `h` is the length of the runs between the first and second one, the
//! third and fourth, and so on. So the expected number of words of `G` of weight `h` is a sum of
//! products over the weights in between, and with Markov's inequality the expected number of words
//! of weight `d` or less bounds the probability, over the seed, that one exists.
//!
//! | `N` | log2 of the probability that a word has weight `0.158 N` or less |
//! |---|---|
//! | 2^16 | -131 |
//! | 2^18 | -162 |
//! | 2^20 | -193 |
//! | 2^22 | -223 |
//! | 2^26 | -283 |
//!
//! (A random code of this rate has words of weight `0.162 N`, by the Gilbert-Varshamov bound, and
//! every known code of this rate has some.) The exponents come from the lightest words of one
//! block, whose number grows with `N` while the probability that one stays light falls with `N^16`.
//!
//! **Blocks of bits.** Where every noise value is one, a test sees the product over the blocks of
//! `|1 - 2f|`, with `f` the fraction of the block where the word has ones: a heavy word that is
//! constant on most blocks also counts. [`block_failure_bits`] bounds that product instead of the
//! weight.
//!
//! **Other rings.** A word over gf128 is a combination of binary words with coefficients that are
//! independent over F2: its weight is at least that of one of them. A word over z64, divided by the
//! largest power of two in all of its places, is a binary word that is not zero modulo two. The
//! same holds for a word over the rationals, with coprime integers; over fp61 words could be
//! lighter than over the rationals only where the prime divides all minors of a matrix with as many
//! rows as the code has dimensions, for which there is no reason. This is an assumption.
//!
//! Not proven: any statement about adversaries other than [linear tests](super::params).

mod blocks;

pub use blocks::block_failure_bits;

/// The weights of RM(3, 8) up to the middle, with the number of words; the weights above are
/// symmetric.
const OUTER: [(u32, u128); 21] = [
    (0, 1),
    (32, 777_240),
    (48, 2_698_577_280),
    (56, 304_296_714_240),
    (64, 74_984_804_718_940),
    (68, 707_415_842_488_320),
    (72, 28_055_013_884_190_720),
    (76, 764_244_915_168_215_040),
    (80, 20_661_827_603_503_720_320),
    (84, 414_411_510_493_363_568_640),
    (88, 6_266_131_517_201_901_649_920),
    (92, 71_773_299_826_457_585_909_760),
    (96, 627_671_543_662_325_464_743_336),
    (100, 4_208_997_665_316_969_256_058_880),
    (104, 21_729_945_674_277_436_342_763_520),
    (108, 86_666_254_361_102_444_207_800_320),
    (112, 267_788_217_345_284_850_768_843_520),
    (116, 642_477_460_725_187_489_919_139_840),
    (120, 1_198_959_833_392_658_891_791_089_664),
    (124, 1_742_452_898_879_489_085_360_046_080),
    (128, 1_973_540_804_513_554_426_870_962_630),
];

/// Length of the block code.
const BLOCK: f64 = 256.0;

/// The least weight of a word that is not zero.
const LEAST: f64 = 32.0;

/// All weights are multiples of this.
const STEP: usize = 4;

/// Weights up to here are taken one by one, larger ones in steps of a fraction [`RATIO`] of the
/// weight.
const SINGLE: usize = 1200;
const RATIO: f64 = 0.015;

/// Bounds the probability, over a uniformly random choice of both permutations, that the code of
/// length `len` has a non-zero word of weight `distance * len` or less: its logarithm to base 2.
///
/// Larger weights in between are taken in steps, each with the larger one of its ends, so the last
/// digit is not reliable.
///
/// # Panics
/// If `len` is not a positive multiple of 256.
#[must_use]
pub fn failure_bits(len: usize, distance: f64) -> f64 {
    let n = len as f64;
    let light = (distance * n).floor();
    let mut sum = f64::NEG_INFINITY;
    let mut before = f64::NEG_INFINITY;
    for (step, ln_words) in before_last(len, RATIO) {
        let here = ln_words + ln_becomes_light(n, step.weight, light);
        sum = ln_add(sum, before.max(here) + step.count.ln());
        before = here;
    }
    sum / std::f64::consts::LN_2
}

/// The expected number of words of each weight before the last running sums, as a logarithm; large
/// weights in steps of a fraction `ratio` of the weight.
fn before_last(len: usize, ratio: f64) -> Vec<(Weights, f64)> {
    assert!(len > 0 && len.is_multiple_of(256), "whole blocks");
    let n = len as f64;
    let outer = Outer::new();
    let words: Vec<_> = steps(LEAST as usize, len, STEP, ratio)
        .into_iter()
        .map(|step| (step, outer.ln_words(n / BLOCK, step.weight)))
        .collect();
    let expected = |weight: f64| {
        let some = words
            .iter()
            .take_while(|(word, _)| (word.weight / 2.0).ceil() <= weight);
        let terms = some.map(|(word, ln_words)| {
            ln_words + ln_becomes(n, word.weight, weight) + word.count.ln()
        });
        terms.fold(f64::NEG_INFINITY, ln_add)
    };
    let all = steps(1, len, 1, ratio).into_iter();
    all.map(|step| (step, expected(step.weight))).collect()
}

/// A range of weights, represented by the first of them.
#[derive(Clone, Copy)]
struct Weights {
    weight: f64,
    count: f64,
}

fn steps(first: usize, last: usize, unit: usize, ratio: f64) -> Vec<Weights> {
    let mut all = Vec::new();
    let mut weight = first;
    while weight <= last {
        let count = if weight < SINGLE {
            1
        } else {
            ((weight as f64 * ratio) as usize / unit).max(1)
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
            let above = (*weight < 128).then_some((BLOCK - f64::from(*weight), ln));
            [Some((f64::from(*weight), ln)), above]
        });
        Self(all.flatten().collect())
    }

    /// A bound on the words of weight `weight` in `blocks` blocks: the coefficient of `z^weight` in
    /// `W(z)^blocks`, which is at most `W(z)^blocks / z^weight` for every positive `z`.
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

/// A bound on the probability that the result has weight `most` or less.
fn ln_becomes_light(n: f64, w: f64, most: f64) -> f64 {
    // Heavier words do not come from this weight.
    let most = most.min(n - (w / 2.0).floor());
    let last = ln_becomes(n, w, most);
    let ratio = (ln_becomes(n, w, most - 1.0) - last).exp();
    if last == f64::NEG_INFINITY {
        return last;
    }
    if ratio < 1.0 {
        // Downwards each is smaller than the one above by at least that factor: the probabilities
        // are log-concave.
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
