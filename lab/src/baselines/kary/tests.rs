use volery_channel::SessionId;
use volery_field::{Fp61, Gf128, Z64};
use volery_primitives::prg::Prg;

use super::*;

fn prg(arity: Arity) -> TreePrg {
    TreePrgs::new(SessionId::from_bytes([7; 32]), 3, arity).tree(5)
}

/// Sizes around the powers of `k`, and some that are far from any.
fn sizes(arity: Arity) -> Vec<usize> {
    let k = arity.children();
    let mut sizes = vec![1, 2, 3, 5, 31, 97, 1009, 2 * k * k + 1, 65 * k];
    sizes.extend([k - 1, k, k + 1, k * k - 1, k * k, k * k + 1]);
    sizes
}

fn check_tree<R: Ring>(arity: Arity, n: usize) {
    let (prg, shape) = (prg(arity), Shape::new(n, arity));
    let mut scratch = Scratch::default();
    let root = Prg::new(Block::from(n as u128)).block();
    let mut leaves = vec![R::ONE; n];
    // The previous content must have no effect.
    let mut sums = vec![Block::ALL_ONES; shape.sums()];
    let total = expand(&prg, shape, root, &mut leaves, &mut sums, &mut scratch);
    assert!(total == R::sum(&leaves));
    for (j, leaf) in leaves.iter().enumerate() {
        assert!(
            *leaf == prg.leaf_by_path(shape, root, j),
            "leaf {j} of {n}, arity {arity}"
        );
    }
    let mut alphas = vec![0, n / 3, n / 2, n - 1];
    alphas.extend((0..n).rev().take(arity.children()));
    for alpha in alphas {
        let mut opened = sums.clone();
        let mut first = 0;
        for level in 1..=shape.levels() {
            // P2 has anything there.
            opened[first + shape.digit(alpha, level)] = Block::from(99);
            first += shape.arity(level).children();
        }
        let mut rebuilt = vec![R::ONE; n];
        let total = expand_punctured(&prg, shape, alpha, &opened, &mut rebuilt, &mut scratch);
        let mut expected = leaves.clone();
        expected[alpha] = R::ZERO;
        assert!(rebuilt == expected, "all but {alpha} of {n}, arity {arity}");
        assert!(total == R::sum(&expected), "the sum without {alpha} of {n}");
    }
}

#[test]
fn every_leaf_follows_its_path_and_all_but_one_are_rebuilt() {
    for arity in Arity::ALL {
        for n in sizes(arity) {
            check_tree::<Fp61>(arity, n);
            check_tree::<Z64>(arity, n);
            check_tree::<Gf128>(arity, n);
        }
    }
}

/// The sums that P2 may open are computed from the nodes beside the path alone, with other values
/// in place of the path's nodes: they must not change (the simulator of Theorem A.2).
#[test]
fn what_p2_is_sent_does_not_depend_on_the_path() {
    let mut random = Prg::new(Block::from(77));
    for arity in Arity::ALL {
        let (prg, shape) = (prg(arity), Shape::new(150, arity));
        let root = random.block();
        let mut leaves = vec![Gf128::ZERO; 150];
        let mut sums = vec![Block::ZERO; shape.sums()];
        expand(
            &prg,
            shape,
            root,
            &mut leaves,
            &mut sums,
            &mut Scratch::default(),
        );
        for alpha in [0, 17, 148, 149] {
            let (mut nodes, mut sums) = (vec![root], &sums[..]);
            for level in 1..=shape.levels() {
                let k = shape.arity(level).children();
                let mut children = vec![Block::ZERO; nodes.len() * k];
                for (seed, family) in nodes.iter().zip(children.chunks_mut(k)) {
                    prg.children(*seed, family);
                }
                children.truncate(shape.width(level));
                let mut other = children.clone();
                other[alpha >> shape.bits_below(level)] = random.block();
                for digit in (0..k).filter(|digit| *digit != shape.digit(alpha, level)) {
                    let side = other.iter().skip(digit).step_by(k);
                    let sum = side.fold(Block::ZERO, |sum, node| sum ^ *node);
                    assert!(sum == sums[digit], "level {level}, arity {arity}");
                }
                nodes = children;
                sums = &sums[k..];
            }
        }
    }
}

