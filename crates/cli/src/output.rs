//! Output that appears whole or not at all.
//!
//! A run writes into a temporary folder beside the one asked for, readable by the owner only, and renames it when all is
//! written and on the disk. An error, a panic (by `Drop`) and a signal (by the handler of [`clean_up_on_signal`]) remove
//! it. What a process that was killed could not remove, the next run for the same target does: a temporary folder that no
//! process holds locked is nobody's. Single files, such as reports, go the same way.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use rustix::fs::FlockOperation;

use crate::exit::{Failure, Status};

/// Names of the files that volery writes into an output folder; `--force` replaces a folder that holds nothing else.
pub(crate) const OUR_FILES: [&str; 6] = [
    "u.npy",
    "v.npy",
    "x.npy",
    "w.npy",
    "delta.npy",
    "report.json",
];

/// Names of files that are in a folder for good: no run replaces a folder that holds one.
const KEPT_FILES: [&str; 2] = ["identity.pem", "fingerprint.txt"];

/// Temporary folders and files of this process. Who holds the lock may create, rename or remove them.
static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The list, also after a panic elsewhere: it is valid at every moment.
fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes SIGINT, SIGTERM and SIGHUP remove what is unfinished and end the process.
pub(crate) fn clean_up_on_signal() {
    // Fails only if a handler is there already, and then that one does it.
    let _ = ctrlc::set_handler(|| {
        // The lock is kept to the end: nothing can be created or renamed any more.
        let unfinished = unfinished();
        for path in unfinished.iter() {
            remove(path);
        }
        Failure::new(
            Status::Other,
            "interrupted by a signal; nothing was left behind",
        )
        .tell();
        process::exit(Status::Other as i32);
    });
}

/// Removes a temporary folder or file, if it is there.
fn remove(path: &Path) {
    if path.is_dir() {
        let _ = fs::remove_dir_all(path);
    } else {
        let _ = fs::remove_file(path);
    }
}

/// A temporary path that is removed when this is dropped.
struct Unfinished {
    path: PathBuf,
    /// Open and locked: who finds it unlocked may remove it.
    _lock: File,
}

impl Unfinished {
    /// Makes a path beside `target` with `make`, which must fail rather than use something that exists. Gives what `make`
    /// gave, too.
    fn new<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        sweep(target);
        loop {
            let path = sibling(target, "");
            let mut list = unfinished();
            let made = make(&path)?;
            list.push(path.clone());
            drop(list);
            let opened = File::open(&path).inspect(|lock| {
                // A file system without locks has nobody who sweeps, either.
                let _ = rustix::fs::flock(lock, FlockOperation::LockExclusive);
            });
            // Somebody may have found it in the moment before it was locked: then once more.
            if path.exists() {
                let unfinished = opened.map(|lock| Self {
                    path: path.clone(),
                    _lock: lock,
                });
                if unfinished.is_err() {
                    remove(&path);
                }
                return unfinished.map(|unfinished| (unfinished, made));
            }
            unfinished().retain(|other| *other != path);
        }
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let mut list = unfinished();
        remove(&self.path);
        list.retain(|path| *path != self.path);
    }
}

/// Removes what processes that were killed have left beside `target`. What cannot be looked at or locked is left alone.
fn sweep(target: &Path) {
    let beginning = sibling_beginning(target);
    let parent = target.parent().map(fs::read_dir);
    for entry in parent.into_iter().flatten().flatten().flatten() {
        let name = entry.file_name();
        // A process number follows; what has been moved aside for a moment has a word there, and is never removed.
        let rest = name.as_bytes().strip_prefix(beginning.as_bytes());
        let ours = rest.is_some_and(|rest| rest.first().is_some_and(u8::is_ascii_digit));
        let path = entry.path();
        let Some(lock) = ours.then(|| File::open(&path).ok()).flatten() else {
            continue;
        };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&path);
        }
    }
}

/// `.NAME.volery-` for `NAME` beside which it is.
fn sibling_beginning(target: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".volery-");
    name
}

