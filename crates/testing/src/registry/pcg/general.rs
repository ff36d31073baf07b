//! Trees of higher arity, punctured keys, and the steps that place shared values: building blocks
//! beside the streams.

use volery_apps::mpfss::{self as general, Failure, Overflow, Public};
use volery_apps::{ring_cot, switching};
use volery_field::{Fp61, Ring, Z64};
use volery_pcg::ggm::TreePrgs;
use volery_pcg::ggm::kary::{self, Arity};
use volery_pcg::pprf::{Key, PuncturedKey};
use volery_pcg::{Error, all_but_one, punctured_ot, spfss};
use volery_primitives::Block;

use super::random;
use crate::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use crate::{Model, Protocol};

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
        punctured_key(),
        products(),
        permutation(),
        mpfss("points and shared values, dropping", Overflow::Drop),
        mpfss("points and shared values, aborting", Overflow::Abort),
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

fn batch() -> punctured_ot::kary::TreeBatch {
    punctured_ot::kary::TreeBatch::regular(ALPHAS.len(), LEAVES, ARITY)
}

fn rot_of_arity() -> Protocol {
    let prgs = || kary::TreePrgs::new(SESSION, 8, ARITY);
    Protocol::new(
        "random OT of n - 1, arity 4",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            punctured_ot::kary::send(&batch(), &prgs(), &mut leaves, rng, ot, channel)?;
            for (tree, alpha) in ALPHAS.iter().enumerate() {
                leaves[batch().leaves_of(tree)][*alpha] = Fp61::ZERO;
            }
            Ok(leaves)
        },
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let ot = &mut dealt_receiver();
            punctured_ot::kary::receive(&batch(), &prgs(), &ALPHAS, &mut leaves, ot, channel)?;
            Ok(leaves)
        },
        |left: &Vec<Fp61>, right: &Vec<Fp61>| left == right,
    )
}

fn spfss_of_arity() -> Protocol {
    let beta = || [random::<Fp61>(ALPHAS.len(), 2), random(ALPHAS.len(), 3)];
    let prgs = || kary::TreePrgs::new(SESSION, 9, ARITY);
    Protocol::new(
        "point functions, arity 4",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            let trees = (&batch(), &prgs());
            spfss::kary::send(trees, &beta()[0], &mut leaves, rng, ot, channel)?;
            Ok(leaves)
        },
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (ot, trees) = (&mut dealt_receiver(), (&batch(), &prgs()));
            spfss::kary::receive(trees, &ALPHAS, &beta()[1], &mut leaves, ot, channel)?;
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

fn punctured_key() -> Protocol {
    let prgs = || TreePrgs::new(SESSION, 10);
    Protocol::new(
        "punctured key",
        Model::SemiHonest,
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            let key = Key::<Z64>::deal(LEAVES, &prgs(), rng, ot, channel)?;
            let values = (0..LEAVES).map(|point| (point != ALPHAS[1]).then(|| key.evaluate(point)));
            Ok(values.collect())
        },
        move |channel| {
            let ot = &mut dealt_receiver();
            let key = PuncturedKey::obtain(LEAVES, ALPHAS[1], &prgs(), ot, channel)?;
            Ok((0..LEAVES).map(|point| key.evaluate(point)).collect())
        },
        |left: &Vec<Option<Z64>>, right: &Vec<Option<Z64>>| left == right,
    )
}

/// Values of a permutation network, and products.
const VALUES: usize = 37;

fn products() -> Protocol {
    let bits = || crate::fixtures::random_bits(VALUES, 4);
    let values = || random::<Fp61>(VALUES, 5);
    Protocol::new(
        "products with bits",
        Model::SemiHonest,
        move |channel| {
            let mut ot = dealt_sender();
            let mut products = ring_cot::Sender::new(VALUES, &mut ot, channel);
            let shares = values().into_iter().map(|value| products.multiply(value));
            let shares = shares.collect::<Result<Vec<_>, _>>()?;
            products.finish()?;
            Ok(shares)
        },
        move |channel| {
            let (bits, mut ot) = (bits(), dealt_receiver());
            let mut products = ring_cot::Receiver::new(&bits, VALUES, &mut ot, channel);
            (0..VALUES)
                .map(|_| products.multiply(Fp61::ZERO))
                .collect::<Result<Vec<_>, _>>()
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let (bits, values) = (bits(), values());
            (0..VALUES).all(|i| {
                let chosen = volery_primitives::bits::bit(&bits, i);
                left[i] + right[i] == if chosen { values[i] } else { Fp61::ZERO }
            })
        },
    )
}

fn permutation() -> Protocol {
    let shares = || [random::<Fp61>(VALUES, 6), random::<Fp61>(VALUES, 7)];
    let source = || (0..VALUES).map(|i| 10 * i % VALUES).collect::<Vec<_>>();
    Protocol::new(
        "permutation",
        Model::SemiHonest,
        move |channel| {
            let [mut values, _] = shares();
            switching::send(&mut values, &mut dealt_sender(), channel)?;
            Ok(values)
        },
        move |channel| {
            let [_, mut values] = shares();
            switching::receive(&source(), &mut values, &mut dealt_receiver(), channel)?;
            Ok(values)
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let [first, second] = shares();
            let mut wires = source().into_iter().enumerate();
            wires.all(|(j, i)| left[j] + right[j] == first[i] + second[i])
        },
    )
}

/// An overflow depends on the sizes that a peer announces; no peer of the registry causes one.
fn of_channel(failure: Failure) -> Error {
    match failure {
        Failure::Channel(error) => error,
        other => Error::Io(std::io::Error::other(other)),
    }
}

fn mpfss(name: &str, overflow: Overflow) -> Protocol {
    const POINTS: [Option<usize>; 4] = [Some(3), None, Some(40), Some(94)];
    let public = move || Public {
        n: 95,
        t: POINTS.len(),
        overflow,
    };
    let beta = || [random::<Fp61>(4, 2), random::<Fp61>(4, 3)];
    Protocol::new(
        name,
        Model::SemiHonest,
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            general::send(public(), &beta()[0], rng, ot, channel).map_err(of_channel)
        },
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[1]), &mut dealt_receiver());
            general::receive(public(), &POINTS, &beta()[1], rng, ot, channel).map_err(of_channel)
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let [first, second] = beta();
            let value = |point: usize| {
                let place = POINTS.iter().position(|other| *other == Some(point));
                place.map_or(Fp61::ZERO, |j| first[j] + second[j])
            };
            (0..95).all(|point| left[point] + right[point] == value(point))
        },
    )
}
