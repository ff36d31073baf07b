//! The channel between the two parties of a protocol.
//!
//! A [`Channel`] is a raw byte stream in both directions over any [`Transport`]: memory, TCP on the loopback
//! interface, TLS anywhere, or the caller's own. Protocols take `&mut Channel` in each call and never own it; they are blocking and
//! read like the figure in the paper.
//!
//! * **Lengths come from local state.** After the handshake nothing on the wire says how long a message is.
//! * **Writing is buffered**; [`Channel::recv`] flushes first. A public function that ends by sending ends with
//!   [`Channel::flush`].
//! * **Writing does not wait for the peer to read**, but for a moment over TCP, up to [`QUEUE_BOUND`] bytes, so both parties may
//!   send first.
//! * **Waiting is bounded** by a no-progress timeout, [`Channel::set_timeout`].
//! * **A failed channel stays failed**: after any error, every later call returns [`Error::Broken`].
//! * **Traffic is counted**, [`Channel::stats`], so that a protocol's cost can be a test.
//!
//! * **One connection, several protocols at a time**: [`lanes::split`] makes independent channels of it.
//!
//! The first bytes of a session are a [`handshake`](mod@handshake), which checks that both parties are about to run the
//! same thing and gives the [`SessionId`] that keys the hashes of the session.
//!
//! # Examples
//!
//! Two parties in one process:
//!
//! ```
//! use volery_channel::run_two_parties;
//!
//! let (question, answer) = run_two_parties(
//!     |channel| {
//!         let mut question = [0; 4];
//!         channel.recv(&mut question)?;
//!         channel.send(&[42])?;
//!         channel.flush()?;
//!         Ok::<_, volery_channel::Error>(question)
//!     },
//!     |channel| {
//!         let mut answer = [0; 1];
//!         channel.send(b"6*7?")?;
//!         channel.recv(&mut answer)?; // flushes the question first
//!         Ok::<_, volery_channel::Error>(answer)
//!     },
//! );
//! assert_eq!(question?, *b"6*7?");
//! assert_eq!(answer?, [42]);
//! # Ok::<_, volery_channel::Error>(())
//! ```
//!
//! One's own transport is a type with [`Transport::write`] and [`Transport::read`]; [`queued()`] has a Unix socket and a
//! stream of tokio as examples.

#![forbid(unsafe_code)]

mod arrivals;
mod channel;
mod error;
pub mod handshake;
pub mod lanes;
pub mod memory;
pub mod pace;
mod parties;
mod pipe;
mod queued;
pub mod shaped;
pub mod tamper;
pub mod tcp;
#[cfg(feature = "tls")]
pub mod tls;
mod transport;

pub use channel::{Channel, Stats, TranscriptHashes};
pub use error::{Error, Result};
pub use handshake::{Hello, SessionId, handshake};
pub use lanes::Lane;
pub use pace::{Pace, Side};
pub use parties::{
    run_two_channels, run_two_parties, run_two_parties_tcp, run_two_parties_with_stats,
};
pub use pipe::QUEUE_BOUND;
pub use queued::{Queued, queued};
pub use shaped::shaped;
pub use transport::Transport;
