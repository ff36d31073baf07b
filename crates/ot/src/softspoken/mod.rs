//! `SoftSpokenOT`: many correlated OTs from 128 base OTs, secure against malicious parties, or
//! cheaper against semi-honest ones.
//!
//! Roy, *SoftSpokenOT: Quieter OT Extension from Small-Field Silent VOLE in the Minicrypt Model*,
//! ePrint 2022/192: the small-field VOLE of section 3.1 from punctured PRFs with their check, made
//! a subspace VOLE with the repetition code as in section 3.2, and its consistency check.
//!
//! For `k` in {1, 2, 4, 8}, the 128 bits of `delta` are read as `m = 128/k` numbers `alpha_i` of
//! `k` bits. For each number the receiver owns a tree with `2^k` leaves; the sender knows all
//! leaves but the one at `alpha_i` (`pprf`). Every leaf is the seed of an endless row of bits
//! `r_x`. With `x_j` the bit `j` of the leaf number `x`, both parties compute the same linear
//! combinations of the rows that they know:
//!
//! ```text
//! Sender: delta                                   Receiver
//! 1.  a_i = sum of r_x                            u_i = sum of r_x
//!     b_ij = sum of x_j*r_x                       v_ij = sum of x_j*r_x
//!     (any row for r_alpha: it drops out below)
//! 2.                                              d_i = u_0 + u_i   (d_0 = 0, not sent)
//!     <---------------- d_i ---------------------
//! 3.  q_ij = b_ij + alpha_ij*(a_i + d_i)
//! 4.  both: chi = RO(setup, the hashes of all d_i so far)
//!     <---------- h_chi(u_0), RO(h_chi(v)) ------
//!     check, see the module `check`
//! 5.  v = columns of q                            u = u_0, w = columns of v
//! ```
//!
//! Step 3 gives `q_ij = v_ij + alpha_ij*u_0`: with the true `r_alpha` in the sums, `a_i = u_i` and
//! `b_ij = v_ij`, and any other value of `r_alpha` changes `b_ij` and `alpha_ij*a_i` by the same
//! amount. So the sender runs the same code as the receiver, in the public order of the leaves, and
//! `alpha` is used in masks only. The sums cost about `2*2^k` additions of rows for the `k + 1` of
//! them: leaves are merged in pairs, pairs in fours, and so on.
//!
//! The extension runs in batches of at most 2^15 correlations. Each batch is rounded up to whole
//! blocks of 128 and has 128 more correlations that mask the values of its check and are discarded;
//! step 4 happens once for each batch. Outputs are written after the check of their batch. Each
//! party computes as many batches at a time as its pool has threads; the messages and their order
//! do not depend on this number. The sender expands a batch while the next one arrives, the
//! receiver writes outputs while its messages leave: one thread has the channel, the others
//! compute.
//!
//! Functionality: correlated OT with random choice bits. A corrupt receiver may choose its `u` and
//! `w`, and may try to guess some bits of `delta` at the risk of being caught: it learns whether
//! the guess is right; if it is wrong the sender aborts for good. A corrupt sender may choose its
//! `v`, and `delta`.
//!
//! Security: malicious, in the random oracle model, from the base OT of [`base`]; see `check` for
//! the numbers. A failed call, for whatever reason, deletes the setup: seeds, matrices and `delta`
//! are wiped, and every later call is [`Error::Broken`], on this object and on its forks, which are
//! wiped at their next call or when they are dropped. The peer learns only that the connection
//! ends.
//!
//! *Unchecked.* Against a receiver that follows the protocol step 4 is not needed:
//! [`SmallField::unchecked`]. Then the rows have no mask block, and nothing is hashed or sent but
//! the `d_i`: the semi-honest protocol of section 3.2, of which `k = 1` is IKNP except for the
//! 128th bit that IKNP sends. A receiver that sends other `d_i` learns bits of
//! `delta` undetected. The trees are checked all the same, as that happens once.
//!
//! [`Sender::fork`] and [`Receiver::fork`] make another extension with the same `delta` without a
//! message, and `setup_from_ots` one with another `delta` without public-key operations: see
//! `fork`.
//!
//! Cost of the setup: the base OTs (`64*128` bytes from the sender, 32 from the receiver,
//! crossing), then 1 message of `m*(k-1)*32 + (m+1)*32` bytes from the receiver. Cost of an
//! extension: 1 message from the receiver, none from the sender. Each batch of it is
//! `(m-1)*c/8 + 48` bytes, where `c` is the number of its correlations rounded up to a multiple of
//! 128, plus 128; unchecked, `(m-1)*c/8` bytes without the 128. That is `m - 1` bits for each
//! correlation: 15, 31, 63, 127 bits for `k` = 8, 4, 2, 1.

mod check;
mod fork;
mod pprf;
mod small_vole;

