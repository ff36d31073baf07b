//! Whole runs of both parties: results, resumption, and peers that cheat.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cheated_totals;
mod cheats;
mod common;
mod join;
mod resume;
mod shares;
mod totals;
mod totals_common;
