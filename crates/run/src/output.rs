//! Output that appears completely or not at all.
//!
//! A run writes into a temporary folder beside the requested one, readable by the owner only, and
//! renames it when everything is written and on the disk. An error, a panic (by `Drop`) and a
//! signal (by the handler of `signal`) remove the temporary folder. The next run for
//! the same target removes the leftovers of a killed process (`leftovers`). Single files, such as
//! reports, are written the same way.
//!
//! Links are followed only in the name of the parent folder: a target that is a link is refused,
//! and a link that takes its place during the run is replaced itself (`rename` follows none) or
//! refused.

mod beside;
#[cfg(unix)]
mod leftovers;
#[cfg(not(unix))]
#[path = "output/no_leftovers.rs"]
mod leftovers;

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use volery_os::fs::{remove_dir_all, remove_file, rename, sync_all};
use volery_os::process::OfProcess;
use volery_os::sync::{Mutex, MutexGuard, PoisonError};

use self::beside::{KEPT_FILES, OUR_FILES};
use self::leftovers::Lock;
use crate::failure::{Failure, Result};
use crate::system::{self, create_private, sync_folder};

/// Whether volery writes files of this name into an output folder: one of [`OUR_FILES`], or shares
/// of a column, `sender_1.npy` and so on.
fn is_ours(name: &str) -> bool {
    let column = |name: &str| {
        let (side, number) = name.strip_suffix(".npy")?.split_once('_')?;
        let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        Some(is_number && (side == "sender" || side == "receiver"))
    };
    OUR_FILES.contains(&name) || column(name) == Some(true)
}

/// Temporary folders and files of this process. The holder of the lock may create, rename or remove
/// them.
static UNFINISHED: OfProcess<Mutex<Vec<PathBuf>>> = OfProcess::new(Mutex::default);

/// The list, also after a panic in another thread: it is valid at every moment.
pub fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a temporary folder or file if it exists; a link itself, not its target.
pub fn remove(path: &Path) {
    if path.symlink_metadata().is_ok_and(|data| data.is_dir()) {
        let _ = remove_dir_all(path);
    } else {
        let _ = remove_file(path);
    }
}

/// A temporary path that is removed on drop.
struct UnfinishedPath {
    path: PathBuf,
    /// Tells other runs that the path is in use.
    _lock: Lock,
}

impl UnfinishedPath {
    /// Creates a path beside `target` with `make`, which must fail rather than use an existing
    /// path. Also returns the value of `make`.
    fn new<T>(target: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        // mutant(world-sweep): drop
        leftovers::sweep(target);
        loop {
            // mutant(world-temporary-name): `beside::temporary(target)` => `if $ON {
            //     target.to_owned() } else { $0 }`
            let path = beside::temporary(target);
            let mut list = unfinished();
            let made = make(&path)?;
            list.push(path.clone());
            drop(list);
            match Lock::new(&path) {
                Ok(Some(lock)) => return Ok((Self { path, _lock: lock }, made)),
                // Another run removed it before it was locked: retry.
                Ok(None) => {}
                Err(error) => {
                    remove(&path);
                    unfinished().retain(|other| *other != path);
                    return Err(error);
                }
            }
            unfinished().retain(|other| *other != path);
        }
    }
}

impl Drop for UnfinishedPath {
    fn drop(&mut self) {
        let mut list = unfinished();
        remove(&self.path);
        list.retain(|path| *path != self.path);
    }
}

