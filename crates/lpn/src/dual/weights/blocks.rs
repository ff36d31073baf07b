//! A bound on the bias of linear tests for noise with a one in each block, over whole words instead
//! of their weight.
//!
//! Where every noise value is one, a word `c` lets through the product over the blocks of `x = |1 -
//! 2f|`, with `f` the fraction of ones in the block: a heavy word that is constant on most blocks
//! also counts. This module bounds the expected number of words that let through more than
//! `2^-bits`, by Chernoff's method:
//!
//! 1. Before the last running sums a word has some weight `w`, and given that, its ones, the
//!    *changes*, are at uniformly random places. [`super`] has the expected number of words of this
//!    weight.
//! 2. Let each place be a change with probability `p` instead, independently. The expectation of
//!    any non-negative value is larger, by the factor `1 / Pr[w changes]` at most, for each `p`.
//! 3. Then the `x` of the blocks are independent: a change before a block only turns its ones into
//!    zeros. So `Pr[product of x > 2^-bits] <= 2^(s*bits) * product of E[x^s]`, for each `s > 0`
//!    (Markov).
//! 4. `E[x^s]` of a block of at most [`PLACES`] places is computed. For a longer block there are
//!    two bounds. First, a block is the mean of sub-blocks, each of [`PLACES`] places at equal
//!    distances, and `x^s` is convex for `s >= 1`: `E[x^s]` is at most that of one of them. Second,
//!    `x^s <= (y/e)^s * exp(s*x/y)` for each `y > 0`, and the moment generating function of `1 -
//!    2f` follows from the powers of a matrix of two rows.

use std::f64::consts::LN_2;

use super::{RATIO, Weights, before_last, ln_add, ln_binomial};

/// Places of a block, or of the sub-block of a longer one.
const PLACES: usize = 256;

/// The step between two change probabilities that are tried, and between two exponents.
const CHANGES: f64 = 1.05;
const EXPONENTS: f64 = 1.2;

/// Bounds the probability, over a uniformly random choice of both permutations, that the product
/// over the blocks is above `2^-bits` for some non-zero word: its logarithm to base 2. `blocks` has
/// numbers of blocks and their length.
///
/// Weights are taken in steps, as by [`failure_bits`](super::failure_bits).
///
/// # Panics
/// If the length of all blocks is not a positive multiple of 256.
#[must_use]
pub fn block_failure_bits(blocks: &[(usize, usize)], bits: f64) -> f64 {
    in_steps(blocks, bits, RATIO)
}

/// As [`block_failure_bits`], in steps of a fraction `ratio` of a weight.
fn in_steps(blocks: &[(usize, usize)], bits: f64, ratio: f64) -> f64 {
    let len: usize = blocks.iter().map(|(count, size)| count * size).sum();
    let n = len as f64;
    let tries: Vec<_> = probabilities(n)
        .map(|p| (p, ln_let_through(blocks, bits, p).min(0.0)))
        .collect();
    let mut sum = f64::NEG_INFINITY;
    let mut before = f64::NEG_INFINITY;
    for (Weights { weight, count }, ln_words) in before_last(len, ratio) {
        let bounds = tries.iter().map(|(p, ln)| {
            let ln_changes = weight * p.ln() + (n - weight) * (-p).ln_1p();
            ln - ln_changes - ln_binomial(n, weight)
        });
        let here = ln_words + bounds.fold(0.0, f64::min);
        sum = ln_add(sum, before.max(here) + count.ln());
        before = here;
    }
    sum / LN_2
}

/// The change probabilities that are tried.
fn probabilities(n: f64) -> impl Iterator<Item = f64> {
    let few = std::iter::successors(Some(10.0 / n), |p| Some(p * CHANGES));
    few.take_while(|p| *p < 0.5)
        .chain([0.5, 0.6, 0.7, 0.85, 0.95, 0.99])
}

