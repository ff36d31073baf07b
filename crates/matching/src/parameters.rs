//! The parameters of a run: its assumptions, what may fail, its bytes on the wire and in memory.

use std::ops::Deref;
use std::sync::Arc;

use volery_channel::Role;
use volery_psi::Failure;
use volery_psi::matching::{self, Output};
use volery_psi::params::MAX_ITEMS;

use crate::keys::FRAME;
use crate::protocol_choice::ProtocolChoice;
use crate::settings::{Operation, Settings};

/// The parameters of an execution.
#[derive(Clone, Debug)]
pub struct Parameters {
    of_protocol: Arc<dyn matching::Parameters>,
    output: Output,
}

impl Parameters {
    /// Parameters for an output.
    pub fn new(of_protocol: Box<dyn matching::Parameters>, output: Output) -> Self {
        Self { of_protocol: of_protocol.into(), output }
    }

    /// In words.
    pub fn describe(&self) -> String {
        self.of_protocol.to_string()
    }

    /// The failures between honest parties, with the negative logarithm of its probability.
    pub fn failures(&self) -> Vec<(&'static str, f64)> {
        let causes = self.of_protocol.failures().into_iter();
        causes.map(|cause| (cause.what, cause.bits)).collect()
    }

    /// The negative logarithm of the probability that any of them happens.
    pub fn failure_bits(&self) -> f64 {
        Failure::sum(self.of_protocol.failures())
    }

    /// The binary logarithm of a bound on the probability of any false match.
    pub fn false_positive(&self) -> f64 {
        let causes = self.of_protocol.failures().into_iter();
        -Failure::sum(causes.filter(|cause| cause.false_positive))
    }

    /// Bytes of the receiver's encoded set (the rows of the OPRF for KKRT, the polynomial for dh),
    /// of the sender's tags, of the values, and of the vector OLE by its model, which is exact
    /// within some percent. `longest`: bytes of the longest payload.
    pub fn bytes(&self, longest: Option<usize>) -> [u64; 4] {
        let longest = longest.map(|longest| longest + FRAME);
        self.of_protocol.traffic(longest)
    }

    /// The most items that a malicious receiver may have tested with 2^80 and 2^128 evaluations of
    /// hash functions, as multiples of the number that it states, as far as there are bounds.
    pub fn most_items(&self) -> [Option<f64>; 2] {
        [80, 128].map(|log| self.of_protocol.most_items(log))
    }

    /// Bytes of memory of an execution at the side of this role, as far as they grow with the sets.
    pub fn memory(&self, role: Role) -> u64 {
        self.of_protocol.memory(role, &self.output)
    }
}

impl Deref for Parameters {
    type Target = dyn matching::Parameters;

    fn deref(&self) -> &Self::Target {
        &*self.of_protocol
    }
}

/// How the keys of a run are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Partitioning {
    /// They are not.
    No,
    /// Into buckets, one after the other.
    Buckets,
    /// Into shards for several workers.
    Shards,
}

/// The facts that each side learns in a run with these settings, and the security: one sentence
/// each, without a full stop.
pub fn revealed(settings: &Settings, rules: usize, divided: Partitioning) -> Vec<String> {
    use volery_pcg::Security;
    let (verb, role) = (settings.verb, settings.role);
    let by = match rules {
        1 => "",
        _ => " by each rule",
    };
    let rounded = match divided {
        Partitioning::Shards => " (rounded up to three digits)",
        Partitioning::No | Partitioning::Buckets => "",
    };
    let mut lines = vec![format!(
        "each side learns how many distinct keys the other has{by}{rounded}, and the number and types of its key columns"
    )];
    let whose = match role {
        Role::Sender => ("the peer", "this side", "its"),
        Role::Receiver => ("this side", "the peer", "the peer's"),
    };
    let (learns, has, columns) = whose;
    lines.push(match verb {
        Operation::Psi => format!("{learns} learns which of its own keys {has} has"),
        Operation::Lookup => format!(
            "{learns} learns which of its own keys {has} has, the columns of {columns} payload with names and types, their values for these keys, and the length of the longest payload"
        ),
    });
    if rules > 1 {
        lines.push(format!(
            "{learns} learns by which rule each of its rows matched first; {has} does not learn how many matched by any rule{}",
            if settings.both { ", but for --both" } else { "" }
        ));
    }
    match divided {
        Partitioning::No => {}
        Partitioning::Buckets => lines.push(
            "each side learns the least number of buckets that the other asks for, about the binary logarithm of its number of rows; the buckets are filled up to equal sizes".to_owned(),
        ),
        Partitioning::Shards => lines.push(
            "each side learns the number of shards that the other asks for, by its number of rows, and when a worker of the other starts again; the shards are filled up to equal sizes".to_owned(),
        ),
    }
    lines.push(
        match (role, settings.both) {
            (Role::Sender, true) => "this side learns which of its own keys the peer has (--both)",
            (Role::Sender, false) => "this side learns nothing more",
            (Role::Receiver, true) => {
                "the peer learns which of its own keys this side has (--both)"
            }
            (Role::Receiver, false) => "the peer learns nothing more",
        }
        .to_owned(),
    );
    if let Some(protocol) = settings.protocol() {
        lines.extend(protocol.reveals().iter().map(|line| (*line).to_owned()));
    }
    lines.push(
        match (settings.security, settings.both, verb) {
            (Security::SemiHonest, true, _) => {
                "secure against a semi-honest peer, as always with --both: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (Security::SemiHonest, false, _) => {
                "secure against a semi-honest peer: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (_, _, Operation::Psi) => {
                "secure against a malicious peer: a peer that does not follow the protocol learns no more than these lines say, except that a malicious receiver can test more keys than it declares (up to the number given as result.most_items in the report)"
            }
            (_, _, Operation::Lookup) => {
                "secure against a malicious peer: a peer that does not follow the protocol learns no more than these lines say, except that a malicious receiver can test more keys than it declares (up to the number given as result.most_items in the report), and a malicious sender can give any values"
            }
        }
        .to_owned(),
    );
    lines
}

/// Bytes of a process that has read nothing yet, with its threads and the tables of the vector OLE.
pub(crate) const FIXED: u64 = 96 << 20;

/// Bytes of memory of a run, predicted for `rows` distinct keys on both sides.
pub(crate) fn peak(settings: &Settings, rows: u64, buckets: u32, longest: usize) -> u64 {
    let each = rows.div_ceil(buckets.into());
    // Buckets are not equally full.
    let each = (each + each / 50 + 64).min(MAX_ITEMS);
    let search = settings.verb == Operation::Lookup;
    // Of all protocols for large sets it takes the most.
    let vole = ProtocolChoice::Vole.protocol(settings.security, &settings.output());
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