/// The absolute path of `path`, with its parent's links resolved; the parent must exist. A link at
/// the end is always refused: in a folder that others may write to, another user may have placed it
/// there to have another file replaced.
fn resolve(option: &str, path: &Path) -> Result<PathBuf> {
    let Some(name) = path.file_name() else {
        // The path ends in `.` or `..`, or is `/`: no link has such a name.
        return path
            .canonicalize()
            .map_err(|error| Failure::usage(option, format_args!("{}: {error}", path.display())));
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let parent = parent.canonicalize().map_err(|error| {
        Failure::usage(option, format_args!("{}: {error}", parent.display()))
            .with_hint(format_args!("mkdir -p {}", parent.display()))
    })?;
    let target = parent.join(name);
    refuse_link(option, &target)?;
    Ok(target)
}

fn refuse_link(option: &str, target: &Path) -> Result<()> {
    if !target.is_symlink() {
        return Ok(());
    }
    let what = format_args!(
        "{} is a symbolic link; volery does not write through links",
        target.display()
    );
    Err(Failure::usage(option, what)
        .with_hint("remove the link if it is not yours; otherwise give the path it points to"))
}

/// An output folder being written.
pub struct Folder {
    temporary: UnfinishedPath,
    target: PathBuf,
    force: bool,
}

impl Folder {
    /// Checks that `target` may be written and makes the temporary folder beside it.
    ///
    /// An existing empty folder is filled. A non-empty one is refused unless `force` is set, and
    /// even then if it holds anything but files that volery writes.
    pub fn prepare(option: &str, target: &Path, force: bool) -> Result<Self> {
        let target = resolve(option, target)?;
        check_replaceable(option, &target, force)?;
        if is_mount_point(&target) {
            return Err(Failure::usage(
                option,
                format_args!("{} is a mount point and cannot be replaced", target.display()),
            )
            .with_hint("choose a new folder inside it"));
        }
        let made = UnfinishedPath::new(&target, system::create_private_folder);
        let (temporary, ()) = made.map_err(|error| {
            Failure::usage(
                option,
                format_args!("cannot write beside {}: {error}", target.display()),
            )
        })?;
        Ok(Self { temporary, target, force })
    }

    /// Refuses, before any work, a run whose files do not fit on the disk.
    pub(crate) fn check_space(&self, option: &str, bytes: u64) -> Result<()> {
        let checked = check_space(option, (&self.temporary.path, &self.target), bytes);
        checked.map_err(|failure| failure.with_hint("choose a smaller --n or another disk"))
    }

    /// The final path of the folder.
    pub fn target(&self) -> &Path {
        &self.target
    }

    /// Creates a file in it, readable by the owner only.
    pub fn create(&self, name: &str) -> Result<File> {
        assert!(
            is_ours(name) || KEPT_FILES.contains(&name),
            "is_ours must know {name}: --force refuses folders with other files"
        );
        let path = self.temporary.path.join(name);
        let _no_signal = unfinished();
        create_private(&path).map_err(|error| Failure::file(&path, error))
    }

    /// Renames the folder to its final name, with all it holds on the disk.
    pub fn commit(self) -> Result<()> {
        let failed = |error| Failure::file(&self.target, error);
        sync_folder(&self.temporary.path).map_err(failed)?;
        // Another process may have put files there in the meantime.
        check_replaceable("--out", &self.target, self.force)?;
        {
            let _no_signal = unfinished();
            replace_folder(&self.temporary.path, &self.target).map_err(failed)?;
        }
        keep_name(&self.target)
    }
}

/// Puts the name of an output, which is in place, on the disk: only then has the run succeeded.
///
/// # Errors
/// If the disk fails: the output may be lost with the power.
pub fn keep_name(target: &Path) -> Result<()> {
    let parent = target.parent().map(|parent| match parent == Path::new("") {
        true => Path::new("."),
        false => parent,
    });
    match parent.map_or(Ok(()), sync_folder) {
        Err(error) if system::has_no_sync(&error) => Ok(()),
        Err(error) => {
            let what = format!("it is written, but may be lost with the power: {error}");
            Err(Failure::file(target, what))
        }
        Ok(()) => Ok(()),
    }
}

/// Refuses an output of so many bytes that does not fit on the disk of the path `at`.
fn check_space(option: &str, (at, target): (&Path, &Path), bytes: u64) -> Result<()> {
    match system::free_space(at) {
        Some(free) if bytes > free => {
            let target = target.display();
            let what = format_args!("the output needs {bytes} bytes, but {target} has {free} free");
            Err(Failure::usage(option, what))
        }
        // Where there is no way to know, a full disk is an error when it is met.
        _ => Ok(()),
    }
}

/// Moves `new` to `target`, which may be absent, an empty folder, or a folder to be replaced. Where
/// the system can exchange two folders, one of them is in place at every moment.
fn replace_folder(new: &Path, target: &Path) -> io::Result<()> {
    match rename(new, target) {
        Err(error) if system::is_occupied(&error, target) => {}
        done => return done,
    }
    if system::exchange(new, target).is_ok() {
        // The temporary path now holds the old folder; the next run would remove it, too.
        remove(new);
        return Ok(());
    }
    let old = beside::aside(target);
    rename(target, &old)?;
    if let Err(error) = rename(new, target) {
        rename(&old, target)?;
        return Err(error);
    }
    remove(&old);
    Ok(())
}

/// Whether an existing folder is a mount point, which cannot be renamed.
fn is_mount_point(target: &Path) -> bool {
    let device = |path: &Path| path.metadata().ok().and_then(|data| system::device(&data));
    let parent = target.parent().and_then(device);
    device(target).is_some_and(|own| parent.is_some_and(|parent| parent != own))
}

fn check_replaceable(option: &str, target: &Path, force: bool) -> Result<()> {
    let refuse = |what: &str| Failure::usage(option, format_args!("{} {what}", target.display()));
    refuse_link(option, target)?;
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
        let name = entry.file_name();
        if force && !name.to_str().is_some_and(is_ours) {
            return Err(refuse("holds files that volery did not write").with_hint(
                "--force replaces only folders of earlier runs; choose another folder",
            ));
        }
    }
    if !empty && !force {
        return Err(
            refuse("is not empty").with_hint("choose another folder, or use --force to replace it")
        );
    }
    Ok(())
}

