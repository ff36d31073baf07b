//! The lowest crate of volery: blocks, AES kernels, fixed-key hashes, a pseudorandom generator,
//! sums of key streams, bit-matrix transposition, carry-less multiplication, lists of group
//! elements, gathering, band matrices and cuckoo hashing.
//!
//! This crate does no I/O with a peer. It has the only `unsafe` code of the workspace but for the
//! C library, in the calls to and the loads and stores of the kernels in `arch`. A kernel is a
//! function on whole slices. It has one readable version in `arch::portable` and one per
//! instruction set; [`Cpu`](cpu::Cpu) selects the version once per slice, never once per block.
//!
//! Everything that takes secrets runs in time and memory accesses that do not depend on them,
//! except where the documentation of a function says otherwise ([`cuckoo`] tables, the rows of
//! [`band`] matrices, [`PartialEq`] of [`Block`], the validity of group elements that a peer sent).

#![allow(
    unsafe_code,
    reason = "the calls to, and the loads and stores of, the kernels in `arch`; none on aarch64"
)]

#[cfg(target_endian = "big")]
compile_error!(
    "volery reads blocks, packed bits and wire messages in place as little-endian words; a big-endian machine would \
     compute different protocols"
);

mod align;
mod arch;
mod block;

pub mod aes;
pub mod band;
pub mod bits;
pub mod clmul;
pub mod cpu;
pub mod cuckoo;
pub mod curve25519;
pub mod fold;
pub mod gather;
pub mod hash;
pub mod keyed;
pub mod mersenne;
pub mod pages;
pub mod prefetch;
pub mod prg;
pub mod ristretto;
pub mod ro;
mod sum;
pub mod transpose;
#[cfg(feature = "testing")]
pub mod watch;
mod wiped;

pub use align::Aligned;
pub use block::Block;
pub use sum::{BlockSum, WordSums};
pub use wiped::Wiped;
