//! What plans have only by name, or because their options say so: the GGM trees of the papers, and
//! uniform noise in cuckoo bins. No default leads here.
//!
//! Single-point correlations on any kind of tree ([`send_trees`], [`receive_trees`]), and
//! multi-point correlations of which both parties then hold all leaves ([`send`], [`receive`]).
//! Rounds begin here from `stream::kept`. With GGM trees the steps of Figure 6 are those of
//! Protocol 3 of the 2019 paper ([`spfss`], over [`punctured_ot`]) on chosen OTs:
//!
//! | Figure 6 | GGM trees |
//! |---|---|
//! | 2: correlated OTs | in the chosen OTs of step 4 |
//! | 3: tree, level sums | [`punctured_ot::Trees::grow`] |
//! | 4: P2's bits `b_i` | [`punctured_ot::receive`] |
//! | 4: P1's sums `M_0`, `M_1` | [`punctured_ot::Trees::send`] |
//! | 4: P1's `c` | [`spfss::send`]: `R_beta` |
//! | 5: P2's tree | [`spfss::receive`] |
//!
//! Security and cost: those of [`crate::spcot`] and [`crate::mpcot`], with `spfss` for GGM trees.

pub mod punctured_ot;
pub mod spfss;

use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use crate::{
    correlation::Correlation,
    ggm::{Growth, TreePrgs},
    mpcot::Layout,
    spcot::{self, Points},
};

