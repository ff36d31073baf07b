//! The hybrid attack on regular noise: guess zeros, then linearise the quadratic relations of each
//! block.
//!
//! ePrint 2025/1284. The attacker guesses `zeros` positions to be free of noise, spread as evenly
//! as possible over `t - whole` blocks (so `u + 1` in `f` of them and `u` in the others), and
//! guesses the noisy position of the `whole` remaining blocks, at a factor of the block size each.
//! If the guessed zeros leave no unknown, linear algebra completes the attack; otherwise it
//! linearises the products of two positions of the same block, all zero.

use super::Blocks;
use super::arithmetic::{first_where, log2_sum, minimise};

/// Exponent of the elimination of the quadratic system over a large field.
const ELIMINATION: f64 = 2.8;

/// Relations required per unknown monomial over a large field, and overhead of the last system over
/// GF(2).
const OVERHEAD: f64 = 2.5;

/// Most whole blocks guessed: at 2 bits each or more they cost as much as an attack on instances of
/// many hundred bits.
const MOST_WHOLE: f64 = 512.0;

#[derive(Clone, Copy)]
struct Guess {
    zeros: f64,
    whole: f64,
}

struct Target {
    blocks: Blocks,
    large: bool,
}

impl Target {
    /// Unknowns per block after its own linear equation, if it has one.
    fn free(&self) -> f64 {
        self.blocks.size - self.lost()
    }

    /// Equations that a block gives for free: that its sum is one, over GF(2) only.
    fn lost(&self) -> f64 {
        if self.large { 0.0 } else { 1.0 }
    }

    /// Unknowns before any guess.
    fn unknowns(&self) -> f64 {
        self.blocks.k - self.lost() * self.blocks.t
    }

    /// Zeros guessed per block: `u`, and the number of blocks with one more.
    fn spread(&self, guess: Guess) -> (f64, f64) {
        let blocks = self.blocks.t - guess.whole;
        let u = (guess.zeros / blocks).floor();
        (u, guess.zeros - u * blocks)
    }

    /// `-log2` of the chance that the guess of the zeros is right.
    fn guessing(&self, guess: Guess) -> f64 {
        let Blocks { size, t, .. } = self.blocks;
        let (u, f) = self.spread(guess);
        -(f * (1.0 - (u + 1.0) / size).log2() + (t - guess.whole - f) * (1.0 - u / size).log2())
    }

    /// Unknowns left to the quadratic system.
    fn left(&self, guess: Guess) -> f64 {
        self.unknowns() - guess.zeros - self.free() * guess.whole
    }

    /// Whether the quadratic relations suffice for the remaining unknowns.
    fn solvable(&self, guess: Guess) -> bool {
        let (u, f) = self.spread(guess);
        let Blocks { size, t, .. } = self.blocks;
        let whole = guess.whole;
        let pairs = |x: f64| x * (x - 1.0) / 2.0;
        let left = self.left(guess);
        let others = t - f - whole;
        if self.large {
            let relations = others * pairs(size - u) + f * pairs(size - u - 1.0);
            relations - pairs(left + 1.0) >= OVERHEAD * self.remaining(guess)
        } else {
            let relations = others * pairs(size - u - 1.0) + f * pairs(size - u - 2.0);
            left <= (2.0 * relations).sqrt() - 2.0
        }
    }

    /// Unknown monomials of the last system over a large field.
    fn remaining(&self, guess: Guess) -> f64 {
        let (left, whole) = (self.left(guess), guess.whole);
        left + 2.0 * whole + whole * left + whole * (whole - 1.0) / 2.0
    }

    /// `log2` of the first elimination, that of the linear relations.
    fn linear(&self, guess: Guess) -> f64 {
        let (u, _) = self.spread(guess);
        let redundancy = self.blocks.n() - self.blocks.k;
        // Blocks that are solved completely, so that elimination skips their columns.
        let solved = (redundancy / self.free()).floor();
        let rows = redundancy - solved * (self.free() - u - 1.0);
        let columns = rows + (self.unknowns() - guess.zeros).max(0.0);
        (rows * redundancy * columns).max(1.0).log2()
    }

