//! Randomness.

use std::io;

use super::world::me;

/// Fills `bytes` with cryptographic randomness of the system, or with numbers that follow from the
/// seed of the world.
///
/// # Errors
/// If the system has none.
pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
    let Some(me) = me() else {
        return getrandom::fill(bytes).map_err(io::Error::other);
    };
    let mut inner = me.world.lock();
    for piece in bytes.chunks_mut(8) {
        let drawn = inner.below(u64::MAX).to_le_bytes();
        piece.copy_from_slice(&drawn[..piece.len()]);
    }
    Ok(())
}
