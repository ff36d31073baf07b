//! IKNP: the semi-honest baseline of OT extension.
//!
//! Ishai, Kilian, Nissim, Petrank, *Extending Oblivious Transfers Efficiently*, CRYPTO 2003, in the
//! correlated form of Asharov, Lindell, Schneider, Zohner, ePrint 2013/552. With the keys `K_i0`,
//! `K_i1` of 128 base OTs:
//!
//! ```text
//! Sender: delta, base OT keys K_i for its bits     Receiver: u
//! 1.                                               t_i = G(K_i0), d_i = G(K_i0) + G(K_i1) + u
//! 2.  <----------------- d_i --------------------
//! 3.  q_i = G(K_i) + delta_i*d_i = t_i + delta_i*u
//! 4.  v = columns of q                             w = columns of t
//! ```
//!
//! It serves as a baseline for comparison. There is no check: a receiver that uses another `u` for
//! some row learns bits of `delta`. [`softspoken`](crate::softspoken) is checked and sends less;
//! unchecked it is also faster.
//!
//! Security: semi-honest.
//!
//! Cost: that of 128 base OTs once; then for each extension 1 message from the receiver, 16 bytes
//! for each correlation, where the number of correlations in each batch of at most 2^15 is rounded
//! up to a multiple of 128.

use bytemuck::cast_slice;
use rayon::prelude::*;
use volery_channel::Channel;
use volery_channel::handshake::SessionId;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::bits::clear_from;
use volery_primitives::fold::fold;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_primitives::transpose::transpose_first;
use zeroize::Zeroizing;

use crate::batches::{BATCH, as_they_arrive, at_a_time, for_next, meanwhile};
use crate::bits::{bytes_for, delta_or_random, mask, resize, stride, xor_blocks};
use crate::poisonable::Poisonable;
use crate::{CotReceiver, CotSender, Result, base};

/// The party that holds `delta`.
///
/// Dropping it, or a failed call, wipes `delta` and the keys.
pub struct Sender(Poisonable<LiveSender>);

/// The state of the sender.
struct LiveSender {
    delta: Zeroizing<Block>,
    keys: Vec<Aes128>,
    /// The first counter of each row.
    starts: Vec<Block>,
    progress: Progress,
}

impl Sender {
    /// Runs the base OTs, as the holder of `delta`; `None` picks a random one.
    ///
    /// Bit `i` of `delta` is the choice bit of base OT `i`.
    ///
    /// # Panics
    /// If `delta` is zero: it would hide nothing.
    ///
    /// # Errors
    /// If the channel fails, or if the peer sent an invalid group element.
    pub fn setup(
        delta: Option<Block>,
        session: SessionId,
        mut rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let delta = delta_or_random(delta, &mut rng);
        let choices = Zeroizing::new(delta.to_bytes());
        let keys = base::receive(&choices[..], 128, session, &mut rng, channel)?;
        Ok(Self(Poisonable::new(LiveSender {
            delta,
            keys: keys.iter().map(|&key| Aes128::new(key)).collect(),
            starts: starts(session),
            progress: Progress::default(),
        })))
    }
}

impl LiveSender {
    fn batches(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        let batches = self.progress.take(v.len());
        let mut batches: Vec<_> = batches.iter_mut().zip(v.chunks_mut(BATCH)).collect();
        as_they_arrive(
            &mut batches,
            |(batch, _)| channel.recv_blocks(&mut batch.differences), // step 2
            |(batch, v)| {
                resize(&mut batch.rows, 128 * stride(batch.row_blocks));
                rows_of_sender(
                    (&self.keys, &self.starts),
                    batch.first,
                    *self.delta,
                    &batch.differences,
                    &mut batch.rows,
                ); // step 3
                batch.write_columns(v); // step 4
            },
        )
    }
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        *self.0.get().delta
    }

    fn extend(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.0.call(|live| v.chunks_mut(at_a_time()).try_for_each(|v| live.batches(v, channel)))
    }
}

/// The party that holds the choice bits.
///
/// Dropping it, or a failed call, wipes the keys.
pub struct Receiver(Poisonable<LiveReceiver>);

/// The state of the receiver.
struct LiveReceiver {
    /// The keys of each row, `K_i1` first.
    keys: Vec<[Aes128; 2]>,
    /// The first counter of each row.
    starts: Vec<Block>,
    choices: Prg,
    progress: Progress,
}

impl Receiver {
    /// Runs the base OTs, as the peer of [`Sender::setup`].
    ///
    /// # Errors
    /// If the channel fails, or if the peer sent an invalid group element.
    pub fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let keys = base::send(128, session, &mut rng, channel)?;
        Ok(Self(Poisonable::new(LiveReceiver {
            keys: keys.iter().map(|&[zero, one]| [one, zero].map(Aes128::new)).collect(),
            starts: starts(session),
            choices: rng,
            progress: Progress::default(),
        })))
    }
}

