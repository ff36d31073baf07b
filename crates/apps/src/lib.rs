//! What vector-OLE is used for: section 7 of *Distributed Vector-OLE* (Schoppmann, Gascón, Reichert, Raykova, CCS 2019).
//!
//! ```text
//! random vector-OLE ──> offline ──┬─> ope                  one party's polynomial at the other's points
//!                                 ├─> linear ──> fixed     one party's matrix times the other's, real numbers
//!                                 └─> convolution          one party's image, the other's kernels
//! mpfss::general ─────┬─> scatter ──> sparse               values to indices that one party knows, and back; a sparse matrix
//! switching ──────────┤
//!                     └─> array                            reads and writes at an index that one party knows
//! ```
//!
//! All are functions for both parties over a [`Channel`](volery_channel::Channel). Those over vector-OLE have an offline phase that needs
//! no inputs. What each party learns stands at the head of each module.

#![forbid(unsafe_code)]

mod agree;
pub mod array;
pub mod convolution;
mod error;
pub mod fixed;
pub mod linear;
pub mod offline;
pub mod ope;
pub mod scatter;
pub mod sparse;
#[cfg(test)]
mod testing;

pub use error::{Error, Result};
