//! The newest version of a Delta table: which files are its rows, and which columns it has.
//!
//! By the protocol of Delta Lake (`PROTOCOL.md` of delta-io/delta): a version is a checkpoint,
//! which lists the files up to it, and the commits behind it, each of which adds files and removes
//! some. A table that needs a feature of readers which is not implemented is refused by the
//! feature's name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Component, Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use serde_json::{Map, Value};

use crate::columnar;
use crate::error::{Problem, Result, export, refuse};
use crate::key::parse_uuid;
use crate::lake::Lake;
use crate::paths::unescaped;

/// The log of a table, below its folder.
const LOG: &str = "_delta_log";

/// The features that change nothing for a reader of files that the log lists.
const HARMLESS: [&str; 4] =
    ["timestampNtz", "timestampWithoutTimezone", "v2Checkpoint", "vacuumProtocolCheck"];

/// A table at one version.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) version: u64,
    pub(crate) columns: Vec<Column>,
    /// The files, in the order of their paths in the log.
    pub(crate) files: Vec<DataFile>,
}

/// A column, as the table's schema states it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Its type; none for a nested one, which the files state.
    pub(crate) kind: Option<DataType>,
    /// Its values are in the log, one for each file.
    pub(crate) is_partition: bool,
}

/// A file, and the values of the partition columns for its rows.
#[derive(Debug)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) values: HashMap<String, Option<String>>,
}

impl Snapshot {
    /// Reads version `as_of` of the table in the folder `root`, or the newest one.
    ///
    /// # Errors
    /// If the log is incomplete or malformed, or the table needs a feature that is not implemented.
    pub(crate) fn read(root: &Path, as_of: Option<u64>) -> Result<Self> {
        let log = root.join(LOG);
        let listing = Listing::of(&log, as_of)?;
        let mut replay = Replay::default();
        for path in &listing.checkpoint {
            replay.read_file(path)?;
        }
        for sidecar in std::mem::take(&mut replay.sidecars) {
            // All of them lie in this folder, whether their paths say so or not.
            let name = Path::new(&sidecar).file_name().unwrap_or_default();
            replay.read_file(&log.join("_sidecars").join(name))?;
        }
        for path in &listing.commits {
            replay.read_file(path)?;
        }
        replay.finish(root, listing.version)
    }
}

/// The files of a log that make up a version.
#[derive(Debug, PartialEq, Eq)]
struct Listing {
    version: u64,
    /// All parts of the newest complete checkpoint up to it.
    checkpoint: Vec<PathBuf>,
    /// The commits behind it, in their order.
    commits: Vec<PathBuf>,
}

