//! The noise of dual LPN: dated data, which tests recompute.
//!
//! A linear test takes a combination of the outputs; it sees the noise through a code word of the code, and is biased by at most
//! the product over the blocks of what each lets through. With `d = DISTANCE` the least relative weight of a code word
//! ([`super::weights`]), and one noise value in each of `t` equal blocks:
//!
//! | ring | a test is biased by at most | `t` for 2^-128 |
//! |---|---|---|
//! | f2 | `(1 - 2d)^t` | 377 |
//! | gf128, z64, fp61 | `(1 - d)^t`, and `2^-59` of it more in fp61 | 800 |
//!
//! In a block a share `f` of which the code word covers, a one over F2 leaves `1 - 2f`; a random non-zero value of a field of
//! `q` elements `|1 - f*q/(q-1)|`; an odd one modulo a power of two `1 - 2f` or, where the test is of order 4 or more, `1 - f` at
//! most. The product is largest where all blocks are covered alike.
//!
//! The attacks of [`crate::lpn::estimate`] are far from these weights: the cheapest costs 2^380 at the shortest instance. The bound
//! counts for tests that are found by whatever computation, those attacks pay for finding theirs.

use crate::lpn::estimate::{Field, Instance, NoiseShape};

/// The least weight of a code word of `G`, as a part of its length, but for the [probability](super::weights) over the seed.
pub const DISTANCE: f64 = 0.105;

/// Noise values over F2.
const BINARY: usize = 377;

/// Noise values over all other rings.
const OTHER: usize = 800;

/// The date of these numbers.
pub const DATE: &str = "2026-11-22";

/// Levels of the smallest trees: a block of the code fits into each.
const LEAST_DEPTH: u32 = 7;

/// Leaves of all trees, at most.
const MOST_LEAVES: usize = 1 << 26;

/// Noise values of an instance over the ring, at least.
#[must_use]
pub fn weight(field: Field) -> usize {
    match field {
        Field::F2 => BINARY,
        _ => OTHER,
    }
}

/// The size of an instance: each tree covers a block of the noise vector, with one value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Shape {
    /// Trees, which is the noise weight `t`.
    pub trees: usize,
    /// Levels of each.
    pub depth: u32,
}

impl Shape {
    /// The largest instance over the ring.
    #[must_use]
    pub fn largest(field: Field) -> Self {
        let trees = weight(field);
        Self {
            trees,
            depth: (MOST_LEAVES / trees).ilog2(),
        }
    }

    /// A bound on all instances over the ring: no one has more trees, nor more levels.
    #[must_use]
    pub fn costliest(field: Field) -> Self {
        let largest = Self::largest(field);
        Self {
            trees: largest.trees * 8 / 5 + 1,
            ..largest
        }
    }

    /// An instance with at least `outputs` outputs, if there is one: with trees as large as they can be without making more than
    /// a quarter more outputs than that.
    #[must_use]
    pub fn for_outputs(field: Field, outputs: u64) -> Option<Self> {
        let largest = Self::largest(field);
        if outputs > largest.outputs() as u64 {
            return None;
        }
        let leaves = 2 * outputs as usize;
        let enough = leaves + leaves / 4;
        let depth = (enough / largest.trees).max(1).ilog2();
        let depth = depth.clamp(LEAST_DEPTH, largest.depth);
        Some(Self {
            trees: leaves.div_ceil(1 << depth).max(largest.trees),
            depth,
        })
    }

    /// Leaves of all trees: the length of the noise vector.
    #[must_use]
    pub fn leaves(self) -> usize {
        self.trees << self.depth
    }

    /// Levels of all trees.
    #[must_use]
    pub fn levels(self) -> usize {
        self.trees * self.depth as usize
    }

    /// Outputs: one for two leaves.
    #[must_use]
    pub fn outputs(self) -> usize {
        self.leaves() / 2
    }

