//! The file of all that was measured: what an interrupted run goes on from, what pages are drawn from, and what is compared.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::measurement::{Key, Measurement};
use crate::{Error, Machine, Result, machine};

/// What the file says of itself.
pub const FORMAT: &str = "volery measurements";

/// The version of the form of the file.
pub const SCHEMA: u32 = 1;

/// All that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORMAT`].
    pub format: String,
    /// [`SCHEMA`].
    pub schema: u32,
    /// What was asked for, in words; a run goes on only from a file of which this is the same.
    pub asked: String,
    /// When and on what machine it was measured: once for each time that the run was begun or gone on with.
    pub sittings: Vec<Sitting>,
    /// In the order in which they were first measured.
    pub measurements: Vec<Measurement>,
    /// What else there is to say, by who measured it.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub more: serde_json::Map<String, serde_json::Value>,
}

/// One time that something was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sitting {
    /// Seconds since 1970.
    pub began: u64,
    /// Seconds that runs took.
    pub seconds: f64,
    /// The version of the program, and the first digits of a hash of it.
    pub program: String,
    /// What the machine could do at the beginning.
    pub machine: Machine,
    /// The system's load average over a minute, at the beginning: how many processes wanted a core.
    pub load: Option<f64>,
    /// The same after the last run.
    #[serde(default)]
    pub load_after: Option<f64>,
    /// What keeps its figures from being compared with others, in sentences.
    pub remarks: Vec<String>,
}

impl Sitting {
    /// Begins: measures the machine, in about a second. `version` is the program's; `threads` the most that a party has.
    #[must_use]
    pub fn begin(version: &str, threads: usize) -> Self {
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
}

/// The first digits of a hash of this program's file, or none where it cannot be read.
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
    /// Nothing yet.
    #[must_use]
    pub fn new(asked: &str) -> Self {
        Self {
            format: FORMAT.to_owned(),
            schema: SCHEMA,
            asked: asked.to_owned(),
            sittings: Vec::new(),
            measurements: Vec::new(),
            more: serde_json::Map::new(),
        }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read; if it is not what [`Self::save`] writes, only a part of it, or of another version.
    pub fn load(path: &Path) -> Result<Self> {
        /// What every version says of itself.
        #[derive(Deserialize)]
        struct Head {
            format: String,
            schema: u32,
        }
        let bytes = std::fs::read(path).map_err(|error| Error::file(path, error))?;
        let no = |why: String| Error::NotResults {
            path: path.to_owned(),
            why,
        };
        let head: Head = serde_json::from_slice(&bytes).map_err(|error| {
            let whole = if error.is_eof() {
                "it ends too early: "
            } else {
                ""
            };
            no(format!("{whole}{error}"))
        })?;
        if head.format != FORMAT {
            return Err(no(format!("it calls itself '{}'", head.format)));
        }
        if head.schema != SCHEMA {
            return Err(no(format!(
                "its schema is version {}, this program reads version {SCHEMA}",
                head.schema
            )));
        }
        let results: Self =
            serde_json::from_slice(&bytes).map_err(|error| no(error.to_string()))?;
        results.check().map_err(no)?;
        Ok(results)
    }

    /// Whether the parts belong together: a file may have been edited.
    fn check(&self) -> std::result::Result<(), String> {
        for sitting in &self.sittings {
            let calibrations = sitting.machine.calibrations();
            if !calibrations
                .iter()
                .all(|time| *time > 0.0 && time.is_finite())
            {
                return Err("a calibration is not a time".to_owned());
            }
        }
        let mut keys = BTreeSet::new();
        for Measurement { key, samples, .. } in &self.measurements {
            if !keys.insert(key) {
                return Err(format!("{key} is there twice"));
            }
            for sample in samples {
                if sample.sitting >= self.sittings.len() {
                    return Err(format!("{key}: a sample of a sitting that there is not"));
                }
                let times = sample.phases.iter().map(|phase| phase.seconds);
                let mut times = times.chain([sample.wall_seconds]);
                if !times.all(|time| time >= 0.0 && time.is_finite()) {
                    return Err(format!("{key}: a time that is none"));
                }
            }
        }
        Ok(())
    }

    /// The text of the file.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = serde_json::to_vec_pretty(self).expect("strings, numbers and maps");
        text.push(b'\n');
        text
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_whole(path, &self.to_bytes())
    }

    /// A measurement by its key.
    #[must_use]
    pub fn find(&self, key: &Key) -> Option<&Measurement> {
        self.measurements
            .iter()
            .find(|measurement| measurement.key == *key)
    }

    /// The measurement of the same key; this one, if there is none.
    pub(crate) fn entry(&mut self, new: Measurement) -> &mut Measurement {
        let place = self
            .measurements
            .iter()
            .position(|measurement| measurement.key == new.key);
        let place = place.unwrap_or_else(|| {
            self.measurements.push(new);
            self.measurements.len() - 1
        });
        &mut self.measurements[place]
    }
}

