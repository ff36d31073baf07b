//! The privately puncturable PRF of the 2019 paper (section 3): a key that works at every point
//! except one, given to a party without learning the point.
//!
//! The PRF maps `0..n` to a ring. The full [`Key`] `K_1` is a seed, and evaluates it at every
//! point: `F(j)` is leaf `j` of the GGM tree under the seed. The [`PuncturedKey`] `K_2` holds the
//! `h` seeds beside the path to leaf `alpha`, and evaluates the PRF at every point except `alpha`.
//! With the pair of Definition A.1, `ROT.Gen` and `ROT.Expand`, made by Functionality 7:
//!
//! ```text
//! K_1 = s_0                               K_2 = (alpha, the seeds beside the path to alpha)
//! Expand: F(0) .. F(n-1)                  Expand: the same values but F(alpha)
//! ```
//!
//! In other privately puncturable PRFs the holder of the full key makes the punctured one and knows
//! the point. Here [`Key::deal`] and [`PuncturedKey::obtain`] run Protocol 2
//! (`punctured_ot`), where P2 supplies the point:
//!
//! ```text
//! P1: -                                   P2: alpha
//!     -------------------- Protocol 2 --------------------
//! K_1                                     K_2
//! ```
//!
//! [`Key::puncture`] makes `K_2` from `K_1` locally, for a dealer that may know the point.
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::Fp61;
//! use volery_ot::{convert, softspoken::{self, SmallField}};
//! use volery_pcg::{Result, ggm::TreePrgs, pprf::{Key, PuncturedKey}};
//! use volery_primitives::prg::Prg;
//!
//! let session = SessionId::from_bytes([0; 32]); // of the handshake; public
//! let prgs = TreePrgs::new(session, 0); // no two keys of a session have the same number
//! let (key, punctured) = run_two_parties(
//!     |channel| -> Result<_> {
//!         let (mut rng, field) = (Prg::from_os().expect("randomness"), SmallField::default());
//!         let cot = softspoken::Sender::setup(None, field, session, rng.fork("ot"), channel)?;
//!         let mut ot = convert::Sender::new(cot, session);
//!         Key::<Fp61>::deal(1000, &prgs, &mut rng, &mut ot, channel)
//!     },
//!     |channel| -> Result<_> {
//!         let (mut rng, field) = (Prg::from_os().expect("randomness"), SmallField::default());
//!         let cot = softspoken::Receiver::setup(field, session, rng.fork("ot"), channel)?;
//!         let mut ot = convert::Receiver::new(cot, session);
//!         PuncturedKey::<Fp61>::obtain(1000, 7, &prgs, &mut ot, channel)
//!     },
//! );
//! let (key, punctured) = (key?, punctured?);
//! assert!(punctured.evaluate(7).is_none());
//! assert!(punctured.evaluate(8) == Some(key.evaluate(8)));
//! assert!(key.puncture(7).evaluate(8) == punctured.evaluate(8));
//! # Ok::<_, volery_pcg::Error>(())
//! ```
//!
//! Security: to the holder of `K_2` the value at `alpha` is pseudorandom, if `G` is (Theorem A.2).
//! In the protocol P1 learns nothing of `alpha`, and P2 nothing of `F(alpha)` nor of the seeds on
//! its path (Theorem A.3, semi-honest). The messages of P1 are not checked: a malicious P1 can give
//! P2 a key that does not match its own. A malicious P2 can only choose another point, if the OTs
//! are secure against it and `n` is a power of two above 1; otherwise it may choose a place beyond
//! the last point, and so get all values. The evaluated points, and `alpha`, take part in branches
//! and index the memory of the party that holds the key. Keys are wiped when dropped.
//!
//! Cost: `h = max(1, ceil(log2 n))` calls of `G` for one point; `1.5 n` (64-bit rings) or `2 n` AES
//! calls for all. The protocol: `h` OTs; `32 h` bytes from P1 and `h` bits from P2, in addition to
//! the cost of the source of OTs; each party expands the tree once. 2 messages.