impl Listing {
    fn of(log: &Path, as_of: Option<u64>) -> Result<Self> {
        let entries = fs::read_dir(log).map_err(Problem::Read)?;
        let names = entries.map(|entry| {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // What a writer that was killed left: the commits before it are there.
            let is_empty = name.contains(".checkpoint.") && fs::metadata(entry.path())?.len() == 0;
            Ok(Some(name).filter(|_| !is_empty))
        });
        let names = names.collect::<io::Result<Vec<_>>>().map_err(Problem::Read)?;
        let mut names: Vec<String> = names.into_iter().flatten().collect();
        names.sort();
        let mut commits = BTreeMap::new();
        // By version and number of parts, for each part its name.
        let mut parts: BTreeMap<(u64, u64), BTreeMap<u64, &str>> = BTreeMap::new();
        for name in &names {
            let pieces: Vec<&str> = name.split('.').collect();
            let version = number(pieces[0], 20);
            let Some(version) = version.filter(|version| as_of.is_none_or(|last| *version <= last))
            else {
                continue;
            };
            match pieces[1..] {
                ["json"] => {
                    commits.insert(version, name);
                }
                ["checkpoint", "parquet"] => {
                    parts.entry((version, 1)).or_default().insert(1, name);
                }
                ["checkpoint", id, "parquet" | "json"]
                    if id.len() == 36 && parse_uuid(id.as_bytes()).is_ok() =>
                {
                    parts.entry((version, 1)).or_default().insert(1, name);
                }
                ["checkpoint", part, of, "parquet"] => {
                    if let (Some(part), Some(of)) = (number(part, 10), number(of, 10)) {
                        parts.entry((version, of)).or_default().insert(part, name);
                    }
                }
                _ => {}
            }
        }
        let complete = |found: &(&(u64, u64), &BTreeMap<u64, &str>)| {
            let (&(_, of), found) = *found;
            of == found.len() as u64 && found.keys().copied().eq(1..=of)
        };
        let checkpoint = parts.iter().rev().find(complete);
        let first = checkpoint.map_or(0, |((version, _), _)| version + 1);
        let behind: Vec<_> = commits.range(first..).collect();
        let gap = (first..).zip(&behind).find(|(expected, (version, _))| expected != *version);
        let lacks = |what: String| as_of.map_or_else(|| damaged(what), no_version);
        if let Some((missing, _)) = gap {
            return Err(lacks(format!("has no commit {missing}")));
        }
        let version = match (behind.last(), checkpoint) {
            (Some((version, _)), _) => **version,
            (None, Some(((version, _), _))) => *version,
            (None, None) => return Err(lacks("has no commit".to_owned())),
        };
        if let Some(missing) = as_of.filter(|wanted| *wanted != version) {
            return Err(no_version(missing));
        }
        let checkpoint = checkpoint.into_iter().flat_map(|(_, found)| found.values());
        Ok(Self {
            version,
            checkpoint: checkpoint.map(|name| log.join(name)).collect(),
            commits: behind.iter().map(|(_, name)| log.join(name)).collect(),
        })
    }
}

/// A number of exactly `digits` digits.
fn number(text: &str, digits: usize) -> Option<u64> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().ok()).flatten()
}

/// A data file in the log: its path, and the name of its deletion vector. Two entries with the same
/// path and other vectors are two files.
type Entry = (String, Option<String>);

/// The state of a table, as its actions make it.
#[derive(Default)]
struct Replay {
    protocol: Option<Value>,
    metadata: Option<Value>,
    files: BTreeMap<Entry, Value>,
    sidecars: Vec<String>,
}

impl Replay {
    /// Reads the actions of one file of the log.
    fn read_file(&mut self, path: &Path) -> Result<()> {
        let name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let wrong = |what: &str| damaged(format_args!("is damaged: {} {what}", name()));
        let mut file = File::open(path).map_err(|_| wrong("cannot be opened"))?;
        let mut actions = Vec::new();
        if path.extension().is_some_and(|extension| extension == "parquet") {
            let length = file.metadata().map_err(Problem::Read)?.len();
            let table = columnar::Table::open(&mut file, length)?;
            let wanted = table.fields().iter().enumerate();
            let wanted = wanted.filter(|(_, field)| ACTIONS.contains(&field.name().as_str()));
            let wanted: Vec<usize> = wanted.map(|(column, _)| column).collect();
            let mut batches = table.batches(file, length, &wanted)?;
            while let Some(batch) = batches.next(false, &mut |_| true)? {
                actions.extend((0..batch.num_rows()).map(|row| action(&batch, row)));
                self.apply(std::mem::take(&mut actions))?;
            }
            return Ok(());
        }
        for line in BufReader::new(file).lines() {
            let line = line.map_err(|error| match error.kind() {
                io::ErrorKind::InvalidData => wrong("is not UTF-8"),
                _ => Problem::Read(error),
            })?;
            if !line.trim().is_empty() {
                let action = serde_json::from_str(&line);
                actions.push(action.map_err(|_| wrong("has a line that is not JSON"))?);
            }
        }
        self.apply(actions)
    }

