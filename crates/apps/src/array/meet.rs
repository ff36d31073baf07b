//! Comparison of the public parameters of an array and of the operation of each access.
//!
//! ```text
//! P1 (partner)                            P2 (holder)
//! 1. <---- start, n, bits of a ring element, S, crossing ---->     before the first use
//! 2.      <---- operation ----                                     in front of each leaf
//! ```
//!
//! All of it is public. No number from the peer determines a length.
//!
//! Cost: 32 bytes in both directions, once, and a byte of P2 for each access.

use volery_channel::{Channel, Error, Result};
use volery_field::Ring;

use crate::agree;

/// The way in which a structure was created.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// An array of zeros, or of values that the holder knows.
    Array = 0,
    /// An array of shared values.
    Loaded = 1,
    /// A dense vector.
    Dense = 2,
}

/// Step 1.
///
/// # Errors
/// If the channel fails; [`Error::Mismatch`] at both parties, with both values.
pub(super) fn same<R: Ring>(
    start: Start,
    length: usize,
    stash: usize,
    channel: &mut Channel,
) -> Result<()> {
    // mutant(array-kind): `start as u64` => `0`
    // mutant(array-length): `length as u64` => `0`
    let numbers = [
        ("the kind of array (0: new, 1: loaded, 2: dense vector)", start as u64),
        ("the number of entries", length as u64),
        ("the slots of the stash", stash as u64),
    ];
    agree::same_over::<R>(None, &numbers, channel)
}

/// The operations that P1 can distinguish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    Read = 0,
    Open = 1,
    Write = 2,
}

impl Operation {
    const ALL: [Self; 3] = [Self::Read, Self::Open, Self::Write];

    fn name(self) -> &'static str {
        match self {
            Self::Read => "read or add",
            Self::Open => "open or replace",
            Self::Write => "write",
        }
    }

    /// P1, step 2: compares its operation with the byte of the holder.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if they differ, [`Error::PeerMisbehaved`] if the byte denotes no
    /// operation.
    pub(super) fn meets(self, byte: u8) -> Result<()> {
        match Self::ALL.into_iter().find(|known| *known as u8 == byte) {
            // mutant(array-other-operation): `theirs == self` => `true`
            Some(theirs) if theirs == self => Ok(()),
            // no mutant: the arm before has a mutant that widens it
            Some(theirs) => Err(Error::Mismatch {
                field: "the operation".into(),
                ours: self.name().into(),
                theirs: theirs.name().into(),
            }),
            // mutant(array-no-operation): insert `None if $ON => Ok(()),`
            None => {
                Err(Error::PeerMisbehaved("the holder of an array announced an unknown operation"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_meets_itself_only() {
        for ours in Operation::ALL {
            for byte in 0..=u8::MAX {
                let met = ours.meets(byte);
                match Operation::ALL.get(usize::from(byte)) {
                    None => assert!(matches!(met, Err(Error::PeerMisbehaved(_)))),
                    Some(theirs) if *theirs == ours => assert!(met.is_ok()),
                    Some(theirs) => {
                        assert!(matches!(met, Err(Error::Mismatch { field, ours: a, theirs: b })
                            if field == "the operation" && a == ours.name() && b == theirs.name()))
                    }
                }
            }
        }
    }
}
