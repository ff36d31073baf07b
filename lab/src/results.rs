//! The file of all measurements: interrupted runs continue from it, pages are drawn from it, and
//! comparisons read it.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::NamedTempFile;

use crate::measurement::{Key, Measurement};
use crate::{Error, Machine, Result, machine};

/// The format name in the file.
pub(crate) const FORMAT: &str = "volery measurements";

/// The format version of the file.
pub(crate) const SCHEMA: u32 = 1;

/// All that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) format: String,
    pub(crate) schema: u32,
    /// The requested measurements, in words; a run continues only from a file in which this is the
    /// same.
    pub(crate) asked: String,
    /// Time and machine of the measurements: one entry for each start or continuation of the run.
    pub(crate) sittings: Vec<BenchmarkSession>,
    /// In the order in which they were first measured.
    pub(crate) measurements: Vec<Measurement>,
    /// Further data of the command that measured.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub(crate) more: serde_json::Map<String, Value>,
}

/// One benchmark session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct BenchmarkSession {
    /// Seconds since 1970.
    pub(crate) began: u64,
    /// Seconds that runs took.
    pub(crate) seconds: f64,
    /// The version of the program, and the first digits of its hash.
    pub(crate) program: String,
    /// The speed of the machine at the beginning.
    pub(crate) machine: Machine,
    /// The system's load average over a minute at the beginning: the number of processes that
    /// wanted a core.
    pub(crate) load: Option<f64>,
    /// The same after the last run.
    #[serde(default)]
    pub(crate) load_after: Option<f64>,
    /// The reasons, as sentences, why its figures may not be comparable.
    pub(crate) remarks: Vec<String>,
}

impl BenchmarkSession {
    /// Begins a session: measures the machine, in about a second. `version` is the program's;
    /// `threads` the most that a party has.
    pub(crate) fn begin(version: &str, threads: usize) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH);
        let machine = Machine::measure();
        let remarks = machine.remarks(threads);
        Self {
            began: began.map_or(0, |time| time.as_secs()),
            seconds: 0.0,
            program: format!("{version} {}", build()),
            machine,
            load: machine::load(),
            load_after: None,
            remarks,
        }
    }

    /// A session that did not measure its machine.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            began: 0,
            seconds: 1.0,
            program: "1.2.3 0123".to_owned(),
            machine: Machine::example(),
            load: Some(0.5),
            load_after: Some(1.25),
            remarks: Vec::new(),
        }
    }
}

/// The first digits of a hash of this program's file; `None` if it cannot be read.
fn build() -> String {
    let hash = || {
        let mut hasher = blake3::Hasher::new();
        let mut file = File::open(std::env::current_exe().ok()?).ok()?;
        std::io::copy(&mut file, &mut hasher).ok()?;
        Some(hasher.finalize().to_hex()[..12].to_owned())
    };
    hash().unwrap_or_default()
}

impl Results {
    pub(crate) fn new(asked: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            asked: asked.to_owned(),
            sittings: Vec::new(),
            measurements: Vec::new(),
            more: serde_json::Map::new(),
        }
    }

    pub(crate) fn load(path: &Path) -> Result<Self> {
        /// The fields that every version has.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            schema: u32,
        }
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        let no = |why: String| {
            let path = path.display();
            Error::protocol(format_args!("{path}: not a results file of this program: {why}"))
        };
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| {
            let whole = if error.is_eof() { "it ends too early: " } else { "" };
            no(format!("{whole}{error}"))
        })?;
        if head.format != FORMAT {
            return Err(no(format!("its format is '{}'", head.format)));
        }
        if head.schema != SCHEMA {
            return Err(no(format!(
                "its schema is version {}, this program reads version {SCHEMA}",
                head.schema
            )));
        }
        serde_json::from_slice(&bytes).map_err(|error| no(error.to_string()))
    }

    /// The text of the file: JSON without spaces, with one line for each measurement and each
    /// section.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        let whole = serde_json::to_value(self).expect("strings, numbers and maps");
        write_lines(&whole, 0, &mut text);
        text.push('\n');
        text.into_bytes()
    }

    /// Writes a file beside its target, and renames it when it is complete and on the disk.
    pub(crate) fn save(&self, path: &Path) -> Result<()> {
        let write = || {
            let mut file = unfinished_in(path)?;
            file.write_all(&self.to_bytes())?;
            file.as_file().sync_all()?;
            file.persist(path)?;
            File::open(folder_of(path))?.sync_all()
        };
        write().map_err(|error| Error::file(path, error))
    }

    pub(crate) fn find(&self, key: &Key) -> Option<&Measurement> {
        self.measurements.iter().find(|measurement| measurement.key == *key)
    }

    /// The measurement with the same key; this one if there is none.
    pub(crate) fn entry(&mut self, new: Measurement) -> &mut Measurement {
        let place = self.measurements.iter().position(|measurement| measurement.key == new.key);
        let place = place.unwrap_or_else(|| {
            self.measurements.push(new);
            self.measurements.len() - 1
        });
        &mut self.measurements[place]
    }
}

