//! The algebraic attack on regular noise.
//!
//! Briaud and Øygarden, *A New Algebraic Approach to the Regular Syndrome Decoding Problem and
//! Implications for PCG Constructions*, ePrint 2023/176.
//!
//! The positions of a block are unknowns, of which at most one is not zero, so two of the same block
//! multiply to zero: the monomials are counted by a product over the blocks. The attacker guesses
//! `mu` zeros in each of `f` blocks, and solves by linearisation at the least degree at which the
//! Hilbert series predicts no solution left over.

use super::Blocks;
use super::arithmetic::{first_where, minimise};

/// Degrees tried; a higher one never paid in the paper's tables.
const DEGREES: std::ops::RangeInclusive<usize> = 2..=4;

/// A power series up to `z^4`.
type Series = [f64; 5];

/// `(1 + c*z)^m` for any real `m`.
fn power(c: f64, m: f64) -> Series {
    let mut series = [1.0; 5];
    for j in 1..5 {
        series[j] = series[j - 1] * c * (m - (j as f64 - 1.0)) / j as f64;
    }
    series
}

fn product(a: &Series, b: &Series) -> Series {
    let mut out = [0.0; 5];
    for (i, x) in a.iter().enumerate() {
        for (y, z) in b.iter().zip(&mut out[i..]) {
            *z += x * y;
        }
    }
    out
}

struct System {
    blocks: Blocks,
    /// What each parity check divides or multiplies the series by.
    checks: Series,
    /// Monomials besides those of the blocks: over a large field the values of the noise.
    values: Series,
}

impl System {
    fn monomials(&self, f: f64, mu: f64) -> Series {
        let Blocks { size, t, .. } = self.blocks;
        let guessed = power(size - mu - 1.0, f);
        let whole = power(size - 1.0, t - f);
        product(&product(&guessed, &whole), &self.values)
    }

    /// The least degree at which the system is expected to be solved.
    fn degree(&self, f: f64, mu: f64) -> Option<usize> {
        let series = product(&self.monomials(f, mu), &self.checks);
        DEGREES.into_iter().find(|&d| series[d] < 1.0)
    }

    fn cost(&self, f: f64, mu: f64, degree: usize) -> f64 {
        let columns: f64 = self.monomials(f, mu)[1..=degree].iter().sum();
        let row_weight = 3.0 * (self.blocks.k + 1.0 - f * mu);
        2.0 * columns.log2() + row_weight.log2() - f * (1.0 - mu / self.blocks.size).log2()
    }

    /// The least cost over `f`, with `mu` zeros guessed in each of `f` blocks.
    fn best_for(&self, mu: i64) -> f64 {
        let last = (self.blocks.t as i64 - 1).min((self.blocks.k / mu as f64) as i64);
        let mu = mu as f64;
        let mut end = last;
        let mut best = f64::INFINITY;
        for degree in DEGREES {
            let solved = |f: i64| self.degree(f as f64, mu).is_some_and(|d| d <= degree);
            let Some(first) = first_where(0..=end, solved) else {
                continue;
            };
            let found = minimise(first..=end, |f| self.cost(f as f64, mu, degree));
            best = best.min(found.map_or(f64::INFINITY, |(_, bits)| bits));
            end = first - 1;
        }
        best
    }
}

/// The attack over GF(2) or, if `large`, over a large field.
pub(super) fn algebraic(blocks: Blocks, large: bool) -> f64 {
    let redundancy = blocks.n() - blocks.k;
    let system = System {
        blocks,
        checks: if large {
            power(-1.0, redundancy - 1.0)
        } else {
            power(1.0, 1.0 - redundancy)
        },
        values: if large {
            power(-1.0, 1.0 - blocks.t)
        } else {
            power(0.0, 0.0)
        },
    };
    minimise(1..=blocks.size as i64 - 1, |mu| system.best_for(mu))
        .map_or(f64::INFINITY, |(_, bits)| bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_binomials() {
        assert_eq!(power(2.0, 3.0), [1.0, 6.0, 12.0, 8.0, 0.0]);
        assert_eq!(power(-1.0, -1.0), [1.0; 5]);
        assert_eq!(
            product(&power(1.0, -2.0), &power(1.0, 2.0)),
            [1.0, 0.0, 0.0, 0.0, 0.0]
        );
    }

    #[test]
    fn monomials_of_two_blocks_of_three() {
        // Unknowns per block: two, the third follows from the block's sum.
        let blocks = Blocks {
            size: 3.0,
            k: 3.0,
            t: 2.0,
        };
        let system = System {
            blocks,
            checks: power(0.0, 0.0),
            values: power(0.0, 0.0),
        };
        assert_eq!(system.monomials(0.0, 0.0), [1.0, 4.0, 4.0, 0.0, 0.0]);
        assert_eq!(system.monomials(1.0, 1.0), [1.0, 3.0, 2.0, 0.0, 0.0]);
    }
}
