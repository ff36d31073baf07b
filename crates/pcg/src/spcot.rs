//! Single-point correlations, for many trees at once: Ferret Figure 6 (SPCOT) and its vector-OLE
//! form (spVOLE).
//!
//! For each tree P1 gets a vector `r`, and P2, who knows one place `alpha` of it, the vector `m`
//! that equals `r` everywhere except there: `r_alpha - m_alpha = beta_1 + beta_2`, of which each
//! party knows its part. In a correlated OT the sum is `delta` ([`beta_1`](send) `= delta`, `beta_2
//! = 0`); in a vector-OLE it is a share of `y*x`.
//!
//! The trees are half-trees (ePrint 2022/1431). By the steps of Figure 6:
//!
//! ```text
//! P1: delta                               P2: alpha, or none: then it is random
//! 2. ---- one correlated OT for each level: P1 gets q_l, P2 r_l and t_l = q_l + r_l*delta ----
//! 4.       <---- r_l + alpha_l + 1 ----   where P2 has an alpha: makes r_l = 1 + alpha_l.
//!                                         Otherwise alpha_l = 1 + r_l
//! 3. the tree; its level sums K_l0, K_l1 = K_l0 + delta
//! 4.      ---- c_l = q_l + K_l0 ---->
//! Hashed leaves: instead of the last c_h
//!         ---- h(q_h) + K_h0, h(q_h + delta) + K_h1, psi = sum r_j - beta_1 ---->
//! 5.                                      t_l + c_l: the sum of the side off the path
//! Correlated leaves:                      m_j = r_j, m_alpha = sum of the others = r_alpha + delta
//! Hashed leaves:                          m_j = r_j, and m_alpha = psi - beta_2 - (the others)
//! ```
//!
//! Each phase of a party is a value, and the next phase takes it: no sum can leave P1 without its
//! mask, no mask without its sum, and no tree can be rebuilt before its sums have come.
//!
//! | Figure 6 | P1 | P2 |
//! |---|---|---|
//! | 1: `delta` | the setup of the source of OTs | |
//! | 2: correlated OTs; 4: P2's bits `b_i` | `Masks::begin` | `Opener::begin` |
//! | 3: the tree, its level sums | `Roots` to `Sums` | |
//! | 4: `M_0`, `M_1` are one `c_l`; `c` is `psi` | `Masks` and `Sums` to `Messages` | `Opener` to `Opened` |
//! | 5: P2's tree | | `Opened` to leaves |
//! | 6 to 9: the check | `check`, of all trees at once | the same |
//!
//! Steps 3 to 5 are done for some trees at a time (`Exchange`), or step 3 for all trees first.
//!
//! `h` is the tweakable hash of [`convert`]; `psi` and the last-level sums are in the ring.
//! Correlated leaves must have `delta = beta_1`: the OTs of the trees have the correlation of the
//! output.
//!
//! Security: a malicious P2 can only choose another alpha, which must be a leaf: half-trees are
//! complete, so no other choice exists. A malicious P1 can send wrong sums: then its `r` and P2's
//! `m` do not agree, which `check` catches unless P1 guessed which half the path takes
//! (the selective failure of Fig. 3). P2 takes any block for a sum. P2's places index its own
//! memory, its leaves; nothing else depends on them.
//!
//! Cost, in addition to the OTs of the levels: 16 bytes a level from P1 (hashed leaves: 16 more and
//! a ring element a tree); before that from P2, where it has an alpha, a bit a level, together a
//! whole number of bytes. One message each, for all trees; P1 sends its part for some trees before
//! it expands the next ones, or has expanded all of them before step 2. Computation as in
//! [`crate::ggm`].

use std::ops::Range;

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use crate::{
    ggm::{self, Growth, LevelSums, PuncturedSums, Scratch, Scratches, TreePrgs},
    tree_batch::{LEAVES_AT_ONCE, Part, TreeBatch, window_of},
    wire,
};

