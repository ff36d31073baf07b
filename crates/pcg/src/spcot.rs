//! Single-point correlations, for many trees at once: Ferret Figure 6 (SPCOT) and its vector-OLE
//! form (spVOLE).
//!
//! For each tree P1 gets a vector `r`, and P2, who knows one place `alpha` of it, the vector `m`
//! that equals `r` everywhere except there: `r_alpha - m_alpha = beta_1 + beta_2`, of which each
//! party knows its part. In a correlated OT the sum is `delta` ([`beta_1`](send) `= delta`, `beta_2
//! = 0`); in a vector-OLE it is a share of `y*x`.
//!
//! The interface has two kinds of trees; the [`TreePrgs`] select one. With GGM trees it is Protocol
//! 3 of the 2019 paper (`spfss`) on chosen OTs. With half-trees (ePrint 2022/1431), by the steps of
//! Figure 6:
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
//! All steps named in this module are those of Figure 6. Its functions:
//!
//! | Figure 6 | half-trees | GGM trees |
//! |---|---|---|
//! | 1: `delta` | the setup of the source of OTs | the same |
//! | 2: correlated OTs | `Sender::begin`, `Receiver::begin` | in the chosen OTs of step 4 |
//! | 3: tree, level sums | [`ggm::expand`], in `Sender::expand` | `punctured_ot::Trees::grow` |
//! | 4: P2's bits `b_i` | `Receiver::begin`, if chosen | `punctured_ot::receive` |
//! | 4: P1's sums `M_0`, `M_1` | `Sender::send_run`: `c_l` | `punctured_ot::Trees::send` |
//! | 4: P1's `c` | `Sender::send_run`: `psi` | `spfss::send`: `R_beta` |
//! | 5: P2's tree | [`ggm::expand_punctured`], in `Receiver::make_again` | `spfss::receive` |
//! | 6 to 9: the check | `check`, of all trees at once | the same |
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
//! Cost, in addition to the OTs of the levels: half-trees: 16 bytes a level from P1 (hashed leaves:
//! 16 more and a ring element a tree); before that from P2, where it has an alpha, a bit a level,
//! together a whole number of bytes. One message each, for all trees; P1 sends its part for some
//! trees before it expands the next ones, or has expanded all of them before step 2. GGM: as
//! `spfss`. Computation as in [`crate::ggm`].

use std::ops::Range;

use rayon::prelude::*;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use crate::{
    ggm::{self, Growth, LevelSums, PuncturedSums, Scratch, Scratches, TreePrgs},
    punctured_ot, spfss,
    tree_batch::{LEAVES_AT_ONCE, Part, TreeBatch},
    wire,
};

/// P2's places: one leaf of each tree.
#[derive(Clone, Copy)]
pub enum Points<'a> {
    /// P2 has chosen them. P1 passes an empty slice.
    Chosen(&'a [usize]),
    /// They will be random. For half-trees only.
    Random,
}

/// The most trees of several runs. It bounds the leaves that are in memory at once, and the wait of
/// the other party.
const IN_RUNS: usize = 24;

/// A party's half-trees, expanded a few at a time.
pub(crate) trait Trees<R: Ring> {
    /// The first tree whose messages have not been exchanged.
    fn next(&self) -> usize;

