//! Expand (Protocol 6 of the 2019 paper, step i): outputs of a round from its base and the shares
//! of its noise vector, any part of them at a time.
//!
//! A checked round whose trees are expanded again for its check computes its first outputs from
//! those leaves, while they are in the cache, so that they need not be expanded a third time. Such
//! outputs are returned only if the check passes.

use std::mem::{replace, take};
use std::ops::Range;

use bytemuck::Zeroable;
use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_primitives::{Block, pages::Buffer};
use zeroize::Zeroizing;

use super::shares::{LEAVES_AGAIN, Shares};
use crate::{
    check,
    correlation::{Correlation, OutputMut, Pairs, PairsMut},
    lpn::LocalCode,
    plan::Step,
    tree_batch::TreeBatch,
};

/// Outputs that one task of the thread pool expands.
const TASK: usize = 48 * 64;

/// A party's part of a round from which its outputs are made, but for its shares of the noise
/// vector.
pub(crate) trait Encode: Sync {
    /// The ring of the shares.
    type Ring: Ring;
    /// An output.
    type Output: Copy + Zeroable + Send;

    /// Outputs that are made together: of each instance those of one block.
    fn unit(&self) -> usize;

    /// The base, as memory for reuse.
    fn into_base(self) -> Buffer<Self::Output>;
}

/// Makes outputs from shares of the noise vector, in memory of the kind `P`.
pub(crate) trait Encoder<P>: Encode {
    /// The outputs from `first` on, one for each share: one unit, or any number in units of 1.
    fn encode(&self, first: usize, shares: &[Self::Ring], out: P);

    /// Puts outputs into as much memory.
    fn put(outputs: &[Self::Output], out: P);
}

/// An encoder for slices, which may serve other memory, too.
pub(crate) trait Slices: for<'a> Encoder<&'a mut [<Self as Encode>::Output]> {}

impl<E: for<'a> Encoder<&'a mut [<Self as Encode>::Output]>> Slices for E {}

/// The base of a round, and its code.
///
/// The outputs of `B` instances are in units: block `j` of each instance in turn, then block
/// `j + 1` of each. So a tree is over a run of outputs, as in a single instance. Entry `r` of the
/// table has base correlation `r*B + b` for instance `b`.
pub(crate) struct Table<T: Copy + Zeroable> {
    pub(super) code: LocalCode,
    /// `a` and `b`, or `c`, of all instances are the first `k*B` places of it.
    pub(super) base: Buffer<T>,
    pub(super) step: Step,
}

impl<T: Copy + Zeroable> Table<T> {
    /// The table with a base, for the code of that seed.
    pub(super) fn new(code: Block, base: Buffer<T>, step: Step) -> Self {
        Self { code: LocalCode::new(code, step.set.k), base, step }
    }

    fn unit(&self) -> usize {
        match self.step.instances {
            1 => 1,
            instances => instances * self.step.set.block(),
        }
    }

    fn assert_unit(&self, first: usize, count: usize) {
        let unit = self.unit();
        assert!(unit == 1 || count == unit && first.is_multiple_of(unit), "one unit at a time");
    }

    fn rows<const B: usize>(&self) -> &[[T; B]] {
        self.base[..self.step.set.k * B].as_chunks().0
    }
}

/// A value holder's part of the round, except its share of the noise vector, `m`.
pub(crate) struct ValueEncoder<K: Correlation> {
    pub(super) table: Table<K::Pair>,
    /// `mu`: the places in ascending order, with their values.
    pub(super) noise: Zeroizing<Vec<(usize, K::Base)>>,
}

impl<K: Correlation> Encode for ValueEncoder<K> {
    type Ring = K::Ring;
    type Output = K::Pair;

    fn unit(&self) -> usize {
        self.table.unit()
    }

    fn into_base(self) -> Pairs<K> {
        self.table.base
    }
}

