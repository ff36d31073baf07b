//! The computation of a round of correlated OT or vector OLE on a CUDA card.
//!
//! This crate computes only: trees, the code, the sums of the check, and the hash that makes random
//! OTs. The protocols are in `volery-pcg`, which uses it for parties whose plan names a card, with
//! the same messages as without one. The kernels are in `kernels/`, in CUDA C++, with the PTX that
//! the driver compiles for the card; `kernels/build.py` makes it again, to the byte.
//!
//! | what | on the card | twin |
//! |---|---|---|
//! | half-trees of depth 9 to 12 | [`Trees::grow`], [`Trees::grow_punctured`] | `volery_pcg::ggm` |
//! | sums of the consistency check | [`Trees::inner_products`] | `volery_pcg::check` |
//! | local code, 1, 2 or 4 instances, 2^a rows | [`Code::encode`] | `volery_lpn::LocalCode` |
//! | hash of random OTs | [`hash_chosen`], [`hash_pairs`] | `primitives::hash::Tweaked` |
//!
//! Security: no kernel branches on a secret. The table of AES is in shared memory, with one copy
//! in the bank of each lane, so that the time of a look-up does not depend on its address. The
//! table of the code is read at public places. A value holder writes eight leaves of each tree to a
//! place that follows from its secret point, in its own memory, as on a processor. [`Memory`] and
//! [`Pinned`] are wiped when they are dropped. What this crate cannot wipe: registers and shared
//! memory, which the driver clears before another process gets them (not where processes share a
//! card by MPS); the driver's own memory, through which it copies from and to memory that is not
//! pinned, and which holds the parameters of [`hash_pairs`]. Who controls the machine of the card
//! reads all of it.
//!
//! Work that is asked for through one [`Device`] happens in order. Another device of the same card
//! may write to a [`Part`]: memory is ready when the function that makes it returns. Who then reads
//! it through a third waits for the second first.

mod cuda;
pub mod dlpack;
mod error;
mod kernels;

pub(crate) use cuda::{Blocks, Upload};
pub use cuda::{Device, Memory, Part, Pinned, count};
pub use error::{Error, Result};
pub use kernels::{
    Code, Entry, Leaf, Outputs, TreeInputs, Trees, exchange_bit, hash_chosen, hash_pairs, take_bits,
};
