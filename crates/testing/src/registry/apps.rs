//! The applications, on small inputs.

mod places;

use volery_apps::fixed::Format;
use volery_apps::linear::{self, Left, Matrix, Output, Right, Shape, Side};
use volery_apps::{offline, ope};
use volery_channel::{Channel, Error, Result};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::Security;
use volery_pcg::vole::VoleRing;
use zeroize::Zeroizing;

use crate::fixtures::{SEEDS, SESSION, rng};
use crate::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    let mut all = vec![
        batch::<Fp61>("batch of vector-OLEs"),
        batch::<Gf128>("batch of vector-OLEs, gf128"),
        polynomial(),
        shapes(),
        shapes_with_vector(),
        formats(),
        product("matrix product, fp61", Output::Right),
        product("matrix product, fp61, to the left", Output::Left),
        either_product(),
    ];
    all.extend(places::all());
    all
}

fn random<R: Ring>(n: usize, seed: u128) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut rng(seed), &mut out);
    out
}

/// Errors of an application are caused by this party's own inputs, or by a peer with different
/// ones.
fn of_apps<T>(result: volery_apps::Result<T>) -> Result<T> {
    result.map_err(|error| match error {
        volery_apps::Error::Channel(error) => error,
        other => Error::Io(std::io::Error::other(other)),
    })
}

fn of_shares<R: Ring>(result: volery_apps::Result<Zeroizing<Vec<R>>>) -> Result<Vec<R>> {
    of_apps(result).map(|shares| shares.to_vec())
}

fn senders(channel: &mut Channel) -> Result<offline::Sender> {
    let seed = rng(SEEDS[0]);
    of_apps(offline::Sender::setup(Security::Malicious, SESSION, seed, channel))
}

fn receivers(channel: &mut Channel) -> Result<offline::Receiver> {
    let seed = rng(SEEDS[1]);
    of_apps(offline::Receiver::setup(Security::Malicious, SESSION, seed, channel))
}

/// A sender's `u, v`.
type SenderOutput<R> = (Vec<R>, Vec<R>);

/// A receiver's `x, w`.
type ReceiverOutput<R> = (R, Vec<R>);

fn batch<R: VoleRing>(name: &str) -> Protocol {
    Protocol::new(
        name,
        Model::Malicious,
        |channel| {
            let mut source = senders(channel)?;
            let one = |_| -> Result<SenderOutput<R>> {
                let (mut u, mut v) = (vec![R::ZERO; 9], vec![R::ZERO; 9]);
                of_apps(source.stream(9, channel))?.extend(&mut u, &mut v, channel)?;
                Ok((u, v))
            };
            (0..2).map(one).collect::<Result<Vec<_>>>()
        },
        |channel| {
            let mut source = receivers(channel)?;
            let one = |x| -> Result<ReceiverOutput<R>> {
                let mut w = vec![R::ZERO; 9];
                let mut stream = of_apps(source.stream(x, 9, channel))?;
                stream.extend(&mut w, channel)?;
                Ok((stream.x(), w))
            };
            [None, Some(R::ONE)].into_iter().map(one).collect::<Result<Vec<_>>>()
        },
        |left: &Vec<SenderOutput<R>>, right: &Vec<ReceiverOutput<R>>| {
            let is_one = |((u, v), (x, w)): (&SenderOutput<R>, &ReceiverOutput<R>)| {
                (0..w.len()).all(|i| w[i] == u[i] * *x + v[i])
            };
            left.iter().zip(right).all(is_one)
        },
    )
}

fn polynomial() -> Protocol {
    let coefficients = || random::<Fp61>(8, 3);
    let points = || random::<Fp61>(2, 4);
    Protocol::new(
        "polynomial at points",
        Model::Malicious,
        move |channel| {
            let mut source = senders(channel)?;
            let sender = of_apps(ope::Sender::offline(7, 2, &mut source, channel))?;
            of_apps(sender.online(&coefficients(), channel))
        },
        move |channel| {
            let mut source = receivers(channel)?;
            let receiver = of_apps(ope::Receiver::offline(7, 2, &mut source, channel))?;
            of_shares(receiver.online(&points(), channel))
        },
        move |&(): &(), values: &Vec<Fp61>| {
            let expected = points().into_iter().map(|z| {
                let terms = coefficients().into_iter().rev();
                terms.fold(Fp61::ZERO, |sum, coefficient| sum * z + coefficient)
            });
            values.iter().copied().eq(expected)
        },
    )
}

