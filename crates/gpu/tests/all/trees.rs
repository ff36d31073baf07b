//! Half-trees and the sums of the check.

use volery_field::{Fp61, Gf128, Ring};
use volery_gpu::{Leaf, TreeInputs, Trees};
use volery_primitives::{Block, hash::Circular};

use super::{blocks, device, random};

const LEAVES: [Leaf; 3] = [Leaf::Correlated, Leaf::Hashed, Leaf::Words];

/// A tree by its definition: the nodes of levels 1 to h - 1, and its leaves as blocks.
fn plain(
    leaf: Leaf,
    depth: u32,
    key: Block,
    root: Block,
    delta: Block,
) -> (Vec<Vec<Block>>, Vec<Block>) {
    let hash = Circular::new(key);
    let mut levels = vec![vec![root, root ^ delta]];
    let split = |parents: &Vec<Block>| -> Vec<Block> {
        parents.iter().flat_map(|s| [hash.hash(*s), *s ^ hash.hash(*s)]).collect()
    };
    for _ in 2..depth {
        levels.push(split(levels.last().unwrap()));
    }
    let parents = levels.last().unwrap();
    let leaves = match leaf {
        Leaf::Correlated => split(parents),
        Leaf::Hashed => {
            parents.iter().flat_map(|s| [hash.hash(*s), hash.hash(*s ^ Block::ONE)]).collect()
        }
        Leaf::Words => {
            let word = |word| Block::from(u128::from(Fp61::reduce(word).value()));
            let both = |s: &Block| [word(hash.hash(*s).low()), word(hash.hash(*s).high())];
            parents.iter().flat_map(both).collect()
        }
    };
    (levels, leaves)
}

/// The sum of leaves or nodes.
fn sum<'a>(leaf: Leaf, blocks: impl Iterator<Item = &'a Block>) -> Block {
    if leaf == Leaf::Words {
        let sum = blocks.fold(Fp61::ZERO, |sum, block| sum + Fp61::reduce(block.low()));
        return Block::from(u128::from(sum.value()));
    }
    blocks.fold(Block::ZERO, |sum, block| sum ^ *block)
}

fn reduced(leaf: Leaf, block: Block) -> Block {
    sum(leaf, [block].iter())
}

/// Leaves of the card as blocks.
fn leaves(trees: &Trees, leaf: Leaf) -> Vec<Block> {
    let leaves = trees.leaves().unwrap();
    match leaf {
        Leaf::Words => leaves.iter().map(|word| Block::from(u128::from(*word))).collect(),
        _ => blocks(&leaves),
    }
}

fn kept(leaf: Leaf, block: Block) -> Block {
    if leaf == Leaf::Correlated { block & !Block::ONE } else { block }
}

