//! The JSON report of a run.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, json};

use crate::failure::{Failure, Result};
use crate::memory::peak_memory;
use crate::output::SingleFile;
use crate::reporter::{self, Reporter, Target, event};

/// The settings and cost of a run. A value that does not exist for a command, or is unknown, is
/// `null`.
///
/// The fields are the documented interface of `--report`: scripts depend on their names, units and
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The command, which older reports call the protocol.
    #[serde(alias = "protocol")]
    pub command: String,
    /// The role of this side.
    pub role: Option<String>,
    /// Number of correlations or items.
    pub n: Option<u64>,
    /// The ring of the values.
    pub ring: Option<String>,
    /// Against whom the run was secure.
    pub security: Option<String>,
    /// Position of the LPN noise.
    pub noise: Option<String>,
    /// Adversary that the run was secure against.
    pub parameters: Option<String>,
    /// The assumption that the security rests on, with its level.
    pub assumption: Option<String>,
    /// The version of this program.
    pub version: String,
    /// Bytes this side sent, the handshake included.
    pub bytes_sent: Option<u64>,
    /// Bytes this side received, the handshake included.
    pub bytes_received: Option<u64>,
    /// Messages this side sent and received, counted as in [`volery_channel::Stats`].
    pub messages: Option<u64>,
    /// Wall-clock time of the phases.
    pub seconds: Seconds,
    /// The peak memory of the process in bytes.
    pub peak_rss_bytes: Option<u64>,
    /// Results; the fields depend on the command.
    pub result: Map<String, serde_json::Value>,
    /// When the report was made: RFC 3339, UTC.
    #[serde(default)]
    pub date: String,
    /// The commit that this program was made from, if the build knew it.
    #[serde(default)]
    pub commit: Option<String>,
    /// The exit status.
    #[serde(default)]
    pub status: u8,
    /// The error of a run that failed.
    #[serde(default)]
    pub error: Option<String>,
    /// This party's fingerprint.
    #[serde(default)]
    pub identity: Option<String>,
    /// The peer's fingerprint.
    #[serde(default)]
    pub peer: Option<String>,
    /// The phases in their order; one that failed is the last.
    #[serde(default)]
    pub phases: Vec<PhaseSeconds>,
    /// The facts that the run revealed, as far as it came; empty if it met no peer.
    #[serde(default)]
    pub revealed: Vec<String>,
}

/// A phase of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseSeconds {
    name: String,
    seconds: f64,
}

/// Wall-clock seconds of the phases of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Seconds {
    /// Before the first correlation: base OT, parameters, the first round's inputs.
    pub setup: Option<f64>,
    /// Making the correlations.
    pub extend: Option<f64>,
    /// The part that depends on inputs.
    pub online: Option<f64>,
    /// From the established connection to the finished output.
    pub total: Option<f64>,
}

impl Report {
    /// A report of one command with this program's version; all else is unknown yet.
    pub fn new(command: &str, reporter: &Reporter) -> Self {
        Self {
            command: command.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: option_env!("VOLERY_COMMIT").map(str::to_owned),
            ..Self::default()
        }
        .up_to_now(reporter)
    }

    /// The report with what is known of the run by now.
    pub fn up_to_now(mut self, reporter: &Reporter) -> Self {
        let record = reporter.record();
        let phases = record.phases().into_iter();
        self.phases = phases.map(|(name, seconds)| PhaseSeconds { name, seconds }).collect();
        self.identity.clone_from(&record.identity);
        self.peer.clone_from(&record.peer);
        self.revealed.clone_from(&record.revealed);
        self.date = reporter::now();
        self.peak_rss_bytes = peak_memory();
        self
    }

    /// The fields of a log at the end of a run: sizes, cost, and rows where this side gets them.
    pub(crate) fn done(&self) -> Map<String, serde_json::Value> {
        let names = ["rows", "matched", "rows_written", "items", "peer_items", "protocol"];
        let mut fields = event(
            "done",
            json!({
                "role": self.role,
                "security": self.security,
                "seconds": self.seconds.total,
                "bytes_sent": self.bytes_sent,
                "bytes_received": self.bytes_received,
            }),
        );
        let found = names.map(|name| Some((name.to_owned(), self.result.get(name)?.clone())));
        fields.extend(found.into_iter().flatten());
        fields
    }

    /// The JSON text, with a final newline.
    pub fn to_json(&self) -> String {
        let json = serde_json::to_string_pretty(self)
            .expect("a report of strings, numbers and string-keyed maps serialises");
        json + "\n"
    }
}

/// A report that is written at the end of the run, by [`report_failure`] if it fails.
pub struct PreparedReport(Reporter);

impl PreparedReport {
    /// Checks that the report can be written to `path`; `-` is standard output.
    pub fn prepare(path: Option<&Path>, reporter: &Reporter) -> Result<Self> {
        let target = match path {
            Some(path) if path == "-" => reporter.is_program().then_some(Target::Output),
            Some(path) => Some(Target::File(SingleFile::prepare("--report", path)?)),
            None => None,
        };
        *reporter.pending() = target;
        Ok(Self(reporter.clone()))
    }

    /// Writes the report if one was requested, and returns its text.
    pub fn write(self, report: &Report) -> Result<String> {
        let json = report.clone().up_to_now(&self.0).to_json();
        let target = self.0.pending().take();
        target.map_or(Ok(()), |target| target.write(&json, &self.0))?;
        Ok(json)
    }
}

/// Writes the report of a run that failed, if one was requested and is not written.
pub fn report_failure(failure: &Failure, reporter: &Reporter) {
    let Some(target) = reporter.pending().take() else {
        return;
    };
    let (verb, role) = reporter.verb_and_role();
    let report = Report {
        status: failure.status() as u8,
        error: Some(failure.message().to_owned()),
        role,
        ..Report::new(verb, reporter)
    };
    if let Err(other) = target.write(&report.to_json(), reporter) {
        reporter.warn(format_args!("no report: {}", other.message()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::kibibytes;

    #[test]
    fn the_fields_are_the_documented_ones_in_order() {
        let report = Report { peak_rss_bytes: None, ..Report::new("vole", &Reporter::for_tests()) };
        let json = report.to_json();
        let names: Vec<_> = json
            .lines()
            .filter_map(|line| line.trim().split_once("\": ").map(|(name, _)| &name[1..]))
            .collect();
        assert_eq!(
            names.join(" "),
            "command role n ring security noise parameters assumption version bytes_sent bytes_received messages \
             seconds setup extend online total peak_rss_bytes result date commit status error identity peer phases \
             revealed"
        );
        let commit = usize::from(option_env!("VOLERY_COMMIT").is_none());
        assert_eq!(json.matches("null").count(), 18 + commit);
    }

    #[test]
    fn memory_is_in_bytes() {
        let status = "VmPeak: 9 kB\nVmHWM:\t   2048 kB\n";
        assert_eq!(kibibytes(status, "VmHWM:"), Some(2_097_152));
        assert_eq!(kibibytes("Name: x\n", "VmHWM:"), None);
    }
}