/// Rows and columns of a matrix; the other matrix has [`P`] columns.
const N: usize = 5;
const M: usize = 2;
const P: usize = 3;

fn shapes() -> Protocol {
    Protocol::new(
        "shapes of a product",
        Model::SemiHonest,
        |channel| of_apps(Shape::agree(Side::Left, (N, M), channel)),
        |channel| of_apps(Shape::agree(Side::Right, (M, P), channel)),
        |left: &Shape, right: &Shape| left == right,
    )
}

fn shapes_with_vector() -> Protocol {
    Protocol::new(
        "shape of a matrix and a vector",
        Model::SemiHonest,
        |channel| of_apps(Shape::agree_vector(Side::Left, (N, M), channel)),
        |channel| of_apps(Shape::agree_vector(Side::Right, (M, 1), channel)),
        |left: &Shape, right: &Shape| left == right,
    )
}

fn formats() -> Protocol {
    let party = |channel: &mut Channel| {
        let format = of_apps(Format::new(M, 16, 100.0, 10.0))?;
        of_apps(format.agree(channel))
    };
    Protocol::new(
        "formats of real numbers",
        Model::SemiHonest,
        party,
        party,
        |&(): &(), &(): &()| true,
    )
}

fn left<R: Ring>() -> Matrix<R> {
    Matrix::from_columns(N, M, random(N * M, 5)).expect("the constant shape is valid")
}

fn right<R: Ring>() -> Matrix<R> {
    Matrix::from_columns(M, P, random(M * P, 6)).expect("the constant shape is valid")
}

fn shape() -> Shape {
    Shape::new(N, M, P).expect("the constant shape is valid")
}

/// A product that the party of `output` gets.
fn product(name: &'static str, output: Output) -> Protocol {
    Protocol::new(
        name,
        Model::SemiHonest,
        move |channel| {
            let mut source = senders(channel)?;
            let sender = linear::Sender::offline(shape(), output, &mut source, channel);
            let result = of_apps(of_apps(sender)?.online(&left::<Fp61>(), channel))?;
            Ok(result.map(|product| product.entries().to_vec()))
        },
        move |channel| {
            let mut source = receivers(channel)?;
            let receiver = linear::Receiver::offline(shape(), output, &mut source, channel);
            let result = of_apps(of_apps(receiver)?.online(&right::<Fp61>(), channel))?;
            Ok(result.map(|product| product.entries().to_vec()))
        },
        move |sent: &Option<Vec<Fp61>>, received: &Option<Vec<Fp61>>| {
            let (result, other) = match output {
                Output::Left => (sent, received),
                _ => (received, sent),
            };
            let plain = left::<Fp61>().times(&right()).expect("the shapes are compatible");
            result.as_deref() == Some(plain.entries()) && other.is_none()
        },
    )
}

fn either_product() -> Protocol {
    let security = Security::SemiHonest;
    let output = Output::Shared;
    Protocol::new(
        "matrix product, z64, shared",
        Model::SemiHonest,
        move |channel| {
            let seed = rng(SEEDS[0]);
            let end = Left::offline(shape(), output, security, SESSION, seed, channel);
            let share = of_apps(of_apps(end)?.online(&left::<Z64>(), channel))?;
            Ok(share.expect("a share").entries().to_vec())
        },
        move |channel| {
            let seed = rng(SEEDS[1]);
            let end = Right::offline(shape(), output, security, SESSION, seed, channel);
            let share = of_apps(of_apps(end)?.online(&right::<Z64>(), channel))?;
            Ok(share.expect("a share").entries().to_vec())
        },
        |first: &Vec<Z64>, second: &Vec<Z64>| {
            let plain = left::<Z64>().times(&right()).expect("the shapes are compatible");
            let sums = first.iter().zip(second).map(|(a, b)| *a + *b);
            sums.eq(plain.entries().iter().copied())
        },
    )
}
