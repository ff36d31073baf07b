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
pub type Left<R> = FactorHolder<R, true>;

/// The holder of the right factor of one product.
pub type Right<R> = FactorHolder<R, false>;

/// The holder of one factor of one product.
pub struct FactorHolder<R: VoleRing, const LEFT: bool> {
    shape: Shape,
    role: Role<R>,
}

/// The role of a party: its factor provides the vectors, or the scalars.
enum Role<R: VoleRing> {
    Sender(Sender<R>),
    Receiver(Receiver<R>),
}

impl<R: VoleRing, const LEFT: bool> FactorHolder<R, LEFT> {
    const SIDE: Side = if LEFT { Side::Left } else { Side::Right };

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
        // Compared before the roles, which follow from the shape, can disagree.
        super::agree::<R>(shape, output, security, channel)?;
        let vectors = shape.vectors();
        let (oriented, output) = match vectors {
            Side::Left => (shape, output),
            Side::Right => (shape.transposed(), output.transposed()),
        };
        let role = if Self::SIDE == vectors {
            let mut source = offline::Sender::setup(security, session, rng, channel)?;
            Role::Sender(Sender::offline(oriented, output, &mut source, channel)?)
        } else {
            let mut source = offline::Receiver::setup(security, session, rng, channel)?;
            Role::Receiver(Receiver::offline(oriented, output, &mut source, channel)?)
        };
        Ok(Self { shape, role })
    }

    /// The online phase: this party's share, or the result, or nothing, depending on the output.
    ///
    /// # Errors
    /// If the matrix does not have the shape of the factor; if the channel fails or the peer
    /// misbehaves.
    pub fn online(self, factor: &Matrix<R>, channel: &mut Channel) -> Result<Option<Matrix<R>>> {
        self.shape.check(Self::SIDE, factor.rows(), factor.columns())?;
        let run = |factor: &Matrix<R>, channel: &mut Channel| match self.role {
            Role::Sender(sender) => sender.online(factor, channel),
            Role::Receiver(receiver) => receiver.online(factor, channel),
        };
        match self.shape.vectors() {
            Side::Left => run(factor, channel),
            Side::Right => {
                let result = run(&factor.transposed(), channel)?;
                Ok(result.map(|result| result.transposed()))
            }
        }
    }
}
