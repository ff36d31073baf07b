//! Building blocks of two-party computation, over any source of correlated OT and vector OLE.
//!
//! | module | gives | secure against |
//! |---|---|---|
//! | [`one_of_n`] | OT of one of N messages | as the source: a malicious peer over a malicious-secure source |
//! | [`ole`] | shares of products of both parties' values, over any ring | semi-honest |
//! | [`bits`] | multiplication triples over F2 | semi-honest |
//! | [`arithmetic`] | multiplication triples over any ring | semi-honest |
//! | [`authenticated`] | authenticated bits and triples over F2, their opening and product | malicious |
//! | [`spdz`] | authenticated elements and triples over fp61, their opening and product | malicious |
//! | [`saved`] | batches of correlations in files that are read once | - |
//!
//! All of them take their correlations from the traits [`CotSender`](volery_ot::CotSender),
//! [`CotReceiver`](volery_ot::CotReceiver), [`VoleSender`](volery_pcg::vole::VoleSender) and
//! [`VoleReceiver`](volery_pcg::vole::VoleReceiver): a stream of `volery_pcg`, a batch from a file,
//! or a trusted dealer in tests.
//!
//! Both parties call the same functions in the same order, with opposite [`Role`]s. The role says
//! who speaks first, and nothing about who holds what.
#![forbid(unsafe_code)]

mod agree;
pub mod arithmetic;
pub mod authenticated;
pub mod bits;
pub mod ole;
pub mod one_of_n;
pub mod saved;
pub mod spdz;

pub use volery_channel::{Error, Result, Role};

use volery_channel::Channel;

/// The statistical security parameter: a deviating peer passes each check, and learns a bit that it
/// should not, with probability at most `2^-40`.
pub const STATISTICAL: usize = 40;

/// Runs two steps of which the peer runs the counterparts: `first` before `second` with
/// [`Role::Sender`], after it with [`Role::Receiver`].
fn in_order<C, A, B>(
    role: Role,
    context: &mut C,
    channel: &mut Channel,
    first: impl FnOnce(&mut C, &mut Channel) -> Result<A>,
    second: impl FnOnce(&mut C, &mut Channel) -> Result<B>,
) -> Result<(A, B)> {
    match role {
        Role::Sender => {
            let a = first(context, channel)?;
            channel.flush()?;
            Ok((a, second(context, channel)?))
        }
        Role::Receiver => {
            let b = second(context, channel)?;
            let a = first(context, channel)?;
            channel.flush()?;
            Ok((a, b))
        }
    }
}

/// Sends `own` and receives as many bytes, in the order of the roles.
fn exchange(role: Role, own: &[u8], channel: &mut Channel) -> Result<Vec<u8>> {
    let mut theirs = vec![0; own.len()];
    let (send, recv) = (|_: &mut (), c: &mut Channel| c.send(own), &mut theirs);
    in_order(role, &mut (), channel, send, |_, channel| channel.recv(recv))?;
    Ok(theirs)
}
