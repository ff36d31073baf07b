//! Loading of shared values into an array, by one switching network: its inputs are the values and
//! zeros, its outputs the slots of the stash and of the three lowest levels, or four if there are
//! more than 2^22 entries.
//!
//! ```text
//! P1: values, shared                      P2: values, shared
//! 0. <---- n, the ring, S, that it is loaded, crossing ---->
//! 1.                                      a random leaf for each entry, and the nearest free slot
//! 2. ------------------------ switching, to the slots that are loaded ------------------------
//! ```
//!
//! Entries that do not fit on their path go to the stash: 0.6 of 2^20 entries on average.
//!
//! Security: that of [`crate::switching`]. P1 does not learn which slots hold entries.
//!
//! Cost: 32 bytes each way for step 0; then 2 messages for each batch of switches,
//! [`crate::ring_cot`]. With three levels (and `L` at least 2) there are `7*2^L + S` wires, `3.5*n`
//! where `n` is a power of two: at `n = 2^20`, 76.5 million switches, each an OT, a bit from P2 and
//! a ring element from P1: 9.6 MB and in a 64-bit ring 612 MB, beside the OTs (SoftSpoken with `k =
//! 8`: 144 MB from P2).
//!
//! Memory: that of the network, about 50 bytes a wire at P2, 180 MB at `n = 2^20`.

use crate::switching;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use zeroize::Zeroizing;

use super::{map::Shape, meet::Start, memory::Memory};

/// P1, steps 0 and 2.
pub(super) fn send<R: Ring, C: CotSender>(
    values: &[R],
    memory: &mut Memory<R>,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    memory.agree(Start::Loaded, channel)?;
    let mut wires = inputs(values, memory.shape);
    switching::send(&mut wires, ot, channel)?;
    fill(memory, &wires);
    Ok(())
}

/// P2, steps 0 and 2, with the entries for the slots in `sources`.
pub(super) fn receive<R: Ring, C: CotReceiver>(
    values: &[R],
    sources: &[usize],
    memory: &mut Memory<R>,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    memory.agree(Start::Loaded, channel)?;
    let mut wires = inputs(values, memory.shape);
    switching::receive(sources, &mut wires, ot, channel)?;
    fill(memory, &wires);
    Ok(())
}

fn inputs<R: Ring>(values: &[R], shape: Shape) -> Zeroizing<Vec<R>> {
    let mut wires = Zeroizing::new(vec![R::ZERO; shape.loaded().count()]);
    wires[..values.len()].copy_from_slice(values);
    wires
}

fn fill<R: Ring>(memory: &mut Memory<R>, wires: &[R]) {
    for (slot, wire) in memory.shape.loaded().zip(wires) {
        memory.shares[slot] = *wire;
    }
}
