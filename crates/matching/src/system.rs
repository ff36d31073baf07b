//! Calls for files that differ between operating systems.
//!
//! Windows has no permissions of the owner alone that the standard library could set: a new file
//! or folder inherits the access list of the folder that it is in.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::path::Path;

#[cfg(unix)]
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};

use volery_os::fs::sync_all;

/// Options by which a new file can be read by its owner only.
pub(crate) fn private_file() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode"))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    options.mode(0o600);
    options
}

/// Makes a folder for its owner only, and those above it, which outlive a loss of power; it may be
/// there already.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    let parent = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    if !parent.is_dir() {
        make_private_folder(parent)?;
    }
    #[cfg_attr(not(unix), expect(unused_mut, reason = "there is no mode"))]
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    builder.mode(0o700);
    match builder.create(path) {
        Err(error) if !path.is_dir() => return Err(error),
        _ => {}
    }
    // Also where it is there: the run that made it may have failed here.
    // mutant(world-work-parent): insert `if $ON { return Ok(()); }`
    match sync_folder(parent) {
        // One that this user may not read, or in which all names are of mounts: it has no sync.
        Err(error) if [PermissionDenied, InvalidInput, Unsupported].contains(&error.kind()) => {
            Ok(())
        }
        synced => synced,
    }
}

/// The file by whose lock one process has a folder: the folder itself, where that can be opened as
/// a file.
pub(crate) fn lock_of_folder(folder: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        File::open(folder)
    }
    #[cfg(not(unix))]
    {
        let mut options = private_file();
        options.write(true).create(true).truncate(false);
        options.open(folder.join("lock"))
    }
}

/// Puts the contents of a file on the disk.
pub(crate) fn sync_file(path: &Path) -> io::Result<()> {
    // Windows does it for those only that may write.
    let mut options = OpenOptions::new();
    options.read(true).write(cfg!(windows));
    sync_all(&options.open(path)?)
}

/// Puts the names in a folder on the disk. Windows offers no such call; its file system records
/// changes of names in a journal.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        sync_all(&File::open(path)?)
    }
    #[cfg(not(unix))]
    {
        path.metadata().map(drop)
    }
}
