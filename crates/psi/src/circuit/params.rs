//! The parameters of a run, from the sizes of the two sets, and what may go wrong in it.

use std::fmt;
use std::ops::Range;

use volery_okvs::{Preset, Shape};
use volery_pcg::{Candidate, Kind, Link, Plan, PlanOptions};
use volery_primitives::cuckoo::{FUNCTIONS, bins_for};

use super::{COMPARISONS, MAX_ITEMS, Settings, gmw};
use crate::failure::{Failure, STATISTICAL, Scale, shifted};
use crate::vole::{self, packed};

/// Bits, as negative logarithms, of the failures that the parameters choose: items that do not fit
/// into the cuckoo table; two different values that are equal; a slice with too many hints. All
/// stay below 2^-40 in sum, with those of the OPRF as one of two executions. Above
/// [`LARGE`] items of a set, where hints fail more often, the table is larger.
const CUCKOO: [u32; 2] = [41, 42];
const EQUALITY: u32 = 41;
const OVERFLOW: f64 = 46.0;
/// More bits than any number of items asks for.
const MOST_BITS: u32 = 80;
const LARGE: u64 = 1 << 24;

/// The link for which correlated OTs are planned: one on which their bytes count. Fixed, so that
/// both parties have one plan.
pub(super) const LINK: Link = Link { bits_per_second: 1e8, round_trip: 0.01 };

/// The parameters of one run. Both parties compute them from the sizes and settings alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The settings.
    pub settings: Settings,
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
    /// The negative logarithm of the probability that the receiver's items do not fit into the
    /// cuckoo table.
    pub cuckoo: u32,
    /// Bins of the cuckoo table: the slots of the result.
    pub bins: usize,
    /// Bins of a slice; the last one may have fewer.
    pub slice: usize,
    /// The most hints of a slice.
    pub capacity: usize,
    /// `l`, bits of the values compared for each bin.
    pub value_bits: u32,
    /// The OPRF.
    pub oprf: vole::Parameters,
    /// The field of the same name of the [`Scale`].
    rarer: i32,
    /// The encoding of the hints of a slice.
    preset: Preset,
}

impl Parameters {
    /// The parameters for two set sizes.
    ///
    /// # Panics
    /// If a size is above [`MAX_ITEMS`], or the form is the malicious one.
    pub fn new(settings: Settings, sender_items: u64, receiver_items: u64) -> Self {
        Self::with_scale(Scale::RUN, settings, [sender_items, receiver_items])
    }

    /// [`new`](Self::new) at this scale.
    pub(super) fn with_scale(
        scale: Scale,
        settings: Settings,
        [sender_items, receiver_items]: [u64; 2],
    ) -> Self {
        assert!(
            sender_items.max(receiver_items) <= MAX_ITEMS,
            "a set has more items than MAX_ITEMS"
        );
        // mutant(circuit-malicious): drop
        settings.assert_semi_honest();
        let hints = FUNCTIONS as u64 * sender_items;
        assert!(settings.parts > 0, "there is an execution");
        let more = f64::from(scale.rarer) + (settings.parts as f64).log2();
        let cuckoo = CUCKOO[usize::from(sender_items.max(receiver_items) > LARGE)];
        let cuckoo = shifted(cuckoo, more.ceil() as i32);
        let bins = bins_for(receiver_items as usize, cuckoo);
        let slices = ((bins + scale.slice / 2) / scale.slice).max(1);
        let slice = bins.div_ceil(slices);
        // mutant(circuit-slice): `more` => `more - if $ON { 5.0 } else { 0.0 }`
        let capacity = capacity(hints, slice, bins, OVERFLOW + more);
        let slices = bins.div_ceil(slice);
        let mut parameters = Self {
            settings,
            sender_items,
            receiver_items,
            cuckoo,
            bins,
            slice,
            capacity,
            rarer: scale.rarer,
            value_bits: shifted(EQUALITY + bins.next_power_of_two().ilog2(), more.ceil() as i32),
            oprf: vole::Parameters::with_scale(
                scale,
                2 * settings.parts,
                settings.form,
                false,
                [hints, receiver_items],
            ),
            preset: settings.form.preset(capacity, slices * settings.parts as usize),
        };
        // The rounding up of the number of bins may leave a bit to spare.
        parameters.value_bits -= 1;
        let enough = f64::from(STATISTICAL) + more;
        while parameters.failure_bits() < enough && parameters.value_bits < MOST_BITS {
            parameters.value_bits += 1;
        }
        parameters
    }

