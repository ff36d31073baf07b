#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(not(feature = "simulation"))]
#[path = "system.rs"]
mod place;
#[cfg(feature = "simulation")]
#[path = "simulated/mod.rs"]
mod place;

pub use place::*;
