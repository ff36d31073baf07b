//! One run of a front end, from its options to its result, report and files: a match, correlations,
//! computations on private numbers, and the small calls around them. Knows no command line, no
//! terminal and no end of a process: a front end fills the options, by their names or otherwise,
//! and hears of the run by [`reporter`]. [`embed`] has the calls of bindings.
//!
//! Programs use the crate `volery` instead: this one has no stable interface.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod choices;
pub mod cluster;
pub mod cot;
pub mod driver;
pub mod embed;
pub mod endpoint;
pub mod failure;
mod files;
pub mod guard;
pub mod identity;
pub mod keygen;
pub mod lint;
pub mod matching;
pub mod matvec;
pub mod memory;
pub mod negotiation;
pub mod npy;
pub mod numbers;
pub mod ope;
pub mod options;
pub mod output;
pub mod page;
pub mod party;
pub mod paths;
mod pin_file;
pub mod progress;
pub mod proxy;
pub mod randomness;
pub mod report;
pub mod reporter;
mod results;
mod ring;
mod shares;
pub mod stream;
pub mod system;
pub mod totals;
pub mod verify;
pub mod vole;
pub mod web;
