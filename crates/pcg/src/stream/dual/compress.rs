//! The inputs and outputs of the code of an instance.

use rayon::prelude::*;
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

use crate::{
    correlation::Correlation,
    lpn::{
        Entry,
        dual::{Encoder, Term},
    },
    tree_batch::TreeBatch,
};

/// Outputs to draw.
pub(super) struct Outputs<T: Term> {
    pub(super) code: Encoder<T>,
    pub(super) left: usize,
}

/// The first `len` places of a buffer that grows.
pub(super) fn window_for<T: Term>(window: &mut Buffer<T>, len: usize) -> &mut [T] {
    if window.len() < len {
        *window = Buffer::zeroed(len);
    }
    &mut window[..len]
}

impl<T: Term> Outputs<T> {
    /// The next outputs: at most `count`, and at least one.
    pub(super) fn draw(&mut self, count: usize) -> &[T] {
        let drawn = self.code.draw(self.left.min(count));
        self.left -= drawn.len();
        drawn
    }

    pub(super) fn fill(&mut self, mut out: &mut [T]) {
        while !out.is_empty() {
            let drawn = self.draw(out.len());
            let now;
            (now, out) = out.split_at_mut(drawn.len());
            now.copy_from_slice(drawn);
        }
    }
}

/// Pairs made at a time by one thread, in its cache.
const PAIRS: usize = 1 << 10;

/// Pairs made at a time by each of several threads: as many as the code absorbs by all threads.
const PAIRS_OF_THREAD: usize = 1 << 16;

/// Pairs made at a time.
fn pairs_at_a_time() -> usize {
    match rayon::current_num_threads() {
        1 => PAIRS,
        threads => threads * PAIRS_OF_THREAD,
    }
}

/// The noise vector `mu`, absorbed into the code beside the shares.
pub(super) struct Noise<K: Correlation> {
    /// The places in ascending order, with their values, wiped when dropped.
    places: Zeroizing<Vec<usize>>,
    values: Zeroizing<Vec<K::Base>>,
    absorbed: usize,
    pairs: Buffer<K::Pair>,
}

impl<K: Correlation> Noise<K> {
    pub(super) fn new(batch: &TreeBatch, alphas: &[usize], values: &[K::Base]) -> Self {
        let places = (0..).zip(alphas);
        let place = |(tree, alpha)| batch.leaves_of(tree).start + alpha;
        Self {
            places: Zeroizing::new(places.map(place).collect()),
            values: Zeroizing::new(values.to_vec()),
            absorbed: 0,
            pairs: Buffer::default(),
        }
    }

    /// The next shares, in pairs with the noise at their places.
    pub(super) fn absorb(&mut self, shares: &[K::Ring], code: &mut Encoder<K::Pair>) {
        let (places, values) = (&self.places, &self.values);
        for shares in shares.chunks(pairs_at_a_time()) {
            let pairs = window_for(&mut self.pairs, shares.len());
            let starts = (self.absorbed..).step_by(PAIRS);
            let tasks = shares.chunks(PAIRS).zip(pairs.chunks_mut(PAIRS));
            let tasks: Vec<_> = starts.zip(tasks).collect();
            tasks.into_par_iter().for_each(|(start, (shares, pairs))| {
                for (pair, share) in pairs.iter_mut().zip(shares) {
                    *pair = K::sum(<K::Pair as Entry>::Sum::default(), *share);
                }
                let of = |place| places.partition_point(|other| *other < place);
                let noise = of(start)..of(start + shares.len());
                for (place, value) in places[noise.clone()].iter().zip(&values[noise]) {
                    K::add_noise(&mut pairs[place - start], *value);
                }
            });
            self.absorbed += shares.len();
            code.absorb(pairs);
        }
    }
}
