//! Reduce and Prange: guess noise-free samples in parts.
//!
//! ChangMin Lee's scripts, <https://github.com/ChangminLee-kr/Reduce-and-Prange>.
//!
//! Pooled Gauss inverts a separate matrix for each guess of `k` samples without noise. This attack
//! guesses some of them, solves them for as many unknowns, and substitutes these in all other
//! samples: the result is a smaller instance, for which it guesses the next part, and so on. One
//! guess of the first part serves many guesses of the second, so most of the linear algebra is
//! rare. The attack applies over any field; where the noise is regular, each block gives as many
//! samples as the others.
//!
//! The authors' scripts and these formulas differ:
//!
//! * The scripts count the elimination of `d` unknowns as if the remaining samples had as many
//!   unknowns as there are samples. We count the remaining unknowns, which is up to two bits
//!   cheaper.
//! * A part that is free of noise with chance `p` is tried `1/p` times. If the right one leads on
//!   with chance `q`, one of these tries does with chance `1 - exp(-q)`. The scripts take a factor
//!   of `1 - 1/e` for each part, including the first one, which is tried until the attack succeeds.
//! * The scripts make all parts cost the same, we search for the least sum. Both together are 0.9
//!   to 2 bits. Fewer than `1/p` tries would pay too, with half a bit or less.
//!
//! With *pools* the attack keeps at most [`POOL`] times as many samples as unknowns and eliminates
//! from those. This is a heuristic: it gives each guess the chance of a draw from all samples,
//! although a pool with more noise than others spoils all guesses made in it. Summed over the noise
//! of a pool, the sets u21 to u24 come out 0.4 bits higher.

use super::arithmetic::log2_binomial;
use super::{Blocks, Code};

/// Exponent of the matrix inversion.
const INVERSION: f64 = 2.8;

/// Samples in a pool for each unknown.
const POOL: f64 = 2.0;

/// Most parts tried before the last; in the tables of this module the least cost has at most five.
const PARTS: usize = 6;

/// Ratio of the numbers of remaining unknowns that are tried first.
const RATIO: f64 = 0.9;

/// Rounds of refinement, each of which moves the end of every part between its neighbours.
const ROUNDS: usize = 6;

/// Steps of each such move, which shorten the range to 0.618 of it.
const STEPS: usize = 24;

/// An instance, in which `s` samples are free of noise with chance `2^clean(s)`.
struct Target<F> {
    samples: f64,
    unknowns: f64,
    clean: F,
}

/// Operations that solve `solved` samples for as many unknowns and substitute these in `rows`
/// others, which have `columns` more.
fn conversion(solved: f64, rows: f64, columns: f64) -> f64 {
    solved.powf(INVERSION) + solved * columns * (solved + rows)
}

impl<F: Fn(f64) -> f64> Target<F> {
    /// Operations from `from` solved unknowns to `to`.
    fn step(&self, from: f64, to: f64) -> f64 {
        conversion(to - from, self.samples - to, self.unknowns - to)
    }

    /// Operations for the last part, all unknowns but `from`: an inversion and a test of the other
    /// samples.
    fn last(&self, from: f64) -> f64 {
        let left = self.unknowns - from;
        left.powf(INVERSION) + left * (self.samples - from)
    }

    /// The factor by which a guess of `to` samples is rarer than a guess of all.
    fn rarer(&self, to: f64) -> f64 {
        ((self.clean)(self.unknowns) - (self.clean)(to)).exp2()
    }

    /// The cost per guess of all samples, if the parts end at `ends`.
    fn each(&self, ends: &[f64]) -> f64 {
        let starts = std::iter::once(&0.0).chain(ends);
        let steps = starts.zip(ends).map(|(&from, &to)| self.step(from, to) * self.rarer(to));
        steps.sum::<f64>() + self.last(ends.last().copied().unwrap_or(0.0))
    }

