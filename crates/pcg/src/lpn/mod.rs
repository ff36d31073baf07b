//! Learning parity with noise: the code, the parameter sets, and how hard attacks on them are.

mod code;
pub mod dual;
pub mod estimate;
mod sets;

pub use code::{Entry, GROUP, Group, LocalCode, Pair, Parts, WEIGHT};
pub use sets::{Level, LpnSet, set_named, sets};
