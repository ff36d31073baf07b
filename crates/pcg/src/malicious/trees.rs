//! A key holder with false trees.

use volery_channel::{memory, tamper::Tampered};
use volery_field::{Fp61, Gf128, Ring};
use volery_primitives::Block;

use super::{
    FEW, MANY, MaliciousKeyHolder, Setup, Stage, honest, key_holder::GrownTrees, plan,
    round_by_round, run_malicious,
};
use crate::{
    Noise, Trees,
    correlation::{Cot, Vole},
    ggm::Growth,
};

const TREES: [Trees; 2] = [Trees::Ggm, Trees::Half];

/// Not the lowest bit, which correlated OT reserves.
fn error<R: Ring>() -> R {
    R::from_block(Block::from(6))
}

/// The malicious key holder's implementation of the protocol agrees with the honest party, where it
/// does not deviate.
#[test]
fn honest_control() {
    fn check<K: Stage>() {
        for trees in TREES {
            for noise in [Noise::Regular, Noise::Uniform] {
                for setup in [Setup::Dealt(1), Setup::Real] {
                    let plan = plan(K::KIND, trees, noise, FEW);
                    let what = format!("{trees} {noise} {setup:?}");
                    run_malicious::<K>(setup, &plan, &[FEW], &MaliciousKeyHolder::HONEST)
                        .assert_right(&what);
                }
            }
            let plan = plan(K::KIND, trees, Noise::Regular, MANY);
            for setup in [Setup::Dealt(2), Setup::Real] {
                run_malicious::<K>(
                    setup,
                    &plan,
                    &round_by_round(&plan),
                    &MaliciousKeyHolder::HONEST,
                )
                .assert_right("two rounds");
            }
        }
    }
    of_each_kind!(check());
}

/// Four instances in lockstep: an error at one place of an instance, and its negative at the same
/// place of another, or of the next block, which cancel only under equal coefficients.
#[test]
fn errors_in_two_instances() {
    fn check<K: Stage>() {
        let plan = plan(K::KIND, Trees::Half, Noise::Regular, FEW).with_instances(4);
        run_malicious::<K>(Setup::Dealt(5), &plan, &[FEW], &MaliciousKeyHolder::HONEST)
            .assert_right("a bundle");
        for other in [1, 3, 4] {
            let cancel = |grown: &mut GrownTrees<K::Ring>| {
                grown.leaves[7] += error::<K::Ring>();
                grown.leaves[other * 32 + 7] -= error::<K::Ring>();
            };
            let malicious = MaliciousKeyHolder { sums: &cancel, ..MaliciousKeyHolder::HONEST };
            for setup in [Setup::Dealt(5), Setup::Real] {
                run_malicious::<K>(setup, &plan, &[FEW], &malicious)
                    .assert_value_holder_aborts(0, &format!("trees 0 and {other}, {setup:?}"));
            }
        }
    }
    of_each_kind!(check());
}

/// A base made with `x`, and a round with another.
#[test]
fn another_key_in_a_round() {
    fn check<K: Stage>() {
        for trees in TREES {
            for round in [0, 1] {
                let plan = plan(K::KIND, trees, Noise::Regular, MANY);
                let pieces = round_by_round(&plan);
                let kept = if round == 0 { 0 } else { pieces[0] };
                for setup in [Setup::Dealt(3), Setup::Real] {
                    let ends = run_malicious::<K>(
                        setup,
                        &plan,
                        &pieces,
                        &MaliciousKeyHolder { round, x: error(), ..MaliciousKeyHolder::HONEST },
                    );
                    let what = format!("{trees}, round {round}, {setup:?}");
                    ends.assert_value_holder_aborts(kept, &what);
                }
                // In one draw, nothing of a good round is returned either.
                let other = MaliciousKeyHolder { round, x: error(), ..MaliciousKeyHolder::HONEST };
                run_malicious::<K>(Setup::Real, &plan, &[MANY], &other)
                    .assert_value_holder_aborts(0, "in one draw");
            }
            // Cuckoo hashing
            let plan = plan(K::KIND, trees, Noise::Uniform, FEW);
            let other = MaliciousKeyHolder { x: error(), ..MaliciousKeyHolder::HONEST };
            run_malicious::<K>(Setup::Dealt(3), &plan, &[FEW], &other)
                .assert_value_holder_aborts(0, "bins");
        }
    }
    of_each_kind!(check());
}

/// One tree is for another `x` than the others.
#[test]
fn another_key_in_one_tree() {
    fn check<K: Stage>() {
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, FEW);
            for setup in (0..8).map(Setup::Dealt).chain([Setup::Real]) {
                let half = K::growth(trees) == Growth::Correlated;
                let wrong_sum = |grown: &mut GrownTrees<K::Ring>| {
                    if !half {
                        grown.psi[1] += error();
                    }
                };
                let other = MaliciousKeyHolder {
                    delta: half.then_some((1, Block::from(6))),
                    sums: &wrong_sum,
                    ..MaliciousKeyHolder::HONEST
                };
                let ends = run_malicious::<K>(setup, &plan, &[FEW], &other);
                ends.assert_value_holder_aborts(0, &format!("{trees} {setup:?}"));
            }
        }
    }
    of_each_kind!(check());
}