impl<K: Correlation, P: PairsMut<K>> Encoder<P> for ValueEncoder<K> {
    fn encode(&self, first: usize, shares: &[K::Ring], mut out: P) {
        let (table, code) = (&self.table, &self.table.code);
        table.assert_unit(first, shares.len());
        match table.step.instances {
            1 => K::encode::<P, 1>(code, table.rows(), first, shares, &mut out),
            2 => K::encode::<P, 2>(code, table.rows(), first / 2, shares, &mut out),
            4 => K::encode::<P, 4>(code, table.rows(), first / 4, shares, &mut out),
            _ => unreachable!("{INSTANCES}"),
        }
        let noise = &self.noise;
        let from = noise.partition_point(|(place, _)| *place < first);
        for (place, value) in &noise[from..] {
            if *place >= first + shares.len() {
                break;
            }
            out.add_noise(place - first, *value);
        }
    }

    fn put(outputs: &[K::Pair], mut out: P) {
        for (place, pair) in outputs.iter().enumerate() {
            out.put(place, *pair);
        }
    }
}

/// A key holder's part of the round, except its share of the noise vector, `r`.
pub(crate) struct KeyEncoder<K: Correlation>(pub(super) Table<K::Ring>);

impl<K: Correlation> Encode for KeyEncoder<K> {
    type Ring = K::Ring;
    type Output = K::Ring;

    fn unit(&self) -> usize {
        self.0.unit()
    }

    fn into_base(self) -> Buffer<K::Ring> {
        self.0.base
    }
}

impl<K: Correlation> Encoder<&mut [K::Ring]> for KeyEncoder<K> {
    fn encode(&self, first: usize, shares: &[K::Ring], out: &mut [K::Ring]) {
        let Self(table) = self;
        table.assert_unit(first, shares.len());
        match table.step.instances {
            1 => K::encode_key::<1>(&table.code, table.rows(), first, shares, out),
            2 => K::encode_key::<2>(&table.code, table.rows(), first / 2, shares, out),
            4 => K::encode_key::<4>(&table.code, table.rows(), first / 4, shares, out),
            _ => unreachable!("{INSTANCES}"),
        }
    }

    fn put(outputs: &[K::Ring], out: &mut [K::Ring]) {
        out.copy_from_slice(outputs);
    }
}

const INSTANCES: &str = "plans have 1, 2 or 4 instances";

/// A round after setup: its outputs from `next` to `end` are still to be computed.
pub(super) struct Expansion<S, E: Encode> {
    pub(super) encoder: E,
    pub(super) shares: S,
    next: usize,
    end: usize,
    /// The outputs of the unit that `next` is in, if some of them have been returned.
    part: Buffer<E::Output>,
}

impl<S: Shares, E: Slices<Ring = S::Ring>> Expansion<S, E> {
    /// A round of `count` outputs.
    pub(super) fn new(encoder: E, shares: S, count: usize) -> Self {
        assert!(LEAVES_AGAIN.is_multiple_of(encoder.unit()), "trees are expanded in whole units");
        Self { encoder, shares, next: 0, end: count, part: Buffer::default() }
    }

    /// Outputs that are still to be computed.
    pub(super) fn left(&self) -> usize {
        self.end - self.next
    }

    /// The next outputs.
    pub(super) fn expand<P: OutputMut>(&mut self, mut out: P, channel: &mut Channel) -> Result<()>
    where
        E: Encoder<P>,
    {
        assert!(out.count() <= self.left(), "more outputs than are left");
        let unit = self.encoder.unit();
        while out.count() > 0 {
            let shares = match self.next % unit {
                0 => self.shares.at(self.next, out.count().next_multiple_of(unit), channel)?,
                _ => &[],
            };
            let at = (self.next, shares);
            fill(&self.encoder, &mut self.next, &mut self.part, at, &mut out);
        }
        Ok(())
    }

