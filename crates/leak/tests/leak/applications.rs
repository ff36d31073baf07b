//! The applications and the steps that place shared values: inputs, shares and results.

use volery_apps::linear::{Left, Matrix, Output, Right, Shape};
use volery_apps::switching;
use volery_apps::{array, offline, ope};
use volery_channel::run_two_parties;
use volery_field::{Fp61, Z64};
use volery_pcg::Security;
use volery_primitives::prg::Prg;

use crate::sessions::{SESSION, encoded, look_for, random, seed, with_ots};

pub(crate) fn a_polynomial_at_points() {
    const DEGREE: usize = 900;
    look_for(|| {
        let (coefficients, points) = (random::<Fp61>(DEGREE + 1, 0), random::<Fp61>(2, 1));
        let ((), values) = run_two_parties(
            |channel| {
                let seed = Prg::new(seed(0));
                let security = Security::Malicious;
                let mut source = offline::Sender::setup(security, SESSION, seed, channel).unwrap();
                let sender = ope::Sender::offline(DEGREE, 2, &mut source, channel).unwrap();
                sender.online(&coefficients, channel).unwrap();
            },
            |channel| {
                let seed = Prg::new(seed(1));
                let security = Security::Malicious;
                let mut source =
                    offline::Receiver::setup(security, SESSION, seed, channel).unwrap();
                let receiver = ope::Receiver::offline(DEGREE, 2, &mut source, channel).unwrap();
                encoded(&receiver.online(&points, channel).unwrap())
            },
        );
        vec![encoded(&coefficients), encoded(&points), values]
    });
}

pub(crate) fn a_matrix_product() {
    let shape = || Shape::new(300, 4, 1).unwrap();
    look_for(|| {
        let (a, b) = (random::<Fp61>(1200, 2), random::<Fp61>(4, 3));
        let security = Security::Malicious;
        let (left, right) = run_two_parties(
            |channel| {
                let a = Matrix::from_rows(300, 4, &a).unwrap();
                let (rng, output) = (Prg::new(seed(0)), Output::Shared);
                let left = Left::offline(shape(), output, security, SESSION, rng, channel);
                let share = left.unwrap().online(&a, channel).unwrap().unwrap();
                encoded(share.entries())
            },
            |channel| {
                let b = Matrix::from_rows(4, 1, &b).unwrap();
                let (rng, output) = (Prg::new(seed(1)), Output::Shared);
                let right = Right::offline(shape(), output, security, SESSION, rng, channel);
                let share = right.unwrap().online(&b, channel).unwrap().unwrap();
                encoded(share.entries())
            },
        );
        vec![encoded(&a), encoded(&b), left, right]
    });
}

pub(crate) fn a_permutation_of_shares() {
    const N: usize = 600;
    look_for(|| {
        let (mut x, mut y) = (random::<Z64>(N, 4), random::<Z64>(N, 5));
        let before = [encoded(&x), encoded(&y)];
        let source: Vec<usize> = (0..N).rev().collect();
        with_ots(
            |ot, channel| switching::send(&mut x, ot, channel).unwrap(),
            |ot, channel| switching::receive(&source, &mut y, ot, channel).unwrap(),
        );
        before.into_iter().chain([encoded(&x), encoded(&y)]).collect()
    });
}

pub(crate) fn additions_to_a_vector() {
    look_for(|| {
        let (x, y) = (random::<Z64>(100, 8), random::<Z64>(100, 9));
        let added = random::<Z64>(6, 10);
        let (left, right) = with_ots(
            |ot, channel| {
                let rng = Prg::new(seed(0)).fork("array");
                let mut vector = array::Partner::new(x.to_vec(), SESSION, rng);
                added[..3].iter().for_each(|share| vector.add(*share, ot, channel).unwrap());
                encoded(&vector.into_shares())
            },
            |ot, channel| {
                let mut vector = array::Holder::new(y.to_vec(), SESSION);
                for (index, share) in [7, 7, 93].into_iter().zip(&added[3..]) {
                    vector.add(index, *share, ot, channel).unwrap();
                }
                encoded(&vector.into_shares())
            },
        );
        vec![encoded(&x), encoded(&y), encoded(&added), left, right]
    });
}
