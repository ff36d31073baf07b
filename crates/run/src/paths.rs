//! Checks of file names against accidental overwriting.

use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::system::number;

/// Refuses to replace a file or a dangling link unless `force` is set.
pub fn check_free(path: &Path, force: bool) -> Result<(), Failure> {
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(Failure::usage("--out", format_args!("{} exists", path.display()))
        .with_hint("choose another file, or use --force to replace it"))
}

/// Refuses a path of a report that is the input or the output file.
///
/// # Errors
/// A usage error.
pub fn check_report(
    option: &str,
    report: Option<&Path>,
    input: Option<&Path>,
    out: Option<&Path>,
) -> Result<(), Failure> {
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
