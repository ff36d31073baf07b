//! The JSON report of a run.

use serde::{Deserialize, Serialize};

/// The peak memory of this process in bytes, where the system reports it.
pub(crate) fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    kibibytes(&status, "VmHWM:")
}

/// The value, in bytes, of a line such as `VmHWM:  123 kB`.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The settings and cost of a run. A value that does not exist for a command, or is unknown, is
/// `null`.
///
/// The fields are the documented interface of `--report`: scripts depend on their names, units and
/// order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// The subcommand.
    pub(crate) protocol: String,
    /// The role of this side.
    pub(crate) role: Option<String>,
    /// Number of correlations or items.
    pub(crate) n: Option<u64>,
    /// The ring of the values.
    pub(crate) ring: Option<String>,
    /// Against whom the run was secure.
    pub(crate) security: Option<String>,
    /// Position of the LPN noise.
    pub(crate) noise: Option<String>,
    /// Adversary that the run was secure against.
    pub(crate) parameters: Option<String>,
    /// The assumption that the security rests on, with its level.
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
    /// The peak memory of the process in bytes.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Results; the fields depend on the protocol.
    pub(crate) result: serde_json::Map<String, serde_json::Value>,
}

/// Wall-clock seconds of the phases of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Seconds {
    /// Before the first correlation: base OT, parameters, the first round's inputs.
    pub(crate) setup: Option<f64>,
    /// Making the correlations.
    pub(crate) extend: Option<f64>,
    /// The part that depends on inputs.
    pub(crate) online: Option<f64>,
    /// From the established connection to the finished output.
    pub(crate) total: Option<f64>,
}

impl Report {
    /// A report of one subcommand with this program's version; all else is unknown yet.
    pub(crate) fn new(protocol: &str) -> Self {
        Self {
            protocol: protocol.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..Self::default()
        }
    }

    /// The JSON text, with a final newline.
    pub(crate) fn to_json(&self) -> Vec<u8> {
        let mut json = serde_json::to_vec_pretty(self)
            .expect("a report of strings, numbers and string-keyed maps serialises");
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
    fn memory_is_in_bytes() {
        let status = "VmPeak: 9 kB\nVmHWM:\t   2048 kB\n";
        assert_eq!(kibibytes(status, "VmHWM:"), Some(2_097_152));
        assert_eq!(kibibytes("Name: x\n", "VmHWM:"), None);
    }

    #[test]
    fn a_written_report_is_read_back() {
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
