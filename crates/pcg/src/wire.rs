//! Ring elements on the channel.

use volery_channel::{Channel, Error, Result};
use volery_field::Ring;
use volery_primitives::Block;
use zeroize::Zeroizing;

/// Elements sent from one piece of memory.
const CHUNK: usize = 1 << 14;

/// Sends the elements in their canonical form, [`Ring::encoded_len`] bytes.
pub fn send<R: Ring>(elements: &[R], channel: &mut Channel) -> Result<()> {
    let mut bytes = Vec::new();
    for chunk in elements.chunks(CHUNK) {
        bytes.clear();
        R::write(chunk, &mut bytes);
        channel.send(&bytes)?;
    }
    Ok(())
}

/// Fills `elements` with those of the peer's message.
///
/// # Errors
/// If the channel fails, or an element is not in canonical form; the error then contains `what`.
pub fn recv<R: Ring>(elements: &mut [R], what: &'static str, channel: &mut Channel) -> Result<()> {
    let mut bytes = vec![0; R::encoded_len(elements.len().min(CHUNK))];
    for chunk in elements.chunks_mut(CHUNK) {
        let bytes = &mut bytes[..R::encoded_len(chunk.len())];
        channel.recv(bytes)?;
        // mutant(wire-canonical): ignore
        R::read(bytes, chunk).map_err(|_| Error::PeerMisbehaved(what))?;
    }
    Ok(())
}

/// An element as the message of an OT: its canonical bytes, of which there are at most 16, then
/// zeros.
#[must_use]
pub fn pack<R: Ring>(element: R) -> Block {
    let mut bytes = Zeroizing::new(Vec::with_capacity(16));
    R::write(&[element], &mut bytes);
    let mut block = [0; 16];
    block[..bytes.len()].copy_from_slice(&bytes);
    Block::from_bytes(block)
}

/// The element in the message of an OT: that of [`pack`], and an arbitrary element for any other
/// message.
#[must_use]
pub fn unpack<R: Ring>(message: Block) -> R {
    R::from_block(message)
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp31x4, Fp61, Fp64x2, Gf128, Z64};
    use volery_primitives::prg::Prg;

    use super::*;

    #[test]
    fn packed_elements_come_out_again() {
        fn check<R: Ring>() {
            let mut random = Prg::new(Block::from(1));
            for element in [R::ZERO, R::ONE, R::ZERO - R::ONE, R::random(&mut random)] {
                assert!(unpack::<R>(pack(element)) == element);
            }
        }
        check::<Fp61>();
        check::<Z64>();
        check::<Gf128>();
        check::<Fp31x4>();
        check::<Fp64x2>();
    }
}