#[cfg(test)]
mod tests;

use bytemuck::cast_slice;
use rayon::prelude::*;
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::bits::clear_from;
use volery_primitives::prg::Prg;
use volery_primitives::transpose::transpose_first;
use zeroize::Zeroizing;

use crate::batches::{BATCH, as_they_arrive, at_a_time, for_next, meanwhile};
use crate::bits::{bytes_for, delta_or_random, resize, stride, xor_blocks};
use crate::poisonable::Poisonable;
use crate::{CotReceiver, CotSender, Error, Result, base};
use check::{Response, Transcript};
use small_vole::Leaves;

/// The division of the 128 bits of `delta`: the size of the field of the small VOLEs.
///
/// A larger field sends fewer bits and costs more computation (about `2^k/k` AES calls for 128 bits
/// of a row).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SmallField {
    /// `k = 1`: 127 bits sent for each correlation. Checked this is the malicious-secure form of
    /// IKNP.
    Bits1,
    /// `k = 2`: 63 bits sent for each correlation.
    Bits2,
    /// `k = 4`: 31 bits sent for each correlation.
    Bits4,
    /// `k = 8`: 15 bits sent for each correlation.
    #[default]
    Bits8,
}

impl SmallField {
    /// All fields, smallest first.
    pub const ALL: [Self; 4] = [Self::Bits1, Self::Bits2, Self::Bits4, Self::Bits8];

    /// `k`, the bits of one `alpha`.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::Bits1 => 1,
            Self::Bits2 => 2,
            Self::Bits4 => 4,
            Self::Bits8 => 8,
        }
    }

    /// `m = 128/k`, the number of trees.
    #[must_use]
    pub const fn trees(self) -> usize {
        128 / self.bits()
    }

    /// `2^k`, the leaves of one tree.
    #[must_use]
    pub const fn leaves(self) -> usize {
        1 << self.bits()
    }

    /// An extension with this field and without checks: secure against semi-honest parties only.
    #[must_use]
    pub const fn unchecked(self) -> Settings {
        Settings { field: self, is_checked: false }
    }
}

/// The settings of an extension. A [`SmallField`] converts into checked settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    field: SmallField,
    /// Whether the outputs of a batch are withheld until its check has passed.
    is_checked: bool,
}

impl From<SmallField> for Settings {
    fn from(field: SmallField) -> Self {
        Self { field, is_checked: true }
    }
}

/// The party that holds `delta`.
///
/// Dropping it, or a failed call, wipes `delta` and the seeds. A fork of a failed one wipes them at
/// its next call.
pub struct Sender(Poisonable<Live>);

/// The state of the sender.
struct Live {
    delta: Zeroizing<Block>,
    state: State,
}

impl Sender {
    /// Runs the base OTs and the setup, as the holder of `delta`; `None` picks a random one.
    ///
    /// Bit `i` of `delta` is the choice bit of base OT `i`. The peer calls [`Receiver::setup`] with
    /// the same `settings` and `session`.
    ///
    /// # Panics
    /// If `delta` is zero: it would hide nothing.
    ///
    /// # Errors
    /// If the channel fails, or if a check of the peer's messages fails.
    pub fn setup(
        delta: Option<Block>,
        settings: impl Into<Settings>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let delta = delta_or_random(delta, &mut rng);
        Self::setup_for_scalar(*delta, settings, session, rng, channel)
    }

    /// Sets up like [`setup`](Self::setup), where `delta` is a multiplier, not a key that hides
    /// another value: it may be zero.
    ///
    /// # Errors
    /// The errors of [`setup`](Self::setup).
    pub fn setup_for_scalar(
        delta: Block,
        settings: impl Into<Settings>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let delta = Zeroizing::new(delta);
        let choices = Zeroizing::new(delta.to_bytes());
        let (keys, base_transcript) =
            base::receive_bound(&choices[..], 128, session, &mut rng, channel)?;
        Self::from_base(delta, &keys, &base_transcript, settings, session, channel)
    }

