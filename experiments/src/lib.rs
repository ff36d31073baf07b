//! The papers' evaluation: every table and figure, ours beside what was published.
//!
//! The folders beside `src` hold the published figures, a file for each table or figure, each with its source, what the
//! paper measured on, what we measure and every difference.
//!
//! Nothing here is offered to users, and no list of protocols names it.

#![forbid(unsafe_code)]

pub mod baselines;
pub mod dvole;
pub mod experiment;
pub mod ferret;
pub mod kkrt;
mod published;
mod words;
