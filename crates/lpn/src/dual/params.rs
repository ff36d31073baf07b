//! The noise of dual LPN: dated data, which tests recompute.
//!
//! A linear test takes a combination of the outputs; it sees the noise through a code word of the
//! code, and its bias is at most the product over the blocks of the factor that each lets through.
//! In a block of which the code word covers a share `f`, a one over F2 leaves `|1 - 2f|`; a random
//! non-zero value of a field of `q` elements `|1 - f*q/(q-1)|`; an odd one modulo a power of two
//! `|1 - 2f|` or, where the test is of order 4 or more, `1 - f` at most.
//!
//! Sizes follow from the case that a word covers the [distance](DISTANCE) `d` = 0.10 of all places,
//! in the worst way. In equal blocks all are covered alike, and `t` blocks let through 2^-129 where
//!
//! | ring | at most | `t` |
//! |---|---|---|
//! | f2 | `(1 - 2d)^t` | 401 |
//! | gf128, z64, fp61 | `(1 - d)^t` | 849 |
//!
//! The distance is an estimate by the authors of the code and of their library, not a count, and
//! the estimate is of a pseudo distance: no lighter words are found. A random code of rate 1/2 has
//! words of weight 0.110 `N` (Gilbert and Varshamov); the noise is chosen for 0.10, which is below
//! both.
//!
//! Trees are complete, so the lengths of blocks are powers of two. Where some blocks are twice as
//! long as the others, a word covers more of the longer ones ([`linear_test_bits`]): such a size
//! has more trees, which takes fewer leaves than the next power of two.
//!
//! The attacks of [`crate::estimate`] are far from these weights. The bound counts tests found by
//! any computation, while those attacks pay for finding theirs.
//!
//! Over gf128 the code is one of zeros and ones, and linear tests are not the only attack: the 128
//! coordinates of the noise values sit in the same places, and where fewer than about 128 of them
//! remain in `k` places that determine the rest, the rank of the samples there reveals them
//! ([`Field::Gf128Binary`]). Half of the 849 remain there on average, and few enough with a chance
//! of 2^-329 only, each time for an elimination. The cheapest attack, which looks for a light sum
//! of coordinates, costs 2^251 at the shortest instance.

use super::UNIT;
use crate::estimate::{Field, Instance, NoiseShape};

/// The assumed least part of the noise vector that a code word covers, as a fraction of its length.
pub const DISTANCE: f64 = 0.10;

/// The date of these numbers.
pub const DATE: &str = "2026-11-23";

/// The bits of all sizes against linear tests at the distance.
const BITS: f64 = 129.0;

/// A bound on the noise values of any size, in tenths of those of equal blocks.
const MOST_WEIGHT: usize = 15;

/// Levels of the smallest trees: each holds a block of the code.
const LEAST_DEPTH: u32 = 8;

/// The most leaves of all trees.
const MOST_LEAVES: usize = 1 << 26;

/// The least number of noise values of an instance over the ring with equal blocks.
#[must_use]
pub fn weight(field: Field) -> usize {
    match field {
        Field::F2 => 401,
        _ => 849,
    }
}

/// The size of an instance: each tree covers a block of the noise vector, with one value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Trees, which is the noise weight `t`.
    pub trees: usize,
    /// The number of trees, the first ones, that have one level more than the others.
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

    /// The fewest noise values over the ring, in equal blocks.
    #[must_use]
    pub fn equal(field: Field) -> Self {
        Self { trees: weight(field), deep: 0, depth: LEAST_DEPTH }
    }

    /// A bound on all instances over the ring: none has more trees, nor more levels.
    #[must_use]
    pub fn costliest(field: Field) -> Self {
        let weight = weight(field);
        Self { trees: weight * MOST_WEIGHT / 10, deep: 0, depth: (MOST_LEAVES / weight).ilog2() }
    }

    /// An instance with at least `outputs` outputs, if there is one.
    #[must_use]
    pub fn for_outputs(field: Field, outputs: u64) -> Option<Self> {
        if outputs > Self::largest(field).outputs() as u64 {
            return None;
        }
        let units = outputs.div_ceil(UNIT as u64) as usize;
        Some(Self::of_leaves(field, 2 * UNIT * units))
    }

    /// The instance with the fewest trees and levels for `leaves` leaves, or more where they do not
    /// divide.
    fn of_leaves(field: Field, leaves: usize) -> Self {
        let least = weight(field);
        let depth = (leaves / least).max(1).ilog2().max(LEAST_DEPTH);
        let units = leaves.div_ceil(1 << depth).max(least);
        let shape = |deep| Self { trees: units - deep, deep, depth };
        // The more trees are large, the fewer there are, and the more a test sees.
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

    /// Outputs: one for two leaves.
    #[must_use]
    pub fn outputs(self) -> usize {
        self.leaves() / 2
    }

    /// The estimator's instance over the ring, in primal form: a code of length `N` whose dimension
    /// is `N` less the number of outputs. The code is one of zeros and ones, which over gf128 is a
    /// separate instance.
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
            local: false,
        }
    }
}

