//! Information-set decoding with representations in depth three (Becker, Joux, May and Meurer),
//! over GF(2).
//!
//! Formulas of ePrint 2022/712, which follows the non-asymptotic analysis of Hamdaoui and
//! Sendrier, ePrint 2013/162.

use super::Code;
use super::arithmetic::{log2_binomial, log2_sum, minimise};
use super::stern::{elimination, even_window};

/// Longest window tried.
const WINDOW: i64 = 1200;

/// Largest weight of the smallest lists tried; only instances of many hundred bits need more.
const HEAVIEST: usize = 64;

/// The search over the weight of the smallest lists stops after a loss of this many bits.
const GIVE_UP: f64 = 8.0;

/// At a new weight, the search skips windows that cost this much more than the best so far: enough
/// for the search over windows to see the slopes of a relevant valley.
const FAR: f64 = 40.0;

/// The search skips a choice whose cost must exceed the best so far by this much.
const MARGIN: f64 = 2.0;

/// Values shared by all overlaps at one weight `p2` of the smallest lists and one window `l`.
struct Level {
    n: f64,
    l: f64,
    p2: usize,
    /// `log2` of the size of one smallest list.
    list: f64,
    /// `log2` of the elimination.
    elimination: f64,
    /// `falling[j]` is `log2` of `m (m - 1) .. (m - j + 1)` for `m = k + l`.
    falling: Vec<f64>,
    /// `factorial[j]` is `log2` of `j!`.
    factorial: Vec<f64>,
}

/// Depth-three ISD over GF(2).
pub(super) fn bjmm(code: Code) -> f64 {
    let last = (((code.n - code.k - 2.0) / 8.0) as i64).min(WINDOW);
    let mut best = f64::INFINITY;
    for p2 in (0..HEAVIEST.min(code.t as usize)).step_by(2) {
        let mut bound = best + FAR;
        let found = minimise(1..=last, |l| {
            let bits = best_overlap(code, p2, even_window(code.k, l), bound + MARGIN);
            bound = bound.min(bits);
            bits
        });
        let bits = found.map_or(f64::INFINITY, |(_, bits)| bits);
        if bits > best + GIVE_UP {
            break;
        }
        best = best.min(bits);
    }
    best
}

/// The least cost over the overlaps `e1`, `e2`; skips choices that cannot go below `bound`.
fn best_overlap(code: Code, p2: usize, l: f64, bound: f64) -> f64 {
    let Code { n, k, t } = code;
    let level = Level::new(code, p2, l);
    // `outside[j]`: the fraction of error patterns with 2j errors in the information set.
    let all = log2_binomial(n, t);
    let outside: Vec<f64> =
        (0..=2 * p2).map(|j| log2_binomial(n - k - l, t - 2.0 * j as f64) - all).collect();
    let least = n.log2() + level.elimination.max(3.0 + level.list);
    let mut best = f64::INFINITY;
    for e2 in 0..p2.max(1) {
        let p1 = 2 * (p2 - e2);
        for e1 in p1.saturating_sub(t as usize / 2)..p1.max(1) {
            let half = p1 - e1;
            // At best the attack finds every error pattern of the information set.
            let bottom = least - outside[half] - level.all(2 * half);
            if bottom < bound.min(best) {
                best = best.min(level.cost(e1, e2, outside[half]));
            }
        }
    }
    best
}

impl Level {
    fn new(code: Code, p2: usize, l: f64) -> Self {
        let Code { n, k, .. } = code;
        let weights = 4 * p2 + 1;
        let mut falling = vec![0.0; weights + 1];
        let mut factorial = vec![0.0; weights + 1];
        for j in 0..weights {
            // Beyond `k + l` no choice exists.
            let left = k + l - j as f64;
            falling[j + 1] = falling[j] + left.max(0.0).log2();
            factorial[j + 1] = factorial[j] + (j as f64 + 1.0).log2();
        }
        Self {
            n,
            l,
            p2,
            list: log2_binomial((k + l) / 2.0, p2 as f64 / 2.0),
            elimination: elimination(n, n - k - l),
            falling,
            factorial,
        }
    }

    /// `log2 C(k + l, weight)`.
    fn all(&self, weight: usize) -> f64 {
        self.falling[weight] - self.factorial[weight]
    }

    /// `log2` of the number of words of weight `w` that meet a given one in exactly `e` places.
    fn overlapping(&self, w: usize, e: usize) -> f64 {
        let shared = self.factorial[w] - self.factorial[e] - self.factorial[w - e];
        shared + self.falling[2 * w - e] - self.falling[w] - self.factorial[w - e]
    }

    /// The cost with overlaps `e1` and `e2`; `outside` is `log2` of the fraction of error patterns
    /// with the right weight outside the information set.
    fn cost(&self, e1: usize, e2: usize, outside: f64) -> f64 {
        let &Self { l, p2, list, .. } = self;
        let p1 = 2 * (p2 - e2);
        let p = 2 * (p1 - e1);
        let overlap2 = self.overlapping(p2, e2) - self.all(p2);
        let overlap1 = self.overlapping(p1, e1) - self.all(p1);

        // Symbols on which the sums of the two lower levels must vanish: the number that leaves one
        // representation of each word, but fewer than the window.
        let r2 = (overlap2 + 4.0 * list - self.all(p1)).trunc();
        let r12 = (self.overlapping(p1, e1) + self.all(p1) - self.all(p)).trunc();
        if r2.is_nan() || r12.is_nan() {
            return f64::INFINITY;
        }
        let r2 = r2.clamp(0.0, l - 1.0);
        let r1 = (r12 - r2).clamp(0.0, l - r2 - 1.0);

        let merge3 = 2.0 * list - r2;
        let merge2 = 2.0 * merge3 - r1;
        let list1 = (overlap2 + merge2).min(self.all(p1) - r1 - r2);
        let merge1 = 2.0 * list1 - l + r1 + r2;
        let found = (overlap1 + merge1).min(self.all(p) - l);
        let success = outside + l + found;
        if success >= 0.0 || success.is_nan() {
            return f64::INFINITY;
        }
        let iteration =
            log2_sum(&[self.elimination, 3.0 + list, 2.0 + merge3, 1.0 + merge2, 1.0 + merge1]);
        self.n.log2() + iteration - success
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn skipping_choices_does_not_change_the_minimum() {
        let code = Code { n: 4096.0, k: 1589.0, t: 98.0 };
        for (p2, l) in [(0, 5.0), (2, 21.0), (4, 41.0), (6, 71.0)] {
            let free = best_overlap(code, p2, l, f64::INFINITY);
            assert_eq!(best_overlap(code, p2, l, free + MARGIN), free);
        }
    }
}
