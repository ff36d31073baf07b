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
//! zero. Without hashing, the trees draw their points from the choice bits of their OTs.
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

use crate::{
    correlation::Correlation,
    spcot::{Masks, Opener, Opening, Points, Public},
};

/// P1: what masks the sums of its trees, which are sent later, a few at a time; the sums of their
/// leaves over each point are its share of the function. `spare` holds the `w_l`, where the
/// correlation needs them.
pub(crate) fn begin_send<K: Correlation>(
    public: Public<'_>,
    points: Points<'_>,
    x: K::Ring,
    spare: &[K::Ring],
    ot: &mut convert::Sender<K::KeyOt>,
    channel: &mut Channel,
) -> Result<Masks<K::Ring>> {
    let beta = K::key_shares(x, spare, public.0.trees(), channel)?; // step 3b: beta_1
    Masks::begin(public, points, &beta, ot, channel) // step 4
}

/// P2: its trees, whose messages are received later, a few at a time; the sums of their leaves over
/// each point are the negative of its share of the function.
///
/// `values[tree]` is the value of the point in each tree, and [`Correlation::EMPTY`] where there is
/// none; `spare` holds the `(u_l, v_l)`, where the correlation needs them.
pub(crate) fn begin_receive<K: Correlation>(
    public: Public<'_>,
    points: Points<'_>,
    values: &[K::Base],
    spare: &[K::Pair],
    ot: &mut convert::Receiver<K::ValueOt>,
    channel: &mut Channel,
) -> Result<Opening<K::Ring>> {
    let beta = K::value_shares(values, spare, channel)?; // steps 3a and 3b: beta_2
    Opener::begin(public, points, &beta, ot, channel) // step 4
}
