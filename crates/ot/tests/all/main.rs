//! OT between honest parties.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod base_ot;
mod common;
mod convert;
mod extension;