    /// Applies the actions of one commit. Their order in it means nothing: a file that is removed
    /// and added is there.
    fn apply(&mut self, actions: Vec<Value>) -> Result<()> {
        let mut added = Vec::new();
        for mut action in actions {
            let mut take = |name| action.get_mut(name).map(Value::take).filter(Value::is_object);
            if let Some(protocol) = take("protocol") {
                self.protocol = Some(protocol);
            }
            if let Some(metadata) = take("metaData") {
                self.metadata = Some(metadata);
            }
            if let Some(sidecar) = take("sidecar") {
                self.sidecars.push(text(&sidecar, "path")?.to_owned());
            }
            if let Some(remove) = take("remove") {
                self.files.remove(&entry(&remove)?);
            }
            if let Some(add) = take("add") {
                added.push((entry(&add)?, add));
            }
        }
        self.files.extend(added);
        Ok(())
    }

    /// The table, once all actions were applied.
    fn finish(self, root: &Path, version: u64) -> Result<Snapshot> {
        let missing = |what: &str| damaged(format_args!("has no {what}"));
        let protocol = self.protocol.ok_or_else(|| missing("protocol"))?;
        let metadata = self.metadata.ok_or_else(|| missing("metadata"))?;
        check_features(&protocol, &metadata)?;
        let columns = columns(&metadata)?;
        let mut files = Vec::with_capacity(self.files.len());
        for ((path, vector), mut add) in self.files {
            if vector.is_some() {
                return Err(unsupported("deletionVectors"));
            }
            let mut given = match add.get_mut("partitionValues").map(Value::take) {
                Some(Value::Object(values)) => values,
                _ => Map::new(),
            };
            let mut values = HashMap::new();
            for column in columns.iter().filter(|column| column.is_partition) {
                let value = match given.remove(&column.name) {
                    Some(Value::Null) => Some(None),
                    // An empty text is null, as the protocol has it.
                    Some(Value::String(value)) => Some(Some(value).filter(|v| !v.is_empty())),
                    _ => None,
                };
                let fits = |value: &Option<String>| {
                    value.as_deref().is_none_or(|value| is_value(value, column.kind.as_ref()))
                };
                let Some(value) = value.filter(fits) else {
                    let name = crate::error::quoted(&column.name);
                    return Err(damaged(format_args!(
                        "has no value, or a malformed one, of partition column {name}"
                    )));
                };
                values.insert(column.name.clone(), value);
            }
            files.push(DataFile { path: located(root, &path)?, values });
        }
        Ok(Snapshot { version, columns, files })
    }
}

/// The actions of a checkpoint that say which files a table has. What it says was removed is not
/// among those that it adds.
const ACTIONS: [&str; 4] = ["protocol", "metaData", "sidecar", "add"];

/// The text of a member that an action must have.
fn text<'a>(action: &'a Value, name: &str) -> Result<&'a str> {
    let text = action.get(name).and_then(Value::as_str);
    text.ok_or_else(|| damaged(format_args!("has an action without {name}")))
}

/// The data file that an action names.
fn entry(action: &Value) -> Result<Entry> {
    let path = plain_path(&unescaped(text(action, "path")?));
    let vector = action.get("deletionVector").filter(|vector| vector.is_object());
    let vector = vector.map(|vector| {
        let part = |name| vector.get(name).map(Value::to_string).unwrap_or_default();
        [part("storageType"), part("pathOrInlineDv"), part("offset")].join("@")
    });
    Ok((path, vector))
}

