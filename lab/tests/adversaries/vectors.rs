//! The baselines of vector-OLE.

use volery_bench::baselines::dpf::{self, Input, Ots};
use volery_bench::baselines::dvole::{Batching, Plan};
use volery_bench::baselines::{dvole, floram, gilboa, whole_domain};
use volery_channel::Channel;
use volery_field::{Fp61, Ring, Z64};
use volery_ot::{convert, ideal};
use volery_pcg::mpcot::{Cells, Layout};
use volery_pcg::tree_batch::TreeBatch;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;

use volery_testing::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use volery_testing::{Model, Protocol};

pub(super) fn all() -> Vec<Protocol> {
    vec![
        dpf(),
        floram(),
        whole_domain(),
        multiplied(
            "gilboa, fp61",
            gilboa::send::<Fp61>,
            gilboa::receive::<Fp61>,
        ),
        multiplied("gilboa, z64", gilboa::send::<Z64>, gilboa::receive::<Z64>),
        vector_ole(),
    ]
}

/// A dealer's OTs in both directions; `first` selects a party's end.
fn ots(first: bool) -> Ots<ideal::Sender, ideal::Receiver> {
    let (there, back) = (Block::new(3), Block::new(4));
    let [offered, chosen] = if first { [there, back] } else { [back, there] };
    Ots {
        sender: convert::Sender::new(ideal::pair(Block::new(5), offered).0, SESSION),
        receiver: convert::Receiver::new(ideal::pair(Block::new(5), chosen).1, SESSION),
    }
}

pub(super) fn random(n: usize, seed: u128) -> Vec<Fp61> {
    let mut out = vec![Fp61::ZERO; n];
    Fp61::random_slice(&mut rng(seed), &mut out);
    out
}

/// Leaves of each tree.
const LEAVES: usize = 19;

/// The shares of the position in each tree.
const ALPHAS: [[usize; 3]; 2] = [[5, 30, 0], [7, 21, 18]];

fn dpf() -> Protocol {
    let forest = || TreeBatch::regular(3, LEAVES);
    let betas = || [random(3, 2), random(3, 3)];
    let party = move |which: usize, channel: &mut Channel| {
        let mut leaves = vec![Fp61::ZERO; forest().leaves()];
        let input = Input {
            alphas: &ALPHAS[which],
            betas: &betas()[which],
        };
        let (names, mut ots, mut rng) = ((SESSION, 1), ots(which == 0), rng(SEEDS[which]));
        match which {
            0 => dpf::first(
                &forest(),
                names,
                input,
                &mut leaves,
                &mut ots,
                &mut rng,
                channel,
            )?,
            _ => dpf::second(
                &forest(),
                names,
                input,
                &mut leaves,
                &mut ots,
                &mut rng,
                channel,
            )?,
        }
        Ok(leaves)
    };
    Protocol::new(
        "distributed point functions",
        Model::SemiHonest,
        move |channel| party(0, channel),
        move |channel| party(1, channel),
        move |r: &Vec<Fp61>, m: &Vec<Fp61>| {
            let [first, second] = betas();
            (0..3).all(|tree| {
                let alpha = ALPHAS[0][tree] ^ ALPHAS[1][tree];
                let mut places = forest().leaves_of(tree).enumerate();
                places.all(|(i, place)| {
                    let value = if i == alpha {
                        first[tree] + second[tree]
                    } else {
                        Fp61::ZERO
                    };
                    r[place] - m[place] == value
                })
            })
        },
    )
}

/// Points of a domain of [`DOMAIN`].
const POINTS: [usize; 3] = [2, 30, 39];
const DOMAIN: usize = 40;

