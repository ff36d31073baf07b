//! The session on the caller's transport, and blocks in the caller's memory.

use bytemuck::Pod;
use volery::channel::{Channel, Hello, Session};
use volery::primitives::Block;
use volery::primitives::cpu::Cpu;
use volery::primitives::pages::Buffer;

use crate::options::Options;
use crate::raw::{CallbackTransport, In};
use crate::status::{Failure, Result};

/// `volery_block`: 16 bytes at any address.
pub(crate) type Bytes16 = [u8; 16];

/// The caller's `delta`, if it gives one.
pub(crate) fn given_delta(delta: &In<Bytes16>) -> Result<Option<Block>> {
    match delta.optional("delta")?.map(|delta| Block::from_bytes(*delta)) {
        Some(Block::ZERO) => Err(Failure::usage("delta is zero, which hides nothing")),
        delta => Ok(delta),
    }
}

/// The handshake, before which nothing is computed.
pub(crate) fn begin(
    transport: CallbackTransport,
    hello: &Hello,
    options: &Options,
) -> Result<Session> {
    // Otherwise the first kernel would panic.
    Cpu::check().map_err(Failure::usage)?;
    let rng = options.randomness(hello.role)?;
    Ok(Session::begin_with(Channel::new(transport), hello, rng)?)
}

/// Lets `fill` write into the caller's memory as elements of another type of the same size; beside
/// it, and then copied, where it is not aligned for that type.
pub(crate) fn as_elements<A: Pod, B: Pod, O>(out: &mut [A], fill: impl FnOnce(&mut [B]) -> O) -> O {
    if let Ok(aligned) = bytemuck::try_cast_slice_mut(out) {
        return fill(aligned);
    }
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(out);
    let mut beside = Buffer::<B>::zeroed(bytes.len() / size_of::<B>());
    let outcome = fill(&mut beside);
    bytes.copy_from_slice(bytemuck::cast_slice(&beside));
    outcome
}

/// The blocks of these bytes, copied.
pub(crate) fn blocks(bytes: &[Bytes16]) -> Buffer<Block> {
    let mut blocks = Buffer::zeroed(bytes.len());
    Block::as_bytes_mut(&mut blocks).copy_from_slice(bytes.as_flattened());
    blocks
}