    /// Number of slices.
    pub fn slices(&self) -> usize {
        if self.trivial() {
            return 0;
        }
        self.bins.div_ceil(self.slice)
    }

    pub(super) fn slice_bins(&self, slice: usize) -> Range<usize> {
        slice * self.slice..self.bins.min((slice + 1) * self.slice)
    }

    /// The shape of the encoding of the hints of a slice.
    pub(super) fn shape(&self) -> Shape {
        Shape::new(self.preset, self.capacity)
    }

    /// Correlated OTs of which the receiver has `delta`: those of gates and of products with its
    /// values.
    fn gates(&self) -> u64 {
        let Settings { payload, weights, products, .. } = self.settings;
        // Products are made in whole bytes of bits.
        let slots = (self.bins + 8 * self.slices()) as u64;
        let each =
            2 * (u64::from(self.value_bits) - 1) + (payload + weights + 64 * products) as u64;
        slots * each + (COMPARISONS * gmw::COMPARISON) as u64
    }

    /// The plan of the correlated OTs of which the receiver has `delta`, with its predicted cost.
    pub(super) fn gate_plan(&self) -> Candidate {
        self.candidate(self.gates())
    }

    /// The plan of those of which the sender has `delta`: one for each value of a bin and each
    /// selection. `None` with neither.
    pub(super) fn mask_plan(&self) -> Option<Candidate> {
        let Settings { payload, selections, .. } = self.settings;
        let total = (self.bins * (payload + selections)) as u64;
        (total > 0).then(|| self.candidate(total))
    }

    fn candidate(&self, total: u64) -> Candidate {
        let options = PlanOptions {
            total: Some(total),
            security: self.settings.form.security(),
            link: LINK,
            protocol: self.settings.form.protocol(),
            ..PlanOptions::default()
        };
        let candidates = Plan::candidates(Kind::Cot, &options);
        let best =
            candidates.expect("correlated OT has a plan for either security").into_iter().next();
        best.expect("`candidates` returns one plan at least")
    }

    /// Bytes of a run in both directions, up to the shares of the last slice, without
    /// [`multiply`](super::Sender::multiply) and [`select`](super::Sender::select), but with the
    /// setup for both: predicted, within 5 per cent from 10^4 items on, and
    /// too high for fewer.
    pub fn bytes(&self) -> u64 {
        let agreed = 2 * (32 + 64 + 16);
        if self.trivial() {
            return agreed;
        }
        let (correlations, slices) = self.predicted();
        agreed + correlations + self.oprf.encoding_bytes() + slices
    }

    /// Bytes of the correlations, and of all slices without them.
    pub(super) fn predicted(&self) -> (u64, u64) {
        if self.trivial() {
            return (0, 0);
        }
        let masks = self.mask_plan().map_or(0.0, |plan| plan.bytes);
        let correlations = self.oprf.correlation_bytes() + (self.gate_plan().bytes + masks) as u64;
        let slices = (0..self.slices()).map(|slice| self.slice_bytes(self.slice_bins(slice).len()));
        (correlations, slices.sum())
    }

    /// Bytes of [`multiply`](super::Sender::multiply) of `slots` slots, in both directions, beside
    /// the setup.
    pub const fn product_bytes(slots: usize) -> u64 {
        slots as u64 * (8 + 64 * 8)
    }

    /// Bytes of [`select`](super::Sender::select) among `slots` slots, in both directions, beside
    /// the setup.
    pub const fn selection_bytes(slots: usize) -> u64 {
        slots.div_ceil(8) as u64 + 8 * slots as u64
    }

    /// Bytes of a slice of `bins` bins, without correlations.
    fn slice_bytes(&self, bins: usize) -> u64 {
        let Settings { payload, weights, .. } = self.settings;
        let columns = self.shape().columns;
        let hints = packed::bytes(columns, self.value_bits) + 8 * payload * columns;
        let mut bits = self.value_bits as usize;
        let mut gates = 0;
        while bits > 1 {
            // The first level has messages from one party only.
            let messages = if bits == self.value_bits as usize { 2 } else { 4 };
            gates += messages * (bins * (bits / 2)).div_ceil(8);
            bits -= bits / 2;
        }
        let bytes = bins.div_ceil(8);
        let products = bytes * payload + (payload + weights) * (bytes + 64 * bytes);
        (hints + gates + products) as u64
    }

    /// The assumptions that the correlations rest on, with their level, and the adversary.
    pub fn assumption(&self) -> String {
        format!(
            "semi-honest parties; OPRF: {}; gates: {}",
            self.oprf.plan().assumption(),
            self.gate_plan().plan.assumption()
        )
    }

