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
        assert!(*leaf == prg.leaf_by_path(shape, root, j), "leaf {j} of {n}, {arity:?}");
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
        assert!(rebuilt == expected, "all but {alpha} of {n}, {arity:?}");
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
