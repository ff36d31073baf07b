//! Runs that several workers on each side share: results, resumption, and malicious peers.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cheats;
#[path = "../../../matching/tests/all/common.rs"]
mod common;
mod digest;
mod totals;
#[path = "../../../matching/tests/all/totals_common.rs"]
mod totals_common;
mod workers;
