//! The primitives against their definitions, at every level of the processor.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod aes;
mod cuckoo;
mod fold;
mod gf128;
mod hash;
mod prg;
#[cfg(not(miri))] // There is only `curve25519-dalek` then, against itself.
mod ristretto;
mod transpose;
