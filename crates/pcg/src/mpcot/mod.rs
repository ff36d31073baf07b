//! Multi-point correlations: known-indices MPFSS for vector-OLE (Protocol 5 of the 2019 paper) and
//! multi-point COT (Ferret Figure 7, MPCOT).
//!
//! ```text
//! P1: x, (w_l)                            P2: points i_1 .. i_t with values y_1 .. y_t, (u_l, v_l)
//!                                         base vector-OLE: w_l = u_l*x + v_l, one for each tree l
//! 1, 2. the domain in trees ([`Layout`]), public; P2 puts each point in a separate tree
//! 3a.                                     z_l = y of the point in tree l, 0 if it has none
//! 3b.          <---- d_l = z_l - u_l ----
//!    beta1_l = w_l + d_l*x                beta2_l = -v_l,   so that beta1_l + beta2_l = z_l*x
//! 4. ---------------- a single-point correlation (spcot) in each tree ----------------
//! Expand: r, the sum over the trees       m, likewise
//! ```
//!
//! such that `r - m` is `y_j*x` at point `i_j` and zero elsewhere: `r` is P1's share, `m` the
//! negative of P2's. Where the paper runs a multiplication protocol in step 3b, the correction of
//! `derandomize` consumes a base vector-OLE; a bootstrapped stream has those in reserve.
//! In a correlated OT all `y` are 1 and `x` is `delta`, so step 3 is empty: `beta1 = delta`, `beta2
//! = 0`.
//!
//! The arrangement is either regular (one point in each block of the domain) or cuckoo hashing with
//! `kappa = 3` functions and `m` bins, from `ParamGen(n, t, eta)`:
//! [`volery_primitives::cuckoo::bins_for`]. The hash key is public and comes from the session: the
//! points are drawn after it, by a party that cannot gain by a bad draw. A bin has an extra cell
//! (Fig. 7, step 4), the place of a tree that has no point; in a vector-OLE the value there is
//! zero. Without hashing, half-trees draw their points from the choice bits of their OTs.
//!
//! Additively shared values, rather than products with P1's one `x`, are the case of Protocol 4:
//! `volery_apps::mpfss`.
//!
//! Security: that of [`crate::spcot`] and, for a malicious round, of `check` on the leaves
//! that this module returns. P1 sees `d`, which is uniform because each `u_l` is and is used once.
//! P2's points and values index and branch in its own memory only (`layout`). Theorems A.6 and A.9
//! of the 2019 paper; Theorem 2 of Ferret.
//!
//! Cost: for `m` trees with `L` levels together: `m` base correlations and ring elements from P2
//! (vector-OLE), the OTs of the trees (`L` of them), and the messages of [`crate::spcot`].

mod layout;

pub use layout::{Assignment, Cells, Layout};

use volery_channel::{Channel, Result};
use volery_ot::convert;
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use crate::{
    correlation::Correlation,
    ggm::{Growth, TreePrgs},
    spcot::{self, Points},
};

/// The public state of one instance.
#[derive(Clone, Copy)]
pub struct Public<'a> {
    /// The domain in trees.
    pub layout: &'a Layout,
    /// The trees' PRGs.
    pub prgs: &'a TreePrgs,
}

/// The leaves of all trees, and the place of each.
type PuncturedLeaves<R> = (Buffer<R>, Zeroizing<Vec<usize>>);

impl Public<'_> {
    /// Whether the points follow from the choice bits of the trees' OTs: half-trees, each over a
    /// separate block.
    #[must_use]
    pub fn draws_points(&self) -> bool {
        self.layout.is_regular() && self.prgs.growth() != Growth::Ggm
    }
}

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
    spcot::send((batch, prgs), points, &beta, &mut leaves, rng, ot, channel)?; // step 4
    Ok(leaves)
}

/// P1: as [`send`], on half-trees that are sent later, a few at a time. It may have expanded them
/// before.
pub(crate) fn begin_send<K: Correlation>(
    trees: &mut spcot::Sender<K::Ring>,
    Public { layout, prgs }: Public<'_>,
    points: Points<'_>,
    x: K::Ring,
    spare: &[K::Ring],
    ot: &mut convert::Sender<K::KeyOt>,
    channel: &mut Channel,
) -> Result<()> {
    let batch = layout.batch();
    let beta = K::key_shares(x, spare, batch.trees(), channel)?; // step 3b: beta_1
    trees.begin(batch, prgs, points, &beta, ot, channel) // step 4
}

/// P2: as [`receive`], on half-trees that are received and rebuilt later, a few at a time.
pub(crate) fn begin_receive<K: Correlation>(
    Public { layout, prgs }: Public<'_>,
    points: Points<'_>,
    values: &[K::Base],
    spare: &[K::Pair],
    ot: &mut convert::Receiver<K::ValueOt>,
    channel: &mut Channel,
) -> Result<spcot::Receiver<K::Ring>> {
    let beta = K::value_shares(values, spare, channel)?; // steps 3a and 3b: beta_2
    spcot::Receiver::begin(layout.batch(), prgs, points, &beta, ot, channel) // step 4
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
    let batch = layout.batch();
    let alphas = spcot::receive((batch, prgs), points, &beta, &mut leaves, ot, channel)?; // step 4
    Ok((leaves, alphas))
}

#[cfg(test)]
mod tests {
    use volery_channel::{SessionId, run_two_parties};
    use volery_field::{ExtensionOf as _, Fp61, Gf128, Ring, Z64};
    use volery_ot::ideal;
    use volery_primitives::Block;

    use super::*;
    use crate::{Trees, correlation::Vole};

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