/// A bound on the probability that the product is above `2^-bits`, where each place is a change
/// with probability `p`.
fn ln_let_through(blocks: &[(usize, usize)], bits: f64, p: f64) -> f64 {
    let blocks: Vec<_> = blocks
        .iter()
        .map(|(count, size)| (*count as f64, Block::new(*size, p)))
        .collect();
    let at = |s: f64| {
        let each = blocks
            .iter()
            .map(|(count, block)| count * block.ln_power(s));
        s * bits * LN_2 + each.sum::<f64>()
    };
    let longest = blocks.iter().map(|(_, block)| block.size);
    let most = 20.0 * longest.fold(1.0, f64::max);
    // At one, the bounds of longer blocks change.
    let steps = std::iter::successors(Some(0.1), |s| Some(s * EXPONENTS));
    let steps = steps.take_while(|s| *s < most).chain([1.0]);
    let (s, coarse) = steps
        .map(|s| (s, at(s)))
        .fold((1.0, f64::INFINITY), |least, tried| {
            if tried.1 < least.1 { tried } else { least }
        });
    let fine = least(s.ln() - EXPONENTS.ln(), s.ln() + EXPONENTS.ln(), |ln_s| {
        at(ln_s.exp())
    });
    // Each of them is a bound.
    coarse.min(fine)
}

/// A block, where each place is a change with probability `p`.
struct Block {
    size: f64,
    p: f64,
    /// Whether the places are those of the whole block.
    whole: bool,
    /// Logarithms of `x` and of its probability, for each number of ones.
    ones: Vec<(f64, f64)>,
}

impl Block {
    fn new(size: usize, p: f64) -> Self {
        let places = size.min(PLACES);
        let apart = size as f64 / places as f64;
        // The probability of an odd number of changes
        let change = (1.0 - (1.0 - 2.0 * p).powf(apart)) / 2.0;
        let ones = ones(places, if apart == 1.0 { p } else { change });
        let x = |ones: usize| (1.0 - 2.0 * ones as f64 / places as f64).abs();
        let ones = ones.iter().enumerate();
        Self {
            size: size as f64,
            p,
            whole: apart == 1.0,
            ones: ones
                .map(|(ones, probability)| (x(ones).ln(), probability.ln()))
                .collect(),
        }
    }

    /// The logarithm of a bound on `E[x^s]`.
    fn ln_power(&self, s: f64) -> f64 {
        let generated = |ln_y: f64| {
            let ln_function = ln_generating(self.size, self.p, s / ln_y.exp());
            // Of `1 - 2f` and of its negative, which is equally likely
            s * (ln_y - 1.0) + LN_2 + ln_function
        };
        let mut bound = least(-12.0, 0.0, generated).min(0.0);
        if self.whole || s >= 1.0 {
            let terms = self.ones.iter().map(|(ln_x, ln)| s * ln_x + ln);
            bound = bound.min(terms.fold(f64::NEG_INFINITY, ln_add));
        }
        bound
    }
}

/// The probability of each number of ones in `places` places.
fn ones(places: usize, change: f64) -> Vec<f64> {
    // Smaller values are rounded up to it.
    const TINY: f64 = 1e-300;
    // By the number of ones so far: the last place is a zero, a one
    let mut now = vec![[0.0; 2]; places + 1];
    // Ones and zeros are symmetric: the first place is one or the other.
    (now[0][0], now[1][1]) = (0.5, 0.5);
    for done in 1..places {
        for ones in (0..=done + 1).rev() {
            let [zero, one] = now[ones];
            let before = if ones == 0 { [0.0; 2] } else { now[ones - 1] };
            now[ones] = [
                zero * (1.0 - change) + one * change,
                before[0] * change + before[1] * (1.0 - change),
            ];
        }
    }
    now.iter().map(|[zero, one]| zero + one + TINY).collect()
}

/// The logarithm of `E[exp(a*(1 - 2f))]` in a block of `size` places: the powers of the transition
/// matrix between places, by its eigenvalues.
fn ln_generating(size: f64, p: f64, a: f64) -> f64 {
    let step = a / size;
    let half_trace = (1.0 - p) * step.cosh();
    let root = (half_trace * half_trace - (1.0 - 2.0 * p)).max(0.0).sqrt();
    let (larger, smaller) = (half_trace + root, half_trace - root);
    // The function is `part * larger^size + (1 - part) * smaller^size`: of no place 1, of one place
    // the hyperbolic cosine.
    let part = (step.cosh() - smaller) / (larger - smaller);
    let rest = (1.0 - part) * (smaller / larger).abs().powf(size);
    size * larger.ln() + (part + rest.abs()).ln()
}

