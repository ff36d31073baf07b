//! The names of temporary paths beside a target: `.NAME.volery-PID-TIME-HOST`.

use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process;
use std::time::SystemTime;

use volery_os::time::wall_clock;

use crate::system::machine;

/// Names of the files that volery writes into an output folder; `--force` replaces a folder that
/// holds nothing else.
pub(crate) const OUR_FILES: [&str; 9] = [
    "u.npy",
    "v.npy",
    "x.npy",
    "w.npy",
    "delta.npy",
    "report.json",
    "match.npy",
    "row.npy",
    "shares.json",
];

/// Names of files that are kept for good: no run replaces a folder that holds one.
pub(crate) const KEPT_FILES: [&str; 2] = ["identity.pem", "fingerprint.txt"];

/// The mark of a folder that was moved aside, where the system cannot exchange two folders.
pub(crate) const ASIDE: &str = "old-";

/// A name beside `target` that no other process uses or has used.
pub(crate) fn temporary(target: &Path) -> PathBuf {
    sibling(target, "")
}

/// Such a name for a folder that is moved aside.
pub(crate) fn aside(target: &Path) -> PathBuf {
    sibling(target, ASIDE)
}

fn sibling(target: &Path, mark: &str) -> PathBuf {
    let now =
        wall_clock().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let mut name = beginning(target);
    name.push(format!("{mark}{}-{now}-{:016x}", process::id(), host()));
    target.with_file_name(name)
}

/// `.NAME.volery-`.
pub(crate) fn beginning(target: &Path) -> OsString {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(".volery-");
    name
}

/// An id of this machine: locks of a shared file system may be visible to one machine only.
pub(crate) fn host() -> u64 {
    let mut hasher = DefaultHasher::new();
    machine().hash(&mut hasher);
    hasher.finish()
}
