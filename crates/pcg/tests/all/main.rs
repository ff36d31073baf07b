//! Streams and sessions, both parties: results, costs, threads. One program: each one compiles the
//! protocols anew for every ring.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[cfg(feature = "gpu")]
mod card;
mod common;
mod cost;
mod cot;
mod dual;
mod mistakes;
mod own_ring;
mod threads;
mod value_bits;
mod vole;