/// The public side of many trees: their shapes and their PRGs.
pub type Public<'a> = (&'a TreeBatch, &'a TreePrgs);

/// P2's places: one leaf of each tree.
#[derive(Clone, Copy)]
pub enum Points<'a> {
    /// P2 has chosen them. P1 passes an empty slice.
    Chosen(&'a [usize]),
    /// They will be random.
    Random,
}

/// P1: expands the trees into `leaves`, its vectors `r`; `beta[tree]` is its part of the value.
///
/// # Panics
/// If a length is not that of the batch, or a tree is no half-tree or not complete.
pub fn send<R: Ring, C: CotSender>(
    public: Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    let mut roots = Roots::new(public.0, rng, ot)?;
    let masks = Masks::begin(public, points, beta, ot, channel)?;
    masks.make_all(&mut roots, public, leaves, channel)
}

/// P2: rebuilds the trees into `leaves`, its vectors `m`, and returns its places; `beta[tree]` is
/// its part of the value.
///
/// Where the trees clear the lowest bit of their leaves, that bit of `m` is set at the place, and
/// `beta_1 + beta_2` must have it too.
///
/// # Panics
/// If a length is not that of the batch, a tree is no half-tree or not complete, or a point is not
/// a leaf of its tree.
pub fn receive<R: Ring, C: CotReceiver>(
    public: Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<usize>>> {
    let (mut opened, opener) = Opener::begin(public, points, beta, ot, channel)?;
    opener.make_all(&mut opened, public, leaves, channel)?;
    Ok(opened.alphas)
}

/// The most trees of several runs. It bounds the leaves that are in memory at once, and the wait of
/// the other party.
const IN_RUNS: usize = 24;

/// A party's side of the messages of step 4 that have not been exchanged, tree after tree.
pub(crate) trait Exchange<R: Ring>: Sized + Send {
    /// The party's trees: of P1 all, of P2 those whose messages have come.
    type Trees: Send;

    /// The leaves of some trees, any number of times.
    fn expand(trees: &Self::Trees, public: Public<'_>, some: Range<usize>, leaves: &mut [R]);

    /// The first tree whose messages have not been exchanged.
    fn next(&self) -> usize;

    /// Exchanges the messages of the [next trees](Self::next_trees), or of the next
    /// [run](Self::next_run), and expands them.
    fn make(
        &mut self,
        trees: &mut Self::Trees,
        public: Public<'_>,
        some: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Exchanges all remaining messages.
    fn finish(
        self,
        trees: &mut Self::Trees,
        public: Public<'_>,
        channel: &mut Channel,
    ) -> Result<()>;

    /// Exchanges the messages of all trees, and expands them.
    fn make_all(
        mut self,
        trees: &mut Self::Trees,
        public: Public<'_>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        while let Some(some) = self.next_trees(public.0) {
            let leaves = &mut leaves[public.0.leaves_of_run(&some)];
            self.make(trees, public, some, leaves, channel)?;
        }
        Ok(())
    }

    /// The next trees; `None` if all are done.
    fn next_run(&self, batch: &TreeBatch) -> Option<Range<usize>> {
        let run = batch.run_from(self.next(), LEAVES_AT_ONCE);
        (!run.is_empty()).then_some(run)
    }

    /// The trees of whole runs: of one for one thread, of several if these occupy more threads;
    /// `None` if all are done.
    fn next_trees(&self, batch: &TreeBatch) -> Option<Range<usize>> {
        let trees = match rayon::current_num_threads() {
            1 => 1,
            threads => IN_RUNS.min(2 * threads),
        };
        let (first, mut end) = (self.next(), self.next());
        while end < batch.trees().min(first + trees) {
            end = batch.run_from(end, LEAVES_AT_ONCE).end;
        }
        (first < end).then_some(first..end)
    }
}

/// P1's trees, which follow from their roots.
pub(crate) struct Roots {
    delta: Zeroizing<Block>,
    roots: Zeroizing<Vec<Block>>,
    scratches: Scratches,
}

impl Roots {
    /// Random trees, for OTs from this source.
    pub(crate) fn new<C: CotSender>(
        batch: &TreeBatch,
        rng: &mut Prg,
        ot: &mut convert::Sender<C>,
    ) -> Result<Self> {
        ot.source()?;
        let mut roots = Zeroizing::new(vec![Block::ZERO; batch.trees()]);
        rng.fill_blocks(&mut roots);
        let delta = Zeroizing::new(ot.try_delta()?);
        Ok(Self { delta, roots, scratches: Scratches::default() })
    }

    /// Step 3 for all trees, without their leaves.
    pub(crate) fn sums<R: Ring>(&self, public: Public<'_>) -> Sums<R> {
        let batch = public.0;
        let mut sums = Values::zero(batch, 0..batch.trees());
        let (mut leaves, mut next) = (Buffer::default(), 0);
        while next < batch.trees() {
            let run = batch.run_from(next, LEAVES_AT_ONCE);
            next = run.end;
            let window = window_of(&mut leaves, batch.leaves_of_run(&run).len());
            self.grow(public, run, window, &mut sums);
        }
        Sums(sums)
    }

    /// Step 3 for some trees.
    fn grow<R: Ring>(
        &self,
        public: Public<'_>,
        trees: Range<usize>,
        leaves: &mut [R],
        sums: &mut Values<R>,
    ) {
        let (levels, right, psi) = sums.of(public.0, &trees);
        let parts = public.0.split_run(trees, leaves, levels).into_par_iter();
        parts.zip(right).zip(psi).for_each_init(
            || self.scratches.take(),
            |scratch, ((mut part, right), psi)| {
                let sums = self.tree(public, &mut part, scratch);
                let (last, inner) = part.levels.split_last_mut().expect("a tree has a level");
                for (left, sums) in inner.iter_mut().zip(&sums.inner) {
                    *left = sums[0];
                }
                [*last, *right] = sums.leaf.map(wire::pack);
                *psi = sums.leaf[0] + sums.leaf[1];
            },
        );
    }

    /// Step 3 for one tree.
    fn tree<R: Ring, L>(
        &self,
        (_, prgs): Public<'_>,
        Part { tree, shape, leaves, .. }: &mut Part<'_, R, L>,
        scratch: &mut Scratch,
    ) -> LevelSums<R> {
        ggm::expand(&prgs.tree(*tree), *shape, self.roots[*tree], *self.delta, leaves, scratch)
    }

    /// The roots and `delta`, for trees that a card expands.
    #[cfg(feature = "gpu")]
    pub(crate) fn secrets(&self) -> (&[Block], Block) {
        (&self.roots, *self.delta)
    }
}

/// One value for each part of P1's messages about some trees.
struct Values<R: Ring> {
    /// The first of the trees.
    first: usize,
    /// For the `c_l` of each level of each tree; for hashed leaves on the last level the left one.
    levels: Zeroizing<Vec<Block>>,
    /// For hashed leaves: for the right message of each last level.
    right: Zeroizing<Vec<Block>>,
    /// For hashed leaves: for the `psi` of each tree.
    psi: Zeroizing<Vec<R>>,
}

impl<R: Ring> Values<R> {
    fn zero(batch: &TreeBatch, trees: Range<usize>) -> Self {
        Self {
            first: trees.start,
            levels: Zeroizing::new(vec![Block::ZERO; batch.levels_of_run(&trees).len()]),
            right: Zeroizing::new(vec![Block::ZERO; trees.len()]),
            psi: Zeroizing::new(vec![R::ZERO; trees.len()]),
        }
    }

    /// The levels, right messages and `psi` of some of the trees.
    fn of(
        &mut self,
        batch: &TreeBatch,
        trees: &Range<usize>,
    ) -> (&mut [Block], &mut [Block], &mut [R]) {
        let before = batch.levels_of_run(&(self.first..trees.start)).len();
        let levels = before..before + batch.levels_of_run(trees).len();
        let trees = trees.start - self.first..trees.end - self.first;
        (&mut self.levels[levels], &mut self.right[trees.clone()], &mut self.psi[trees])
    }
}

/// Step 3: the sums of some trees, `K_l0` and of the leaves `K_h0`, `K_h1` and all of them.
pub(crate) struct Sums<R: Ring>(Values<R>);

impl<R: Ring> Sums<R> {
    /// The sums of all trees, which a card has expanded: of the left nodes of each level, and of
    /// the right leaves of hashed trees.
    #[cfg(feature = "gpu")]
    pub(crate) fn new((batch, prgs): Public<'_>, left: &[Block], right: &[Block]) -> Self {
        let mut all = Values::zero(batch, 0..batch.trees());
        all.levels.copy_from_slice(left);
        if is_hashed(prgs) {
            for (tree, right) in right.iter().enumerate() {
                let last = &mut all.levels[batch.levels_of(tree).end - 1];
                // Only a sum in canonical form is one that the other party can subtract.
                let sums = [*last, *right].map(R::from_block);
                [*last, all.right[tree]] = sums.map(wire::pack);
                all.psi[tree] = sums[0] + sums[1];
            }
        }
        Self(all)
    }
}

/// P1 after step 2: what masks the sums of trees whose messages have not been sent.
pub(crate) struct Masks<R: Ring> {
    /// `q_l`, or on the last level of hashed trees `h(q_h)` and `h(q_h + delta)`; and `-beta_1`.
    values: Values<R>,
    next: usize,
    /// The sums, where step 3 has been done for all trees before.
    pub(crate) sums: Option<Sums<R>>,
}

impl<R: Ring> Masks<R> {
    /// Step 2 for all trees, and receives P2's bits of step 4.
    pub(crate) fn begin<C: CotSender>(
        (batch, prgs): Public<'_>,
        points: Points<'_>,
        beta: &[R],
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        assert_half_trees(prgs);
        assert_eq!(beta.len(), batch.trees(), "one value for each tree");
        let mut values = Values::zero(batch, 0..batch.trees());
        let rows = &mut values.levels;
        match points {
            Points::Random => ot.correlated(rows, channel)?,
            Points::Chosen(_) => ot.correlated_chosen(rows, channel)?,
        }
        if is_hashed(prgs) {
            let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; batch.trees()]);
            ot.hash(&last_rows(batch, rows), &mut pads)?;
            for (tree, pads) in pads.iter().enumerate() {
                [rows[batch.levels_of(tree).end - 1], values.right[tree]] = *pads;
            }
        }
        R::sub_slice(&mut values.psi, beta);
        Ok(Self { values, next: 0, sums: None })
    }

    /// The messages about all trees, of which these are the sums.
    pub(crate) fn mask(mut self, batch: &TreeBatch, sums: Sums<R>) -> Messages<R> {
        self.mask_next(batch, 0..batch.trees(), sums)
    }

    /// The messages about the next trees, of which these are the sums.
    fn mask_next(
        &mut self,
        batch: &TreeBatch,
        trees: Range<usize>,
        Sums(mut values): Sums<R>,
    ) -> Messages<R> {
        assert_eq!(trees.start, self.next, "a mask is used once");
        self.next = trees.end;
        let ((levels, right, psi), masks) =
            (values.of(batch, &trees), self.values.of(batch, &trees));
        levels.iter_mut().zip(masks.0).for_each(|(sum, mask)| *sum ^= *mask);
        right.iter_mut().zip(masks.1).for_each(|(sum, mask)| *sum ^= *mask);
        R::add_slice(psi, masks.2);
        Messages { values, trees }
    }
}

