//! Tools for the tests of protocols: ideal functionalities in place of real ones, tampered
//! channels, and assertions.
//!
//! **Nothing here is secure.** A trusted dealer makes the correlations from a seed that both
//! parties hold, without a message. Its types implement the traits of the real ones, so a protocol
//! that is generic over them runs over either; their calls cannot fail:
//!
//! | ideal | real | trait |
//! |---|---|---|
//! | [`cot::pair`] | [`crate::cot`], [`crate::ot::softspoken`] | `CotSender`, `CotReceiver` |
//! | [`vole::pair`] | [`crate::vole`] | `VoleSender`, `VoleReceiver` |
//! | [`crate::ot::convert`] over that COT | over a real COT | random and chosen OT: the same types |

use volery_channel::{Channel, Session, SessionId};
use volery_primitives::{Block, prg::Prg};

/// A transport that flips bits of a party's messages, or cuts them off.
pub use volery_channel::tamper;
pub use volery_channel::{run_two_channels, run_two_parties_with_stats, run_two_unchecked};
/// Ideal correlated OT, and its assertion.
pub use volery_ot::ideal as cot;
/// Ideal vector OLE over any ring, also with `u` in a subfield, and its assertion.
pub use volery_pcg::vole::ideal as vole;

/// Two sessions over memory, connected to each other, whose ids and randomness follow from `seed`.
#[must_use]
pub fn sessions(seed: u128) -> (Session, Session) {
    let mut prg = Prg::new(Block::from(seed));
    let mut id = [0; 32];
    prg.fill_bytes(&mut id);
    let (left, right) = Channel::memory_pair();
    let session = |channel, rng| Session::new(channel, SessionId::from_bytes(id), rng);
    (session(left, prg.fork("left")), session(right, prg.fork("right")))
}
