//! Baselines that the protocols of volery are compared with.
//!
//! Nothing here is offered to users, and no list of protocols names it. The rooms:
//!
//! * [`naive`]: exchanging hashes of the items; **insecure**, the floor under every comparison;
//! * [`kk13`]: random 1-out-of-256 OT of Kolesnikov and Kumaresan, CRYPTO 2013;
//! * [`pssz`]: private set intersection of Pinkas, Schneider, Segev and Zohner, USENIX Security 2015, over `kk13`;
//! * [`hybrid`]: which of `pssz` and BaRK-OPRF is the cheaper for given sizes.
//!
//! The folders beside `src` hold the published tables of the papers, each with its source and all differences.
//!
//! All protocols find the common items of two sets for the receiver, and assume that a party's items are all different.
//! They are semi-honest at most.

#![forbid(unsafe_code)]

#[cfg(test)]
mod cases;
pub mod hybrid;
pub mod kk13;
mod matching;
pub mod naive;
pub mod pssz;

/// How many items the parties have; both know both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The sender's.
    pub sender: usize,
    /// The receiver's.
    pub receiver: usize,
}

impl Sizes {
    /// Nothing can be in common: no protocol sends anything.
    #[must_use]
    pub const fn is_trivial(self) -> bool {
        self.sender == 0 || self.receiver == 0
    }

    /// Pairs of an item of each.
    fn pairs(self) -> f64 {
        self.sender as f64 * self.receiver as f64
    }
}
