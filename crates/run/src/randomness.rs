//! Randomness from the operating system, and bytes as text.

use volery_primitives::prg::Prg;

use crate::failure::{Failure, Status};

/// A generator seeded by the operating system.
pub fn fresh_prg() -> Result<Prg, Failure> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the operating system returned no random numbers: {error}"),
        )
    })
}

/// Bytes in hexadecimal, as of a session id.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
