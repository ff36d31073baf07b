//! The algebraic attacks on regular noise, AGB and AGB 2.0.
//!
//! Briaud and Øygarden, *A New Algebraic Approach to the Regular Syndrome Decoding Problem and
//! Implications for PCG Constructions*, ePrint 2023/176.
//!
//! The positions of a block are unknowns, of which at most one is not zero, so two unknowns of the
//! same block multiply to zero: a product over the blocks counts the monomials. The attacker
//! guesses `mu` zeros in each of `f` blocks, and solves by linearisation at the least degree at
//! which the Hilbert series predicts that no solution remains.
//!
//! AGB 2.0, ePrint 2025/1476, guesses twice: first `mu'` zeros in each of `f'` blocks, which leaves
//! a system with remaining solutions; the Hilbert series counts its unknown monomials. The attack
//! brings that system to echelon form once, and guesses up to `mu` zeros in each of `f` blocks
//! within the remaining monomials.

use super::Blocks;
use super::arithmetic::{first_where, log2_sum, minimise, minimise_on};

/// Degrees tried; a higher one never pays in the tables of the paper.
const DEGREES: std::ops::RangeInclusive<usize> = 2..=4;

/// Points per round of the search for the first of two guesses.
const COARSE: i64 = 12;

/// Exponent and factor of dense elimination in AGB 2.0.
const ELIMINATION: (f64, f64) = (2.8, 5.64);

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
    /// The factor by which each parity check divides or multiplies the series.
    checks: Series,
    /// Monomials besides those of the blocks: over a large field the values of the noise.
    values: Series,
    /// The lowest degree of the monomials that AGB 2.0 counts as unknown.
    lowest: usize,
    /// Linear equations that the blocks give for free.
    free: f64,
}

impl System {
    fn monomials(&self, f: f64, mu: f64) -> Series {
        let Blocks { size, t, .. } = self.blocks;
        let guessed = power(size - mu - 1.0, f);
        let whole = power(size - 1.0, t - f);
        product(&product(&guessed, &whole), &self.values)
    }

    /// The most blocks in which `mu` zeros are guessed: the number that leaves unknowns.
    fn most_blocks(&self, mu: i64) -> i64 {
        let Blocks { k, t, .. } = self.blocks;
        (((k - self.free) / mu as f64) as i64).min(t as i64)
    }

    /// `log2` of the chance that the guess of the zeros is right.
    fn chance(&self, f: f64, mu: f64) -> f64 {
        f * (1.0 - mu / self.blocks.size).log2()
    }

    /// The number of monomials up to the degree, and of those that the equations leave unknown:
    /// from degree 2 over a large field.
    fn sizes(&self, f: f64, mu: f64, degree: usize) -> (f64, f64) {
        let monomials = self.monomials(f, mu);
        let series = product(&monomials, &self.checks);
        let left = series[self.lowest..=degree].iter().sum();
        (monomials[1..=degree].iter().sum(), left)
    }

    /// The cost of AGB 2.0 with the first guess given and `second`, `log2` of the chance of both.
    fn cost_of_both(&self, (f, mu): (f64, f64), second: f64, degree: usize) -> f64 {
        let (exponent, factor) = ELIMINATION;
        let dense = |columns: f64| exponent * columns.log2() + factor.log2();
        let (all, left) = self.sizes(f, mu, degree);
        let left = left.max(1.0);
        let rows = (all - left).max(1.0);
        let sparse = all.log2() + 2.0 * rows.log2() - rows.log2().log2();
        let first = if sparse.is_nan() { dense(all) } else { dense(all).min(sparse) };
        log2_sum(&[first.max(0.0) - self.chance(f, mu), dense(left.min(rows)) - second])
    }