use std::marker::PhantomData;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{
    ggm::{self, Copath, Growth, PuncturedSums, Scratch, Shape, TreePrg, TreePrgs},
    punctured_ot,
    tree_batch::TreeBatch,
};

/// The full key K_1: evaluates the PRF `0..n -> R` at every point.
pub struct Key<R> {
    prg: TreePrg,
    root: Block,
    shape: Shape,
    ring: PhantomData<R>,
}

/// The key K_2, punctured at `alpha`: evaluates the PRF at every other point.
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
    /// If `n` is 0 or above 2^40, or `prg` is not that of a GGM tree with unmasked leaves.
    #[must_use]
    pub fn new(prg: TreePrg, root: Block, n: usize) -> Self {
        assert_prf(prg.growth(), prg.clears_leaves());
        Self { prg, root, shape: Shape::new(n), ring: PhantomData }
    }

    /// P1: a random key over the domain `0..n`. P2 gets the key punctured at its point by
    /// [`PuncturedKey::obtain`]. No other key or tree has the number of `prgs`.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40, or `prgs` are not those of GGM trees with whole leaves.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails.
    pub fn deal<C: CotSender>(
        n: usize,
        prgs: &TreePrgs,
        rng: &mut Prg,
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_prf(prgs.growth(), prgs.clears_leaves());
        let mut leaves = Zeroizing::new(vec![R::ZERO; n]);
        let trees = punctured_ot::Trees::grow(&TreeBatch::regular(1, n), prgs, rng, &mut leaves);
        trees.send(ot, channel)?;
        Ok(Self::new(prgs.tree(0), trees.roots[0], n))
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
        ggm::expand(&self.prg, self.shape, self.root, Block::ZERO, out, &mut Scratch::default());
    }

    /// The key punctured at `alpha`.
    ///
    /// # Panics
    /// If `alpha` is outside the domain.
    #[must_use]
    pub fn puncture(&self, alpha: usize) -> PuncturedKey<R> {
        assert!(alpha < self.shape.leaves(), "a point of the domain");
        let mut seed = self.root;
        // At its final capacity: a list that grows leaves copies behind.
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
            copath: Copath { inner, leaf: self.prg.leaf_pair(seed)[1 - (alpha & 1)] },
        }
    }
}

impl<R: Ring> PuncturedKey<R> {
    /// P2: the key of P1's [`Key::deal`], punctured at `alpha`, which P1 does not learn.
    ///
    /// # Panics
    /// If `n` is 0 or above 2^40, `alpha` is outside the domain, or `prgs` are not those of GGM
    /// trees with whole leaves.
    ///
    /// # Errors
    /// If the channel or the source of OTs fails.
    pub fn obtain<C: CotReceiver>(
        n: usize,
        alpha: usize,
        prgs: &TreePrgs,
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_prf(prgs.growth(), prgs.clears_leaves());
        assert!(alpha < n, "a point of the domain");
        let (batch, mut leaves) = (TreeBatch::regular(1, n), Zeroizing::new(vec![R::ZERO; n]));
        let mut punctured =
            punctured_ot::receive(&batch, prgs, &[alpha], &mut leaves, ot, channel)?;
        let copath = punctured.copaths.remove(0);
        Ok(Self::from_copath(prgs.tree(0), alpha, copath, n))
    }

    /// The key of the sums opened in Protocol 2, step 4. Expands the tree once.
    ///
    /// # Panics
    /// If `sums` does not fit a tree of `n` leaves, or `prg` is not that of a GGM tree with whole
    /// leaves.
    #[must_use]
    pub fn from_sums(prg: TreePrg, sums: &PuncturedSums<R>, n: usize) -> Self {
        assert_prf(prg.growth(), prg.clears_leaves());
        let shape = Shape::new(n);
        let mut leaves = Zeroizing::new(vec![R::ZERO; n]);
        let (_, copath) =
            ggm::expand_punctured(&prg, shape, sums, &mut leaves, &mut Scratch::default());
        Self::from_copath(prg, sums.alpha, copath, n)
    }