    /// The least cost over all parts: the shortest path through a row of points for each number of
    /// parts, then refined.
    fn bits(&self) -> f64 {
        let clean = (self.clean)(self.unknowns);
        if !clean.is_finite() {
            return f64::INFINITY;
        }
        let points = self.points();
        let rarer: Vec<_> = points.iter().map(|&to| self.rarer(to)).collect();
        let mut solved = 1.0f64;
        let mut bits = self.last(0.0).log2();
        // For each point the least cost of all parts before it, and the predecessor on that path.
        let mut before = vec![f64::INFINITY; points.len()];
        before[0] = 0.0;
        let mut ways: Vec<Vec<usize>> = Vec::new();
        for _ in 0..PARTS {
            let cost = |from: usize, to: usize| {
                before[from] + self.step(points[from], points[to]) * rarer[to]
            };
            let way = (0..points.len()).map(|to| {
                let from = (0..to).min_by(|&a, &b| cost(a, to).total_cmp(&cost(b, to)));
                from.map_or((0, f64::INFINITY), |from| (from, cost(from, to)))
            });
            let (from, costs) = way.unzip();
            ways.push(from);
            before = costs;
            let all = |end: usize| before[end] + self.last(points[end]);
            let end = (0..points.len()).min_by(|&a, &b| all(a).total_cmp(&all(b)));
            let mut end = end.unwrap_or(0);
            let mut ends = vec![0.0; ways.len()];
            for (place, from) in ends.iter_mut().zip(&ways).rev() {
                *place = points[end];
                end = from[end];
            }
            solved = 1.0 - (-solved).exp();
            bits = bits.min(self.refined(ends).log2() - solved.log2());
        }
        bits - clean
    }

    /// Candidate ends of the parts before refinement.
    fn points(&self) -> Vec<f64> {
        let ratios = std::iter::successors(Some(self.unknowns), |left| Some(left * RATIO));
        let left = ratios.take_while(|&left| left >= 1.0).chain([0.0]);
        let mut points: Vec<_> = left.map(|left| self.unknowns - left.floor()).collect();
        points.dedup();
        points
    }

    /// The cost per guess with each end moved to the minimum between its neighbours.
    fn refined(&self, mut ends: Vec<f64>) -> f64 {
        let mut least = self.each(&ends);
        for _ in 0..ROUNDS {
            for part in 0..ends.len() {
                let mut low = if part == 0 { 0.0 } else { ends[part - 1] };
                let mut high = ends.get(part + 1).copied().unwrap_or(self.unknowns);
                let before = ends[part];
                let mut at = |end: f64| {
                    ends[part] = end;
                    self.each(&ends)
                };
                for _ in 0..STEPS {
                    let (a, b) = (low + (high - low) * 0.382, low + (high - low) * 0.618);
                    if at(a) < at(b) {
                        high = b;
                    } else {
                        low = a;
                    }
                }
                let cost = at(low.midpoint(high));
                if cost < least {
                    least = cost;
                } else {
                    ends[part] = before;
                }
            }
        }
        least
    }
}

fn unstructured(code: Code, pooled: bool) -> Target<impl Fn(f64) -> f64> {
    let Code { n, k, t } = code;
    let all = log2_binomial(n, t);
    Target {
        samples: if pooled { n.min(POOL * k) } else { n },
        unknowns: k,
        clean: move |s| log2_binomial(n - s, t) - all,
    }
}

fn in_blocks(blocks: Blocks, checks: f64, pooled: bool) -> Target<impl Fn(f64) -> f64> {
    let Blocks { size, k, t } = blocks;
    let (samples, unknowns) = (blocks.n() - checks, k - checks);
    Target {
        samples: if pooled { samples.min(POOL * unknowns) } else { samples },
        unknowns,
        clean: move |s: f64| {
            let each = (s / t).floor();
            let more = s - each * t;
            if each + more.min(1.0) >= size {
                return f64::NEG_INFINITY;
            }
            t * (1.0 - each / size).log2() + more * (1.0 - 1.0 / (size - each)).log2()
        },
    }
}

/// The attack on unstructured noise, with pools or without.
pub(super) fn exact(code: Code, pooled: bool) -> f64 {
    unstructured(code, pooled).bits()
}

