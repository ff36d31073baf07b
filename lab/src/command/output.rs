//! Files of results that a command writes at its end.

use std::path::Path;

use super::exit::Failure;
use crate::results::unfinished_in;

/// Checks before a measurement that the file that an option names can be written after it. An
/// existing file will be replaced.
pub(crate) fn check_writable(option: &str, target: &Path) -> Result<(), Failure> {
    let refuse = |why: &dyn std::fmt::Display| {
        Failure::usage(option, format_args!("{}: {why}", target.display()))
    };
    if target.symlink_metadata().is_ok_and(|data| !data.is_file()) {
        return Err(refuse(&"exists and is not a file"));
    }
    unfinished_in(target).map(drop).map_err(|error| refuse(&error))
}
