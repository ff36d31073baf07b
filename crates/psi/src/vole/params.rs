//! The parameters of a run, from the sizes of the two sets, and what may go wrong in it.

use std::fmt;
use std::str::FromStr;

use volery_channel::Role;
use volery_okvs::{Preset, Shape, bin_capacity};
use volery_pcg::lpn::estimate::Field;
use volery_pcg::{Candidate, Kind, Link, Plan, PlanOptions, Protocol, Security};

use super::batch::{PREPARED, at_once};
use crate::failure::{Failure, STATISTICAL, Scale, equal_bits, shifted};
use crate::items;
use crate::lookup::LENGTH;
use crate::params::MAX_ITEMS;
use crate::rice::Rice;

/// Bins whose vector OLE is extended, and whose encodings are sent, at a time.
pub(crate) const BATCH: usize = 4;

/// Bits, as negative logarithms, of the failures that the parameters choose: two differing items
/// with one tag; two with one hash value; a bin with too many items; a bin that cannot be encoded,
/// where there is a choice. All stay below 2^-40 in sum.
const TAG: u32 = 41;
const VALUE: u32 = 42;
const OVERFLOW: f64 = 44.0;
const ENCODED: f64 = 43.0;

/// The forms of the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// Secure against malicious parties: values and tags of 128 bits, hash functions that are drawn
    /// after the vector OLE is checked.
    #[default]
    Malicious,
    /// Semi-honest: values of 128 bits, tags as short as the sizes allow.
    Fast,
    /// Semi-honest: values and tags as short as the sizes allow, a smaller and slower encoding, and
    /// dual LPN ([`Protocol::LowCommunication`]), for whose code the published
    /// distance is an estimate: for users who name it.
    Low,
}

