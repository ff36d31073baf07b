//! dvole

pub mod figure3;
pub mod figure4;
pub mod figure5;
