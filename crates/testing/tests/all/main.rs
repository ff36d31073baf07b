//! The tests of all protocols that need no process of their own.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod complete;
mod corpus;
mod encodings;
mod manifests;
mod transcripts;
mod worlds;
