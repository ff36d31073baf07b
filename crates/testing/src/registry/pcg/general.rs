//! The steps that place shared values: building blocks beside the streams.

use volery_apps::mpfss::{self as general, Failure, Overflow, Public};
use volery_apps::{ring_cot, switching};
use volery_field::{Fp61, Ring};
use volery_pcg::Error;

use super::random;
use crate::fixtures::{SEEDS, dealt_receiver, dealt_sender, rng};
use crate::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    vec![
        products(),
        permutation(),
        mpfss("points and shared values, dropping", Overflow::Drop),
        mpfss("points and shared values, aborting", Overflow::Abort),
    ]
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
            (0..VALUES).map(|_| products.multiply(Fp61::ZERO)).collect::<Result<Vec<_>, _>>()
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
    let public = move || Public { n: 95, t: POINTS.len(), overflow };
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
