//! Multi-point functions by naive batching: a known-index single-point function over the whole
//! domain for each point. Section 5 of the 2019 paper, first paragraphs; the second baseline of its
//! section 8.3.2.
//!
//! ```text
//! Key holder: beta1_j                     Value holder: points i_j, beta2_j
//! for each point j, some of them at a time:
//! 1. ------------------------ Protocol 3 (volery_pcg::spcot) over 0..n at i_j ------------------------
//! 2. r += its leaves                      m += its leaves
//! ```
//!
//! `r - m` is `beta1_j + beta2_j` at point `i_j` and zero elsewhere; values at equal points add up.
//! The trees are half-trees with hashed leaves, over the next power of two.
//!
//! Security: that of Protocol 3, semi-honest.
//!
//! Cost: for `t` points, `h = log2 n` rounded up (at least 1): that of `t*h` OTs with chosen bits;
//! then from the key holder `16(h + 1)` bytes and a ring element for each point. One message each
//! way for each [`LEAVES_AT_ONCE`] leaves. Computation `t*n` instead of `3n`.

use std::ops::Range;

use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{
    ggm::{Growth, TreePrgs},
    spcot::{self, Points},
    tree_batch::TreeBatch,
};
use volery_primitives::{pages::Buffer, prg::Prg};

/// Leaves made at once, beyond those of one tree: this bounds the memory.
pub(crate) const LEAVES_AT_ONCE: usize = 1 << 22;

/// The sums of a point function for each of so many points, some of them at a time; `trees` is step
/// 1 for those of a range.
fn add_up<R: Ring>(
    points: usize,
    session: SessionId,
    sums: &mut [R],
    mut trees: impl FnMut(Range<usize>, (&TreeBatch, &TreePrgs), &mut [R]) -> Result<()>,
) -> Result<()> {
    sums.fill(R::ZERO);
    let size = sums.len().max(2).next_power_of_two();
    let at_once = (LEAVES_AT_ONCE / size).max(1);
    let mut memory = Buffer::zeroed(at_once.min(points) * size);
    for start in (0..points).step_by(at_once) {
        let run = start..points.min(start + at_once);
        let forest = TreeBatch::regular(run.len(), size);
        let prgs = TreePrgs::growing(Growth::PseudoCorrelated, session, start as u64);
        let leaves = &mut memory[..forest.leaves()];
        trees(run, (&forest, &prgs), leaves)?;
        for leaves in leaves.chunks(size) {
            R::add_slice(sums, &leaves[..sums.len()]); // step 2
        }
    }
    Ok(())
}

/// The key holder: its shares `r` of all points into `sums`; `betas` are its parts of the values.
///
/// `session` is for this call alone.
pub(crate) fn key_holder<R: Ring, C: CotSender>(
    betas: &[R],
    session: SessionId,
    sums: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    add_up(betas.len(), session, sums, |run, trees, leaves| {
        spcot::send(trees, Points::Chosen(&[]), &betas[run], leaves, rng, ot, channel)
    })
}

/// The value holder: the negatives `m` of its shares into `sums`, for its points and its parts of
/// their values.
pub(crate) fn value_holder<R: Ring, C: CotReceiver>(
    points: &[usize],
    betas: &[R],
    session: SessionId,
    sums: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(points.len(), betas.len(), "one value for each point");
    assert!(points.iter().all(|point| *point < sums.len()), "points of the domain");
    add_up(betas.len(), session, sums, |run, trees, leaves| {
        let alphas = Points::Chosen(&points[run.clone()]);
        spcot::receive(trees, alphas, &betas[run], leaves, ot, channel).map(drop)
    })
}
