//! One OLE for each pair of a holder's value and a helper's value.
//!
//! Gilboa, *Two party RSA key generation*, CRYPTO 1999, with one product ([`crate::ring_cot`]) for
//! each bit of the holder's value:
//!
//! ```text
//! helper (P1): x_1, x_2, ..               holder (P2): a_1, a_2, ..
//! 1.                                      bits a_ik of a_i + 2^b, k up to b; full width: of a_i
//! 2. ---- shares of a_ik * 2^k x_i (products), added up over k ----
//! 3. the share, less 2^b x_i              the share
//! ```
//!
//! The shares add up to `a_i*x_i`. The offset `2^b` turns numbers from `-2^b` up to `2^b - 1` into
//! unsigned numbers, in any ring of numbers; so `b + 1` OTs a product are enough instead of 61 or
//! 64.
//!
//! Security: semi-honest: that of the products. The helper learns only the declared `b` about `a`.
//! Cost: [`width`] products each.

use crate::ring_cot;
use volery_channel::{Channel, Result};
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::bits;
use zeroize::Zeroizing;

/// Products for each value of a holder whose values are at least `-2^bits` and below `2^bits`:
/// `bits + 1`, or the width of the ring if that is less; then any value is allowed.
pub fn width<R: Ring>(bits: u32) -> u32 {
    bits.saturating_add(1).min(R::BITS)
}

/// The offset that makes a value representable in [`width`] bits.
fn offset<R: Ring>(bits: u32) -> R {
    match width::<R>(bits) == R::BITS {
        true => R::ZERO,
        false => R::power_of_two(bits),
    }
}

/// Whether a value is at least `-2^bits` and below `2^bits`.
#[must_use]
pub fn fits<R: Ring>(value: R, bits: u32) -> bool {
    let shifted = value + offset(bits);
    (width::<R>(bits)..R::BITS).all(|k| !bool::from(shifted.bit(k)))
}

/// Helper: its shares of the products with its values `x`.
///
/// # Errors
/// If the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    bits: u32,
    x: &[R],
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Vec<R>> {
    let width = width::<R>(bits);
    let mut products = ring_cot::Sender::new(x.len() * width as usize, ot, channel);
    let mut shares = Vec::with_capacity(x.len());
    for x in x {
        let mut share = R::ZERO - offset::<R>(bits) * *x; // step 3
        for k in 0..width {
            share += products.multiply(R::power_of_two(k) * *x)?; // step 2
        }
        shares.push(share);
    }
    products.finish()?;
    Ok(shares)
}

/// Holder: its shares of the products with its values `a`.
///
/// # Panics
/// If a value does not [fit](fits).
///
/// # Errors
/// If the channel or the source of OTs fails, or the helper sent a value that is not an element of
/// the ring.
pub fn receive<R: Ring, C: CotReceiver>(
    bits: u32,
    a: &[R],
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Vec<R>> {
    assert!(a.iter().all(|a| fits(*a, bits)), "values must be within the declared bits");
    let width = width::<R>(bits) as usize;
    let count = a.len() * width;
    let mut packed = Zeroizing::new(vec![0; bits::bytes_for(count)]);
    for (i, a) in a.iter().enumerate() {
        let shifted = *a + offset(bits); // step 1
        for k in 0..width {
            let place = i * width + k;
            packed[place / 8] |= shifted.bit(k as u32).unwrap_u8() << (place % 8);
        }
    }
    let mut products = ring_cot::Receiver::new(&packed, count, ot, channel);
    let mut shares = Vec::with_capacity(a.len());
    for _ in a {
        let mut share = R::ZERO;
        for _ in 0..width {
            share += products.multiply(R::ZERO)?; // step 2
        }
        shares.push(share);
    }
    Ok(shares)
}
