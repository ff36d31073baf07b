//! The cost of a match of any kind, as it was and as it is predicted: for reports and for people.

use std::time::Duration;

use serde_json::{Map, Value, json};
use volery_channel::Stats;
use volery_channel::link::Link;
use volery_matching::{Plan, ResultKind};
use volery_psi::choice::Choice;

use super::arguments::MatchingArguments;
use crate::report::{Report, Seconds};
use crate::reporter::{Reporter, many, object};

/// Adds the traffic and the time of a run, in all and of its setup.
pub(crate) fn add_cost(
    report: &mut Report,
    [traffic, of_setup]: [Stats; 2],
    [setup, online]: [Duration; 2],
) {
    report.bytes_sent = Some(traffic.bytes_sent);
    report.bytes_received = Some(traffic.bytes_received);
    report.messages = Some(traffic.messages_sent + traffic.messages_received);
    report.seconds = Seconds {
        setup: Some(setup.as_secs_f64()),
        online: Some(online.as_secs_f64()),
        ..Seconds::default()
    };
    let [all, setup] = [traffic, of_setup].map(|one| one.bytes_sent + one.bytes_received);
    let fields = json!({ "bytes_online": all - setup, "bytes_setup": setup });
    report.result.extend(object(fields));
}

/// The causes of a wrong result, each with the binary logarithm of its probability in `2^more`
/// executions.
pub(crate) fn failures<'a>(causes: impl Iterator<Item = (&'a str, f64)>, more: f64) -> Vec<Value> {
    let failures = causes.map(|(what, bits)| {
        // A cause that cannot occur has no logarithm.
        json!({ "what": what, "log2": bits.is_finite().then_some(more - bits) })
    });
    failures.collect()
}

/// The choice of a protocol, with the prediction for each candidate.
pub(crate) fn choice(choice: &Choice) -> Value {
    let predicted = choice.candidates.iter().map(|one| {
        let (protocol, seconds, bytes) = (one.protocol.name(), one.seconds, one.bytes);
        json!({ "protocol": protocol, "seconds": seconds, "bytes": bytes })
    });
    let predicted: Vec<_> = predicted.collect();
    json!({
        "why": choice.why(),
        "bits_per_second": choice.link.bits_per_second as u64,
        "round_trip_seconds": choice.link.round_trip,
        "predicted": predicted,
    })
}

/// The predicted cost of a run of any kind.
pub(crate) struct Prediction<'a> {
    pub(crate) arguments: &'a MatchingArguments,
    pub(crate) rows: u64,
    /// Own keys, and keys of the peer.
    pub(crate) keys: [u64; 2],
    pub(crate) security: String,
    pub(crate) plan: Plan,
    /// The keys of this side, in words.
    pub(crate) own: String,
    /// Whether the peer is assumed to have as many columns.
    pub(crate) has_columns: bool,
    /// The work that the time does not include.
    pub(crate) without: &'static str,
}

impl Prediction<'_> {
    /// For people, and as the report of a dry run with further `fields` of its result.
    pub(crate) fn tell(
        self,
        revealed: &[String],
        mut fields: Map<String, Value>,
        reporter: &Reporter,
    ) -> (String, Report) {
        let Self { arguments, rows, keys: [own, peer], plan, .. } = &self;
        let link: Link = arguments.link.unwrap_or_default();
        let unless = |is_said: bool, text: &'static str| if is_said { "" } else { text };
        let mut text = format!(
            "this side: {}, {}\npeer: {} (assumed{}){}\nprotocol: {}, {}\nbytes: {:.1} MB in both \
             directions\ntime: {:.1} s at {:.0} Mbit/s and {:.0} ms{}, one thread a party, without \
             {}\nmemory: {:.0} MB on this side",
            many(*rows, "row"),
            self.own,
            many(*peer, "key"),
            unless(arguments.peer_rows.is_some(), "; --peer-rows"),
            if self.has_columns { ", with as many columns (assumed)" } else { "" },
            plan.protocol,
            self.security,
            plan.bytes as f64 / 1e6,
            plan.seconds,
            link.bits_per_second / 1e6,
            link.round_trip * 1e3,
            unless(arguments.link.is_some(), " (assumed; --link)"),
            self.without,
            plan.memory as f64 / 1e6,
        );
        if arguments.result == ResultKind::Rows {
            text += &format!(", in {}", many(plan.buckets.into(), "bucket"));
        }
        for line in revealed {
            text += &format!("\n- {line}");
        }
        if !matches!(arguments.result, ResultKind::Shares(_)) {
            fields.insert("choice".to_owned(), plan.choice.as_ref().map(choice).into());
        }
        let mut report = Report {
            role: Some(arguments.role.name().to_owned()),
            n: Some(*own),
            security: Some(self.security.clone()),
            ..Report::new(arguments.verb.name(), reporter)
        };
        report.result = object(json!({
            "dry_run": true,
            "rows": rows,
            "peer_items": peer,
            "protocol": plan.protocol.name(),
            "bytes": plan.bytes,
            "seconds": plan.seconds,
            "memory_bytes": plan.memory,
            "buckets": plan.buckets,
            "reveals": revealed,
        }));
        report.result.extend(fields);
        (text + "\n", report)
    }
}
