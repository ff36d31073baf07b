//! The choice of a protocol for totals over the common items, by the same model: circuit-PSI, and
//! for the number of all common items alone [`count`].
//!
//! Never chosen, and so only by name: [`Form::Low`] of circuit-PSI.

use std::fmt;

use volery_channel::Link;

use crate::circuit::{self, Settings};
use crate::count;
use crate::vole::Form;

/// Bytes for each slot of a product, beyond [`circuit::Parameters::bytes`], and for eight slots of
/// a selection.
const PRODUCT: u64 = 520;
const SELECTIONS: u64 = 65;

/// A protocol for totals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Protocol {
    /// [`circuit`] in one of its forms: any total.
    Circuit(Form),
    /// [`count`]: the number of common items.
    Dh,
}

/// What a protocol is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Items of the sender, at most [`circuit::MAX_ITEMS`]; in [`circuit`] of the party whose items
    /// are not in the bins.
    pub sender_items: u64,
    /// Items of the receiver, at most as many.
    pub receiver_items: u64,
    /// Values of circuit-PSI; its form is that of the protocol.
    pub settings: Settings,
    /// Comparisons with a minimum.
    pub comparisons: u64,
}

/// A protocol for a task, with its cost by the model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// The protocol.
    pub protocol: Protocol,
    /// Seconds from the handshake to the result.
    pub seconds: f64,
    /// Bytes sent, in both directions.
    pub bytes: u64,
}

impl Protocol {
    /// The name on a command line and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Circuit(Form::Low) => "circuit-low",
            Self::Circuit(_) => "circuit",
            Self::Dh => "dh",
        }
    }

    /// Its cost for a task.
    ///
    /// # Panics
    /// If a set is larger than [`circuit::MAX_ITEMS`], or the form is the malicious one.
    #[must_use]
    pub fn candidate(self, task: &Task, link: Link) -> Candidate {
        let Task {
            sender_items,
            receiver_items,
            ..
        } = *task;
        let (bytes, trips, milliseconds, nanoseconds) = match self {
            Self::Circuit(form) => {
                let settings = Settings {
                    form,
                    ..task.settings
                };
                let parameters = circuit::Parameters::new(settings, sender_items, receiver_items);
                let bins = parameters.bins as f64;
                let slots = parameters.bins as u64;
                let more = settings.products as u64 * slots * PRODUCT
                    + settings.selections as u64 * slots.div_ceil(8) * SELECTIONS;
                let columns = settings.payload
                    + settings.weights
                    + settings.selections
                    + 64 * settings.products;
                let slices = parameters.slices() as f64;
                let work = SENDER * sender_items as f64 + (BIN + COLUMN * columns as f64) * bins;
                match parameters.trivial() {
                    true => (parameters.bytes(), 2.0, 0.0, 0.0),
                    false => (
                        parameters.bytes() + more,
                        SETUP_TRIPS
                            + SLICE_TRIPS * slices
                            + COMPARISON_TRIPS * task.comparisons as f64,
                        SETUP,
                        work,
                    ),
                }
            }
            Self::Dh => {
                let (sent, received) = count::bytes(sender_items, receiver_items);
                let (sender, receiver) = (sender_items as f64, receiver_items as f64);
                let work = match sender_items.min(receiver_items) {
                    0 => 0.0,
                    _ => DH_SENDER * sender + DH_RECEIVER * receiver,
                };
                (sent + received, 2.0, DH_SETUP, work)
            }
        };
        let seconds = 8.0 * bytes as f64 / link.bits_per_second
            + trips * link.round_trip
            + milliseconds * 1e-3
            + nanoseconds * 1e-9;
        Candidate {
            protocol: self,
            seconds,
            bytes,
        }
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Round trips of circuit-PSI: of its setup, of a slice, and of a comparison with a minimum.
const SETUP_TRIPS: f64 = 12.0;
const SLICE_TRIPS: f64 = 9.0;
const COMPARISON_TRIPS: f64 = 8.0;

/// Milliseconds of its setup.
const SETUP: f64 = 25.0;

/// Nanoseconds for an item of its sender, for a bin, and for a bin and column of values.
const SENDER: f64 = 1_200.0;
const BIN: f64 = 3_000.0;
const COLUMN: f64 = 30.0;

/// Milliseconds of the setup of [`count`], and nanoseconds for an item of either party.
const DH_SETUP: f64 = 0.2;
const DH_SENDER: f64 = 20_000.0;
const DH_RECEIVER: f64 = 40_000.0;