impl<R: Ring> Exchange<R> for Masks<R> {
    type Trees = Roots;

    /// Step 3.
    fn expand(roots: &Roots, public: Public<'_>, some: Range<usize>, leaves: &mut [R]) {
        let mut none = vec![(); public.0.levels_of_run(&some).len()];
        public.0.split_run(some, leaves, &mut none).into_par_iter().for_each_init(
            || roots.scratches.take(),
            |scratch, mut part| drop(roots.tree(public, &mut part, scratch)),
        );
    }

    fn next(&self) -> usize {
        self.next
    }

    /// Steps 3 and 4.
    fn make(
        &mut self,
        roots: &mut Roots,
        public: Public<'_>,
        some: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        let mut sums = Values::zero(public.0, some.clone());
        roots.grow(public, some.clone(), leaves, &mut sums);
        let mut messages = self.mask_next(public.0, some, Sums(sums));
        while !messages.trees.is_empty() {
            messages.send_run(public, channel)?;
            // P2 works on these while this party expands the next.
            channel.flush()?;
        }
        Ok(())
    }

    /// Steps 3 and 4.
    fn finish(
        mut self,
        roots: &mut Roots,
        public: Public<'_>,
        channel: &mut Channel,
    ) -> Result<()> {
        if let Some(sums) = self.sums.take() {
            return self.mask(public.0, sums).send_until(public, usize::MAX, channel);
        }
        let mut leaves = Buffer::default();
        while let Some(run) = self.next_run(public.0) {
            let window = window_of(&mut leaves, public.0.leaves_of_run(&run).len());
            self.make(roots, public, run, window, channel)?;
        }
        channel.flush()
    }
}

