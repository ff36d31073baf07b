//! The noise of dual LPN: dated data, which tests recompute.
//!
//! A linear test takes a combination of the outputs; it sees the noise through a code word of the code, and is biased by at most
//! the product over the blocks of what each lets through. In a block a share `f` of which the code word covers, a one over F2
//! leaves `|1 - 2f|`; a random non-zero value of a field of `q` elements `|1 - f*q/(q-1)|`; an odd one modulo a power of two
//! `|1 - 2f|` or, where the test is of order 4 or more, `1 - f` at most.
//!
//! Sizes follow from the case that a word covers `d = DISTANCE` of all places, in whatever way is worst. In equal blocks all are
//! covered alike, and `t` blocks let through
//!
//! | ring | at most | `t` for 2^-128 |
//! |---|---|---|
//! | f2 | `(1 - 2d)^t` | 234 |
//! | gf128, z64, fp61 | `(1 - d)^t` | 516 |
//!
//! Trees are complete, so that blocks have powers of two as lengths, and where some are twice as long as the others a word covers
//! more of those ([`linear_test_bits`]): then there are more of them, which takes fewer leaves than the next power of two.
//!
//! That words cover so much is in [`super::weights`]: over large rings their weight says it; over F2 the product itself is bounded,
//! for these sizes.
//!
//! The attacks of [`crate::lpn::estimate`] are far from these weights. The bound
//! counts for tests that are found by whatever computation, those attacks pay for finding theirs.
//!
//! Over gf128 the code is one of zeros and ones, and linear tests are not all that there is: the
//! 128 coordinates of the noise values sit in the same places, and where less than 128 or so of
//! them are left in `k` places that determine the rest, the rank of what is seen there gives them
//! away ([`Field::Gf128Binary`]). A code of this rate leaves 0.637 of the 516 there, and few enough
//! with a chance of about 2^-157 only, each time for an elimination. The cheapest attack, which
//! looks for a light sum of coordinates, costs 2^184 at the shortest instance.

use crate::lpn::estimate::{Field, Instance, NoiseShape};

/// What a code word of `G` covers of the noise vector at least, as a part of its length, but for the
/// [probability](super::weights) over the seed.
pub const DISTANCE: f64 = 0.158;

/// Noise values over F2.
const BINARY: usize = 234;

/// Noise values over all other rings.
const OTHER: usize = 516;

/// The bits that all sizes have against linear tests.
const BITS: f64 = 128.0;

/// The date of these numbers.
pub const DATE: &str = "2026-11-22";

/// Levels of the smallest trees: a block of the code fits into each.
const LEAST_DEPTH: u32 = 8;

/// Leaves of all trees, at most.
const MOST_LEAVES: usize = 1 << 26;

/// Values that a block of the code takes, and outputs that it gives.
const BLOCK: (usize, usize) = (256, 93);

/// Noise values of an instance over the ring with equal blocks, at least.
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
    /// How many of them, the first ones, have one level more than the others.
    pub deep: usize,
    /// Levels of the others.
    pub depth: u32,
}

impl Shape {
    /// The largest instance over the ring.
    #[must_use]
    pub fn largest(field: Field) -> Self {
        Self::of_leaves(field, MOST_LEAVES)
    }

    /// As few noise values over the ring as there can be, in equal blocks.
    pub(crate) fn equal(field: Field) -> Self {
        Self {
            trees: weight(field),
            deep: 0,
            depth: LEAST_DEPTH,
        }
    }

    /// A bound on all instances over the ring: no one has more trees, nor more levels.
    #[must_use]
    pub fn costliest(field: Field) -> Self {
        Self {
            trees: weight(field) * 7 / 5,
            deep: 0,
            depth: (MOST_LEAVES / weight(field)).ilog2(),
        }
    }

    /// An instance with at least `outputs` outputs, if there is one.
    #[must_use]
    pub fn for_outputs(field: Field, outputs: u64) -> Option<Self> {
        if outputs > Self::largest(field).outputs() as u64 {
            return None;
        }
        let blocks = outputs.div_ceil(BLOCK.1 as u64) as usize;
        Some(Self::of_leaves(field, blocks * BLOCK.0))
    }

