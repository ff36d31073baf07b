//! BaRK-OPRF: Tables 1 to 5 of Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient Batched Oblivious PRF with Applications to
//! Private Set Intersection*, CCS 2016, ePrint 2016/799.
//!
//! Tables 1 and 2 are computed. Tables 3 to 5 are three views of the same runs: each protocol alone, for each size of the
//! sets and over the paper's two links, half of the items in common, every result checked.
//!
//! Three columns stand beside each other: what was *published*; what the same protocol does *here* (BaRK-OPRF with the
//! paper's parameters, and our own PSSZ and naive hashing); and what *volery* does by default.

mod candidate;
mod findings;
mod items;
mod measure;
mod plots;
mod published;
pub mod table1;
pub mod table2;
pub mod table3;
pub mod table4;
pub mod table5;
mod tables;
#[cfg(test)]
mod tests;
