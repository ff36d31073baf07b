//! *Distributed Vector-OLE: Improved Constructions and Implementation* (CCS 2019), section 8:
//! Figures 3, 4 and 5.
//!
//! | module | |
//! |---|---|
//! | [`figure3`] | one point function: the index known to one party, and to neither |
//! | [`figure4`] | vector OLE compared with three slower protocols, by length, over two links |
//! | [`figure5`] | vector OLE by the number of threads |
//! | `candidate` | the protocols and their expected cost |
//! | `measure` | one run of one of them, its result checked in full |
//! | `stated` | statements in the text of the paper about the figures |
//! | `crossing` | the point at which one line falls below another |
//! | `show` | measurements as values of a table and points of a plot |

mod candidate;
mod crossing;
pub mod figure3;
pub mod figure4;
pub mod figure5;
mod measure;
mod show;
mod stated;

#[cfg(test)]
mod tests;
