//! The JSON object that a run reports.

use serde::{Deserialize, Serialize};
pub(crate) use volery_bench::machine::peak_memory;

/// What a run was, and what it cost. A value that does not exist for a command, or cannot be known, is `null`.
///
/// The fields are the documented face of `--report`: scripts depend on their names, units and order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The verb that ran.
    pub(crate) protocol: String,
    /// This side's role.
    pub(crate) role: Option<String>,
    /// Correlations, or items.
    pub(crate) n: Option<u64>,
    /// The ring of the values.
    pub(crate) ring: Option<String>,
    /// Against whom the run was secure.
    pub(crate) security: Option<String>,
    /// Where the LPN noise sat.
    pub(crate) noise: Option<String>,
    /// The parameters, in words.
    pub(crate) parameters: Option<String>,
    /// What the security rests on, with its level.
    pub(crate) assumption: Option<String>,
    /// The version of this program.
    pub(crate) version: String,
    /// Bytes this side sent, the handshake included.
    pub(crate) bytes_sent: Option<u64>,
    /// Bytes this side received, the handshake included.
    pub(crate) bytes_received: Option<u64>,
    /// Messages this side sent and received, counted as in [`volery_channel::Stats`].
    pub(crate) messages: Option<u64>,
    /// Wall-clock time of the phases.
    pub(crate) seconds: Seconds,
    /// The most memory the process has held, in bytes.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// What came out; its fields depend on the protocol.
    pub(crate) result: serde_json::Map<String, serde_json::Value>,
}

/// Wall-clock seconds of the phases of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seconds {
    /// Before the first correlation: base OT, parameters, the first round's inputs.
    pub(crate) setup: Option<f64>,
    /// Making the correlations.
    pub(crate) extend: Option<f64>,
    /// What depends on inputs.
    pub(crate) online: Option<f64>,
    /// From the established connection to the finished output.
    pub(crate) total: Option<f64>,
}

impl Report {
    /// A report of one verb, with this program's version and nothing else known yet.
    pub(crate) fn new(protocol: &str) -> Self {
        Self {
            protocol: protocol.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }

    /// The JSON text, with a final newline.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json =
            serde_json::to_vec_pretty(self).expect("strings, numbers and maps with string keys");
        json.push(b'\n');
        json
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn the_fields_are_the_documented_ones_in_order() {
        let json = String::from_utf8(Report::new("vole").to_json()).unwrap();
        let names: Vec<_> = json
            .lines()
            .filter_map(|line| line.trim().split_once("\": ").map(|(name, _)| &name[1..]))
            .collect();
        assert_eq!(
            names.join(" "),
            "protocol role n ring security noise parameters assumption version bytes_sent bytes_received messages \
             seconds setup extend online total peak_rss_bytes result"
        );
        assert_eq!(json.matches("null").count(), 15);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let mut report = Report::new("vole");
        report.n = Some(1 << 40);
        report.seconds.total = Some(0.25);
        report.result.insert("session".into(), "00ff".into());
        assert_eq!(
            serde_json::from_slice::<Report>(&report.to_json()).unwrap(),
            report
        );
    }
}
