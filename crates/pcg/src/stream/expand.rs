//! Expand (Protocol 6 of the 2019 paper, step i): outputs of a round from its base and the shares
//! of its noise vector, any part of them at a time.
//!
//! A checked round whose trees are expanded again for its check computes its first outputs from
//! those leaves, while they are in the cache, so that they need not be expanded a third time. Such
//! outputs are returned only if the check passes.

use std::ops::Range;

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::pages::Buffer;

use super::{noise::Noises, shares::Shares};
use crate::{
    check,
    correlation::{Correlation, OutputMut, Pairs, PairsMut},
    lpn::LocalCode,
    spcot::Trees,
    tree_batch::TreeBatch,
};

/// Outputs that one task of the thread pool expands.
const TASK: usize = 48 * 64;

/// Makes outputs from shares of the noise vector.
pub(super) trait Encoder<R, P>: Sync {
    /// The outputs from `first` on, one for each share.
    fn encode(&self, first: usize, shares: &[R], out: P);
}

/// A value holder's part of the round, except its share of the noise vector, `m`.
pub(super) struct ValueEncoder<K: Correlation> {
    pub(super) code: LocalCode,
    /// `a` and `b` are the first `k` places of it.
    pub(super) base: Pairs<K>,
    pub(super) k: usize,
    /// `mu`: the places in ascending order, with their values.
    pub(super) noise: Noises<K::Base>,
}

impl<K: Correlation, P: PairsMut<K>> Encoder<K::Ring, P> for ValueEncoder<K> {
    fn encode(&self, first: usize, shares: &[K::Ring], mut out: P) {
        K::encode(&self.code, &self.base[..self.k], first, shares, &mut out);
        let noise = &self.noise.0;
        let from = noise.partition_point(|(place, _)| *place < first);
        for (place, value) in &noise[from..] {
            if *place >= first + shares.len() {
                break;
            }
            out.add_noise(place - first, *value);
        }
    }
}

/// A key holder's part of the round, except its share of the noise vector, `r`.
pub(super) struct KeyEncoder<K: Correlation> {
    pub(super) code: LocalCode,
    /// `c` is the first `k` places of it.
    pub(super) base: Buffer<K::Ring>,
    pub(super) k: usize,
}

impl<K: Correlation> Encoder<K::Ring, &mut [K::Ring]> for KeyEncoder<K> {
    fn encode(&self, first: usize, shares: &[K::Ring], out: &mut [K::Ring]) {
        K::encode_key(&self.code, &self.base[..self.k], first, shares, out);
    }
}

/// A round after setup: its outputs from `next` to `end` are still to be computed.
pub(super) struct Expansion<R: Ring, T, E> {
    pub(super) encoder: E,
    pub(super) shares: Shares<R, T>,
    next: usize,
    end: usize,
}

impl<R: Ring, T: Trees<R>, E> Expansion<R, T, E> {
    /// A round of `count` outputs.
    pub(super) fn new(encoder: E, shares: Shares<R, T>, count: usize) -> Self {
        Self { encoder, shares, next: 0, end: count }
    }

    /// Outputs that are still to be computed.
    pub(super) fn left(&self) -> usize {
        self.end - self.next
    }

    /// The next outputs.
    pub(super) fn expand<P: OutputMut>(&mut self, mut out: P, channel: &mut Channel) -> Result<()>
    where
        E: Encoder<R, P>,
    {
        assert!(out.count() <= self.left(), "more outputs than are left");
        while out.count() > 0 {
            let first = self.next;
            let shares = self.shares.at(first, out.count(), channel)?;
            let now;
            (now, out) = out.split_at(shares.len());
            self.next += shares.len();
            in_tasks(&self.encoder, first, shares, now);
        }
        Ok(())
    }

    /// The first outputs: those that are `kept` for the next round, and then `out`. A `check` runs
    /// before any other use of the leaves that it reads; if it fails, the caller must wipe `kept`
    /// and `out`.
    pub(super) fn begin<A: OutputMut, B: OutputMut>(
        &mut self,
        kept: A,
        out: B,
        check: Option<impl FnOnce(CheckedLeaves<'_, R, T, E, A, B>, &mut Channel) -> Result<()>>,
        channel: &mut Channel,
    ) -> Result<()>
    where
        E: Encoder<R, A> + Encoder<R, B>,
    {
        let (mut kept, mut out) = (Some(kept), Some(out));
        if let Some(check) = check {
            self.shares.exchange_all(channel)?;
            let leaves = CheckedLeaves { expansion: self, kept: &mut kept, out: &mut out };
            check(leaves, channel)?;
        }
        kept.map_or(Ok(()), |kept| self.expand(kept, channel))?;
        out.map_or(Ok(()), |out| self.expand(out, channel))
    }
}

/// Makes the outputs from `first` on by all threads.
fn in_tasks<R: Sync, P: OutputMut>(
    encoder: &impl Encoder<R, P>,
    first: usize,
    shares: &[R],
    mut out: P,
) {
    let mut tasks = Vec::with_capacity(shares.len().div_ceil(TASK));
    for (task, shares) in shares.chunks(TASK).enumerate() {
        let now;
        (now, out) = out.split_at(shares.len());
        tasks.push((first + task * TASK, shares, now));
    }
    let encode = |(first, shares, out)| encoder.encode(first, shares, out);
    tasks.into_par_iter().for_each(encode);
}

/// A round under its check, which reads all its leaves: where they are expanded for that, the first
/// outputs go to `kept` and then to `out`, from which the filled part is removed.
pub(super) struct CheckedLeaves<'a, R: Ring, T, E, A, B> {
    expansion: &'a mut Expansion<R, T, E>,
    kept: &'a mut Option<A>,
    out: &'a mut Option<B>,
}

impl<R, T, E, A, B> check::Leaves<R> for CheckedLeaves<'_, R, T, E, A, B>
where
    R: Ring,
    T: Trees<R>,
    E: Encoder<R, A> + Encoder<R, B>,
    A: OutputMut,
    B: OutputMut,
{
    fn for_each_run(&mut self, batch: &TreeBatch, mut look: impl FnMut(Range<usize>, &[R])) {
        let Expansion { encoder, shares, next, .. } = self.expansion;
        shares.for_each_run(batch, |run, leaves, at_points| {
            look(run.clone(), leaves);
            if at_points && batch.leaves_of_run(&run).start == *next {
                let made = fill(encoder, *next, leaves, self.kept);
                *next += made;
                *next += fill(encoder, *next, &leaves[made..], self.out);
            }
        });
    }
}

/// Computes outputs as far as shares and memory reach; returns their number.
fn fill<R: Ring, P: OutputMut>(
    encoder: &impl Encoder<R, P>,
    first: usize,
    shares: &[R],
    out: &mut Option<P>,
) -> usize {
    let Some(all) = out.take() else { return 0 };
    let count = all.count().min(shares.len());
    let (now, rest) = all.split_at(count);
    in_tasks(encoder, first, &shares[..count], now);
    *out = Some(rest);
    count
}
