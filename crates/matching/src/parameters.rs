//! What the parameters of a run say about it: its assumptions, what may fail, its bytes.

use volery_channel::Role;
use volery_psi::lookup::value_bytes;
use volery_psi::vole::{self, Form};
use volery_psi::{Failure, dh};

use crate::keys::FRAME;
use crate::settings::{Settings, Verb};

/// The parameters of an execution, by its protocol.
#[derive(Clone, Debug)]
pub enum Parameters {
    /// VOLE-PSI.
    Vole(vole::Parameters),
    /// OT extension.
    Kkrt(volery_psi::Parameters),
    /// Diffie-Hellman: the numbers of items of sender and receiver.
    Dh([u64; 2]),
}

impl From<vole::Parameters> for Parameters {
    fn from(parameters: vole::Parameters) -> Self {
        Self::Vole(parameters)
    }
}

impl From<volery_psi::Parameters> for Parameters {
    fn from(parameters: volery_psi::Parameters) -> Self {
        Self::Kkrt(parameters)
    }
}

impl From<dh::Parameters> for Parameters {
    fn from(parameters: dh::Parameters) -> Self {
        Self::Dh([parameters.sender_items, parameters.receiver_items])
    }
}

impl Parameters {
    /// The numbers of items of sender and receiver.
    #[must_use]
    pub fn sizes(&self) -> [u64; 2] {
        match self {
            Self::Vole(parameters) => [parameters.sender_items, parameters.receiver_items],
            Self::Kkrt(parameters) => [parameters.sender_items, parameters.receiver_items],
            Self::Dh(sizes) => *sizes,
        }
    }

    /// In words.
    #[must_use]
    pub fn describe(&self) -> String {
        match self {
            Self::Vole(parameters) => parameters.to_string(),
            Self::Kkrt(parameters) => parameters.to_string(),
            Self::Dh([_, receiver]) => {
                format!("Curve25519, polynomial of degree {receiver}, tags of 128 bits")
            }
        }
    }

    /// The assumptions that the security of a run rests on, with their level.
    #[must_use]
    pub fn assumption(&self) -> String {
        match self {
            Self::Vole(parameters) => {
                let adversary = match parameters.form {
                    Form::Malicious => PEER_DEVIATES,
                    Form::Fast | Form::Low => PEER_FOLLOWS,
                };
                format!(
                    "{adversary}; AES-128 an ideal cipher; vector OLE: {}; {:.0} statistical",
                    parameters.assumption(),
                    self.statistical_bits().floor()
                )
            }
            // The 512 OTs come from OT extension.
            Self::Kkrt(_) => format!(
                "{PEER_FOLLOWS}; gap Diffie-Hellman in Ristretto255, AES-128 as an ideal cipher, BLAKE3 as a random \
                 oracle, no LPN; 128 bits, 40 statistical"
            ),
            Self::Dh(_) => format!(
                "{PEER_DEVIATES}; gap Diffie-Hellman in Curve25519, BLAKE3 as a random oracle, an eight-round Feistel \
                 network of it as an ideal permutation, no LPN; 128 bits, {:.0} statistical",
                self.statistical_bits().floor()
            ),
        }
    }

    /// What may go wrong between honest parties, with the negative logarithm of its probability.
    #[must_use]
    pub fn failures(&self) -> Vec<(&'static str, f64)> {
        let causes = self.causes().into_iter();
        causes.map(|cause| (cause.what, cause.bits)).collect()
    }

    fn causes(&self) -> Vec<Failure> {
        match self {
            Self::Vole(parameters) => parameters.failures(),
            Self::Kkrt(parameters) => parameters.failures(),
            Self::Dh([sender_items, receiver_items]) => {
                let parameters = dh::Parameters {
                    sender_items: *sender_items,
                    receiver_items: *receiver_items,
                };
                parameters.failures()
            }
        }
    }

    /// The negative logarithm of the probability that any of them happens.
    #[must_use]
    pub fn failure_bits(&self) -> f64 {
        Failure::sum(self.causes())
    }

    /// The binary logarithm of a bound on the probability of any false match.
    #[must_use]
    pub fn false_positive(&self) -> f64 {
        let causes = self.causes().into_iter();
        -Failure::sum(causes.filter(|cause| cause.false_positive))
    }

    /// The statistical security: that of the checks, if there are any, and of the result.
    #[must_use]
    pub fn statistical_bits(&self) -> f64 {
        let checks = match self {
            Self::Vole(parameters) => parameters.check_bits().map_or(f64::INFINITY, f64::from),
            Self::Kkrt(_) | Self::Dh(_) => f64::INFINITY,
        };
        checks.min(self.failure_bits())
    }

