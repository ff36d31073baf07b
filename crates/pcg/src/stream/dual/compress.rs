//! The inputs and outputs of the code of an instance.

use rayon::prelude::*;
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use crate::{
    correlation::{Correlation, OutputMut},
    lpn::{
        Entry,
        dual::{Compression, Term},
    },
    tree_batch::TreeBatch,
};

/// Outputs to draw.
pub(super) struct Outputs<T: Term> {
    pub(super) code: Compression<T>,
    pub(super) left: usize,
}

impl<T: Term> Outputs<T> {
    /// Puts the next outputs into `out`.
    pub(super) fn draw<P: OutputMut>(&mut self, mut out: P, put: impl Fn(&[T], P) + Sync) {
        while out.count() > 0 {
            let drawn = self.code.draw(self.left.min(out.count()));
            self.left -= drawn.len();
            let now;
            (now, out) = out.split_at(drawn.len());
            in_tasks(drawn, now, &put);
        }
    }
}

/// Elements that one task reads.
const TASK: usize = 1 << 12;

/// Calls `put` with parts of `from` and the same parts of `to`, on all threads if there are several
/// and more than one part.
fn in_tasks<T: Sync, P: OutputMut>(from: &[T], mut to: P, put: impl Fn(&[T], P) + Sync) {
    if from.len() <= TASK || rayon::current_num_threads() == 1 {
        return put(from, to);
    }
    let mut tasks = Vec::with_capacity(from.len().div_ceil(TASK));
    for from in from.chunks(TASK) {
        let now;
        (now, to) = to.split_at(from.len());
        tasks.push((from, now));
    }
    tasks.into_par_iter().for_each(|(from, to)| put(from, to));
}

/// The fewest and the most pairs made at a time, by one task and by all threads. In between it is a
/// part of all, so that the memory is.
const PAIRS: usize = 1 << 10;
const MOST_PAIRS: usize = 1 << 17;
const PAIRS_OF: usize = 32;

/// The noise vector `mu`, absorbed into the code beside the shares.
pub(crate) struct Absorber<K: Correlation> {
    /// The places in ascending order, with their values.
    points: Zeroizing<Vec<(usize, K::Base)>>,
    next: usize,
    absorbed: usize,
    pairs: Buffer<K::Pair>,
}

impl<K: Correlation> Absorber<K> {
    pub(super) fn new(batch: &TreeBatch, points: Zeroizing<Vec<(usize, K::Base)>>) -> Self {
        Self {
            points,
            next: 0,
            absorbed: 0,
            pairs: Buffer::zeroed(match rayon::current_num_threads() {
                1 => PAIRS,
                _ => (batch.leaves() / PAIRS_OF).clamp(PAIRS, MOST_PAIRS),
            }),
        }
    }

    /// The next shares, in pairs with the noise at their places.
    pub(super) fn absorb(&mut self, shares: &[K::Ring], code: &mut Compression<K::Pair>) {
        for shares in shares.chunks(self.pairs.len()) {
            let pairs = &mut self.pairs[..shares.len()];
            in_tasks(shares, &mut *pairs, |shares, pairs: &mut [_]| {
                for (pair, share) in pairs.iter_mut().zip(shares) {
                    *pair = K::sum(<K::Pair as Entry>::Sum::default(), *share);
                }
            });
            let end = self.absorbed + shares.len();
            while let Some((place, value)) = self.points.get(self.next)
                && *place < end
            {
                K::add_noise(&mut pairs[place - self.absorbed], *value);
                self.next += 1;
            }
            self.absorbed = end;
            code.absorb(pairs);
        }
    }
}
