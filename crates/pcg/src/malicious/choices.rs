//! A value holder with false places.

use volery_channel::{Channel, Result, memory, run_two_channels, run_two_parties};
use volery_field::{Gf128, Ring};
use volery_ot::{CotReceiver, convert};
use volery_primitives::{Block, bits};

use super::{
    Ends, FEW, SESSION, Stage, channel, plan, rng, soak,
    stage::{Value, deal_ots},
};
use crate::{
    Noise, Plan, Trees,
    correlation::{Cot, VoleKind},
    cot_buffer,
    ggm::{Growth, TreePrgs},
    mpcot::{Cells, Layout},
    reproduction::send_trees,
    spcot::{self, Points},
    tree_batch::TreeBatch,
};

/// Uses some of its OTs for other places too.
struct Again<C> {
    inner: C,
    from: usize,
    to: usize,
    count: usize,
}

impl<C: CotReceiver> CotReceiver for Again<C> {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.inner.extend(u, w, channel)?;
        for i in 0..self.count {
            w[self.to + i] = w[self.from + i];
            let choice = bits::bit(u, self.from + i);
            bits::set(u, self.to + i, choice);
        }
        Ok(())
    }
}

/// The change of a value holder to its OTs: `count` rows from `from` on are also used at `to`.
trait Reuse: Stage {
    fn reuse(value: &mut Value<Self>, plan: &Plan, from: usize, to: usize, count: usize);
}

impl Reuse for Cot {
    fn reuse(value: &mut Value<Self>, plan: &Plan, from: usize, to: usize, count: usize) {
        let spare = &mut value.base[plan.step(0, 0).secret()..];
        spare.copy_within(from..from + count, to);
    }
}

impl<K: VoleKind + Stage> Reuse for K {
    fn reuse(value: &mut Value<Self>, _plan: &Plan, from: usize, to: usize, count: usize) {
        let source = value.ot.source();
        let empty: Self::ValueOt = Box::<cot_buffer::Receiver>::default();
        let inner = std::mem::replace(source, empty);
        *source = Box::new(Again { inner, from, to, count });
    }
}

/// One OT for two levels, and those of one tree for the next one.
#[test]
fn a_reused_choice() {
    fn check<K: Reuse>() {
        for trees in [Trees::Ggm, Trees::Half] {
            let plan = plan(K::KIND, trees, Noise::Regular, FEW);
            for (from, to, count) in [(0, 0, 0), (6, 7, 1), (4, 5, 1), (0, 6, 6)] {
                let (key, mut value) = K::deal(&plan, 1);
                K::reuse(&mut value, &plan, from, to, count);
                let (left, right) = memory::pair();
                let (((x, w, key), _), ((line, value), _)) = run_two_channels(
                    channel(left),
                    channel(right),
                    |channel| key.honest(&plan, &[FEW], channel),
                    |channel| value.run(&plan, &[FEW], channel),
                );
                let ends = Ends::<K> { x, w, key, line, value };
                if count == 0 {
                    ends.assert_right("honest");
                } else {
                    ends.assert_key_holder_aborts(0, &format!("{trees}, OT {from} for {to}"));
                }
            }
        }
    }
    of_each_kind!(check());
}

/// The key holder's trees are all complete where a round is checked.
#[test]
fn bins_become_complete_trees() {
    for key in 0..20 {
        let layout = Layout::cuckoo(3000, 60, 40, Block::from(key), Cells::Complete);
        for tree in 0..layout.batch().trees() {
            let size = layout.batch().leaves_of(tree).len();
            assert!(size.is_power_of_two() && size > 1);
            assert!(layout.point_of(tree, size - 1).is_none(), "a spare leaf");
        }
    }
}

/// The path to a leaf that a tree of five does not have, and its result: all leaves of the tree,
/// and with the sum that the key holder sends with them `delta`. So a checked round has complete
/// trees only; there, the same path leads to a leaf.
#[test]
fn a_leaf_that_is_not_there() {
    for (size, leaks) in [(5, true), (6, true), (8, false)] {
        let prgs = TreePrgs::growing(Growth::Ggm, SESSION, 0);
        let mut dealer = rng(70);
        let delta = dealer.block().with_lsb(true);
        // Leaf 7: right, right, right. So the left sums.
        let (q, t) = deal_ots(delta, [true; 3].into_iter(), &mut dealer);
        let (key_ot, value_ot) = Cot::buffered(delta, &q, &t);
        let batch = TreeBatch::regular(1, size);
        let (_, found) = run_two_parties(
            |channel| {
                let mut ot = convert::Sender::new(key_ot, SESSION);
                let (points, rng) = (Points::Chosen(&[]), &mut rng(71));
                let (beta, mut leaves) = ([Gf128::new(delta)], vec![Gf128::ZERO; size]);
                send_trees((&batch, &prgs), points, &beta, &mut leaves, rng, &mut ot, channel)
                    .expect("trees");
            },
            |channel| {
                let mut ot = convert::Receiver::new(value_ot, SESSION);
                let mut opened = vec![Block::ZERO; 3];
                let choices = spcot::choices(&TreeBatch::regular(1, 8), &[7]);
                assert!(choices == [0], "the left side each time");
                ot.chosen(&choices, &mut opened, channel).expect("OTs");
                let psi = Gf128::new(channel.recv_block().expect("a sum"));
                // The left half is below the first sum; of the right half, the left node on level 2
                // is known.
                let prg = prgs.tree(0);
                let [a, b] = prg.children(opened[0]);
                let c = opened[1] ^ a;
                let mut leaves = [a, b, c].map(|node| prg.leaf_pair::<Gf128>(node)).concat();
                leaves.truncate(size);
                if size > 6 {
                    // A fourth node is only reachable for one of its leaves.
                    let left = Gf128::new(opened[2]) - leaves[0] - leaves[2] - leaves[4];
                    leaves.push(left);
                }
                Gf128::sum(&leaves) - psi
            },
        );
        assert_eq!(found == Gf128::new(delta), leaks, "{size} leaves");
    }
}

/// A complete tree has no leaf except those that the value holder may choose. The spare ones of a
/// bin are among them: a value holder that chooses one has less noise, and learns nothing.
#[test]
fn any_leaf_of_a_complete_tree_may_be_chosen() {
    fn check<K: Stage>(trees: Trees, alphas: &[usize], layout: &Layout) {
        let party = |has_key, channel: &mut Channel| {
            let mut rng = rng(60 + u128::from(has_key));
            soak::round::<K>(has_key, (layout, trees), Some(alphas), 0, &mut rng, channel)
                .expect("an honest run succeeds");
        };
        run_two_parties(|channel| party(true, channel), |channel| party(false, channel));
    }
    let layout = Layout::cuckoo(50, 3, 40, Block::from(6), Cells::Complete);
    let batch = layout.batch();
    let sizes: Vec<_> = (0..batch.trees()).map(|tree| batch.leaves_of(tree).len()).collect();
    let spare = |tree: usize| (0..sizes[tree]).find(|leaf| layout.point_of(tree, *leaf).is_none());
    let first: Vec<_> = (0..sizes.len()).map(|tree| spare(tree).expect("a spare leaf")).collect();
    let last: Vec<_> = sizes.iter().map(|size| size - 1).collect();
    for alphas in [first, last] {
        for trees in [Trees::Ggm, Trees::Half] {
            of_each_kind!(check(trees, &alphas, &layout));
        }
    }
}
