//! Diffie-Hellman for small sets as one of the protocols for matching.

use std::fmt;

use volery_channel::{Channel, Role};
use volery_pcg::Security;

use super::{MAX_ITEMS, Parameters, TAG, bytes, receive, send};
use crate::error::Result;
use crate::failure::{Failure, equal_bits};
use crate::matching::{self, Call, Cost, Matching, Outcome, Output, PEER_DEVIATES, Party, Task};
use crate::watch::Watch;

/// Set intersection and keyword search for small sets by Diffie-Hellman.
#[derive(Clone, Copy, Debug)]
pub struct Dh;

impl Matching for Dh {
    fn name(&self) -> &'static str {
        "dh"
    }

    fn security(&self) -> Security {
        Security::Malicious
    }

    fn gives(&self, output: &Output) -> bool {
        matches!(output, Output::Items { both: false, .. })
    }

    fn most_items(&self) -> u64 {
        MAX_ITEMS
    }

    fn parameters(&self, task: &Task, _parts: u64) -> Box<dyn matching::Parameters> {
        Box::new(Parameters {
            sender_items: task.sender_items,
            receiver_items: task.receiver_items,
        })
    }

    fn cost(&self, task: &Task) -> Cost {
        let search = matches!(task.output, Output::Items { search: true, .. });
        let (sender, receiver) = (task.sender_items, task.receiver_items);
        let (sent, received) = bytes(sender, receiver, search.then_some(0));
        let mut work = 0.0;
        if sender > 0 && receiver > 0 {
            let (sender, receiver) = (sender as f64, receiver as f64);
            // The last is for the pairs of an item of the receiver and one of either set.
            work = 3_800.0 * sender + 18_000.0 * receiver + 2.2 * receiver * (sender + receiver);
        }
        Cost { bytes: sent + received, trips: 2.0, fixed: 0.2, work }
    }

    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let (call, both) = party.call();
        assert!(!both, "dh gives the result to the receiver only");
        let Party { session, rng, items, .. } = party;
        let own = (session, rng);
        match call {
            Call::SendIntersect => send(own, items, None, watch, channel),
            Call::ReceiveIntersect => receive(own, items, false, watch, channel),
            Call::Answer(values) => send(own, items, Some(values), watch, channel),
            Call::Search => receive(own, items, true, watch, channel),
        }
    }
}

impl matching::Parameters for Parameters {
    fn sizes(&self) -> [u64; 2] {
        [self.sender_items, self.receiver_items]
    }

    fn assumption(&self) -> String {
        format!(
            "{PEER_DEVIATES}; gap Diffie-Hellman in Curve25519, BLAKE3 as a random oracle, an \
             eight-round Feistel network of it as an ideal permutation, no LPN; 128 bits, {:.0} \
             statistical",
            self.statistical_bits().floor()
        )
    }

    fn failures(&self) -> Vec<Failure> {
        vec![Failure::wrong_result(
            "two different items have the same tag",
            equal_bits(8 * TAG as u32, [self.sender_items, self.receiver_items]),
        )]
    }

    fn traffic(&self, longest: Option<usize>) -> [u64; 4] {
        let (sender, receiver) = (self.sender_items, self.receiver_items);
        if sender == 0 || receiver == 0 {
            return [0; 4];
        }
        let values = longest.map_or(0, |longest| sender * (longest as u64 + 2));
        [32 * receiver, 16 * sender, values, 0]
    }

    /// There is no bound for 2^128 evaluations.
    fn most_items(&self, log_queries: u32) -> Option<f64> {
        let bounded = self.receiver_items > 0 && log_queries <= 80;
        bounded.then(|| 2.8 + 2.0 / self.receiver_items as f64)
    }

    /// Without the values of a search.
    fn memory(&self, role: Role, _: &Output) -> u64 {
        /// Of an element of the field.
        const ELEMENT: u64 = 40;
        /// Of an item: its digest, as an element and a hash.
        const DIGEST: u64 = ELEMENT + 32;
        /// Of an item of the receiver: its secret, and the representative of the public key.
        const KEY: u64 = 32 + ELEMENT;
        let Self { sender_items, receiver_items } = *self;
        if sender_items == 0 || receiver_items == 0 {
            return 0;
        }
        match role {
            // Values, and two strings of each, beside the polynomial twice.
            Role::Sender => {
                sender_items * (DIGEST + ELEMENT + 64) + receiver_items * (32 + ELEMENT)
            }
            // The tree of products, and the polynomials that are made from it: counted.
            Role::Receiver => {
                let elements = u64::from(receiver_items.ilog2()) + 16;
                receiver_items * (DIGEST + KEY + elements * ELEMENT) + sender_items * TAG as u64
            }
        }
    }
}

impl fmt::Display for Parameters {
    /// Describes the parameters, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let degree = self.receiver_items;
        write!(f, "Curve25519, polynomial of degree {degree}, tags of 128 bits")
    }
}
