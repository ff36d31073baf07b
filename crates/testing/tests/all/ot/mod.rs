//! OT whose messages are changed in transit, and shared parts of its runs.

mod tampering;

use volery_channel::{Channel, SessionId};
use volery_ot::{CotReceiver, CotSender, Result};
use volery_primitives::Block;
use volery_primitives::prg::Prg;

pub(crate) const SESSION: SessionId = SessionId::from_bytes([0x5a; 32]);

pub(crate) fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

pub(crate) fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    bits
}

/// One call of `extend` for each length.
pub(crate) fn extend_sender(
    cot: &mut impl CotSender,
    lengths: &[usize],
    channel: &mut Channel,
) -> Result<()> {
    for &n in lengths {
        cot.extend(&mut vec![Block::ZERO; n], channel)?;
    }
    Ok(())
}

/// One call of `extend` for each length.
pub(crate) fn extend_receiver(
    cot: &mut impl CotReceiver,
    lengths: &[usize],
    channel: &mut Channel,
) -> Result<()> {
    for &n in lengths {
        let (mut u, mut w) = (vec![0xff; n.div_ceil(8)], vec![Block::ZERO; n]);
        cot.extend(&mut u, &mut w, channel)?;
    }
    Ok(())
}
