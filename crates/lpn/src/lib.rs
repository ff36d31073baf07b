//! Learning parity with noise: codes, parameter sets, and estimates of the attacks.
//!
//! | module | contents |
//! |---|---|
//! | [`LocalCode`] | primal LPN: a `d`-local linear code (Ferret, section 6) |
//! | [`dual`] | dual LPN: a code that compresses noise, with its parameters |
//! | [`LpnSet`], [`sets`] | parameter sets with their estimated security |
//! | [`estimate`] | the known attacks on an instance, and the cost of each |
//!
//! This crate computes on slices; it uses no channel.
#![forbid(unsafe_code)]

mod code;
pub mod dual;
pub mod estimate;
mod noise;
mod sets;

pub use code::{Entry, GROUP, LocalCode, Pair, Parts, SubPair, SubSums, WEIGHT};
pub use noise::{Noise, ParseSettingError};
pub use sets::{Level, LpnSet, set_named, sets};