/// The probability, as the negative of its logarithm to base 2, with which a linear test over the
/// ring distinguishes the outputs from random ones, where the code word covers its
/// [distance](DISTANCE) of the noise vector. The product over the blocks is largest where
/// each block lets through the same number of places, except blocks that the word does not cover at
/// all.
#[must_use]
pub fn linear_test_bits(field: Field, shape: Shape) -> f64 {
    let through = match field {
        Field::F2 => 1.0 - 2.0 * DISTANCE,
        _ => 1.0 - DISTANCE,
    };
    let (trees, deep) = (shape.trees as f64, shape.deep as f64);
    // In units of one place of a small block
    let places = (trees + deep) * through;
    if places <= trees {
        return deep + trees * (trees / places).log2();
    }
    deep * (2.0 * deep / (places - (trees - deep))).log2()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimate::security_bits;

    const FIELDS: [Field; 4] = [Field::F2, Field::Fp61, Field::Gf128, Field::Z64Odd];

    #[test]
    fn the_least_weight_that_resists_all_linear_tests() {
        for field in FIELDS {
            let equal = |trees| Shape { trees, deep: 0, depth: 10 };
            let (t, bits) = (weight(field), 129.0);
            assert!(linear_test_bits(field, equal(t)) >= bits, "{field}");
            assert!(linear_test_bits(field, equal(t - 1)) < bits, "{field}");
        }
    }

    /// Bits against all attacks of the estimator, by depth: over F2, fp61, z64 with odd noise,
    /// gf128. The rows are those of the lightest noise of each depth.
    const LEVELS: [(u32, [f64; 4]); 11] = [
        (8, [412.5, 866.4, 848.8, 251.8]),
        (9, [418.4, 872.0, 860.8, 255.3]),
        (10, [423.8, 877.6, 867.9, 258.8]),
        (11, [427.8, 883.2, 872.6, 261.7]),
        (12, [430.8, 888.7, 876.7, 264.6]),
        (13, [433.8, 892.5, 880.7, 267.6]),
        (14, [436.8, 895.3, 883.7, 270.5]),
        (15, [439.8, 898.2, 886.7, 273.5]),
        (16, [442.8, 901.0, 889.7, 276.5]),
        (17, [445.8, 903.9, 892.7, 279.5]),
        (18, [448.8, 906.7, 895.7, 282.5]),
    ];

    #[test]
    fn every_size_resists_all_attacks_of_the_estimator() {
        let bits = |field, depth| {
            let shape = Shape { depth, ..Shape::equal(field) };
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
        assert_eq!(text(&rows), text(&LEVELS), "the table is now\n{}", text(&rows));
        // The additional trees of a size make it no easier.
        for field in FIELDS {
            for outputs in [1, 30_000, 60_000, 1 << 17, 1 << 20, 20_000_000] {
                let shape = Shape::for_outputs(field, outputs).expect("a size");
                let least = match field {
                    Field::Gf128 => 251.0,
                    _ => 412.0,
                };
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
                let most = outputs.div_ceil(128) * 256 + (1 << shape.depth);
                assert!(shape.leaves() <= most.max(least), "{outputs}: {shape:?}");
                assert!(shape.leaves().is_multiple_of(256));
            }
        }
    }

    /// Against the least product over all ways to cover the places, found by exhaustive search.
    #[test]
    fn what_unequal_blocks_let_through() {
        for (trees, deep) in [(460, 52), (420, 180), (520, 500), (401, 0)] {
            let shape = Shape { trees, deep, depth: 10 };
            let through = 1.0 - 2.0 * DISTANCE;
            let places = (trees + deep) as f64 * through;
            let (large, small) = (deep as f64, (trees - deep) as f64);
            let tried = (0..=100_000).filter_map(|step| {
                // The factor of a small block, then of a large one
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
