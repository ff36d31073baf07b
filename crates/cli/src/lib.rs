//! The program `volery`. Programs use the crate `volery` instead: this one has no stable interface
//! and is a library only so that it can be tested and measured.

#![forbid(unsafe_code)]

pub mod choices;
pub mod command;
mod config;
pub mod driver;
pub mod exit;
pub mod negotiation;
pub mod npy;
mod output;
pub mod page;
pub mod party;
mod randomness;
mod report;
mod said;
mod values;
