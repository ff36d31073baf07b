//! Failures that honest parties may meet, and how rarely they do.

/// The negative logarithm of the probability that anything fails in all executions of a run.
pub(crate) const STATISTICAL: u32 = 40;

/// A cause of a wrong result or of an error between honest parties.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Failure {
    /// The event, in words.
    pub what: &'static str,
    /// The negative logarithm of its probability in the whole run.
    pub bits: f64,
    /// Whether a wrong result follows, not an error.
    pub false_positive: bool,
}

impl Failure {
    /// A cause of a wrong result.
    pub(crate) const fn wrong_result(what: &'static str, bits: f64) -> Self {
        Self { what, bits, false_positive: true }
    }

    /// A cause of an error.
    pub(crate) const fn error(what: &'static str, bits: f64) -> Self {
        Self { what, bits, false_positive: false }
    }

    /// The negative logarithm of the sum of these probabilities.
    pub fn sum(failures: impl IntoIterator<Item = Self>) -> f64 {
        let all = failures.into_iter().map(|one| (-one.bits).exp2());
        -all.sum::<f64>().log2()
    }
}

/// The sizes of the parts of a run, and the rarity of its failures. Tests divide small sets, and
/// let runs fail so often that they can count it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    /// Items of the encoding party in a bin of the OPRF, on average.
    pub(crate) bin: u64,
    /// Bins of a slice of circuit-PSI, on average.
    pub(crate) slice: usize,
    /// Bits by which each failure is rarer than with 2^-[`STATISTICAL`] for all.
    pub(crate) rarer: i32,
}

impl Scale {
    /// The scale of every run.
    pub(crate) const RUN: Self = Self { bin: 1 << 19, slice: 1 << 18, rarer: 0 };

    /// Bits by which each failure is rarer in each of `parts` executions, whole.
    pub(crate) fn margin(self, parts: u64) -> i32 {
        parts.next_power_of_two().ilog2() as i32 + self.rarer
    }
}

/// The negative logarithm of a bound on the probability that two items of two sets of these sizes
/// are different and have the same `bits` uniform bits.
pub(crate) fn equal_bits(bits: u32, sizes: [u64; 2]) -> f64 {
    let logs = sizes.map(|items| (items.max(1) as f64).log2());
    f64::from(bits) - logs[0] - logs[1]
}

/// These bits, and so many more or fewer, but not less than none.
pub(crate) const fn shifted(bits: u32, more: i32) -> u32 {
    bits.saturating_add_signed(more)
}