/// P1's messages of step 4 about some trees.
pub(crate) struct Messages<R: Ring> {
    values: Values<R>,
    /// The trees of which nothing has been sent.
    trees: Range<usize>,
}

impl<R: Ring> Messages<R> {
    /// Sends the messages of the remaining runs whose leaves begin before `place`.
    pub(crate) fn send_until(
        &mut self,
        public: Public<'_>,
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        while !self.trees.is_empty() && public.0.leaves_of(self.trees.start).start < place {
            self.send_run(public, channel)?;
        }
        channel.flush()
    }

    /// Sends those of the next run.
    fn send_run(&mut self, (batch, prgs): Public<'_>, channel: &mut Channel) -> Result<()> {
        let run = batch.run_from(self.trees.start, LEAVES_AT_ONCE);
        self.trees.start = run.end;
        let (levels, right, psi) = self.values.of(batch, &run);
        channel.send_blocks(levels)?;
        if is_hashed(prgs) {
            channel.send_blocks(right)?;
            wire::send(psi, channel)?;
        }
        Ok(())
    }
}

/// P2 after step 2: what opens the messages about trees that have not come.
pub(crate) struct Opener<R: Ring> {
    /// `r_l` of each level of each tree.
    choices: Zeroizing<Vec<u8>>,
    /// `t_l`, or on the last level of hashed trees `h(t_h)`.
    rows: Zeroizing<Vec<Block>>,
    /// `beta_2`.
    beta: Zeroizing<Vec<R>>,
    next: usize,
}

