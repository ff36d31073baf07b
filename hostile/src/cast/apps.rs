//! The applications, on small inputs.

use volery_apps::array::{self, dense};
use volery_apps::convolution::{self, Padding};
use volery_apps::fixed::Format;
use volery_apps::linear::{self, Left, Matrix, Output, Right, Shape, Side};
use volery_apps::scatter::{self, Overflow, Repeats, gather};
use volery_apps::sparse::{self, Factor, ole};
use volery_apps::{offline, ope};
use volery_channel::{Channel, Error, Result};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_pcg::Security;
use volery_pcg::vole::VoleRing;

use zeroize::Zeroizing;

use super::ot::{dealt_receiver, dealt_sender};
use super::{SEEDS, SESSION, rng};
use crate::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    vec![
        batch::<Fp61>("batch of vector-OLEs"),
        batch::<Gf128>("batch of vector-OLEs, gf128"),
        polynomial(),
        shapes(),
        shapes_with_vector(),
        formats(),
        product(),
        either_product(),
        convolution(),
        scatter(Repeats::Add),
        scatter(Repeats::Refuse),
        gather(),
        elementwise(),
        sparse(Factor::Plain),
        sparse(Factor::Transposed),
        array(),
        loaded_array(),
        dense_array(),
    ]
}

fn random<R: Ring>(n: usize, seed: u128) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut rng(seed), &mut out);
    out
}

/// An application's own errors answer what its party was given, or a peer that says something else.
fn of<T, E: std::error::Error + Send + Sync + 'static>(
    result: std::result::Result<T, E>,
    channel: impl FnOnce(E) -> std::result::Result<Error, E>,
) -> Result<T> {
    result.map_err(|error| match channel(error) {
        Ok(error) => error,
        Err(other) => Error::Io(std::io::Error::other(other)),
    })
}

fn of_apps<T>(result: volery_apps::Result<T>) -> Result<T> {
    of(result, |error| match error {
        volery_apps::Error::Channel(error) => Ok(error),
        other => Err(other),
    })
}

fn of_shares<R: Ring>(result: volery_apps::Result<Zeroizing<Vec<R>>>) -> Result<Vec<R>> {
    of_apps(result).map(|shares| shares.to_vec())
}

fn of_array<T>(result: array::Result<T>) -> Result<T> {
    of(result, |error| match error {
        array::Error::Channel(error) => Ok(error),
        other => Err(other),
    })
}

fn senders(channel: &mut Channel) -> Result<offline::Sender> {
    let seed = rng(SEEDS[0]);
    of_apps(offline::Sender::setup(
        Security::Malicious,
        SESSION,
        seed,
        channel,
    ))
}

fn receivers(channel: &mut Channel) -> Result<offline::Receiver> {
    let seed = rng(SEEDS[1]);
    of_apps(offline::Receiver::setup(
        Security::Malicious,
        SESSION,
        seed,
        channel,
    ))
}

/// A sender's `u, v`.
type Sent<R> = (Vec<R>, Vec<R>);

/// A receiver's `x, w`.
type Received<R> = (R, Vec<R>);

