//! Values at positions that one party knows: scatter, additions to a vector.

use volery_apps::array;
use volery_apps::scatter::{self, Overflow, Repeats};
use volery_field::{Fp61, Ring};

use super::{of_apps, of_shares, random};
use crate::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use crate::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    vec![scatter(Repeats::Add), scatter(Repeats::Refuse), array()]
}

fn sum<R: Ring>(left: &[R], right: &[R]) -> Vec<R> {
    left.iter().zip(right).map(|(a, b)| *a + *b).collect()
}

fn scatter(repeats: Repeats) -> Protocol {
    let indices = move || match repeats {
        Repeats::Refuse => vec![7, 60, 0],
        _ => vec![7, 60, 7],
    };
    let public =
        move || scatter::Public { length: 64, count: 3, repeats, overflow: Overflow::Drop };
    let values = || [random::<Fp61>(3, 9), random::<Fp61>(3, 10)];
    Protocol::new(
        format!("scatter, {repeats:?}"),
        Model::SemiHonest,
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            of_shares(scatter::send(public(), &values()[0], rng, ot, channel))
        },
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[1]), &mut dealt_receiver());
            let (indices, values) = (indices(), &values()[1]);
            of_shares(scatter::receive(public(), &indices, values, rng, ot, channel))
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let mut expected = vec![Fp61::ZERO; 64];
            let [first, second] = values();
            for (j, index) in indices().into_iter().enumerate() {
                expected[index] += first[j] + second[j];
            }
            sum(left, right) == expected
        },
    )
}

fn array() -> Protocol {
    let shares = || [random::<Fp61>(9, 11), random::<Fp61>(9, 12)];
    Protocol::new(
        "additions to a vector",
        Model::SemiHonest,
        move |channel| {
            let [shares, _] = shares();
            let ot = &mut dealt_sender();
            let mut vector = array::Partner::new(shares, SESSION, rng(SEEDS[0]));
            vector.add(Fp61::ONE, ot, channel)?;
            vector.add(Fp61::ZERO - Fp61::ONE, ot, channel)?;
            Ok(vector.into_shares().to_vec())
        },
        move |channel| {
            let [_, shares] = shares();
            let ot = &mut dealt_receiver();
            let mut vector = array::Holder::new(shares, SESSION);
            of_apps(vector.add(3, Fp61::ONE, ot, channel))?;
            of_apps(vector.add(8, Fp61::ZERO, ot, channel))?;
            Ok(vector.into_shares().to_vec())
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let [first, second] = shares();
            let mut expected = sum(&first, &second);
            expected[3] += Fp61::ONE + Fp61::ONE;
            expected[8] -= Fp61::ONE;
            sum(left, right) == expected
        },
    )
}
