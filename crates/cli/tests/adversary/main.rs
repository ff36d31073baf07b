//! The program against malicious peers, bad networks and failing systems, and the secrecy of its
//! data.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../common/mod.rs"]
mod common;

mod faults;
mod peer;
mod psi_peer;
mod secrets;