/// Refuses a table that needs what is not implemented.
fn check_features(protocol: &Value, metadata: &Value) -> Result<()> {
    let needs = |feature: &str| Err(unsupported(feature));
    let version = protocol.get("minReaderVersion").and_then(Value::as_u64);
    let version = version.ok_or_else(|| damaged("has no reader version"))?;
    if version > 3 {
        return needs(&format!("reader version {version}"));
    }
    let features = protocol.get("readerFeatures").and_then(Value::as_array);
    let features = features.into_iter().flatten().map(|name| name.as_str().unwrap_or("?"));
    let setting = |name| metadata.get("configuration")?.get(name)?.as_str();
    let maps = setting("delta.columnMapping.mode").is_some_and(|mode| mode != "none");
    for feature in features.filter(|_| version == 3) {
        if !(HARMLESS.contains(&feature) || feature == "columnMapping" && !maps) {
            return needs(feature);
        }
    }
    if maps {
        return needs("columnMapping");
    }
    let provider = metadata.get("format").and_then(|format| format.get("provider"));
    match provider.and_then(Value::as_str) {
        None | Some("parquet") => Ok(()),
        Some(other) => needs(&format!("files of format {other}")),
    }
}

/// The columns by the table's schema, those of partitions included.
fn columns(metadata: &Value) -> Result<Vec<Column>> {
    let malformed = || damaged("has a malformed schema");
    let schema: Value =
        serde_json::from_str(text(metadata, "schemaString")?).map_err(|_| malformed())?;
    let partitions = metadata.get("partitionColumns").and_then(Value::as_array);
    let partitions: HashSet<_> =
        partitions.into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema.get("fields").and_then(Value::as_array).ok_or_else(malformed)?;
    let names = || fields.iter().filter_map(|field| field.get("name")?.as_str());
    if partitions.iter().any(|partition| !names().any(|name| name == *partition)) {
        return Err(malformed());
    }
    let columns = fields.iter().map(|field| {
        let name = field.get("name").and_then(Value::as_str).ok_or_else(malformed)?;
        let is_partition = partitions.contains(name);
        let mut kind = match field.get("type").ok_or_else(malformed)? {
            Value::String(kind) => Some(primitive(kind)?),
            _ => None,
        };
        if is_partition {
            if kind == Some(DataType::Binary) {
                // Writers do not agree on its form in the log.
                return Err(unsupported("a partition column of type binary"));
            }
            kind = kind.map(|kind| match kind {
                kind if kind.is_integer() => DataType::Int64,
                kind @ (DataType::Boolean | DataType::Date32) => kind,
                // Others have a form as text that depends on their writer.
                _ => DataType::Utf8,
            });
        }
        Ok(Column { name: name.to_owned(), kind, is_partition })
    });
    columns.collect()
}

/// The type of a column that is not nested.
fn primitive(kind: &str) -> Result<DataType> {
    Ok(match kind {
        "string" => DataType::Utf8,
        "long" => DataType::Int64,
        "integer" => DataType::Int32,
        "short" => DataType::Int16,
        "byte" => DataType::Int8,
        "float" => DataType::Float32,
        "double" => DataType::Float64,
        "boolean" => DataType::Boolean,
        "binary" => DataType::Binary,
        "date" => DataType::Date32,
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "timestamp_ntz" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "void" => DataType::Null,
        other => {
            let digits = other.strip_prefix("decimal(").and_then(|rest| rest.strip_suffix(')'));
            let digits = digits.and_then(|digits| digits.split_once(','));
            let digits = digits.map(|(all, scale)| (all.trim().parse(), scale.trim().parse()));
            match digits {
                Some((Ok(precision @ 1..=38), Ok(scale)))
                    if (0..=precision as i8).contains(&scale) =>
                {
                    DataType::Decimal128(precision, scale)
                }
                _ => return Err(unsupported(format_args!("columns of type {other}"))),
            }
        }
    })
}

/// Whether a text is a value of a partition column of this type.
fn is_value(value: &str, kind: Option<&DataType>) -> bool {
    match kind {
        Some(DataType::Int64) => value.parse::<i64>().is_ok(),
        Some(DataType::Boolean) => matches!(value, "true" | "false"),
        Some(DataType::Date32) => value.parse::<chrono::NaiveDate>().is_ok(),
        _ => true,
    }
}

