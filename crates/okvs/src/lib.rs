//! Oblivious key-value stores from random band matrices.
#![forbid(unsafe_code)]

mod params;

pub use params::{Preset, Shape, bin_capacity};
