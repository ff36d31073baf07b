//! Multiplication triples over any ring: additive shares of random `a`, `b` and of `c = a*b`.
//!
//! Beaver, *Efficient Multiparty Protocols Using Circuit Randomization*, CRYPTO 1991, from two
//! [OLEs](crate::ole), one in each direction: `a_0*b_1` and `a_1*b_0`.
//!
//! Security: semi-honest.
//!
//! Cost: for each triple two OLEs, so twice their bytes: 1040 over z64, 992 over fp61.

use volery_channel::{Channel, Result, Role};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, ZeroizeOnDrop};

use crate::{in_order, ole};

/// A party's shares of triples, `c[i] = a[i]*b[i]`; wiped when dropped.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Triples<R: Ring> {
    /// Shares of the first factors.
    pub a: Vec<R>,
    /// Shares of the second factors.
    pub b: Vec<R>,
    /// Shares of the products.
    pub c: Vec<R>,
}

/// `n` random triples; `rng` is this party's randomness.
///
/// # Errors
/// If the channel or a source of OTs fails, or if a message is not of elements.
pub fn triples<R: Ring>(
    n: usize,
    role: Role,
    ots: (&mut convert::Sender<impl CotSender>, &mut convert::Receiver<impl CotReceiver>),
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Triples<R>> {
    let mut random = || {
        let mut out = vec![R::ZERO; n];
        R::random_slice(rng, &mut out);
        out
    };
    let (a, b) = (random(), random());
    let mut ots = ots;
    let (p, q) = in_order(
        role,
        &mut ots,
        channel,
        |ots, channel| ole::send(&a, ots.0, channel),
        |ots, channel| ole::receive(&b, ots.1, channel),
    )?;
    let mut c = p.to_vec();
    R::add_slice(&mut c, &q);
    R::add_products([&a], [&b], &mut c);
    Ok(Triples { a, b, c })
}