#[test]
fn shapes_leave_out_nodes_on_the_right_only() {
    // 11 leaves have 4 bits: 1 and 3 of them for arity 8.
    let shape = Shape::new(11, Arity::Eight);
    assert_eq!(shape.levels(), 2);
    assert_eq!([1, 2].map(|l| shape.arity(l)), [Arity::Two, Arity::Eight]);
    assert_eq!([0, 1, 2].map(|l| shape.width(l)), [1, 2, 11]);
    assert_eq!([1, 2].map(|l| shape.digit(10, l)), [1, 2]);
    assert_eq!(shape.sums(), 2 + 8);
    for arity in Arity::ALL {
        assert_eq!(Shape::new(1, arity).levels(), 1);
        assert_eq!(Shape::new(1, arity).arity(1), Arity::Two);
        for n in sizes(arity) {
            let shape = Shape::new(n, arity);
            let bits: u32 = (1..=shape.levels()).map(|l| shape.arity(l).bits()).sum();
            assert_eq!(ggm::Shape::new(n).depth(), bits);
            for level in 1..=shape.levels() {
                // No family is empty and none is too large.
                let k = shape.arity(level).children();
                assert_eq!(shape.width(level - 1), shape.width(level).div_ceil(k));
            }
            let digits = (1..=shape.levels()).fold(0, |path, level| {
                path * shape.arity(level).children() + shape.digit(n - 1, level)
            });
            assert_eq!(digits, n - 1);
        }
    }
}

/// The AES calls of the table in the doc.
#[test]
fn aes_calls_a_leaf() {
    for arity in Arity::ALL {
        let k = arity.children();
        for levels in 1..=3 {
            let n = k.pow(levels);
            let shape = Shape::new(n, arity);
            assert_eq!(shape.aes_calls::<Gf128>(), (k * n - k) / (k - 1));
            let words = (n - k) / (k - 1) + n / 2;
            assert_eq!(shape.aes_calls::<Fp61>(), words);
            assert_eq!(shape.aes_calls::<Z64>(), words);
        }
        // Any size costs at most the cost of a leaf in a complete tree for each leaf, and a node
        // per level.
        for n in sizes(arity) {
            let shape = Shape::new(n, arity);
            let most = n * k / (k - 1) + shape.levels() as usize;
            assert!(shape.aes_calls::<Gf128>() <= most, "{n} leaves, {arity}");
        }
    }
}

#[test]
fn names_round_trip() {
    for arity in Arity::ALL {
        assert_eq!(arity.to_string().parse(), Ok(arity));
        assert_eq!(arity.to_string(), arity.children().to_string());
    }
    let error = "3".parse::<Arity>().expect_err("no arity");
    assert_eq!(error.to_string(), "'3' is none of: 2, 4, 8, 16");
}

#[test]
fn trees_of_a_session_differ() {
    let prgs =
        |session, batch, arity| TreePrgs::new(SessionId::from_bytes([session; 32]), batch, arity);
    let mut all = Vec::new();
    for prg in [
        prgs(1, 0, Arity::Two).tree(0),
        prgs(1, 0, Arity::Four).tree(0),
        prgs(1, 0, Arity::Four).tree(1),
        prgs(1, 1, Arity::Four).tree(0),
        prgs(2, 0, Arity::Four).tree(0),
    ] {
        let mut children = vec![Block::ZERO; prg.arity().children()];
        prg.children(Block::from(5), &mut children);
        all.extend(children.iter().map(|child| child.to_bytes()));
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count, "no child comes twice");
}
