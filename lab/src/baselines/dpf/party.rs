//! The computation of a party between two messages, for all its trees.

use rayon::prelude::*;
use volery_channel::{Channel, Result, SessionId};
use volery_field::Ring;
use volery_pcg::tree_batch::TreeBatch;
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use super::Input;
use super::select::{offer, take};
use super::tree::{LeafSums, Tree, TreeKeys};

/// The party.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// P0.
    First,
    /// P1.
    Second,
}

/// A party's result of step 0; one of each for each level of each tree, except the signs.
pub(super) struct Pads {
    /// Both messages of an OT that it offered.
    pub(super) offered: Zeroizing<Vec<[Block; 2]>>,
    /// Its choices, the bits of its share of the index.
    pub(super) choices: Zeroizing<Vec<u8>>,
    /// The messages that it chose.
    pub(super) taken: Zeroizing<Vec<Block>>,
    /// For the sign of each tree, the same.
    pub(super) offered_signs: Zeroizing<Vec<[Block; 2]>>,
    /// Random choices.
    pub(super) random: Zeroizing<Vec<u8>>,
    /// The messages that they chose.
    pub(super) taken_signs: Zeroizing<Vec<Block>>,
}

impl Pads {
    /// Room for all, and the choices for the given indices.
    pub(super) fn for_input(forest: &TreeBatch, alphas: &[usize]) -> Self {
        assert_eq!(alphas.len(), forest.trees(), "one index for each tree");
        let (levels, trees) = (forest.levels(), forest.trees());
        let mut choices = vec![0; bits::bytes_for(levels)];
        for (tree, alpha) in alphas.iter().enumerate() {
            let shape = forest.shape(tree);
            for (level, place) in (1..).zip(forest.levels_of(tree)) {
                bits::set(&mut choices, place, shape.path_bit(*alpha, level) == 1);
            }
        }
        Self {
            offered: Zeroizing::new(vec![[Block::ZERO; 2]; levels]),
            choices: Zeroizing::new(choices),
            taken: Zeroizing::new(vec![Block::ZERO; levels]),
            offered_signs: Zeroizing::new(vec![[Block::ZERO; 2]; trees]),
            random: Zeroizing::new(vec![0; bits::bytes_for(trees)]),
            taken_signs: Zeroizing::new(vec![Block::ZERO; trees]),
        }
    }
}

/// A party's shares of the corrections of one level.
pub(super) struct Opening {
    sigma: Vec<Block>,
    /// Two bits a tree.
    tau: Vec<u8>,
}

impl Opening {
    /// For this many trees.
    pub(super) fn window(trees: usize) -> Self {
        Self { sigma: vec![Block::ZERO; trees], tau: vec![0; bits::bytes_for(2 * trees)] }
    }

    pub(super) fn send(&self, channel: &mut Channel) -> Result<()> {
        channel.send_blocks(&self.sigma)?;
        channel.send(&self.tau)
    }

    pub(super) fn recv(&mut self, channel: &mut Channel) -> Result<()> {
        channel.recv_blocks(&mut self.sigma)?;
        channel.recv(&mut self.tau)
    }
}

pub(super) struct Party<'a, R: Ring> {
    which: Which,
    forest: &'a TreeBatch,
    betas: &'a [R],
    pads: Pads,
    trees: Vec<Tree<'a, R>>,
    sums: Vec<LeafSums<R>>,
    /// Its shares of the two values of step 6, then of steps 7 and 8: it opens them in step 9.
    pub(super) last: Zeroizing<Vec<[R; 2]>>,
}