/// The least value of a function of one variable between two numbers, or a larger value.
fn least(mut low: f64, mut high: f64, f: impl Fn(f64) -> f64) -> f64 {
    for _ in 0..40 {
        let third = (high - low) / 3.0;
        if f(low + third) < f(high - third) {
            high -= third;
        } else {
            low += third;
        }
    }
    f(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        dual::{
            params::{Code, Shape},
            weights::failure_bits,
        },
        estimate::Field,
    };

    /// The number and the length of the blocks of a size.
    fn of(shape: Shape) -> Vec<(usize, usize)> {
        let small = (shape.trees - shape.deep, 1 << shape.depth);
        let deep = (shape.deep, 2 << shape.depth);
        let all = [small, deep].into_iter();
        all.filter(|(count, _)| *count > 0).collect()
    }

    /// The table of the documentation; equal blocks and others.
    #[test]
    fn no_word_is_constant_on_most_blocks() {
        for (outputs, stated) in [
            (1, -77),
            // The largest of all sizes
            (24_832, -76),
            (26_214, -77),
            (1 << 15, -82),
            (43_690, -88),
            (1 << 18, -128),
            (838_860, -153),
            (1 << 20, -159),
            (1 << 22, -189),
            (1 << 24, -219),
        ] {
            let shape =
                Shape::for_outputs(Code::ReedMullerAccumulate, Field::F2, outputs).expect("a size");
            let bits = block_failure_bits(&of(shape), 128.0);
            let close = (bits - f64::from(stated)).abs() < 0.5;
            assert!(close, "{outputs}, {shape:?}: {bits:.2}");
        }
    }

    /// The table of the document, row by row, probabilities rounded up; and the largest probability
    /// for any size.
    #[test]
    fn the_document_has_the_probabilities() {
        let path = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/low-communication.md"
        );
        let page = std::fs::read_to_string(path).expect("the document");
        let up = |bits: f64| bits.ceil();
        let mut expected = String::new();
        for outputs in [1, 1 << 15, 1 << 18, 1 << 20, 1 << 22, 1 << 24] {
            let shape =
                Shape::for_outputs(Code::ReedMullerAccumulate, Field::F2, outputs).expect("a size");
            let leaves = shape.leaves();
            let size = match outputs {
                1 => format!("up to 2^{:.1}", (shape.outputs() as f64).log2()),
                _ => format!("2^{}", outputs.ilog2()),
            };
            expected += &format!(
                "| {size} | 2^{:.1} | 2^{} | 2^{} |\n",
                (leaves as f64).log2(),
                up(failure_bits(leaves, 0.158)),
                up(block_failure_bits(&of(shape), 128.0)),
            );
        }
        assert!(page.contains(&expected), "the table is now\n{expected}");
        let shape =
            Shape::for_outputs(Code::ReedMullerAccumulate, Field::F2, 24_832).expect("a size");
        let largest = up(block_failure_bits(&of(shape), 128.0));
        assert!(page.contains(&format!("the largest for any size is 2^{largest}.")));
    }

    /// Vector OLE over z64 modulo two.
    #[test]
    fn nor_on_most_of_more_blocks() {
        for outputs in [1, 1 << 18, 1 << 24] {
            let shape = Shape::for_outputs(Code::ReedMullerAccumulate, Field::Z64Odd, outputs)
                .expect("a size");
            let bits = block_failure_bits(&of(shape), 128.0);
            assert!(bits < -90.0, "{outputs}, {shape:?}: {bits:.2}");
        }
    }

    /// All words of a short chain.
    #[test]
    fn distributions_are_those_of_all_words() {
        let (places, p) = (11usize, 0.3f64);
        let mut expected = vec![0.0; places + 1];
        for changes in 0..1u32 << places {
            let (mut sum, mut ones) = (0, 0);
            for place in 0..places {
                sum ^= changes >> place & 1;
                ones += sum as usize;
            }
            // The first place is one or zero with equal probability.
            let some = (changes >> 1).count_ones() as i32;
            expected[ones] += 0.5 * p.powi(some) * (1.0 - p).powi(places as i32 - 1 - some);
        }
        for (stated, expected) in ones(places, p).iter().zip(&expected) {
            assert!((stated - expected).abs() < 1e-12, "{stated} {expected}");
        }
        for a in [0.1, 3.0, 30.0] {
            let terms = expected.iter().enumerate();
            let mean: f64 = terms
                .map(|(ones, probability)| {
                    probability * (a * (1.0 - 2.0 * ones as f64 / places as f64)).exp()
                })
                .sum();
            let stated = ln_generating(places as f64, p, a);
            assert!((stated - mean.ln()).abs() < 1e-9, "{stated} {mean}");
        }
        let block = Block::new(places, p);
        for s in [0.3, 2.0, 17.0] {
            let terms = expected.iter().enumerate();
            let mean: f64 = terms
                .map(|(ones, probability)| {
                    probability * (1.0 - 2.0 * ones as f64 / places as f64).abs().powf(s)
                })
                .sum();
            let stated = block.ln_power(s);
            assert!((stated - mean.ln()).abs() < 1e-9, "{s}: {stated} {mean}");
        }
    }

    /// Where a block is exact, the two bounds for longer ones are bounds for it.
    #[test]
    fn bounds_are_bounds() {
        for p in [0.001, 0.03, 0.3, 0.5, 0.9] {
            // Twice the length that is computed, by hand
            let exact = ones(2 * PLACES, p);
            let block = Block::new(2 * PLACES, p);
            assert!(!block.whole);
            for s in [0.5, 1.0, 3.0, 40.0, 500.0] {
                let terms = exact.iter().enumerate();
                let mean: f64 = terms
                    .map(|(ones, probability)| {
                        probability * (1.0 - ones as f64 / PLACES as f64).abs().powf(s)
                    })
                    .sum();
                let stated = block.ln_power(s);
                // Smaller differences are rounding.
                if mean > 1e-250 {
                    assert!(stated > mean.ln() - 1e-9, "{p}, {s}: {stated} {mean}");
                }
            }
        }
    }

    /// No exponent that is tried gives a lower bound than the selected one.
    #[test]
    fn the_least_bound_is_taken() {
        let shape =
            Shape::for_outputs(Code::ReedMullerAccumulate, Field::F2, 24_832).expect("a size");
        let blocks = of(shape);
        for p in probabilities(shape.leaves() as f64).step_by(9) {
            let taken = ln_let_through(&blocks, 128.0, p);
            let each = blocks
                .iter()
                .map(|(count, size)| (*count as f64, Block::new(*size, p)));
            let each: Vec<_> = each.collect();
            for step in 0..40 {
                for s in [1.0, 0.1 * EXPONENTS.powi(step)] {
                    let bound: f64 = each
                        .iter()
                        .map(|(count, block)| count * block.ln_power(s))
                        .sum();
                    let bound = s * 128.0 * LN_2 + bound;
                    assert!(taken <= bound + 1e-6, "{p}, {s}: {taken} {bound}");
                }
            }
        }
    }

    /// Finer steps do not change the bound.
    #[test]
    fn the_steps_are_fine_enough() {
        let shape =
            Shape::for_outputs(Code::ReedMullerAccumulate, Field::F2, 26_214).expect("a size");
        let [coarse, fine] = [RATIO, RATIO / 4.0].map(|ratio| in_steps(&of(shape), 128.0, ratio));
        assert!((coarse - fine).abs() < 0.5, "{coarse:.2} {fine:.2}");
    }

    /// With fewer blocks than required, or too small a code, the bound fails.
    #[test]
    fn a_weaker_size_is_seen() {
        let t = Code::ReedMullerAccumulate.weight(Field::F2);
        assert!(block_failure_bits(&[(t * 9 / 10, 1 << 9)], 128.0) > 0.0);
        assert!(block_failure_bits(&[(t, 1 << 9)], 140.0) > 0.0);
    }
}