/// A name beside `target` that no other process uses, nor one that was killed before: `.NAME.volery-PID-NANOSECONDS`.
fn sibling(target: &Path, what: &str) -> PathBuf {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos());
    let mut name = sibling_beginning(target);
    name.push(format!("{what}{}-{now}", process::id()));
    target.with_file_name(name)
}

/// The absolute path of `path`, with its parent's links resolved; the parent must exist.
fn resolve(option: &str, path: &Path) -> Result<PathBuf, Failure> {
    if let Ok(existing) = path.canonicalize() {
        return Ok(existing);
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(|error| {
        Failure::usage(option, format_args!("{}: {error}", parent.display()))
            .hint(format_args!("mkdir -p {}", parent.display()))
    })?;
    let name = path
        .file_name()
        .ok_or_else(|| Failure::usage(option, format_args!("{} has no name", path.display())))?;
    Ok(parent.join(name))
}

/// An output folder on its way.
pub(crate) struct Folder {
    temporary: Unfinished,
    target: PathBuf,
    force: bool,
}

impl Folder {
    /// Checks that `target` may be written and makes the temporary folder beside it.
    ///
    /// An existing empty folder is filled. A non-empty one is refused unless `force`, and even then if it holds anything
    /// but files that volery writes.
    ///
    /// # Errors
    /// A usage error that names `option`.
    pub(crate) fn prepare(option: &str, target: &Path, force: bool) -> Result<Self, Failure> {
        let target = resolve(option, target)?;
        check_replaceable(option, &target, force)?;
        check_movable(&target).map_err(|error| {
            Failure::usage(
                option,
                format_args!("{} cannot be replaced: {error}", target.display()),
            )
            .hint("if it is a mount point, name a new folder inside it")
        })?;
        let made = Unfinished::new(&target, |path| {
            fs::DirBuilder::new().mode(0o700).create(path)
        });
        let (temporary, ()) = made.map_err(|error| {
            Failure::usage(
                option,
                format_args!("cannot write beside {}: {error}", target.display()),
            )
        })?;
        Ok(Self {
            temporary,
            target,
            force,
        })
    }

    /// Refuses, before any work, a run whose files do not fit on the disk.
    ///
    /// # Errors
    /// A usage error that names `option`.
    pub(crate) fn check_space(&self, option: &str, bytes: u64) -> Result<(), Failure> {
        let Ok(disk) = rustix::fs::statvfs(&self.temporary.path) else {
            return Ok(()); // No way to know: a full disk is then an error when it is met.
        };
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        if bytes > free {
            return Err(Failure::usage(
                option,
                format_args!(
                    "the output takes {bytes} bytes and {} has {free} free",
                    self.target.display()
                ),
            )
            .hint("choose a smaller --n, or another disk"));
        }
        Ok(())
    }

    /// Where the folder will appear.
    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// Creates a file in it, readable by the owner only.
    pub(crate) fn create(&self, name: &str) -> Result<File, Failure> {
        assert!(
            OUR_FILES.contains(&name) || KEPT_FILES.contains(&name),
            "{name} would block --force"
        );
        let path = self.temporary.path.join(name);
        let _no_signal = unfinished();
        create_private(&path).map_err(|error| Failure::file(&path, error))
    }

    /// Makes the folder appear under its name, with all it holds on the disk.
    pub(crate) fn commit(self) -> Result<(), Failure> {
        let failed = |error| Failure::file(&self.target, error);
        sync_folder(&self.temporary.path).map_err(failed)?;
        // Somebody may have put files there in the meantime.
        check_replaceable("--out", &self.target, self.force)?;
        {
            let _no_signal = unfinished();
            replace_folder(&self.temporary.path, &self.target).map_err(failed)?;
        }
        if let Some(parent) = self.target.parent() {
            sync_folder(parent).map_err(failed)?;
        }
        Ok(())
    }
}

/// Moves `new` to `target`, which may be absent, an empty folder, or a folder to be replaced.
fn replace_folder(new: &Path, target: &Path) -> io::Result<()> {
    match fs::rename(new, target) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
        done => return done,
    }
    let old = sibling(target, "old-");
    fs::rename(target, &old)?;
    if let Err(error) = fs::rename(new, target) {
        fs::rename(&old, target)?;
        return Err(error);
    }
    fs::remove_dir_all(&old)
}

