//! The JSON report that `--report` writes.

use serde::Serialize;

/// The settings, results and cost of a command. The names are those of the reports of `volery`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    /// The command that ran.
    pub(crate) protocol: String,
    /// Correlations.
    pub(crate) n: Option<u64>,
    /// The version of this program.
    pub(crate) version: String,
    /// Wall-clock seconds in all.
    pub(crate) seconds: Option<f64>,
    /// The peak memory of the process in bytes.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Results; the fields depend on the command.
    pub(crate) result: serde_json::Map<String, serde_json::Value>,
}

impl Report {
    /// A report of one command; all else is unknown yet.
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
            .expect("a report of strings, numbers and maps serialises");
        json.push(b'\n');
        json
    }
}