impl<'a, R: Ring> Party<'a, R> {
    /// Random roots.
    pub(super) fn plant(
        forest: &'a TreeBatch,
        (session, batch): (SessionId, u64),
        input: Input<'a, R>,
        pads: Pads,
        mut leaves: &'a mut [R],
        rng: &mut Prg,
    ) -> Self {
        assert_eq!(input.betas.len(), forest.trees(), "one value for each tree");
        assert_eq!(leaves.len(), forest.leaves(), "one place for each leaf");
        let keys = TreeKeys::new(session, batch);
        let mut trees = Vec::with_capacity(forest.trees());
        for number in 0..forest.trees() {
            let (own, rest) = leaves.split_at_mut(forest.leaves_of(number).len());
            leaves = rest;
            let root = rng.block().with_lsb(input.which == Which::Second);
            trees.push(Tree::new(&keys, number, root, own));
        }
        Self {
            which: input.which,
            forest,
            betas: input.betas,
            pads,
            trees,
            sums: Vec::new(),
            last: Zeroizing::new(vec![[R::ZERO; 2]; forest.trees()]),
        }
    }

    /// Levels of the deepest tree.
    pub(super) fn levels(&self) -> u32 {
        let levels = self.trees.iter().map(|tree| tree.seed_levels() + 1);
        levels.max().unwrap_or(1)
    }

    /// The numbers of the trees that have this level of seeds.
    fn with_level(&self, level: u32) -> Vec<usize> {
        (0..self.trees.len()).filter(|tree| self.trees[*tree].seed_levels() >= level).collect()
    }

    /// Space for the other party's values of this level.
    pub(super) fn blocks(&self, level: u32) -> Vec<Block> {
        vec![Block::ZERO; self.with_level(level).len()]
    }

    /// The position of a level's OTs.
    fn place(&self, tree: usize, level: u32) -> usize {
        self.forest.levels_of(tree).start + level as usize - 1
    }

    /// The position of the OTs of the last bit of the index.
    fn last_place(&self, tree: usize) -> usize {
        self.forest.levels_of(tree).end - 1
    }

    /// Step 1.
    pub(super) fn grow(&mut self, level: u32) -> Zeroizing<Vec<[Block; 2]>> {
        let trees = self.trees.par_iter_mut();
        let sums = trees.filter(|tree| tree.seed_levels() >= level).map(|tree| tree.grow(level));
        Zeroizing::new(sums.collect())
    }

    /// Step 2.
    pub(super) fn offers(&self, level: u32, z: &[[Block; 2]]) -> Vec<Block> {
        let offer = |(tree, z): (usize, &[Block; 2])| {
            let [zero, one] = self.pads.offered[self.place(tree, level)];
            zero ^ one ^ z[0] ^ z[1]
        };
        self.with_level(level).into_iter().zip(z).map(offer).collect()
    }

    /// Step 3, with the other party's values.
    pub(super) fn opening(&self, level: u32, z: &[[Block; 2]], offered: &[Block]) -> Opening {
        let mut opening = Opening::window(z.len());
        let trees = self.with_level(level).into_iter().zip(z).zip(offered);
        for (i, ((tree, [left, right]), offered)) in trees.enumerate() {
            let place = self.place(tree, level);
            let bit = bits::bit(&self.pads.choices, place);
            // Its own product, and its shares of the two with the other's bit and the other's sum.
            let own = Block::select_mask(bit) & (*left ^ *right ^ *offered);
            opening.sigma[i] = *right ^ own ^ self.pads.offered[place][0] ^ self.pads.taken[place];
            let tau_left = left.lsb() ^ bit ^ (self.which == Which::First);
            bits::set(&mut opening.tau, 2 * i, tau_left);
            bits::set(&mut opening.tau, 2 * i + 1, right.lsb() ^ bit);
        }
        opening
    }

    /// Step 4.
    pub(super) fn correct(&mut self, level: u32, own: &Opening, theirs: &Opening) {
        for (i, tree) in self.with_level(level).into_iter().enumerate() {
            let sigma = own.sigma[i] ^ theirs.sigma[i];
            let tau = |side: usize| {
                [own, theirs]
                    .map(|opening| bits::bit(&opening.tau, 2 * i + side))
                    .into_iter()
                    .fold(false, |tau, bit| tau ^ bit)
            };
            self.trees[tree].set_correction([0, 1].map(|side| sigma.with_lsb(tau(side))));
        }
    }

