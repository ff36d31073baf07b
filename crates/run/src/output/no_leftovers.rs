//! Where the owner of a file cannot be told, nothing that a killed run left is removed or put back.

use std::io;
use std::path::Path;

/// A temporary path, which no other run removes.
pub(crate) struct Lock;

impl Lock {
    pub(crate) fn new(_path: &Path) -> io::Result<Option<Self>> {
        Ok(Some(Self))
    }
}

pub(crate) fn sweep(_target: &Path) {}
