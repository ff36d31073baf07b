use volery_channel::SessionId;
use volery_field::{Fp61, Gf128, Z64};
use volery_primitives::prg::Prg;

use super::*;

fn prg() -> TreePrg {
    TreePrgs::new(SessionId::from_bytes([7; 32]), 3).tree(5)
}

fn half(growth: Growth) -> TreePrg {
    TreePrgs::growing(growth, SessionId::from_bytes([7; 32]), 3).tree(5)
}

/// The part of `sums` that P2 may know.
fn punctured<R: Ring>(shape: Shape, sums: &LevelSums<R>, alpha: usize) -> PuncturedSums<R> {
    let side = |level| 1 - shape.path_bit(alpha, level);
    PuncturedSums {
        alpha,
        inner: (1..shape.depth())
            .map(|level| sums.inner[level as usize - 1][side(level)])
            .collect(),
        leaf: sums.leaf[side(shape.depth())],
    }
}

/// Computed directly from the recursive definition in Protocol 2, step 2, and from Figs. 2 and 7 of
/// ePrint 2022/1431.
fn leaf_by_path<R: Ring>(prg: &TreePrg, shape: Shape, roots: [Block; 2], leaf: usize) -> R {
    let growth = prg.growth();
    if growth == Growth::Ggm {
        let mut seed = roots[0];
        for level in 1..shape.depth() {
            seed = prg.children(seed)[shape.path_bit(leaf, level)];
        }
        return prg.leaf_pair(seed)[leaf & 1];
    }
    let mut seed = roots[0];
    if shape.depth() > 1 || growth == Growth::Correlated {
        seed ^= Block::select_mask(shape.path_bit(leaf, 1) == 1) & roots[1];
    }
    for level in 2..shape.depth() {
        seed = prg.children(seed)[shape.path_bit(leaf, level)];
    }
    match growth {
        Growth::PseudoCorrelated => prg.leaf_pair(seed)[leaf & 1],
        _ if shape.depth() == 1 => R::from_block(seed),
        _ => R::from_block(prg.children(seed)[leaf & 1]),
    }
}

fn check<R: Ring>(n: usize) {
    check_tree::<R>(&prg(), n);
    if n.is_power_of_two() && n > 1 {
        check_tree::<R>(&half(Growth::PseudoCorrelated), n);
        if R::BITS == 128 {
            check_tree::<R>(&half(Growth::Correlated), n);
        }
    }
}

fn check_tree<R: Ring>(prg: &TreePrg, n: usize) {
    let shape = Shape::new(n);
    let mut scratch = Scratch::default();
    let mut random = Prg::new(Block::from(n as u128));
    let (root, delta) = (random.block(), random.block());
    let mut leaves = vec![R::ZERO; n];
    let sums = expand(prg, shape, root, delta, &mut leaves, &mut scratch);
    let growth = prg.growth();
    if growth != Growth::Ggm {
        for [left, right] in &sums.inner {
            assert!(*left ^ *right == delta, "a level adds up to delta");
        }
        let total = sums.leaf[0] + sums.leaf[1];
        assert_eq!(total == R::from_block(delta), growth == Growth::Correlated);
    }
    for (j, leaf) in leaves.iter().enumerate() {
        assert!(*leaf == leaf_by_path(prg, shape, [root, delta], j), "leaf {j} of {n}");
    }
    for alpha in [0, n / 3, n / 2, n - 1] {
        let mut rebuilt = vec![R::ONE; n];
        let sums = punctured(shape, &sums, alpha);
        let total = expand_punctured(prg, shape, &sums, &mut rebuilt, &mut scratch);
        let mut expected = leaves.clone();
        expected[alpha] = R::ZERO;
        assert!(rebuilt == expected, "all but {alpha} of {n}");
        assert!(total == R::sum(&expected), "the sum without {alpha} of {n}");
    }
}

#[test]
fn every_leaf_follows_its_path_and_all_but_one_are_rebuilt() {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 31, 32, 33, 255, 256, 257, 1009] {
        check::<Fp61>(n);
        check::<Z64>(n);
        check::<Gf128>(n);
    }
}

/// Trees expanded in subtrees: complete, with a last subtree of few leaves, and with missing
/// subtrees.
#[test]
fn so_it_is_in_trees_of_many_subtrees() {
    assert_eq!(Shape::new(1 << 16).depth(), deep::FROM);
    check::<Gf128>(1 << 16);
    check::<Z64>(1 << 17);
    for n in [(1 << 15) + 1, (1 << 16) - 1, 40_961] {
        check::<Fp61>(n);
    }
}

#[test]
fn widths_cover_the_leaves() {
    let shape = Shape::new(11);
    assert_eq!(shape.depth(), 4);
    assert_eq!((0..=4).map(|l| shape.width(l)).collect::<Vec<_>>(), [1, 2, 3, 6, 11]);
    assert_eq!(Shape::new(1).depth(), 1);
}

/// The simulator's view of Protocol 2 (Theorem A.2): P2's messages determine nothing about the
/// missing leaf.
///
/// The sums P2 may open are computed a second time from the nodes off the path alone, with fresh
/// random values in place of the path's: they must not change. With a sum over all children, for
/// example, the path's node is in each sum and this test fails.
#[test]
fn what_p2_is_sent_does_not_depend_on_the_path() {
    let (prg, shape) = (prg(), Shape::new(64));
    let mut random = Prg::new(Block::from(1234));
    for alpha in [0, 17, 42, 63] {
        let root = random.block();
        let mut leaves = vec![Fp61::ZERO; 64];
        let sums = expand(&prg, shape, root, Block::ZERO, &mut leaves, &mut Scratch::default());
        let view = punctured(shape, &sums, alpha);
        let mut level_nodes = vec![root];
        for level in 1..shape.depth() {
            level_nodes = level_nodes.iter().flat_map(|seed| prg.children(*seed)).collect();
            let path = alpha >> (shape.depth() - level);
            let mut other = level_nodes.clone();
            other[path] = random.block();
            for nodes in [&level_nodes, &other] {
                let sum = nodes
                    .iter()
                    .skip(1 - (path & 1))
                    .step_by(2)
                    .fold(Block::ZERO, |sum, node| sum ^ *node);
                assert!(sum == view.inner[level as usize - 1], "level {level}");
            }
        }
        for missing in [leaves[alpha], Fp61::random(&mut random)] {
            let mut leaves = leaves.clone();
            leaves[alpha] = missing;
            let side: Vec<_> = leaves.into_iter().skip(1 - (alpha & 1)).step_by(2).collect();
            assert!(Fp61::sum(&side) == view.leaf, "leaf level");
        }
    }
}

#[test]
fn trees_of_a_session_differ() {
    let prgs = TreePrgs::new(SessionId::from_bytes([1; 32]), 0);
    let other = TreePrgs::new(SessionId::from_bytes([1; 32]), 1);
    let seed = Block::from(5);
    let all = [prgs.tree(0), prgs.tree(1), other.tree(0)].map(|prg| prg.children(seed));
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
}
