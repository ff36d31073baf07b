//! The folder of results and pages.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use volery_bench::Error;
use volery_bench::results::{Results, UNFINISHED};

use crate::exit::Failure;
use crate::output::{SingleFile, resolve};

/// What is in the folder.
const RESULTS: &str = "results.json";
const CSV: &str = "results.csv";
const INDEX: &str = "index.html";
const PLOTS: &str = "plots";

/// What a report's file on its way, too, has in its name: `.NAME.volery-..`.
const ON_ITS_WAY: &str = ".volery-";

/// An output folder that nobody else measures into, and the document.
pub(super) struct Place {
    folder: PathBuf,
    markdown: PathBuf,
    /// From the folder of the document to the folder, as a link in the document has it.
    link: String,
    /// Before the lock: it goes while the folder is locked.
    _made: Option<Made>,
    _lock: Option<OwnedFd>,
}

/// A folder that was made just now: if it stays empty, it goes again.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // Fails, as it should, if something is in it.
        let _ = fs::remove_dir(&self.0);
    }
}

impl Place {
    /// Makes the folder if it is not there. An existing one must be empty, or hold results. The document and the report must not
    /// be files of the folder that have another purpose, and the document's place must be one that can be written to.
    ///
    /// # Errors
    /// Usage errors that name the option.
    pub(super) fn open(
        folder: &Path,
        markdown: Option<&Path>,
        report: Option<&Path>,
    ) -> Result<Self, Failure> {
        let refuse = |why: &dyn std::fmt::Display| {
            Failure::usage("--out", format_args!("{}: {why}", folder.display()))
        };
        resolve("--out", folder)?;
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
                    .hint("choose another folder, or the one of an earlier run"));
            }
        }
        sweep(folder);
        sweep(&folder.join(PLOTS));
        let default = folder.join("REPRODUCTION.md");
        let markdown = markdown.unwrap_or(&default);
        let link = link(markdown, folder)?;
        refuse_own("--markdown", markdown, folder)?;
        if let Some(report) = report {
            refuse_own("--report", report, folder)?;
            if resolved(report) == resolved(markdown) {
                let what = format_args!("{} is the Markdown document", report.display());
                return Err(Failure::usage("--report", what));
            }
        }
        // That these can be written is found out now, not when all is measured.
        drop(SingleFile::prepare("--out", &results)?);
        drop(SingleFile::prepare("--markdown", markdown)?);
        Ok(Self {
            folder: folder.to_owned(),
            markdown: markdown.to_owned(),
            link,
            _made: made,
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
        self.folder.join(CSV)
    }

    /// The page.
    pub(super) fn index(&self) -> PathBuf {
        self.folder.join(INDEX)
    }

    /// The folder of the plots.
    pub(super) fn plots(&self) -> PathBuf {
        self.folder.join(PLOTS)
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

/// How many things are in the folder that no run of ours leaves there when it is killed.
fn others(folder: &Path) -> std::io::Result<usize> {
    let mut others = 0;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let name = name.as_bytes();
        let mut parts = name.windows(ON_ITS_WAY.len());
        let on_its_way = name.starts_with(b".") && parts.any(|part| part == ON_ITS_WAY.as_bytes());
        others += usize::from(!on_its_way);
    }
    Ok(others)
}

/// Removes the files that a run that was killed has left on their way. The folder is ours, and locked.
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

/// Refuses a path that is the folder itself or one of the files that are written into it.
fn refuse_own(option: &str, path: &Path, folder: &Path) -> Result<(), Failure> {
    let (Some(resolved), Ok(folder)) = (resolved(path), folder.canonicalize()) else {
        return Ok(()); // What has no folder is refused where it is made.
    };
    let files = [RESULTS, CSV, INDEX].map(|name| folder.join(name));
    let own =
        resolved == folder || files.contains(&resolved) || resolved.starts_with(folder.join(PLOTS));
    if !own {
        return Ok(());
    }
    let what = format_args!("{} is one of the files of --out", path.display());
    Err(Failure::usage(option, what).hint("give another name"))
}

/// The absolute path without links, of a file that need not be there, in a folder that must be.
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
            let refused = Place::open(folder, None, None).err().unwrap();
            assert_eq!(refused.status(), Status::Usage);
            refused.to_string()
        };
        let folder = place.path().join("out");
        let first = Place::open(&folder, None, None).unwrap();
        assert!(refused(&folder).contains("another run"));
        drop(first);
        let again = Place::open(&folder, None, None).unwrap();
        assert_eq!(again.link_to("plots"), "plots");
        drop(again);
        let theirs = place.path().join("thesis.tex");
        fs::write(&theirs, "years of work").unwrap();
        assert!(refused(place.path()).contains("results.json"));
        assert!(refused(&theirs).contains("--out"));
        assert!(refused(&place.path().join("not/there")).contains("--out"));
    }
    #[test]
    fn files_of_the_folder_are_not_overwritten() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        std::os::unix::fs::symlink("out", place.path().join("link")).unwrap();
        fs::create_dir(&out).unwrap();
        fs::write(out.join(RESULTS), "results").unwrap();
        fs::create_dir(out.join(PLOTS)).unwrap();
        for own in [
            "out/results.json",
            "out/results.csv",
            "link/index.html",
            "link/plots/a.svg",
            "out/plots/../results.json",
        ] {
            let own = place.path().join(own);
            for (option, markdown, report) in [
                ("--markdown", Some(&*own), None),
                ("--report", None, Some(&*own)),
            ] {
                let refused = Place::open(&out, markdown, report).err().unwrap();
                assert_eq!(refused.status(), Status::Usage);
                assert!(refused.to_string().contains(option), "{refused}");
            }
        }
        let document = out.join("REPRODUCTION.md");
        let refused = Place::open(&out, None, Some(&document)).err().unwrap();
        assert!(refused.to_string().contains("--report"), "{refused}");
        let report = out.join("report.json");
        assert!(Place::open(&out, None, Some(&report)).is_ok());
        assert_eq!(fs::read(out.join(RESULTS)).unwrap(), b"results");
    }

    #[test]
    fn what_is_refused_leaves_no_folder() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let bad = place.path().join("nowhere/a.md");
        assert!(Place::open(&out, Some(&bad), None).is_err());
        assert!(!out.exists());
        // Nor does a run that ends before there are results; one that was there stays.
        drop(Place::open(&out, None, None).unwrap());
        assert!(!out.exists());
        fs::create_dir(&out).unwrap();
        drop(Place::open(&out, None, None).unwrap());
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
        drop(Place::open(place.path(), None, None).unwrap());
        assert!(!left.exists());
        // In a folder of others nothing is removed.
        for path in [&left, &place.path().join("thesis.tex")] {
            fs::write(path, "years of work").unwrap();
        }
        assert!(Place::open(place.path(), None, None).is_err());
        assert!(left.exists());
    }
}
