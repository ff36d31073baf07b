//! The batched related-key OPRF (KKRT Figure 2, from the definitions of Figure 1): Kolesnikov,
//! Kumaresan, Rosulek, Trieu, *Efficient Batched Oblivious PRF with Applications to Private Set
//! Intersection*, CCS 2016.
//!
//! The receiver has one input `r_j` for each of `m` instances and gets `F_j(r_j)`; the sender can
//! then compute `F_j(x)` for every instance `j` and any `x`. Inputs and outputs are blocks;
//! [`crate::items`] makes blocks of any byte strings. With the keys of `k` OTs in which the sender
//! chose the bits of `s`, and `G` for AES in counter mode:
//!
//! ```text
//! Sender: s, keys K_i                             Receiver: keys K_i0, K_i1, inputs r_j
//! 0. both: the code C and the weights of L, drawn after the inputs are fixed
//! 2.                                              t_0^i = G(K_i0): the columns of T_0
//!                                                 u_j = t_0j + row j of G(K_i1) + C(r_j)
//! 3.  <------------------- u_j ------------------
//!     q_j = row j of G(K_i) + u_j*s
//!         = t_0j + C(r_j)*s
//! 4.  keeps L(q_j)                                5. F_j(r_j) = H(j, L(t_0j))
//!     F_j(x) = H(j, L(q_j) + L(C(x)*s))
//! ```
//!
//! `*` between rows denotes bitwise AND. Step 3 is the OT of the columns of `T_0` and `T_1`,
//! `t_1j = C(r_j) + t_0j`, with `T_0` made from the keys, as in every OT extension; step 1, the
//! choice of `s`, is part of the OTs.
//!
//! # The hash
//!
//! The paper requires a hash of a public string and a row that is Hamming correlation robust
//! (Definition 1): the receiver knows `t_0j` and the difference `b = C(r_j) + C(x)`, and `F_j(x)`
//! must look random to it as long as it does not know `s` where `b` is one. The hash here first
//! folds a row of `k` bits to a block, `L(q) = w_1*q_1 + .. + w_4*q_4` over GF(2^128) with public
//! random weights, then hashes that under a key made of the public string,
//! `H(j, x, y) = AES_{h + x + j*2^64}(y) + y`. The public string is the instance, as in the paper,
//! and the input: both parties know it when they evaluate.
//!
//! *Folding loses nothing.* Restricted to the places where `b` is one, `L` is a matrix of 128 rows.
//! A fixed combination of its rows is a uniform word, as the weights are, and vanishes with
//! probability `2^-wt(b)`. So in the mean over the weights `2^-rank(L_b) <= 2^-128 (1 + 2^(128 -
//! wt(b)))`: one guess of `L(b*s)`, made with knowledge of the weights, is right with at most twice
//! the probability `2^-128` at the least distance, and with `2^-128 (1 + 2^-57)` in the mean over
//! the code words of 448 bits. The code exceeds its requirement, and folding needs no more than the
//! paper's width.
//!
//! *Nor does the choice of the best of many outputs.* The weights are public: an attacker that
//! knows the inputs of `N` outputs can compute all `N` ranks, and guess where the rank is least.
//! That output is among the `N`, so its `2^(128 - rank) - 1` is at most the sum of all of them, and
//! the best guess is right with at most `2^-128 (1 + N 2^128 (3/4)^k)` in the mean over weights and
//! code words, of which `(3/4)^k` is the mean of `2^-wt(b)`. At 448 bits the `2^-57` becomes
//! `2^-31` at 2^26.5, the most outputs for which this width is used; for the largest possible sets
//! it stays below `2^-29`. (The best of 2^24 pairs *at the least distance* would lack a rank of
//! five. Except with probability 2^-40, a run has no pair that close.) All of this assumes a seed
//! that no party chose: a party that could pick the best of `G` seeds would multiply the term added
//! to 1 by `G`. In set intersection and keyword search neither party can: both commit before
//! either opens.
//!
//! *Many outputs lose nothing.* In the ideal cipher model an output looks random until AES, or its
//! inverse, is queried under its key and at its `y`. Every output has its own key, so a query
//! concerns one output, not all millions, however many inputs the sender evaluates an instance on.
//! (With one key for an instance, or for all, a query would succeed if it hit any of their
//! outputs.) Inputs must be such that keys do differ: two inputs share a key if their lowest 64
//! bits agree and the others differ as their instances do. For hashes that is as rare as equality.
//!
//! *Linear in the row.* `L(q_j + C(x)*s)` is the sum of a block for the instance and a block for
//! the input ([`Sender::shift`]). The sender keeps 16 bytes an instance, and can compute the part
//! that depends on its inputs at any time.
//!
//! Security: semi-honest. (A malicious receiver may send any `u_j`, and learns bits of `s` from the
//! sender's outputs.) The OTs are those of [`volery_ot::softspoken`], secure against malicious
//! parties.
//!
//! Cost: setup as `softspoken` with `k = 4`, and 512 correlations. Then 1 message from the receiver
//! for each call, `k/8` bytes an instance; nothing from the sender. The message is sent in pieces
//! of [`MESSAGE`] instances, so neither party holds the matrix. Per instance `3k/128 + 4` AES calls
//! for the matrix and the code, and one with its key schedule for the hash, for the two parties
//! together, and 8 products in GF(2^128); per evaluation 4 calls, one with its key schedule, and 4
//! products.

