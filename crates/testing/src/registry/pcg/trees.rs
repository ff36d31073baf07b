//! Single trees and batches of trees: unchecked here, the streams above check them.

use volery_channel::Channel;
use volery_field::{Fp61, Gf128, Ring};
use volery_ot::{CotReceiver, CotSender, convert, ideal};
use volery_pcg::correlation::{Correlation, Vole};
use volery_pcg::ggm::{Growth, TreePrgs};
use volery_pcg::mpcot::{Cells, Layout};
use volery_pcg::reproduction::{self, punctured_ot};
use volery_pcg::spcot::{self, Points};
use volery_pcg::tree_batch::TreeBatch;
use volery_primitives::Block;
use volery_primitives::pages::Buffer;

use super::random;
use crate::fixtures::{SEEDS, SESSION, dealt_receiver, dealt_sender, rng};
use crate::{Model, Protocol};

/// Leaves of each tree.
const LEAVES: usize = 32;

/// The leaf of each tree that the receiver knows.
const ALPHAS: [usize; 3] = [0, 21, 31];

pub(super) fn all() -> Vec<Protocol> {
    vec![
        rot(),
        spfss(),
        ggm_trees("ggm trees", Growth::Ggm),
        ggm_trees("half-trees, hashed", Growth::PseudoCorrelated),
        correlated_trees(),
        mpfss("points in blocks", false),
        mpfss("points anywhere", true),
    ]
}

fn batch() -> TreeBatch {
    TreeBatch::regular(ALPHAS.len(), LEAVES)
}

/// The vectors of both parties are equal except at the receiver's position of each tree, where they
/// differ by `value`.
fn differ<R: Ring>(batch: &TreeBatch, r: &[R], alphas: &[usize], m: &[R], value: R) -> bool {
    let in_tree = |tree: usize| {
        let (r, m) = (&r[batch.leaves_of(tree)], &m[batch.leaves_of(tree)]);
        let mut places = r.iter().zip(m).enumerate();
        places.all(|(i, (r, m))| *r - *m == if i == alphas[tree] { value } else { R::ZERO })
    };
    (0..batch.trees()).all(in_tree)
}

