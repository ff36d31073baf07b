use volery_channel::{Stats, run_two_parties_with_stats};
use volery_field::{Fp61, Gf128, Z64};
use volery_ot::ideal;
use volery_primitives::Block;

use super::*;

const SESSION: SessionId = SessionId::from_bytes([6; 32]);

type IdealOts = Ots<ideal::Sender, ideal::Receiver>;

/// The OTs of both parties, from a dealer.
fn ots() -> [IdealOts; 2] {
    let sessions = [10, 11].map(|byte| SessionId::from_bytes([byte; 32]));
    let (sender_0, receiver_1) = ideal::pair(Block::new(0x51), Block::new(1));
    let (sender_1, receiver_0) = ideal::pair(Block::new(0x93), Block::new(2));
    [
        Ots {
            sender: convert::Sender::new(sender_0, sessions[0]),
            receiver: convert::Receiver::new(receiver_0, sessions[1]),
        },
        Ots {
            sender: convert::Sender::new(sender_1, sessions[1]),
            receiver: convert::Receiver::new(receiver_1, sessions[0]),
        },
    ]
}

/// Compares the shares of point functions on shared random inputs with a plain table; returns the
/// traffic of both parties.
fn check<R: Ring>(forest: &TreeBatch, alphas: &[usize]) -> [Stats; 2] {
    let mut dealer = Prg::new(Block::new(forest.leaves() as u128));
    let shares = |dealer: &mut Prg| -> [Vec<usize>; 2] {
        let own: Vec<usize> = (0..alphas.len())
            .map(|tree| dealer.next_u64() as usize % (1 << forest.shape(tree).depth()))
            .collect();
        let other = own.iter().zip(alphas).map(|(own, alpha)| own ^ alpha);
        let other = other.collect();
        [own, other]
    };
    let indices = shares(&mut dealer);
    let betas = [0, 1].map(|_| {
        let mut betas = vec![R::ZERO; forest.trees()];
        R::random_slice(&mut dealer, &mut betas);
        betas
    });
    let input = |party: usize| Input { alphas: &indices[party], betas: &betas[party] };
    let [mut ots_0, mut ots_1] = ots();
    let ((r, stats_0), (m, stats_1)) = run_two_parties_with_stats(
        |channel| {
            let mut r = vec![R::ONE; forest.leaves()];
            let rng = &mut Prg::new(Block::new(8));
            let names = (SESSION, 4);
            first(forest, names, input(0), &mut r, &mut ots_0, rng, channel).map(|()| r)
        },
        |channel| {
            let mut m = vec![R::ONE; forest.leaves()];
            let rng = &mut Prg::new(Block::new(9));
            let names = (SESSION, 4);
            second(forest, names, input(1), &mut m, &mut ots_1, rng, channel).map(|()| m)
        },
    );
    let (r, m) = (r.expect("no fault"), m.expect("no fault"));
    for (tree, alpha) in alphas.iter().enumerate() {
        for (leaf, place) in forest.leaves_of(tree).enumerate() {
            let expected = if leaf == *alpha { betas[0][tree] + betas[1][tree] } else { R::ZERO };
            assert!(
                r[place] - m[place] == expected,
                "{}: leaf {leaf} of tree {tree}, alpha {alpha}",
                R::NAME
            );
        }
    }
    [stats_0, stats_1]
}

fn check_rings(forest: &TreeBatch, alphas: &[usize]) {
    check::<Fp61>(forest, alphas);
    check::<Z64>(forest, alphas);
    check::<Gf128>(forest, alphas);
}

#[test]
fn one_tree_of_every_shape() {
    for n in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 127, 128, 129, 509, 1021, 1025, 4097] {
        for alpha in [0, 1, n / 2, n - 1] {
            check_rings(&TreeBatch::regular(1, n), &[alpha.min(n - 1)]);
        }
    }
}

/// The sign is that of a random tag: both occur.
#[test]
fn many_trees_in_lockstep() {
    check_rings(&TreeBatch::new([]), &[]);
    let sizes = [5, 1, 64, 2, 100, 63, 1009, 3, 2, 1, 65];
    let alphas: Vec<_> = sizes.iter().map(|size| size * 2 / 3).collect();
    check_rings(&TreeBatch::new(sizes), &alphas);
    let alphas: Vec<_> = (0..300).map(|tree| tree * 7 % 33).collect();
    check_rings(&TreeBatch::regular(300, 33), &alphas);
}
