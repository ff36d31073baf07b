//! Oblivious key-value stores from random band matrices.
#![forbid(unsafe_code)]

pub mod params;