use rayon::prelude::*;
use volery_channel::{Channel, SessionId};
use volery_ot::softspoken::{self, SmallField};
use volery_ot::{Error, Result, convert};
use volery_primitives::Block;
use volery_primitives::aes::rekeyed;
use volery_primitives::pages::Buffer;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

mod keys;
mod scratch;

use crate::code::{BLOCKS, Code, MAX_WIDTH};
use crate::partition::at_a_time;
use crate::truncate::{read_cut, write_cut};
pub use keys::Keys;
use scratch::{Scratch, ScratchPool, Streams, rows};

/// Instances in one piece of the receiver's message.
pub const MESSAGE: usize = 1 << 14;

/// Instances computed at a time: their working set fits into a level-2 cache. Within each group of
/// this size the rows of a message are laid out block by block: another number would change the
/// wire format.
const TASK: usize = 1 << 11;

/// Instances in one allocation of [`Keys`].
const CHUNK: usize = 1 << 17;

/// The field of the few OTs of the setup.
const FIELD: SmallField = SmallField::Bits4;

/// The party that gets the keys of all instances.
///
/// Dropping it wipes its secrets. A failed call wipes them at once.
pub struct Sender(Option<LiveSender>);

struct LiveSender {
    /// `s`, its bits in the order of the columns.
    s: Zeroizing<[Block; BLOCKS]>,
    /// `K_i` for each column.
    columns: Streams,
    next: u64,
    pool: ScratchPool,
}

