//! The cost of a match of any kind, as it was and as it is predicted: for reports and for people.

use std::time::Duration;

use serde_json::{Map, Value, json};
use volery_channel::Stats;
use volery_channel::link::Link;
use volery_psi::choice::Choice;

use super::arguments::MatchingArguments;
use super::text::object;
use crate::memory::peak_memory;
use crate::report::{Report, Seconds};
use crate::reporter::Reporter;

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

/// `text`, unless an option says it.
pub(crate) const fn assumed(is_said: bool, text: &'static str) -> &'static str {
    if is_said { "" } else { text }
}

/// The predicted cost of a run.
pub(crate) struct Prediction {
    /// Own keys, and keys of the peer.
    pub(crate) keys: [u64; 2],
    pub(crate) rows: u64,
    pub(crate) protocol: &'static str,
    pub(crate) security: String,
    pub(crate) bytes: u64,
    pub(crate) seconds: f64,
    pub(crate) memory: u64,
    pub(crate) buckets: u32,
}

impl Prediction {
    /// The cost over a link, in words. `files`: the work that the time does not include.
    pub(crate) fn describe(&self, arguments: &MatchingArguments, files: &str) -> String {
        let link: Link = arguments.link.unwrap_or_default();
        format!(
            "bytes: {:.1} MB in both directions\ntime: {:.1} s at {:.0} Mbit/s and {:.0} ms{}, one \
             thread a party, without {files}\nmemory: {:.0} MB on this side",
            self.bytes as f64 / 1e6,
            self.seconds,
            link.bits_per_second / 1e6,
            link.round_trip * 1e3,
            assumed(arguments.link.is_some(), " (assumed; --link)"),
            self.memory as f64 / 1e6,
        )
    }

    /// The report of a dry run, with further `fields` of its result.
    pub(crate) fn report(
        self,
        arguments: &MatchingArguments,
        revealed: &[String],
        fields: Map<String, Value>,
        reporter: &Reporter,
    ) -> Report {
        let mut report = Report {
            role: Some(arguments.role.name().to_owned()),
            n: Some(self.keys[0]),
            security: Some(self.security),
            peak_rss_bytes: peak_memory(),
            ..Report::new(arguments.verb.name(), reporter)
        };
        report.result = object(json!({
            "dry_run": true,
            "rows": self.rows,
            "peer_items": self.keys[1],
            "protocol": self.protocol,
            "bytes": self.bytes,
            "seconds": self.seconds,
            "memory_bytes": self.memory,
            "buckets": self.buckets,
            "reveals": revealed,
        }));
        report.result.extend(fields);
        report
    }
}

/// The facts that a run reveals, as the last lines of its plan.
pub(crate) fn lines(revealed: &[String]) -> String {
    revealed.iter().map(|line| format!("- {line}\n")).collect()
}