/// In the half-trees of a vector OLE, `delta` is not the key: a tree with another one is wrong only
/// where the value holder takes the right side of an inner level, which it does not on the path to
/// the last two leaves.
#[test]
fn another_difference_in_one_hashed_tree() {
    fn check<K: Stage>() {
        let plan = plan(K::KIND, Trees::Half, Noise::Regular, FEW);
        let mut caught = 0;
        for seed in 0..16 {
            let other = MaliciousKeyHolder {
                delta: Some((2, Block::from(6))),
                ..MaliciousKeyHolder::HONEST
            };
            let ends = run_malicious::<K>(Setup::Dealt(seed), &plan, &[FEW], &other);
            if ends.value.is_err() {
                ends.assert_value_holder_aborts(0, "another delta");
                caught += 1;
            } else {
                ends.assert_right("another delta");
            }
        }
        assert!(caught >= 10, "{caught} of 16, each with probability 31/32");
    }
    check::<Vole<Fp61>>();
    check::<Vole<Gf128>>();
}

/// Where one message serves both sides of a level, a wrong one is always wrong.
#[test]
fn a_wrong_correction_of_a_level() {
    fn check<K: Stage>(levels: usize) {
        let plan = plan(K::KIND, Trees::Half, Noise::Regular, FEW);
        for level in 0..levels {
            for bit in [0, 1, 63, 64, 127] {
                let wrong = |grown: &mut GrownTrees<K::Ring>| {
                    grown.sums[5 + level][0] ^= Block::from(1 << bit);
                };
                let wrong = MaliciousKeyHolder { sums: &wrong, ..MaliciousKeyHolder::HONEST };
                let setup = Setup::Dealt(10 * level as u128 + bit);
                let ends = run_malicious::<K>(setup, &plan, &[FEW], &wrong);
                let what = format!("level {level}, bit {bit}");
                // The lowest bit of a correlated leaf is unused: it makes no difference.
                if (level, bit) == (4, 0) {
                    ends.assert_right(&what);
                } else {
                    ends.assert_value_holder_aborts(0, &what);
                }
                if bit == 1 {
                    run_malicious::<K>(Setup::Real, &plan, &[FEW], &wrong)
                        .assert_value_holder_aborts(0, &what);
                }
            }
        }
    }
    check::<Cot>(5);
    check::<Vole<Fp61>>(4);
    check::<Vole<Gf128>>(4);
}

#[test]
fn a_wrong_sum_of_all_leaves() {
    fn check<K: Stage>(trees: Trees) {
        let plan = plan(K::KIND, trees, Noise::Regular, FEW);
        for tree in 0..4 {
            for bit in [1, 30, 60] {
                let wrong = |grown: &mut GrownTrees<K::Ring>| {
                    grown.psi[tree] += K::Ring::from_block(Block::from(1 << bit));
                };
                let wrong = MaliciousKeyHolder { sums: &wrong, ..MaliciousKeyHolder::HONEST };
                let setups = [Setup::Dealt(bit), Setup::Real];
                for setup in setups.into_iter().take(1 + usize::from(tree == 3 && bit == 1)) {
                    run_malicious::<K>(setup, &plan, &[FEW], &wrong)
                        .assert_value_holder_aborts(0, &format!("{trees}, tree {tree}"));
                }
            }
        }
    }
    check::<Cot>(Trees::Ggm);
    for trees in TREES {
        check::<Vole<Fp61>>(trees);
        check::<Vole<Gf128>>(trees);
    }
}

/// The first byte of a correlated OT after the start tells which bit of 128 carries the choice.
#[test]
fn a_carrier_that_is_no_bit_of_a_block() {
    let plan = plan(Cot::KIND, Trees::Half, Noise::Regular, FEW);
    for mask in [0x80, 0xff] {
        let (key, value) = memory::pair();
        let key = Tampered::flip(key, 32, mask);
        let ends = honest::<Cot>(Setup::Real, &plan, &[FEW], key, value);
        ends.assert_value_holder_aborts(0, "carrier");
        assert!(ends.key.is_err());
    }
}

/// Both sides of all five levels wrong, in the first tree of a later round, after earlier outputs
/// have been returned.
#[test]
fn a_wrong_tree_in_a_later_round() {
    fn check<K: Stage>() {
        for trees in TREES {
            let plan = plan(K::KIND, trees, Noise::Regular, MANY);
            let pieces = round_by_round(&plan);
            let wrong = |grown: &mut GrownTrees<K::Ring>| {
                for sums in &mut grown.sums[..5] {
                    *sums = sums.map(|sum| sum ^ Block::from(6));
                }
            };
            let wrong = MaliciousKeyHolder { round: 1, sums: &wrong, ..MaliciousKeyHolder::HONEST };
            for setup in [Setup::Dealt(4), Setup::Real] {
                run_malicious::<K>(setup, &plan, &pieces, &wrong)
                    .assert_value_holder_aborts(pieces[0], &format!("{trees} {setup:?}"));
            }
            // In one draw, nothing of the good round is returned either.
            run_malicious::<K>(Setup::Real, &plan, &[MANY], &wrong)
                .assert_value_holder_aborts(0, "in one draw");
        }
    }
    of_each_kind!(check());
}