/// A single file being written.
pub struct SingleFile {
    temporary: UnfinishedPath,
    file: File,
    target: PathBuf,
}

impl SingleFile {
    /// Checks that `target` can be written: makes the temporary file beside it. An existing file is
    /// replaced.
    pub fn prepare(option: &str, target: &Path) -> Result<Self> {
        let target = resolve(option, target)?;
        if target.symlink_metadata().is_ok_and(|data| !data.is_file()) {
            return Err(Failure::usage(
                option,
                format_args!("{} exists and is not a file", target.display()),
            ));
        }
        let made = UnfinishedPath::new(&target, create_private);
        let (temporary, file) = made.map_err(|error| {
            Failure::usage(option, format_args!("cannot write {}: {error}", target.display()))
        })?;
        Ok(Self { temporary, file, target })
    }

    /// Refuses, before the peer is met, a file of so many bytes that does not fit on the disk.
    pub(crate) fn check_space(&self, option: &str, bytes: u64) -> Result<()> {
        check_space(option, (&self.temporary.path, &self.target), bytes)
    }

    /// Writes the contents and renames the file to its final name.
    pub fn commit(self, contents: &[u8]) -> Result<()> {
        let target = self.target.clone();
        self.write(|file| file.write_all(contents).map_err(|error| Failure::file(&target, error)))
    }