    /// The least cost of AGB 2.0 at a degree at which `mu` zeros guessed in each of `f` blocks
    /// leave one solution.
    fn best_of_both(&self, mu: i64, degree: usize) -> f64 {
        let last = self.most_blocks(mu);
        let solved = |f: i64| self.sizes(f as f64, mu as f64, degree).1 < 1.0;
        let Some(f) = first_where(0..=last, solved) else {
            return f64::INFINITY;
        };
        let second = self.chance(f as f64, mu as f64);
        let found = minimise_on(COARSE, 2..=f, |f| {
            let first = minimise_on(COARSE, 0..=mu, |mu| {
                self.cost_of_both((f as f64, mu as f64), second, degree)
            });
            first.map_or(f64::INFINITY, |(_, bits)| bits)
        });
        found.map_or(f64::INFINITY, |(_, bits)| bits)
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
        let mut end = self.most_blocks(mu).min(self.blocks.t as i64 - 1);
        let mu = mu as f64;
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

fn system(blocks: Blocks, large: bool) -> System {
    let redundancy = blocks.n() - blocks.k;
    System {
        blocks,
        checks: if large { power(-1.0, redundancy - 1.0) } else { power(1.0, 1.0 - redundancy) },
        values: if large { power(-1.0, 1.0 - blocks.t) } else { power(0.0, 0.0) },
        lowest: if large { 2 } else { 1 },
        free: if large { 0.0 } else { blocks.t },
    }
}

/// The attack over GF(2) or, if `large`, over a large field.
pub(super) fn algebraic(blocks: Blocks, large: bool) -> f64 {
    let system = system(blocks, large);
    minimise(1..=blocks.size as i64 - 1, |mu| system.best_for(mu))
        .map_or(f64::INFINITY, |(_, bits)| bits)
}

/// AGB 2.0 over GF(2) or, if `large`, over a large field.
pub(super) fn algebraic_2(blocks: Blocks, large: bool) -> f64 {
    let system = system(blocks, large);
    let best = |degree| minimise(1..=blocks.size as i64 - 1, |mu| system.best_of_both(mu, degree));
    let found = DEGREES.filter_map(best);
    found.fold(f64::INFINITY, |least, (_, bits)| least.min(bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether over a large field; `n`, `k`, `t`; the guesses `f`, `mu` and `f'`, `mu'`; the bits.
    type Row = (bool, [f64; 3], [f64; 4], f64);

    /// The cheapest pair of guesses that the authors' script *agb2.py*
    /// (github.com/1234wangtr/Code_estimators) tries, and its cost. Over GF(2) this is the output
    /// of the script; over a large field the script prints less where one guess is cheaper, by the
    /// formula of ePrint 2023/176.
    const AUTHORS: [Row; 9] = [
        (false, [1024.0, 652.0, 57.0], [55.0, 9.0, 54.0, 8.0], 96.846),
        (false, [1024.0, 652.0, 106.0], [88.0, 5.0, 78.0, 5.0], 138.339),
        (false, [4096.0, 1589.0, 98.0], [95.0, 12.0, 95.0, 9.0], 97.443),
        (false, [4096.0, 1589.0, 172.0], [154.0, 7.0, 148.0, 6.0], 127.635),
        (false, [16384.0, 3482.0, 198.0], [197.0, 11.0, 180.0, 7.0], 100.462),
        (true, [1024.0, 652.0, 106.0], [91.0, 6.0, 83.0, 6.0], 178.929),
        (true, [4096.0, 1589.0, 98.0], [95.0, 13.0, 93.0, 13.0], 112.404),
        (true, [65536.0, 7391.0, 389.0], [374.0, 11.0, 372.0, 11.0], 123.803),
        (true, [870_400.0, 65536.0, 850.0], [841.0, 44.0, 841.0, 44.0], 163.034),
    ];

    #[test]
    fn the_authors_figures_for_agb_2() {
        for (large, [n, k, t], [f, mu, first, zeros], bits) in AUTHORS {
            let size = (n / t).floor();
            let blocks = Blocks { size, k: k - (n - size * t), t };
            let system = system(blocks, large);
            let second = system.chance(f, mu);
            assert!(system.sizes(f, mu, 2).1 < 1.0);
            let cost = system.cost_of_both((first, zeros), second, 2);
            assert!((cost - bits).abs() < 0.002, "{n} {k} {t}: {cost} {bits}");
            // The script ends its search early over large fields.
            let found = algebraic_2(blocks, large);
            let lower = if large { 25.0 } else { 0.01 };
            assert!((bits - lower..bits + 0.001).contains(&found), "{n} {k} {t}: {found} {bits}");
        }
    }

    /// All pairs of guesses, on small instances.
    #[test]
    fn the_search_finds_the_least_of_all_pairs() {
        for large in [false, true] {
            let blocks = Blocks { size: 12.0, k: 200.0, t: 40.0 };
            let system = system(blocks, large);
            let mut least = f64::INFINITY;
            for degree in DEGREES {
                for mu in 1..12 {
                    for f in 1..=system.most_blocks(mu) {
                        let (f, mu) = (f as f64, mu as f64);
                        if system.sizes(f, mu, degree).1 >= 1.0 {
                            continue;
                        }
                        for first in 2..=f as i64 {
                            for zeros in 0..=mu as i64 {
                                let guess = (first as f64, zeros as f64);
                                let second = system.chance(f, mu);
                                least = least.min(system.cost_of_both(guess, second, degree));
                            }
                        }
                    }
                }
            }
            let found = algebraic_2(blocks, large);
            assert!((found - least).abs() < 0.05, "{large}: {found} {least}");
        }
    }
}
