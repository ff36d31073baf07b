//! What a run will cost, before anything is sent.

use std::convert::Infallible;

use volery_channel::{Link, Role};
use volery_okvs::bin_capacity;
use volery_psi::choice::{Candidate, decide};
use volery_psi::matching::Protocol;
use volery_psi::params::MAX_ITEMS;

use crate::name::Name;
use crate::settings::{Settings, Verb};
use crate::side::Side;

/// Bytes of a process that has read nothing yet, with its threads and the tables of the vector OLE.
pub(crate) const FIXED: u64 = 96 << 20;

/// Bytes of memory of a run, predicted for `rows` distinct keys on both sides.
pub(crate) fn peak(settings: &Settings, rows: u64, buckets: u32, longest: usize) -> u64 {
    let each = rows.div_ceil(buckets.into());
    // Buckets are not equally full.
    let each = (each + each / 50 + 64).min(MAX_ITEMS);
    let search = settings.verb == Verb::Lookup;
    // Of all protocols for large sets it takes the most.
    let vole = Name::Vole.protocol(settings.security, &settings.output());
    let protocol = vole.map_or(0, |vole| {
        let parameters = vole.parameters(&settings.task([each, each]), 1);
        parameters.memory(settings.role, &settings.output())
    });
    // The entries and where each key begins; the set; the payload with its frame, twice.
    let sorted = each * (24 + 4 + 4);
    let payload = match (search, settings.role) {
        (true, Role::Sender) => each * (2 * longest as u64 + 40),
        (true, Role::Receiver) => each * (longest as u64 + 32),
        (false, _) => 0,
    };
    FIXED + rows / 8 + sorted + payload + protocol
}

/// What a run is predicted to cost.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// Buckets.
    pub buckets: u32,
    /// Bytes for one rule, in both directions, without the values of a lookup that are longer than
    /// their frame.
    pub bytes: u64,
    /// Seconds for one rule, with one thread a party.
    pub seconds: f64,
    /// Peak memory of this side in bytes.
    pub memory: u64,
}

impl Side {
    /// Predicts a run against a peer with this many distinct keys on this link.
    #[must_use]
    pub fn plan(&self, peer: u64, link: Link) -> Plan {
        let settings = self.settings();
        let own = self.distinct(0).map_or(self.rows(), |(keys, _)| keys);
        let buckets = self.wanted();
        let capacity = |keys: u64| match buckets {
            1 => keys.min(MAX_ITEMS),
            _ => (bin_capacity(keys, buckets.into(), 43.0) as u64).min(MAX_ITEMS),
        };
        let (sender_items, receiver_items) = match settings.role {
            Role::Sender => (capacity(own), capacity(peer)),
            Role::Receiver => (capacity(peer), capacity(own)),
        };
        let task = settings.task([sender_items, receiver_items]);
        let Ok((protocol, _)) = decide(settings.name.given(), &task, || Ok::<_, Infallible>(link));
        let cost = Candidate::new(protocol, &task, link);
        let values = match settings.verb {
            Verb::Psi => 0,
            Verb::Lookup => sender_items * self.longest() as u64,
        };
        let bytes = cost.bytes + values;
        let seconds = cost.seconds + 8.0 * values as f64 / link.bits_per_second;
        Plan {
            protocol,
            buckets,
            bytes: bytes * u64::from(buckets),
            seconds: seconds * f64::from(buckets),
            memory: self.peak(buckets),
        }
    }
}