/// The attack on blocks. `checks` is the number of parity equations that these give: one each over
/// GF(2), none over a large field.
pub(super) fn regular(blocks: Blocks, checks: f64, pooled: bool) -> f64 {
    if blocks.k <= checks {
        return blocks.n().log2() * 3.0;
    }
    in_blocks(blocks, checks, pooled).bits()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `n`, `k`, `t`, the samples of each part, and the bits.
    type Row = ([f64; 3], &'static [f64], f64);

    /// The output of the authors' script *estimator (Reduce and Prange).sage* for unstructured
    /// noise, `RP(n, k, t)` in our letters; run with doubles for Sage's numbers. The first seven
    /// instances are those of ePrint 2019/273.
    const UNSTRUCTURED: [Row; 10] = [
        ([1024.0, 652.0, 57.0], &[583.0, 29.0], 105.451),
        ([4096.0, 1589.0, 98.0], &[1301.0, 87.0], 94.376),
        ([16384.0, 3482.0, 198.0], &[2613.0, 192.0], 97.215),
        ([65536.0, 7391.0, 389.0], &[5168.0], 99.904),
        ([262_144.0, 15336.0, 760.0], &[9855.0], 102.364),
        ([1_048_576.0, 32771.0, 1419.0], &[19278.0], 104.839),
        ([4_194_304.0, 67440.0, 2735.0], &[35987.0], 107.186),
        ([14400.0, 2880.0, 349.0], &[2448.0, 111.0], 139.816),
        ([60000.0, 5952.0, 714.0], &[4792.0, 237.0], 138.224),
        ([134_000.0, 12416.0, 740.0], &[9735.0, 507.0], 137.317),
    ];

    /// The same for regular noise: `RP_for_regular_LPN(n, k, t)`. The script rounds the blocks up,
    /// and leaves out the factors of the first and the last part.
    const REGULAR: [Row; 7] = [
        ([1024.0, 652.0, 57.0], &[565.0, 30.0, 10.0], 99.635),
        ([4096.0, 1589.0, 98.0], &[1264.0, 88.0, 31.0], 91.188),
        ([16384.0, 3482.0, 198.0], &[2603.0, 193.0, 71.0], 94.419),
        ([65536.0, 7391.0, 389.0], &[5012.0, 405.0, 153.0, 87.0], 97.277),
        ([18688.0, 4608.0, 292.0], &[3911.0, 171.0, 56.0], 144.763),
        ([134_144.0, 11008.0, 1048.0], &[9071.0, 386.0, 130.0], 159.356),
        ([870_400.0, 65536.0, 850.0], &[47506.0, 2796.0, 998.0, 559.0], 134.526),
    ];

    /// The authors' count: matrices with as many columns as rows, factors for some parts, one
    /// unknown fewer in the last part.
    fn authors<F: Fn(f64) -> f64>(target: &Target<F>, parts: &[f64], lost: [f64; 2]) -> f64 {
        let factor = -(1.0 - (-1.0f64).exp()).log2();
        let mut from = 0.0;
        let mut cost = 0.0;
        for part in parts {
            from += part;
            let rows = target.samples - from;
            cost += conversion(*part, rows, rows) * target.rarer(from);
        }
        let (cost, last) = (cost.log2() + lost[0] * factor, target.last(from + 1.0).log2());
        super::super::arithmetic::log2_sum(&[cost, last + lost[1] * factor])
            - (target.clean)(target.unknowns)
    }

    #[test]
    fn the_authors_figures() {
        for ([n, k, t], parts, bits) in UNSTRUCTURED {
            let target = unstructured(Code { n, k, t }, false);
            let guesses = parts.len() as f64 + 1.0;
            let found = authors(&target, parts, [guesses; 2]);
            assert!((found - bits).abs() < 0.002, "{n} {k} {t}: {found} {bits}");
            let ours = exact(Code { n, k, t }, false);
            assert!((1.5..4.0).contains(&(bits - ours)), "{n} {k} {t}: {ours}");
        }
        for ([n, k, t], parts, bits) in REGULAR {
            let size = (n / t).ceil();
            let target = in_blocks(Blocks { size, k, t }, 0.0, false);
            let found = authors(&target, parts, [parts.len() as f64, 0.0]);
            assert!((found - bits).abs() < 0.002, "{n} {k} {t}: {found} {bits}");
            let ours = regular(Blocks { size, k, t }, 0.0, false);
            assert!((0.3..2.0).contains(&(bits - ours)), "{n} {k} {t}: {ours}");
        }
    }

    /// One part and two, against all cuts of a short secret.
    #[test]
    fn the_search_finds_the_least_of_all_cuts() {
        for (n, k, t) in [(512.0, 60.0, 80.0), (4096.0, 130.0, 300.0)] {
            let target = unstructured(Code { n, k, t }, false);
            let mut least = target.last(0.0).log2();
            let (one, two) = (1.0 - (-1.0f64).exp(), 1.0 - (-1.0 + (-1.0f64).exp()).exp());
            for a in 1..=k as usize {
                let a = a as f64;
                least = least.min(target.each(&[a]).log2() - one.log2());
                for b in a as usize + 1..=k as usize {
                    least = least.min(target.each(&[a, b as f64]).log2() - two.log2());
                }
            }
            let least = least - (target.clean)(k);
            let found = target.bits();
            assert!(found < least + 0.01, "{n} {k} {t}: {found} {least}");
            assert!(found > least - 1.0, "{n} {k} {t}: {found} {least}");
        }
    }

    #[test]
    fn pools_are_a_little_cheaper() {
        let code = Code { n: 1_048_576.0, k: 50_688.0, t: 1317.0 };
        let (all, pools) = (exact(code, false), exact(code, true));
        assert!((130.8..131.0).contains(&all) && (129.2..129.3).contains(&pools));
        // A secret of half the samples fills the pool with all of them.
        let code = Code { k: 524_288.0, ..code };
        assert_eq!(exact(code, false), exact(code, true));
    }
}