fn batch<R: VoleRing>(name: &str) -> Protocol {
    Protocol::new(
        name,
        Model::Malicious,
        |channel| {
            let mut source = senders(channel)?;
            let all = of_apps(source.batch::<R>(2, 9, channel))?;
            let parts = all.iter().map(|one| (one.u.to_vec(), one.v.to_vec()));
            Ok(parts.collect::<Vec<_>>())
        },
        |channel| {
            let mut source = receivers(channel)?;
            let all = of_apps(source.batch::<R>(&[None, Some(R::ONE)], 9, channel))?;
            let parts = all.iter().map(|one| (*one.x, one.w.to_vec()));
            Ok(parts.collect::<Vec<_>>())
        },
        |left: &Vec<Sent<R>>, right: &Vec<Received<R>>| {
            let is_one = |((u, v), (x, w)): (&Sent<R>, &Received<R>)| {
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

/// Rows, columns of a matrix; the other has [`P`] columns.
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
    Matrix::from_columns(N, M, random(N * M, 5)).expect("a shape")
}

fn right<R: Ring>() -> Matrix<R> {
    Matrix::from_columns(M, P, random(M * P, 6)).expect("a shape")
}

fn shape() -> Shape {
    Shape::new(N, M, P).expect("a shape")
}

fn product() -> Protocol {
    Protocol::new(
        "matrix product, fp61",
        Model::SemiHonest,
        |channel| {
            let mut source = senders(channel)?;
            let sender = linear::Sender::offline(shape(), Output::Right, &mut source, channel);
            of_apps(of_apps(sender)?.online(&left::<Fp61>(), channel)).map(drop)
        },
        |channel| {
            let mut source = receivers(channel)?;
            let receiver = linear::Receiver::offline(shape(), Output::Right, &mut source, channel);
            let result = of_apps(of_apps(receiver)?.online(&right::<Fp61>(), channel))?;
            Ok(result.expect("the right side's result").entries().to_vec())
        },
        |&(): &(), entries: &Vec<Fp61>| {
            let plain = left::<Fp61>().times(&right()).expect("shapes that go");
            plain.entries() == &entries[..]
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
            let plain = left::<Z64>().times(&right()).expect("shapes that go");
            let sums = first.iter().zip(second).map(|(a, b)| *a + *b);
            sums.eq(plain.entries().iter().copied())
        },
    )
}

fn convolution() -> Protocol {
    let shape = || convolution::Shape::new((1, 4, 5), (1, 2, 2), Padding::Valid).expect("a shape");
    let (image, kernels) = (|| random::<Fp61>(20, 7), || random::<Fp61>(4, 8));
    Protocol::new(
        "convolution",
        Model::SemiHonest,
        move |channel| {
            let mut source = senders(channel)?;
            let sender = convolution::Sender::offline(shape(), Output::Right, &mut source, channel);
            of_apps(of_apps(sender)?.online(&image(), channel)).map(drop)
        },
        move |channel| {
            let mut source = receivers(channel)?;
            let receiver =
                convolution::Receiver::offline(shape(), Output::Right, &mut source, channel);
            let result = of_apps(of_apps(receiver)?.online(&kernels(), channel))?;
            Ok(result.expect("the receiver's result").to_vec())
        },
        move |&(): &(), pixels: &Vec<Fp61>| {
            let plain = convolution::plain(shape(), &image(), &kernels());
            plain.expect("inputs of the shape") == *pixels
        },
    )
}

fn sum<R: Ring>(left: &[R], right: &[R]) -> Vec<R> {
    left.iter().zip(right).map(|(a, b)| *a + *b).collect()
}

fn scatter(repeats: Repeats) -> Protocol {
    let indices = move || match repeats {
        Repeats::Refuse => vec![7, 60, 0],
        _ => vec![7, 60, 7],
    };
    let public = move || scatter::Public {
        length: 64,
        count: 3,
        repeats,
        overflow: Overflow::Drop,
    };
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
            of_shares(scatter::receive(
                public(),
                &indices,
                values,
                rng,
                ot,
                channel,
            ))
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

fn gather() -> Protocol {
    const INDICES: [usize; 5] = [3, 0, 3, 6, 3];
    let public = || gather::Public {
        length: 7,
        count: INDICES.len(),
        order: gather::Order::Any,
    };
    let vector = || [random::<Fp61>(7, 9), random::<Fp61>(7, 10)];
    Protocol::new(
        "gather",
        Model::SemiHonest,
        move |channel| {
            let ot = &mut dealt_sender();
            of_shares(gather::send(public(), &vector()[0], ot, channel))
        },
        move |channel| {
            let ot = &mut dealt_receiver();
            of_shares(gather::receive(
                public(),
                &INDICES,
                &vector()[1],
                ot,
                channel,
            ))
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            let [first, second] = vector();
            let all = sum(&first, &second);
            sum(left, right) == INDICES.map(|index| all[index])
        },
    )
}

fn elementwise() -> Protocol {
    let (values, factors) = (
        || random::<Z64>(6, 9),
        || [0, 1, 2, 255, 3, 9].map(Z64::new),
    );
    Protocol::new(
        "elementwise product",
        Model::SemiHonest,
        move |channel| ole::send(8, &values(), &mut dealt_sender(), channel),
        move |channel| ole::receive(8, &factors(), &mut dealt_receiver(), channel),
        move |left: &Vec<Z64>, right: &Vec<Z64>| {
            let products = values().into_iter().zip(factors()).map(|(x, a)| x * a);
            sum(left, right).into_iter().eq(products)
        },
    )
}

fn sparse(factor: Factor) -> Protocol {
    let shape = || sparse::Shape {
        rows: 6,
        columns: 9,
        entries: 4,
        bits: 8,
    };
    let entries =
        || [(0, 8, 3), (5, 0, 200), (0, 1, 7), (0, 8, 1)].map(|(i, j, a)| (i, j, Z64::new(a)));
    let vector = move || {
        let (length, _) = shape().lengths(factor);
        [random::<Z64>(length, 9), random::<Z64>(length, 10)]
    };
    Protocol::new(
        format!("sparse product, {factor:?}"),
        Model::SemiHonest,
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            of_shares(sparse::send(
                shape(),
                factor,
                &vector()[0],
                rng,
                ot,
                channel,
            ))
        },
        move |channel| {
            let (rng, ot) = (&mut rng(SEEDS[1]), &mut dealt_receiver());
            let matrix = of_apps(sparse::Matrix::new(shape(), &entries()))?;
            of_shares(sparse::receive(
                &matrix,
                factor,
                &vector()[1],
                rng,
                ot,
                channel,
            ))
        },
        move |left: &Vec<Z64>, right: &Vec<Z64>| {
            let [first, second] = vector();
            let vector = sum(&first, &second);
            let mut expected = vec![Z64::ZERO; shape().lengths(factor).1];
            for (row, column, value) in entries() {
                match factor {
                    Factor::Plain => expected[row] += value * vector[column],
                    Factor::Transposed => expected[column] += value * vector[row],
                }
            }
            sum(left, right) == expected
        },
    )
}

fn array() -> Protocol {
    Protocol::new(
        "array",
        Model::SemiHonest,
        |channel| {
            let ot = &mut dealt_sender();
            let mut array = array::Partner::<Fp61>::new(20);
            array.write(Fp61::ONE, ot, channel)?;
            array.add(Fp61::ONE, ot, channel)?;
            array.open(ot, channel)?;
            array.read(ot, channel)
        },
        |channel| {
            let ot = &mut dealt_receiver();
            let mut array = array::Holder::<Fp61>::zeros(20, rng(SEEDS[1]));
            of_array(array.write(7, Fp61::ONE, ot, channel))?;
            of_array(array.add(7, Fp61::ZERO, ot, channel))?;
            let opened = of_array(array.open(7, ot, channel))?;
            Ok((opened, of_array(array.read(7, ot, channel))?))
        },
        |left: &Fp61, (opened, right): &(Fp61, Fp61)| {
            let three = Fp61::ONE + Fp61::ONE + Fp61::ONE;
            *opened == three && *left + *right == three
        },
    )
}

fn loaded_array() -> Protocol {
    let values = || [random::<Z64>(9, 11), random::<Z64>(9, 12)];
    Protocol::new(
        "loaded array",
        Model::SemiHonest,
        move |channel| {
            let ot = &mut dealt_sender();
            let mut array = array::Partner::load(&values()[0], ot, channel)?;
            array.read(ot, channel)
        },
        move |channel| {
            let (seed, ot) = (rng(SEEDS[1]), &mut dealt_receiver());
            let mut array = of_array(array::Holder::load(&values()[1], seed, ot, channel))?;
            of_array(array.read(4, ot, channel))
        },
        move |left: &Z64, right: &Z64| {
            let [first, second] = values();
            *left + *right == first[4] + second[4]
        },
    )
}

fn dense_array() -> Protocol {
    let shares = || [random::<Fp61>(9, 11), random::<Fp61>(9, 12)];
    Protocol::new(
        "additions to a vector",
        Model::SemiHonest,
        move |channel| {
            let [shares, _] = shares();
            let ot = &mut dealt_sender();
            let mut vector = dense::Partner::new(shares, SESSION, rng(SEEDS[0]));
            vector.add(Fp61::ONE, ot, channel)?;
            vector.replace(Fp61::ONE, Fp61::ZERO, ot, channel)?;
            Ok(vector.into_shares().to_vec())
        },
        move |channel| {
            let [_, shares] = shares();
            let ot = &mut dealt_receiver();
            let mut vector = dense::Holder::new(shares, SESSION);
            of_array(vector.add(3, Fp61::ONE, ot, channel))?;
            of_array(vector.replace(8, Fp61::ZERO, Fp61::ZERO, ot, channel))?;
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
