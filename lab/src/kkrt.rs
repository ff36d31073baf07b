//! BaRK-OPRF: Tables 1 to 5 of Kolesnikov, Kumaresan, Rosulek, Trieu, *Efficient Batched Oblivious
//! PRF with Applications to Private Set Intersection*, CCS 2016, ePrint 2016/799.
//!
//! Tables 1 and 2 are computed. Tables 3 to 5 are three views of the same runs: each protocol
//! alone, for each size of the sets and over the paper's two links, with half of the items in
//! common and every result checked.
//!
//! Each table has three columns: the *published* figure; the same protocol *here* (BaRK-OPRF with
//! the paper's parameters, and our own PSSZ and naive hashing); and the default of *volery*.

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
