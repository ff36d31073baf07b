//! What a run will cost, before anything is sent.

use volery_channel::{Link, Role};
use volery_okvs::bin_capacity;
use volery_pcg::Security;
use volery_psi::choice::{Candidate, Protocol, Task, candidates};
use volery_psi::params::MAX_ITEMS;
use volery_psi::vole::{self, Form};

use crate::run::Choice;
use crate::settings::{Settings, Verb};
use crate::side::Side;

/// Bytes of a process that has read nothing yet, with its threads and the tables of the vector OLE.
pub(crate) const FIXED: u64 = 96 << 20;

/// Bytes of memory of a run, predicted for `rows` distinct keys on both sides.
pub(crate) fn peak(settings: &Settings, rows: u64, buckets: u32, longest: usize) -> u64 {
    let each = rows.div_ceil(buckets.into());
    // Buckets are not equally full.
    let each = (each + each / 50 + 64).min(MAX_ITEMS);
    let form = match settings.security {
        Security::Malicious => Form::Malicious,
        _ => Form::Fast,
    };
    let search = settings.verb == Verb::Lookup;
    let both = settings.both && form != Form::Malicious;
    let parameters = vole::Parameters::new(form, both && !search, each, each);
    let protocol = parameters.memory(settings.role, search, both);
    // The entries and where each key begins; the set; the payload with its frame, twice.
    let sorted = each * (24 + 4 + 4);
    let payload = match (search, settings.role) {
        (true, Role::Sender) => each * (2 * longest as u64 + 40),
        (true, Role::Receiver) => each * (longest as u64 + 32),
        (false, _) => 0,
    };
    FIXED + rows / 8 + sorted + payload + protocol
}

impl Choice {
    /// The protocols for a task on a link.
    #[must_use]
    pub fn new(task: Task, link: Link) -> Self {
        Self {
            candidates: candidates(&task, link),
            task,
            link,
        }
    }

    /// The fastest.
    #[must_use]
    pub fn best(&self) -> Option<&Candidate> {
        self.candidates.first()
    }

    /// One line: sizes and link, the predicted time, and the others.
    #[must_use]
    pub fn why(&self) -> String {
        let Task {
            sender_items,
            receiver_items,
            security,
            ..
        } = self.task;
        let Link {
            bits_per_second,
            round_trip,
        } = self.link;
        let seconds = |one: &Candidate| format!("{} {:.3} s", one.protocol, one.seconds);
        let mut all = self.candidates.iter().map(seconds);
        let first = all.next().unwrap_or_default();
        let next: Vec<_> = all.take(2).collect();
        let next = match next[..] {
            [] => String::new(),
            _ => format!(", before {}", next.join(", ")),
        };
        format!(
            "{security}, {sender_items} and {receiver_items} keys, fastest at {:.1} Mbit/s and {:.2} ms: {first}{next} (predicted)",
            bits_per_second / 1e6,
            round_trip * 1e3
        )
    }
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
        let named = settings.name.protocol(settings.security);
        let protocol = named.unwrap_or_else(|| {
            let choice = Choice::new(task, link);
            choice.best().expect("the settings were checked").protocol
        });
        let values = match settings.verb {
            Verb::Psi => 0,
            Verb::Lookup => sender_items * self.longest() as u64,
        };
        let bytes = protocol.bytes(&task) + values;
        let seconds = protocol.seconds(&task, link) + 8.0 * values as f64 / link.bits_per_second;
        Plan {
            protocol,
            buckets,
            bytes: bytes * u64::from(buckets),
            seconds: seconds * f64::from(buckets),
            memory: self.peak(buckets),
        }
    }
}
