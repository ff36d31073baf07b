//! Randomness from the operating system, and bytes as text.

pub use volery_matching::steps::hex;
use volery_primitives::prg::Prg;

use crate::failure::{Failure, Result, Status};

/// A generator seeded by the operating system.
pub fn fresh_prg() -> Result<Prg> {
    Prg::from_os().map_err(|error| {
        Failure::new(
            Status::Other,
            format_args!("the operating system returned no random numbers: {error}"),
        )
    })
}
