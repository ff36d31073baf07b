//! The two parties of any source of vector-OLE: a stream, a saved batch, or a dealer in tests.

use volery_channel::{Channel, Result};
use volery_field::{F2, Gf128, Ring};
use volery_ot::{CotReceiver, CotSender};
use volery_primitives::bits;
use zeroize::Zeroizing;

use super::{Receiver, Sender, VoleRing};

/// The holder of `u` in `B` and of `v` in `R`; in a vector-OLE over one ring, `B` is `R`.
///
/// Both parties call `extend` with the same lengths. An implementation writes no output before its
/// checks have passed, and refuses every call after a failed one, with its state deleted.
pub trait VoleSender<R, B = R> {
    /// Fills `u` and `v` with fresh values: the receiver's `w = u*x + v`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// If the channel fails, or the peer is caught deviating: `u` and `v` must not be used then.
    /// [`Error::Broken`](crate::Error::Broken) if an earlier call failed.
    fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()>;
}

/// The holder of `x`, which gets `w = u*x + v` in `R`.
pub trait VoleReceiver<R> {
    /// The receiver's `x`, the same for all correlations of this source.
    ///
    /// # Panics
    /// If a call failed: `x` is deleted with the rest of the state.
    fn x(&self) -> R {
        self.try_x().expect("no earlier call on this source of vector-OLE failed")
    }

    /// As [`x`](Self::x), without its panic.
    ///
    /// # Errors
    /// [`Error::Broken`](crate::Error::Broken) if a call failed, here or on an object that shares
    /// secrets with this one.
    fn try_x(&self) -> Result<R>;

    /// Fills `w` with fresh values.
    ///
    /// # Errors
    /// The errors of [`VoleSender::extend`].
    fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()>;
}

impl<B: Ring, R: VoleRing<B>> VoleSender<R, B> for Sender<R, B> {
    fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()> {
        Self::extend(self, u, v, channel)
    }
}

impl<B: Ring, R: VoleRing<B>> VoleReceiver<R> for Receiver<R, B> {
    fn try_x(&self) -> Result<R> {
        self.stream.try_secret()
    }

    fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
        Self::extend(self, w, channel)
    }
}

/// Correlated OT as a vector OLE with `u` in F2: of a COT receiver the holder of `u` and `v`, of a
/// COT sender that of `x`, its `delta`.
pub struct FromCot<C>(pub C);

impl<C: CotReceiver> VoleSender<Gf128, F2> for FromCot<C> {
    fn extend(&mut self, u: &mut [F2], v: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        let mut bits = Zeroizing::new(vec![0; bits::bytes_for(u.len())]);
        self.0.extend(&mut bits, bytemuck::cast_slice_mut(v), channel)?;
        u.iter_mut().enumerate().for_each(|(i, u)| *u = F2::new(bits::bit(&bits, i)));
        Ok(())
    }
}

impl<C: CotSender> VoleReceiver<Gf128> for FromCot<C> {
    fn try_x(&self) -> Result<Gf128> {
        self.0.try_delta().map(Gf128::new)
    }

    fn extend(&mut self, w: &mut [Gf128], channel: &mut Channel) -> Result<()> {
        self.0.extend(bytemuck::cast_slice_mut(w), channel)
    }
}

macro_rules! forward {
    ($($pointer:ty),*) => {$(
        impl<R, B, V: VoleSender<R, B> + ?Sized> VoleSender<R, B> for $pointer {
            fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()> {
                (**self).extend(u, v, channel)
            }
        }

        impl<R, V: VoleReceiver<R> + ?Sized> VoleReceiver<R> for $pointer {
            fn try_x(&self) -> Result<R> {
                (**self).try_x()
            }

            fn extend(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()> {
                (**self).extend(w, channel)
            }
        }
    )*};
}

forward!(&mut V, Box<V>);
