//! The program from outside.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;
mod paper;
mod reproduction;
mod run;
