//! An oblivious key-value store (OKVS): a vector that gives the value of each key and, where the
//! values are random, says nothing else about the keys.
//!
//! Bienstock, Patel, Seo, Yeo, *Near-Optimal Oblivious Key-Value Stores for Efficient PSI, PSU and
//! Volume-Hiding Multi-Maps*, USENIX Security 2023 (ePrint 2023/903): each key has a row of a
//! random band matrix `M`, an encoding of the values `v` is a vector `P` with `M P = v`, and
//! decoding a key is the product of its row and `P`. Decoding is linear: `Decode(P) + Decode(Q) =
//! Decode(P + Q)`.
//!
//! | module | contents |
//! |---|---|
//! | [`Band`], [`Rows`] | the matrices under a seed: rows of keys, encoding, decoding |
//! | [`Shape`], [`Preset`] | sizes |
//! | [`Bins`] | large sets in bins, each a matrix of its own |
//!
//! # Security
//!
//! * The seed has to be drawn after the keys are fixed: a party that knows it first can choose keys
//!   whose rows are linearly dependent.
//! * [`Band::encode`] sets the columns that are not determined to zero. Such an encoding has to be
//!   masked before it is sent. One that is sent in the clear comes from [`Band::encode_random`],
//!   and hides the keys where the values are uniform.
//! * The rows depend on the keys, and memory is accessed as they say: the time of encoding and
//!   decoding depends on the keys, never on the values. Both work on local data of the party that
//!   owns the keys; only a process on the same machine can observe it, as with
//!   [cuckoo tables](volery_primitives::cuckoo).
//!
//! This crate computes on slices; it uses no channel.
#![forbid(unsafe_code)]

mod band;
mod bins;
mod eliminate;
mod params;

pub use band::{Band, EncodeError, Rows};
pub use bins::Bins;
pub use params::{Preset, Shape, bin_capacity};
pub use volery_primitives::band::Value;
