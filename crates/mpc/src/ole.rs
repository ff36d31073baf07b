//! Oblivious linear evaluation: additive shares of `a[i]*b[i]` for both parties' own values; and
//! multiplication triples over any ring from it.
//!
//! ```text
//! Sender: a                               Receiver: b
//! for each i and each bit j of b[i]:
//! 1. h_0, h_1  <------ random OT on bit j of b[i] ------>  h(bit)
//! 2.           ------- h_0 - h_1 + a[i]*2^j ----->
//! 3. p[i] = -sum h_0                      q[i] = sum (h(bit) + bit * message) = a[i]*b[i] - p[i]
//! ```
//!
//! Gilboa, *Two Party RSA Key Generation*, CRYPTO 1999, by [`volery_apps::ring_cot`]. For random
//! OLE both parties draw their values. [`triples`] are Beaver's (CRYPTO 1991), shares of random
//! `a`, `b` and of `c = a*b`, from an OLE in each direction, `a_0*b_1` and `a_1*b_0`.
//!
//! Security: semi-honest. A sender that sends another message in step 2 adds an error to the
//! product if the bit is one: a caller that checks products, as [`crate::mascot`] does, tells it
//! the bit. Over fp61 each mask is within `2^-61` of uniform.
//!
//! Cost of a product, beside the source: `BITS` OTs, `BITS` bits from the receiver and `BITS`
//! elements from the sender, together 520 bytes over z64, 495.6 over fp61, 2064 over gf128; of a
//! triple, twice that. 2 messages for each 2^20 OTs.

use volery_apps::ring_cot;
use volery_channel::{Channel, Result, Role};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{bits, prg::Prg};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::in_order;

/// The sender's `p` for its values `a`.
pub fn send<R: Ring, C: CotSender>(
    a: &[R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let mut products = ring_cot::Sender::new(a.len() * R::BITS as usize, ot, channel);
    let mut p = Zeroizing::new(vec![R::ZERO; a.len()]);
    for (p, &a) in p.iter_mut().zip(a) {
        for j in 0..R::BITS {
            *p += products.multiply(a * R::power_of_two(j))?;
        }
    }
    products.finish()?;
    Ok(p)
}

/// The receiver's `q` for its values `b`: `p + q = a*b`, element by element.
pub fn receive<R: Ring, C: CotReceiver>(
    b: &[R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let width = R::BITS as usize;
    let mut choices = Zeroizing::new(vec![0; bits::bytes_for(b.len() * width)]);
    for place in 0..b.len() * width {
        let bit = b[place / width].bit((place % width) as u32).unwrap_u8();
        choices[place / 8] |= bit << (place % 8);
    }
    let mut products = ring_cot::Receiver::new(&choices, b.len() * width, ot, channel);
    let mut q = Zeroizing::new(vec![R::ZERO; b.len()]);
    for q in q.iter_mut() {
        for _ in 0..width {
            *q += products.multiply(R::ZERO)?;
        }
    }
    Ok(q)
}

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

/// `n` random triples, semi-honest; `rng` is this party's randomness.
pub fn triples<R: Ring>(
    n: usize,
    role: Role,
    mut ots: (&mut convert::Sender<impl CotSender>, &mut convert::Receiver<impl CotReceiver>),
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<Triples<R>> {
    let mut out = Triples { a: vec![R::ZERO; n], b: vec![R::ZERO; n], c: vec![R::ZERO; n] };
    R::random_slice(rng, &mut out.a);
    R::random_slice(rng, &mut out.b);
    let (p, q) = in_order(
        role,
        &mut ots,
        channel,
        |ots, channel| send(&out.a, ots.0, channel),
        |ots, channel| receive(&out.b, ots.1, channel),
    )?;
    R::add_slice(&mut out.c, &p);
    R::add_slice(&mut out.c, &q);
    R::add_products([&out.a], [&out.b], &mut out.c);
    Ok(out)
}