    /// The setup after the base OTs.
    fn from_base(
        delta: Zeroizing<Block>,
        keys: &[Block],
        base_transcript: &[u8; 32],
        settings: impl Into<Settings>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Self> {
        let settings = settings.into();
        let mut message = pprf::Message::empty(settings.field);
        message.recv(channel)?;
        // no mutant: the error of a verdict that has a mutant of its own
        let seeds = pprf::punctured(settings, session, base_transcript, *delta, keys, &message)
            .ok_or(Error::PeerMisbehaved("the trees of the OT extension are inconsistent"))?;
        let transcript = Transcript::new(settings.field, session, base_transcript, &message);
        Ok(Self(Poisonable::new(Live { delta, state: State::new(settings, seeds, transcript) })))
    }
}

impl Live {
    /// Steps 1 to 5 of some batches.
    fn batches(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        let (delta, is_checked) = (&self.delta, self.state.settings.is_checked);
        let (batches, leaves, transcript) = self.state.take(v.len());
        as_they_arrive(
            batches,
            |batch| {
                channel.recv_blocks(batch.sent_corrections())?; // step 2
                match is_checked {
                    true => batch.response.recv(channel), // step 4
                    false => Ok(()),
                }
            },
            |batch| {
                batch.expand_corrected(leaves, **delta); // steps 1 and 3
                if is_checked {
                    batch.hash_corrections();
                }
            },
        )?;
        if is_checked {
            check(batches, transcript, delta)?; // step 4
        }
        v.par_chunks_mut(BATCH).zip(&*batches).for_each(|(v, batch)| batch.write_columns(v)); // step 5
        Ok(())
    }
}

/// Step 4 of some batches, for the sender: one transcript, and a check for each batch.
fn check(batches: &mut [Batch], transcript: &mut Transcript, delta: &Block) -> Result<()> {
    bind(batches, transcript);
    // mutant(softspoken-check-some): `par_iter().` => `$0take(if $ON { 1 } else { usize::MAX }).`
    let accepted = batches.par_iter().all(|batch| {
        let challenge = batch.transcript.challenge(batch.row_blocks);
        challenge.accepts(&batch.response, &batch.rows, *delta)
    });
    // mutant(softspoken-check): `accepted` => `true`
    match accepted {
        true => Ok(()),
        false => Err(Error::PeerMisbehaved("the consistency check of the OT extension failed")),
    }
}

/// The transcripts of some batches, up to and including their corrections: all that their
/// challenges need, so that these and the responses are computed in parallel.
fn bind(batches: &mut [Batch], transcript: &mut Transcript) {
    for batch in batches {
        // mutant(softspoken-check-early): drop
        transcript.absorb(&batch.hash);
        batch.transcript = transcript.clone();
    }
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        *self.0.get().delta
    }

    fn try_delta(&self) -> Result<Block> {
        Ok(*self.0.try_get()?.delta)
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.0.call(|live| v.chunks_mut(at_a_time()).try_for_each(|v| live.batches(v, channel)))
    }

    fn rest(&mut self) {
        if let Ok(live) = self.0.get_mut() {
            live.state.rest();
        }
    }
}

/// The party that holds the choice bits.
///
/// Dropping it, or a failed call, wipes the seeds. A fork of a failed one wipes them at its next
/// call.
pub struct Receiver(Poisonable<State>);

impl Receiver {
    /// Runs the base OTs and the setup, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails, or if the peer sent an invalid group element.
    pub fn setup(
        settings: impl Into<Settings>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let (keys, base_transcript) = base::send_bound(128, session, &mut rng, channel)?;
        Self::from_base(&keys, &base_transcript, settings, session, channel)
    }

    /// The setup after the base OTs.
    fn from_base(
        keys: &[[Block; 2]],
        base_transcript: &[u8; 32],
        settings: impl Into<Settings>,
        session: SessionId,
        channel: &mut Channel,
    ) -> Result<Self> {
        let settings = settings.into();
        let (seeds, message) = pprf::full(settings, session, base_transcript, keys);
        message.send(channel)?;
        let transcript = Transcript::new(settings.field, session, base_transcript, &message);
        Ok(Self(Poisonable::new(State::new(settings, seeds, transcript))))
    }
}

/// Steps 1 to 5 of some batches, for the receiver.
fn receiver_batches(
    state: &mut State,
    u: &mut [u8],
    w: &mut [Block],
    channel: &mut Channel,
) -> Result<()> {
    let is_checked = state.settings.is_checked;
    let (batches, leaves, transcript) = state.take(w.len());
    batches.par_iter_mut().for_each(|batch| {
        batch.expand(leaves); // step 1
        if is_checked {
            batch.hash_corrections();
        }
    });
    if is_checked {
        bind(batches, transcript);
        batches.par_iter_mut().for_each(Batch::respond); // step 4
    }
    let batches = &*batches;
    let columns = || {
        u.par_chunks_mut(BATCH / 8).zip(w.par_chunks_mut(BATCH)).zip(batches).for_each(
            |((u, w), batch)| {
                u.copy_from_slice(&cast_slice(batch.first_sum())[..u.len()]); // step 5
                clear_from(u, w.len());
                batch.write_columns(w);
            },
        );
    };
    meanwhile(columns, || {
        batches.iter().try_for_each(|batch| {
            channel.send_blocks(batch.corrections_to_send())?; // step 2
            if is_checked {
                channel.send(batch.response.as_bytes())?; // step 4
            }
            channel.flush() // the peer works on this batch while the next one leaves
        })
    })
}

