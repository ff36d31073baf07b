//! The files that paths, folders and patterns name.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::error::{Error, Problem, refuse};

/// The columns that the names of folders give, `name=value`, with their values.
pub(crate) type FolderColumns = Vec<(String, Option<String>)>;

/// A file, and the columns that the names of its folders give.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct InputFile {
    pub(crate) path: PathBuf,
    pub(crate) partitions: FolderColumns,
}

/// The path that stands for standard input.
pub(crate) const STANDARD_INPUT: &str = "-";

/// The maximum depth of folders, against links that lead back.
const DEPTH: usize = 32;

/// The value that stands for null.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// All files of `paths`, in their order.
pub(crate) fn expand(paths: &[PathBuf]) -> Result<Vec<InputFile>, Error> {
    let mut found = Vec::new();
    for path in paths {
        let is_pattern = !path.exists() && path.to_string_lossy().contains(['*', '?', '[']);
        if path.as_os_str() == STANDARD_INPUT || !is_pattern {
            add(path, path, &mut found)?;
            continue;
        }
        let no_match = || {
            Error::new(
                path,
                refuse(
                    "no such file, and no file matches this pattern",
                    "check the name; * and ? in it stand for any characters",
                ),
            )
        };
        let before = found.len();
        let matches = glob::glob(&path.to_string_lossy()).map_err(|_| no_match())?;
        let base: PathBuf = path.components().take_while(|part| !is_special(part)).collect();
        for entry in matches {
            let file = entry.map_err(|e| Error::new(path, Problem::Open(e.into())))?;
            add(&base, &file, &mut found)?;
        }
        if found.len() == before {
            return Err(no_match());
        }
    }
    let mut seen = HashSet::new();
    match found.iter().find(|file| !seen.insert(&file.path)) {
        Some(twice) => Err(Error::new(&twice.path, refuse("is named twice", "name it once"))),
        None if found.is_empty() => {
            Err(Error::new(Path::new(""), refuse("no file is named", "name a file: --input FILE")))
        }
        None => Ok(found),
    }
}

fn is_special(part: &Component<'_>) -> bool {
    part.as_os_str().to_string_lossy().contains(['*', '?', '['])
}

/// Adds a file, or the Parquet files of a folder; folders below `base` are columns.
fn add(base: &Path, path: &Path, found: &mut Vec<InputFile>) -> Result<(), Error> {
    if !path.is_dir() {
        let folder = path.parent().unwrap_or(path);
        let partitions = match path == base {
            true => Vec::new(),
            false => partitions(folder.strip_prefix(base).unwrap_or(Path::new(""))),
        };
        let path = path.to_owned();
        found.push(InputFile { path, partitions });
        return Ok(());
    }
    let mut files = Vec::new();
    walk(path, DEPTH, &mut files)?;
    if files.is_empty() {
        return Err(Error::new(
            path,
            refuse(
                "is a folder without .parquet files",
                "a folder is a table of Parquet files: name other files one by one",
            ),
        ));
    }
    files.into_iter().try_for_each(|file| add(base, &file, found))
}

/// The Parquet files of a folder in the order of their names. Hidden ones, and those that begin
/// with an underscore, are of the tool that wrote the folder, except folders of a column whose name
/// begins so.
fn walk(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<(), Error> {
    let failed = |error| Error::new(folder, Problem::Open(error));
    let entries = fs::read_dir(folder).map_err(failed)?;
    let entries: Result<Vec<_>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut entries = entries.map_err(failed)?;
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_folder = path.is_dir();
        let is_column = is_folder && name.contains('=');
        if name.starts_with(['.', '_']) && !is_column {
            continue;
        }
        if is_folder {
            let too_deep = || {
                refuse("folders are nested too deeply here", "look for a link to a folder above it")
            };
            let deeper = depth.checked_sub(1).ok_or_else(|| Error::new(&path, too_deep()))?;
            walk(&path, deeper, files)?;
        } else if [".parquet", ".parq"].iter().any(|end| name.to_ascii_lowercase().ends_with(end)) {
            files.push(path);
        }
    }
    Ok(())
}

/// The columns in the names of folders.
fn partitions(folders: &Path) -> FolderColumns {
    let parts = folders.components().filter_map(|part| {
        let part = part.as_os_str().to_str()?;
        let (name, value) = part.split_once('=')?;
        let value = (value != NULL).then(|| unescaped(value));
        Some((unescaped(name), value))
    });
    parts.collect()
}

/// A name without the escapes `%XX`, two hexadecimal digits each.
pub(crate) fn unescaped(name: &str) -> String {
    let bytes = name.as_bytes();
    let (mut out, mut i) = (Vec::with_capacity(bytes.len()), 0);
    while i < bytes.len() {
        let escape = (bytes[i] == b'%').then(|| name.get(i + 1..i + 3)).flatten();
        let escape = escape.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match escape.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                i += 3;
            }
            None => {
                out.push(bytes[i]);
                i += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| name.to_owned())
}
