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
//!
//! ```
//! use volery::prelude::*;
//! use volery::testing::{cot, sessions};
//!
//! let delta = Block::from(77);
//! let (mut sender, mut receiver) = cot::pair(delta, Block::from(1));
//! let (mut left, mut right) = sessions(2);
//! let (mut v, mut u, mut w) = ([Block::ZERO; 9], [0; 2], [Block::ZERO; 9]);
//! sender.extend(&mut v, &mut left)?;
//! receiver.extend(&mut u, &mut w, &mut right)?;
//! cot::assert_cot(delta, &v, &u, &w); // names the first wrong place, and prints no value
//! # Ok::<_, Error>(())
//! ```

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
