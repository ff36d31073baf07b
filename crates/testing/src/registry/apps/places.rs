//! Values at positions that one party knows: additions to a vector.

use volery_apps::array;
use volery_field::{Fp61, Ring};

use super::{of_apps, random};
use crate::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use crate::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    vec![array()]
}

fn sum<R: Ring>(left: &[R], right: &[R]) -> Vec<R> {
    left.iter().zip(right).map(|(a, b)| *a + *b).collect()
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