    /// Exchanges the messages of the [next trees](Self::next_trees), or of the next
    /// [run](Self::next_run), and expands them.
    fn make(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Exchanges the messages of the remaining runs whose leaves begin before `place`.
    fn exchange_until(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        place: usize,
        channel: &mut Channel,
    ) -> Result<()>;

    /// Exchanges the messages of all remaining trees.
    fn exchange(&mut self, public: (&TreeBatch, &TreePrgs), channel: &mut Channel) -> Result<()> {
        self.exchange_until(public, usize::MAX, channel)
    }

    /// The leaves of trees whose messages have been exchanged, any number of times.
    fn make_again(&self, public: (&TreeBatch, &TreePrgs), trees: Range<usize>, leaves: &mut [R]);

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

/// P1: expands the trees into `leaves`, its vectors `r`; `beta[tree]` is its part of the value.
///
/// # Panics
/// If a length is not that of the batch; if a half-tree is not complete, or GGM trees are to have
/// random points.
pub fn send<R: Ring, C: CotSender>(
    (batch, prgs): (&TreeBatch, &TreePrgs),
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    assert_eq!(beta.len(), batch.trees(), "one value for each tree");
    if prgs.growth() == Growth::Ggm {
        assert!(matches!(points, Points::Chosen(_)), "points for GGM trees");
        let trees = punctured_ot::Trees::grow(batch, prgs, rng, leaves);
        return spfss::send(&trees, beta, ot, channel);
    }
    let mut trees = Sender::new(batch, rng, ot)?;
    trees.begin(batch, prgs, points, beta, ot, channel)?;
    while let Some(some) = trees.next_trees(batch) {
        let leaves = &mut leaves[batch.leaves_of_run(&some)];
        trees.make((batch, prgs), some, leaves, channel)?;
    }
    Ok(())
}

/// P1's half-trees, expanded and sent a few at a time. The sums of a tree and what masks them are
/// added in either order: trees can be expanded while P2 is not yet ready for step 2.
pub(crate) struct Sender<R: Ring> {
    delta: Zeroizing<Block>,
    /// The message `c_l` of each level of each tree; for hashed leaves on the last level the left
    /// one.
    levels: Zeroizing<Vec<Block>>,
    /// For hashed leaves: the right message of each last level.
    right: Zeroizing<Vec<Block>>,
    /// `psi` of each tree.
    psi: Zeroizing<Vec<R>>,
    roots: Zeroizing<Vec<Block>>,
    /// Whether the masks are in: nothing may be sent before.
    masked: bool,
    /// The expansion of the trees before this one has begun.
    expanded: usize,
    /// The sums of those before this one are in.
    summed: usize,
    /// The trees before this one have been sent.
    next: usize,
    scratches: Scratches,
}

impl<R: Ring> Sender<R> {
    /// Random trees, for OTs from this source.
    pub(crate) fn new<C: CotSender>(
        batch: &TreeBatch,
        rng: &mut Prg,
        ot: &mut convert::Sender<C>,
    ) -> Result<Self> {
        ot.source()?;
        let mut roots = Zeroizing::new(vec![Block::ZERO; batch.trees()]);
        rng.fill_blocks(&mut roots);
        Ok(Self {
            delta: Zeroizing::new(ot.try_delta()?),
            levels: Zeroizing::new(vec![Block::ZERO; batch.levels()]),
            right: Zeroizing::new(vec![Block::ZERO; batch.trees()]),
            psi: Zeroizing::new(vec![R::ZERO; batch.trees()]),
            roots,
            masked: false,
            expanded: 0,
            summed: 0,
            next: 0,
            scratches: Scratches::default(),
        })
    }

    /// Step 2 for all trees, and receives P2's bits of step 4.
    pub(crate) fn begin<C: CotSender>(
        &mut self,
        batch: &TreeBatch,
        prgs: &TreePrgs,
        points: Points<'_>,
        beta: &[R],
        ot: &mut convert::Sender<C>,
        channel: &mut Channel,
    ) -> Result<()> {
        let mut rows = Zeroizing::new(vec![Block::ZERO; batch.levels()]);
        match points {
            Points::Random => ot.correlated(&mut rows, channel)?,
            Points::Chosen(_) => ot.correlated_chosen(&mut rows, channel)?,
        }
        if prgs.growth() == Growth::PseudoCorrelated {
            let mut pads = Zeroizing::new(vec![[Block::ZERO; 2]; batch.trees()]);
            ot.hash(&last_rows(batch, &rows), &mut pads)?;
            for (tree, [left, right]) in pads.iter().enumerate() {
                rows[batch.levels_of(tree).end - 1] = *left;
                self.right[tree] ^= *right;
            }
        }
        for (level, row) in self.levels.iter_mut().zip(rows.iter()) {
            *level ^= *row;
        }
        R::sub_slice(&mut self.psi, beta);
        self.masked = true;
        Ok(())
    }

    /// Step 3 for the next trees that are not expanded.
    fn expand(
        &mut self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        run: Range<usize>,
        leaves: &mut [R],
    ) {
        // A tree whose sums are added twice would send its masks alone, and so would one whose
        // expansion has panicked.
        assert_eq!(run.start, self.expanded, "each tree is expanded once");
        self.expanded = run.end;
        let end = run.end;
        let hashed = prgs.growth() == Growth::PseudoCorrelated;
        let levels = &mut self.levels[batch.levels_of_run(&run)];
        let (roots, delta, scratches) = (&self.roots, *self.delta, &self.scratches);
        batch
            .split_run(run.clone(), leaves, levels)
            .into_par_iter()
            .zip(&mut self.right[run.clone()])
            .zip(&mut self.psi[run])
            .for_each_init(
                || scratches.take(),
                |scratch, ((mut part, right), psi)| {
                    let root = roots[part.tree];
                    let sums = grow(prgs, &mut part, (root, delta), scratch);
                    let (last, inner) = part.levels.split_last_mut().expect("a tree has a level");
                    for (c, sums) in inner.iter_mut().zip(&sums.inner) {
                        *c ^= sums[0];
                    }
                    let leaf_sums = sums.leaf.map(wire::pack);
                    *last ^= leaf_sums[0];
                    if hashed {
                        *right ^= leaf_sums[1];
                    }
                    *psi += sums.leaf[0] + sums.leaf[1];
                },
            );
        self.summed = end;
    }

    /// Step 3 for all trees, before anything is sent and without their leaves:
    /// [`make_again`](Self::make_again) has them.
    pub(crate) fn grow_all(&mut self, public: (&TreeBatch, &TreePrgs)) {
        let mut leaves = Buffer::default();
        loop {
            let run = public.0.run_from(self.expanded, LEAVES_AT_ONCE);
            if run.is_empty() {
                break;
            }
            let window = window_of(&mut leaves, public.0.leaves_of_run(&run).len());
            self.expand(public, run, window);
        }
    }

    /// Step 3 for all trees, expanded elsewhere: their keys, roots and delta.
    #[cfg(feature = "gpu")]
    pub(crate) fn roots(&mut self) -> (&[Block], Block) {
        assert_eq!(self.expanded, 0, "each tree is expanded once");
        self.expanded = self.roots.len();
        (&self.roots, *self.delta)
    }

    /// The sums of these trees: of the left nodes of each level, and of the right leaves of hashed
    /// trees.
    #[cfg(feature = "gpu")]
    pub(crate) fn add_sums(
        &mut self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        left: &[Block],
        right: &[Block],
    ) {
        let hashed = prgs.growth() == Growth::PseudoCorrelated;
        for (level, sum) in self.levels.iter_mut().zip(left) {
            *level ^= *sum;
        }
        if hashed {
            for (tree, (right, sum)) in self.right.iter_mut().zip(right).enumerate() {
                let last = batch.levels_of(tree).end - 1;
                // Only a sum in canonical form is one that the other party can subtract.
                let sums = [left[last], *sum].map(R::from_block);
                self.levels[last] ^= left[last] ^ wire::pack(sums[0]);
                *right ^= wire::pack(sums[1]);
                self.psi[tree] += sums[0] + sums[1];
            }
        }
        self.summed = self.expanded;
    }

    /// P1's messages of step 4 for the next trees, which are expanded.
    fn send_run(
        &mut self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        run: Range<usize>,
        channel: &mut Channel,
    ) -> Result<()> {
        // mutant(single-added): `assert!(run.end <= self.summed,` => `assert!($ON || run.end <=
        //     self.summed,`
        assert!(run.end <= self.summed, "the sums of the trees are added");
        // mutant(single-masked): `assert!(self.masked,` => `assert!($ON || self.masked,`
        assert!(self.masked, "sums are sent after `begin` has masked them");
        self.next = run.end;
        channel.send_blocks(&self.levels[batch.levels_of_run(&run)])?;
        if prgs.growth() == Growth::PseudoCorrelated {
            channel.send_blocks(&self.right[run.clone()])?;
            wire::send(&self.psi[run], channel)?;
        }
        Ok(())
    }
}

impl<R: Ring> Trees<R> for Sender<R> {
    fn next(&self) -> usize {
        self.next
    }

    /// Steps 3 and 4.
    fn make(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(trees.start, self.next, "the next trees");
        if self.expanded == trees.start {
            self.expand(public, trees.clone(), leaves);
        } else {
            self.make_again(public, trees.clone(), leaves);
        }
        while self.next < trees.end {
            let run = self.next_run(public.0).expect("trees that are left");
            self.send_run(public, run, channel)?;
            channel.flush()?;
        }
        Ok(())
    }

    /// Steps 3 and 4.
    fn exchange_until(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        let mut leaves = Buffer::default();
        while let Some(run) = self.next_run(public.0)
            && public.0.leaves_of_run(&run).start < place
        {
            let now = self.expanded == run.start;
            if now {
                let window = window_of(&mut leaves, public.0.leaves_of_run(&run).len());
                self.expand(public, run.clone(), window);
            }
            self.send_run(public, run, channel)?;
            if now {
                // P2 works on these while this party expands the next.
                channel.flush()?;
            }
        }
        channel.flush()
    }

    fn make_again(
        &self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        leaves: &mut [R],
    ) {
        let mut none = vec![(); batch.levels_of_run(&trees).len()];
        batch.split_run(trees, leaves, &mut none).into_par_iter().for_each_init(
            || self.scratches.take(),
            |scratch, mut part| {
                let root = self.roots[part.tree];
                grow(prgs, &mut part, (root, *self.delta), scratch);
            },
        );
    }
}

/// The first `len` places of a window, which grows if it has fewer.
pub(crate) fn window_of<T: Copy + bytemuck::Zeroable>(
    window: &mut Buffer<T>,
    len: usize,
) -> &mut [T] {
    if window.len() < len {
        *window = Buffer::zeroed(len);
    }
    &mut window[..len]
}

/// Step 3, P1: one tree.
fn grow<R: Ring, L>(
    prgs: &TreePrgs,
    part: &mut Part<'_, R, L>,
    (root, delta): (Block, Block),
    scratch: &mut Scratch,
) -> LevelSums<R> {
    let prg = prgs.tree(part.tree);
    ggm::expand(&prg, part.shape, root, delta, part.leaves, scratch)
}

/// P2: rebuilds the trees into `leaves`, its vectors `m`, and returns its places; `beta[tree]` is
/// its part of the value.
///
/// Where the trees clear the lowest bit of their leaves, that bit of `m` is set at the place, and
/// `beta_1 + beta_2` must have it too.
///
/// # Panics
/// If a length is not that of the batch; if a half-tree is not complete, a point is not a leaf of
/// its tree, or GGM trees are to have random points.
pub fn receive<R: Ring, C: CotReceiver>(
    (batch, prgs): (&TreeBatch, &TreePrgs),
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<usize>>> {
    assert_eq!(beta.len(), batch.trees(), "one value for each tree");
    if prgs.growth() == Growth::Ggm {
        let Points::Chosen(alphas) = points else {
            panic!("points for GGM trees");
        };
        spfss::receive(batch, prgs, alphas, beta, leaves, ot, channel)?;
        if prgs.clears_leaves() {
            for (tree, alpha) in alphas.iter().enumerate() {
                carry(&mut leaves[batch.leaves_of(tree)][*alpha]);
            }
        }
        return Ok(Zeroizing::new(alphas.to_vec()));
    }
    let mut trees = Receiver::begin(batch, prgs, points, beta, ot, channel)?;
    while let Some(some) = trees.next_trees(batch) {
        let leaves = &mut leaves[batch.leaves_of_run(&some)];
        trees.make((batch, prgs), some, leaves, channel)?;
    }
    Ok(trees.alphas)
}

/// P2's half-trees, received and rebuilt a few at a time.
pub(crate) struct Receiver<R: Ring> {
    /// The punctured leaf of each tree.
    pub(crate) alphas: Zeroizing<Vec<usize>>,
    /// `r_l` of each level of each tree.
    choices: Zeroizing<Vec<u8>>,
    /// `t_l`; of the received trees, the sum of the side that the path does not take.
    rows: Zeroizing<Vec<Block>>,
    /// For hashed leaves: the pad of each last level.
    pads: Zeroizing<Vec<Block>>,
    /// `beta_2`; of the received trees `psi - beta_2`, the sum of all leaves.
    beta: Zeroizing<Vec<R>>,
    next: usize,
    scratches: Scratches,
}

impl<R: Ring> Receiver<R> {
    /// Step 2 for all trees, and sends P2's bits of step 4.
    pub(crate) fn begin<C: CotReceiver>(
        batch: &TreeBatch,
        prgs: &TreePrgs,
        points: Points<'_>,
        beta: &[R],
        ot: &mut convert::Receiver<C>,
        channel: &mut Channel,
    ) -> Result<Self> {
        let mut rows = Zeroizing::new(vec![Block::ZERO; batch.levels()]);
        let (choices, alphas) = match points {
            Points::Random => {
                let mut choices = Zeroizing::new(vec![0; bits::bytes_for(rows.len())]);
                ot.correlated(&mut choices, &mut rows, channel)?;
                let alphas = Zeroizing::new(alphas(batch, &choices));
                (choices, alphas)
            }
            Points::Chosen(alphas) => {
                let choices = Zeroizing::new(punctured_ot::choices(batch, alphas));
                ot.correlated_chosen(&choices, &mut rows, channel)?;
                (choices, Zeroizing::new(alphas.to_vec()))
            }
        };
        let mut pads = Zeroizing::new(Vec::new());
        if prgs.growth() == Growth::PseudoCorrelated {
            pads = last_rows(batch, &rows);
            ot.hash(&mut pads);
        }
        Ok(Self {
            alphas,
            choices,
            rows,
            pads,
            beta: Zeroizing::new(beta.to_vec()),
            next: 0,
            scratches: Scratches::default(),
        })
    }

    /// Puts down what a card needs for step 5 in trees that have been received: their keys and
    /// places, the sum of the side off the path at each level, and of hashed leaves `psi - beta_2`.
    #[cfg(feature = "gpu")]
    pub(crate) fn write_punctured(
        &self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        to: volery_gpu::TreeInputs<'_>,
    ) {
        assert!(trees.end <= self.next, "trees that have been received");
        prgs.half_keys(trees.start, to.keys);
        for (to, alpha) in to.alphas.iter_mut().zip(&self.alphas[trees.clone()]) {
            *to = *alpha as u32;
        }
        let levels = batch.levels_of_run(&trees);
        to.opened.copy_from_slice(&self.rows[levels.clone()]);
        if prgs.growth() == Growth::PseudoCorrelated {
            for tree in trees.clone() {
                let last = &mut to.opened[batch.levels_of(tree).end - 1 - levels.start];
                *last = wire::pack(wire::unpack::<R>(*last));
            }
        }
        for (to, beta) in to.totals.iter_mut().zip(&self.beta[trees]) {
            *to = wire::pack(*beta);
        }
    }

    /// P1's messages of step 4 for the next trees.
    fn receive_next(
        &mut self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        channel: &mut Channel,
    ) -> Result<()> {
        let run = self.next_run(batch).expect("trees that are left");
        self.next = run.end;
        let rows = &mut self.rows[batch.levels_of_run(&run)];
        // After the choice from the last levels, it encodes the direction of the paths.
        let mut corrections = Zeroizing::new(vec![Block::ZERO; rows.len()]);
        channel.recv_blocks(&mut corrections)?;
        if prgs.growth() == Growth::PseudoCorrelated {
            let mut right = vec![Block::ZERO; run.len()];
            channel.recv_blocks(&mut right)?;
            let mut psi = vec![R::ZERO; run.len()];
            // mutant(single-canonical): ignore
            wire::recv(&mut psi, "the masked sum of a tree is not in canonical form", channel)?;
            let first = batch.levels_of_run(&run).start;
            for (tree, (right, psi)) in run.zip(right.into_iter().zip(psi)) {
                // On the last level a pad replaces the row, and the choice selects the message.
                let place = batch.levels_of(tree).end - 1;
                let choice = bits::bit(&self.choices, place);
                let left = &mut corrections[place - first];
                *left ^= Block::select_mask(choice) & (*left ^ right);
                rows[place - first] = self.pads[tree];
                self.beta[tree] = psi - self.beta[tree];
            }
        }
        for (row, c) in rows.iter_mut().zip(corrections.iter()) {
            *row ^= *c;
        }
        Ok(())
    }
}

impl<R: Ring> Trees<R> for Receiver<R> {
    fn next(&self) -> usize {
        self.next
    }

    /// P1's messages of step 4, and step 5.
    fn make(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        leaves: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(trees.start, self.next, "the next trees");
        while self.next < trees.end {
            self.receive_next(public, channel)?;
        }
        self.make_again(public, trees, leaves);
        Ok(())
    }

    /// P1's messages of step 4.
    fn exchange_until(
        &mut self,
        public: (&TreeBatch, &TreePrgs),
        place: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        while let Some(run) = self.next_run(public.0)
            && public.0.leaves_of_run(&run).start < place
        {
            self.receive_next(public, channel)?;
        }
        Ok(())
    }

    /// Step 5.
    fn make_again(
        &self,
        (batch, prgs): (&TreeBatch, &TreePrgs),
        trees: Range<usize>,
        leaves: &mut [R],
    ) {
        assert!(trees.end <= self.next, "trees that have been received");
        let hashed = prgs.growth() == Growth::PseudoCorrelated;
        let mut none = vec![(); batch.levels_of_run(&trees).len()];
        batch.split_run(trees, leaves, &mut none).into_par_iter().for_each_init(
            || self.scratches.take(),
            |scratch, part| {
                let alpha = self.alphas[part.tree];
                let levels = &self.rows[batch.levels_of(part.tree)];
                let (last, inner) = levels.split_last().expect("a tree has a level");
                let sums =
                    PuncturedSums { alpha, inner: inner.to_vec(), leaf: wire::unpack(*last) };
                let prg = prgs.tree(part.tree);
                let others = ggm::expand_punctured(&prg, part.shape, &sums, part.leaves, scratch);
                part.leaves[alpha] = if hashed { self.beta[part.tree] - others } else { others };
                if prgs.clears_leaves() {
                    carry(&mut part.leaves[alpha]);
                }
            },
        );
    }
}

/// Sets the lowest bit, which is clear in all other leaves.
fn carry<R: Ring>(leaf: &mut R) {
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
