//! The noise of dual LPN: dated data, which tests recompute.
//!
//! A linear test takes a combination of the outputs; it sees the noise through a code word of the
//! code, and its bias is at most the product over the blocks of the factor that each lets through.
//! In a block of which the code word covers a share `f`, a one over F2 leaves `|1 - 2f|`; a random
//! non-zero value of a field of `q` elements `|1 - f*q/(q-1)|`; an odd one modulo a power of two
//! `|1 - 2f|` or, where the test is of order 4 or more, `1 - f` at most.
//!
//! Sizes follow from the case that a word covers the distance `d` of all places, in the worst way.
//! In equal blocks all are covered alike, and `t` blocks let through
//!
//! | ring | at most | `t`, Reed-Muller-accumulate, `d` = 0.158, 2^-128 | `t`, expand-convolute, `d` = 0.10, 2^-129 |
//! |---|---|---|---|
//! | f2 | `(1 - 2d)^t` | 234 | 401 |
//! | gf128, z64, fp61 | `(1 - d)^t` | 516 | 849 |
//!
//! **Expand-convolute.** The distance is an estimate by the authors of the code and of their
//! library, not a count, and the estimate is of a pseudo distance: no lighter words are found. A
//! random code of rate 1/2 has words of weight 0.110 `N` (Gilbert and Varshamov); the noise is
//! chosen for 0.10, which is below both.
//!
//! Trees are complete, so the lengths of blocks are powers of two. Where some blocks are twice as
//! long as the others, a word covers more of the longer ones ([`linear_test_bits`]): such a size
//! has more trees, which takes fewer leaves than the next power of two.
//!
//! [`super::weights`] shows that words of the Reed-Muller-accumulate code cover this share: over
//! large rings by their weight; over F2 it bounds the product itself, for these sizes.
//!
//! The attacks of [`crate::estimate`] are far from these weights. The bound counts tests found by
//! any computation, while those attacks pay for finding theirs.
//!
//! Over gf128 the code is one of zeros and ones, and linear tests are not the only attack: the 128
//! coordinates of the noise values sit in the same places, and where fewer than about 128 of them
//! remain in `k` places that determine the rest, the rank of the samples there reveals them
//! ([`Field::Gf128Binary`]). The code of rate 93/256 leaves 0.637 of the 516 there, and few enough
//! with a chance of about 2^-157 only, each time for an elimination; rate 1/2 leaves half of 849,
//! and few enough with a chance of 2^-329. The cheapest attack, which looks for a light sum of
//! coordinates, costs 2^184 at the shortest instance, and 2^251 with expand-convolute.

use crate::estimate::{Field, Instance, NoiseShape};

/// A code of dual LPN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The code of this project ([`super`]), whose distance is counted in [`super::weights`].
    ReedMullerAccumulate,
    /// A published code ([`super::expand_convolute`]), whose distance is estimated.
    ExpandConvolute,
}

/// The noise parameters of a code.
struct Numbers {
    /// The least part of the noise vector that a code word covers, as a fraction of its length.
    distance: f64,
    /// The bits of all sizes against linear tests at this distance.
    bits: f64,
    /// Noise values over F2.
    binary: usize,
    /// Noise values over all other rings.
    other: usize,
    /// A bound on the noise values of any size, in tenths of those of equal blocks.
    most: usize,
    /// Input values and outputs of a block of the code.
    block: (usize, usize),
}

const REED_MULLER_ACCUMULATE: Numbers = Numbers {
    distance: DISTANCE,
    bits: 128.0,
    binary: 234,
    other: 516,
    most: 14,
    block: (256, 93),
};

const EXPAND_CONVOLUTE: Numbers = Numbers {
    distance: 0.10,
    bits: 129.0,
    binary: 401,
    other: 849,
    most: 15,
    block: (256, 128),
};

/// The least part of the noise vector that a code word of [`Code::ReedMullerAccumulate`] covers, as
/// a fraction of its length, except with the [probability](super::weights) over the seed.
pub const DISTANCE: f64 = 0.158;

/// The date of these numbers.
pub const DATE: &str = "2026-11-23";

