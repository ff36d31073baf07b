//! Vector-OLE from a trusted dealer: no security at all, for the tests of upper layers.
//!
//! Both ends expand the same seed, and could compute each other's values; they send no message.
//! Compiled only with the Cargo feature `testing`, which only tests and harnesses may turn on.

use std::marker::PhantomData;

use volery_channel::{Channel, Result};
use volery_field::{ExtensionOf, Ring};
use volery_primitives::{Block, prg::Prg};

use super::{VoleReceiver, VoleSender};

/// The dealer's two ends, for this `x` and the randomness `seed`; `u` is in `B`.
pub fn pair<R: ExtensionOf<B>, B: Ring>(x: R, seed: Block) -> (Sender<R, B>, Receiver<R, B>) {
    let dealer = || Sender(Prg::new(seed), PhantomData);
    (dealer(), Receiver(x, dealer()))
}

/// The end that holds `u` and `v`.
pub struct Sender<R, B = R>(Prg, PhantomData<(R, B)>);

/// The end that holds `x`.
pub struct Receiver<R, B = R>(R, Sender<R, B>);

impl<R: ExtensionOf<B>, B: Ring> VoleSender<R, B> for Sender<R, B> {
    fn extend(&mut self, u: &mut [B], v: &mut [R], _channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        B::random_slice(&mut self.0, u);
        R::random_slice(&mut self.0, v);
        Ok(())
    }
}

impl<R: ExtensionOf<B>, B: Ring> VoleReceiver<R> for Receiver<R, B> {
    fn try_x(&self) -> Result<R> {
        Ok(self.0)
    }

    fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        let mut u = vec![B::ZERO; w.len()];
        self.1.extend(&mut u, w, channel)?;
        R::axpy_base(w, self.0, &u);
        Ok(())
    }
}

/// Checks vector-OLEs of both parties, `w = u*x + v`.
///
/// Panics if the lengths differ, or names the first wrong place, without a value.
#[track_caller]
pub fn assert_vole<R: ExtensionOf<B>, B: Ring>(x: R, u: &[B], v: &[R], w: &[R]) {
    assert_eq!([u.len(), v.len()], [w.len(); 2], "lengths of u, v and of w");
    let wrong = (0..w.len()).find(|&i| w[i] != x.mul_base(u[i]) + v[i]);
    assert_eq!(wrong, None, "the first i with w[i] != u[i]*x + v[i], of {}", w.len());
}
