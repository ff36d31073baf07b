//! Where the owner of a file cannot be told, nothing that a killed run left is removed or put back.

use std::io;
use std::path::Path;

/// A temporary path, which no other run removes.
pub(super) struct Lock;

impl Lock {
    pub(super) fn new(_path: &Path) -> io::Result<Option<Self>> {
        Ok(Some(Self))
    }
}

pub(super) fn sweep(_target: &Path) {}