/// The file at a path of the log, which is relative to the table's folder, or absolute and in it.
fn located(root: &Path, path: &str) -> Result<PathBuf> {
    if let Some(path) = relative(path) {
        return Ok(root.join(path));
    }
    let inside = [root.to_owned(), fs::canonicalize(root).unwrap_or_default()];
    let inside = inside.iter().filter(|root| root.is_absolute());
    let inside = inside.filter_map(|root| Path::new(path).strip_prefix(root).ok()).next();
    let inside = inside.and_then(Path::to_str).and_then(relative);
    inside.map(|path| root.join(path)).ok_or_else(|| outside(path))
}

/// The problem of a version that is not there, or no longer with all of its log.
fn no_version(version: u64) -> Problem {
    refuse(
        format_args!(
            "is a Delta table without version {version}, or without a part of the log up to it"
        ),
        "name another version with --as-of, or leave it out to read the newest version",
    )
}

/// The problem of a log that is incomplete or malformed; `what` is the rest of the sentence.
pub(crate) fn damaged(what: impl fmt::Display) -> Problem {
    let remedy = "check that the folder was copied whole, and start again";
    refuse(format_args!("is a Delta table whose log {what}"), remedy)
}

/// The problem of a table that needs a feature of readers that is not implemented.
fn unsupported(feature: impl fmt::Display) -> Problem {
    let what = format_args!("is a Delta table that needs {feature}, which is not supported");
    refuse(what, export(Lake::Delta, "TABLE"))
}

fn outside(path: &str) -> Problem {
    let name = crate::error::quoted(path);
    damaged(format_args!("names a file that is not in the table's folder: {name}"))
}

/// The path, if it leads to a file below the folder that it is relative to.
fn relative(path: &str) -> Option<&Path> {
    let is_inside = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    let is_relative = Path::new(path).components().all(is_inside);
    (is_relative && !path.is_empty() && !has_scheme(path)).then_some(Path::new(path))
}

/// Whether a path begins as a URI does: `s3:/`.
fn has_scheme(path: &str) -> bool {
    let Some((scheme, _)) = path.split_once(":/") else {
        return false;
    };
    scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// An absolute path without `file:`. `/x`, `file:/x` and `file:///x` are one.
fn plain_path(path: &str) -> String {
    let Some(rest) = path.strip_prefix("file:") else {
        return path.to_owned();
    };
    format!("/{}", rest.trim_start_matches('/'))
}

/// The action in a row of a checkpoint.
fn action(batch: &RecordBatch, row: usize) -> Value {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let members = columns.map(|(field, column)| (field.name().clone(), value(column, row)));
    Value::Object(members.filter(|(_, value)| !value.is_null()).collect())
}

/// The value in a row of a column, as an action in JSON has it; null for what no action needs.
fn value(column: &dyn Array, row: usize) -> Value {
    if column.is_null(row) {
        return Value::Null;
    }
    match column.data_type() {
        DataType::Utf8 => Value::from(column.as_string::<i32>().value(row)),
        DataType::Int32 => Value::from(column.as_primitive::<Int32Type>().value(row)),
        DataType::Int64 => Value::from(column.as_primitive::<Int64Type>().value(row)),
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            (0..list.len()).map(|i| value(&list, i)).collect()
        }
        DataType::Map(..) => {
            let entries = column.as_map().value(row);
            let (names, values) = (entries.column(0), entries.column(1));
            let names = names.as_string_opt::<i32>();
            let members = names.into_iter().flat_map(|names| {
                (0..names.len()).map(|i| (names.value(i).to_owned(), value(values, i)))
            });
            Value::Object(members.collect())
        }
        DataType::Struct(fields) => {
            let parts = fields.iter().zip(column.as_struct().columns());
            // Statistics are the largest part of a checkpoint, and no action needs them.
            let parts = parts.filter(|(field, _)| !field.name().starts_with("stats"));
            let members = parts.map(|(field, part)| (field.name().clone(), value(part, row)));
            Value::Object(members.collect())
        }
        _ => Value::Null,
    }
}
