//! Set intersection and keyword search: results, traffic, threads and memory.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod exact;
mod memory;
mod threads;
