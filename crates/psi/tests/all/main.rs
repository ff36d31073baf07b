//! Set intersection and keyword search: results, threads and memory.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod intersect;
mod lookup;
mod memory;
mod threads;
