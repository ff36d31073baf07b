//! The privately puncturable PRF of section 3 of the 2019 paper, as a piece of its own.
//!
//! The full key evaluates the PRF everywhere; the punctured key everywhere but at one point. [`crate::rot`] lets a
//! party obtain a key punctured at a point that the owner of the full key does not learn; here both keys are
//! made in one place.
//!
//! ```
//! use volery_channel::SessionId;
//! use volery_field::Fp61;
//! use volery_pcg::{ggm::TreePrgs, pprf::Key};
//! use volery_primitives::Block;
//!
//! let session = SessionId::from_bytes([0; 32]); // public; separates this use of the PRF from all others
//! let key = Key::<Fp61>::new(TreePrgs::new(session, 0).tree(0), Block::from(42), 1000);
//! let punctured = key.puncture(7);
//! assert!(punctured.evaluate(7).is_none());
//! assert!(punctured.evaluate(8) == Some(key.evaluate(8)));
//! ```
//!
//! Security: pseudorandomness at the punctured point, by that of `G` (Theorem A.2). The points that are asked for, and
//! `alpha`, take part in branches and index the memory of the party that holds the key.
//! Cost: `log2 n` calls of `G` for one point; `1.5 n` (64-bit rings) or `2 n` AES calls for all.

use std::marker::PhantomData;

use volery_field::Ring;
use volery_primitives::Block;
use zeroize::{Zeroize, Zeroizing};

use crate::ggm::{self, Copath, PuncturedSums, Scratch, Shape, TreePrg};

/// The full key: evaluates the PRF `0..n -> R` at every point.
pub struct Key<R> {
    prg: TreePrg,
    root: Block,
    shape: Shape,
    ring: PhantomData<R>,
}

/// A key punctured at `alpha`: evaluates the PRF at every other point.
pub struct PuncturedKey<R: Ring> {
    prg: TreePrg,
    shape: Shape,
    alpha: usize,
    copath: Copath<R>,
}

impl<R: Ring> Key<R> {
    /// The key with the seed `root`, over the domain `0..n`.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40.
    #[must_use]
    pub fn new(prg: TreePrg, root: Block, n: usize) -> Self {
        Self {
            prg,
            root,
            shape: Shape::new(n),
            ring: PhantomData,
        }
    }

    /// The PRF at `point`.
    ///
    /// # Panics
    /// If `point` is outside the domain.
    #[must_use]
    pub fn evaluate(&self, point: usize) -> R {
        assert!(point < self.shape.leaves(), "a point of the domain");
        let mut seed = self.root;
        for level in 1..self.shape.depth() {
            seed = self.prg.children(seed)[self.shape.path_bit(point, level)];
        }
        self.prg.leaf_pair(seed)[point & 1]
    }

    /// The PRF at every point: `out[j]` is its value at `j`.
    ///
    /// # Panics
    /// If `out.len()` is not the size of the domain.
    pub fn expand(&self, out: &mut [R]) {
        ggm::expand(
            &self.prg,
            self.shape,
            self.root,
            Block::ZERO,
            out,
            &mut Scratch::default(),
        );
    }

    /// The key punctured at `alpha`.
    ///
    /// # Panics
    /// If `alpha` is outside the domain.
    #[must_use]
    pub fn puncture(&self, alpha: usize) -> PuncturedKey<R> {
        assert!(alpha < self.shape.leaves(), "a point of the domain");
        let mut seed = self.root;
        // As long as it gets: a list that grows leaves copies behind.
        let mut inner = Vec::with_capacity(self.shape.depth() as usize);
        for level in 1..self.shape.depth() {
            let bit = self.shape.path_bit(alpha, level);
            let children = self.prg.children(seed);
            inner.push(children[1 - bit]);
            seed = children[bit];
        }
        PuncturedKey {
            prg: self.prg.clone(),
            shape: self.shape,
            alpha,
            copath: Copath {
                inner,
                leaf: self.prg.leaf_pair(seed)[1 - (alpha & 1)],
            },
        }
    }
}

