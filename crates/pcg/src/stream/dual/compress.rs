//! The inputs and outputs of the code of an instance.

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

/// Pairs made at a time.
const PAIRS: usize = 1 << 10;

/// The noise vector `mu`, absorbed into the code beside the shares.
pub(super) struct Noise<K: Correlation> {
    /// The places in ascending order, with their values, wiped when dropped; the remaining ones are
    /// the last.
    places: Zeroizing<Vec<usize>>,
    values: Zeroizing<Vec<K::Base>>,
    next: usize,
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
            next: 0,
            absorbed: 0,
            pairs: Buffer::zeroed(PAIRS),
        }
    }

    /// The next shares, in pairs with the noise at their places.
    pub(super) fn absorb(&mut self, shares: &[K::Ring], code: &mut Encoder<K::Pair>) {
        for shares in shares.chunks(PAIRS) {
            let pairs = &mut self.pairs[..shares.len()];
            for (pair, share) in pairs.iter_mut().zip(shares) {
                *pair = K::sum(<K::Pair as Entry>::Sum::default(), *share);
            }
            let end = self.absorbed + shares.len();
            while let Some(place) = self.places.get(self.next)
                && *place < end
            {
                K::add_noise(&mut pairs[place - self.absorbed], self.values[self.next]);
                self.next += 1;
            }
            self.absorbed = end;
            code.absorb(pairs);
        }
    }
}
