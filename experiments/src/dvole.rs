//! *Distributed Vector-OLE: Improved Constructions and Implementation* (CCS 2019), section 8: Figures 3, 4 and 5.
//!
//! | room | |
//! |---|---|
//! | [`figure3`] | one point function: the index known to a party, and to none |
//! | [`figure4`] | vector OLE beside three slower ways, by length, over two links |
//! | [`figure5`] | vector OLE by the number of threads |
//! | `candidate` | the protocols, and what they are expected to cost |
//! | `measure` | one run of one of them, its result checked in full |
//! | `stated` | what the text of the paper says of the figures |
//! | `crossing` | where one line falls below another |
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