    /// Bytes of memory that the sender needs for what grows with the sets, then the receiver, at
    /// most at one time, beside a slice, the items and a round of the correlated OTs.
    pub fn memory(&self) -> [u64; 2] {
        /// Of an item of the sender: a digest, its three bins, and three times the number and the
        /// output of a hint; of one of the receiver: a digest and an output.
        const ITEM: [u64; 2] = [16 + 12 + 3 * (4 + 16), 16 + 16];
        /// Of a bin: the item and its function.
        const BIN: u64 = 4 + 1;
        use volery_channel::Role::{Receiver, Sender};
        let columns = |count: usize, items: u64| 8 * count as u64 * items;
        let oprf = [Sender, Receiver].map(|role| self.oprf.memory(role, false, false));
        [
            self.sender_items * ITEM[0]
                + columns(self.settings.payload, self.sender_items)
                + oprf[0],
            self.receiver_items * ITEM[1]
                + self.bins as u64 * BIN
                + columns(self.settings.weights, self.receiver_items)
                + oprf[1],
        ]
    }

    /// Whether a set is empty, so that the run ends once both parties know the sizes.
    #[must_use]
    pub const fn trivial(&self) -> bool {
        self.sender_items == 0 || self.receiver_items == 0
    }

    /// The failures that honest parties may meet in one execution, each cause once.
    pub fn failures(&self) -> Vec<Failure> {
        let slices = self.bins.div_ceil(self.slice) as f64;
        let mut failures = self.oprf.failures();
        // The last is that of the tags, of which there are none.
        failures.pop();
        failures.extend([
            Failure::error(
                "the receiver's items do not fit into the cuckoo table",
                match self.receiver_items {
                    0..=3 => f64::INFINITY,
                    _ => f64::from(self.cuckoo),
                },
            ),
            Failure::error(
                "a slice has too many hints",
                if slices == 1.0 {
                    f64::INFINITY
                } else {
                    OVERFLOW + f64::from(self.rarer) + (self.settings.parts as f64).log2()
                },
            ),
            Failure::error(
                "the hints of a slice cannot be encoded",
                self.preset.failure_bits(self.capacity) - slices.log2(),
            ),
            Failure::wrong_result(
                "the values of a bin are equal and its items are not",
                f64::from(self.value_bits) - (self.bins as f64).log2(),
            ),
        ]);
        failures
    }

    /// The negative logarithm of the probability that anything of [`failures`](Self::failures)
    /// happens.
    pub fn failure_bits(&self) -> f64 {
        Failure::sum(self.failures())
    }

    /// The numbers that determine the messages of a run.
    pub(super) fn words(&self) -> [u64; 7] {
        [
            self.sender_items,
            self.receiver_items,
            self.bins as u64,
            self.slice as u64,
            self.capacity as u64,
            self.value_bits.into(),
            self.shape().columns as u64,
        ]
    }
}

impl fmt::Display for Parameters {
    /// Describes the parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bins, slice, value_bits, .. } = self;
        write!(
            f,
            "semi-honest, {bins} bins in slices of {slice}, values of {value_bits} bits, hints in \
             {} columns a slice, correlated OT {}",
            self.shape().columns,
            self.gate_plan().plan.describe()
        )
    }
}

/// The smallest number of hints that no slice of `slice` of the `bins` bins exceeds, but with
/// probability `2^-bits`, if each item has hints in three different bins.
///
/// An item's bins are drawn without replacement, so that its hints in a slice have a moment
/// generating function below that of as many independent ones (Hoeffding, *Probability inequalities
/// for sums of bounded random variables*, 1963, section 6), and the Chernoff bound of the binomial
/// law holds. The slices are added (the union bound).
fn capacity(hints: u64, slice: usize, bins: usize, bits: f64) -> usize {
    if slice == bins {
        return hints as usize;
    }
    let (n, share) = (hints as f64, slice as f64 / bins as f64);
    let limit = -(bits + (bins as f64 / slice as f64).ceil().log2());
    let log_tail = |count: u64| {
        let part = count as f64 / n;
        let other = match 1.0 - part {
            0.0 => 0.0,
            rest => rest * (rest / (1.0 - share)).ln(),
        };
        -n * (part * (part / share).ln() + other) * std::f64::consts::LOG2_E
    };
    let (mut low, mut high) = ((n * share).ceil() as u64, hints);
    while low < high {
        let middle = low + (high - low) / 2;
        if log_tail(middle + 1) <= limit {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low as usize
}
