//! The protocols on trees of higher arity.

use volery_bench::kary::punctured_ot::TreeBatch;
use volery_bench::kary::{self, Arity, all_but_one, punctured_ot, spfss};
use volery_field::{Fp61, Ring};
use volery_pcg::ggm::TreePrgs;
use volery_primitives::Block;
use volery_testing::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use volery_testing::{Model, Protocol};

use super::vectors::random;

/// Leaves of each tree: not a power of the arity.
const LEAVES: usize = 35;

/// The leaf of each tree that the receiver knows.
const ALPHAS: [usize; 3] = [0, 21, 34];

pub(super) fn all() -> Vec<Protocol> {
    vec![
        all_but_one(),
        all_but_one_random(),
        rot_of_arity(),
        spfss_of_arity(),
    ]
}

/// Instances of all-but-one OT.
const ARITIES: [Arity; 4] = [Arity::Two, Arity::Four, Arity::Eight, Arity::Sixteen];

/// The message that the receiver does not get.
const WITHOUT: [usize; 4] = [1, 2, 0, 15];

/// The messages that the receiver should have.
fn without(mut messages: Vec<Block>) -> Vec<Block> {
    let mut start = 0;
    for (arity, without) in ARITIES.iter().zip(WITHOUT) {
        messages[start + without] = Block::ZERO;
        start += arity.children();
    }
    messages
}

fn all_but_one() -> Protocol {
    let prgs = || TreePrgs::new(SESSION, 6);
    let count = all_but_one::messages(&ARITIES);
    Protocol::new(
        "OT of all but one",
        Model::SemiHonest,
        move |channel| {
            let messages: Vec<_> = (1..=count as u128).map(Block::new).collect();
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            all_but_one::send(&ARITIES, &messages, &prgs(), rng, ot, channel)?;
            Ok(without(messages))
        },
        move |channel| {
            let mut messages = vec![Block::ZERO; count];
            let ot = &mut dealt_receiver();
            all_but_one::receive(&ARITIES, &WITHOUT, &mut messages, &prgs(), ot, channel)?;
            Ok(messages)
        },
        |left: &Vec<Block>, right: &Vec<Block>| left == right,
    )
}

fn all_but_one_random() -> Protocol {
    let prgs = || TreePrgs::new(SESSION, 7);
    let count = all_but_one::messages(&ARITIES);
    Protocol::new(
        "random OT of all but one",
        Model::SemiHonest,
        move |channel| {
            let mut pads = vec![Block::ZERO; count];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            all_but_one::send_random(&ARITIES, &mut pads, &prgs(), rng, ot, channel)?;
            Ok(without(pads))
        },
        move |channel| {
            let mut pads = vec![Block::ZERO; count];
            let ot = &mut dealt_receiver();
            all_but_one::receive_random(&ARITIES, &WITHOUT, &mut pads, &prgs(), ot, channel)?;
            Ok(pads)
        },
        |left: &Vec<Block>, right: &Vec<Block>| left == right,
    )
}

/// The arity of the trees.
const ARITY: Arity = Arity::Four;

fn batch() -> TreeBatch {
    TreeBatch::regular(ALPHAS.len(), LEAVES, ARITY)
}

fn rot_of_arity() -> Protocol {
    let prgs = || kary::TreePrgs::new(SESSION, 8, ARITY);
    Protocol::new(
        "random OT of n - 1, arity 4",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            punctured_ot::send(&batch(), &prgs(), &mut leaves, rng, ot, channel)?;
            for (tree, alpha) in ALPHAS.iter().enumerate() {
                leaves[batch().leaves_of(tree)][*alpha] = Fp61::ZERO;
            }
            Ok(leaves)
        },
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let ot = &mut dealt_receiver();
            punctured_ot::receive(&batch(), &prgs(), &ALPHAS, &mut leaves, ot, channel)?;
            Ok(leaves)
        },
        |left: &Vec<Fp61>, right: &Vec<Fp61>| left == right,
    )
}

fn spfss_of_arity() -> Protocol {
    let beta = || [random(ALPHAS.len(), 2), random(ALPHAS.len(), 3)];
    let prgs = || kary::TreePrgs::new(SESSION, 9, ARITY);
    Protocol::new(
        "point functions, arity 4",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            let trees = (&batch(), &prgs());
            spfss::send(trees, &beta()[0], &mut leaves, rng, ot, channel)?;
            Ok(leaves)
        },
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (ot, trees) = (&mut dealt_receiver(), (&batch(), &prgs()));
            spfss::receive(trees, &ALPHAS, &beta()[1], &mut leaves, ot, channel)?;
            Ok(leaves)
        },
        move |r: &Vec<Fp61>, m: &Vec<Fp61>| {
            let [left, right] = beta();
            (0..ALPHAS.len()).all(|tree| {
                let mut places = batch().leaves_of(tree).enumerate();
                places.all(|(i, place)| {
                    let here = i == ALPHAS[tree];
                    let value = if here {
                        left[tree] + right[tree]
                    } else {
                        Fp61::ZERO
                    };
                    r[place] - m[place] == value
                })
            })
        },
    )
}