    /// The estimator's instance over the ring: a code of length `2n` and dimension `n`.
    #[must_use]
    pub fn instance(self, field: Field) -> Instance {
        Instance {
            n: self.leaves(),
            k: self.outputs(),
            t: self.trees,
            field,
            noise: NoiseShape::Regular,
        }
    }
}

/// The probability, as a power of two, with which a linear test over the ring tells the outputs of `t` noise values from random
/// ones, where the code has the [`DISTANCE`].
#[must_use]
pub fn linear_test_bits(field: Field, t: usize) -> f64 {
    let through = match field {
        Field::F2 => 1.0 - 2.0 * DISTANCE,
        _ => 1.0 - DISTANCE,
    };
    -(t as f64) * through.log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpn::estimate::security_bits;

    const FIELDS: [Field; 4] = [Field::F2, Field::Fp61, Field::Gf128, Field::Z64Odd];

    #[test]
    fn the_least_weight_that_resists_all_linear_tests() {
        for field in FIELDS {
            let t = weight(field);
            assert!(linear_test_bits(field, t) >= 128.0, "{field}");
            assert!(linear_test_bits(field, t - 1) < 128.0, "{field}");
        }
    }

    /// Bits against all attacks of the estimator, by depth: over F2, over a large field, over z64 with odd noise. The rows are
    /// those of the lightest noise of each depth.
    const LEVELS: [(u32, [f64; 3]); 11] = [
        (7, [380.6, 813.1, 782.3]),
        (8, [388.7, 818.5, 800.8]),
        (9, [394.6, 824.1, 812.1]),
        (10, [399.9, 829.6, 819.1]),
        (11, [403.9, 835.2, 824.7]),
        (12, [406.9, 840.8, 828.7]),
        (13, [409.9, 846.4, 831.8]),
        (14, [412.9, 852.0, 834.8]),
        (15, [415.9, 857.6, 837.8]),
        (16, [418.9, 863.2, 840.8]),
        (17, [421.9, 868.8, 843.8]),
    ];

    #[test]
    fn every_size_resists_all_attacks_of_the_estimator() {
        for (depth, stated) in LEVELS {
            for (fields, stated) in [
                (&[Field::F2][..], stated[0]),
                (&[Field::Fp61, Field::Gf128], stated[1]),
                (&[Field::Z64Odd], stated[2]),
            ] {
                for field in fields {
                    let trees = weight(*field);
                    let bits = security_bits(&Shape { trees, depth }.instance(*field)).bits;
                    assert!(
                        (bits - stated).abs() < 0.06,
                        "{field}, depth {depth}: {bits:.2}, stated {stated}"
                    );
                    assert!(bits >= 128.0);
                }
            }
        }
        // The trees that a size takes beyond those make it no easier.
        for field in FIELDS {
            for outputs in [1, 30_000, 60_000, 1 << 17, 1 << 20, 20_000_000] {
                let shape = Shape::for_outputs(field, outputs).expect("a size");
                assert!(security_bits(&shape.instance(field)).bits >= 380.0);
            }
        }
    }

    #[test]
    fn shapes_make_what_is_asked_for_and_little_more() {
        for field in FIELDS {
            let largest = Shape::largest(field);
            assert!(largest.leaves() <= MOST_LEAVES && 2 * largest.leaves() > MOST_LEAVES);
            let least = weight(field) << (LEAST_DEPTH - 1);
            for outputs in (0..28).flat_map(|log| [(1 << log) - 1, 1 << log, (1 << log) + 1]) {
                let Some(shape) = Shape::for_outputs(field, outputs as u64) else {
                    assert!(outputs > largest.outputs());
                    continue;
                };
                assert!(shape.trees >= weight(field) && shape.outputs() >= outputs);
                let bound = Shape::costliest(field);
                assert!(shape.trees <= bound.trees && shape.levels() <= bound.levels());
                let most = (outputs + outputs / 4 + (1 << shape.depth)).max(least);
                assert!(shape.outputs() <= most, "{outputs}: {shape:?}");
                assert!(shape.outputs().is_multiple_of(64));
            }
        }
    }
}
