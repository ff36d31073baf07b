//! The size of a cuckoo table.
//!
//! By Hall's theorem a placement of all items exists unless some `s` items have at most `s - 1`
//! bins between them. Take the smallest such set: at least two of its items share each of its bins,
//! because an item with a bin of its own could be left out together with that bin. So the table
//! fails with probability at most the sum over `s` of
//!
//! ```text
//! C(n, s) C(m, s-1) N(s) / C(m, 3)^s
//! ```
//!
//! where `n` items go to `m` bins and `N(s)` counts the ways to choose three of `s - 1` bins for
//! each of `s` items so that each bin is chosen twice or more. With `3s` choices in order instead,
//! each bin's exponential generating function is `e^z - 1 - z`, which gives
//! `N(s) <= (3s)! (e^z - 1 - z)^(s-1) / (z^(3s) 6^s)` for every `z > 0`; we take the best `z`, or
//! `C(s-1, 3)^s`, whichever is less.
//!
//! * Below [`EMPIRICAL_FROM`] items the sizes come from this bound alone, which is a proof, up to
//!   the hash functions being random.
//! * From there on the large sets make the bound useless at the sizes that work in practice. The
//!   sizes come from the straight line that Demmler, Rindal, Rosulek, Trieu, *PIR-PSI: Scaling
//!   Private Contact Discovery*, PETS 2018, appendix B, fitted to experiments:
//!   `m = n (eta + log2 n + 256) / 240`. It is an extrapolation, not a proof. Where the bound on
//!   the small sets alone asks for more, which is at high `eta`, the table grows until they are
//!   rare enough.
//!
//! The lines of the same appendix for fewer items (`eta = 100 m/n - 113` at 128 items, for example)
//! are not used: at `eta = 40` they give fewer bins than four items in three bins need.

/// Minimum number of items whose sizes are extrapolated from experiments.
const EMPIRICAL_FROM: usize = 512;

/// Largest set size counted where not all sizes are. The number of sets falls fast with their size.
const SMALL_SETS: usize = 16;

/// Largest `eta`; an item has 128 bits, so more is pointless.
const LARGEST_ETA: u32 = 128;

/// Bins of a table that holds `items` items with probability at least 1 - 2^-`eta`, over the key of
/// the hash functions.
///
/// Never below 3, and never smaller for more items. At `eta = 40` it is about 2 bins per item for
/// 128 items, 1.6 for 192, 1.4 for 400, 1.27 for 512 and 1.32 for 2^20. The module documentation
/// says which sizes are proved and which are extrapolated from experiments.
///
/// # Panics
/// If `eta` is above 128.
pub fn bins_for(items: usize, eta: u32) -> usize {
    assert!(eta <= LARGEST_ETA, "a failure rate below 2^-128 means nothing");
    if items <= super::FUNCTIONS {
        // Every item has three distinct bins: placement always succeeds.
        return super::FUNCTIONS;
    }
    let empirical = |items: usize| {
        let n = items as f64;
        let line = n * (f64::from(eta) + n.log2() + 256.0) / 240.0;
        smallest(&Sets::new(items, SMALL_SETS), line.ceil() as usize, eta)
    };
    if items >= EMPIRICAL_FROM {
        empirical(items)
    } else {
        // Fewer items in the same table fail less often, so the first empirical size is an upper
        // limit.
        smallest(&Sets::new(items, items), items, eta).min(empirical(EMPIRICAL_FROM))
    }
}

/// The smallest number of bins, `from` or more, at which the counted sets are rare enough.
fn smallest(sets: &Sets, from: usize, eta: u32) -> usize {
    let enough = |bins: usize| sets.failure(bins) <= (-f64::from(eta)).exp2();
    let (mut low, mut high) = (from, from);
    while !enough(high) {
        low = high + 1;
        high *= 2;
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if enough(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// The part of the bound that does not depend on the number of bins.
struct Sets {
    /// log2 of `C(n, s) N(s)`, from `s = 4` on. Smaller sets always have enough bins.
    counts: Vec<f64>,
}

impl Sets {
    /// Sets of `s` out of `n = items` items, for `s` up to `largest`.
    fn new(items: usize, largest: usize) -> Self {
        let mut subsets = 0.0;
        let mut orders = 0.0;
        let mut counts = Vec::new();
        for s in 1..=largest.min(items) {
            let size = s as f64;
            subsets += ((items - s + 1) as f64 / size).log2();
            orders += (3.0 * size * (3.0 * size - 1.0) * (3.0 * size - 2.0)).log2();
            if s > super::FUNCTIONS {
                // For small s, the bound without the condition on the bins is better.
                let bins = size - 1.0;
                let free = size * (bins * (bins - 1.0) * (bins - 2.0) / 6.0).log2();
                counts.push(subsets + free.min(orders + covering(size)));
            }
        }
        Self { counts }
    }

    /// The bound on the probability that some set has too few of `bins` bins.
    fn failure(&self, bins: usize) -> f64 {
        let m = bins as f64;
        let triples = (m * (m - 1.0) * (m - 2.0) / 6.0).log2();
        // C(m, s - 1) for the s before the first.
        let mut places = (m * (m - 1.0) / 2.0).log2();
        let mut sum = 0.0;
        for (s, count) in (4..).zip(&self.counts) {
            if s - 1 > bins {
                break;
            }
            let size = s as f64;
            places += ((m - size + 2.0) / (size - 1.0)).log2();
            sum += (count + places - size * triples).exp2();
        }
        sum
    }
}

/// log2 of the smallest `(e^z - 1 - z)^(s-1) / (z^(3s) 6^s)`.
fn covering(s: f64) -> f64 {
    let value = |z: f64| (s - 1.0) * (z.exp_m1() - z).log2() - 3.0 * s * z.log2() - s * 6f64.log2();
    // Where the derivative is zero, each bin is chosen 3s / (s - 1) times on average, between 3 and
    // 4 times.
    let average = |z: f64| z * z.exp_m1() / (z.exp_m1() - z);
    let (mut low, mut high) = (2.0, 4.0);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        if average(middle) < 3.0 * s / (s - 1.0) {
            low = middle;
        } else {
            high = middle;
        }
    }
    value(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_monotone_and_large_enough() {
        for (eta, step) in [(0, 37), (1, 13), (40, 3), (80, 37), (128, 37)] {
            let mut last = 0;
            let step = if cfg!(miri) { 1100 } else { step };
            for items in (0..1100).step_by(step).chain([1 << 12, 10_000, 1 << 20, 1 << 28]) {
                let bins = bins_for(items, eta);
                assert!(bins >= last, "{items} items, eta {eta}");
                assert!(bins >= items.max(3));
                assert!(eta == 0 || bins >= bins_for(items, eta - 1));
                last = bins;
            }
        }
    }

    /// The probability for four items in all is exact: all four have the same bins.
    #[test]
    fn four_items() {
        let sets = Sets::new(4, 4);
        for bins in [3, 4, 10, 41] {
            let m = bins as f64;
            let exact = (m * (m - 1.0) * (m - 2.0) / 6.0).powi(-3);
            assert!((sets.failure(bins) / exact - 1.0).abs() < 1e-9);
        }
        assert_eq!(bins_for(4, 40), 41);
    }
}
