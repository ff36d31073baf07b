//! The program `volery`: the command line and the terminal around `volery-run` and `volery-serve`.
//! Programs use the crate `volery` instead: this one has no stable interface.

#![forbid(unsafe_code)]

pub mod command;
mod config;
mod exit;
mod flat;
mod signal;
mod terminal;
