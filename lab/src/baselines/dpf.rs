//! Distributed point functions on a shared index: Doerner and shelat, *Scaling ORAM for Secure
//! Computation*, CCS 2017, for many trees in lockstep.
//!
//! The tree is that of Boyle, Gilboa, Ishai, *Function Secret Sharing: Improvements and
//! Extensions*, CCS 2016: off the path to `alpha` the two parties' nodes are equal; on it they are
//! unrelated, and their lowest bits, the tags, differ. Every level has a public correction that
//! tagged nodes take, which makes the nodes equal where the path is left. Each party sums its own
//! nodes, as Doerner and shelat found, so that only the corrections are computed together, whatever
//! the domain. They use a garbled circuit for that; here it is one OT each way on every level, with
//! no more rounds.
//!
//! ```text
//! P0: alpha^0, beta^0                     P1: alpha^1, beta^1      alpha = alpha^0 + alpha^1 in bits; beta
//! 0. -------- one random OT for each level of each tree, each way; choices: the bits of alpha^p --------
//!    root s^0, its tag 0                  root s^1, its tag 1
//! for each level but the last, with a = the level's bit of alpha, all sums XOR:
//! 1. the children; z_L, z_R, the sums of the left and of the right ones; dz = z_L + z_R
//! 2.        ---- m_0 + m_1 + dz^0 ---->
//!           <--- m_0 + m_1 + dz^1 -----
//! 3. sigma^p = z_R^p + share of a*dz;  tau_L^p = lsb z_L^p + a^p + (1 at P0);  tau_R^p = lsb z_R^p + a^p
//!           <--- sigma^1, tau^1 -------
//!           ---- sigma^0, tau^0 ------>
//! 4. correction of side b: sigma with tau_b for its lowest bit; taken where the parent's tag is 1
//! then, with a = the last bit of alpha:
//! 5. two leaves a node; S_0, S_1, the sums of the left and of the right ones; N, the number of tagged nodes
//! 6. a*beta, so that beta_1 = a*beta, beta_0 = beta - a*beta    (one OT each way)
//! 7. D_b = beta_b - S_b^0 + S_b^1
//! 8. e*D_b, e = 1 - 2t, t = the tag of P1 on the path            (one OT each way; not in characteristic 2)
//! 9.        <--- shares of e*D_b ----> the correction of the leaves of side b, taken where the tag is 1
//! ```
//!
//! `t` is shared without a message: `N^0 - N^1` is `1 - 2t`, so its second bit is that of `N^0`,
//! plus both bits of `N^1`. Steps 2 and 3 are one message each way a level: P0 sends its `sigma`
//! and then what it has for the next level. P1 answers both at once.
//!
//! The last level has no nodes of its own (early termination): two leaves come from each node of
//! the level above it. In a ring of 64 bits they are one block; where that has room for a tag
//! beside them (`fp61`) it is the node itself.
//!
//! As in `volery_pcg::reproduction`, P1's final value is the negative of its share: `r` and `m`
//! with `r - m = beta` at alpha and zero elsewhere.
//!
//! The domain need not be a power of two; a level's last node has two children even if one is
//! beyond the domain, since its sum would otherwise reveal whether the path ends there.
//!
//! Security: semi-honest. Every message but the sums of step 9 is masked by an OT, or a share of a
//! correction that is itself masked by a node of the path that one of the parties does not know.
//! Each party's memory accesses follow its own tags in one place, a table of two entries.
//!
//! Cost, for trees of `h = max(1, ceil(log2 n))` levels: `h` chosen OTs each way, and one more with
//! random choices in odd characteristic, beside what [`convert`] sends for them; then from each
//! party, for a tree, 32 bytes on each of `h - 1` levels and 2 bits (a level's bits of all trees
//! together a whole number of bytes); a ring element (step 6); in odd characteristic 2 elements and
//! a bit (step 8); 2 elements (step 9). Messages: `h + 2` from each party, those for the OTs
//! included (one fewer from P1 in characteristic 2), each after the other's: where an index is
//! known to one party, it is one each way.
//!
//! AES calls a leaf: 1 in `fp61`, 1.5 in `z64`, 2 in `gf128`.

mod party;
mod select;
mod tree;

use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::{tree_batch::TreeBatch, wire};
use volery_primitives::prg::Prg;

pub(crate) use party::Which;
use party::{Opening, Pads, Party};

/// A party's OTs: it is the sender of some and the receiver of others.
pub(crate) struct Ots<S, C> {
    /// The OTs that it offers.
    pub(crate) sender: convert::Sender<S>,
    /// The OTs in which it chooses.
    pub(crate) receiver: convert::Receiver<C>,
}

