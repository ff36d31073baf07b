//! Known-indices multi-point function secret sharing for vector-OLE: Protocol 5 of the 2019 paper.
//!
//! ```text
//! P1: x, (w_l)                            P2: points i_1 .. i_t with values y_1 .. y_t, (u_l, v_l)
//!                                         base vector-OLE: w_l = u_l*x + v_l, one for each tree l
//! 1, 2. the domain in trees ([`Layout`]), public; P2 puts each point in a tree of its own
//! 3a.                                     z_l = y of the point in tree l, 0 if it has none
//! 3b.          <---- d_l = z_l - u_l ----
//!    beta1_l = w_l + d_l*x                beta2_l = -v_l,   so that beta1_l + beta2_l = z_l*x
//! 4. ------------------------ Protocol 3 (spfss) in each tree ------------------------
//! Expand: r, the sum over the trees       m, likewise
//! ```
//!
//! such that `r - m` is `y_j*x` at point `i_j` and zero elsewhere: `r` is P1's share, `m` the negative of P2's. Where the
//! paper runs a multiplication protocol in step 3b, a base vector-OLE is spent by the correction of
//! [`crate::chosen`]; a bootstrapped stream has those in store.
//!
//! The arrangement is either regular (one point in each block of the domain) or cuckoo hashing with `kappa = 3`
//! functions and `m` bins, from `ParamGen(n, t, eta)`: [`volery_primitives::cuckoo::bins_for`]. The hash key is public
//! and comes from the session.
//!
//! Security: semi-honest. P1 sees `d`, which is uniform because each `u_l` is and is used once, and then only what Protocol 3
//! shows it; P2 sees what Protocol 3 shows it (Theorem A.6 for each tree; Theorem A.9 is the same for Protocol 4).
//! Cost: for `m` trees with `L` levels together: `m` base correlations of the base ring from P2, the OTs of Protocol 2
//! (`L` of them), `m` ring elements from P1.

mod layout;

pub use layout::{Assignment, Layout};

use volery_channel::{Channel, Result};
use volery_field::{ExtensionOf, Ring};
use volery_ot::{CotReceiver, CotSender, flavour};
use volery_primitives::{pages::Buffer, prg::Prg};
use zeroize::Zeroizing;

use crate::{chosen, ggm::TreePrgs, rot, spfss};

/// What both parties know of one instance.
#[derive(Clone, Copy)]
pub struct Public<'a> {
    /// The domain in trees.
    pub layout: &'a Layout,
    /// The trees' PRGs.
    pub prgs: &'a TreePrgs,
}

/// P1: its share of the function, one value for each point of the domain. `base` holds the `w_l`, `leaves` is memory from
/// [`Layout::leaves`].
///
/// # Panics
/// If `base` has not a value for each tree, or `leaves` not one for each leaf.
///
/// # Errors
/// If the channel or the source of OTs fails, or P2 sent what is no element of the ring.
pub fn send<B: Ring, R: ExtensionOf<B>, C: CotSender>(
    Public { layout, prgs }: Public<'_>,
    x: R,
    mut base: Zeroizing<Vec<R>>,
    mut leaves: Buffer<R>,
    rng: &mut Prg,
    ot: &mut flavour::Sender<C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    assert_eq!(
        base.len(),
        layout.forest().trees(),
        "one base correlation for each tree"
    );
    // Before anything is received: P2 may still be at work on its previous round.
    let trees = rot::Trees::grow(layout.forest(), prgs, rng, &mut leaves);
    chosen::receive_input::<B, R>(x, &mut base, channel)?; // step 3b: beta_1
    spfss::send(&trees, &base, ot, channel)?; // step 4
    Ok(layout.combine(leaves))
}