    /// The instance with the fewest trees and levels for so many leaves, or more where they do not divide.
    fn of_leaves(field: Field, leaves: usize) -> Self {
        let least = weight(field);
        let depth = (leaves / least).max(1).ilog2().max(LEAST_DEPTH);
        let units = leaves.div_ceil(1 << depth).max(least);
        let shape = |deep| Self {
            trees: units - deep,
            deep,
            depth,
        };
        // The more of them are large, the fewer there are, and the more a test sees.
        let (mut most, mut too_many) = (0, units / 2 + 1);
        while too_many - most > 1 {
            let deep = most.midpoint(too_many);
            if linear_test_bits(field, shape(deep)) >= BITS {
                most = deep;
            } else {
                too_many = deep;
            }
        }
        shape(most)
    }

    /// The leaves of each tree.
    pub fn blocks(self) -> impl Iterator<Item = usize> {
        (0..self.trees).map(move |tree| 1 << (self.depth + u32::from(tree < self.deep)))
    }

    /// Leaves of all trees: the length of the noise vector.
    #[must_use]
    pub fn leaves(self) -> usize {
        (self.trees + self.deep) << self.depth
    }

    /// Levels of all trees.
    #[must_use]
    pub fn levels(self) -> usize {
        self.trees * self.depth as usize + self.deep
    }

    /// Outputs: 93 for 256 leaves.
    #[must_use]
    pub fn outputs(self) -> usize {
        self.leaves() / BLOCK.0 * BLOCK.1
    }

    /// The estimator's instance over the ring, in primal form: a code of length `N` whose dimension is what the outputs leave of it.
    /// The code is one of zeros and ones, which over gf128 is an instance of its own.
    #[must_use]
    pub fn instance(self, field: Field) -> Instance {
        Instance {
            n: self.leaves(),
            k: self.leaves() - self.outputs(),
            t: self.trees,
            field: match field {
                Field::Gf128 => Field::Gf128Binary,
                field => field,
            },
            noise: NoiseShape::Regular,
        }
    }
}