/// Levels of the smallest trees: each holds a block of the code.
const LEAST_DEPTH: u32 = 8;

/// The most leaves of all trees.
const MOST_LEAVES: usize = 1 << 26;

impl Code {
    /// All codes.
    pub const ALL: [Self; 2] = [Self::ReedMullerAccumulate, Self::ExpandConvolute];

    fn numbers(self) -> Numbers {
        match self {
            Self::ReedMullerAccumulate => REED_MULLER_ACCUMULATE,
            Self::ExpandConvolute => EXPAND_CONVOLUTE,
        }
    }

    /// The assumed least part of the noise vector that a code word covers, as a fraction of its
    /// length.
    #[must_use]
    pub fn distance(self) -> f64 {
        self.numbers().distance
    }

    /// The least number of noise values of an instance over the ring with equal blocks.
    #[must_use]
    pub fn weight(self, field: Field) -> usize {
        let Numbers { binary, other, .. } = self.numbers();
        match field {
            Field::F2 => binary,
            _ => other,
        }
    }
}

/// The size of an instance: each tree covers a block of the noise vector, with one value in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The code.
    pub code: Code,
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
    pub fn largest(code: Code, field: Field) -> Self {
        Self::of_leaves(code, field, MOST_LEAVES)
    }

    /// The fewest noise values over the ring, in equal blocks.
    #[must_use]
    pub fn equal(code: Code, field: Field) -> Self {
        Self {
            code,
            trees: code.weight(field),
            deep: 0,
            depth: LEAST_DEPTH,
        }
    }

    /// A bound on all instances over the ring: none has more trees, nor more levels.
    #[must_use]
    pub fn costliest(code: Code, field: Field) -> Self {
        let weight = code.weight(field);
        Self {
            code,
            trees: weight * code.numbers().most / 10,
            deep: 0,
            depth: (MOST_LEAVES / weight).ilog2(),
        }
    }

    /// An instance with at least `outputs` outputs, if there is one.
    #[must_use]
    pub fn for_outputs(code: Code, field: Field, outputs: u64) -> Option<Self> {
        if outputs > Self::largest(code, field).outputs() as u64 {
            return None;
        }
        let block = code.numbers().block;
        let blocks = outputs.div_ceil(block.1 as u64) as usize;
        Some(Self::of_leaves(code, field, blocks * block.0))
    }

    /// The instance with the fewest trees and levels for `leaves` leaves, or more where they do not
    /// divide.
    fn of_leaves(code: Code, field: Field, leaves: usize) -> Self {
        let least = code.weight(field);
        let depth = (leaves / least).max(1).ilog2().max(LEAST_DEPTH);
        let units = leaves.div_ceil(1 << depth).max(least);
        let shape = |deep| Self {
            code,
            trees: units - deep,
            deep,
            depth,
        };
        // The more trees are large, the fewer there are, and the more a test sees.
        let (mut most, mut too_many) = (0, units / 2 + 1);
        while too_many - most > 1 {
            let deep = most.midpoint(too_many);
            if linear_test_bits(field, shape(deep)) >= code.numbers().bits {
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

    /// Outputs: 93 or 128 for 256 leaves.
    #[must_use]
    pub fn outputs(self) -> usize {
        let block = self.code.numbers().block;
        self.leaves() / block.0 * block.1
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
/// [distance](Code::distance) of the noise vector. The product over the blocks is largest where
/// each block lets through the same number of places, except blocks that the word does not cover at
/// all.
#[must_use]
pub fn linear_test_bits(field: Field, shape: Shape) -> f64 {
    let distance = shape.code.distance();
    let through = match field {
        Field::F2 => 1.0 - 2.0 * distance,
        _ => 1.0 - distance,
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
        for (code, field) in instances() {
            let equal = |trees| Shape {
                code,
                trees,
                deep: 0,
                depth: 10,
            };
            let (t, bits) = (code.weight(field), code.numbers().bits);
            assert!(linear_test_bits(field, equal(t)) >= bits, "{field}");
            assert!(linear_test_bits(field, equal(t - 1)) < bits, "{field}");
        }
    }

    fn instances() -> impl Iterator<Item = (Code, Field)> {
        let all = Code::ALL.into_iter();
        all.flat_map(|code| FIELDS.map(|field| (code, field)))
    }

    /// The distance for which the noise of expand-convolute is chosen is below that of a random
    /// code of its rate: fewer than one of its words has that weight.
    #[test]
    fn the_distance_is_below_that_of_random_codes() {
        for code in Code::ALL {
            let (d, (leaves, outputs)) = (code.distance(), code.numbers().block);
            let entropy = -d * d.log2() - (1.0 - d) * (1.0 - d).log2();
            assert!(entropy + (outputs as f64 / leaves as f64) < 1.0, "{code:?}");
        }
    }

    type Levels = [(u32, [f64; 4]); 11];

    /// Bits against all attacks of the estimator, by depth: over F2, fp61, z64 with odd noise,
    /// gf128. The rows are those of the lightest noise of each depth.
    const LEVELS: Levels = [
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

    /// The same for expand-convolute.
    const LEVELS_OF_EXPAND_CONVOLUTE: Levels = [
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
        resist(Code::ReedMullerAccumulate, &LEVELS);
    }

    #[test]
    fn every_size_of_expand_convolute_resists_all_attacks_of_the_estimator() {
        resist(Code::ExpandConvolute, &LEVELS_OF_EXPAND_CONVOLUTE);
    }

    fn resist(code: Code, levels: &Levels) {
        let bits = |field, depth| {
            let shape = Shape {
                depth,
                ..Shape::equal(code, field)
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
            text(levels),
            "the table is now\n{}",
            text(&rows)
        );
        // The additional trees of a size make it no easier.
        for field in FIELDS {
            for outputs in [1, 30_000, 60_000, 1 << 17, 1 << 20, 20_000_000] {
                let shape = Shape::for_outputs(code, field, outputs).expect("a size");
                let least = match (code, field) {
                    (Code::ReedMullerAccumulate, Field::Gf128) => 184.0,
                    (Code::ReedMullerAccumulate, _) => 351.0,
                    (Code::ExpandConvolute, Field::Gf128) => 251.0,
                    (Code::ExpandConvolute, _) => 412.0,
                };
                assert!(security_bits(&shape.instance(field)).bits >= least);
            }
        }
    }

    #[test]
    fn shapes_make_what_is_asked_for_and_little_more() {
        for (code, field) in instances() {
            let Numbers { bits, block, .. } = code.numbers();
            let largest = Shape::largest(code, field);
            assert!(largest.leaves() <= MOST_LEAVES && 2 * largest.leaves() > MOST_LEAVES);
            let least = Shape::equal(code, field).leaves();
            let wanted = (0..300).map(|step| 1.062f64.powi(step) as usize);
            for outputs in wanted.chain((0..25).map(|log| 1 << log)) {
                let Some(shape) = Shape::for_outputs(code, field, outputs as u64) else {
                    assert!(outputs > largest.outputs());
                    continue;
                };
                assert!(shape.outputs() >= outputs && linear_test_bits(field, shape) >= bits);
                let bound = Shape::costliest(code, field);
                assert!(shape.trees <= bound.trees && shape.levels() <= bound.levels());
                let blocks: Vec<_> = shape.blocks().collect();
                assert!(
                    blocks.len() == shape.trees && blocks.iter().sum::<usize>() == shape.leaves()
                );
                let most = outputs.div_ceil(block.1) * block.0 + (1 << shape.depth);
                assert!(shape.leaves() <= most.max(least), "{outputs}: {shape:?}");
                assert!(shape.leaves().is_multiple_of(256));
            }
        }
    }

    /// Against the least product over all ways to cover the places, found by exhaustive search.
    #[test]
    fn what_unequal_blocks_let_through() {
        for (trees, deep) in [(270, 84), (240, 100), (300, 290), (234, 0)] {
            let shape = Shape {
                code: Code::ReedMullerAccumulate,
                trees,
                deep,
                depth: 10,
            };
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
