//! The texts of a run: what it reveals, its report, and its last line.

use std::time::Duration;

use serde_json::json;
use volery_channel::Role;
use volery_pcg::Security;
use volery_psi::lookup::value_bytes;
use volery_psi::vole::Form;
use volery_psi::{Phase, dh};
use volery_tables::Records;

use super::run::Parameters;
use super::{MatchingArguments, Outcome, PhaseTimer, Settings, Verb, key_types};
use crate::randomness::hex;
use crate::report::{Report, Seconds};

impl Parameters {
    /// Bytes of memory for what grows with the sets.
    fn memory(&self, role: Role, search: bool, both: bool) -> u64 {
        match self {
            Self::Vole(parameters) => parameters.memory(role, search, both),
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

    /// The numbers of items of sender and receiver.
    pub(crate) fn sizes(&self) -> [u64; 2] {
        match self {
            Self::Vole(parameters) => [parameters.sender_items, parameters.receiver_items],
            Self::Kkrt(parameters) => [parameters.sender_items, parameters.receiver_items],
            Self::Dh(sizes) => *sizes,
        }
    }

    fn peer_items(&self, role: Role) -> u64 {
        let [sender, receiver] = self.sizes();
        match role {
            Role::Sender => receiver,
            Role::Receiver => sender,
        }
    }

    /// In words.
    pub(crate) fn describe(&self) -> String {
        match self {
            Self::Vole(parameters) => parameters.to_string(),
            Self::Kkrt(parameters) => parameters.to_string(),
            Self::Dh([_, receiver]) => {
                format!("Curve25519, polynomial of degree {receiver}, tags of 128 bits")
            }
        }
    }

    /// The assumptions that the security of a run rests on, with their level.
    pub(crate) fn assumption(&self) -> String {
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
    fn failures(&self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Vole(parameters) => {
                let causes = parameters.failures().into_iter();
                causes.map(|cause| (cause.what, cause.bits)).collect()
            }
            Self::Kkrt(_) => vec![
                ("a false match", -self.false_positive()),
                ("the items do not fit into a cuckoo table", 40.0),
                ("outputs of the code are not pseudorandom", 40.0),
            ],
            Self::Dh(_) => vec![(
                "two different items have the same tag",
                -self.false_positive(),
            )],
        }
    }

    /// The negative logarithm of the probability that any of them happens.
    fn failure_bits(&self) -> f64 {
        let all = self.failures();
        -all.iter()
            .map(|(_, bits)| (-bits).exp2())
            .sum::<f64>()
            .log2()
    }

    /// The binary logarithm of a bound on the probability of any false match.
    pub(crate) fn false_positive(&self) -> f64 {
        match self {
            Self::Vole(parameters) => parameters.false_positive(),
            Self::Kkrt(parameters) => parameters.false_positive(),
            Self::Dh(sizes) => {
                let pairs = sizes.iter().map(|items| (*items).max(1) as f64);
                pairs.product::<f64>().log2() - 128.0
            }
        }
    }

    /// The statistical security: that of the checks, if there are any, and of the result.
    fn statistical_bits(&self) -> f64 {
        let checks = match self {
            Self::Vole(parameters) => parameters.check_bits().map_or(f64::INFINITY, f64::from),
            Self::Kkrt(_) | Self::Dh(_) => f64::INFINITY,
        };
        checks.min(self.failure_bits())
    }

    /// Bytes of the receiver's encoded set (the rows of the OPRF for KKRT, the polynomial for dh),
    /// of the sender's tags, of the values, and of the vector OLE by its model, which is exact
    /// within some percent.
    fn bytes(&self, longest: Option<usize>) -> [u64; 4] {
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
    fn most_items(&self) -> [Option<f64>; 2] {
        match self {
            Self::Vole(parameters) => [80.0, 128.0].map(|log| parameters.most_items(log)),
            // `dh` has this bound, and none for 2^128.
            Self::Dh([_, receiver]) if *receiver > 0 => [Some(2.8 + 2.0 / *receiver as f64), None],
            Self::Kkrt(_) | Self::Dh(_) => [None, None],
        }
    }
}

const PEER_DEVIATES: &str = "malicious: the peer may do anything";
const PEER_FOLLOWS: &str = "semi-honest: the peer follows the protocol";

/// The information that each side learns, shown before the run and kept in the report.
pub(super) struct Revealed(Vec<&'static str>);

impl Revealed {
    /// The information revealed by a run with these settings.
    pub(super) fn of(verb: Verb<'_>, role: Role, settings: &Settings) -> Self {
        let mut revealed = vec![
            "each side learns how many different keys the other has, and the number and types of its key columns",
        ];
        revealed.push(match (verb, role) {
            (Verb::Psi, Role::Sender) => "the peer learns which of its own keys this side has",
            (Verb::Psi, Role::Receiver) => "this side learns which of its own keys the peer has",
            (Verb::Lookup { .. }, Role::Sender) => {
                "the peer learns which of its own keys this side has, their values, and the length of the longest value"
            }
            (Verb::Lookup { .. }, Role::Receiver) => {
                "this side learns which of its own keys the peer has, their values, and the length of the longest value"
            }
        });
        revealed.push(match (role, settings.both) {
            (Role::Sender, true) => "this side learns which of its own keys the peer has (--both)",
            (Role::Sender, false) => "this side learns nothing more",
            (Role::Receiver, true) => {
                "the peer learns which of its own keys this side has (--both)"
            }
            (Role::Receiver, false) => "the peer learns nothing more",
        });
        revealed.push(match (settings.security, settings.both, verb) {
            (Security::SemiHonest, true, _) => {
                "security is semi-honest, as always with --both: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (Security::SemiHonest, false, _) => {
                "security is semi-honest: a peer that does not follow the protocol can learn more, or falsify the result"
            }
            (_, _, Verb::Psi) => {
                "security is malicious: a peer that does not follow the protocol learns nothing else, but a receiver may test more keys than it states (result.most_items of the report)"
            }
            (_, _, Verb::Lookup { .. }) => {
                "security is malicious: a peer that does not follow the protocol learns nothing else, but a receiver may test more keys than it states (result.most_items of the report), and a sender may give any values"
            }
        });
        Self(revealed)
    }

    /// The lines shown before a run on these records.
    pub(super) fn lines(&self, records: &Records) -> Vec<String> {
        let own = format!("this side has {} different keys", records.keys().len());
        let lines = std::iter::once(own).chain(self.0.iter().map(|&line| line.to_owned()));
        lines.map(|line| format!("volery: {line}")).collect()
    }
}

/// The report, except for values known only at the very end.
pub(super) fn report(
    verb: Verb<'_>,
    arguments: &MatchingArguments,
    settings: &Settings,
    records: &Records,
    outcome: &Outcome,
    revealed: &Revealed,
) -> Report {
    let parameters = &outcome.parameters;
    let matched = &outcome.matched;
    let counts = records.counts();
    let traffic = outcome.traffic;
    let online = traffic.bytes_sent + traffic.bytes_received
        - outcome.setup_traffic.bytes_sent
        - outcome.setup_traffic.bytes_received;
    let bytes = parameters.bytes(matched.longest);
    let [encoding, tags, values, correlations] = bytes;
    let failures = parameters.failures();
    let failures = failures.iter().map(|(what, bits)| {
        // A cause that cannot occur has no logarithm.
        json!({ "what": what, "log2": bits.is_finite().then_some(-bits) })
    });
    let [in_2_80, in_2_128] = parameters.most_items();
    let most_items = in_2_80.map(|most| json!({ "2^80 hashes": most, "2^128 hashes": in_2_128 }));
    let search = matches!(verb, Verb::Lookup { .. });
    let memory = parameters.memory(arguments.role, search, arguments.both);
    let choice = outcome.agreed.choice.as_ref();
    let result = json!({
        "session": hex(outcome.session),
        "protocol": outcome.agreed.protocol.name(),
        "choice": choice.map(|choice| choice.to_json()),
        "reveals": revealed.0,
        "both": arguments.both,
        "key_types": key_types(records),
        "rows": counts.rows,
        "rows_left_out": { "duplicate_key": counts.duplicates, "empty_key": counts.empty },
        "items": records.keys().len(),
        "peer_items": parameters.peer_items(arguments.role),
        "common": matched.common.as_ref().map(Vec::len),
        "longest_value_bytes": matched.longest,
        "false_positive_log2": parameters.false_positive(),
        "failures": failures.collect::<Vec<_>>(),
        "failure_log2": -parameters.failure_bits(),
        "statistical_bits": parameters.statistical_bits(),
        "most_items": most_items,
        "bytes_encoding": encoding,
        "bytes_tags": tags,
        "bytes_values": values,
        "bytes_correlations": correlations,
        "bytes_formula": bytes.iter().sum::<u64>(),
        "bytes_online": online,
        "bytes_setup": outcome.setup_traffic.bytes_sent + outcome.setup_traffic.bytes_received,
        "memory_bytes": memory,
    });
    let serde_json::Value::Object(result) = result else {
        unreachable!("the JSON literal above is an object")
    };
    Report {
        role: Some(arguments.role.name().to_owned()),
        n: Some(records.keys().len() as u64),
        security: Some(settings.security.to_string()),
        parameters: Some(parameters.describe()),
        assumption: Some(parameters.assumption()),
        bytes_sent: Some(traffic.bytes_sent),
        bytes_received: Some(traffic.bytes_received),
        messages: Some(traffic.messages_sent + traffic.messages_received),
        seconds: Seconds {
            setup: Some(outcome.setup.as_secs_f64()),
            online: Some(outcome.online.as_secs_f64()),
            ..Seconds::default()
        },
        result,
        ..Report::new(verb.name())
    }
}

/// Adds the seconds of the phases, of reading and of writing.
pub(super) fn add_seconds(
    report: &mut Report,
    read: Duration,
    told: &PhaseTimer,
    write: Option<Duration>,
) {
    let mut seconds = serde_json::Map::new();
    seconds.insert("read".to_owned(), read.as_secs_f64().into());
    for phase in Phase::ALL {
        let found = told.seconds.iter().find(|(there, _)| *there == phase);
        if let Some((_, value)) = found {
            seconds.insert(key(phase).to_owned(), (*value).into());
        }
    }
    let write = write.map(|write| write.as_secs_f64());
    seconds.insert("write".to_owned(), write.into());
    report.result.insert("seconds".to_owned(), seconds.into());
}

/// The name of a phase in the report.
const fn key(phase: Phase) -> &'static str {
    match phase {
        Phase::Agree => "agree",
        Phase::Hash => "hash",
        Phase::Place => "place",
        Phase::Encode => "encode",
        Phase::Correlate => "correlate",
        Phase::Rows => "rows",
        Phase::Match => "match",
        Phase::Share => "share",
    }
}

/// The last line of a run.
pub(super) fn summary(
    arguments: &MatchingArguments,
    records: &Records,
    outcome: &Outcome,
    report: &Report,
) -> String {
    let parameters = &outcome.parameters;
    let ours = records.keys().len();
    let result = match (&outcome.matched.common, &arguments.out) {
        (Some(common), Some(out)) => {
            format!(
                "{} of {ours} keys match; their rows are in {}",
                common.len(),
                out.display()
            )
        }
        _ => format!("{ours} keys were matched against the peer's"),
    };
    let chance = match outcome.matched.common {
        Some(_) => format!(
            ", false matches with probability at most 2^{:.0} in all",
            parameters.false_positive()
        ),
        None => String::new(),
    };
    format!(
        "{}: {result} (the peer has {}), by {}, {}{chance}, in {:.3} s, {} bytes sent, {} received",
        arguments.role.name(),
        parameters.peer_items(arguments.role),
        outcome.agreed.protocol,
        report.security.as_deref().unwrap_or_default(),
        report.seconds.total.unwrap_or_default(),
        outcome.traffic.bytes_sent,
        outcome.traffic.bytes_received,
    )
}