impl Sender {
    /// The offline phase: the OTs, in which this party chooses the bits of `s`.
    ///
    /// # Errors
    /// If the channel fails, or a check finds that the peer deviated from the protocol.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let cot = softspoken::Receiver::setup(FIELD, session, rng.fork("oprf"), channel)?;
        let mut bits = Zeroizing::new([0; MAX_WIDTH / 8]);
        let mut keys = Zeroizing::new(vec![Block::ZERO; MAX_WIDTH]);
        convert::Receiver::new(cot, session).random(&mut bits[..], &mut keys, channel)?;
        channel.flush()?;
        let mut s = Zeroizing::new([Block::ZERO; BLOCKS]);
        Block::as_bytes_mut(&mut s[..]).copy_from_slice(&bits[..]);
        Ok(Self(Some(LiveSender {
            s,
            columns: Streams::new(keys.iter().copied(), session),
            next: 0,
            pool: ScratchPool::default(),
        })))
    }

    /// The part of an evaluation that depends on the input alone: `L(C(x)*s)` for each input.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed.
    pub fn shift(&self, code: &Code, inputs: &[Block], out: &mut [Block]) -> Result<()> {
        let live = self.0.as_ref().ok_or(Error::Broken)?;
        shift(&live.s, code, inputs, out);
        Ok(())
    }

    /// Steps 3 and 4: the keys of `instances` more instances.
    ///
    /// The receiver calls [`Receiver::extend`] for the same number, with the same code.
    ///
    /// # Errors
    /// If the channel fails; [`Error::Broken`] if an earlier call did.
    pub fn extend(&mut self, code: &Code, instances: usize, channel: &mut Channel) -> Result<Keys> {
        self.extend_watched(code, instances, &mut |_| (), channel)
    }

    /// [`Sender::extend`] that reports the number of instances after each piece of the message.
    /// Fails as [`Sender::extend`] does.
    pub fn extend_watched(
        &mut self,
        code: &Code,
        instances: usize,
        done: &mut dyn FnMut(usize),
        channel: &mut Channel,
    ) -> Result<Keys> {
        let mut live = self.0.take().ok_or(Error::Broken)?;
        let first = live.next;
        // The number of instances follows from the peer's set size: memory is allocated only as the
        // peer sends them.
        let mut rows = Vec::new();
        let mut message = Vec::new();
        let size = size(instances);
        for start in (0..instances).step_by(CHUNK) {
            let mut chunk = Buffer::zeroed(CHUNK.min(instances - start));
            for (piece, folded) in chunk.chunks_mut(size).enumerate() {
                message.resize(folded.len() * code.width() / 8, 0);
                // mutant(oprf-sender-again): `channel.recv(&mut message)?` => `if let Err(error) =
                //     channel.recv(&mut message) { if $ON { self.0 = Some(live); } return
                //     Err(error); }`
                channel.recv(&mut message)?; // step 3
                live.fold(code, &message, folded); // step 4
                done(start + piece * size + folded.len());
            }
            rows.push(chunk);
        }
        let keys = Keys { rows, first, instances };
        self.0 = Some(live);
        Ok(keys)
    }
}

impl LiveSender {
    /// Steps 3 and 4 for the instances of one piece of the message.
    fn fold(&mut self, code: &Code, message: &[u8], folded: &mut [Block]) {
        let row_blocks = self.next / 128;
        self.next += (folded.len() as u64).next_multiple_of(128);
        let (s, columns, pool) = (&self.s, &self.columns, &self.pool);
        folded
            .par_chunks_mut(TASK)
            .zip(message.par_chunks(TASK * code.width() / 8))
            .enumerate()
            .for_each(|(task, (folded, message))| {
                let first = row_blocks + (task * TASK / 128) as u64;
                pool.with(|scratch| fold_rows((columns, s), first, code, message, folded, scratch));
            });
    }
}

/// Steps 3 and 4: `L(q_j)` from the messages `u_j`, for rows from number `128*first` on.
fn fold_rows(
    (columns, s): (&Streams, &[Block; BLOCKS]),
    first: u64,
    code: &Code,
    message: &[u8],
    folded: &mut [Block],
    scratch: &mut Scratch,
) {
    let n = folded.len();
    let mut rest = message;
    for (block, q) in scratch.rows.iter_mut().enumerate() {
        let bits = code.bits(block);
        let range = 128 * block..128 * block + bits;
        rows(columns, range, first, &mut scratch.columns, n, q);
        let (u, others) = rest.split_at(n * bits / 8);
        rest = others;
        let s = s[block] & code.mask(block);
        match bits {
            0 => {}
            128 => {
                for (q, u) in q.iter_mut().zip(u.as_chunks().0) {
                    *q ^= Block::from_bytes(*u) & s;
                }
            }
            _ => {
                for (i, q) in q[..n].iter_mut().enumerate() {
                    *q ^= read_cut(u, bits / 8, i) & s;
                }
            }
        }
    }
    code.fold(scratch.rows.each_ref().map(|q| &q[..n]), folded);
}

