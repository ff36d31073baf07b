//! The folder of results.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::super::exit::Failure;
use super::super::output::check_writable;
use crate::Error;
use crate::results::{Results, UNFINISHED};

const RESULTS: &str = "results.json";

/// An output folder that this process alone measures into.
pub(super) struct Folder {
    path: PathBuf,
    /// Declared before the lock, so that it is dropped while the folder is locked.
    _made: Option<Made>,
    _lock: File,
}

/// A folder that was just created: it is removed again if it stays empty.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // Fails, as intended, if the folder is not empty.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Folder {
    /// Makes the folder if it does not exist. An existing one must be empty, or hold results.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::usage("--out", format_args!("{}: {why}", path.display()))
        };
        // Another user may have planted it in a shared folder.
        if path.symlink_metadata().is_ok_and(|data| data.is_symlink()) {
            let failure = refuse(&"is a symbolic link");
            return Err(failure.with_hint("remove the link, or name its target"));
        }
        let is_new = match fs::create_dir(path) {
            Ok(()) => true,
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(refuse(&error)),
        };
        let lock = File::open(path).map_err(|error| refuse(&error))?;
        // A file system without locks protects nothing.
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            return Err(refuse(&"another run is writing into it"));
        }
        let made = is_new.then(|| Made(path.to_owned()));
        let results = path.join(RESULTS);
        let is_known = results.symlink_metadata().is_ok();
        for entry in fs::read_dir(path).map_err(|error| refuse(&error))? {
            let entry = entry.map_err(|error| refuse(&error))?;
            let name = entry.file_name().to_string_lossy().into_owned();
            // Unfinished files of a killed run are no hindrance.
            let unfinished = name.starts_with('.') && name.contains(".volery-");
            if !is_known && !unfinished {
                let failure = refuse(&format_args!("is not empty and holds no {RESULTS}"));
                return Err(failure.with_hint("choose another folder, or that of an earlier run"));
            }
        }
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
            if ours && entry.file_type().is_ok_and(|kind| kind.is_file()) {
                let _ = fs::remove_file(entry.path());
            }
        }
        // Checks now, not after all measurements, whether the results can be written.
        check_writable("--out", &results)?;
        Ok(Self { path: path.to_owned(), _made: made, _lock: lock })
    }

    /// The existing results, or empty ones.
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

    pub(super) fn results_path(&self) -> PathBuf {
        self.path.join(RESULTS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_others_are_refused_and_left() {
        let place = tempfile::tempdir().unwrap();
        let refused = |folder: &Path| Folder::open(folder).err().unwrap().to_string();
        let out = place.path().join("out");
        let first = Folder::open(&out).unwrap();
        assert!(refused(&out).contains("another run"));
        drop(first);
        assert!(!out.exists(), "a folder without results is removed");
        fs::create_dir(&out).unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&out, &link).unwrap();
        assert!(refused(&link).contains("symbolic link"));
        // A killed run is no hindrance, unless there are other files.
        let left = out.join(format!("{UNFINISHED}a1B2c3"));
        fs::write(&left, "half").unwrap();
        drop(Folder::open(&out).unwrap());
        assert!(out.exists() && !left.exists());
        for path in [&left, &out.join("thesis.tex")] {
            fs::write(path, "years of work").unwrap();
        }
        assert!(refused(&out).contains(RESULTS) && left.exists());
        assert!(refused(&out.join("thesis.tex")).contains("--out"));
        assert!(refused(&place.path().join("not/there")).contains("--out"));
    }
}
