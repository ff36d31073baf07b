//! A product in the orientation that takes fewer vector-OLEs.
//!
//! Cost: that of the parent module, the setup of [`offline`] for each product, and its message of
//! 48 bytes once more.

use volery_channel::{Channel, SessionId};
use volery_pcg::{Security, vole::VoleRing};
use volery_primitives::prg::Prg;

use super::{Matrix, Output, Receiver, Sender, Shape, Side};
use crate::{error::Result, offline};

/// The holder of the left factor of one product.
pub struct Left<R: VoleRing>(Shape, End<R>);

/// The holder of the right factor of one product.
pub struct Right<R: VoleRing>(Shape, End<R>);

/// The role of a party: its factor provides the vectors, or the scalars.
enum End<R: VoleRing> {
    Sender(Sender<R>),
    Receiver(Receiver<R>),
}

impl<R: VoleRing> Left<R> {
    /// The offline phase, with its own session: [`offline`] is set up for this product alone. `rng`
    /// is this party's own randomness.
    ///
    /// # Errors
    /// If the peer gives another shape, output, ring or security, or `R` does not support the
    /// security; if the channel fails or the peer misbehaves.
    pub fn offline(
        shape: Shape,
        output: Output,
        security: Security,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let end = End::offline(Side::Left, shape, output, security, session, rng, channel)?;
        Ok(Self(shape, end))
    }

    /// The online phase: this party's share, or the result, or nothing, depending on the output.
    ///
    /// # Errors
    /// If the matrix does not have the shape of the left factor; if the channel fails or the peer
    /// misbehaves.
    pub fn online(self, a: &Matrix<R>, channel: &mut Channel) -> Result<Option<Matrix<R>>> {
        self.0.check(Side::Left, a.rows(), a.columns())?;
        match self.1 {
            End::Sender(sender) => sender.online(a, channel),
            End::Receiver(receiver) => {
                let result = receiver.online(&a.transposed(), channel)?;
                Ok(result.map(|result| result.transposed()))
            }
        }
    }
}

impl<R: VoleRing> Right<R> {
    /// The offline phase, as the peer of [`Left::offline`].
    ///
    /// # Errors
    /// As there.
    pub fn offline(
        shape: Shape,
        output: Output,
        security: Security,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let end = End::offline(Side::Right, shape, output, security, session, rng, channel)?;
        Ok(Self(shape, end))
    }

    /// The online phase: this party's share, or the result, or nothing, depending on the output.
    ///
    /// # Errors
    /// If the matrix does not have the shape of the right factor; if the channel fails or the peer
    /// misbehaves.
    pub fn online(self, b: &Matrix<R>, channel: &mut Channel) -> Result<Option<Matrix<R>>> {
        self.0.check(Side::Right, b.rows(), b.columns())?;
        match self.1 {
            End::Receiver(receiver) => receiver.online(b, channel),
            End::Sender(sender) => {
                let result = sender.online(&b.transposed(), channel)?;
                Ok(result.map(|result| result.transposed()))
            }
        }
    }
}

impl<R: VoleRing> End<R> {
    fn offline(
        side: Side,
        shape: Shape,
        output: Output,
        security: Security,
        session: SessionId,
        rng: Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        // Compared before the roles, which follow from the shape, can disagree.
        super::agree::<R>(shape, output, security, channel)?;
        let vectors = shape.vectors();
        let (shape, output) = match vectors {
            Side::Left => (shape, output),
            Side::Right => (shape.transposed(), output.transposed()),
        };
        Ok(if side == vectors {
            let mut source = offline::Sender::setup(security, session, rng, channel)?;
            Self::Sender(Sender::offline(shape, output, &mut source, channel)?)
        } else {
            let mut source = offline::Receiver::setup(security, session, rng, channel)?;
            Self::Receiver(Receiver::offline(shape, output, &mut source, channel)?)
        })
    }
}