/// P2 after step 4: its trees, as far as the messages about them have come.
pub(crate) struct Opened<R: Ring> {
    /// The punctured leaf of each tree, also of those whose messages have not come.
    pub(crate) alphas: Zeroizing<Vec<usize>>,
    /// For each level the sum of the side that the path does not take.
    sums: Zeroizing<Vec<Block>>,
    /// For hashed leaves `psi - beta_2`, the sum of all leaves.
    totals: Zeroizing<Vec<R>>,
    scratches: Scratches,
}

/// P2 after step 2.
pub(crate) type Opening<R> = (Opened<R>, Opener<R>);

impl<R: Ring> Opener<R> {
    /// Step 2 for all trees, and sends P2's bits of step 4. Of the trees only the places are known.
    pub(crate) fn begin<C: CotReceiver>(
        (batch, prgs): Public<'_>,
        points: Points<'_>,
        beta: &[R],
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<Opening<R>> {
        assert_half_trees(prgs);
        assert_eq!(beta.len(), batch.trees(), "one value for each tree");
        let mut rows = Zeroizing::new(vec![Block::ZERO; batch.levels()]);
        let (choices, alphas) = match points {
            Points::Random => {
                let mut choices = Zeroizing::new(vec![0; bits::bytes_for(rows.len())]);
                ot.correlated(&mut choices, &mut rows, channel)?;
                let alphas = Zeroizing::new(alphas(batch, &choices));
                (choices, alphas)
            }
            Points::Chosen(alphas) => {
                let choices = Zeroizing::new(choices(batch, alphas));
                ot.correlated_chosen(&choices, &mut rows, channel)?;
                (choices, Zeroizing::new(alphas.to_vec()))
            }
        };
        if is_hashed(prgs) {
            let mut pads = last_rows(batch, &rows);
            ot.hash(&mut pads);
            for (tree, pad) in pads.iter().enumerate() {
                rows[batch.levels_of(tree).end - 1] = *pad;
            }
        }
        // With their final capacity: a list that grows leaves copies behind.
        let opened = Opened {
            alphas,
            sums: Zeroizing::new(Vec::with_capacity(batch.levels())),
            totals: Zeroizing::new(Vec::with_capacity(batch.trees())),
            scratches: Scratches::default(),
        };
        Ok((opened, Self { choices, rows, beta: Zeroizing::new(beta.to_vec()), next: 0 }))
    }

    /// P1's messages of step 4 for the remaining runs whose leaves begin before `place`.
    pub(crate) fn receive_until(
        &mut self,
        opened: &mut Opened<R>,
        public: Public<'_>,
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        while let Some(run) = self.next_run(public.0)
            && public.0.leaves_of_run(&run).start < place
        {
            self.receive_run(opened, public, run, channel)?;
        }
        Ok(())
    }

    /// P1's messages of step 4 for the next run.
    fn receive_run(
        &mut self,
        opened: &mut Opened<R>,
        (batch, prgs): Public<'_>,
        run: Range<usize>,
        channel: &mut Channel,
    ) -> Result<()> {
        self.next = run.end;
        let levels = batch.levels_of_run(&run);
        // After the choice from the last levels, it encodes the direction of the paths.
        let mut messages = Zeroizing::new(vec![Block::ZERO; levels.len()]);
        channel.recv_blocks(&mut messages)?;
        if is_hashed(prgs) {
            let mut right = vec![Block::ZERO; run.len()];
            channel.recv_blocks(&mut right)?;
            let mut psi = vec![R::ZERO; run.len()];
            // mutant(single-canonical): ignore
            wire::recv(&mut psi, "the masked sum of a tree is not in canonical form", channel)?;
            for (tree, (right, psi)) in run.zip(right.into_iter().zip(psi)) {
                let place = batch.levels_of(tree).end - 1;
                let left = &mut messages[place - levels.start];
                *left ^= Block::select_mask(bits::bit(&self.choices, place)) & (*left ^ right);
                opened.totals.push(psi - self.beta[tree]);
            }
        }
        opened.sums.extend(self.rows[levels].iter().zip(&messages[..]).map(|(t, c)| *t ^ *c));
        Ok(())
    }
}

impl<R: Ring> Exchange<R> for Opener<R> {
    type Trees = Opened<R>;