impl LiveReceiver {
    fn batches(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        let batches = self.progress.take(w.len());
        for batch in &mut *batches {
            resize(&mut batch.choices, batch.row_blocks);
            self.choices.fill_blocks(&mut batch.choices);
        }
        batches.par_iter_mut().for_each(|batch| {
            resize(&mut batch.rows, 128 * stride(batch.row_blocks));
            rows_of_receiver(
                (&self.keys, &self.starts),
                batch.first,
                &batch.choices,
                &mut batch.rows,
                &mut batch.differences,
            ); // step 1
        });
        let batches = &*batches;
        let columns = || {
            u.par_chunks_mut(BATCH / 8).zip(w.par_chunks_mut(BATCH)).zip(batches).for_each(
                |((u, w), batch)| {
                    u.copy_from_slice(&cast_slice(&batch.choices)[..u.len()]);
                    clear_from(u, w.len());
                    batch.write_columns(w); // step 4
                },
            );
        };
        meanwhile(columns, || {
            batches.iter().try_for_each(|batch| {
                channel.send_blocks(&batch.differences)?; // step 2
                channel.flush()
            })
        })
    }
}

impl CotReceiver for Receiver {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), bytes_for(w.len()), "one packed bit per correlation");
        self.0.call(|live| {
            u.chunks_mut(at_a_time() / 8)
                .zip(w.chunks_mut(at_a_time()))
                .try_for_each(|(u, w)| live.batches(u, w, channel))
        })
    }
}

/// The number of the next 128 columns, and the allocated batches.
#[derive(Default)]
struct Progress {
    next: u128,
    batches: Vec<Batch>,
}

/// The matrices of one batch.
#[derive(Default)]
struct Batch {
    /// The number of the first 128 columns.
    first: u128,
    row_blocks: usize,
    /// The rows `t_i` or `q_i`, which begin at multiples of [`stride`].
    rows: Zeroizing<Vec<Block>>,
    /// The rows `d_i`, one after the other; public once `u` is in them.
    differences: Zeroizing<Vec<Block>>,
    /// The receiver's `u`.
    choices: Zeroizing<Vec<Block>>,
}

impl Progress {
    /// Batches of `n` correlations in total.
    fn take(&mut self, n: usize) -> &mut [Batch] {
        let next = &mut self.next;
        for_next(&mut self.batches, n, |batch, n| {
            batch.first = *next;
            batch.row_blocks = n.div_ceil(128);
            resize(&mut batch.differences, 128 * batch.row_blocks);
            *next += batch.row_blocks as u128;
        })
    }
}

impl Batch {
    /// Step 4: the first columns of the matrix of `rows`.
    fn write_columns(&self, out: &mut [Block]) {
        transpose_first(&self.rows, stride(self.row_blocks), out);
    }
}

/// The first counters of the rows: public and random, as in `softspoken`.
fn starts(session: SessionId) -> Vec<Block> {
    let mut oracle = RandomOracle::new("volery iknp: starts of the rows");
    oracle.absorb(session.as_bytes());
    let mut starts = vec![Block::ZERO; 128];
    oracle.finish_into(Block::as_bytes_mut(&mut starts));
    starts
}

/// Step 1: the rows `t_i` in `rows` and `d_i` in `differences`.
fn rows_of_receiver(
    (keys, starts): (&[[Aes128; 2]], &[Block]),
    first: u128,
    u: &[Block],
    rows: &mut [Block],
    differences: &mut [Block],
) {
    let stride = rows.len() / 128;
    let rows = rows.chunks_exact_mut(stride);
    let differences = differences.chunks_exact_mut(u.len());
    for ((keys, &start), (t, d)) in keys.iter().zip(starts).zip(rows.zip(differences)) {
        // A tree of two leaves: the right one is `G(K_i0)`, the sum of both is the rest of `d_i`.
        fold(keys, first.wrapping_add(start.into()), t, stride, d);
        xor_blocks(d, u);
    }
}

/// Step 3: the rows `q_i` in `rows`.
fn rows_of_sender(
    (keys, starts): (&[Aes128], &[Block]),
    first: u128,
    delta: Block,
    differences: &[Block],
    rows: &mut [Block],
) {
    let bits = Zeroizing::new(delta.to_bytes());
    let row_blocks = differences.len() / 128;
    let rows = rows.chunks_exact_mut(rows.len() / 128);
    let differences = differences.chunks_exact(row_blocks);
    let keys = keys.iter().zip(starts).enumerate();
    for ((i, (key, &start)), (q, d)) in keys.zip(rows.zip(differences)) {
        let q = &mut q[..row_blocks];
        key.ctr(first.wrapping_add(start.into()), q);
        let mask = mask(&bits[..], i);
        for (q, d) in q.iter_mut().zip(d) {
            *q ^= mask & *d;
        }
    }
}
