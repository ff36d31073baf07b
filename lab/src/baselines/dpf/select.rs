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