    /// Bytes of the receiver's encoded set (the rows of the OPRF for KKRT, the polynomial for dh),
    /// of the sender's tags, of the values, and of the vector OLE by its model, which is exact
    /// within some percent. `longest`: bytes of the longest payload.
    #[must_use]
    pub fn bytes(&self, longest: Option<usize>) -> [u64; 4] {
        let longest = longest.map(|longest| longest + FRAME);
        match self {
            Self::Vole(parameters) => [
                parameters.encoding_bytes(),
                parameters.tag_bytes(),
                longest.map_or(0, |longest| parameters.value_bytes(longest)),
                parameters.correlation_bytes(),
            ],
            Self::Kkrt(parameters) => [
                parameters.row_bytes(),
                parameters.tag_bytes(),
                longest.map_or(0, |longest| value_bytes(parameters, longest)),
                0,
            ],
            Self::Dh([sender, receiver]) if *sender == 0 || *receiver == 0 => [0; 4],
            Self::Dh([sender, receiver]) => [
                32 * receiver,
                16 * sender,
                longest.map_or(0, |longest| sender * (longest as u64 + 2)),
                0,
            ],
        }
    }

    /// The most items that a malicious receiver may have tested with 2^80 and 2^128 evaluations of
    /// hash functions, as multiples of the number that it states, as far as there are bounds.
    #[must_use]
    pub fn most_items(&self) -> [Option<f64>; 2] {
        match self {
            Self::Vole(parameters) => [80.0, 128.0].map(|log| parameters.most_items(log)),
            // `dh` has this bound, and none for 2^128.
            Self::Dh([_, receiver]) if *receiver > 0 => [Some(2.8 + 2.0 / *receiver as f64), None],
            Self::Kkrt(_) | Self::Dh(_) => [None, None],
        }
    }

    /// Bytes of memory of an execution, as far as they grow with the sets.
    #[must_use]
    pub fn memory(&self, settings: &Settings) -> u64 {
        let (role, search) = (settings.role, settings.verb == Verb::Lookup);
        match self {
            Self::Vole(parameters) => parameters.memory(role, search, settings.both),
            Self::Kkrt(parameters) => parameters.memory(role, search),
            Self::Dh([sender_items, receiver_items]) => {
                let parameters = dh::Parameters {
                    sender_items: *sender_items,
                    receiver_items: *receiver_items,
                };
                parameters.memory(role)
            }
        }
    }
}

const PEER_DEVIATES: &str = "malicious: the peer may do anything";
pub(crate) const PEER_FOLLOWS: &str = "semi-honest: the peer follows the protocol";

/// How the keys of a run are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divided {
    /// They are not.
    No,
    /// Into buckets, one after the other.
    Buckets,
    /// Into shards for several workers.
    Shards,
}

/// What each side learns in a run with these settings, and against whom it is secure: one sentence
/// each, without a full stop.
#[must_use]
pub fn revealed(settings: &Settings, rules: usize, divided: Divided) -> Vec<String> {
    use volery_pcg::Security;
    let (verb, role) = (settings.verb, settings.role);
    let by = match rules {
        1 => "",
        _ => " by each rule",
    };
    let rounded = match divided {
        Divided::Shards => " (rounded up to three digits)",
        Divided::No | Divided::Buckets => "",
    };
    let mut lines = vec![format!(
        "each side learns how many different keys the other has{by}{rounded}, and the number and types of its key columns"
    )];
    let whose = match role {
        Role::Sender => ("the peer", "this side", "its"),
        Role::Receiver => ("this side", "the peer", "the peer's"),
    };
    let (learns, has, columns) = whose;
    lines.push(match verb {
        Verb::Psi => format!("{learns} learns which of its own keys {has} has"),
        Verb::Lookup => format!(
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
        Divided::No => {}
        Divided::Buckets => lines.push(
            "each side learns the least number of buckets that the other asks for, about the binary logarithm of its number of rows; the buckets are filled up to equal sizes".to_owned(),
        ),
        Divided::Shards => lines.push(
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
    lines.push(
        match (settings.security, settings.both, verb) {
            (Security::SemiHonest, true, _) => {
                "security is semi-honest, as always with --both: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (Security::SemiHonest, false, _) => {
                "security is semi-honest: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (_, _, Verb::Psi) => {
                "security is malicious: a peer that does not follow the protocol learns no more than these lines say, but a receiver may test more keys than it states (result.most_items of the report)"
            }
            (_, _, Verb::Lookup) => {
                "security is malicious: a peer that does not follow the protocol learns no more than these lines say, but a receiver may test more keys than it states (result.most_items of the report), and a sender may give any values"
            }
        }
        .to_owned(),
    );
    lines
}