    /// Step 5.
    fn expand(opened: &Opened<R>, (batch, prgs): Public<'_>, some: Range<usize>, leaves: &mut [R]) {
        let mut none = vec![(); batch.levels_of_run(&some).len()];
        batch.split_run(some, leaves, &mut none).into_par_iter().for_each_init(
            || opened.scratches.take(),
            |scratch, part| {
                let alpha = opened.alphas[part.tree];
                let sums = &opened.sums[batch.levels_of(part.tree)];
                let (last, inner) = sums.split_last().expect("a tree has a level");
                let sums =
                    PuncturedSums { alpha, inner: inner.to_vec(), leaf: wire::unpack(*last) };
                let prg = prgs.tree(part.tree);
                let others = ggm::expand_punctured(&prg, part.shape, &sums, part.leaves, scratch);
                let hashed = is_hashed(prgs);
                part.leaves[alpha] =
                    if hashed { opened.totals[part.tree] - others } else { others };
                if prgs.clears_leaves() {
                    carry(&mut part.leaves[alpha]);
                }
            },
        );
    }

    fn next(&self) -> usize {
        self.next
    }

    /// P1's messages of step 4, and step 5.
    fn make(
        &mut self,
        opened: &mut Opened<R>,
        public: Public<'_>,
        some: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(some.start, self.next, "the next trees");
        self.receive_until(opened, public, public.0.leaves_of_run(&some).end, channel)?;
        Self::expand(opened, public, some, leaves);
        Ok(())
    }

