//! The folder of results and pages.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use crate::Error;
use crate::results::{Results, UNFINISHED};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::command::exit::Failure;
use crate::command::output::SingleFile;

/// The file of results.
const RESULTS: &str = "results.json";

/// The marker in the name of an unfinished report file: `.NAME.volery-..`.
const UNFINISHED_REPORT: &str = ".volery-";

/// An output folder that this process alone measures into.
pub(super) struct Place {
    folder: PathBuf,
    /// Declared before the lock, so that it is dropped while the folder is locked.
    _made: Option<Made>,
    _lock: Option<OwnedFd>,
}

/// A folder that was just created: it is removed again if it stays empty.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // Fails, as intended, if the folder is not empty.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Place {
    /// Makes the folder if it does not exist. An existing one must be empty, or hold results. The
    /// report must not be the file of results.
    ///
    /// # Errors
    /// Usage errors that name the option.
    pub(super) fn open(folder: &Path, report: Option<&Path>) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::usage("--out", format_args!("{}: {why}", folder.display()))
        };
        // Another user may have planted it in a shared folder.
        if folder
            .symlink_metadata()
            .is_ok_and(|data| data.is_symlink())
        {
            return Err(
                refuse(&"is a symbolic link").with_hint("remove the link, or name its target")
            );
        }
        let is_new = match fs::create_dir(folder) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(refuse(&error)),
        };
        let lock = lock(folder).map_err(|error| match error {
            Errno::WOULDBLOCK => refuse(&"another run is writing into it"),
            error => refuse(&error),
        })?;
        let made = is_new.then(|| Made(folder.to_owned()));
        let results = folder.join(RESULTS);
        if results.symlink_metadata().is_err() {
            let others = others(folder).map_err(|error| refuse(&error))?;
            if others > 0 {
                return Err(refuse(&format_args!("is not empty and holds no {RESULTS}"))
                    .with_hint("choose another folder, or the one of an earlier run"));
            }
        }
        sweep(folder);
        if let Some(report) = report
            && resolved(report) == resolved(&results)
        {
            let what = format_args!("{} is the file of results", report.display());
            return Err(Failure::usage("--report", what).with_hint("choose another name"));
        }
        // Checks now, not after all measurements, whether the report can be written.
        drop(SingleFile::prepare("--out", &results)?);
        Ok(Self {
            folder: folder.to_owned(),
            _made: made,
            _lock: lock,
        })
    }

    /// The existing results, or empty ones.
    ///
    /// # Errors
    /// If the run cannot continue from them: they are not results, or were measured with other
    /// settings than `asked`.
    pub(super) fn results(&self, asked: &str) -> Result<Results, Failure> {
        let path = self.results_path();
        if path.symlink_metadata().is_err() {
            return Ok(Results::new(asked));
        }
        let results = Results::load(&path)?;
        if results.asked == asked {
            return Ok(results);
        }
        let what = format!("'{}' there, '{asked}' now", results.asked);
        Err(Error::Different { path, what }.into())
    }

    /// The file of the results.
    pub(super) fn results_path(&self) -> PathBuf {
        self.folder.join(RESULTS)
    }
}

/// Locks the folder against other runs as long as this lives; `None` where the file system has no
/// locks.
fn lock(folder: &Path) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
        Err(_) => Ok(None),
    }
}

/// The number of entries in the folder that are not leftovers of a killed run.
fn others(folder: &Path) -> std::io::Result<usize> {
    let mut others = 0;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.as_bytes();
        let mut parts = name.windows(UNFINISHED_REPORT.len());
        let on_its_way =
            name.starts_with(b".") && parts.any(|part| part == UNFINISHED_REPORT.as_bytes());
        others += usize::from(!on_its_way);
    }
    Ok(others)
}

/// Removes the unfinished files of a killed run. The folder is ours, and locked.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let ours = entry
            .file_name()
            .as_bytes()
            .starts_with(UNFINISHED.as_bytes());
        if ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The absolute path without links of a file that need not exist, in a folder that must.
fn resolved(path: &Path) -> Option<PathBuf> {
    if let Ok(existing) = path.canonicalize() {
        return Some(existing);
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    Some(parent.canonicalize().ok()?.join(path.file_name()?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::command::exit::Status;

    #[test]
    fn folders_of_others_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let refused = |folder: &Path| {
            let refused = Place::open(folder, None).err().unwrap();
            assert_eq!(refused.status(), Status::Usage);
            refused.to_string()
        };
        let folder = place.path().join("out");
        let first = Place::open(&folder, None).unwrap();
        assert!(refused(&folder).contains("another run"));
        drop(first);
        let again = Place::open(&folder, None).unwrap();
        drop(again);
        let theirs = place.path().join("thesis.tex");
        fs::write(&theirs, "years of work").unwrap();
        assert!(refused(place.path()).contains("results.json"));
        assert!(refused(&theirs).contains("--out"));
        assert!(refused(&place.path().join("not/there")).contains("--out"));
    }

    #[test]
    fn what_is_refused_leaves_no_folder() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let refused = Place::open(&out, Some(&out.join(RESULTS))).err().unwrap();
        assert!(refused.to_string().contains("--report"), "{refused}");
        assert!(!out.exists());
        // A run that ends before there are results leaves no folder behind either; an existing
        // folder stays.
        drop(Place::open(&out, None).unwrap());
        assert!(!out.exists());
        fs::create_dir(&out).unwrap();
        drop(Place::open(&out, None).unwrap());
        assert!(out.exists());
    }

    #[test]
    fn what_a_killed_run_left_is_no_hindrance() {
        let place = tempfile::tempdir().unwrap();
        let left = place.path().join(format!("{UNFINISHED}a1B2c3"));
        let report = place.path().join(".report.json.volery-1-2-3");
        for path in [&left, &report] {
            fs::write(path, "half").unwrap();
        }
        drop(Place::open(place.path(), None).unwrap());
        assert!(!left.exists());
        // In a folder of other files nothing is removed.
        for path in [&left, &place.path().join("thesis.tex")] {
            fs::write(path, "years of work").unwrap();
        }
        assert!(Place::open(place.path(), None).is_err());
        assert!(left.exists());
    }
}
