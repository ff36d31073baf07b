//! Applications of vector-OLE, after section 7 of *Distributed Vector-OLE* (Schoppmann, Gascón,
//! Reichert, Raykova, CCS 2019).
//!
//! ```text
//! random vector-OLE ──> offline ──┬─> ope               one party's polynomial at points
//!                                 └─> linear ──> fixed  a matrix of each party; reals
//! mpfss                                                  values at one party's indices
//! ring_cot ─> switching                                 bit times value; a permutation
//! spcot ────> array                                     additions at one party's index
//! ```
//!
//! All protocols are functions of each party over a [`Channel`](volery_channel::Channel). Those
//! over vector-OLE have an offline phase that needs no inputs. The documentation of each module
//! states what each party learns.

#![forbid(unsafe_code)]

mod agree;
pub mod array;
mod error;
pub mod fixed;
pub mod linear;
pub mod mpfss;
pub mod offline;
pub mod ope;
pub mod ring_cot;
pub mod switching;
#[cfg(test)]
mod testing;

pub use error::{Error, Result};