    /// Lets `write` write the contents, then renames the file to its final name if that succeeded.
    pub fn write(mut self, write: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
        write(&mut self.file)?;
        let failed = |error| Failure::file(&self.target, error);
        // mutant(world-output-unsynced): drop
        sync_all(&self.file).map_err(failed)?;
        let _no_signal = unfinished();
        rename(&self.temporary.path, &self.target).map_err(failed)?;
        // mutant(world-output-name): insert `if $ON { return Ok(()); }`
        keep_name(&self.target)
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::failure::Status;

    pub(crate) fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// A link as another user would plant it; it stays ours where we may not change its owner.
    pub(crate) fn plant(leads_to: &Path, link: &Path) {
        std::os::unix::fs::symlink(leads_to, link).unwrap();
        disown(link);
    }

    /// Gives a file, a folder or a link to another user; false where we may not.
    pub(crate) fn disown(path: &Path) -> bool {
        let root = rustix::process::geteuid().is_root();
        root && std::os::unix::fs::lchown(path, Some(4242), Some(4242)).is_ok()
    }

    fn fill(folder: &Folder, contents: &[u8]) {
        folder.create("u.npy").unwrap().write_all(contents).unwrap();
    }

    #[test]
    fn names_of_our_files() {
        for name in ["u.npy", "match.npy", "sender_1.npy", "receiver_64.npy"] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "sender_.npy",
            "sender_1",
            "sender_1a.npy",
            "peer_1.npy",
            "x_sender_1.npy",
            "identity.pem",
            "notes.txt",
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }

    #[test]
    fn an_uncommitted_folder_leaves_nothing() {
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

    #[test]
    fn a_name_that_does_not_reach_the_disk_is_an_error() {
        let place = tempfile::tempdir().unwrap();
        keep_name(&place.path().join("out")).unwrap();
        let lost = keep_name(&place.path().join("gone/out")).unwrap_err();
        assert!(lost.to_string().contains("written, but may be lost"), "{lost}");
    }

    /// Links another user may plant where everybody may write: to a file and to a folder of ours,
    /// and dangling ones.
    #[test]
    fn planted_links_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().join("shared");
        fs::create_dir(&shared).unwrap();
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("report.json"), b"mine").unwrap();
        fs::create_dir(place.path().join("empty")).unwrap();
        for leads_to in ["mine/report.json", "mine", "empty", "nowhere"] {
            let link = shared.join("link");
            plant(&place.path().join(leads_to), &link);
            // With a trailing slash the system itself would follow the link.
            for target in [link.clone(), shared.join("link/"), shared.join("link/.")] {
                let refused = [
                    SingleFile::prepare("--out", &target).err(),
                    Folder::prepare("--out", &target, false).err(),
                    Folder::prepare("--out", &target, true).err(),
                ];
                for refused in refused {
                    let refused = refused.expect("it is a link");
                    assert_eq!(refused.status(), Status::Usage);
                    let text = refused.to_string();
                    assert!(text.starts_with("error: --out: "), "{text}");
                    assert!(text.contains("link is a symbolic link"), "{text}");
                    assert!(text.contains("hint: remove the link"), "{text}");
                }
            }
            assert_eq!(names(&shared), ["link"]);
            fs::remove_file(link).unwrap();
        }
        assert_eq!(names(&mine), ["report.json"]);
        assert_eq!(fs::read(mine.join("report.json")).unwrap(), b"mine");
        assert_eq!(names(place.path()), ["empty", "mine", "shared"]);
    }

    /// A link planted during a run is not followed either.
    #[test]
    fn links_that_are_planted_later_are_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("report.json"), b"mine").unwrap();
        let link = place.path().join("link");

        let file = SingleFile::prepare("--report", &link).unwrap();
        plant(&mine.join("report.json"), &link);
        file.commit(b"new").unwrap();
        assert!(!link.is_symlink(), "the link itself is replaced");
        assert_eq!(fs::read(&link).unwrap(), b"new");
        fs::remove_file(&link).unwrap();

        for force in [false, true] {
            let folder = Folder::prepare("--out", &link, force).unwrap();
            fill(&folder, b"new");
            plant(&mine, &link);
            let refused = folder.commit().unwrap_err();
            assert!(refused.to_string().contains("symbolic link"), "{refused}");
            fs::remove_file(&link).unwrap();
        }
        assert_eq!(names(&mine), ["report.json"]);
        assert_eq!(fs::read(mine.join("report.json")).unwrap(), b"mine");
    }

    /// Links on the way to the parent are the caller's own choice.
    #[test]
    fn links_to_the_parent_are_followed() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("disk")).unwrap();
        plant(&place.path().join("disk"), &place.path().join("link"));
        let target = place.path().join("link/out");
        Folder::prepare("--out", &target, false).unwrap().commit().unwrap();
        assert_eq!(names(&place.path().join("disk")), ["out"]);
    }
}