impl Form {
    /// All forms.
    pub const ALL: [Self; 3] = [Self::Malicious, Self::Fast, Self::Low];

    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malicious => "malicious",
            Self::Fast => "fast",
            Self::Low => "low-communication",
        }
    }

    /// The adversary.
    #[must_use]
    pub const fn security(self) -> Security {
        match self {
            Self::Malicious => Security::Malicious,
            Self::Fast | Self::Low => Security::SemiHonest,
        }
    }

    /// The encoding of `bins` bins of at most `capacity` items: of the fast ones the smallest that
    /// fails rarely enough.
    pub(crate) fn preset(self, capacity: usize, bins: usize) -> Preset {
        match self {
            Self::Malicious | Self::Fast if Preset::Band9.holds(capacity, bins, ENCODED) => {
                Preset::Band9
            }
            Self::Malicious | Self::Fast => Preset::Band10,
            Self::Low => Preset::Band5,
        }
    }

    /// The protocols of correlations.
    pub(crate) const fn protocol(self) -> Protocol {
        match self {
            Self::Malicious | Self::Fast => Protocol::Auto,
            Self::Low => Protocol::LowCommunication,
        }
    }

    /// The link for which the vector OLE is planned. Fixed, so that both parties have one plan.
    pub(crate) fn link(self) -> Link {
        match self {
            Self::Malicious | Self::Fast => Link::default(),
            Self::Low => Link { bits_per_second: 1e7, round_trip: 0.02 },
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|form| form.name() == name);
        // no mutant: a name that the caller gives
        found.ok_or_else(|| format!("the forms are {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// The parameters of one run. Both parties compute them from the sizes alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// The form of the protocol.
    pub form: Form,
    /// Items of the sender.
    pub sender_items: u64,
    /// Items of the receiver.
    pub receiver_items: u64,
    /// Whether the parties exchange their parts in the OPRF, so that the smaller set is encoded.
    /// Only where both learn the result.
    pub exchanged: bool,
    /// Bins into which both sets are divided.
    pub bins: usize,
    /// `m`, columns of the encoding of a bin.
    pub columns: usize,
    /// `l`, bits of a value of the encoding.
    pub value_bits: u32,
    /// `t`, bits of a tag.
    pub tag_bits: u32,
    /// Bits by which each failure is rarer than in a run of its own: the binary logarithm of the
    /// number of executions that share a failure probability of `2^-40`. Below zero in tests alone,
    /// which count failures.
    pub margin: i32,
    /// The encoding of a bin.
    preset: Preset,
}

impl Parameters {
    /// The parameters for two set sizes; `may_exchange` in an intersection of which both learn the
    /// result.
    ///
    /// # Panics
    /// If a size is above [`MAX_ITEMS`].
    #[must_use]
    pub fn new(form: Form, may_exchange: bool, sender_items: u64, receiver_items: u64) -> Self {
        Self::one_of(1, form, may_exchange, sender_items, receiver_items)
    }

    /// [`new`](Self::new) as one of `parts` executions that share a failure probability. Panics as
    /// [`new`](Self::new) does.
    #[must_use]
    pub fn one_of(
        parts: u64,
        form: Form,
        may_exchange: bool,
        sender_items: u64,
        receiver_items: u64,
    ) -> Self {
        let sizes = [sender_items, receiver_items];
        Self::with_scale(Scale::RUN, parts, form, may_exchange, sizes)
    }

    /// [`one_of`](Self::one_of) at this scale.
    pub(crate) fn with_scale(
        scale: Scale,
        parts: u64,
        form: Form,
        may_exchange: bool,
        [sender_items, receiver_items]: [u64; 2],
    ) -> Self {
        assert!(
            sender_items.max(receiver_items) <= MAX_ITEMS,
            "a set has more items than MAX_ITEMS"
        );
        let exchanged = may_exchange && sender_items < receiver_items;
        let pairs = u128::from(sender_items.max(1)) * u128::from(receiver_items.max(1));
        let pairs = pairs.next_power_of_two().ilog2();
        let mut parameters = Self {
            form,
            sender_items,
            receiver_items,
            exchanged,
            bins: 1,
            columns: 0,
            value_bits: 128,
            tag_bits: 128,
            margin: scale.margin(parts),
            preset: Preset::Band10,
        };
        if form != Form::Malicious {
            parameters.tag_bits = shifted(TAG + pairs, parameters.margin);
        }
        if form == Form::Low {
            parameters.value_bits = shifted(VALUE + pairs, parameters.margin);
        }
        let [_, encoded] = parameters.sides();
        parameters.bins = ((encoded + scale.bin / 2) / scale.bin).max(1) as usize;
        let capacity = parameters.capacity(encoded);
        let encodings = parameters.bins * parts.next_power_of_two() as usize;
        parameters.preset = form.preset(capacity, encodings);
        parameters.columns = Shape::new(parameters.preset, capacity).columns;
        // Beyond 2^28 items the encodings fail so often that less is left for the tags.
        let enough = f64::from(STATISTICAL) + f64::from(parameters.margin);
        while parameters.tag_bits < 128 && parameters.failure_bits() < enough {
            parameters.tag_bits += 1;
        }
        parameters
    }

    /// Items of the party that evaluates the OPRF on its set, and of the one that encodes its set.
    pub(crate) fn sides(&self) -> [u64; 2] {
        let (sender, receiver) = (self.sender_items, self.receiver_items);
        match self.exchanged {
            false => [sender, receiver],
            true => [receiver, sender],
        }
    }

    /// The most items of a set of `items` in a bin.
    pub(crate) fn capacity(&self, items: u64) -> usize {
        // mutant(vole-bin): `(self.margin)` => `$0 - if $ON { 3.0 } else { 0.0 }`
        let bits = OVERFLOW + f64::from(self.margin);
        bin_capacity(items, self.bins as u64, bits)
    }

    /// The shape of the encoding of a bin.
    pub(crate) fn shape(&self) -> Shape {
        Shape::new(self.preset, self.capacity(self.sides()[1]))
    }

    /// The vector OLE whose `u` masks the encodings.
    pub(crate) fn plan(&self) -> Plan {
        self.candidate().plan
    }

    /// The plan of the vector OLE, with its predicted cost.
    pub(crate) fn candidate(&self) -> Candidate {
        let options = PlanOptions {
            total: Some((self.bins * self.columns) as u64),
            // mutant(vole-plan): `self.form.security()` => `Security::SemiHonest`
            security: self.form.security(),
            link: self.form.link(),
            protocol: self.form.protocol(),
            value_bits: (self.value_bits < 128).then_some(self.value_bits),
            ..PlanOptions::default()
        };
        let candidates = Plan::candidates(Kind::Vole(Field::Gf128), &options);
        let best = candidates.expect("there are plans for gf128").into_iter().next();
        best.expect("`candidates` returns one plan at least")
    }

    /// Bytes of a run in both directions, up to the result: predicted, within 5 per cent from 10^4
    /// items on, and too high for fewer.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let agreed = 2 * (32 + 64 + 16);
        if self.trivial() {
            return agreed;
        }
        let tosses = match self.form {
            Form::Malicious => 208 * self.bins.div_ceil(BATCH) as u64,
            Form::Fast | Form::Low => 0,
        };
        let vole = self.candidate().bytes as u64;
        agreed + tosses + vole + self.encoding_bytes() + self.tag_bytes()
    }

    /// The coding of the evaluating party's tags.
    pub(crate) fn tags(&self) -> Rice {
        Rice::new(self.sides()[0], self.tag_bits)
    }

    /// Bytes of all encodings, from the encoding party to the other; without the vector OLE.
    #[must_use]
    pub fn encoding_bytes(&self) -> u64 {
        if self.trivial() {
            return 0;
        }
        let bin = (self.columns as u64 * u64::from(self.value_bits)).div_ceil(8);
        self.bins as u64 * bin
    }

    /// Bytes of all tags, the other way.
    #[must_use]
    pub fn tag_bytes(&self) -> u64 {
        if self.trivial() {
            return 0;
        }
        self.tags().bytes()
    }

    /// Bytes of the vector OLE, both ways, by the model of [`Candidate`].
    #[must_use]
    pub fn correlation_bytes(&self) -> u64 {
        if self.trivial() {
            return 0;
        }
        self.candidate().bytes as u64
    }

    /// Bytes of the values in a search, from the sender, if the longest has `longest` bytes.
    #[must_use]
    pub const fn value_bytes(&self, longest: usize) -> u64 {
        if self.trivial() {
            return 0;
        }
        self.sender_items * (LENGTH + longest) as u64
    }

    /// Bytes of memory that the party in this role needs for what grows with the sets, at most at
    /// one time: its digests, and a batch or the search for tags, whichever is larger. `search`:
    /// of keyword search; `both`: of a run with [`Settings::both`](super::Settings::both). The
    /// items themselves are not included, nor the tables of the vector OLE where they do not grow.
    #[must_use]
    pub fn memory(&self, role: Role, search: bool, both: bool) -> u64 {
        /// Of a place: the digest, and the number of the item.
        const PLACE: u64 = 16 + 4;
        /// Of a column or a value.
        const BLOCK: u64 = 16;
        /// Blocks of a column in the vector OLE of the low-communication form. Counted.
        const EXPANDED: u64 = 5;
        /// Of the place of an output while all are sorted, and of that of a sent tag.
        const SORTED: u64 = 4;
        const PLACED: u64 = 4;
        /// Of a common item.
        const FOUND: u64 = 8;
        if self.trivial() {
            return 0;
        }
        let [evaluated, encoded] = self.sides();
        let encodes = (role == Role::Receiver) != self.exchanged;
        let own = if encodes { encoded } else { evaluated };
        let places = self.bins as u64 * self.capacity(own) as u64;
        let set = places * (PLACE + if search { BLOCK } else { 0 });
        let batch = self.bins.min(BATCH) as u64;
        let columns = batch * self.columns as u64;
        let band = self.preset.width() as u64 / 8;
        let row = 16 + band;
        let items = (own * batch).div_ceil(self.bins as u64);
        let (work, tags) = if encodes {
            // `u`, `v`, an encoding of each bin at the same time with its pivots, and the values.
            let found = FOUND * evaluated.min(encoded);
            ((3 * BLOCK + band) * columns + (row + BLOCK) * items, SORTED * places + found)
        } else {
            // The rows of a bin, or of a batch, before the encoding arrives.
            let bins = match self.form {
                Form::Malicious => batch,
                Form::Fast | Form::Low => 1,
            };
            let items = own.div_ceil(self.bins as u64);
            let prepared = bins * items.min(PREPARED as u64);
            let outputs = BLOCK * at_once(items as usize) as u64;
            let placed = if search || both { SORTED * places + PLACED * own } else { 0 };
            (BLOCK * columns + row * prepared + outputs, placed)
        };
        let expanded = match self.form {
            Form::Low => EXPANDED * BLOCK * columns,
            Form::Malicious | Form::Fast => 0,
        };
        set + (expanded + work).max(tags)
    }

    /// Whether a set is empty, so that the run ends once both parties know the sizes.
    #[must_use]
    pub const fn trivial(&self) -> bool {
        self.sender_items == 0 || self.receiver_items == 0
    }

    /// The failures that honest parties may meet, each cause once for the whole run.
    #[must_use]
    pub fn failures(&self) -> Vec<Failure> {
        let [evaluated, encoded] = self.sides().map(|items| items.max(1) as f64);
        let sizes = self.sides();
        let bins = (self.bins as f64).log2();
        let capacity = self.capacity(encoded as u64);
        vec![
            Failure::wrong_result(
                "two different items have the same digest of 126 bits",
                items::equal_bits(items::BITS, evaluated + encoded),
            ),
            Failure::error(
                "a bin overflows",
                // Of either set.
                if self.bins == 1 {
                    f64::INFINITY
                } else {
                    OVERFLOW + f64::from(self.margin) - 1.0
                },
            ),
            Failure::error("a bin cannot be encoded", self.preset.failure_bits(capacity) - bins),
            Failure::wrong_result(
                "two different items have the same hash value",
                equal_bits(self.value_bits, sizes),
            ),
            Failure::wrong_result(
                "two different items have the same tag",
                equal_bits(self.tag_bits, sizes),
            ),
        ]
    }

    /// The negative logarithm of the probability that anything of [`failures`](Self::failures)
    /// happens.
    #[must_use]
    pub fn failure_bits(&self) -> f64 {
        Failure::sum(self.failures())
    }

    /// The most items, as a multiple of its stated number, that a malicious receiver may have
    /// tested with `2^log_queries` evaluations of the hash function before it fixes its encoding;
    /// `None` in a semi-honest form.
    ///
    /// The stated number of items is enlarged by the columns beyond it, which it may choose freely,
    /// and by overfitting: for `n' = r*m` items in `m` columns of `l` bits a union bound over all
    /// encodings and all subsets of the queries asks for
    /// `l >= r/(r-1) * (log2 Q + log2 e - log2(r*m)) + 40/(r*m - m)`, and then holds but with
    /// probability 2^-40; the result is the least such `r`, times `m/n`. Small sets have many
    /// columns an item: 256 more than items.
    ///
    /// Items of one digest count as one. A party of either role that evaluates the hash of the
    /// items 2^63 times, in any time after step 0, finds two.
    #[must_use]
    pub fn most_items(&self, log_queries: f64) -> Option<f64> {
        if self.form != Form::Malicious || self.trivial() {
            return None;
        }
        let (l, m) = (f64::from(self.value_bits), self.columns as f64);
        let holds = |r: f64| {
            let free = log_queries + std::f64::consts::LOG2_E - (r * m).log2();
            l >= r / (r - 1.0) * free + 40.0 / (r * m - m)
        };
        let (mut low, mut high) = (1.0_f64, 2.0);
        while !holds(high) {
            high *= 2.0;
        }
        while high - low > 1e-6 {
            let middle = f64::midpoint(low, high);
            if holds(middle) {
                high = middle;
            } else {
                low = middle;
            }
        }
        let n = self.receiver_items as f64 / self.bins as f64;
        Some(high * m / n)
    }

    /// The numbers that determine the messages of a run.
    pub(crate) fn words(&self) -> [u64; 6] {
        [
            self.form as u64,
            u64::from(self.exchanged),
            self.bins as u64,
            self.columns as u64,
            self.value_bits.into(),
            self.tag_bits.into(),
        ]
    }
}

impl fmt::Display for Parameters {
    /// Describes the parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bins, columns, value_bits, tag_bits, .. } = self;
        let width = self.shape().width;
        let several = if *bins == 1 { "" } else { "s" };
        write!(
            f,
            "{bins} bin{several} of {columns} columns, band of {width} bits, values of {value_bits} bits, \
             tags of {tag_bits} bits, vector OLE {}",
            self.plan().describe()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All sizes from one item to the most, and 1 to 1000.
    fn sizes() -> impl Iterator<Item = (u64, u64)> {
        let equal = (0..=28).map(|log| (1 << log, 1 << log));
        let odd = [(1, 1_000_000), (1_000_000, 1), (6789, 7890), (1000, 1 << 24)];
        equal.chain(odd).chain([
            (MAX_ITEMS, MAX_ITEMS >> 5),
            (1, MAX_ITEMS),
            (MAX_ITEMS, MAX_ITEMS),
        ])
    }

    #[test]
    fn all_failures_together_stay_below_2_to_the_minus_40() {
        for form in Form::ALL {
            for (sender, receiver) in sizes() {
                let parameters = Parameters::new(form, false, sender, receiver);
                let bits = parameters.failure_bits();
                assert!(bits >= 40.0, "{form} {sender} {receiver}: {bits}");
                assert!(
                    form != Form::Malicious
                        || parameters.value_bits == 128 && parameters.tag_bits == 128
                );
            }
        }
    }

    /// The table of SECURITY.md; without a deadline for the encoding there is no bound to speak of.
    #[test]
    fn a_malicious_receiver_is_bounded() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../SECURITY.md");
        let page = std::fs::read_to_string(path).expect("the page is there");
        for log in [16, 20, 24] {
            let parameters = Parameters::new(Form::Malicious, false, 1 << log, 1 << log);
            let [a, b, c] = [60.0, 80.0, 128.0].map(|queries| {
                let most = parameters.most_items(queries).expect("malicious");
                format!("{most:.2}")
            });
            let row = format!("| 2^{log} | {a} | {b} | {c} |");
            assert!(page.contains(&row), "{row}");
        }
        // Hundreds of columns for one item.
        let one = Parameters::new(Form::Malicious, false, 1, 1);
        assert!(one.most_items(60.0).expect("malicious") > 256.0);
        let fast = Parameters::new(Form::Fast, false, 5, 5);
        assert_eq!(fast.most_items(80.0), None);
    }

    /// The bound is the least number for which the count of encodings and choices of items holds.
    #[test]
    fn the_bound_on_items_is_that_of_the_count() {
        for (log, queries) in [(0, 60.0), (10, 80.0), (16, 60.0), (19, 128.0)] {
            let parameters = Parameters::new(Form::Malicious, false, 1 << log, 1 << log);
            let m = parameters.columns as f64;
            let most = parameters.most_items(queries).expect("malicious") * f64::from(1 << log);
            // log2 of: encodings, times choices of items, times the chance of each.
            let expected = |items: f64| {
                let choices = items * (queries + std::f64::consts::LOG2_E - items.log2());
                128.0 * m + choices - 128.0 * items
            };
            assert!(expected(most * 1.001) < -40.0 && expected(most * 0.999) > -40.0);
        }
    }
}