/// How the names of files begin that [`write_whole`] has not put in their place yet.
pub const UNFINISHED: &str = ".volery-unfinished-";

/// Writes a file beside its place, under a name that begins with [`UNFINISHED`], and puts it there when it is whole and on the
/// disk.
///
/// # Errors
/// If it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let write = || {
        let readable = std::fs::Permissions::from_mode(0o644);
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .permissions(readable)
            .tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(folder)?.sync_all()
    };
    write().map_err(|error| Error::file(path, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measurement::{Phase, Sample};

    fn some() -> Results {
        let mut results = Results::new("everything, quickly");
        results.sittings.push(Sitting::begin("1.2.3", 1));
        results.measurements.push(Measurement {
            key: Key {
                protocol: "cot".to_owned(),
                n: 1000,
                link: crate::Link::Loopback,
                threads: 1,
            },
            plan: Some("b11".to_owned()),
            security_bits: Some(128),
            skipped_seconds: None,
            samples: vec![Sample {
                sitting: 0,
                phases: vec![Phase {
                    name: "stream".to_owned(),
                    outputs: 1000,
                    seconds: 0.1,
                    bytes: 77,
                    messages: 2,
                }],
                wall_seconds: 0.2,
                peak_bytes: Some(1 << 20),
            }],
        });
        results.more.insert("rows".to_owned(), 7.into());
        results
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("results.json");
        let results = some();
        results.save(&path).expect("a file");
        assert_eq!(Results::load(&path).expect("what was saved"), results);
        // In place of what is there.
        let other = Results::new("something else");
        other.save(&path).expect("a file");
        assert_eq!(Results::load(&path).expect("what was saved"), other);
        assert_eq!(
            std::fs::read_dir(place.path()).expect("a folder").count(),
            1
        );
    }

    #[test]
    fn what_is_not_ours_is_refused() {
        let place = tempfile::tempdir().expect("a folder");
        let path = place.path().join("results.json");
        some().save(&path).expect("a file");
        let text = std::fs::read_to_string(&path).expect("a file");
        let half = &text[..text.len() / 2];
        let newer = text.replace("\"schema\": 1", "\"schema\": 2");
        let other = text.replace(FORMAT, "holiday pictures");
        let wrong = text.replace("\"began\":", "\"begun\":");
        let elsewhere = text.replace("\"sitting\": 0", "\"sitting\": 1");
        let backwards = text.replace("\"seconds\": 0.1", "\"seconds\": -0.1");
        let mut twice = some();
        twice.measurements.push(twice.measurements[0].clone());
        let twice = String::from_utf8(twice.to_bytes()).expect("JSON");
        let mut idle = some();
        idle.sittings[0].machine.nanoseconds_aes_block = 0.0;
        let idle = String::from_utf8(idle.to_bytes()).expect("JSON");
        for (text, fragment) in [
            (half, "ends too early"),
            ("", "ends too early"),
            (&*newer, "version 2, this program reads version 1"),
            (&*other, "'holiday pictures'"),
            (&*wrong, "began"),
            (&*elsewhere, "sitting that there is not"),
            (&*backwards, "a time that is none"),
            (&*twice, "is there twice"),
            (&*idle, "not a time"),
            ("[]", ""),
        ] {
            std::fs::write(&path, text).expect("a file");
            let error = Results::load(&path)
                .expect_err("it is not ours")
                .to_string();
            assert!(
                error.contains(fragment) && error.contains("results.json"),
                "{error}"
            );
        }
        let missing = Results::load(&place.path().join("none")).expect_err("it is not there");
        assert!(matches!(missing, Error::File { .. }), "{missing}");
    }

    /// The form of the file is a promise: who changes it changes its version.
    #[test]
    fn the_fields_are_those_of_this_version() {
        let json = serde_json::to_value(some()).expect("strings and numbers");
        let names = |value: &serde_json::Value| {
            let object = value.as_object().expect("an object");
            object.keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(SCHEMA, 1);
        assert_eq!(
            names(&json),
            "asked format measurements more schema sittings"
        );
        assert_eq!(
            names(&json["sittings"][0]),
            "began load load_after machine program remarks seconds"
        );
        assert_eq!(
            names(&json["sittings"][0]["machine"]),
            "cores cpu memory_bytes nanoseconds_aes_block nanoseconds_copied_byte nanoseconds_ot_hash \
             nanoseconds_random_read nanoseconds_random_read_9_mib processor system"
        );
        let measurement = &json["measurements"][0];
        assert_eq!(
            names(measurement),
            "key plan samples security_bits skipped_seconds"
        );
        assert_eq!(names(&measurement["key"]), "link n protocol threads");
        let sample = &measurement["samples"][0];
        assert_eq!(names(sample), "peak_bytes phases sitting wall_seconds");
        assert_eq!(
            names(&sample["phases"][0]),
            "bytes messages name outputs seconds"
        );
    }
}