/// Finds out before the work, by moving it and back, whether an existing folder can make place for a new one: a mount
/// point, or a folder of somebody else, cannot.
fn check_movable(target: &Path) -> io::Result<()> {
    if !target.exists() {
        return Ok(());
    }
    let aside = sibling(target, "probe-");
    let _no_signal = unfinished();
    fs::rename(target, &aside)?;
    fs::rename(&aside, target)
}

fn check_replaceable(option: &str, target: &Path, force: bool) -> Result<(), Failure> {
    let refuse = |what: &str| Failure::usage(option, format_args!("{} {what}", target.display()));
    let entries = match fs::read_dir(target) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            return Err(refuse("exists and is not a folder"));
        }
        Err(error) => return Err(refuse(&error.to_string())),
    };
    let mut empty = true;
    for entry in entries {
        let entry = entry.map_err(|error| refuse(&error.to_string()))?;
        empty = false;
        let ours = OUR_FILES.iter().any(|name| entry.file_name() == *name);
        if force && !ours {
            return Err(refuse("holds files that volery did not write")
                .hint("--force replaces only folders of earlier runs; choose another folder"));
        }
    }
    if !empty && !force {
        return Err(refuse("is not empty").hint("choose another folder, or --force to replace it"));
    }
    Ok(())
}

/// A single file on its way.
pub(crate) struct SingleFile {
    temporary: Unfinished,
    file: File,
    target: PathBuf,
}

impl SingleFile {
    /// Checks that `target` can be written: makes the temporary file beside it. An existing file is replaced.
    ///
    /// # Errors
    /// A usage error that names `option`.
    pub(crate) fn prepare(option: &str, target: &Path) -> Result<Self, Failure> {
        let target = resolve(option, target)?;
        if target.exists() && !target.is_file() {
            return Err(Failure::usage(
                option,
                format_args!("{} exists and is not a file", target.display()),
            ));
        }
        let made = Unfinished::new(&target, create_private);
        let (temporary, file) = made.map_err(|error| {
            Failure::usage(
                option,
                format_args!("cannot write {}: {error}", target.display()),
            )
        })?;
        Ok(Self {
            temporary,
            file,
            target,
        })
    }

    /// Writes the contents and makes the file appear under its name.
    pub(crate) fn commit(self, contents: &[u8]) -> Result<(), Failure> {
        let target = self.target.clone();
        self.write(|file| {
            file.write_all(contents)
                .map_err(|error| Failure::file(&target, error))
        })
    }