    /// Step 5.
    pub(super) fn grow_leaves(&mut self) {
        let trees = self.trees.par_iter_mut();
        self.sums = trees.map(Tree::grow_leaves).collect();
    }

    /// Step 6, as the sender.
    pub(super) fn offer_values(&mut self) -> Vec<[R; 1]> {
        let offer = |tree: usize| {
            let place = self.last_place(tree);
            let bit = bits::bit(&self.pads.choices, place);
            offer(bit, [self.betas[tree]], self.pads.offered[place])
        };
        let (messages, shares): (Vec<_>, Vec<[R; 1]>) = (0..self.trees.len()).map(offer).unzip();
        for (last, [share]) in self.last.iter_mut().zip(shares) {
            last[1] += share;
        }
        messages
    }

    /// Step 6, as the receiver, and step 7.
    pub(super) fn differences(&mut self, offered: &[[R; 1]]) {
        for (tree, offered) in offered.iter().enumerate() {
            let place = self.last_place(tree);
            let bit = bits::bit(&self.pads.choices, place);
            let [share] = take(bit, self.pads.taken[place], *offered);
            let sides = self.sums[tree].sides;
            let last = &mut self.last[tree];
            last[1] += share;
            last[0] = self.betas[tree] - last[1];
            for (last, side) in last.iter_mut().zip(sides) {
                match self.which {
                    Which::First => *last -= side,
                    Which::Second => *last += side,
                }
            }
        }
    }

    /// Its share of `t`, which selects the negative sign.
    fn minus(&self, tree: usize) -> bool {
        let tagged = self.sums[tree].tagged;
        match self.which {
            Which::First => tagged & 2 == 2,
            Which::Second => (tagged & 2 == 2) ^ (tagged & 1 == 1),
        }
    }

    /// Step 8, as the receiver: the difference of the random choices from the wanted ones.
    pub(super) fn sign_choices(&self) -> Vec<u8> {
        let mut flips = vec![0; bits::bytes_for(self.trees.len())];
        for tree in 0..self.trees.len() {
            let flip = bits::bit(&self.pads.random, tree) ^ self.minus(tree);
            bits::set(&mut flips, tree, flip);
        }
        flips
    }

    /// Step 8, as the sender, with the other party's [`sign_choices`](Self::sign_choices).
    pub(super) fn offer_signs(&mut self, flips: &[u8]) -> Vec<[R; 2]> {
        (0..self.trees.len())
            .map(|tree| {
                let mut keys = self.pads.offered_signs[tree];
                if bits::bit(flips, tree) {
                    keys.swap(0, 1);
                }
                let value = self.last[tree];
                let (message, share): (_, [R; 2]) = offer(self.minus(tree), value, keys);
                for (last, share) in self.last[tree].iter_mut().zip(share) {
                    *last -= share + share;
                }
                message
            })
            .collect()
    }

    /// Step 8, as the receiver, after [`offer_signs`](Self::offer_signs).
    pub(super) fn take_signs(&mut self, offered: &[[R; 2]]) {
        for (tree, offered) in offered.iter().enumerate() {
            let key = self.pads.taken_signs[tree];
            let share: [R; 2] = take(self.minus(tree), key, *offered);
            for (last, share) in self.last[tree].iter_mut().zip(share) {
                *last -= share + share;
            }
        }
    }

    /// Step 9.
    pub(super) fn correct_leaves(&mut self, theirs: &[[R; 2]]) {
        let trees = self.trees.par_iter_mut();
        let corrections = self.last.par_iter().zip(theirs);
        trees.zip(corrections).for_each(|(tree, (own, theirs))| {
            tree.correct_leaves([own[0] + theirs[0], own[1] + theirs[1]]);
        });
    }
}

impl<R: Ring> Drop for Party<'_, R> {
    fn drop(&mut self) {
        for sums in &mut self.sums {
            sums.sides.zeroize();
            sums.tagged.zeroize();
        }
    }
}
