//! Pseudorandom correlation generators: from a few base correlations to millions.
//!
//! One pipeline, generic over the ring:
//!
//! ```text
//! ggm ──┬─> rot ──> spfss ──┬─> single ──> mpfss ──> check ──> bootstrap <── lpn          vole, cot
//! trees │   Protocols 2, 3  │   Fig. 6     Protocol 5, App. C   Protocol 6,   code, sets  base by other means,
//!       └─> half-trees ─────┘              Fig. 7               Figs. 8, 9                the stream a user draws from
//! ```
//!
//! Protocol numbers are those of *Distributed Vector-OLE* (Schoppmann, Gascón, Reichert, Raykova, CCS 2019), figures and
//! appendices those of *Ferret* (Yang, Weng, Lan, Zhang, Wang, CCS 2020). The letters of the papers are mapped in
//! `docs/notation.md`. What is special about a kind of correlation is in [`correlation`].
//!
//! | computes | talks |
//! |---|---|
//! | [`ggm`], [`pprf`], [`lpn`], [`forest`], [`correlation`], [`mpfss::Layout`], [`Plan`] | [`rot`], [`spfss`], [`single`], [`mpfss`], [`check`], [`gilboa`], [`chosen`], [`bootstrap`], [`vole`], [`cot`] |
#![forbid(unsafe_code)]

pub mod all_but_one;
pub mod bootstrap;
pub mod check;
pub mod chosen;
pub mod correlation;
pub mod cot;
pub mod forest;
pub mod ggm;
pub mod gilboa;
pub mod lpn;
pub mod mpfss;
pub mod pprf;
pub mod products;
pub mod rot;
pub mod single;
pub mod spfss;
pub mod stock;
mod stream;
pub mod switching;
pub mod vole;
pub mod wire;

mod settings;

#[cfg(test)]
mod cheating;

pub use bootstrap::{
    Base, Candidate, Kind, Link, ParseProtocolError, Plan, PlanError, Protocol, Wishes,
};
pub use settings::{Noise, ParseSettingError, Security, Trees};
pub use volery_channel::{Error, Result};
