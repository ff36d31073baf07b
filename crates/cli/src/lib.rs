//! Correlated randomness between two parties who do not trust each other, and what runs on it.
//!
//! This crate is the face of the library, one module a room, and the `volery` command ([`command::main`]). Two parties
//! make correlations, and neither learns the other's half:
//!
//! | | sender | receiver | |
//! |---|---|---|---|
//! | vector OLE | vectors `u, v` | random `x`, vector `w` | `w = u*x + v` over a ring |
//! | correlated OT | random `delta`, blocks `v` | bits `u`, blocks `w` | `w = v + u*delta` in GF(2)^128 |
//!
//! ```
//! use volery::channel::{SessionId, run_two_parties};
//! use volery::field::{Fp61, Ring};
//! use volery::pcg::{Error, Link, Security, vole};
//! use volery::primitives::prg::Prg;
//!
//! let plan = vole::plan::<Fp61>(Some(1000), Link::default(), Security::Malicious)?;
//! let session = SessionId::from_bytes([7; 32]); // between two processes, from `channel::handshake`
//! let (sender, receiver) = run_two_parties(
//!     |channel| {
//!         let (mut u, mut v) = (vec![Fp61::ZERO; 1000], vec![Fp61::ZERO; 1000]);
//!         let mut sender = vole::Sender::setup(&plan, session, Prg::from_os()?, channel)?;
//!         sender.extend(&mut u, &mut v, channel)?;
//!         Ok::<_, Error>((u, v))
//!     },
//!     |channel| {
//!         let mut w = vec![Fp61::ZERO; 1000];
//!         let mut receiver = vole::Receiver::setup(&plan, None, session, Prg::from_os()?, channel)?;
//!         receiver.extend(&mut w, channel)?;
//!         Ok::<_, Error>((receiver.x(), w))
//!     },
//! );
//! let ((u, v), (x, w)) = (sender?, receiver?);
//! assert!((0..1000).all(|i| w[i] == u[i] * x + v[i]));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! [`psi`] intersects two private sets, and answers private look-ups. [`apps`] evaluates polynomials, multiplies matrices, and reads and writes
//! arrays where only one party knows. [`pcg::cot`] has the same as above for correlated OT. Security is malicious by default, where there is such a form; see
//! [`pcg::Security`].

#![forbid(unsafe_code)]

pub mod command;
mod deal;
mod ends;
mod exit;
pub mod npy;
mod output;
mod party;
mod report;

/// Blocks, AES, hashes, generators, cuckoo hashing.
pub use volery_primitives as primitives;

/// Rings and whole-slice operations.
pub use volery_field as field;

/// Oblivious polynomial evaluation, linear algebra, sparse vectors, semi-private arrays.
pub use volery_apps as apps;

/// The channel between the two parties.
pub use volery_channel as channel;

/// Oblivious transfer.
pub use volery_ot as ot;

/// From a few correlations to millions: trees, LPN, vector OLE.
pub use volery_pcg as pcg;

/// Oblivious PRF, private set intersection, keyword search.
pub use volery_psi as psi;

/// Tables of records: keys out of CSV and Parquet files, matching rows into new ones.
pub use volery_records as records;

/// The example of the README, compiled and run by the documentation tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
