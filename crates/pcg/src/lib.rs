//! Pseudorandom correlation generators: from a few base correlations to millions.
//!
//! A user needs [`cot`] (correlated OT) or [`vole`] (vector-OLE), and [`plan`] to choose how the
//! correlations are made. One pipeline, generic over the ring, is behind both:
//!
//! ```text
//! ggm ──> spcot ──> mpcot ──> check ──> stream <── volery-lpn
//! trees                                 rounds     codes, sets
//! ```
//!
//! | module | protocol | channel |
//! |---|---|---|
//! | [`cot`] | Ferret Figure 9: COT including setup; `cot::shared_setup` for several | yes |
//! | [`vole`] | Protocol 6: vector-OLE including setup; `vole::shared_setup` for several | yes |
//! | [`plan`] | the parameter schedule, by a cost model | no |
//! | [`error`] | the errors of calls and plans | - |
//! | `stream` | Protocol 6 and Ferret Figures 8 and 9: rounds of primal LPN; instances of dual LPN (Silent OT) | yes |
//! | `check` | the consistency check of all trees of a round: Ferret Appendix C | yes |
//! | `mpcot` | Protocol 5 (known-index MPFSS), multi-point COT of Ferret | yes, except `Layout` |
//! | `spcot` | Ferret Figure 6 (SPCOT), also for vector-OLE, on half-trees (ePrint 2022/1431) | yes |
//! | `ggm`, `tree_batch` | trees, many at once | no |
//! | `reproduction` | by name or option only: GGM trees (Protocols 3 and 2), uniform noise | yes |
//! | `correlation` | the kinds of correlation and their parameters | no |
//! | `gilboa` | multiplication by OT: the base of a vector-OLE | yes |
//! | `derandomize` | chosen inputs for a random vector-OLE (Proposition 10 of *Compressing Vector OLE*) | yes |
//! | `cot_buffer` | correlated OTs reserved by an earlier round | no |
//! | `agree` | what both parties are about to start | yes |
//! | `wire` | ring elements on the channel | yes |
//!
//! Protocol numbers are those of *Distributed Vector-OLE* (Schoppmann, Gascón, Reichert, Raykova,
//! CCS 2019), figures and appendices those of *Ferret* (Yang, Weng, Lan, Zhang, Wang, CCS 2020).
//! The letters of the papers are mapped in `docs/notation.md`. Protocol 4 (general MPFSS) is
//! `volery_apps::mpfss`.
//!
//! The modules of the steps are not part of the public interface. The crates above this one see
//! some of them, hidden from the documentation; the others are public with the feature
//! `reproduction`. In these modules a function with a channel fails if the channel or a source of
//! OTs fails, or if the peer's message has a value that is not one of the ring or group; `# Errors`
//! names further causes. A slice whose length is not that of the others or of the batch is a panic.
#![forbid(unsafe_code)]

#[cfg(feature = "gpu")]
pub mod card;
pub mod cot;
pub mod derandomize;
pub mod error;
pub mod plan;
pub mod vole;

#[doc(hidden)]
pub mod correlation;
#[doc(hidden)]
pub mod ggm;
#[doc(hidden)]
pub mod gilboa;
#[doc(hidden)]
pub mod mpcot;
#[doc(hidden)]
pub mod spcot;
#[doc(hidden)]
pub mod tree_batch;
#[doc(hidden)]
pub mod wire;

#[cfg(feature = "reproduction")]
pub mod check;
#[cfg(feature = "reproduction")]
pub mod reproduction;

#[cfg(not(feature = "reproduction"))]
#[allow(dead_code, unreachable_pub, reason = "public with `reproduction`")]
mod check;
#[cfg(not(feature = "reproduction"))]
#[allow(dead_code, unreachable_pub, reason = "public with `reproduction`")]
mod reproduction;

mod agree;
mod cot_buffer;
mod settings;
mod stream;

#[cfg(test)]
mod malicious;

pub use plan::{
    Base, Candidate, Kind, MAX_SUBSTREAMS, ParseProtocolError, Plan, PlanError, PlanOptions,
    Protocol,
};
pub use settings::{Device, Security, Trees};
pub use volery_channel::{Error, Link, Result, Role, Session};
#[doc(hidden)]
pub use volery_lpn as lpn;
pub use volery_lpn::{Noise, ParseSettingError};
