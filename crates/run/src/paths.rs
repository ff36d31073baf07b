//! Files for results, and checks of file names against accidental overwriting.

use std::fs::File;
use std::path::{Path, PathBuf};

use volery_tables::Lake;

use crate::failure::{Failure, Result};
use crate::output::SingleFile;
use crate::system::number;

/// Refuses to replace a file or a dangling link unless `force` is set.
pub fn check_free(path: &Path, force: bool) -> Result<()> {
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::usage("--out", format_args!("{} exists", path.display()))
        .with_hint("choose another file, or use --force to replace it"))
}

/// Refuses a path of a report that is the input or the output file.
pub fn check_report(
    option: &str,
    report: Option<&Path>,
    input: Option<&Path>,
    out: Option<&Path>,
) -> Result<()> {
    let Some(report) = report else {
        return Ok(());
    };
    for (other, what) in [(input, "the input file"), (out, "the output file")] {
        if other.is_some_and(|other| same(report, other)) {
            return Err(Failure::usage(option, format_args!("{} is {what}", report.display()))
                .with_hint("name another file for it"));
        }
    }
    Ok(())
}

pub(crate) struct ResultFile {
    file: SingleFile,
    path: PathBuf,
    force: bool,
}

impl ResultFile {
    /// Checks, before any work, that `path` of `--out` can be written and is no input.
    pub(crate) fn prepare(path: &Path, inputs: &[PathBuf], force: bool) -> Result<Self> {
        if inputs.iter().any(|input| same(path, input)) {
            let what = format_args!("{} is the input file", path.display());
            return Err(Failure::usage("--out", what)
                .with_hint("choose another file; the input is never overwritten"));
        }
        check_free(path, force)?;
        if path.exists()
            && let Some((lake, table)) = Lake::of_file(path)
        {
            let what = format!("{} is a file of {lake}, {}", path.display(), table.display());
            return Err(Failure::usage("--out", what)
                .with_hint("choose a file outside of its folder: the table would be damaged"));
        }
        Ok(Self { file: SingleFile::prepare("--out", path)?, path: path.to_owned(), force })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Refuses, before the peer is met, a result of so many bytes that does not fit on the disk.
    pub(crate) fn check_space(&self, bytes: u64) -> Result<()> {
        let checked = self.file.check_space("--out", bytes);
        checked.map_err(|failure| {
            failure.with_hint(
                "free some space, or name another disk; --peer-rows N says that the peer has only N \
                 rows, of which each matches once",
            )
        })
    }

    /// Writes the file by `write`, and puts it in its place.
    pub(crate) fn write(self, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        let Self { file, path, force } = self;
        file.write(|file| {
            write(file)?;
            // Another process may have created the file in the meantime.
            check_free(&path, force)
        })
    }
}

/// Whether both paths name the same file, through any links, or would once created.
pub fn same(a: &Path, b: &Path) -> bool {
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata())
        && let (Some(a), Some(b)) = (number(&a), number(&b))
    {
        return a == b;
    }
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// The absolute path of a file that may not exist.
fn whole(path: &Path) -> Option<PathBuf> {
    if let Ok(path) = path.canonicalize() {
        return Some(path);
    }
    let parent = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    Some(parent.canonicalize().ok()?.join(path.file_name()?))
}