/// Nesting depth of the file below which a value is on one line: that of `more.sections[i]`.
const LEVELS: usize = 3;

fn write_lines(value: &Value, level: usize, text: &mut String) {
    let mut list = |open: char, close: char, parts: &mut dyn Iterator<Item = (String, &Value)>| {
        text.push(open);
        for (index, (name, part)) in parts.enumerate() {
            *text += if index == 0 { "\n" } else { ",\n" };
            *text += &name;
            write_lines(part, level + 1, text);
        }
        text.push('\n');
        text.push(close);
    };
    match value {
        Value::Array(parts) if level < LEVELS && !parts.is_empty() => {
            list('[', ']', &mut parts.iter().map(|part| (String::new(), part)));
        }
        Value::Object(parts) if level < 2 && !parts.is_empty() => {
            let named = |(name, part)| (format!("{}:", Value::from(name)), part);
            list('{', '}', &mut parts.iter().map(|(n, p)| named((n.as_str(), p))));
        }
        whole => *text += &whole.to_string(),
    }
}

/// A new file beside `path`; it is removed on drop.
pub(crate) fn unfinished_in(path: &Path) -> std::io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(".volery-unfinished-")
        .permissions(std::fs::Permissions::from_mode(0o644))
        .tempfile_in(folder_of(path))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Phase, Sample};

    fn some() -> Results {
        let mut results = Results::new("everything, quickly");
        results.sittings.push(BenchmarkSession::example());
        results.measurements.push(Measurement {
            key: Key::example("cot", 1000),
            plan: Some("b11".to_owned()),
            security_bits: Some(128),
            skipped_seconds: None,
            samples: vec![Sample {
                sitting: 0,
                phases: vec![Phase::example("stream", 1000, 0.1, 77)],
                wall_seconds: 0.2,
                peak_bytes: Some(1 << 20),
            }],
        });
        results.more.insert("rows".to_owned(), 7.into());
        results
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let place = tempfile::tempdir().expect("the system provides a temporary folder");
        let path = place.path().join("results.json");
        let results = some();
        results.save(&path).expect("the saved file can be read");
        assert_eq!(Results::load(&path).expect("a saved file can be loaded"), results);
        // Replaces the existing file.
        let other = Results::new("something else");
        other.save(&path).expect("the saved file can be read");
        assert_eq!(Results::load(&path).expect("a saved file can be loaded"), other);
        assert_eq!(
            std::fs::read_dir(place.path())
                .expect("the system provides a temporary folder")
                .count(),
            1
        );
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let place = tempfile::tempdir().expect("the system provides a temporary folder");
        let path = place.path().join("results.json");
        let text = String::from_utf8(some().to_bytes()).expect("JSON");
        for (text, fragment) in [
            (&text[..text.len() / 2], "ends too early"),
            (
                &text.replace("\"schema\":1", "\"schema\":2"),
                "version 2, this program reads version 1",
            ),
            (&text.replace(FORMAT, "holiday pictures"), "'holiday pictures'"),
            (&text.replace("\"began\":", "\"begun\":"), "began"),
        ] {
            std::fs::write(&path, text).expect("the file can be written");
            let error = Results::load(&path).expect_err("the file is invalid").to_string();
            assert!(error.contains(fragment) && error.contains("results.json"), "{error}");
        }
    }
}
