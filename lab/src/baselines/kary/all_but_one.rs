//! (k-1)-out-of-k OT of blocks from 1-of-2 OTs, for k = 2, 4, 8, 16: all messages except one, and
//! the sender does not learn which.
//!
//! The building block of Protocol 2 of the 2019 paper for trees of higher arity
//! ([`super::punctured_ot`]), for many instances at once, of any arities. It is Protocol 2
//! itself, with `k = 2` on a tree of `k` leaves: the leaves are one-time pads.
//!
//! ```text
//! Sender                                  Receiver: b, the message that it does not get
//! 1. s random; the binary GGM tree under s with k leaves p_0 .. p_(k-1);
//!    its level sums K_l0, K_l1
//!    ------ one 1-of-2 OT for each of the log2 k levels; the receiver takes K_l(1 - b_l) ------>
//!                                         p_j for j != b
//! 2. ---- e_j = m_j + p_j for all j ---->
//!                                         m_j = e_j + p_j for j != b
//! ```
//!
//! [`send_random`] and [`receive_random`] are step 1: the pads are random messages, under which the
//! caller sends its own (step 2). For `k = 2` the pads are those of the OT itself.
//!
//! Security: that of the OTs (Theorem A.3). A receiver gets one of two sums on each level, for any
//! choices, and so never more than `k - 1` pads: over malicious-secure OTs that holds for a
//! malicious receiver. The sender learns nothing of `b`, even if it is malicious; but then it can
//! send sums that agree with no tree, and the receiver's messages depend on `b`. As a functionality
//! it is secure against a malicious receiver and a semi-honest sender. `b` indexes the receiver's
//! own memory. The `prgs` of a call are for that call only: those of another, or of other trees,
//! have another session or number.
//!
//! Cost: `c = log2 k` OTs an instance, with 1 bit each from the receiver, in addition to the cost
//! of their source. From the sender `32c` bytes for the pads, none for `k = 2`, and the messages.
//!
//! 1 message from the receiver for each 2^16 OTs, then 1 from the sender. Computation: `2k - 2` AES
//! calls and two AES keys.
//!
//! An alternative would be `k` single OTs, each of a message and of nothing: `k` OTs and `16k`
//! bytes, so 4 and 64, 8 and 128, 16 and 256. It sends less where OTs cost little, but a receiver
//! that requests all `k` messages gets them undetected: the secret of the whole protocol above
//! would rest on a choice that nothing enforces. Every method sends at least the `16(k-1)` bytes of
//! the messages themselves, `16(k-1)/c` for each bit of `b`: 16, 24, 37, 60. So a higher arity can
//! save computation in a tree, but never bytes.

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::{Gf128, Ring};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{
    ggm::{self, Growth, PuncturedSums, Scratch, Shape, TreePrgs},
    wire,
};
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::Zeroizing;

use super::Arity;

/// Number of messages of instances of these arities: `k` each, one instance after the other.
pub(crate) fn messages(arities: &[Arity]) -> usize {
    arities.iter().map(|arity| arity.children()).sum()
}

/// Number of 1-of-2 OTs of instances of these arities: `log2 k` each.
pub(crate) fn ots(arities: &[Arity]) -> usize {
    arities.iter().map(|arity| arity.bits() as usize).sum()
}

/// Sender, step 1: `pads` are the messages of all instances, random.
pub(crate) fn send_random<C: CotSender>(
    arities: &[Arity],
    pads: &mut [Block],
    prgs: &TreePrgs,
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(prgs.growth(), Growth::Ggm, "pads from GGM trees");
    let mut roots = Zeroizing::new(vec![Block::ZERO; arities.len()]);
    rng.fill_blocks(&mut roots);
    let mut pairs = Zeroizing::new(vec![[Block::ZERO; 2]; ots(arities)]);
    ot.random_chosen(&mut pairs, channel)?;
    let mut parts = split(arities, pads, &mut pairs);
    parts.par_iter_mut().for_each_init(Scratch::default, |scratch, part| {
        grow(part, prgs, roots[part.instance], scratch);
    });
    for part in parts.iter().filter(|part| part.has_tree()) {
        channel.send_blocks(part.ots.as_flattened())?;
    }
    channel.flush()
}

