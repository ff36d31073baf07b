//! The number of common items as one of the protocols for matching.

use std::fmt;

use volery_channel::{Channel, Role};
use volery_pcg::Security;
use volery_primitives::ristretto::ENCODED;

use super::{Parameters, bytes, receive, send};
use crate::circuit;
use crate::error::Result;
use crate::failure::{Failure, equal_bits};
use crate::matching::{self, Cost, Matching, Outcome, Output, PEER_FOLLOWS, Party, Task};
use crate::watch::Watch;

/// The number of common items by Diffie-Hellman. Its receiver is the party that learns the number.
#[derive(Clone, Copy, Debug)]
pub struct Count;

/// The party that learns the number.
fn counting(output: &Output) -> Option<Role> {
    match output {
        Output::Totals(totals) => totals.counts,
        Output::Items { .. } => None,
    }
}

/// The sizes in the roles of the protocol.
fn sizes(task: &Task) -> [u64; 2] {
    task.sizes(counting(&task.output).expect("a party learns the number of common items"))
}

impl Matching for Count {
    fn name(&self) -> &'static str {
        "dh"
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn gives(&self, output: &Output) -> bool {
        counting(output).is_some()
    }

    fn most_items(&self) -> u64 {
        circuit::MAX_ITEMS
    }

    fn parameters(&self, task: &Task, _parts: u64) -> Box<dyn matching::Parameters> {
        let [sender, receiver] = sizes(task);
        Box::new(Parameters::new(sender, receiver))
    }

    fn cost(&self, task: &Task) -> Cost {
        let [sender, receiver] = sizes(task);
        let (sent, received) = bytes(sender, receiver);
        let mut work = 0.0;
        if sender > 0 && receiver > 0 {
            work = 3_000.0 * sender as f64 + 8_500.0 * receiver as f64;
        }
        Cost { bytes: sent + received, trips: 2.0, fixed: 0.3, work }
    }

    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let counting = counting(&party.output).expect("a party learns the number of common items");
        let Party { session, rng, items, .. } = party;
        let (parameters, count) = if party.role == counting {
            let (parameters, count) = receive((session, rng), items, watch, channel)?;
            (parameters, Some(count))
        } else {
            (send((session, rng), items, watch, channel)?, None)
        };
        Ok(Outcome { count, ..Outcome::with(parameters) })
    }
}

impl matching::Parameters for Parameters {
    fn sizes(&self) -> [u64; 2] {
        [self.sender_items, self.receiver_items]
    }

    fn assumption(&self) -> String {
        format!(
            "{PEER_FOLLOWS}; decisional Diffie-Hellman in Ristretto255, BLAKE3 as a random oracle, \
             no LPN; 128 bits, 40 statistical"
        )
    }

    fn failures(&self) -> Vec<Failure> {
        vec![Failure::wrong_result(
            "two different items have the same tag",
            equal_bits(self.tag, [self.sender_items, self.receiver_items]),
        )]
    }

    fn traffic(&self, _: Option<usize>) -> [u64; 4] {
        if self.sender_items == 0 || self.receiver_items == 0 {
            return [0; 4];
        }
        [32 * self.receiver_items, self.tags().bytes(), 0, 0]
    }

    fn memory(&self, role: Role, output: &Output) -> u64 {
        /// Of an item: its block, and its tag.
        const ITEM: u64 = 16 + 16;
        match Some(role) == counting(output) {
            true => self.receiver_items * ITEM,
            false => self.sender_items * ITEM + self.receiver_items * ENCODED as u64,
        }
    }
}

impl fmt::Display for Parameters {
    /// Describes the parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ristretto255, tags of {} bits", self.tag)
    }
}