    /// The key with the seeds beside the path to `alpha` that [`ggm::expand_punctured`] returned.
    pub(crate) fn from_copath(prg: TreePrg, alpha: usize, copath: Copath<R>, n: usize) -> Self {
        assert_prf(prg.growth(), prg.clears_leaves());
        Self { prg, shape: Shape::new(n), alpha, copath }
    }

    /// The point at which the key does not evaluate.
    #[must_use]
    pub fn alpha(&self) -> usize {
        self.alpha
    }

    /// The PRF at `point`; `None` at `alpha`.
    ///
    /// # Panics
    /// If `point` is outside the domain.
    #[must_use]
    pub fn evaluate(&self, point: usize) -> Option<R> {
        assert!(point < self.shape.leaves(), "a point of the domain");
        let depth = self.shape.depth();
        // The first level on which the paths to `point` and to `alpha` part: there the copath has
        // the seed.
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

/// Requires that a seed of the copath gives the same leaf as the root does: not where leaves add
/// up, nor where a bit of them is cleared.
fn assert_prf(growth: Growth, clears_leaves: bool) {
    assert_eq!(growth, Growth::Ggm, "the PRF of a GGM tree");
    assert!(!clears_leaves, "the PRF of a tree with whole leaves");
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
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use proptest::prelude::*;
    use volery_channel::{SessionId, run_two_parties_with_stats};
    use volery_field::{Fp61, Gf128, Z64};
    use volery_ot::ideal;

    use super::*;

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
            inner: (1..shape.depth()).map(|l| sums.inner[l as usize - 1][side(l)]).collect(),
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
    /// Both parties' keys from the protocol, and its cost.
    fn check_protocol<R: Ring>(n: usize, alpha: usize) {
        let session = SessionId::from_bytes([3; 32]);
        let prgs = TreePrgs::new(session, 6);
        let (cot_sender, cot_receiver) = ideal::pair(Block::from(3), Block::from(1));
        let ((key, sent), (punctured, _)) = run_two_parties_with_stats(
            |channel| {
                let mut ot = convert::Sender::new(cot_sender, session);
                let rng = &mut Prg::new(Block::from(n as u128));
                Key::<R>::deal(n, &prgs, rng, &mut ot, channel).unwrap()
            },
            |channel| {
                let mut ot = convert::Receiver::new(cot_receiver, session);
                PuncturedKey::<R>::obtain(n, alpha, &prgs, &mut ot, channel).unwrap()
            },
        );
        assert_eq!(punctured.alpha(), alpha);
        let dealt = key.puncture(alpha);
        for point in 0..n {
            let expected = (point != alpha).then(|| key.evaluate(point));
            assert!(punctured.evaluate(point) == expected);
            assert!(dealt.evaluate(point) == expected);
        }
        let h = u64::from(n.next_power_of_two().ilog2().max(1));
        assert_eq!(sent.bytes_sent, 32 * h);
        assert_eq!(sent.bytes_received, h.div_ceil(8));
        assert_eq!((sent.messages_received, sent.messages_sent), (1, 1));
    }

    #[test]
    fn p2_gets_the_key_without_its_point() {
        for n in [1, 2, 3, 7, 8, 9, 127, 128, 129, 1009] {
            for alpha in [0, n / 2, n - 1] {
                check_protocol::<Fp61>(n, alpha);
                check_protocol::<Z64>(n, alpha);
                check_protocol::<Gf128>(n, alpha);
            }
        }
    }

    #[test]
    #[should_panic(expected = "the PRF of a GGM tree")]
    fn half_trees_are_no_prf() {
        let session = SessionId::from_bytes([3; 32]);
        let prgs = TreePrgs::growing(Growth::PseudoCorrelated, session, 0);
        let _ = Key::<Fp61>::new(prgs.tree(0), Block::from(1), 8);
    }

    #[test]
    #[should_panic(expected = "a tree with whole leaves")]
    fn cleared_leaves_are_no_prf() {
        let prgs = TreePrgs::new(SessionId::from_bytes([3; 32]), 0).with_cleared_leaves();
        let _ = Key::<Gf128>::new(prgs.tree(0), Block::from(1), 8);
    }
}