impl<R: Ring> PuncturedKey<R> {
    /// The key that the sums opened in Protocol 2, step 4, amount to. Expands the tree once.
    ///
    /// # Panics
    /// If `sums` does not fit a tree of `n` leaves.
    #[must_use]
    pub fn from_sums(prg: TreePrg, sums: &PuncturedSums<R>, n: usize) -> Self {
        let shape = Shape::new(n);
        let mut leaves = Zeroizing::new(vec![R::ZERO; n]);
        let (_, copath) =
            ggm::expand_punctured(&prg, shape, sums, &mut leaves, &mut Scratch::default());
        Self::from_copath(prg, sums.alpha, copath, n)
    }

    /// The key with the seeds beside the path to `alpha` that [`ggm::expand_punctured`] returned.
    pub(crate) fn from_copath(prg: TreePrg, alpha: usize, copath: Copath<R>, n: usize) -> Self {
        Self {
            prg,
            shape: Shape::new(n),
            alpha,
            copath,
        }
    }

    /// The point at which the key does not evaluate.
    #[must_use]
    pub fn alpha(&self) -> usize {
        self.alpha
    }

    /// The PRF at `point`; nothing at `alpha`.
    ///
    /// # Panics
    /// If `point` is outside the domain.
    #[must_use]
    pub fn evaluate(&self, point: usize) -> Option<R> {
        assert!(point < self.shape.leaves(), "a point of the domain");
        let depth = self.shape.depth();
        // The first level on which the ways to `point` and to `alpha` part: there the copath has the seed.
        let fork =
            (1..=depth).find(|level| point >> (depth - level) != self.alpha >> (depth - level))?;
        if fork == depth {
            return Some(self.copath.leaf);
        }
        let mut seed = self.copath.inner[fork as usize - 1];
        for level in fork + 1..depth {
            seed = self.prg.children(seed)[self.shape.path_bit(point, level)];
        }
        Some(self.prg.leaf_pair(seed)[point & 1])
    }

    /// The PRF at every point but `alpha`, where `out` becomes zero.
    ///
    /// # Panics
    /// If `out.len()` is not the size of the domain.
    pub fn expand(&self, out: &mut [R]) {
        ggm::expand_copath(
            &self.prg,
            self.shape,
            self.alpha,
            &self.copath,
            out,
            &mut Scratch::default(),
        );
    }
}

impl<R: Ring> Drop for PuncturedKey<R> {
    fn drop(&mut self) {
        self.alpha.zeroize();
    }
}

impl<R> Drop for Key<R> {
    fn drop(&mut self) {
        self.root.zeroize();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use volery_channel::SessionId;
    use volery_field::{Fp61, Gf128, Z64};

    use super::*;
    use crate::ggm::TreePrgs;

    fn check<R: Ring>(n: usize, alpha: usize, seed: u128) {
        let prg = TreePrgs::new(SessionId::from_bytes([3; 32]), 0).tree(0);
        let key = Key::<R>::new(prg.clone(), Block::from(seed), n);
        let mut all = vec![R::ZERO; n];
        key.expand(&mut all);
        let punctured = key.puncture(alpha);
        let shape = Shape::new(n);
        let sums = ggm::expand(
            &prg,
            shape,
            Block::from(seed),
            Block::ZERO,
            &mut all.clone(),
            &mut Scratch::default(),
        );
        let side = |level| 1 - shape.path_bit(alpha, level);
        let opened = PuncturedSums {
            alpha,
            inner: (1..shape.depth())
                .map(|l| sums.inner[l as usize - 1][side(l)])
                .collect(),
            leaf: sums.leaf[side(shape.depth())],
        };
        let from_sums = PuncturedKey::from_sums(prg, &opened, n);
        for (point, value) in all.iter().enumerate() {
            assert!(key.evaluate(point) == *value);
            let expected = (point != alpha).then_some(*value);
            assert!(punctured.evaluate(point) == expected);
            assert!(from_sums.evaluate(point) == expected);
        }
        let mut expanded = vec![R::ONE; n];
        punctured.expand(&mut expanded);
        all[alpha] = R::ZERO;
        assert!(expanded == all);
        assert_eq!(punctured.alpha(), alpha);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_punctured_key_is_the_key_but_for_one_point(n in 1usize..300, alpha in any::<proptest::sample::Index>(), seed: u128) {
            let alpha = alpha.index(n);
            check::<Fp61>(n, alpha, seed);
            check::<Z64>(n, alpha, seed);
            check::<Gf128>(n, alpha, seed);
        }
    }
}
