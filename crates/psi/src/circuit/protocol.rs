//! Circuit-PSI as one of the protocols for matching.

use volery_channel::{Channel, Role};
use volery_pcg::Security;

use super::{MAX_ITEMS, Opener, Parameters, Receiver, Recipient, Sender, Settings, Slice};
use crate::error::Result;
use crate::failure::Failure;
use crate::matching::{self, Cost, Matching, Outcome, Output, Party, Task, Totals};
use crate::vole::Form;
use crate::watch::Watch;

/// Round trips: of the setup, of a slice with its share of the rounds of correlated OTs, and of a
/// comparison with a minimum.
const SETUP_TRIPS: f64 = 8.5;
const SLICE_TRIPS: f64 = 10.5;
const COMPARISON_TRIPS: f64 = 7.0;

/// Milliseconds of the setup.
const SETUP: f64 = 15.0;

/// Nanoseconds for an item of the sender, for a bin, and for a bin and column of values.
const SENDER: f64 = 500.0;
const BIN: f64 = 2_000.0;
const COLUMN: f64 = 30.0;

/// Circuit-PSI in one of its forms. Its receiver is the party whose items are in the bins.
#[derive(Clone, Copy, Debug)]
pub struct Circuit(pub Form);

fn totals(output: &Output) -> &Totals {
    match output {
        Output::Totals(totals) => totals,
        Output::Items { .. } => panic!("circuit-PSI gives no items"),
    }
}

impl Circuit {
    fn parameters(self, task: &Task, parts: u64) -> Parameters {
        let totals = totals(&task.output);
        let settings = Settings { form: self.0, parts, ..totals.settings };
        let [sender, receiver] = task.sizes(totals.in_bins);
        Parameters::new(settings, sender, receiver)
    }
}

impl Matching for Circuit {
    fn name(&self) -> &'static str {
        match self.0 {
            Form::Low => "circuit-low",
            _ => "circuit",
        }
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn gives(&self, output: &Output) -> bool {
        matches!(output, Output::Totals(_))
    }

    fn most_items(&self) -> u64 {
        MAX_ITEMS
    }

    fn is_candidate(&self) -> bool {
        self.0 != Form::Low
    }

    fn is_for_workers(&self) -> bool {
        true
    }

    fn parameters(&self, task: &Task, parts: u64) -> Box<dyn matching::Parameters> {
        Box::new(Self::parameters(*self, task, parts))
    }

    fn cost(&self, task: &Task) -> Cost {
        let parameters = Self::parameters(*self, task, 1);
        if parameters.trivial() {
            return Cost { bytes: parameters.bytes(), trips: 2.0, ..Cost::default() };
        }
        let Settings { payload, weights, products, selections, .. } = parameters.settings;
        let bins = parameters.bins;
        let more = products as u64 * Parameters::product_bytes(bins)
            + selections as u64 * Parameters::selection_bytes(bins.next_multiple_of(8));
        let columns = payload + weights + selections + 64 * products;
        Cost {
            bytes: parameters.bytes() + more,
            trips: SETUP_TRIPS
                + SLICE_TRIPS * parameters.slices() as f64
                + COMPARISON_TRIPS * totals(&task.output).comparisons as f64,
            fixed: SETUP,
            work: SENDER * parameters.sender_items as f64
                + (BIN + COLUMN * columns as f64) * bins as f64,
        }
    }

    /// The number of common items: the sum of a column of ones, opened.
    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let Totals { in_bins, counts, .. } = *totals(&party.output);
        let counts = counts.expect("a party learns the number of common items");
        let to = match counts == in_bins {
            true => Recipient::Receiver,
            false => Recipient::Sender,
        };
        let settings =
            Settings { form: self.0, weights: 1, parts: party.parts, ..Settings::default() };
        let randomness = (party.session, party.rng);
        let mut share = 0_u64;
        let mut add = |slice: &Slice| share = share.wrapping_add(Slice::sum(&slice.weights[0]));
        let (parameters, opened) = if party.role == in_bins {
            let ones = vec![1; party.items.len()];
            let columns: &[&[u64]] = &[&ones];
            let items = party.items;
            let mut receiver =
                Receiver::setup(items, columns, settings, randomness, watch, channel)?;
            while let Some(slice) = receiver.next(channel)? {
                add(&slice);
            }
            let opened = receiver.open(&[share], to, channel)?;
            (receiver.parameters().clone(), opened)
        } else {
            let items = party.items;
            let mut sender = Sender::setup(items, &[], settings, randomness, watch, channel)?;
            while let Some(slice) = sender.next(channel)? {
                add(&slice);
            }
            let opened = sender.open(&[share], to, channel)?;
            (sender.parameters().clone(), opened)
        };
        Ok(Outcome { count: opened.map(|totals| totals[0]), ..Outcome::with(parameters) })
    }
}

impl matching::Parameters for Parameters {
    fn sizes(&self) -> [u64; 2] {
        [self.sender_items, self.receiver_items]
    }

    fn assumption(&self) -> String {
        format!("{}; {:.0} statistical", Self::assumption(self), self.statistical_bits().floor())
    }

    /// In any of the shards.
    fn failures(&self) -> Vec<Failure> {
        let more = (self.settings.parts as f64).log2();
        let mut failures = Self::failures(self);
        for failure in &mut failures {
            failure.bits -= more;
        }
        failures
    }

    /// The hints and the messages of gates in place of tags.
    fn traffic(&self, _: Option<usize>) -> [u64; 4] {
        let (correlations, slices) = self.predicted();
        [self.oprf.encoding_bytes(), slices, 0, correlations]
    }

    fn memory(&self, role: Role, output: &Output) -> u64 {
        let bins = role == totals(output).in_bins;
        Self::memory(self)[usize::from(bins)]
    }
}