/// A party's inputs: its share of the index (by XOR) and of the value (by addition) of each tree.
#[derive(Clone, Copy)]
pub(crate) struct Input<'a, R> {
    pub(crate) which: Which,
    /// Each below the next power of two of its tree's leaves; together the index, which is a leaf.
    pub(crate) alphas: &'a [usize],
    /// One for each tree.
    pub(crate) betas: &'a [R],
}

/// Whether the sign of step 8 is of any consequence.
fn has_signs<R: Ring>() -> bool {
    R::ONE + R::ONE != R::ZERO
}

/// P0: its shares `r` of all trees into `leaves`. P1: its `m`, the negatives of its shares. `batch`
/// never repeats in a session.
pub(crate) fn run<R: Ring, S: CotSender, C: CotReceiver>(
    forest: &TreeBatch,
    (session, batch): (SessionId, u64),
    input: Input<'_, R>,
    leaves: &mut [R],
    ots: &mut Ots<S, C>,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<()> {
    let is_first = input.which == Which::First;
    let mut pads = Pads::for_input(forest, input.alphas);
    for chooses in [is_first, !is_first] {
        match chooses {
            true => choose::<R, C>(&mut pads, &mut ots.receiver, channel)?,
            false => offer::<R, S>(&mut pads, &mut ots.sender, channel)?,
        }
    } // step 0
    let mut party = Party::plant(forest, (session, batch), input, pads, leaves, rng);
    for level in 1..party.levels() {
        let z = party.grow(level); // step 1
        let (offers, mut offered) = (party.offers(level, &z), party.blocks(level));
        let send = |channel: &mut Channel| channel.send_blocks(&offers);
        in_turn(is_first, channel, send, |channel| channel.recv_blocks(&mut offered))?; // step 2
        let own = party.opening(level, &z, &offered); // step 3
        let mut theirs = Opening::window(offered.len());
        in_turn(!is_first, channel, |channel| own.send(channel), |channel| theirs.recv(channel))?;
        channel.flush()?; // P1 grows the next level while P0 does
        party.correct(level, &own, &theirs); // step 4
    }
    party.grow_leaves(); // step 5
    let signs = has_signs::<R>();
    let (values, choices) = (party.offer_values(), party.sign_choices());
    let (mut offered, mut flips) = (vec![[R::ZERO]; forest.trees()], vec![0; choices.len()]);
    let send = |channel: &mut Channel| {
        send_all(&values, channel)?;
        if signs { channel.send(&choices) } else { Ok(()) }
    };
    let recv = |channel: &mut Channel| {
        recv_all(&mut offered, channel)?;
        if signs { channel.recv(&mut flips) } else { Ok(()) }
    };
    in_turn(is_first, channel, send, recv)?; // step 6
    party.differences(&offered); // step 7
    let mut theirs = vec![[R::ZERO; 2]; forest.trees()];
    if signs {
        let offers = party.offer_signs(&flips);
        let send = |channel: &mut Channel| send_all(&offers, channel);
        in_turn(!is_first, channel, send, |channel| recv_all(&mut theirs, channel))?;
        party.take_signs(&theirs); // step 8
    }
    send_all(&party.last, channel)?; // step 9
    channel.flush()?;
    recv_all(&mut theirs, channel)?;
    party.correct_leaves(&theirs);
    Ok(())
}

/// A message each way: sent and then received where `sends_first`, else the other way round.
fn in_turn(
    sends_first: bool,
    channel: &mut Channel,
    send: impl FnOnce(&mut Channel) -> Result<()>,
    recv: impl FnOnce(&mut Channel) -> Result<()>,
) -> Result<()> {
    if sends_first {
        send(channel)?;
        return recv(channel);
    }
    recv(channel)?;
    send(channel)
}

/// Step 0, as the sender.
fn offer<R: Ring, S: CotSender>(
    pads: &mut Pads,
    ot: &mut convert::Sender<S>,
    channel: &mut Channel,
) -> Result<()> {
    ot.random_chosen(&mut pads.offered, channel)?;
    if has_signs::<R>() {
        ot.random(&mut pads.offered_signs, channel)?;
    }
    Ok(())
}

/// Step 0, as the receiver.
fn choose<R: Ring, C: CotReceiver>(
    pads: &mut Pads,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<()> {
    ot.random_chosen(&pads.choices, &mut pads.taken, channel)?;
    if has_signs::<R>() {
        ot.random(&mut pads.random, &mut pads.taken_signs, channel)?;
    }
    channel.flush()
}

fn send_all<R: Ring, const K: usize>(values: &[[R; K]], channel: &mut Channel) -> Result<()> {
    wire::send(values.as_flattened(), channel)
}

fn recv_all<R: Ring, const K: usize>(values: &mut [[R; K]], channel: &mut Channel) -> Result<()> {
    let what = "a correction of a point function is not in canonical form";
    wire::recv(values.as_flattened_mut(), what, channel)
}
