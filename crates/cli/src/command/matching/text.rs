//! The texts of a run: what it reveals, its report, and its last line.

use std::time::Duration;

use serde_json::json;
use volery_channel::Role;
use volery_psi::Phase;
use volery_psi::lookup::value_bytes;
use volery_tables::Records;

use super::{MatchingArguments, Outcome, PhaseTimer, Verb, key_types};
use crate::randomness::hex;
use crate::report::{Report, Seconds};

/// The assumptions that the security of both subcommands rests on.
///
/// Semi-honest: the peer follows the protocol. No LPN instance is involved: the 512 OTs come from
/// OT extension. Statistical: a false match, a table that does not hold all items, and outputs that
/// are not pseudorandom, each 2^-40 for the whole run.
pub(crate) const ASSUMPTION: &str = "semi-honest: the peer follows the protocol; gap Diffie-Hellman in Ristretto255, AES-128 as an \
                          ideal cipher, BLAKE3 as a random oracle, no LPN; 128 bits, 40 statistical";

/// The information that each side learns, shown before the run and kept in the report.
pub(super) struct Revealed(Vec<&'static str>);

impl Revealed {
    /// The information revealed by a run with these settings.
    pub(super) fn of(verb: Verb<'_>, role: Role, both: bool) -> Self {
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
        revealed.push(match (role, both) {
            (Role::Sender, true) => "this side learns which of its own keys the peer has (--both)",
            (Role::Sender, false) => "this side learns nothing more",
            (Role::Receiver, true) => {
                "the peer learns which of its own keys this side has (--both)"
            }
            (Role::Receiver, false) => "the peer learns nothing more",
        });
        revealed.push(
            "security is semi-honest: a peer that does not follow the protocol can learn more, or falsify the result",
        );
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
    records: &Records,
    outcome: &Outcome,
    revealed: &Revealed,
) -> Report {
    let parameters = &outcome.parameters;
    let peer = match arguments.role {
        Role::Sender => parameters.receiver_items,
        Role::Receiver => parameters.sender_items,
    };
    let counts = records.counts();
    let traffic = outcome.traffic;
    let online = traffic.bytes_sent + traffic.bytes_received
        - outcome.setup_traffic.bytes_sent
        - outcome.setup_traffic.bytes_received;
    let values = outcome
        .longest
        .map_or(0, |longest| value_bytes(parameters, longest));
    let formula = parameters.row_bytes() + parameters.tag_bytes() + values;
    let result = json!({
        "session": hex(outcome.session),
        "protocol": parameters.variant.name(),
        "reveals": revealed.0,
        "both": arguments.both,
        "key_types": key_types(records),
        "rows": counts.rows,
        "rows_left_out": { "duplicate_key": counts.duplicates, "empty_key": counts.empty },
        "items": records.keys().len(),
        "peer_items": peer,
        "common": outcome.common.as_ref().map(Vec::len),
        "longest_value_bytes": outcome.longest,
        "false_positive_log2": parameters.false_positive(),
        "bytes_formula": formula,
        "bytes_online": online,
        "bytes_setup": outcome.setup_traffic.bytes_sent + outcome.setup_traffic.bytes_received,
    });
    let serde_json::Value::Object(result) = result else {
        unreachable!("the JSON literal above is an object")
    };
    Report {
        role: Some(arguments.role.name().to_owned()),
        n: Some(records.keys().len() as u64),
        security: Some("semi-honest".to_owned()),
        parameters: Some(parameters.to_string()),
        assumption: Some(ASSUMPTION.to_owned()),
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
    let peers = match arguments.role {
        Role::Sender => parameters.receiver_items,
        Role::Receiver => parameters.sender_items,
    };
    let result = match (&outcome.common, &arguments.out) {
        (Some(common), Some(out)) => {
            format!(
                "{} of {ours} keys match; their rows are in {}",
                common.len(),
                out.display()
            )
        }
        _ => format!("{ours} keys were matched against the peer's"),
    };
    let chance = match outcome.common {
        Some(_) => format!(
            ", false matches with probability at most 2^{:.0} in all",
            parameters.false_positive()
        ),
        None => String::new(),
    };
    format!(
        "{}: {result} (the peer has {peers}), semi-honest{chance}, in {:.3} s, {} bytes sent, {} received",
        arguments.role.name(),
        report.seconds.total.unwrap_or_default(),
        outcome.traffic.bytes_sent,
        outcome.traffic.bytes_received,
    )
}
