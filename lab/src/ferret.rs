//! Tables 1, 3, 4 and 5 of *Ferret* (Yang, Weng, Lan, Zhang, Wang, CCS 2020, ePrint 2020/924).
//!
//! | module | |
//! |---|---|
//! | [`table1`] | malicious COT: time and bits of one correlated OT |
//! | [`table3`] | COT of both securities: time of ten million |
//! | [`table4`] | the one-time setup |
//! | [`table5`] | a malicious round, its parts apart |
//! | `published` | protocols and links, as the data files name them |
//! | `candidate` | the protocols that are measured, with their plans and forecasts |
//! | `party`, `measure` | one run of one of them, in phases; the meaning of the phases |
//! | `cells` | the measurements of a table, and their results |
//! | `tables`, `plots`, `findings` | the presentation |
//!
//! All four tables use the same measurements. Each protocol of the paper has two of ours beside it:
//! `here`, the paper's own protocol with the parameters of its Table 2 on GGM trees (for OT
//! extension, the baseline that replaces it), and `volery`, the default: half-trees with the sets
//! that the plan picks for the link, which have 128 bits.

mod candidate;
mod cells;
mod findings;
mod measure;
mod party;
mod plots;
mod published;
pub mod table1;
pub mod table3;
pub mod table4;
pub mod table5;
mod tables;
#[cfg(test)]
mod tests;
