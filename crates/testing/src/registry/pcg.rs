//! The pseudorandom correlation generators, from trees to streams.

mod general;
mod streams;
mod trees;

use volery_field::{Fp61, Ring, Z64};
use volery_pcg::{derandomize, gilboa};

use crate::fixtures::{SEEDS, SESSION, rng};
use crate::{Model, Protocol};

/// Entries of a product.
const N: usize = 20;

pub(super) fn all() -> Vec<Protocol> {
    let mut all = trees::all();
    all.extend(general::all());
    all.extend([product(), checked_product(), chosen(), chosen_input()]);
    all.extend(streams::all());
    all
}

/// A sender's `u, v`.
type SenderOutput<R> = (Vec<R>, Vec<R>);

/// A receiver's `x, w`.
type ReceiverOutput<R> = (R, Vec<R>);

/// `w = u*x + v`.
fn is_vole<R: Ring>((u, v): &SenderOutput<R>, (x, w): &ReceiverOutput<R>) -> bool {
    u.len() == w.len() && (0..w.len()).all(|i| w[i] == u[i] * *x + v[i])
}

fn random<R: Ring>(n: usize, seed: u128) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut rng(seed), &mut out);
    out
}

fn product() -> Protocol {
    Protocol::new(
        "product, z64",
        Model::SemiHonest,
        |channel| {
            let mut sender = gilboa::Sender::setup::<Z64>(SESSION, &mut rng(SEEDS[0]), channel)?;
            let (u, mut v) = (random::<Z64>(N, 3), vec![Z64::ZERO; N]);
            sender.multiply(&u, &mut v, channel)?;
            Ok((u, v))
        },
        |channel| {
            let x = random::<Z64>(1, 4)[0];
            let mut receiver = gilboa::Receiver::setup(x, SESSION, &mut rng(SEEDS[1]), channel)?;
            let mut w = vec![Z64::ZERO; N];
            receiver.multiply(&mut w, channel)?;
            Ok((x, w))
        },
        is_vole::<Z64>,
    )
}

fn checked_product() -> Protocol {
    Protocol::new(
        "checked product, fp61",
        Model::Malicious,
        |channel| {
            let mut rng = rng(SEEDS[0]);
            let mut sender = gilboa::Sender::setup::<Fp61>(SESSION, &mut rng, channel)?;
            let (u, mut v) = (random::<Fp61>(N, 3), vec![Fp61::ZERO; N]);
            sender.multiply_checked(&u, &mut v, &mut rng, channel)?;
            Ok((u, v))
        },
        |channel| {
            let (x, mut rng) = (random::<Fp61>(1, 4)[0], rng(SEEDS[1]));
            let mut receiver = gilboa::Receiver::setup(x, SESSION, &mut rng, channel)?;
            let mut w = vec![Fp61::ZERO; N];
            receiver.multiply_checked(&mut w, &mut rng, channel)?;
            Ok((x, w))
        },
        is_vole::<Fp61>,
    )
}

/// A dealer's random vector-OLE.
fn dealt() -> (SenderOutput<Fp61>, ReceiverOutput<Fp61>) {
    let (u, v, x) = (random(N, 5), random(N, 6), random::<Fp61>(1, 7)[0]);
    let w = (0..N).map(|i| u[i] * x + v[i]).collect();
    ((u, v), (x, w))
}

fn chosen() -> Protocol {
    Protocol::new(
        "chosen inputs",
        Model::Malicious,
        |channel| {
            let (u, v) = (random(N, 8), random::<Fp61>(N, 9));
            let (random, _) = dealt();
            derandomize::send((&u, &v), (&random.0, &random.1), channel)?;
            Ok((u, v))
        },
        |channel| {
            let (_, (x, mut w)) = dealt();
            derandomize::receive::<Fp61, _>(x, &mut w, channel)?;
            Ok((x, w))
        },
        is_vole::<Fp61>,
    )
}

fn chosen_input() -> Protocol {
    Protocol::new(
        "chosen input",
        Model::Malicious,
        |channel| {
            let u = random(N, 8);
            let ((u_random, v), _) = dealt();
            derandomize::send_input::<Fp61>(&u, &u_random, channel)?;
            Ok((u, v))
        },
        |channel| {
            let (_, (x, mut w)) = dealt();
            derandomize::receive_input::<Fp61, _>(x, &mut w, channel)?;
            Ok((x, w))
        },
        is_vole::<Fp61>,
    )
}
