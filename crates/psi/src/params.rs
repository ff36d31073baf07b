//! The parameters of a run, from the sizes of the two sets: bins, stash, widths.

use std::fmt;

use volery_primitives::cuckoo::{FUNCTIONS, bins_for};

use crate::code::width_for;
use crate::failure::{STATISTICAL, Scale, equal_bits, shifted};

/// The maximum number of items of a set: 2^31, or 2^22 where `usize` has 32 bits, as in
/// WebAssembly. There it counts the bits of a matrix with up to 512 for each item.
pub const MAX_ITEMS: u64 = if usize::BITS < 64 { 1 << 22 } else { 1 << 31 };

/// The placement of the receiver's items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// No stash, and as many bins as [`bins_for`] asks for.
    #[default]
    Kkrt,
    /// 1.2 bins an item and the stash of Table 2 of the paper. Below 2^8 items, where the table has
    /// no entry, the bins are those of the default.
    KkrtPaper,
    /// Too few bins: placing few items fails occasionally, placing many items always.
    #[cfg(test)]
    Tight,
    /// Bins for half of the items, and a stash for the others.
    #[cfg(test)]
    Stashed,
    /// The default with tags of two bytes, among which false matches can be counted.
    #[cfg(test)]
    Short,
}

impl Variant {
    /// All variants, the default first.
    pub const ALL: [Self; 2] = [Self::Kkrt, Self::KkrtPaper];

    /// The name on the command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kkrt => "kkrt",
            Self::KkrtPaper => "kkrt-paper",
            #[cfg(test)]
            Self::Tight => "tight",
            #[cfg(test)]
            Self::Stashed => "stashed",
            #[cfg(test)]
            Self::Short => "short",
        }
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The stash of Table 2: the largest number of items and `s`, for 2^-40 and 1.2 bins an item. Fewer
/// items need a larger stash.
///
/// Pinkas, Schneider, Segev, Zohner, *Phasing*, USENIX Security 2015, from experiments.
const STASH: [(u64, usize); 4] =
    [((1 << 12) - 1, 12), ((1 << 16) - 1, 6), ((1 << 20) - 1, 4), ((1 << 24) - 1, 3)];

/// `s` from 2^24 items on.
const SMALLEST_STASH: usize = 2;

/// The parameters of one run. Both parties compute them from the sizes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The placement of the receiver's items.
    pub variant: Variant,
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
    /// Bins of the cuckoo table.
    pub bins: usize,
    /// `s`, places in the stash.
    pub stash: usize,
    /// `k`, bits of a code word.
    pub width: usize,
    /// `v` in bytes: the sent part of each output of the OPRF.
    pub tag: usize,
    /// The negative logarithm of the probability of each failure.
    pub(crate) statistical: u32,
}

impl Parameters {
    /// The parameters for two set sizes.
    ///
    /// # Panics
    /// If a size is above [`MAX_ITEMS`].
    pub fn new(variant: Variant, sender_items: u64, receiver_items: u64) -> Self {
        Self::one_of(1, variant, sender_items, receiver_items)
    }

    /// The parameters of one of `parts` executions that share a failure probability of `2^-40`.
    pub(crate) fn one_of(
        parts: u64,
        variant: Variant,
        sender_items: u64,
        receiver_items: u64,
    ) -> Self {
        let sizes = [sender_items, receiver_items];
        Self::with_scale(Scale::RUN, parts, variant, sizes)
    }

    /// [`one_of`](Self::one_of) at this scale.
    pub(crate) fn with_scale(
        scale: Scale,
        parts: u64,
        variant: Variant,
        [sender_items, receiver_items]: [u64; 2],
    ) -> Self {
        let statistical = shifted(STATISTICAL, scale.margin(parts));
        assert!(
            sender_items.max(receiver_items) <= MAX_ITEMS,
            "a set has more items than MAX_ITEMS"
        );
        let items = receiver_items as usize;
        let (bins, stash) = match variant {
            Variant::Kkrt => (bins_for(items, statistical), 0),
            #[cfg(test)]
            Variant::Short => (bins_for(items, statistical), 0),
            Variant::KkrtPaper => {
                let stash = STASH.iter().find(|(most, _)| receiver_items <= *most);
                let stash = stash.map_or(SMALLEST_STASH, |(_, stash)| *stash);
                // The paper's table begins at 2^8; with fewer items 1.2 bins an item fail too
                // often.
                let bins = match items {
                    ..256 => bins_for(items, statistical),
                    _ => (6 * items).div_ceil(5),
                };
                (bins, stash)
            }
            #[cfg(test)]
            Variant::Tight => (FUNCTIONS.max(items + items / 32 + 1), 0),
            #[cfg(test)]
            Variant::Stashed => (FUNCTIONS.max(items / 2), items),
        };
        let mut parameters = Self {
            variant,
            sender_items,
            receiver_items,
            bins,
            stash,
            width: 0,
            tag: 0,
            statistical,
        };
        let evaluations = parameters.evaluations().saturating_mul(parts).max(1) as f64;
        let bits = f64::from(shifted(STATISTICAL, scale.rarer));
        parameters.width = width_for(bits + evaluations.log2());
        // The least v with 2^v >= 2^sigma times the number of compared pairs.
        let pairs = u128::from(sender_items.max(1)) * u128::from(receiver_items.max(1));
        let bits = statistical + pairs.next_power_of_two().ilog2();
        parameters.tag = bits.div_ceil(8) as usize;
        #[cfg(test)]
        if variant == Variant::Short {
            parameters.tag = 2;
        }
        parameters
    }

