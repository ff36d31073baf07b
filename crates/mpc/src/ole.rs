//! Oblivious linear evaluation of both parties' own values: additive shares of `a[i]*b[i]`.
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
//! OLE both parties draw their values.
//!
//! Security: semi-honest. A sender that sends another message in step 2 adds an error to the
//! product if the bit is one: a caller that checks products, as [`crate::spdz`] does, tells it the
//! bit. Over fp61 each product is within `2^-61` of a uniform mask for each bit.
//!
//! Cost for each product beside the source of correlated OTs: `BITS` OTs, `BITS` bits from the
//! receiver and `BITS` elements from the sender: 520 bytes over z64, 496 over fp61, 2064 over
//! gf128. 2 messages for each 2^20 OTs.

use volery_apps::ring_cot;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::bits;
use zeroize::Zeroizing;

/// The sender's `p` for its values `a`.
///
/// # Errors
/// If the channel or the source of OTs fails.
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
///
/// # Errors
/// If the channel or the source of OTs fails, or if the sender's message is not of elements.
pub fn receive<R: Ring, C: CotReceiver>(
    b: &[R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let width = R::BITS as usize;
    let mut choices = Zeroizing::new(vec![0; bits::bytes_for(b.len() * width)]);
    for (i, b) in b.iter().enumerate() {
        for j in 0..R::BITS {
            let place = i * width + j as usize;
            choices[place / 8] |= b.bit(j).unwrap_u8() << (place % 8);
        }
    }
    let mut products = ring_cot::Receiver::new(&choices, b.len() * width, ot, channel);
    let mut q = Zeroizing::new(vec![R::ZERO; b.len()]);
    for q in q.iter_mut() {
        for _ in 0..R::BITS {
            *q += products.multiply(R::ZERO)?;
        }
    }
    Ok(q)
}
