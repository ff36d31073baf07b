//! The differences between operating systems in files and processes.
//!
//! Windows has no permissions of the owner alone that the standard library could set or read: a new
//! file or folder inherits the access list of the folder that it is in. It also tells neither the
//! owner of a file nor its number, nor the free space of a disk.

#[cfg(not(unix))]
mod other;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub use self::other::*;
#[cfg(unix)]
pub use self::unix::*;
pub use volery_matching::steps::sync_folder;
