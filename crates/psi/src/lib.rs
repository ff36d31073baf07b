//! Batched oblivious PRF, private set intersection and keyword search, after Kolesnikov, Kumaresan, Rosulek, Trieu,
//! *Efficient Batched Oblivious PRF with Applications to Private Set Intersection*, CCS 2016.
//!
//! The rooms of this crate, each on top of the ones before:
//!
//! * [`code`]: the pseudorandom code of Lemma 1, and how wide it must be;
//! * [`oprf`]: the batched related-key OPRF of Figure 2, with its offline phase apart;
//! * [`params`]: bins, stash and widths from the sizes of two sets;
//! * [`intersect`]: private set intersection, Figure 3;
//! * [`lookup`]: keyword search, also called string-select OT.
//!
//! Roles: the *sender* (Alice in the paper) has a set and learns nothing, the *receiver* (Bob) learns which of its items are
//! in it. All protocols here are **semi-honest**: they protect against a peer that follows the protocol and looks at all it
//! gets. What either side learns is in the documentation of each module.
//!
//! Items are byte strings of any length, all different on each side, and fixed when a call begins: the keys of all hash
//! functions are drawn by both parties after that. Computation runs in the current pool of `rayon`.
//!
//! # Examples
//!
//! ```
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_primitives::prg::Prg;
//! use volery_psi::{Receiver, Result, Sender, Settings};
//!
//! let session = SessionId::from_bytes([7; 32]); // between two processes, from `volery_channel::handshake`
//! let settings = Settings::default();
//! let (sent, received) = run_two_parties(
//!     |channel| -> Result<_> {
//!         let items = ["ash", "birch", "cedar"];
//!         let rng = Prg::from_os().map_err(volery_channel::Error::Io)?;
//!         let sender = Sender::setup(session, rng, channel)?; // offline
//!         sender.intersect(&items[..], settings, &mut (), channel)
//!     },
//!     |channel| -> Result<_> {
//!         let items = ["cedar", "oak", "ash", "yew"];
//!         let rng = Prg::from_os().map_err(volery_channel::Error::Io)?;
//!         let receiver = Receiver::setup(session, rng, channel)?;
//!         receiver.intersect(&items[..], settings, &mut (), channel)
//!     },
//! );
//! assert_eq!(received?.common, [0, 2]); // cedar and ash
//! assert_eq!(sent?.parameters.receiver_items, 4); // the sizes are all the sender learns
//! # Ok::<_, volery_psi::Error>(())
//! ```

#![forbid(unsafe_code)]

mod agree;
pub mod code;
mod cut;
mod distinct;
mod error;
mod halves;
mod index;
pub mod intersect;
pub mod items;
pub mod lookup;
mod offer;
pub mod oprf;
mod order;
pub mod params;
mod parting;
mod placement;
mod watch;

pub use error::{Error, Result};
pub use halves::{Receiver, Sender, Settings};
pub use items::Items;
pub use params::{Parameters, Variant};
pub use watch::{Phase, Watch};
