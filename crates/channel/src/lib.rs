//! The channel between the two parties of a protocol.
//!
//! A [`Channel`] is a raw byte stream in both directions over any [`Transport`]: memory, TCP on the
//! loopback interface, TLS on any network, or the caller's own. Protocols take `&mut Channel` in
//! each call and never own it; they block and follow the paper's figure.
//!
//! * **Lengths come from local state.** After the handshake no message carries its length.
//! * **Writing is buffered**; [`Channel::recv`] flushes first. A public function that ends by
//!   sending ends with [`Channel::flush`].
//! * **Writing does not wait for the peer to read**, except briefly over TCP, up to [`QUEUE_BOUND`]
//!   bytes, so both parties may send first.
//! * **Waiting is bounded** by a no-progress timeout, [`Channel::set_timeout`].
//! * **A failed channel stays failed**: after any error, every later call returns
//!   [`Error::Broken`].
//! * **Traffic is counted**, [`Channel::stats`], so that tests can check a protocol's cost.
//!
//! * **One connection carries several protocols at a time**: [`mux::side_by_side`] gives each a
//!   channel of its own.
//!
//! The first message of a session is the [`handshake`](mod@handshake), which checks that both
//! parties are about to run the same protocol and gives the [`SessionId`] that keys the hashes of
//! the session.
//!
//! A [`service`] answers many clients at once. With the feature `web` a bridge, or a service, lets
//! browsers in.
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
//! A custom transport implements [`Transport::write`] and [`Transport::read`]; [`queued()`] has a
//! Unix socket as an example. With the feature `tokio` any stream of tokio carries a channel.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod agree;
mod alive;
mod cancel;
mod channel;
mod error;
mod exchange;
#[cfg(feature = "tls")]
pub mod gateway;
pub mod handshake;
pub mod link;
pub mod memory;
pub mod mux;
mod parties;
mod pipe;
mod pool;
mod queued;
mod role;
#[cfg(feature = "tls")]
pub mod service;
mod session;
pub mod shaped;
pub mod step;
#[cfg(any(test, feature = "testing"))]
pub mod tamper;
#[cfg(feature = "tcp")]
pub mod tcp;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "tokio")]
pub mod tokio;
mod transport;
#[cfg(feature = "web")]
pub mod web;

pub use alive::{framed, greeted};
pub use cancel::{Cancel, CancelLink};
pub use channel::{Channel, Stats, TranscriptHashes};
pub use error::{Error, Result};
pub use handshake::{Hello, SessionId, handshake};
pub use link::Link;
#[cfg(feature = "tcp")]
pub use parties::run_two_parties_tcp;
pub use parties::{
    run_two_channels, run_two_parties, run_two_parties_with_stats, run_two_unchecked,
};
pub use pipe::QUEUE_BOUND;
pub use pool::Pool;
pub use queued::{Queued, queued};
pub use role::Role;
pub use session::Session;
pub use shaped::shaped;
pub use transport::Transport;
