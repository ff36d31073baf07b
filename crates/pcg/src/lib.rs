//! Pseudorandom correlation generators: from a few base correlations to millions.
//!
//! One pipeline, generic over the ring:
//!
//! ```text
//! ggm ──> rot ──────> spfss ───> mpfss ───> bootstrap <── lpn        vole
//! tree    Protocol 2  Protocol 3 Protocol 5 Protocol 6,   code, sets base by gilboa,
//!                                           round by round           the stream a user draws from
//! ```
//!
//! Protocol numbers are those of *Distributed Vector-OLE* (Schoppmann, Gascón, Reichert, Raykova, CCS 2019). The
//! letters of the papers are mapped in `docs/notation.md`.
//!
//! | computes | talks |
//! |---|---|
//! | [`ggm`], [`pprf`], [`lpn`], [`forest`], [`mpfss::Layout`], [`Plan`] | [`rot`], [`spfss`], [`mpfss`], [`gilboa`], [`chosen`], [`bootstrap`], [`vole`] |
#![forbid(unsafe_code)]

pub mod bootstrap;
pub(crate) mod check;
pub mod chosen;
pub mod correlation;
pub mod cot;
pub mod forest;
pub mod ggm;
pub mod gilboa;
pub mod lpn;
pub mod mpfss;
pub mod pprf;
pub mod rot;
pub mod single;
pub mod spfss;
pub mod stock;
mod stream;
pub mod vole;
mod wire;

mod settings;

pub use bootstrap::{Base, Kind, Link, Plan, PlanError, Wishes};
pub use settings::{Noise, ParseSettingError, Security, Trees};
pub use volery_channel::{Error, Result};
