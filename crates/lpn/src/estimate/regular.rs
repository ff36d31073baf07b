//! Information-set decoding for regular noise over GF(2): permutation, enumeration and
//! representations.
//!
//! Esser and Santini, *Not Just Regular Decoding*, ePrint 2023/1568, section A.1.

use super::Blocks;
use super::arithmetic::log2_binomial;

/// Largest weight tried in the information set by the enumeration.
const ENUMERATED: i64 = 30;

/// Largest weight tried in the information set by the representations.
const REPRESENTED: i64 = 40;

/// Largest number of superfluous errors tried by the representations.
const SUPERFLUOUS: i64 = 32;

/// Permutation-based: an information set without errors. `checks` is the number of parity equations
/// that the blocks themselves give: one each over GF(2), none over a large field.
pub(super) fn permutation(blocks: Blocks, checks: f64) -> f64 {
    let (n, k) = (blocks.n(), blocks.k - checks);
    if k <= 0.0 {
        return n.log2() * 3.0;
    }
    ((n - k).powi(2) * n).log2() - blocks.t * (-k / n).ln_1p() / std::f64::consts::LN_2
}

/// The chance that each half of the blocks has `p / 2` of its errors within the enumerated share of
/// the coordinates, and all others outside.
struct Split {
    t: f64,
    p: f64,
    /// `log2` of the choices of the blocks.
    choices: f64,
}

impl Split {
    fn new(t: f64, p: f64) -> Self {
        let choices =
            log2_binomial((t / 2.0).floor(), p / 2.0) + log2_binomial((t / 2.0).ceil(), p / 2.0);
        Self { t, p, choices }
    }

    fn log2_chance(&self, share: f64) -> f64 {
        self.log2_chance_between(share, share)
    }

    /// No share from `low` to `high` gives a larger chance.
    fn log2_chance_between(&self, low: f64, high: f64) -> f64 {
        self.choices + self.p * high.log2() + (self.t - self.p) * (1.0 - low).log2()
    }
}

/// Enumeration-based, with one collision step on `l` symbols.
pub(super) fn enumeration(blocks: Blocks) -> f64 {
    let (n, t) = (blocks.n(), blocks.t);
    let k = blocks.k - t;
    if k <= 0.0 {
        return n.log2() * 3.0;
    }
    let half = (t / 2.0).floor();
    let mut best = f64::INFINITY;
    for p in (0..ENUMERATED).step_by(2).map(|p| p as f64) {
        if half < p / 2.0 {
            break;
        }
        let split = Split::new(t, p);
        let choose = log2_binomial(half, p / 2.0);
        let estimate = (choose + p / 2.0 * (k / t).log2()).max(0.0);
        let from = (estimate * 0.5).ceil() as i64;
        let to = ((estimate * 1.5).round() as i64).min((n - k) as i64);
        for l in (from..to.max(from + 1)).map(|l| l as f64) {
            let width = (k + l) / t;
            if width >= blocks.size {
                break;
            }
            let list = choose + p / 2.0 * width.log2();
            let iteration = ((n - k).log2() * 2.0).max(1.0 + list).max(2.0 * list - l);
            best = best.min(n.log2() + iteration - split.log2_chance(width / blocks.size));
        }
    }
    best
}

/// Representation-based, in depth two.
pub(super) fn representation(blocks: Blocks) -> f64 {
    let (n, t) = (blocks.n(), blocks.t);
    let k = blocks.k - t;
    if k <= 0.0 {
        return n.log2() * 3.0;
    }
    let half = (t / 2.0).floor();
    let elimination = 2.0 * (n - k).log2();
    let mut best = f64::INFINITY;
    for p in (0..REPRESENTED).step_by(4).map(|p| p as f64) {
        let split = Split::new(t, p);
        for extra in (0..SUPERFLUOUS).step_by(2).map(|x| x as f64) {
            let weight = p / 2.0 + extra;
            let choose = log2_binomial(half, weight / 2.0);
            let ways =
                2.0 * (log2_binomial(p / 2.0, p / 4.0) + log2_binomial((t - p) / 2.0, extra / 2.0));
            if t < p || !choose.is_finite() || !ways.is_finite() {
                continue;
            }
            let ways = ways.floor();
            let estimate = (2.0 * (choose + weight / 2.0 * k.log2())).ceil();
            let (from, to) = ((estimate * 0.5) as i64, (estimate * 1.5) as i64);
            let (low, high) = ((k + from as f64) / t, (k + to as f64) / t);
            let chance = split.log2_chance_between(low / blocks.size, high / blocks.size);
            let least = elimination.max(2.0 + choose + low.log2() * weight / 2.0);
            if n.log2() + least - chance >= best {
                continue;
            }
            for l in (from..to).map(|l| l as f64) {
                let width = (k + l) / t;
                if width >= blocks.size {
                    break;
                }
                let list = choose + width.log2() * weight / 2.0;
                let merged = 2.0 * list - ways;
                let found = 2.0 * merged - (l - ways);
                let iteration = elimination.max(2.0 + list).max(1.0 + merged).max(found);
                best = best.min(n.log2() + iteration - split.log2_chance(width / blocks.size));
            }
        }
    }
    best
}