/// P2: the negative of its share of the function, one value for each point of the domain.
///
/// The value of point `j` of the assignment is `values[j]`; the base holds the `(u_l, v_l)`, `leaves` is memory from
/// [`Layout::leaves`].
///
/// # Panics
/// If the base has not a pair for each tree, `leaves` not a place for each leaf, or the assignment is of another layout.
///
/// # Errors
/// If the channel or the source of OTs fails, or P1 sent what is no element of the ring.
pub fn receive<B: Ring, R: ExtensionOf<B>, C: CotReceiver>(
    Public { layout, prgs }: Public<'_>,
    (assignment, values): (&Assignment, &[B]),
    (u, v): (&[B], &[R]),
    mut leaves: Buffer<R>,
    ot: &mut flavour::Receiver<C>,
    channel: &mut Channel,
) -> Result<Buffer<R>> {
    let z: Zeroizing<Vec<_>> = Zeroizing::new(
        assignment
            .points
            .iter()
            .map(|point| point.map_or(B::ZERO, |point| values[point]))
            .collect(),
    ); // step 3a
    chosen::send_input(&z, u, channel)?; // step 3b
    let beta: Zeroizing<Vec<_>> = Zeroizing::new(v.iter().map(|v| -*v).collect());
    spfss::receive(
        layout.forest(),
        prgs,
        &assignment.alphas,
        &beta,
        &mut leaves,
        ot,
        channel,
    )?; // step 4
    Ok(layout.combine(leaves))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use volery_channel::{SessionId, run_two_parties};
    use volery_field::{F2, Fp61, Gf128, Z64};
    use volery_ot::ideal;
    use volery_primitives::Block;

    use super::*;

    /// Functionality 9 against a plain table.
    fn check<B: Ring, R: ExtensionOf<B>>(layout: &Layout, points: &[usize]) {
        let session = SessionId::from_bytes([2; 32]);
        let prgs = TreePrgs::new(session, 0);
        let public = Public {
            layout,
            prgs: &prgs,
        };
        let trees = layout.forest().trees();
        let mut dealer = Prg::new(Block::from(31));
        let x = R::random(&mut dealer);
        let (mut u, mut v) = (vec![B::ZERO; trees], vec![R::ZERO; trees]);
        B::random_slice(&mut dealer, &mut u);
        R::random_slice(&mut dealer, &mut v);
        let mut w = v.clone();
        R::axpy_base(&mut w, x, &u);
        let values: Vec<B> = points
            .iter()
            .map(|_| B::random_noise(&mut dealer))
            .collect();
        let assignment = layout.assign(points);
        assert!(assignment.dropped.is_empty());
        let (cot_sender, cot_receiver) = ideal::pair(Block::from(3), Block::from(1));
        let (r, m) = run_two_parties(
            |channel| {
                let mut ot = flavour::Sender::new(cot_sender, session);
                let mut rng = Prg::new(Block::from(2));
                send::<B, R, _>(
                    public,
                    x,
                    w.into(),
                    layout.leaves(None),
                    &mut rng,
                    &mut ot,
                    channel,
                )
                .unwrap()
            },
            |channel| {
                let mut ot = flavour::Receiver::new(cot_receiver, session);
                receive(
                    public,
                    (&assignment, &values),
                    (&u, &v),
                    layout.leaves(None),
                    &mut ot,
                    channel,
                )
                .unwrap()
            },
        );
        let mut table = vec![R::ZERO; layout.n()];
        for (point, y) in points.iter().zip(&values) {
            table[*point] = x.mul_base(*y);
        }
        for point in 0..layout.n() {
            assert!(r[point] - m[point] == table[point], "point {point}");
        }
    }

    fn check_rings(layout: &Layout, points: &[usize]) {
        check::<Fp61, Fp61>(layout, points);
        check::<Z64, Z64>(layout, points);
        check::<Gf128, Gf128>(layout, points);
        check::<F2, Gf128>(layout, points);
    }

    #[test]
    fn shares_add_up_to_the_table() {
        check_rings(&Layout::regular(0, 8), &[]);
        check_rings(&Layout::regular(1, 1), &[0]);
        check_rings(&Layout::regular(5, 8), &[0, 15, 17, 30, 39]);
        check_rings(&Layout::regular(3, 5), &[4, 5, 12]);
        for (n, t) in [(1, 1), (64, 7), (1009, 20), (5000, 100)] {
            let layout = Layout::cuckoo(n, t, 40, Block::from(6));
            let points: Vec<_> = (0..t).map(|j| j * (n / t)).collect();
            check_rings(&layout, &points);
            check_rings(&layout, &points[..t / 2]);
        }
    }
}
