//! Removal of the temporary files that killed runs left beside their target.
//!
//! A temporary folder or file is called `.NAME.volery-PID-TIME-HOST`, and its process holds a lock
//! on it. The next run for the same target removes a path with such a name only if it was made on
//! this machine, belongs to this user, is no link, holds only files that volery writes, and is not
//! locked. Everything else is left alone. A folder that was moved aside is put back under the same
//! conditions, because another user could have made a path with such a name.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use volery_os::fs::{remove_dir, remove_file, rename};

use super::beside::{ASIDE, KEPT_FILES, OUR_FILES, beginning, host};

/// A temporary path, open and locked.
pub(crate) struct Lock(
    #[expect(dead_code, reason = "the lock lasts as long as it is there")]
    Option<volery_os::fs::Lock>,
);

impl Lock {
    /// Locks a path that was just created; `None` if another run removed it before it was locked.
    pub(crate) fn new(path: &Path) -> io::Result<Option<Self>> {
        let opened = match open(path) {
            Err(rustix::io::Errno::NOENT) => return Ok(None),
            opened => opened?,
        };
        // On a file system without locks, other runs cannot remove leftovers either.
        let locked = volery_os::fs::Lock::new(File::from(opened)).ok();
        Ok(path.symlink_metadata().is_ok().then_some(Self(locked)))
    }
}

/// Opens a folder or file without following links and without blocking.
fn open(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty())
}

/// Whether `rest` is `PID-TIME-HOST` of this machine.
fn is_ours(rest: &str) -> bool {
    let parts: Vec<_> = rest.split('-').collect();
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts[..], [process, time, machine]
        if number(process) && number(time) && machine == format!("{:016x}", host()))
}

/// Removes the leftovers of killed processes beside `target`, after putting back a folder that one
/// of them moved aside. Paths that cannot be inspected or locked are left alone.
pub(crate) fn sweep(target: &Path) {
    let beginning = beginning(target);
    let entries = target.parent().map(fs::read_dir);
    let mut left = Vec::new();
    for entry in entries.into_iter().flatten().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.as_bytes().strip_prefix(beginning.as_bytes());
        let Some(rest) = rest.and_then(|rest| str::from_utf8(rest).ok()) else {
            continue;
        };
        if rest.strip_prefix(ASIDE).is_some_and(is_ours) {
            if target.symlink_metadata().is_err() && open_output(&entry.path()).is_some() {
                let _ = rename(entry.path(), target);
            }
        } else if is_ours(rest) {
            left.push(entry.path());
        }
    }
    for path in left {
        if let Some(opened) = open_output(&path)
            && let Ok(locked) = volery_os::fs::Lock::try_new(File::from(opened))
        {
            // Through the opened folder: another path may have its name by now.
            for name in names_of_ours() {
                let _ = rustix::fs::unlinkat(locked.file(), name, AtFlags::empty());
            }
            let _ = remove_dir(&path).or_else(|_| remove_file(&path));
        }
    }
}

fn names_of_ours() -> impl Iterator<Item = &'static str> {
    OUR_FILES.into_iter().chain(KEPT_FILES)
}

/// Opens a file of this user, or a folder of this user that holds only files that volery writes;
/// `None` for everything else, including links.
fn open_output(path: &Path) -> Option<OwnedFd> {
    let opened = open(path).ok()?;
    let data = rustix::fs::fstat(&opened).ok()?;
    let is_output = data.st_uid == rustix::process::geteuid().as_raw()
        && match FileType::from_raw_mode(data.st_mode) {
            FileType::RegularFile => true,
            FileType::Directory => Dir::read_from(&opened).ok()?.all(|entry| {
                entry.is_ok_and(|entry| {
                    let name = entry.file_name().to_bytes();
                    let ours = names_of_ours().any(|ours| name == ours.as_bytes());
                    ours || [&b"."[..], b".."].contains(&name)
                })
            }),
            _ => false,
        };
    is_output.then_some(opened)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::output::Folder;
    use crate::output::beside::{aside, temporary};
    use crate::output::tests::{disown, names, plant};

    /// The next run for the same target removes the leftovers of a killed process, and nothing
    /// else.
    #[test]
    fn unlocked_leftovers_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let target = at("out");
        let running = Folder::prepare("--out", &target, false).unwrap();
        let held = names(place.path());

        let this = format!("{:016x}", host());
        let folder = |name: &str, file: &str| {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(file), b"half").unwrap();
        };
        folder(&format!(".out.volery-77-1-{this}"), "u.npy");
        fs::write(at(&format!(".out.volery-78-1-{this}")), b"half").unwrap();

        // Made by others, elsewhere, or something else.
        let mut kept = vec![
            format!(".out.volery-79-1-{this}"),
            format!(".out.volery-80-1-{this}.keep"),
            format!(".out.volery-81-1-{:016x}", host() ^ 1),
            format!(".out2.volery-82-1-{this}"),
            format!(".out.volery-83-1-{this}"),
            format!(".out.volery-84-1-{this}"),
            ".out.volery-2024-backup".to_owned(),
            ".out.volery".to_owned(),
        ];
        folder(&kept[0], "thesis.tex");
        for name in [&kept[1], &kept[2], &kept[3], &kept[7]] {
            fs::write(at(name), b"not ours").unwrap();
        }
        symlink(at("elsewhere"), at(&kept[4])).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at(&kept[5]), FileType::Fifo, Mode::RWXU, 0).unwrap();
        folder(&kept[6], "u.npy");

        let second = Folder::prepare("--out", &target, false).unwrap();
        kept.extend(held);
        kept.sort();
        let mut left = names(place.path());
        left.retain(|name| kept.contains(name));
        assert_eq!(left, kept);
        assert_eq!(names(place.path()).len(), kept.len() + 1);
        drop((running, second));
    }

    #[test]
    fn a_folder_moved_aside_is_put_back() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let old = aside(&target);
        fs::create_dir(&old).unwrap();
        fs::write(old.join("u.npy"), b"old").unwrap();
        sweep(&target);
        assert_eq!(names(place.path()), ["out"]);
        // While the target exists, a folder that was moved aside stays where it is.
        let old = aside(&target);
        fs::create_dir(&old).unwrap();
        sweep(&target);
        assert_eq!(names(place.path()).len(), 2);
    }

    /// Paths that another user could make: links, and folders of that user with names and files
    /// like ours.
    #[test]
    fn planted_paths_are_neither_put_back_nor_removed() {
        let place = tempfile::tempdir().unwrap();
        let target = place.path().join("out");
        let mine = place.path().join("mine");
        fs::create_dir(&mine).unwrap();
        fs::write(mine.join("u.npy"), b"mine").unwrap();
        for make in [aside, temporary] {
            let planted = make(&target);
            plant(&mine, &planted);
            sweep(&target);
            assert!(planted.is_symlink() && !target.is_symlink());
            fs::remove_file(&planted).unwrap();

            fs::create_dir(&planted).unwrap();
            fs::write(planted.join("u.npy"), b"theirs").unwrap();
            if disown(&planted) {
                sweep(&target);
                assert!(planted.join("u.npy").exists() && !target.exists());
            }
            fs::remove_dir_all(&planted).unwrap();

            fs::create_dir(&planted).unwrap();
            fs::write(planted.join("thesis.tex"), b"years of work").unwrap();
            sweep(&target);
            assert!(planted.join("thesis.tex").exists() && !target.exists());
            fs::remove_dir_all(&planted).unwrap();
        }
        assert_eq!(names(place.path()), ["mine"]);
        assert_eq!(names(&mine), ["u.npy"]);
    }
}