    /// The numbers that determine the messages of a run.
    pub(crate) fn words(&self) -> [u64; 4] {
        [self.bins, self.stash, self.width, self.tag].map(|number| number as u64)
    }

    /// `m`, instances of the OPRF: `1.2n + s` in the paper.
    pub const fn instances(&self) -> usize {
        self.bins + self.stash
    }

    /// Number of the sets `H_1, H_2, H_3, S_1, ..` that the sender computes from its items.
    pub const fn sets(&self) -> usize {
        FUNCTIONS + self.stash
    }

    /// Outputs of the OPRF that the sender computes.
    pub const fn evaluations(&self) -> u64 {
        self.sender_items * self.sets() as u64
    }

    /// Bytes from the receiver to the sender that depend on the sizes, `k(1.2n + s)` in the paper's
    /// Table 5.
    pub const fn row_bytes(&self) -> u64 {
        if self.trivial() {
            return 0;
        }
        self.instances() as u64 * (self.width / 8) as u64
    }

    /// Bytes from the sender to the receiver that depend on the sizes, `(3 + s)nv` in the paper's
    /// Table 5.
    pub const fn tag_bytes(&self) -> u64 {
        if self.trivial() {
            return 0;
        }
        self.evaluations() * self.tag as u64
    }

    /// The binary logarithm of a bound on the probability that the receiver reports any item as
    /// common that is not.
    pub fn false_positive(&self) -> f64 {
        -equal_bits(8 * self.tag as u32, [self.sender_items, self.receiver_items])
    }

    /// Whether a set is empty, so that the run ends once both parties know the sizes.
    #[must_use]
    pub const fn trivial(&self) -> bool {
        self.sender_items == 0 || self.receiver_items == 0
    }
}

impl fmt::Display for Parameters {
    /// Describes the parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bins, stash, width, tag, .. } = self;
        write!(
            f,
            "3 hash functions, {bins} bins, stash {stash}, code of {width} bits, outputs of {} bits",
            8 * tag
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_2_and_table_5() {
        for (log, stash, k, v) in [
            (8, 12, 424, 56),
            (12, 6, 432, 64),
            (16, 4, 440, 72),
            (20, 3, 448, 80),
            (24, 2, 448, 88),
        ] {
            let n = 1 << log;
            let parameters = Parameters::new(Variant::KkrtPaper, n, n);
            assert_eq!(parameters.stash, stash, "2^{log}");
            assert_eq!(parameters.width, k, "2^{log}");
            assert_eq!(8 * parameters.tag, v, "2^{log}");
            assert_eq!(parameters.bins as u64, (6 * n).div_ceil(5));
            let bytes = k as u64 * parameters.instances() as u64 / 8
                + (3 + stash as u64) * n * v as u64 / 8;
            assert_eq!(parameters.row_bytes() + parameters.tag_bytes(), bytes);
        }
    }

    #[test]
    fn the_default_has_no_stash_and_more_bins() {
        for n in [1, 2, 3, 100, 1 << 12, 1 << 20, 1 << 24, MAX_ITEMS] {
            let ours = Parameters::new(Variant::Kkrt, n, n);
            assert_eq!((ours.stash, ours.sets()), (0, 3));
            assert_eq!(ours.bins, bins_for(n as usize, 40));
        }
        let ours = Parameters::new(Variant::Kkrt, 1 << 20, 1 << 20);
        assert_eq!((ours.bins, ours.width, ours.tag), (1_380_626, 440, 10));
    }

    #[test]
    fn false_positives_are_rare_and_tags_not_longer_than_needed() {
        for sender in [0, 1, 2, 3, 255, 256, 257, 1000, 1 << 20, MAX_ITEMS] {
            for receiver in [0, 1, 5, 1 << 10, (1 << 24) + 1, MAX_ITEMS] {
                for variant in Variant::ALL {
                    let parameters = Parameters::new(variant, sender, receiver);
                    assert!(parameters.false_positive() <= -40.0, "{sender} {receiver}");
                    assert!(parameters.false_positive() > -48.0, "{sender} {receiver}");
                    assert!(parameters.tag <= 13 && parameters.instances() > 0);
                    assert_eq!(parameters.trivial(), sender == 0 || receiver == 0);
                }
            }
        }
    }
}