    /// P1's messages of step 4.
    fn finish(
        mut self,
        opened: &mut Opened<R>,
        public: Public<'_>,
        channel: &mut Channel,
    ) -> Result<()> {
        self.receive_until(opened, public, usize::MAX, channel)
    }
}

impl<R: Ring> Opened<R> {
    /// Puts down what a card needs for step 5: of each tree its key and place, and all sums.
    #[cfg(feature = "gpu")]
    pub(crate) fn write(
        &self,
        (batch, prgs): Public<'_>,
        trees: Range<usize>,
        to: volery_gpu::TreeInputs<'_>,
    ) {
        prgs.half_keys(trees.start, to.keys);
        for (to, alpha) in to.alphas.iter_mut().zip(&self.alphas[trees.clone()]) {
            *to = *alpha as u32;
        }
        let levels = batch.levels_of_run(&trees);
        to.opened.copy_from_slice(&self.sums[levels.clone()]);
        to.totals.fill(Block::ZERO);
        if is_hashed(prgs) {
            for tree in trees.clone() {
                let last = &mut to.opened[batch.levels_of(tree).end - 1 - levels.start];
                *last = wire::pack(wire::unpack::<R>(*last));
            }
            for (to, total) in to.totals.iter_mut().zip(&self.totals[trees]) {
                *to = wire::pack(*total);
            }
        }
    }
}

fn assert_half_trees(prgs: &TreePrgs) {
    assert!(prgs.growth() != Growth::Ggm, "half-trees");
}

fn is_hashed(prgs: &TreePrgs) -> bool {
    prgs.growth() == Growth::PseudoCorrelated
}

/// Sets the lowest bit, which is clear in all other leaves.
pub(crate) fn carry<R: Ring>(leaf: &mut R) {
    *leaf = R::from_block(wire::pack(*leaf) | Block::ONE);
}

/// The rows of the last level of each tree.
fn last_rows(batch: &TreeBatch, rows: &[Block]) -> Zeroizing<Vec<Block>> {
    let last = |tree| rows[batch.levels_of(tree).end - 1];
    Zeroizing::new((0..batch.trees()).map(last).collect())
}

/// The places where P2 has no alpha: the path goes right where the choice bit is zero.
fn alphas(batch: &TreeBatch, choices: &[u8]) -> Vec<usize> {
    let alpha = |tree| {
        batch
            .levels_of(tree)
            .fold(0, |alpha, level| 2 * alpha + usize::from(!bits::bit(choices, level)))
    };
    (0..batch.trees()).map(alpha).collect()
}

/// The choices for the places `alphas`: of each level the side that the path does not take.
pub(crate) fn choices(batch: &TreeBatch, alphas: &[usize]) -> Vec<u8> {
    assert_eq!(alphas.len(), batch.trees(), "one alpha for each tree");
    let mut choices = vec![0; bits::bytes_for(batch.levels())];
    for (tree, alpha) in alphas.iter().enumerate() {
        let shape = batch.shape(tree);
        for (level, place) in (1..).zip(batch.levels_of(tree)) {
            bits::set(&mut choices, place, shape.path_bit(*alpha, level) == 0);
        }
    }
    choices
}
