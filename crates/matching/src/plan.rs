//! The predicted cost of a run, before anything is sent.

use std::convert::Infallible;

use volery_channel::Link;
use volery_okvs::bin_capacity;
use volery_psi::choice::{Candidate, Choice, decide};
use volery_psi::matching::Protocol;
use volery_psi::params::MAX_ITEMS;

use crate::settings::Operation;
use crate::side::PreparedTable;

/// The predicted cost of a run of any kind.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The protocol.
    pub protocol: Protocol,
    /// The choice between protocols: always for rows, otherwise if there was one.
    pub choice: Option<Choice>,
    /// Buckets.
    pub buckets: u32,
    /// Bytes in both directions, without the values of a lookup that are longer than their frame.
    pub bytes: u64,
    /// Seconds, with one thread a party.
    pub seconds: f64,
    /// Peak memory of this side in bytes.
    pub memory: u64,
}

impl PreparedTable {
    /// Predicts a run against a peer with this many distinct keys on this link.
    pub fn plan(&self, peer: u64, link: Link) -> Plan {
        let settings = self.settings();
        let own = self.distinct(0).map_or(self.rows(), |(keys, _)| keys);
        let buckets = self.min_buckets();
        let capacity = |keys: u64| match buckets {
            1 => keys.min(MAX_ITEMS),
            _ => (bin_capacity(keys, buckets.into(), 43.0) as u64).min(MAX_ITEMS),
        };
        let keys = settings.role.sides([own, peer]);
        let task = settings.task(keys.map(capacity));
        let Ok((protocol, _)) = decide(settings.name.given(), &task, || Ok::<_, Infallible>(link));
        let cost = Candidate::new(protocol, &task, link);
        let values = match settings.verb {
            Operation::Psi => 0,
            Operation::Lookup => task.sender_items * self.longest() as u64,
        };
        let bytes = cost.bytes + values;
        let seconds = cost.seconds + 8.0 * values as f64 / link.bits_per_second;
        Plan {
            protocol,
            choice: Some(Choice::new(settings.task(keys), link)),
            buckets,
            bytes: bytes * u64::from(buckets) * self.rules as u64,
            seconds: seconds * f64::from(buckets) * self.rules as f64,
            memory: self.peak(buckets),
        }
    }
}
