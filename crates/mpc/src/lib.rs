//! Building blocks of two-party computation, over any source of correlated OT and vector OLE.
//!
//! | module | gives | secure against |
//! |---|---|---|
//! | [`one_of_n`] | OT of one of N messages | as the source, also malicious |
//! | [`bits`] | multiplication triples over F2 | semi-honest |
//! | [`ole`] | products of both parties' values, triples, over any ring | semi-honest |
//! | [`authenticated`] | authenticated values over F2 and fp61, their products | malicious |
//! | [`tinyot`], [`mascot`] | authenticated triples over F2; over fp61 | malicious |
//! | [`saved`] | batches of correlations in files that are read once | - |
//!
//! The sources are behind the traits of [`volery_ot`] and [`volery_pcg::vole`]: a stream, a saved
//! batch, or a dealer in tests. Both parties make the same calls in the same order, with opposite
//! [`Role`]s. The role says who speaks first, and nothing about who holds what.
//!
//! Unless a function says otherwise, it fails as its source or the channel does, with
//! [`Error::PeerMisbehaved`] if a check fails, and with [`Error::Broken`] after a failed call.
#![forbid(unsafe_code)]

mod agree;
pub mod authenticated;
pub mod bits;
pub mod mascot;
pub mod ole;
pub mod one_of_n;
pub mod saved;
pub mod tinyot;

pub use volery_channel::{Error, Result, Role};
/// Elements of rings on the channel.
pub use volery_pcg::wire;

use volery_channel::Channel;
use volery_field::Ring;

/// The statistical security parameter: a deviating peer passes a check, or learns a bit that it
/// should not, with probability at most `2^-40`.
pub const STATISTICAL: usize = 40;

/// Runs two steps, of which the peer runs the counterparts in the other order: `first` before
/// `second` with [`Role::Sender`].
fn in_order<C, A, B>(
    role: Role,
    context: &mut C,
    channel: &mut Channel,
    first: impl FnOnce(&mut C, &mut Channel) -> Result<A>,
    second: impl FnOnce(&mut C, &mut Channel) -> Result<B>,
) -> Result<(A, B)> {
    if role == Role::Sender {
        let a = first(context, channel)?;
        channel.flush()?;
        return Ok((a, second(context, channel)?));
    }
    let b = second(context, channel)?;
    let a = first(context, channel)?;
    channel.flush()?;
    Ok((a, b))
}

/// Sends elements and receives as many.
fn exchange<R: Ring>(role: Role, own: &[R], channel: &mut Channel) -> Result<Vec<R>> {
    let mut theirs = vec![R::ZERO; own.len()];
    let send = |_: &mut _, channel: &mut Channel| wire::send(own, channel);
    in_order(role, &mut theirs, channel, send, |theirs: &mut Vec<R>, channel| {
        // mutant(mpc-canonical): ignore
        wire::recv(theirs, "an exchanged value is not in canonical form", channel)?;
        Ok(())
    })?;
    Ok(theirs)
}
