//! The parameters of a run: its assumptions, what may fail, its bytes.

use std::sync::Arc;

use volery_channel::Role;
use volery_psi::Failure;
use volery_psi::matching::{self, Output};

use crate::keys::FRAME;
use crate::settings::{Operation, Settings};

/// The parameters of an execution.
#[derive(Clone, Debug)]
pub struct Parameters {
    of_protocol: Arc<dyn matching::Parameters>,
    output: Output,
}

impl Parameters {
    /// Parameters for an output.
    #[must_use]
    pub fn new(of_protocol: Box<dyn matching::Parameters>, output: Output) -> Self {
        Self { of_protocol: of_protocol.into(), output }
    }

    /// The numbers of items of sender and receiver, in the roles of the protocol.
    #[must_use]
    pub fn sizes(&self) -> [u64; 2] {
        self.of_protocol.sizes()
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        self.of_protocol.to_string()
    }

    /// The assumptions that the security of a run rests on, with their level.
    #[must_use]
    pub fn assumption(&self) -> String {
        self.of_protocol.assumption()
    }

    /// The failures between honest parties, with the negative logarithm of its probability.
    #[must_use]
    pub fn failures(&self) -> Vec<(&'static str, f64)> {
        let causes = self.of_protocol.failures().into_iter();
        causes.map(|cause| (cause.what, cause.bits)).collect()
    }

    /// The negative logarithm of the probability that any of them happens.
    #[must_use]
    pub fn failure_bits(&self) -> f64 {
        Failure::sum(self.of_protocol.failures())
    }

    /// The binary logarithm of a bound on the probability of any false match.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        let causes = self.of_protocol.failures().into_iter();
        -Failure::sum(causes.filter(|cause| cause.false_positive))
    }

    /// The statistical security: that of the checks, if there are any, and of the result.
    #[must_use]
    pub fn statistical_bits(&self) -> f64 {
        self.of_protocol.statistical_bits()
    }

    /// Bytes of the receiver's encoded set (the rows of the OPRF for KKRT, the polynomial for dh),
    /// of the sender's tags, of the values, and of the vector OLE by its model, which is exact
    /// within some percent. `longest`: bytes of the longest payload.
    #[must_use]
    pub fn bytes(&self, longest: Option<usize>) -> [u64; 4] {
        let longest = longest.map(|longest| longest + FRAME);
        self.of_protocol.traffic(longest)
    }

    /// The most items that a malicious receiver may have tested with 2^80 and 2^128 evaluations of
    /// hash functions, as multiples of the number that it states, as far as there are bounds.
    #[must_use]
    pub fn most_items(&self) -> [Option<f64>; 2] {
        [80, 128].map(|log| self.of_protocol.most_items(log))
    }

    /// Bytes of memory of an execution at the side of this role, as far as they grow with the sets.
    #[must_use]
    pub fn memory(&self, role: Role) -> u64 {
        self.of_protocol.memory(role, &self.output)
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
#[must_use]
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
                "secure against a malicious peer: a peer that does not follow the protocol learns no more than these lines say, except that a malicious receiver can test more keys than it states (up to the number in result.most_items of the report)"
            }
            (_, _, Operation::Lookup) => {
                "secure against a malicious peer: a peer that does not follow the protocol learns no more than these lines say, except that a malicious receiver can test more keys than it states (up to the number in result.most_items of the report), and a malicious sender can give any values"
            }
        }
        .to_owned(),
    );
    lines
}