/// Receiver, step 1: fills `pads` with those of the sender, except number `without[i]` of instance
/// `i`, which becomes zero.
pub(crate) fn receive_random<C: CotReceiver>(
    arities: &[Arity],
    without: &[usize],
    pads: &mut [Block],
    prgs: &TreePrgs,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(prgs.growth(), Growth::Ggm, "pads from GGM trees");
    let choices = Zeroizing::new(choices(arities, without));
    let mut opened = Zeroizing::new(vec![Block::ZERO; ots(arities)]);
    ot.random_chosen(&choices, &mut opened, channel)?;
    let mut first = 0;
    let mut parts = split(arities, pads, &mut opened);
    for part in &mut parts {
        let levels = part.ots.len();
        if part.has_tree() {
            let mut sums = [[Block::ZERO; 2]; MAX_LEVELS];
            channel.recv_blocks(sums[..levels].as_flattened_mut())?;
            for (level, (opened, [left, right])) in part.ots.iter_mut().zip(sums).enumerate() {
                let chosen = Block::select_mask(bits::bit(&choices, first + level));
                *opened ^= left ^ (chosen & (left ^ right));
            }
        }
        first += levels;
    }
    parts.par_iter_mut().for_each_init(Scratch::default, |scratch, part| {
        rebuild(part, prgs, without[part.instance], scratch);
    });
    Ok(())
}

/// The most levels of the tree of an instance.
const MAX_LEVELS: usize = Arity::Sixteen.bits() as usize;

/// One instance's part of the vectors.
struct Part<'a, T> {
    instance: usize,
    pads: &'a mut [Block],
    /// One element for each of its OTs.
    ots: &'a mut [T],
}

impl<T> Part<'_, T> {
    /// Whether the pads are leaves of a tree; otherwise they are those of the OT.
    fn has_tree(&self) -> bool {
        self.ots.len() > 1
    }
}

fn split<'a, T>(
    arities: &[Arity],
    mut pads: &'a mut [Block],
    mut ots: &'a mut [T],
) -> Vec<Part<'a, T>> {
    assert_eq!(pads.len(), messages(arities), "k messages for each instance");
    let mut parts = Vec::with_capacity(arities.len());
    for (instance, arity) in arities.iter().enumerate() {
        let (mine, rest) = pads.split_at_mut(arity.children());
        pads = rest;
        let (levels, rest) = ots.split_at_mut(arity.bits() as usize);
        ots = rest;
        parts.push(Part { instance, pads: mine, ots: levels });
    }
    parts
}

/// Step 1 for the sender: the pads, and the level sums under the messages of the random OTs.
fn grow(part: &mut Part<'_, [Block; 2]>, prgs: &TreePrgs, root: Block, scratch: &mut Scratch) {
    if !part.has_tree() {
        part.pads.copy_from_slice(&part.ots[0]);
        return;
    }
    let (prg, shape) = (prgs.tree(part.instance), Shape::new(part.pads.len()));
    let mut leaves = Zeroizing::new([Gf128::ZERO; Arity::Sixteen.children()]);
    let leaves = &mut leaves[..part.pads.len()];
    let sums = ggm::expand(&prg, shape, root, Block::ZERO, leaves, scratch);
    part.pads.copy_from_slice(Gf128::as_blocks(leaves).expect("elements are blocks"));
    let last = sums.leaf.map(wire::pack);
    for (pair, sums) in part.ots.iter_mut().zip(sums.inner.iter().chain([&last])) {
        pair[0] ^= sums[0];
        pair[1] ^= sums[1];
    }
}

/// Step 1 for the receiver: for each level the side that the path to `without` does not take.
fn choices(arities: &[Arity], without: &[usize]) -> Vec<u8> {
    assert_eq!(without.len(), arities.len(), "one number for each instance");
    let mut choices = vec![0; bits::bytes_for(ots(arities))];
    let mut place = 0;
    for (arity, without) in arities.iter().zip(without) {
        assert!(*without < arity.children(), "the number of a message");
        let shape = Shape::new(arity.children());
        for level in 1..=shape.depth() {
            bits::set(&mut choices, place, shape.path_bit(*without, level) == 0);
            place += 1;
        }
    }
    choices
}

/// Step 1 for the receiver: the pads from the opened sums.
fn rebuild(part: &mut Part<'_, Block>, prgs: &TreePrgs, without: usize, scratch: &mut Scratch) {
    if !part.has_tree() {
        for (j, pad) in part.pads.iter_mut().enumerate() {
            *pad = part.ots[0] & Block::select_mask(j != without);
        }
        return;
    }
    let (prg, shape) = (prgs.tree(part.instance), Shape::new(part.pads.len()));
    let (last, inner) = part.ots.split_last().expect("a tree has a level");
    let sums = PuncturedSums { alpha: without, inner: inner.to_vec(), leaf: wire::unpack(*last) };
    let mut leaves = Zeroizing::new([Gf128::ZERO; Arity::Sixteen.children()]);
    let leaves = &mut leaves[..part.pads.len()];
    ggm::expand_punctured(&prg, shape, &sums, leaves, scratch);
    part.pads.copy_from_slice(Gf128::as_blocks(leaves).expect("elements are blocks"));
}
