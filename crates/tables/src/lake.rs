//! Tables of Delta Lake, Apache Iceberg and Apache Hudi: folders of Parquet files of which only
//! some are the table. The others hold rows that were deleted or replaced, and no reader may take
//! one for the other.

#[cfg(feature = "columnar")]
pub(crate) mod delta;

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Result, export, refuse};

/// The format of a table that is more than its Parquet files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lake {
    /// Delta Lake: the folder has a log, `_delta_log`.
    Delta,
    /// Apache Iceberg: the folder has `metadata/*.metadata.json`.
    Iceberg,
    /// Apache Hudi: the folder has `.hoodie/hoodie.properties`.
    Hudi,
}

impl fmt::Display for Lake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Delta => "a Delta table",
            Self::Iceberg => "an Iceberg table",
            Self::Hudi => "a Hudi table",
        })
    }
}

impl Lake {
    /// The format of the table that `folder` is, if it is one.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        // A link that leads nowhere is a mark, too.
        let has = |name: &str| fs::symlink_metadata(folder.join(name)).is_ok();
        if has("_delta_log") {
            return Some(Self::Delta);
        }
        if has(".hoodie/hoodie.properties") || has(".hoodie_partition_metadata") {
            return Some(Self::Hudi);
        }
        let mut entries = fs::read_dir(folder.join("metadata")).ok()?.flatten();
        let is_iceberg = entries.any(|entry| is_of_iceberg(&entry.file_name().to_string_lossy()));
        is_iceberg.then_some(Self::Iceberg)
    }

    /// The table in whose folder a file lies, at any depth, by its name or by where a link leads.
    #[must_use]
    pub fn of_file(file: &Path) -> Option<(Self, PathBuf)> {
        Owners::default().owner(file)
    }

    /// The format whose writers leave a note of this name in each Parquet file.
    #[cfg(feature = "columnar")]
    pub(crate) fn of_note(name: &str) -> Option<Self> {
        match name {
            "iceberg.schema" => Some(Self::Iceberg),
            "hoodie_min_record_key" | "org.apache.hudi.bloomfilter" => Some(Self::Hudi),
            _ => None,
        }
    }

    /// The command that writes `table` as plain Parquet.
    pub(crate) fn export(self, table: &str) -> String {
        match self {
            Self::Delta => format!(
                "duckdb -c \"INSTALL delta; LOAD delta; COPY (FROM delta_scan('{table}')) TO \
                 'plain.parquet'\""
            ),
            Self::Iceberg => format!(
                "duckdb -c \"INSTALL iceberg; LOAD iceberg; COPY (FROM iceberg_scan('{table}', \
                 allow_moved_paths=true)) TO 'plain.parquet'\""
            ),
            Self::Hudi => format!(
                "in Spark: spark.read.format(\"hudi\").load(\"{table}\").write.parquet(\"plain\")"
            ),
        }
    }
}

/// Whether a file in a folder `metadata` is Iceberg's: `v3.metadata.json`,
/// `00001-UUID.metadata.json`, also compressed, or `snap-ID.avro`.
fn is_of_iceberg(name: &str) -> bool {
    let is_numbered = name.trim_start_matches('v').starts_with(|c: char| c.is_ascii_digit());
    let is_metadata = [".metadata.json", ".metadata.json.gz"].iter().any(|end| name.ends_with(end));
    is_numbered && is_metadata || name.starts_with("snap-") && name.ends_with(".avro")
}

/// The folders above this number of levels are not looked at.
const LEVELS: usize = 32;

/// The tables that files lie in. Each folder is looked at once.
#[derive(Default)]
pub(crate) struct Owners(HashMap<PathBuf, Option<(Lake, PathBuf)>>);

impl Owners {
    /// Refuses a Parquet file that lies in a table: in its folder or in one at any depth below, by
    /// its name or by where a link leads.
    pub(crate) fn check(&mut self, file: &Path) -> Result<()> {
        match self.owner(file) {
            Some((lake, table)) => {
                let table = table.display().to_string();
                Err(refuse(
                    format_args!(
                        "is a file of {lake}, {table}: it may have rows that were deleted from it"
                    ),
                    match lake {
                        Lake::Delta => format!("name the table alone: --input {table}"),
                        _ => export(lake, &table),
                    },
                ))
            }
            None => Ok(()),
        }
    }

    fn owner(&mut self, file: &Path) -> Option<(Lake, PathBuf)> {
        let paths = [std::path::absolute(file), fs::canonicalize(file)];
        let mut folders = paths.iter().flatten().filter_map(|path| path.parent());
        folders.find_map(|folder| {
            let owner = self.0.entry(folder.to_owned()).or_insert_with(|| {
                let mut above = folder.ancestors().take(LEVELS);
                above.find_map(|folder| Some((Lake::at(folder)?, folder.to_owned())))
            });
            owner.clone()
        })
    }
}