/// The probability, as the negative of its logarithm to base 2, with which a linear test over the ring tells the outputs from random
/// ones, where the code word covers [`DISTANCE`] of the noise vector: the product over the blocks of what each lets through is the largest
/// where that is the same number of places in all of them, but for blocks that it does not cover at all.
#[must_use]
pub fn linear_test_bits(field: Field, shape: Shape) -> f64 {
    let through = match field {
        Field::F2 => 1.0 - 2.0 * DISTANCE,
        _ => 1.0 - DISTANCE,
    };
    let (trees, deep) = (shape.trees as f64, shape.deep as f64);
    // In places of which a small block has one
    let places = (trees + deep) * through;
    if places <= trees {
        return deep + trees * (trees / places).log2();
    }
    deep * (2.0 * deep / (places - (trees - deep))).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lpn::estimate::security_bits;

    const FIELDS: [Field; 4] = [Field::F2, Field::Fp61, Field::Gf128, Field::Z64Odd];

    #[test]
    fn the_least_weight_that_resists_all_linear_tests() {
        for field in FIELDS {
            let equal = |trees| Shape {
                trees,
                deep: 0,
                depth: 10,
            };
            let t = weight(field);
            assert!(linear_test_bits(field, equal(t)) >= BITS, "{field}");
            assert!(linear_test_bits(field, equal(t - 1)) < BITS, "{field}");
        }
    }

    /// Bits against all attacks of the estimator, by depth: over F2, fp61, z64 with odd noise,
    /// gf128. The rows are those of the lightest noise of each depth.
    const LEVELS: [(u32, [f64; 4]); 11] = [
        (8, [351.1, 775.9, 746.9, 184.4]),
        (9, [356.6, 781.4, 761.0, 187.8]),
        (10, [362.2, 786.9, 769.8, 190.5]),
        (11, [366.2, 790.1, 775.6, 193.4]),
        (12, [369.6, 792.9, 779.9, 196.3]),
        (13, [372.7, 795.7, 783.4, 199.3]),
        (14, [375.7, 798.6, 786.5, 202.3]),
        (15, [378.7, 801.4, 789.5, 205.3]),
        (16, [381.7, 804.3, 792.5, 208.3]),
        (17, [384.7, 807.2, 795.5, 211.2]),
        (18, [387.7, 810.0, 798.4, 214.2]),
    ];

    #[test]
    fn every_size_resists_all_attacks_of_the_estimator() {
        let bits = |field, depth| {
            let shape = Shape {
                depth,
                ..Shape::equal(field)
            };
            security_bits(&shape.instance(field)).bits
        };
        let rows: Vec<_> = (LEAST_DEPTH..=18)
            .map(|depth| {
                let fields = [Field::F2, Field::Fp61, Field::Z64Odd, Field::Gf128];
                (depth, fields.map(|field| bits(field, depth)))
            })
            .collect();
        let text = |rows: &[(u32, [f64; 4])]| {
            let line = |(depth, bits): &(u32, [f64; 4])| format!("({depth}, {bits:.1?}),\n");
            rows.iter().map(line).collect::<String>()
        };
        assert_eq!(
            text(&rows),
            text(&LEVELS),
            "the table is now\n{}",
            text(&rows)
        );
        // The trees that a size takes beyond those make it no easier.
        for field in FIELDS {
            for outputs in [1, 30_000, 60_000, 1 << 17, 1 << 20, 20_000_000] {
                let shape = Shape::for_outputs(field, outputs).expect("a size");
                let least = if field == Field::Gf128 { 184.0 } else { 351.0 };
                assert!(security_bits(&shape.instance(field)).bits >= least);
            }
        }
    }

    #[test]
    fn shapes_make_what_is_asked_for_and_little_more() {
        for field in FIELDS {
            let largest = Shape::largest(field);
            assert!(largest.leaves() <= MOST_LEAVES && 2 * largest.leaves() > MOST_LEAVES);
            let least = Shape::equal(field).leaves();
            let wanted = (0..300).map(|step| 1.062f64.powi(step) as usize);
            for outputs in wanted.chain((0..25).map(|log| 1 << log)) {
                let Some(shape) = Shape::for_outputs(field, outputs as u64) else {
                    assert!(outputs > largest.outputs());
                    continue;
                };
                assert!(shape.outputs() >= outputs && linear_test_bits(field, shape) >= BITS);
                let bound = Shape::costliest(field);
                assert!(shape.trees <= bound.trees && shape.levels() <= bound.levels());
                let blocks: Vec<_> = shape.blocks().collect();
                assert!(
                    blocks.len() == shape.trees && blocks.iter().sum::<usize>() == shape.leaves()
                );
                let most = (outputs.div_ceil(93) * 256 + (1 << shape.depth)).max(least);
                assert!(shape.leaves() <= most, "{outputs}: {shape:?}");
                assert!(shape.leaves().is_multiple_of(256));
            }
        }
    }

    /// Against the least product over all ways to cover the places, found by trying.
    #[test]
    fn what_unequal_blocks_let_through() {
        for (trees, deep) in [(270, 84), (240, 100), (300, 290), (234, 0)] {
            let shape = Shape {
                trees,
                deep,
                depth: 10,
            };
            let through = 1.0 - 2.0 * DISTANCE;
            let places = (trees + deep) as f64 * through;
            let (large, small) = (deep as f64, (trees - deep) as f64);
            let tried = (0..=100_000).filter_map(|step| {
                // What a small block leaves, and then a large one
                let x = f64::from(step) / 1e5;
                let y = (places - small * x) / (2.0 * large).max(1e-9);
                let fits = (0.0..=1.0).contains(&y) || large == 0.0 && y.abs() < 1e6;
                let y = if large == 0.0 { 1.0 } else { y };
                fits.then(|| -small * x.log2() - large * y.log2())
            });
            let least = tried.fold(f64::INFINITY, f64::min);
            let stated = linear_test_bits(Field::F2, shape);
            assert!((least - stated).abs() < 0.1, "{shape:?}: {least} {stated}");
        }
    }
}