/// `L(C(x)*s)` for each input.
fn shift(s: &[Block; BLOCKS], code: &Code, inputs: &[Block], out: &mut [Block]) {
    assert_eq!(inputs.len(), out.len(), "one output for each input");
    let step = |inputs: &[Block], out: &mut [Block]| {
        let mut words = Zeroizing::new([[Block::ZERO; LANES]; BLOCKS]);
        for (inputs, out) in inputs.chunks(LANES).zip(out.chunks_mut(LANES)) {
            let n = inputs.len();
            for (block, words) in words.iter_mut().enumerate() {
                code.encode(block, inputs, &mut words[..n]);
                words.iter_mut().for_each(|word| *word &= s[block]);
            }
            code.fold(words.each_ref().map(|words| &words[..n]), out);
        }
    };
    inputs
        .par_chunks(TASK)
        .zip(out.par_chunks_mut(TASK))
        .for_each(|(inputs, out)| step(inputs, out));
}

/// Number of instances that all threads work on at a time: whole pieces of the message, at most one
/// allocation of [`Keys`].
pub(crate) fn size(instances: usize) -> usize {
    CHUNK.min(MESSAGE * at_a_time(instances / MESSAGE).next_power_of_two())
}

/// Inputs whose code words are computed at a time: the code words stay in the level-1 cache.
const LANES: usize = 128;

/// The party that has one input for each instance.
///
/// Dropping it wipes its secrets. A failed call wipes them at once.
pub struct Receiver(Option<LiveReceiver>);

struct LiveReceiver {
    /// `K_i0` and `K_i1` for each column.
    columns: [Streams; 2],
    next: u64,
    pool: ScratchPool,
}

impl Receiver {
    /// The offline phase: the OTs.
    ///
    /// # Errors
    /// If the channel fails, or a check finds that the peer deviated from the protocol.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let cot = softspoken::Sender::setup(None, FIELD, session, rng.fork("oprf"), channel)?;
        let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; MAX_WIDTH]);
        convert::Sender::new(cot, session).random(&mut keys, channel)?;
        Ok(Self(Some(LiveReceiver {
            columns: [0, 1].map(|side| Streams::new(keys.iter().map(|pair| pair[side]), session)),
            next: 0,
            pool: ScratchPool::default(),
        })))
    }

    /// Steps 2, 3 and 5: `F_j(inputs[j])` for one new instance per input. The instances of a
    /// session are numbered consecutively, but each call begins at a multiple of 128.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// If the channel fails; [`Error::Broken`] if an earlier call did.
    pub fn extend(
        &mut self,
        code: &Code,
        inputs: &[Block],
        outputs: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(inputs.len(), outputs.len(), "one output for each input");
        let ask = |first: usize, piece: &mut [Block]| {
            piece.copy_from_slice(&inputs[first..][..piece.len()]);
        };
        let take = |first: usize, _: &[Block], piece: &[Block]| {
            outputs[first..][..piece.len()].copy_from_slice(piece);
        };
        self.extend_streamed(code, inputs.len(), ask, take, channel)
    }

    /// [`Receiver::extend`] piece by piece: `ask` fills in the inputs of the instances from its
    /// first argument on, `take` gets their inputs and outputs. Fails as [`Receiver::extend`] does.
    pub fn extend_streamed(
        &mut self,
        code: &Code,
        instances: usize,
        mut ask: impl FnMut(usize, &mut [Block]),
        mut take: impl FnMut(usize, &[Block], &[Block]),
        channel: &mut Channel,
    ) -> Result<()> {
        let mut live = self.0.take().ok_or(Error::Broken)?;
        let size = size(instances);
        let largest = size.min(instances);
        let mut inputs = Zeroizing::new(vec![Block::ZERO; largest]);
        let mut outputs = Zeroizing::new(vec![Block::ZERO; largest]);
        let mut message = vec![0; largest * code.width() / 8];
        for start in (0..instances).step_by(size) {
            let n = size.min(instances - start);
            ask(start, &mut inputs[..n]);
            let message = &mut message[..n * code.width() / 8];
            live.rows(code, &inputs[..n], message, &mut outputs[..n]); // steps 2 and 5
            // mutant(oprf-receiver-again): `channel.send(message)?` => `if let Err(error) =
            //     channel.send(message) { if $ON { self.0 = Some(live); } return Err(error); }`
            channel.send(message)?; // step 3
            take(start, &inputs[..n], &outputs[..n]);
        }
        channel.flush()?;
        self.0 = Some(live);
        Ok(())
    }
}