    /// The first outputs: those that are `kept` for the next round, and then `out`. A `check` runs
    /// before any other use of the leaves that it reads; if it fails, the caller must wipe `kept`
    /// and `out`.
    pub(super) fn begin<P: OutputMut>(
        &mut self,
        mut kept: &mut [E::Output],
        mut out: P,
        check: Option<impl FnOnce(CheckedLeaves<'_, '_, S, E, P>, &mut Channel) -> Result<()>>,
        channel: &mut Channel,
    ) -> Result<()>
    where
        E: Encoder<P>,
    {
        if let Some(check) = check {
            let leaves = CheckedLeaves { expansion: self, kept: &mut kept, out: &mut out };
            check(leaves, channel)?;
        }
        self.expand(kept, channel)?;
        self.expand(out, channel)
    }
}

/// Makes the outputs from `first` on by all threads.
fn in_tasks<E: Encoder<P>, P: OutputMut>(
    encoder: &E,
    first: usize,
    shares: &[E::Ring],
    mut out: P,
) {
    let task = if encoder.unit() == 1 { TASK } else { encoder.unit() };
    let mut tasks = Vec::with_capacity(shares.len().div_ceil(task));
    for (number, shares) in shares.chunks(task).enumerate() {
        let now;
        (now, out) = out.split_at(shares.len());
        tasks.push((first + number * task, shares, now));
    }
    let encode = |(first, shares, out)| encoder.encode(first, shares, out);
    tasks.into_par_iter().for_each(encode);
}

/// A round under its check, which reads all its leaves: where they are expanded for that, the first
/// outputs go to `kept` and then to `out`, from which the filled part is removed.
pub(super) struct CheckedLeaves<'a, 'kept, S, E: Encode, P> {
    expansion: &'a mut Expansion<S, E>,
    kept: &'a mut &'kept mut [E::Output],
    out: &'a mut P,
}

impl<S: Shares, E, P: OutputMut> check::Runs for CheckedLeaves<'_, '_, S, E, P>
where
    E: Encoder<P> + Slices<Ring = S::Ring>,
{
    type Ring = S::Ring;

    fn for_each_run(&mut self, batch: &TreeBatch, mut look: impl FnMut(Range<usize>, &[S::Ring])) {
        let Expansion { encoder, shares, next, part, .. } = self.expansion;
        shares.for_each_run(batch, |run, leaves, at_points| {
            look(run.clone(), leaves);
            let places = batch.leaves_of_run(&run);
            if at_points && places.contains(next) {
                fill(encoder, next, part, (places.start, leaves), self.kept);
                fill(encoder, next, part, (places.start, leaves), self.out);
            }
        });
    }
}

/// Computes the outputs from `next` on, as far as memory reaches and the shares from place `first`
/// on, which are whole units: `part` has the outputs of a unit that does not fit as a whole.
fn fill<P: OutputMut, E: Encoder<P> + Slices>(
    encoder: &E,
    next: &mut usize,
    part: &mut Buffer<E::Output>,
    (first, shares): (usize, &[E::Ring]),
    out: &mut P,
) {
    let mut rest = replace(out, P::none());
    let unit = encoder.unit();
    while rest.count() > 0 {
        let (begun, from) = (*next % unit, next.saturating_sub(first).min(shares.len()));
        let whole = rest.count().min(shares.len() - from) / unit * unit;
        let now;
        if begun == 0 && whole > 0 {
            (now, rest) = rest.split_at(whole);
            in_tasks(encoder, *next, &shares[from..from + whole], now);
            *next += whole;
            continue;
        }
        if begun == 0 {
            if from == shares.len() {
                break;
            }
            *part = take(part).with_len(unit);
            encoder.encode(*next, &shares[from..from + unit], &mut part[..]);
        }
        let count = rest.count().min(unit - begun);
        (now, rest) = rest.split_at(count);
        <E as Encoder<P>>::put(&part[begun..begun + count], now);
        *next += count;
    }
    *out = rest;
}