fn check(leaf: Leaf, depth: u32, count: usize) {
    let (device, what) = (device(), format!("{leaf:?}, depth {depth}, {count} trees"));
    let (keys, roots) = (random(1, count), random(2, count));
    let delta = random(3, 1)[0] | Block::ONE;
    let mut trees = Trees::new(&device, leaf, depth, count).unwrap();
    let all: Vec<_> =
        (0..count).map(|tree| plain(leaf, depth, keys[tree], roots[tree], delta)).collect();
    for _again in 0..2 {
        let (levels, right) = trees.grow(&keys, &roots, delta).unwrap();
        for (tree, (nodes, leaves)) in all.iter().enumerate() {
            let sums = &levels[tree * depth as usize..][..depth as usize];
            for (level, nodes) in nodes.iter().enumerate() {
                let expected = sum(Leaf::Correlated, nodes.iter().step_by(2));
                assert_eq!(sums[level], expected, "{what}: level {} of tree {tree}", level + 1);
            }
            let last = reduced(leaf, sums[depth as usize - 1]);
            assert_eq!(last, sum(leaf, leaves.iter().step_by(2)), "{what}: left leaves");
            if leaf != Leaf::Correlated {
                let expected = sum(leaf, leaves.iter().skip(1).step_by(2));
                assert_eq!(reduced(leaf, right[tree]), expected, "{what}: right leaves");
            }
        }
    }
    let grown = leaves(&trees, leaf);
    let expected: Vec<_> =
        all.iter().flat_map(|(_, leaves)| leaves.iter().map(|block| kept(leaf, *block))).collect();
    assert_eq!(grown, expected, "{what}: leaves");

    // TreeInputs at the first and the last leaf, and at others.
    let size = 1usize << depth;
    let alphas: Vec<u32> =
        (0..count).map(|tree| [0, size - 1, 7, 8, 37, size / 2, 301][tree % 7] as u32).collect();
    let totals = random(4, count);
    let totals: Vec<_> = totals.iter().map(|total| reduced(leaf, *total)).collect();
    let mut opened = Vec::new();
    for (tree, (nodes, leaves)) in all.iter().enumerate() {
        for level in 1..=depth {
            let side = 1 - (alphas[tree] as usize >> (depth - level) & 1);
            let last = level == depth;
            let of = if last { leaves } else { &nodes[level as usize - 1] };
            let kind = if last { leaf } else { Leaf::Correlated };
            opened.push(sum(kind, of.iter().skip(side).step_by(2)));
        }
    }
    for parts in [1, 2, count] {
        for first in (0..count).step_by(count.div_ceil(parts)) {
            let part = first..count.min(first + count.div_ceil(parts));
            let levels = part.start * depth as usize..part.end * depth as usize;
            let (keys, alphas) = (&keys[part.clone()], &alphas[part.clone()]);
            let write = |to: TreeInputs<'_>| {
                to.keys.copy_from_slice(keys);
                to.alphas.copy_from_slice(alphas);
                to.opened.copy_from_slice(&opened[levels]);
                to.totals.copy_from_slice(&totals[part.clone()]);
            };
            trees.grow_punctured(first, part.len(), write).unwrap();
        }
        if count > 100 {
            break;
        }
    }
    let punctured = leaves_without(&trees, leaf, &alphas, size, &expected);
    for (tree, missing) in punctured.into_iter().enumerate() {
        let others = all[tree].1.iter().enumerate().filter(|(i, _)| *i != alphas[tree] as usize);
        let others = sum(leaf, others.map(|(_, block)| block));
        let expected = match leaf {
            // The lowest bit carries the choice.
            Leaf::Correlated => others | Block::ONE,
            Leaf::Hashed => totals[tree] ^ others,
            Leaf::Words => {
                let rest = Fp61::reduce(totals[tree].low()) - Fp61::reduce(others.low());
                Block::from(u128::from(rest.value()))
            }
        };
        assert_eq!(missing, expected, "{what}: the missing leaf of tree {tree}");
    }

    // The sums of the check, over these leaves.
    let now = leaves(&trees, leaf);
    let places = random(5, size);
    if leaf == Leaf::Words {
        let words = |part: fn(&Block) -> u64| -> Vec<u64> {
            places.iter().map(|block| Fp61::reduce(part(block)).value()).collect()
        };
        let both = [words(|block| block.low()), words(|block| block.high())];
        let sums = trees.inner_products_61([&both[0], &both[1]]).unwrap();
        for (tree, sums) in sums.iter().enumerate() {
            for (sum, places) in sums.iter().zip(&both) {
                let terms = places.iter().zip(&now[tree * size..]);
                let term = |(b, leaf): (&u64, &Block)| Fp61::reduce(*b) * Fp61::reduce(leaf.low());
                let expected = terms.map(term).fold(Fp61::ZERO, |sum, term| sum + term);
                assert_eq!(*sum, expected.value(), "{what}: check of tree {tree}");
            }
        }
    } else {
        let sums = trees.inner_products(&places).unwrap();
        for (tree, sum) in sums.iter().enumerate() {
            let terms = places.iter().zip(&now[tree * size..]);
            let term = |(b, leaf): (&Block, &Block)| Gf128::new(*b) * Gf128::new(*leaf);
            let expected = terms.map(term).fold(Gf128::ZERO, |sum, term| sum + term);
            assert_eq!(*sum, expected.value(), "{what}: check of tree {tree}");
        }
    }
}

/// The leaves at `alphas`; the others are as expected.
fn leaves_without(
    trees: &Trees,
    leaf: Leaf,
    alphas: &[u32],
    size: usize,
    expected: &[Block],
) -> Vec<Block> {
    let now = leaves(trees, leaf);
    for (place, (now, expected)) in now.iter().zip(expected).enumerate() {
        let (tree, i) = (place / size, place % size);
        let missing = i == alphas[tree] as usize;
        assert!(
            missing || now == expected,
            "{leaf:?}: leaf {i} of tree {tree}, without {}",
            alphas[tree]
        );
    }
    (0..alphas.len()).map(|tree| now[tree * size + alphas[tree] as usize]).collect()
}

#[test]
#[ignore = "needs a card"]
fn trees_are_those_of_the_definition() {
    for leaf in LEAVES {
        for depth in Trees::DEPTHS {
            for count in [1, 2, 37] {
                check(leaf, depth, count);
            }
        }
        check(leaf, 9, 1472);
    }
}
