//! BaRK-OPRF set intersection and keyword search as one of the protocols for matching: modules
//! [`intersect`](crate::intersect) and [`lookup`](crate::lookup).

use volery_channel::{Channel, Role};
use volery_pcg::Security;

use crate::code::closeness;
use crate::error::Result;
use crate::failure::Failure;
use crate::lookup::value_bytes;
use crate::matching::{self, Call, Cost, Matching, Outcome, Output, PEER_FOLLOWS, Party, Task};
use crate::params::{Parameters, Variant};
use crate::session::{Receiver, Sender, Settings};
use crate::watch::Watch;

/// Bytes of the setup of [`crate::oprf`], the agreement and the ends, both ways.
const SETUP: u64 = 15_105;

/// The protocol of CCS 2016 in one of its variants.
#[derive(Clone, Copy, Debug)]
pub struct Kkrt(pub Variant);

impl Kkrt {
    fn parameters(self, task: &Task, parts: u64) -> Parameters {
        Parameters::one_of(parts, self.0, task.sender_items, task.receiver_items)
    }
}

impl Matching for Kkrt {
    fn name(&self) -> &'static str {
        self.0.name()
    }

    fn security(&self) -> Security {
        Security::SemiHonest
    }

    fn gives(&self, output: &Output) -> bool {
        matches!(output, Output::Items { .. })
    }

    fn is_candidate(&self) -> bool {
        self.0 == Variant::Kkrt
    }

    fn parameters(&self, task: &Task, parts: u64) -> Box<dyn matching::Parameters> {
        Box::new(Self::parameters(*self, task, parts))
    }

    fn cost(&self, task: &Task) -> Cost {
        let parameters = Self::parameters(*self, task, 1);
        let (sender, receiver) = (task.sender_items, task.receiver_items);
        let mut bytes = SETUP + parameters.row_bytes() + parameters.tag_bytes();
        if let Output::Items { both, search } = task.output {
            bytes += if search { value_bytes(&parameters, 0) } else { 0 };
            bytes += if both { sender.div_ceil(8) } else { 0 };
        }
        // Nanoseconds for an item of the sender.
        let each = match self.0 {
            Variant::Kkrt => 70.0,
            _ => 130.0,
        };
        Cost {
            bytes,
            trips: 3.5,
            fixed: 3.0,
            work: match parameters.trivial() {
                true => 0.0,
                false => each * sender as f64 + 100.0 * receiver as f64,
            },
        }
    }

    fn run(
        &self,
        party: Party<'_>,
        watch: &mut dyn Watch,
        channel: &mut Channel,
    ) -> Result<Outcome> {
        let (call, both) = party.call();
        let variant = self.0;
        let settings = Settings { variant, both };
        let Party { session, rng, parts, items, .. } = party;
        let before = channel.stats();
        let setup;
        let outcome: Outcome = match party.role {
            Role::Sender => {
                let sender = Sender::setup(session, rng, channel)?.one_of(parts);
                setup = channel.stats() - before;
                match call {
                    Call::Answer(values) => {
                        sender.answer(items, values, settings, watch, channel)?.into()
                    }
                    _ => sender.intersect(items, settings, watch, channel)?.into(),
                }
            }
            Role::Receiver => {
                let receiver = Receiver::setup(session, rng, channel)?.one_of(parts);
                setup = channel.stats() - before;
                match call {
                    Call::Search => receiver.search(items, settings, watch, channel)?.into(),
                    _ => receiver.intersect(items, settings, watch, channel)?.into(),
                }
            }
        };
        Ok(Outcome { setup, ..outcome })
    }
}

impl matching::Parameters for Parameters {
    fn sizes(&self) -> [u64; 2] {
        [self.sender_items, self.receiver_items]
    }

    /// The 512 OTs come from OT extension.
    fn assumption(&self) -> String {
        format!(
            "{PEER_FOLLOWS}; gap Diffie-Hellman in Ristretto255, AES-128 as an ideal cipher, BLAKE3 \
             as a random oracle, no LPN; 128 bits, 40 statistical"
        )
    }

    fn failures(&self) -> Vec<Failure> {
        vec![
            Failure::wrong_result("a false match", -self.false_positive()),
            Failure::error("the items do not fit into a cuckoo table", self.statistical.into()),
            Failure::error(
                "outputs of the code are not pseudorandom",
                closeness(self.width) - (self.evaluations().max(1) as f64).log2(),
            ),
        ]
    }

    fn traffic(&self, longest: Option<usize>) -> [u64; 4] {
        [
            self.row_bytes(),
            self.tag_bytes(),
            longest.map_or(0, |longest| value_bytes(self, longest)),
            0,
        ]
    }

    fn memory(&self, role: Role, output: &Output) -> u64 {
        /// Of a block: a digest, an input or an output of the OPRF, a row.
        const BLOCK: u64 = 16;
        /// Of a place of the table: the number of the item, and that of its hash function.
        const PLACE: u64 = 5;
        /// Of an item that is being placed: its bins, and the search for a place. Counted.
        const PLACING: u64 = 41;
        /// Of an item in the random order: its number, and what finds the order. Counted.
        const ORDER: u64 = 10;
        /// Of an item in the index of tags: two slots, and a byte of the filter.
        const INDEX: u64 = 9;
        if self.trivial() {
            return 0;
        }
        let instances = self.instances() as u64;
        match role {
            Role::Sender => self.sender_items * (BLOCK + ORDER) + instances * BLOCK,
            Role::Receiver => {
                let search = matches!(output, Output::Items { search: true, .. });
                let found = INDEX + if search { BLOCK } else { 0 };
                self.receiver_items * (BLOCK + found.max(PLACING)) + instances * PLACE
            }
        }
    }
}