fn rot() -> Protocol {
    let prgs = || TreePrgs::new(SESSION, 1);
    Protocol::new(
        "random OT of n - 1",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let trees =
                punctured_ot::Trees::grow(&batch(), &prgs(), &mut rng(SEEDS[0]), &mut leaves);
            trees.send(&mut dealt_sender(), channel)?;
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

fn spfss() -> Protocol {
    let beta = || random::<Fp61>(2, 3);
    let prgs = || TreePrgs::new(SESSION, 2);
    let batch = || TreeBatch::regular(1, LEAVES);
    Protocol::new(
        "point function",
        Model::SemiHonest,
        move |channel| {
            let mut shares = vec![Fp61::ZERO; LEAVES];
            let rng = &mut rng(SEEDS[0]);
            let (trees, points) = ((&batch(), &prgs()), Points::Chosen(&[]));
            let (beta, ot) = (&beta()[..1], &mut dealt_sender());
            reproduction::send_trees(trees, points, beta, &mut shares, rng, ot, channel)?;
            Ok(shares)
        },
        move |channel| {
            let mut shares = vec![Fp61::ZERO; LEAVES];
            let (trees, points) = ((&batch(), &prgs()), Points::Chosen(&ALPHAS[1..2]));
            let (beta, ot) = (&beta()[1..], &mut dealt_receiver());
            reproduction::receive_trees(trees, points, beta, &mut shares, ot, channel)?;
            Ok(shares)
        },
        move |left: &Vec<Fp61>, right: &Vec<Fp61>| {
            differ(&batch(), left, &ALPHAS[1..2], right, beta()[0] + beta()[1])
        },
    )
}

fn ggm_trees(name: &str, growth: Growth) -> Protocol {
    let beta = || (vec![Fp61::ONE; ALPHAS.len()], vec![Fp61::ONE; ALPHAS.len()]);
    let prgs = move || TreePrgs::growing(growth, SESSION, 3);
    Protocol::new(
        name,
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (beta, rng, ot) = (beta().0, &mut rng(SEEDS[0]), &mut dealt_sender());
            let (points, trees) = (Points::Chosen(&[]), (&batch(), &prgs()));
            reproduction::send_trees(trees, points, &beta, &mut leaves, rng, ot, channel)?;
            Ok(leaves)
        },
        move |channel| {
            let mut leaves = vec![Fp61::ZERO; batch().leaves()];
            let (beta, ot) = (beta().1, &mut dealt_receiver());
            let (points, trees) = (Points::Chosen(&ALPHAS), (&batch(), &prgs()));
            reproduction::receive_trees(trees, points, &beta, &mut leaves, ot, channel)?;
            Ok(leaves)
        },
        |r: &Vec<Fp61>, m: &Vec<Fp61>| differ(&batch(), r, &ALPHAS, m, Fp61::ONE + Fp61::ONE),
    )
}

/// The trees of a correlated OT: their positions come from the choice bits, and the value is the
/// OTs' difference.
fn correlated_trees() -> Protocol {
    let prgs = || TreePrgs::growing(Growth::Correlated, SESSION, 4);
    Protocol::new(
        "half-trees, correlated",
        Model::SemiHonest,
        move |channel| {
            let mut leaves = vec![Gf128::ZERO; batch().leaves()];
            let (rng, ot) = (&mut rng(SEEDS[0]), &mut dealt_sender());
            let beta = vec![Gf128::new(ot.delta()); ALPHAS.len()];
            let trees = (&batch(), &prgs());
            spcot::send(trees, Points::Random, &beta, &mut leaves, rng, ot, channel)?;
            Ok((beta[0], leaves))
        },
        move |channel| {
            let mut leaves = vec![Gf128::ZERO; batch().leaves()];
            let (beta, ot) = (vec![Gf128::ZERO; ALPHAS.len()], &mut dealt_receiver());
            let trees = (&batch(), &prgs());
            let alphas = spcot::receive(trees, Points::Random, &beta, &mut leaves, ot, channel)?;
            Ok((alphas.to_vec(), leaves))
        },
        |(delta, r): &(Gf128, Vec<Gf128>), (alphas, m): &(Vec<usize>, Vec<Gf128>)| {
            differ(&batch(), r, alphas, m, *delta)
        },
    )
}

/// The kind of correlation of the multi-point functions.
type Kind = Vole<Fp61>;

/// The values at the receiver's positions, for `trees` trees.
fn values(layout: &Layout) -> (Vec<usize>, Vec<Fp61>) {
    let places: &[usize] = if layout.is_regular() { &[3, 40, 95] } else { &[0, 50, 94, 7] };
    let assignment = layout.assign(places);
    let value = |point: &Option<usize>| point.map_or(Fp61::ZERO, |_| Fp61::ONE);
    (assignment.alphas.to_vec(), assignment.points.iter().map(value).collect())
}

fn mpfss(name: &str, anywhere: bool) -> Protocol {
    let layout = move || {
        if anywhere {
            Layout::cuckoo(95, 4, 40, Block::new(6), Cells::Complete)
        } else {
            Layout::regular(ALPHAS.len(), LEAVES)
        }
    };
    let prgs = || TreePrgs::growing(Growth::PseudoCorrelated, SESSION, 5);
    let x = || random::<Fp61>(1, 3)[0];
    let spare = move || {
        let trees = layout().batch().trees();
        let (u, v) = (random::<Fp61>(trees, 4), random::<Fp61>(trees, 5));
        let w: Vec<_> = (0..trees).map(|i| u[i] * x() + v[i]).collect();
        let pairs: Vec<_> = (0..trees).map(|i| Kind::pair(u[i], v[i])).collect();
        (w, pairs)
    };
    let send = move |channel: &mut Channel| {
        let (layout, prgs) = (&layout(), &prgs());
        let (dealer, _) = ideal::pair(Block::new(9), Block::new(6));
        let source: Box<dyn CotSender + Send> = Box::new(dealer);
        let ot = &mut convert::Sender::new(source, SESSION);
        let (batch, rng, points) = (layout.batch(), &mut rng(SEEDS[0]), Points::Chosen(&[]));
        let beta = Kind::key_shares(x(), &spare().0, batch.trees(), channel)?;
        let mut r = layout.leaves(None);
        spcot::send((batch, prgs), points, &beta, &mut r, rng, ot, channel)?;
        Ok(r)
    };
    let receive = move |channel: &mut Channel| {
        let (layout, prgs) = (&layout(), &prgs());
        let (_, dealer) = ideal::pair(Block::new(9), Block::new(6));
        let source: Box<dyn CotReceiver + Send> = Box::new(dealer);
        let ot = &mut convert::Receiver::new(source, SESSION);
        let (alphas, values) = values(layout);
        let beta = Kind::value_shares(&values, &spare().1, channel)?;
        let (public, points) = ((layout.batch(), prgs), Points::Chosen(&alphas));
        let mut m = layout.leaves(None);
        spcot::receive(public, points, &beta, &mut m, ot, channel)?;
        Ok(m)
    };
    Protocol::new(
        name,
        Model::SemiHonest,
        send,
        receive,
        move |r: &Buffer<Fp61>, m: &Buffer<Fp61>| {
            let layout = layout();
            let (alphas, values) = values(&layout);
            let batch = layout.batch();
            (0..batch.trees()).all(|tree| {
                let mut places = batch.leaves_of(tree).enumerate();
                places.all(|(i, place)| {
                    let here = i == alphas[tree];
                    let value = if here { values[tree] } else { Fp61::ZERO };
                    r[place] - m[place] == value * x()
                })
            })
        },
    )
}
