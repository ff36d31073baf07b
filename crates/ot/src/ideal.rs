//! Correlated OTs from a trusted dealer: no security at all, for the tests of upper layers.
//!
//! Both ends expand the same seed, so they agree without a message; each of them could compute the
//! other's values.
//!
//! Compiled only with the Cargo feature `testing`, which nothing but tests and harnesses may turn
//! on.
//!
//! Cost: no message.

use volery_channel::Channel;
use volery_primitives::Block;
use volery_primitives::bits::clear_from;
use volery_primitives::prg::Prg;

use crate::bits::{bytes_for, correct, mask};
use crate::{CotReceiver, CotSender, Result};

/// The dealer's two ends, for the difference `delta` and the randomness `seed`.
pub fn pair(delta: Block, seed: Block) -> (Sender, Receiver) {
    (Sender { delta, dealer: Prg::new(seed) }, Receiver { delta, dealer: Prg::new(seed) })
}

/// The end that holds `delta`.
pub struct Sender {
    delta: Block,
    dealer: Prg,
}

/// The end that holds the choice bits.
pub struct Receiver {
    delta: Block,
    dealer: Prg,
}

impl CotSender for Sender {
    fn delta(&self) -> Block {
        self.delta
    }

    fn extend(&mut self, v: &mut [Block], _channel: &mut Channel) -> Result<()> {
        let mut u = vec![0; bytes_for(v.len())];
        deal(&mut self.dealer, &mut u, v);
        Ok(())
    }
}

impl CotReceiver for Receiver {
    fn extend(&mut self, u: &mut [u8], w: &mut [Block], _channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), bytes_for(w.len()), "one packed bit per correlation");
        deal(&mut self.dealer, u, w);
        correct(self.delta, w, u);
        Ok(())
    }
}

/// Checks correlated OTs of both parties, `w = v + u*delta` with packed bits `u`.
///
/// Panics if the lengths differ, or names the first wrong place, without a value.
#[track_caller]
pub fn assert_cot(delta: Block, v: &[Block], u: &[u8], w: &[Block]) {
    assert_eq!([v.len(), u.len()], [w.len(), bytes_for(w.len())], "lengths of v and u");
    let wrong = (0..w.len()).find(|&i| w[i] != v[i] ^ (mask(u, i) & delta));
    assert_eq!(wrong, None, "the first i with w[i] != v[i] + u[i]*delta, of {}", w.len());
}

/// The dealer's `u` and `v` of one call.
fn deal(dealer: &mut Prg, u: &mut [u8], v: &mut [Block]) {
    dealer.fill_blocks(v);
    // Whole blocks, so that the two ends stay in step whatever the lengths were.
    let mut bits = vec![Block::ZERO; v.len().div_ceil(128)];
    dealer.fill_blocks(&mut bits);
    u.copy_from_slice(&bytemuck::cast_slice(&bits)[..u.len()]);
    clear_from(u, v.len());
}
