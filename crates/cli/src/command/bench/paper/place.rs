//! The folder of results and pages.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use volery_bench::Error;
use volery_bench::results::Results;

use crate::exit::Failure;

/// What is in the folder.
const RESULTS: &str = "results.json";

/// An output folder that nobody else measures into, and the document.
pub(super) struct Place {
    folder: PathBuf,
    markdown: PathBuf,
    /// From the folder of the document to the folder, as a link in the document has it.
    link: String,
    _lock: Option<OwnedFd>,
}

impl Place {
    /// Makes the folder if it is not there. An existing one must be empty, or hold results.
    ///
    /// # Errors
    /// Usage errors that name the option.
    pub(super) fn open(folder: &Path, markdown: Option<&Path>) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::usage("--out", format_args!("{}: {why}", folder.display()))
        };
        match fs::create_dir(folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(refuse(&error));
            }
            _ => {}
        }
        let mut entries = fs::read_dir(folder).map_err(|error| refuse(&error))?;
        let results = folder.join(RESULTS);
        if results.symlink_metadata().is_err() && entries.next().is_some() {
            return Err(refuse(&format_args!("is not empty and holds no {RESULTS}"))
                .hint("choose another folder, or the one of an earlier run"));
        }
        let lock = lock(folder).map_err(|error| match error {
            Errno::WOULDBLOCK => refuse(&"another run is writing into it"),
            error => refuse(&error),
        })?;
        let default = folder.join("REPRODUCTION.md");
        let markdown = markdown.unwrap_or(&default);
        Ok(Self {
            folder: folder.to_owned(),
            markdown: markdown.to_owned(),
            link: link(markdown, folder)?,
            _lock: lock,
        })
    }

    /// The results that are there, or none yet.
    ///
    /// # Errors
    /// If they cannot be gone on from: they are no results, or were not `asked` for so.
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

    /// All figures, one a line.
    pub(super) fn csv(&self) -> PathBuf {
        self.folder.join("results.csv")
    }

    /// The page.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join("index.html")
    }

    /// The folder of the plots.
    pub(super) fn plots(&self) -> PathBuf {
        self.folder.join("plots")
    }

    /// The document.
    pub(super) fn markdown(&self) -> &Path {
        &self.markdown
    }

    /// How the document links to something in the folder.
    pub(super) fn link_to(&self, name: &str) -> String {
        match &*self.link {
            "" => name.to_owned(),
            link => format!("{link}/{name}"),
        }
    }
}

/// Makes sure that nobody else writes into the folder as long as this lives; none where the file system has no locks.
fn lock(folder: &Path) -> Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(folder, flags, Mode::empty())?;
    match rustix::fs::flock(&opened, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(opened)),
        Err(Errno::WOULDBLOCK) => Err(Errno::WOULDBLOCK),
        Err(_) => Ok(None),
    }
}

/// The way from the folder of the file to the folder, with `/`; empty if they are the same.
fn link(file: &Path, folder: &Path) -> Result<String, Failure> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failure::usage("--markdown", format_args!("{}: {why}", file.display()))
    };
    if file.is_dir() {
        return Err(refuse(&"is a folder"));
    }
    let parent = match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let from = parent.canonicalize().map_err(|error| refuse(&error))?;
    let to = folder
        .canonicalize()
        .map_err(|error| Failure::file(folder, error))?;
    let (from, to): (Vec<_>, Vec<_>) = (from.components().collect(), to.components().collect());
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let up = from[common..].iter().map(|_| "..".into());
    let down = to[common..]
        .iter()
        .map(|part| part.as_os_str().to_string_lossy());
    Ok(up.chain(down).collect::<Vec<_>>().join("/"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;
    use crate::exit::Status;

    #[test]
    fn links_go_from_the_document_to_the_folder() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for folder in ["out", "out/in", "docs"] {
            fs::create_dir(at(folder)).unwrap();
        }
        for (file, folder, expected) in [
            ("out/a.md", "out", ""),
            ("a.md", "out", "out"),
            ("a.md", "out/in", "out/in"),
            ("docs/a.md", "out/in", "../out/in"),
            ("out/in/a.md", "out", ".."),
        ] {
            assert_eq!(link(&at(file), &at(folder)).unwrap(), expected, "{file}");
        }
        for bad in ["docs", "nowhere/a.md"] {
            let refused = link(&at(bad), &at("out")).unwrap_err();
            assert_eq!(refused.status(), Status::Usage);
            assert!(refused.to_string().contains("--markdown"), "{refused}");
        }
    }

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
        assert_eq!(again.link_to("plots"), "plots");
        drop(again);
        let theirs = place.path().join("thesis.tex");
        fs::write(&theirs, "years of work").unwrap();
        assert!(refused(place.path()).contains("results.json"));
        assert!(refused(&theirs).contains("--out"));
        assert!(refused(&place.path().join("not/there")).contains("--out"));
    }
}
