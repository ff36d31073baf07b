//! Products of a bit that is shared by XOR and a value that is shared additively, from one random
//! OT each way.
//!
//! With `b = b^0 + b^1` and `D = D^0 + D^1`, the part `b*D^p` of party `p` is the output of an OT
//! whose sender is `p` and whose choice is the other's bit: `b^p D^p` for 0 and `(1 - b^p) D^p` for
//! 1. As correlated OT in the ring it takes one message:
//!
//! ```text
//! Sender: b, D, keys K_0, K_1             Receiver: its bit c, K_c
//!       ---- t = G(K_0) - G(K_1) + (1 - 2b)D ---->
//! share  bD - G(K_0)                      share  G(K_c) + c*t
//! ```
//!
//! A party of [`super`] is sender of one and receiver of the other; its share of the product is the
//! sum of the two.

use volery_field::Ring;
use volery_primitives::Block;

/// Elements of one product.
pub(super) trait Width<R>: AsRef<[R]> + AsMut<[R]> + Copy {
    /// `G`: pads from the message of a random OT.
    fn pads(key: Block) -> Self;
}

impl<R: Ring> Width<R> for [R; 1] {
    fn pads(key: Block) -> Self {
        [R::from_block(key)]
    }
}

impl<R: Ring> Width<R> for [R; 2] {
    fn pads(key: Block) -> Self {
        assert_eq!(R::WORDS, 1, "a block is two pads");
        [key.low(), key.high()].map(|word| R::from_words(&[word]))
    }
}

/// Sender: the message `t` and its share.
pub(super) fn offer<R: Ring, W: Width<R>>(bit: bool, value: W, keys: [Block; 2]) -> (W, W) {
    let [zero, one] = keys.map(W::pads);
    let (mut message, mut share) = (value, value);
    let lines = message.as_mut().iter_mut().zip(share.as_mut());
    for ((message, share), (zero, one)) in lines.zip(zero.as_ref().iter().zip(one.as_ref())) {
        let value = *share;
        *share = pick(bit, value) - *zero;
        *message = *zero - *one + value - pick(bit, value + value);
    }
    (message, share)
}

/// Receiver: its share.
pub(super) fn take<R: Ring, W: Width<R>>(choice: bool, key: Block, message: W) -> W {
    let mut share = W::pads(key);
    for (share, message) in share.as_mut().iter_mut().zip(message.as_ref()) {
        *share += pick(choice, *message);
    }
    share
}

/// `x` if `bit`, else zero.
pub(super) fn pick<R: Ring>(bit: bool, x: R) -> R {
    R::conditional_select(&R::ZERO, &x, u8::from(bit).into())
}

#[cfg(test)]
mod tests {
    use volery_field::{Fp61, Gf128, Z64};
    use volery_primitives::prg::Prg;

    use super::*;

    fn check<R: Ring, W: Width<R>>(random: &mut Prg) {
        for bits in 0..4 {
            let bits = [bits & 1 == 1, bits & 2 == 2];
            let keys = [random.block(), random.block()];
            let value = W::pads(random.block());
            let (message, share) = offer(bits[0], value, keys);
            let other = take(bits[1], keys[usize::from(bits[1])], message);
            for (i, value) in value.as_ref().iter().enumerate() {
                let product = pick(bits[0] ^ bits[1], *value);
                assert!(share.as_ref()[i] + other.as_ref()[i] == product);
            }
        }
    }

    #[test]
    fn the_shares_are_of_the_product() {
        let mut random = Prg::new(Block::new(4));
        check::<Fp61, [Fp61; 1]>(&mut random);
        check::<Fp61, [Fp61; 2]>(&mut random);
        check::<Z64, [Z64; 2]>(&mut random);
        check::<Gf128, [Gf128; 1]>(&mut random);
    }
}
