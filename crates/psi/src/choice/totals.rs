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

// The constants, for one thread a party: medians on the machine of docs/performance.md, on which
// little else ran. To measure them again:
//
//   for sizes in 4 18 18:12 12:18; do
//     cargo run --release -p volery-psi --example pair -- $sizes 5 1 circuit
//   done
//   for sizes in 4 10 14 12:8 8:12; do
//     cargo run --release -p volery-psi --example pair -- $sizes 5 1 count
//   done
//
// The round trips are those of runs of 2^4, 2^18 and 2^20 items over `volery_channel::shaped` with
// a round trip of one second. For small sets the setup takes eight fewer.

/// Round trips of circuit-PSI: of its setup, of a slice with its share of the rounds of correlated
/// OTs, and of a comparison with a minimum.
const SETUP_TRIPS: f64 = 8.5;
const SLICE_TRIPS: f64 = 10.5;
const COMPARISON_TRIPS: f64 = 7.0;

/// Milliseconds of its setup.
const SETUP: f64 = 15.0;

/// Nanoseconds for an item of its sender, for a bin, and for a bin and column of values.
const SENDER: f64 = 500.0;
const BIN: f64 = 2_000.0;
const COLUMN: f64 = 30.0;

/// Milliseconds of the setup of [`count`], and nanoseconds for an item of either party.
const DH_SETUP: f64 = 0.3;
const DH_SENDER: f64 = 3_000.0;
const DH_RECEIVER: f64 = 8_500.0;

#[cfg(test)]
mod tests {
    use volery_channel::{SessionId, run_two_parties_with_stats};
    use volery_primitives::{Block, prg::Prg};

    use super::*;

    const ALL: [Protocol; 3] = [
        Protocol::Circuit(Form::Fast),
        Protocol::Circuit(Form::Low),
        Protocol::Dh,
    ];

    fn task(sender_items: u64, receiver_items: u64) -> Task {
        Task {
            sender_items,
            receiver_items,
            settings: Settings {
                weights: 1,
                ..Settings::default()
            },
            comparisons: 0,
        }
    }

    fn link(megabits: f64) -> Link {
        Link {
            bits_per_second: megabits * 1e6,
            round_trip: if megabits < 1000.0 { 0.02 } else { 5e-4 },
        }
    }

    /// A faster link never makes a run slower, and more items, columns or comparisons never faster.
    #[test]
    fn the_model_is_monotonic() {
        for log in (0..=22).step_by(2) {
            for megabits in [1e1, 1e2, 1e3, 1e4] {
                let (small, link) = (task(1 << log, 1 << log), link(megabits));
                let faster = Link {
                    bits_per_second: 2.0 * link.bits_per_second,
                    ..link
                };
                let settings = Settings {
                    payload: 1,
                    selections: 2,
                    products: 1,
                    ..small.settings
                };
                for protocol in ALL {
                    let seconds = |task: &Task, link| protocol.candidate(task, link).seconds;
                    let one = seconds(&small, link);
                    assert!(seconds(&small, faster) < one);
                    assert!(seconds(&task(2 << log, 2 << log), link) > one);
                    let more = Task {
                        comparisons: 1,
                        settings,
                        ..small
                    };
                    assert!(protocol == Protocol::Dh || seconds(&more, link) > one);
                }
            }
        }
    }

    /// By Diffie-Hellman small sets take one round trip and no setup; large ones take longer to
    /// compute than to send by circuit-PSI.
    #[test]
    fn small_sets_are_for_dh_and_large_ones_for_the_circuit() {
        for megabits in [1e1, 1e2, 1e3, 1e4] {
            let best = |log: u32| {
                let all = [Protocol::Circuit(Form::Fast), Protocol::Dh];
                let seconds = all.map(|one| {
                    one.candidate(&task(1 << log, 1 << log), link(megabits))
                        .seconds
                });
                all[usize::from(seconds[1] < seconds[0])]
            };
            assert_eq!(best(6), Protocol::Dh, "{megabits}");
            let first = (0..=24).find(|&log| best(log) != Protocol::Dh);
            assert!(
                megabits < 100.0 || first.is_some_and(|log| log <= 20),
                "{megabits}"
            );
        }
    }

    #[test]
    fn bytes_of_dh_are_those_of_a_run() {
        let session = SessionId::from_bytes([1; 32]);
        let rng = |seed: u128| Prg::new(Block::new(seed));
        let items = |n: u32| (0..n).map(|i| i.to_string()).collect::<Vec<_>>();
        let (x, y) = (items(300), items(77));
        let ((_, stats), _) = run_two_parties_with_stats(
            |channel| count::Sender::new(session, rng(1)).count(&x, &mut (), channel),
            |channel| count::Receiver::new(session, rng(2)).count(&y, &mut (), channel),
        );
        let candidate = Protocol::Dh.candidate(&task(300, 77), Link::default());
        assert_eq!(candidate.bytes, stats.bytes_sent + stats.bytes_received);
    }

    #[test]
    fn empty_sets_cost_next_to_nothing() {
        for (sender, receiver) in [(0, 0), (0, 1 << 20), (1 << 20, 0)] {
            for protocol in ALL {
                let candidate = protocol.candidate(&task(sender, receiver), Link::default());
                assert!(candidate.seconds < 0.1 && candidate.bytes < 1000);
            }
        }
    }
}
