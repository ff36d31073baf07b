//! The program `volery`, and in [`embed`] its subcommands for bindings of other languages. Programs
//! use the crate `volery` instead: this one has no stable interface.

#![forbid(unsafe_code)]

pub mod choices;
pub mod command;
mod config;
pub mod driver;
pub mod embed;
pub mod exit;
mod flat;
mod memory;
pub mod negotiation;
pub mod npy;
mod output;
pub mod page;
pub mod party;
mod randomness;
mod report;
mod results;
mod said;
mod signal;
mod system;