impl CotReceiver for Receiver {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), bytes_for(w.len()), "one packed bit per correlation");
        self.0.call(|state| {
            u.chunks_mut(at_a_time() / 8)
                .zip(w.chunks_mut(at_a_time()))
                .try_for_each(|(u, w)| receiver_batches(state, u, w, channel))
        })
    }

    fn rest(&mut self) {
        if let Ok(state) = self.0.get_mut() {
            state.rest();
        }
    }
}

/// The state of both parties between calls, and the allocated batches.
struct State {
    settings: Settings,
    leaves: Leaves,
    /// The number of the next 128 columns; no column is made twice.
    next: u128,
    transcript: Transcript,
    batches: Vec<Batch>,
}

impl State {
    fn new(settings: Settings, seeds: Zeroizing<Vec<Block>>, transcript: Transcript) -> Self {
        let field = settings.field;
        Self {
            settings,
            leaves: Leaves::new(field, seeds, transcript.starts(field)),
            next: 0,
            transcript,
            batches: Vec::new(),
        }
    }

    /// Frees all that the next batches can make again.
    fn rest(&mut self) {
        self.leaves.rest();
        self.batches = Vec::new();
    }

    /// Batches of `n` correlations in total, with the leaves and the transcript.
    fn take(&mut self, n: usize) -> (&mut [Batch], &Leaves, &mut Transcript) {
        self.leaves.wake();
        let next = &mut self.next;
        let batches = for_next(&mut self.batches, n, |batch, n| {
            batch.begin(n, self.settings, *next);
            *next += batch.row_blocks as u128;
        });
        (batches, &self.leaves, &mut self.transcript)
    }
}

/// The matrices of one batch.
#[derive(Default)]
struct Batch {
    /// The number of the first 128 columns.
    first: u128,
    /// Blocks of a row; the last is the mask block if there is a check.
    row_blocks: usize,
    /// 128 rows, which begin at multiples of [`stride`]: `v_ij` or `q_ij` in row `i*k + j`.
    rows: Zeroizing<Vec<Block>>,
    /// The receiver's: one row for each tree, `u_i`.
    sums: Zeroizing<Vec<Block>>,
    /// One row for each tree, `d_i`; that of the first is zero and not sent. Public.
    corrections: Vec<Block>,
    /// The hash of the sent corrections, if there is a check.
    hash: [u8; 32],
    /// All corrections up to and including these, if there is a check.
    transcript: Transcript,
    /// The receiver's message of step 4, if there is a check.
    response: Response,
}

impl Batch {
    /// Begins with `n` correlations, and 128 more for a check.
    fn begin(&mut self, n: usize, Settings { field, is_checked }: Settings, first: u128) {
        self.first = first;
        self.row_blocks = n.div_ceil(128) + usize::from(is_checked);
        self.corrections.resize(field.trees() * self.row_blocks, Block::ZERO);
        self.corrections[..self.row_blocks].fill(Block::ZERO);
    }

    /// Sender: steps 1 and 3.
    fn expand_corrected(&mut self, leaves: &Leaves, delta: Block) {
        resize(&mut self.rows, 128 * stride(self.row_blocks));
        leaves.expand_corrected(self.first, &mut self.rows, delta, &self.corrections);
    }

    /// Receiver: step 1 and the corrections of step 2.
    fn expand(&mut self, leaves: &Leaves) {
        resize(&mut self.rows, 128 * stride(self.row_blocks));
        resize(&mut self.sums, self.corrections.len());
        leaves.expand(self.first, &mut self.rows, &mut self.sums);
        let (u, others) = self.sums.split_at(self.row_blocks);
        let corrections = self.corrections.chunks_exact_mut(self.row_blocks).skip(1);
        for (d, sum) in corrections.zip(others.chunks_exact(self.row_blocks)) {
            d.copy_from_slice(sum);
            xor_blocks(d, u);
        }
    }

    /// The `d_i` of all trees but the first.
    fn sent_corrections(&mut self) -> &mut [Block] {
        &mut self.corrections[self.row_blocks..]
    }

    /// The same, to be read.
    fn corrections_to_send(&self) -> &[Block] {
        &self.corrections[self.row_blocks..]
    }

    /// Hashes the corrections for the transcript.
    fn hash_corrections(&mut self) {
        self.hash = Transcript::hash_corrections(self.corrections_to_send());
    }

    /// Receiver, step 4.
    fn respond(&mut self) {
        let challenge = self.transcript.challenge(self.row_blocks);
        self.response = challenge.respond(self.first_sum(), &self.rows);
    }

    /// Receiver: `u_0`.
    fn first_sum(&self) -> &[Block] {
        &self.sums[..self.row_blocks]
    }

    /// Step 5: the first columns of the matrix of `rows`.
    fn write_columns(&self, out: &mut [Block]) {
        transpose_first(&self.rows, stride(self.row_blocks), out);
    }
}
