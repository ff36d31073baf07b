//! The two parties of any source of vector-OLE, for protocols that run over every source: this
//! module's [`Sender`](super::Sender) and [`Receiver`](super::Receiver), a saved batch, or a
//! trusted dealer in tests.

use volery_channel::{Channel, Result};
use volery_field::Ring;

use super::{Receiver, Sender, VoleRing};

/// The holder of `u` in `B` and of `v` in `R`; in a vector-OLE over one ring, `B` is `R`.
///
/// `extend` may be called any number of times, with any lengths; the receiver must make the same
/// calls with the same lengths. An implementation must not write an output that has not passed its
/// checks. After a failed call it must refuse every later one with
/// [`Error::Broken`](crate::Error::Broken), and should have deleted its state.
pub trait VoleSender<R, B = R> {
    /// Fills `u` and `v` with fresh values: the receiver's `w = u*x + v`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// If the channel fails, or if the peer is caught deviating. The content of `u` and `v` is then
    /// unspecified and must not be used. [`Error::Broken`](crate::Error::Broken) if an earlier call
    /// failed.
    fn extend(&mut self, u: &mut [B], v: &mut [R], channel: &mut Channel) -> Result<()>;
}

/// The holder of `x`, which gets `w = u*x + v` in `R`.
pub trait VoleReceiver<R> {
    /// The receiver's `x`, the same for all correlations of this source.
    ///
    /// # Panics
    /// If a call failed: `x` is deleted with the rest of the state, as the peer may know some of
    /// it.
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
