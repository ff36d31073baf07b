//! Multi-point functions by a distributed point function in every bucket: the proposal of Boyle,
//! Couteau, Gilboa and Ishai (*Compressing Vector OLE*, CCS 2018), with the cuckoo arrangement of
//! the 2019 paper; the first baseline of its section 8.3.2, "FLORAM".
//!
//! ```text
//! Key holder: beta1_l for each bucket l   Value holder: alpha_l, its place in each bucket, beta2_l
//! 1. ------ module dpf in all buckets, in lockstep; the key holder's shares of the places are zero ------
//! 2. r, the sum over the buckets          m, likewise
//! ```
//!
//! It is Protocol 5 with this protocol for `SPFSS.Gen`: an index that may be shared takes `h + 2`
//! messages each way for `h` levels, where one that is known takes one.
//!
//! Security: that of [`crate::baselines::dpf`], semi-honest.
//!
//! Cost: that of [`crate::baselines::dpf`] on the trees of the arrangement.

use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender};
use volery_pcg::mpcot::Layout;
use volery_primitives::{pages::Buffer, prg::Prg};

use crate::baselines::dpf::{self, Input, Ots};

/// The key holder: its shares `r` of the points of the domain, and of some behind it.
pub(crate) fn key_holder<R: Ring, S: CotSender, C: CotReceiver>(
    layout: &Layout,
    betas: &[R],
    names: (SessionId, u64),
    rng: &mut Prg,
    ots: &mut Ots<S, C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let forest = layout.batch();
    let input = Input { alphas: &vec![0; forest.trees()], betas };
    let mut leaves = layout.leaves(None);
    dpf::first(forest, names, input, &mut leaves, ots, rng, channel)?; // step 1
    Ok(expand(layout, leaves))
}

/// The value holder: the negatives `m` of its shares; `alphas` are its positions, one in each tree.
pub(crate) fn value_holder<R: Ring, S: CotSender, C: CotReceiver>(
    layout: &Layout,
    (alphas, betas): (&[usize], &[R]),
    names: (SessionId, u64),
    rng: &mut Prg,
    ots: &mut Ots<S, C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let input = Input { alphas, betas };
    let mut leaves = layout.leaves(None);
    dpf::second(layout.batch(), names, input, &mut leaves, ots, rng, channel)?; // step 1
    Ok(expand(layout, leaves))
}

/// Step 2.
fn expand<R: Ring>(layout: &Layout, leaves: Buffer<R>) -> Buffer<R> {
    if layout.is_regular() {
        return leaves;
    }
    let mut sums = Buffer::zeroed(layout.n().next_multiple_of(layout.tile()));
    layout.add_up(&leaves, 0, &mut sums);
    sums
}
