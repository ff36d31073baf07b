//! Windows, as far as the standard library tells: where it has no answer, there is `None`.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::path::Path;
use std::process::ExitStatus;

/// Creates a file with the access list of its folder; it must not exist.
pub fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a folder with the access list of its folder; it must not exist.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::create_dir(path)
}

/// Never: the access list of a file cannot be read. docs/deploy.md tells operators to look.
pub fn is_exposed(_data: &Metadata, _group: bool) -> bool {
    false
}

/// Unknown, so that a mount point is found out when the folder cannot be moved.
pub fn device(_data: &Metadata) -> Option<u64> {
    None
}

/// Unknown, so that files are compared by their paths.
pub fn number(_data: &Metadata) -> Option<(u64, u64)> {
    None
}

/// Never: pipes with names are no files.
pub fn is_pipe(_data: &Metadata) -> bool {
    false
}

/// Unknown, so that a full disk is an error when it is met.
pub fn free_space(_path: &Path) -> Option<u64> {
    None
}

/// Nothing is synced, so nothing is refused.
pub fn has_no_sync(_error: &io::Error) -> bool {
    false
}

/// Whether a folder could not be moved to `target` because one is there, be it empty.
pub fn is_occupied(_error: &io::Error, target: &Path) -> bool {
    target.symlink_metadata().is_ok_and(|data| data.is_dir())
}

/// There is no such call: the caller moves one after the other.
pub fn exchange(_a: &Path, _b: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The name of this machine.
pub fn machine() -> Vec<u8> {
    let name = std::env::var_os("COMPUTERNAME").unwrap_or_default();
    name.into_encoded_bytes()
}

/// No process is ended by a signal: one that is killed has an exit status.
pub fn signal(_status: ExitStatus) -> Option<i32> {
    None
}

/// There is no such call.
pub fn keep_memory_private() {}
