//! Unix: permissions, owners, numbers of files, signals.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _,
    PermissionsExt as _,
};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use rustix::fs::{CWD, RenameFlags};

/// Creates a file that only its owner can read; it must not exist.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Creates a folder that only its owner can open; it must not exist.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().mode(0o700).create(path)
}

/// Whether another user can read or change the file. With `group`, its group may read it, and root,
/// who mounts secrets, may own it.
pub fn is_exposed(data: &Metadata, group: bool) -> bool {
    let (forbidden, root) = if group { (0o037, 0) } else { (0o077, u32::MAX) };
    let own = rustix::process::geteuid().as_raw();
    data.permissions().mode() & forbidden != 0 || ![own, root].contains(&data.uid())
}

/// The number of the device that a file is on.
pub fn device(data: &Metadata) -> Option<u64> {
    Some(data.dev())
}

/// The numbers of the device and of the file on it.
pub fn number(data: &Metadata) -> Option<(u64, u64)> {
    Some((data.dev(), data.ino()))
}

/// Whether a path leads to a pipe with a name.
pub fn is_pipe(data: &Metadata) -> bool {
    data.file_type().is_fifo()
}

/// Bytes that this user can still write to the disk of a path.
pub fn free_space(path: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(path).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Whether the system does not put the names of a folder on the disk, or not for this user: some
/// network file systems do not.
pub fn has_no_sync(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    [InvalidInput, PermissionDenied, Unsupported].contains(&error.kind())
        || error.raw_os_error() == Some(rustix::io::Errno::BADF.raw_os_error())
}

/// Whether a folder could not be moved to `target` because one with files is there.
pub fn is_occupied(error: &io::Error, _target: &Path) -> bool {
    error.kind() == io::ErrorKind::DirectoryNotEmpty
}

/// Exchanges two folders, each of which has a name at every moment.
pub fn exchange(a: &Path, b: &Path) -> io::Result<()> {
    volery_os::call("exchange");
    rustix::fs::renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(io::Error::from)
}

/// The name of this machine.
pub fn machine() -> Vec<u8> {
    rustix::system::uname().nodename().to_bytes().to_vec()
}

/// The signal that ended a process.
pub fn signal(status: ExitStatus) -> Option<i32> {
    status.signal()
}

/// Keeps secrets out of core dumps and stops other processes of the same user from reading this
/// process's memory. The call fails on no system that supports it.
pub fn keep_memory_private() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}