/// P1: as [`spcot::send`], with any kind of tree.
///
/// # Panics
/// As there; and if GGM trees are to have random points.
pub fn send_trees<R: Ring, C: CotSender>(
    (batch, prgs): spcot::Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<()> {
    if prgs.growth() != Growth::Ggm {
        return spcot::send((batch, prgs), points, beta, leaves, rng, ot, channel);
    }
    assert!(matches!(points, Points::Chosen(_)), "points for GGM trees");
    let trees = punctured_ot::Trees::grow(batch, prgs, rng, leaves);
    spfss::send(&trees, beta, ot, channel)
}

/// P2: as [`spcot::receive`], with any kind of tree.
///
/// # Panics
/// As there; and if GGM trees are to have random points.
pub fn receive_trees<R: Ring, C: CotReceiver>(
    (batch, prgs): spcot::Public<'_>,
    points: Points<'_>,
    beta: &[R],
    leaves: &mut [R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<usize>>> {
    if prgs.growth() != Growth::Ggm {
        return spcot::receive((batch, prgs), points, beta, leaves, ot, channel);
    }
    let Points::Chosen(alphas) = points else {
        panic!("points for GGM trees");
    };
    spfss::receive(batch, prgs, alphas, beta, leaves, ot, channel)?;
    if prgs.clears_leaves() {
        for (tree, alpha) in alphas.iter().enumerate() {
            spcot::carry(&mut leaves[batch.leaves_of(tree)][*alpha]);
        }
    }
    Ok(Zeroizing::new(alphas.to_vec()))
}

/// The public state of a multi-point correlation.
#[derive(Clone, Copy)]
pub struct Public<'a> {
    /// The domain in trees.
    pub layout: &'a Layout,
    /// The trees' PRGs.
    pub prgs: &'a TreePrgs,
}

/// The leaves of all trees, and the place of each.
type PuncturedLeaves<R> = (Buffer<R>, Zeroizing<Vec<usize>>);

/// P1: the leaves of its trees; their sums over each point are its share of the function. `spare`
/// holds the `w_l`, where the correlation needs them; `leaves` is memory from [`Layout::leaves`].
///
/// # Panics
/// If `spare` does not have one value for each tree, or `leaves` one for each leaf.
#[expect(clippy::too_many_arguments, reason = "the public state, P1's inputs, and the resources")]
pub fn send<K: Correlation>(
    Public { layout, prgs }: Public<'_>,
    points: Points<'_>,
    x: K::Ring,
    spare: &[K::Ring],
    mut leaves: Buffer<K::Ring>,
    rng: &mut Prg,
    ot: &mut convert::Sender<K::KeyOt>,
    channel: &mut Channel,
) -> Result<Buffer<K::Ring>> {
    let batch = layout.batch();
    let beta = K::key_shares(x, spare, batch.trees(), channel)?; // step 3b: beta_1
    send_trees((batch, prgs), points, &beta, &mut leaves, rng, ot, channel)?; // step 4
    Ok(leaves)
}

/// P2: the leaves of its trees, and the place of each tree; the sums of the leaves over each point
/// are the negative of its share of the function.
///
/// `values[tree]` is the value of the point in each tree, and [`Correlation::EMPTY`] where there is
/// none; `spare` holds the `(u_l, v_l)`, where the correlation needs them; `leaves` is memory from
/// [`Layout::leaves`].
///
/// # Panics
/// If a length is not the layout's, or a point is not a leaf of its tree.
pub fn receive<K: Correlation>(
    Public { layout, prgs }: Public<'_>,
    points: Points<'_>,
    values: &[K::Base],
    spare: &[K::Pair],
    mut leaves: Buffer<K::Ring>,
    ot: &mut convert::Receiver<K::ValueOt>,
    channel: &mut Channel,
) -> Result<PuncturedLeaves<K::Ring>> {
    let beta = K::value_shares(values, spare, channel)?; // steps 3a and 3b: beta_2
    let trees = (layout.batch(), prgs);
    let alphas = receive_trees(trees, points, &beta, &mut leaves, ot, channel)?; // step 4
    Ok((leaves, alphas))
}

#[cfg(test)]
mod tests {
    use volery_channel::{SessionId, run_two_parties};
    use volery_field::{ExtensionOf as _, Fp61, Gf128, Ring, Z64};
    use volery_ot::ideal;
    use volery_primitives::Block;

    use super::*;
    use crate::{Trees, correlation::Vole, mpcot::Cells};

    /// A share for each point, from one for each leaf.
    fn shares<R: Ring>(layout: &Layout, leaves: Buffer<R>) -> Buffer<R> {
        if layout.is_regular() {
            return leaves;
        }
        let mut sums = Buffer::zeroed(layout.n().next_multiple_of(layout.tile()));
        layout.add_up(&leaves, 0, &mut sums);
        sums
    }

    /// Functionality 9, and Fig. 4, against a plain table. The trees' OTs are the dealer's.
    fn check<R: Ring>(layout: &Layout, trees: Trees, points: Option<&[usize]>) {
        let (sender, receiver) = ideal::pair(Block::from(3), Block::from(1));
        let x = R::random(&mut Prg::new(Block::from(30)));
        let session = SessionId::from_bytes([2; 32]);
        let prgs = TreePrgs::growing(Vole::<R>::growth(trees), session, 0);
        let public = Public { layout, prgs: &prgs };
        let count = layout.batch().trees();
        let mut dealer = Prg::new(Block::from(31));
        let mut spare_key = vec![R::ZERO; count];
        let mut spare_value = Buffer::zeroed(count);
        for (w, pair) in spare_key.iter_mut().zip(spare_value.iter_mut()) {
            let (u, v) = (R::random(&mut dealer), R::random(&mut dealer));
            *w = x.mul_base(u) + v;
            *pair = Vole::<R>::pair(u, v);
        }
        let assignment = points.map(|points| layout.assign(points));
        let at = |tree: usize| assignment.as_ref().is_none_or(|a| a.points[tree].is_some());
        let values: Vec<_> = (0..count)
            .map(|tree| if at(tree) { Vole::<R>::noise(&mut dealer) } else { R::ZERO })
            .collect();
        let chosen = assignment.is_some();
        let (r, (m, alphas)) = run_two_parties(
            |channel| {
                let mut ot = convert::Sender::new(Box::new(sender) as Box<_>, session);
                send::<Vole<R>>(
                    public,
                    if chosen { Points::Chosen(&[]) } else { Points::Random },
                    x,
                    &spare_key,
                    layout.leaves(None),
                    &mut Prg::new(Block::from(2)),
                    &mut ot,
                    channel,
                )
                .unwrap()
            },
            |channel| {
                let mut ot = convert::Receiver::new(Box::new(receiver) as Box<_>, session);
                receive::<Vole<R>>(
                    public,
                    assignment.as_ref().map_or(Points::Random, |a| Points::Chosen(&a.alphas)),
                    &values,
                    &spare_value,
                    layout.leaves(None),
                    &mut ot,
                    channel,
                )
                .unwrap()
            },
        );
        // Every leaf of every tree, including the spare ones
        for tree in 0..count {
            let places = layout.batch().leaves_of(tree);
            for (i, place) in places.enumerate() {
                let expected = if i == alphas[tree] { x.mul_base(values[tree]) } else { R::ZERO };
                assert!(r[place] - m[place] == expected, "leaf {i} of tree {tree}");
            }
        }
        // The points of the domain
        let mut table = vec![R::ZERO; layout.n()];
        for tree in (0..count).filter(|tree| at(*tree)) {
            let point = layout.point_of(tree, alphas[tree]).unwrap();
            table[point] = x.mul_base(values[tree]);
        }
        let (r, m) = (shares(layout, r), shares(layout, m));
        for point in 0..layout.n() {
            let difference = r[point] - m[point];
            assert!(difference == table[point], "point {point}");
        }
    }

    fn check_all(layout: &Layout, points: Option<&[usize]>) {
        for trees in [Trees::Ggm, Trees::Half] {
            if points.is_none() && trees == Trees::Ggm {
                continue;
            }
            check::<Fp61>(layout, trees, points);
            check::<Z64>(layout, trees, points);
            check::<Gf128>(layout, trees, points);
        }
    }

    #[test]
    fn shares_add_up_to_the_table() {
        check_all(&Layout::regular(0, 8), Some(&[]));
        check_all(&Layout::regular(1, 2), Some(&[1]));
        check_all(&Layout::regular(5, 8), Some(&[0, 15, 17, 30, 39]));
        for (blocks, size) in [(0, 8), (1, 2), (5, 8), (3, 64), (70, 4096)] {
            check_all(&Layout::regular(blocks, size), None);
        }
        for (n, t) in [(1, 1), (64, 7), (1009, 20), (5000, 100)] {
            let layout = Layout::cuckoo(n, t, 40, Block::from(6), Cells::Complete);
            let points: Vec<_> = (0..t).map(|j| j * (n / t)).collect();
            check_all(&layout, Some(&points));
            check_all(&layout, Some(&points[..t / 2]));
        }
    }

    /// GGM trees of any size, as in the 2019 paper.
    #[test]
    fn trees_that_are_not_complete() {
        for (blocks, points) in [((1, 1), &[0][..]), ((3, 5), &[4, 5, 12])] {
            let layout = Layout::regular(blocks.0, blocks.1);
            check::<Fp61>(&layout, Trees::Ggm, Some(points));
        }
        let layout = Layout::cuckoo(1009, 20, 40, Block::from(6), Cells::Exact);
        check::<Z64>(&layout, Trees::Ggm, Some(&[3, 500, 1008]));
    }
}
