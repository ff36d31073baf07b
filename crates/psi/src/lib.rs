//! Private set intersection and keyword search, each by several protocols.
//!
//! * [`vole`]: *VOLE-PSI*, in a malicious, a fast and a low-communication form, for sets of
//!   thousands of items and more: it sends the fewest bytes an item;
//! * [`dh`]: Diffie-Hellman, malicious, for sets of up to some hundreds of items: it has no setup
//!   and takes two round trips;
//! * [`count`]: the number of common items alone, semi-honest;
//! * [`served`]: a server that prepares a large set once, and answers small queries of many
//!   clients;
//! * [`circuit`]: semi-honest circuit-PSI: shares of which items are common and of their values,
//!   for sums and counts of which only totals are opened;
//! * [`noise`]: exact discrete Laplace and Gaussian noise, for totals that are opened;
//! * [`choice`]: the fastest protocol for two sizes, a link and a security.
//!
//! All other modules are the older protocol of Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient
//! Batched Oblivious PRF with Applications to Private Set Intersection*, CCS 2016, each built on
//! those above it:
//!
//! * [`code`]: the pseudorandom code of Lemma 1, and how wide it must be;
//! * [`oprf`]: the batched related-key OPRF of Figure 2, with a separate offline phase;
//! * [`params`]: bins, stash and widths from the sizes of two sets;
//! * [`intersect`]: private set intersection, Figure 3;
//! * [`lookup`]: keyword search, also called string-select OT.
//!
//! Roles: the *sender* (Alice in the paper) has a set and learns nothing, the *receiver* (Bob)
//! learns which of its items are in it. The protocols of CCS 2016 are **semi-honest**: they protect
//! against a peer that follows the protocol and inspects everything it receives. The documentation
//! of each module states its security, and what either side learns.
//!
//! Items are byte strings of any length, distinct on each side, and fixed when a call begins: both
//! parties draw the keys of all hash functions after that. Computation runs in the current pool of
//! `rayon`.
//!
//! # Examples
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_primitives::prg::Prg;
//! use volery_psi::{Receiver, Result, Sender, Settings};
//!
//! // Between two processes, the session comes from `volery_channel::handshake`.
//! let session = SessionId::from_bytes([7; 32]);
//! let settings = Settings::default();
//! let (sent, received) = run_two_parties(
//!     |channel| -> Result<_> {
//!         let items = ["ash", "birch", "cedar"];
//!         let sender = Sender::setup(session, Prg::from_os()?, channel)?; // offline
//!         sender.intersect(&items[..], settings, &mut (), channel)
//!     },
//!     |channel| -> Result<_> {
//!         let items = ["cedar", "oak", "ash", "yew"];
//!         let receiver = Receiver::setup(session, Prg::from_os()?, channel)?;
//!         receiver.intersect(&items[..], settings, &mut (), channel)
//!     },
//! );
//! assert_eq!(received?.common, [0, 2]); // cedar and ash
//! assert_eq!(sent?.parameters.receiver_items, 4); // the sizes are all the sender learns
//! # Ok::<_, volery_psi::Error>(())
//! ```

#![forbid(unsafe_code)]

mod agree;
pub mod choice;
pub mod circuit;
pub mod code;
pub mod count;
#[cfg(test)]
mod counting;
pub mod dh;
mod duplicates;
mod error;
mod failure;
#[cfg(test)]
mod fixtures;
mod index;
pub mod intersect;
pub mod items;
pub mod kkrt;
pub mod lookup;
pub mod matching;
pub mod noise;
pub mod oprf;
pub mod params;
mod partition;
mod receiver_table;
pub mod results;
mod rice;
mod sender_set;
pub mod served;
mod session;
mod shuffle;
#[cfg(feature = "testing")]
pub mod testing;
mod truncate;
pub mod vole;
mod watch;

pub use error::{Error, Result};
pub use failure::Failure;
pub use items::Items;
pub use params::{Parameters, Variant};
pub use session::{Receiver, Sender, Settings};
pub use watch::{Phase, Watch};