fn floram() -> Protocol {
    let layout = || Layout::cuckoo(DOMAIN, POINTS.len(), 40, Block::new(6), Cells::Complete);
    let betas = move |seed| random(layout().batch().trees(), seed);
    Protocol::new(
        "point functions in buckets",
        Model::SemiHonest,
        move |channel| {
            let (mut ots, mut rng) = (ots(true), rng(SEEDS[0]));
            let (layout, betas) = (layout(), betas(2));
            floram::key_holder(&layout, &betas, (SESSION, 2), &mut rng, &mut ots, channel)
        },
        move |channel| {
            let (mut ots, mut rng) = (ots(false), rng(SEEDS[1]));
            let (layout, betas) = (layout(), betas(3));
            let alphas = layout.assign(&POINTS).alphas.to_vec();
            let points = (&alphas[..], &betas[..]);
            floram::value_holder(&layout, points, (SESSION, 2), &mut rng, &mut ots, channel)
        },
        move |r: &Buffer<Fp61>, m: &Buffer<Fp61>| {
            let (first, second) = (betas(2), betas(3));
            let trees = layout().assign(&POINTS).points.clone();
            (0..DOMAIN).all(|point| {
                let here = |tree: &Option<usize>| tree.is_some_and(|j| POINTS[j] == point);
                let value = trees.iter().position(here);
                let value = value.map_or(Fp61::ZERO, |tree| first[tree] + second[tree]);
                r[point] - m[point] == value
            })
        },
    )
}

fn whole_domain() -> Protocol {
    let betas = || [random(3, 2), random(3, 3)];
    Protocol::new(
        "points by whole trees",
        Model::SemiHonest,
        move |channel| {
            let mut sums = vec![Fp61::ZERO; DOMAIN];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            whole_domain::key_holder(&betas()[0], SESSION, &mut sums, rng, ot, channel)?;
            Ok(sums)
        },
        move |channel| {
            let mut sums = vec![Fp61::ZERO; DOMAIN];
            let (betas, ot) = (&betas()[1], &mut dealt_receiver());
            whole_domain::value_holder(&POINTS, betas, SESSION, &mut sums, ot, channel)?;
            Ok(sums)
        },
        move |r: &Vec<Fp61>, m: &Vec<Fp61>| {
            let [first, second] = betas();
            (0..DOMAIN).all(|point| {
                let place = POINTS.iter().position(|other| *other == point);
                let value = place.map_or(Fp61::ZERO, |j| first[j] + second[j]);
                r[point] - m[point] == value
            })
        },
    )
}

/// Entries of a product.
const N: usize = 20;

type Send<R> = fn(
    usize,
    volery_channel::SessionId,
    &mut volery_primitives::prg::Prg,
    &mut Channel,
) -> volery_channel::Result<(Vec<R>, Vec<R>)>;

type Receive<R> = fn(
    usize,
    volery_channel::SessionId,
    &mut volery_primitives::prg::Prg,
    &mut Channel,
) -> volery_channel::Result<(R, Vec<R>)>;

fn multiplied<R: Ring>(name: &str, send: Send<R>, receive: Receive<R>) -> Protocol {
    Protocol::new(
        name,
        Model::SemiHonest,
        move |channel| send(N, SESSION, &mut rng(SEEDS[0]), channel),
        move |channel| receive(N, SESSION, &mut rng(SEEDS[1]), channel),
        |(u, v): &(Vec<R>, Vec<R>), (x, w): &(R, Vec<R>)| (0..N).all(|i| w[i] == u[i] * *x + v[i]),
    )
}

/// With the paper's smallest instance: the cheapest one.
fn vector_ole() -> Protocol {
    let plan = || Plan::paper80(N, Batching::Floram).expect("a set of the paper");
    Protocol::new(
        "vector-OLE by point functions",
        Model::SemiHonest,
        move |channel| dvole::send::<Fp61>(&plan(), SESSION, &mut rng(SEEDS[0]), channel),
        move |channel| dvole::receive::<Fp61>(&plan(), SESSION, &mut rng(SEEDS[1]), channel),
        |(u, v): &(Vec<Fp61>, Vec<Fp61>), (x, w): &(Fp61, Vec<Fp61>)| {
            (0..N).all(|i| w[i] == u[i] * *x + v[i])
        },
    )
}
