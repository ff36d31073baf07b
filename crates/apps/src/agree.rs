//! The public numbers that both parties must give alike, exchanged before they are used.
//!
//! ```text
//! Party                                   Party
//! 1. <---- the numbers of each, crossing ---->
//! ```
//!
//! What the peer sent is compared and reported, and decides no length.
//! Cost: one message of 8 bytes a number, in both directions.

use volery_channel::{Channel, Error};

use crate::error::Result;

/// Sends `ours`, and gives what the peer sent.
pub(crate) fn exchange<const N: usize>(ours: [u64; N], channel: &mut Channel) -> Result<[u64; N]> {
    channel.send(ours.map(u64::to_le_bytes).as_flattened())?;
    channel.flush()?;
    let mut theirs = [[0; 8]; N];
    channel.recv(theirs.as_flattened_mut())?;
    Ok(theirs.map(u64::from_le_bytes))
}

/// Compares numbers with their names.
///
/// # Errors
/// If the channel fails, or at the first number that differs, with both values.
pub(crate) fn same<const N: usize>(
    numbers: [(&'static str, u64); N],
    channel: &mut Channel,
) -> Result<()> {
    let theirs = exchange(numbers.map(|(_, number)| number), channel)?;
    match numbers
        .iter()
        .zip(theirs)
        .find(|((_, ours), theirs)| ours != theirs)
    {
        None => Ok(()),
        Some(((field, ours), theirs)) => Err(Error::Mismatch {
            field: (*field).to_owned(),
            ours: ours.to_string(),
            theirs: theirs.to_string(),
        }
        .into()),
    }
}