    /// The cost of the attack with this guess, for which [`Self::solvable`] must hold.
    fn quadratic(&self, guess: Guess) -> f64 {
        let left = self.left(guess);
        if left < 0.0 {
            return f64::INFINITY;
        }
        let before = self.unknowns() - guess.zeros;
        let outside = self.free() * guess.whole;
        let (once, per_guess) = if self.large {
            let remaining = OVERHEAD * self.remaining(guess);
            let monomials = before * (before + 1.0) / 2.0 + before;
            let substituted =
                left + 2.0 * outside + outside * left + outside * (outside - 1.0) / 2.0;
            (
                ELIMINATION * monomials.log2(),
                (remaining.powf(ELIMINATION) + remaining * substituted).log2(),
            )
        } else {
            let monomials = left * left / 2.0;
            let dense = OVERHEAD * left;
            (
                (left.powi(4) * before.powi(2) / 8.0 / monomials.max(2.0).log2()).max(1.0).log2(),
                (OVERHEAD / 2.0 * (2.0 * left * left * outside + left * outside * outside)
                    + dense.powi(3) / dense.max(2.0).log2())
                .max(1.0)
                .log2(),
            )
        };
        let whole = guess.whole * self.blocks.size.log2();
        self.guessing(guess) + log2_sum(&[self.linear(guess), once, per_guess + whole])
    }
}

/// The attack over GF(2) or, if `large`, over a large field.
pub(super) fn hybrid(blocks: Blocks, large: bool) -> f64 {
    let target = Target { blocks, large };
    let unknowns = target.unknowns();
    if unknowns <= 0.0 {
        return target.linear(Guess { zeros: 0.0, whole: 0.0 });
    }
    let all_zeros = Guess { zeros: unknowns, whole: 0.0 };
    let mut best = f64::INFINITY;
    if unknowns < blocks.t * (blocks.size - 2.0) {
        best = target.guessing(all_zeros) + target.linear(all_zeros);
    }
    let mut whole = 0.0;
    while whole < blocks.t.min(MOST_WHOLE) && whole * blocks.size.log2() < best {
        let guess = |zeros: i64| Guess { zeros: zeros as f64, whole };
        let most = target.left(guess(0)).min((blocks.t - whole) * (blocks.size - 2.0) - 1.0);
        if most < 0.0 {
            break;
        }
        let most = most as i64;
        if let Some(first) = first_where(0..=most, |zeros| target.solvable(guess(zeros))) {
            // Beyond `last` the guess alone costs more than the best attack so far.
            let last = first_where(first..=most, |zeros| target.guessing(guess(zeros)) >= best);
            let found =
                minimise(first..=last.unwrap_or(most), |zeros| target.quadratic(guess(zeros)));
            best = best.min(found.map_or(f64::INFINITY, |(_, bits)| bits));
        }
        whole += 1.0;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: Blocks = Blocks { size: 64.0, k: 4608.0, t: 274.0 };

    #[test]
    fn zeros_spread_evenly() {
        let target = Target { blocks: BLOCKS, large: false };
        let guess = Guess { zeros: 1000.0, whole: 4.0 };
        assert_eq!(target.spread(guess), (3.0, 190.0));
        // 190 blocks lose four of 64 positions, 80 lose three.
        let chance = 190.0 * (60.0_f64 / 64.0).log2() + 80.0 * (61.0_f64 / 64.0).log2();
        assert!((target.guessing(guess) + chance).abs() < 1e-9);
        // Each block gives one unknown for free, each guessed block all of its others.
        assert_eq!(target.left(guess), 4608.0 - 274.0 - 1000.0 - 4.0 * 63.0);
    }

    #[test]
    fn the_search_finds_the_least_of_all_guesses() {
        let blocks = Blocks { size: 16.0, k: 300.0, t: 64.0 };
        for large in [false, true] {
            let target = Target { blocks, large };
            let unknowns = target.unknowns();
            let mut least = f64::INFINITY;
            for zeros in 0..unknowns as i64 {
                for whole in 0..64 {
                    let guess = Guess { zeros: zeros as f64, whole: whole as f64 };
                    let fits = guess.zeros < (blocks.t - guess.whole) * (blocks.size - 2.0);
                    if fits && target.left(guess) >= 0.0 && target.solvable(guess) {
                        least = least.min(target.quadratic(guess));
                    }
                }
            }
            let all_zeros = Guess { zeros: unknowns, whole: 0.0 };
            least = least.min(target.guessing(all_zeros) + target.linear(all_zeros));
            let found = hybrid(blocks, large);
            assert!((found - least).abs() < 0.1, "{large}: {found} {least}");
        }
    }
}