    /// Lets `write` write the contents, and makes the file appear under its name if that went well.
    pub(crate) fn write(
        mut self,
        write: impl FnOnce(&mut File) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        write(&mut self.file)?;
        let failed = |error| Failure::file(&self.target, error);
        self.file.sync_all().map_err(failed)?;
        let _no_signal = unfinished();
        fs::rename(&self.temporary.path, &self.target).map_err(failed)
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    fn fill(folder: &Folder, contents: &[u8]) {
        folder.create("u.npy").unwrap().write_all(contents).unwrap();
    }

    #[test]
    fn a_folder_appears_whole_and_for_its_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let folder = Folder::prepare("--out", &target, false).unwrap();
        fill(&folder, b"all");
        assert!(!target.exists());
        folder.commit().unwrap();
        assert_eq!(names(place.path()), ["out"]);
        assert_eq!(fs::read(target.join("u.npy")).unwrap(), b"all");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&target), 0o700);
        assert_eq!(mode(&target.join("u.npy")), 0o600);
    }

    #[test]
    fn what_is_not_committed_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::prepare("--out", &place.path().join("out"), false).unwrap();
        fill(&folder, b"half");
        drop(folder);
        assert!(names(place.path()).is_empty());

        let target = place.path().join("out");
        let panicked = std::panic::catch_unwind(|| {
            let folder = Folder::prepare("--out", &target, false).unwrap();
            fill(&folder, b"half");
            panic!("on purpose");
        });
        assert!(panicked.is_err());
        assert!(names(place.path()).is_empty());

        drop(SingleFile::prepare("--report", &place.path().join("report")).unwrap());
        assert!(names(place.path()).is_empty());
    }

    /// What a killed process leaves is removed by the next run for the same target, and nothing else is.
    #[test]
    fn what_nobody_holds_is_swept_away() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let running = Folder::prepare("--out", &target, false).unwrap();
        let held = running
            .temporary
            .path
            .file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned();
        fs::create_dir(place.path().join(".out.volery-77-1")).unwrap();
        fs::write(place.path().join(".out.volery-77-1/u.npy"), b"half").unwrap();
        fs::write(place.path().join(".out.volery-78-1"), b"half").unwrap();
        let others = [
            ".out.volery-old-77-1",
            ".out2.volery-77-1",
            ".out.volery",
            "out.volery-77-1",
        ];
        for other in others {
            fs::write(place.path().join(other), b"not ours").unwrap();
        }
        let second = Folder::prepare("--out", &target, false).unwrap();
        let mut left = names(place.path());
        let own = second.temporary.path.file_name().unwrap().to_str().unwrap();
        assert!(left.iter().any(|name| name == own));
        left.retain(|name| name != own);
        let mut expected = others.map(str::to_owned).to_vec();
        expected.push(held);
        expected.sort();
        assert_eq!(left, expected);
        drop((running, second));
        assert_eq!(names(place.path()).len(), others.len());
    }

    #[test]
    fn only_our_own_folders_are_replaced_and_only_by_force() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        fs::create_dir(&target).unwrap();
        let folder = Folder::prepare("--out", &target, false).unwrap();
        fill(&folder, b"first");
        folder.commit().unwrap();

        let refused = Folder::prepare("--out", &target, false).err().unwrap();
        assert_eq!(refused.status(), Status::Usage);
        assert!(refused.to_string().contains("not empty"), "{refused}");

        let folder = Folder::prepare("--out", &target, true).unwrap();
        fill(&folder, b"second");
        folder.commit().unwrap();
        assert_eq!(fs::read(target.join("u.npy")).unwrap(), b"second");
        assert_eq!(names(place.path()), ["out"]);

        fs::write(target.join("thesis.tex"), b"years of work").unwrap();
        let refused = Folder::prepare("--out", &target, true).err().unwrap();
        assert!(refused.to_string().contains("did not write"), "{refused}");
        assert!(target.join("thesis.tex").exists());
    }

    #[test]
    fn impossible_places_are_usage_errors() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        fs::write(&file, b"x").unwrap();
        for target in [
            place.path().join("absent/out"),
            file.join("out"),
            file.clone(),
            PathBuf::from("/proc/volery-out"),
            PathBuf::from(".."),
            PathBuf::from("/"),
        ] {
            let refused = Folder::prepare("--out", &target, false).err().unwrap();
            assert_eq!(refused.status(), Status::Usage, "{}", target.display());
            assert!(
                refused.to_string().starts_with("error: --out: "),
                "{refused}"
            );
        }
        let refused = SingleFile::prepare("--report", place.path()).err().unwrap();
        assert!(refused.to_string().contains("--report"), "{refused}");
    }

    #[test]
    fn more_than_the_disk_holds_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let folder = Folder::prepare("--out", &place.path().join("out"), false).unwrap();
        assert!(folder.check_space("--n", 0).is_ok());
        let refused = folder.check_space("--n", u64::MAX).unwrap_err();
        assert!(refused.to_string().contains("--n"), "{refused}");
    }

    #[test]
    fn a_single_file_is_replaced_whole() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("report.json");
        fs::write(&target, b"old").unwrap();
        SingleFile::prepare("--report", &target)
            .unwrap()
            .commit(b"new")
            .unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(place.path()), ["report.json"]);
    }
}