impl LiveReceiver {
    /// Steps 2 and 5 for the instances of one piece of the message.
    fn rows(&mut self, code: &Code, inputs: &[Block], message: &mut [u8], outputs: &mut [Block]) {
        let row_blocks = self.next / 128;
        let instance = self.next;
        self.next += (inputs.len() as u64).next_multiple_of(128);
        let (columns, pool) = (&self.columns, &self.pool);
        inputs
            .par_chunks(TASK)
            .zip(message.par_chunks_mut(TASK * code.width() / 8))
            .zip(outputs.par_chunks_mut(TASK))
            .enumerate()
            .for_each(|(task, ((inputs, message), outputs))| {
                let done = (task * TASK) as u64;
                let first = row_blocks + done / 128;
                pool.with(|scratch| {
                    mask_rows(columns, first, code, inputs, message, outputs, scratch);
                });
                hash_rows(code, instance + done, inputs, outputs);
            });
    }
}

/// Step 2: the messages `u_j`, and `L(t_0j)`, for rows from number `128*first` on.
fn mask_rows(
    [zero, one]: &[Streams; 2],
    first: u64,
    code: &Code,
    inputs: &[Block],
    message: &mut [u8],
    folded: &mut [Block],
    scratch: &mut Scratch,
) {
    let n = inputs.len();
    let mut rest = message;
    for (block, t) in scratch.rows.iter_mut().enumerate() {
        let bits = code.bits(block);
        let range = 128 * block..128 * block + bits;
        rows(zero, range.clone(), first, &mut scratch.columns, n, t);
        rows(one, range, first, &mut scratch.columns, n, &mut scratch.other);
        let words = &mut scratch.words[..n];
        code.encode(block, inputs, words);
        let (u, others) = rest.split_at_mut(n * bits / 8);
        rest = others;
        let rows = words.iter().zip(t.iter().zip(&scratch.other));
        let rows = rows.map(|(&word, (&t, &other))| word ^ t ^ other);
        if bits > 0 {
            write_cut(rows, bits / 8, u);
        }
    }
    code.fold(scratch.rows.each_ref().map(|t| &t[..n]), folded);
}

/// Step 5: replaces `L(t_0j)` by the outputs, for instances from number `first` on.
fn hash_rows(code: &Code, first: u64, inputs: &[Block], folded: &mut [Block]) {
    let mut keys = Zeroizing::new([Block::ZERO; LANES]);
    let chunks = inputs.chunks(LANES).zip(folded.chunks_mut(LANES));
    for ((inputs, values), first) in chunks.zip((first..).step_by(LANES)) {
        let keys = &mut keys[..values.len()];
        for ((key, &input), instance) in keys.iter_mut().zip(inputs).zip(first..) {
            *key = code.hash_key(instance, input);
        }
        rekeyed(keys, values);
    }
}

#[cfg(test)]
mod plain;
#[cfg(test)]
pub(crate) mod tests;
