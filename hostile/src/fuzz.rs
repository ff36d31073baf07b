//! What the fuzz targets of `fuzz/` run: functions that take any bytes, and panic where a promise is broken.
//!
//! They are here and not beside the fuzzer so that `cargo test` runs them on every file of the corpora that are kept,
//! with the compiler that everything else is built with (`tests/corpus.rs`).
//!
//! | target | the input stands for | what is promised |
//! |---|---|---|
//! | `handshake` | the peer's bytes: raw, or a hello with edits | an error or the peer's settings are ours; messages are short and printable |
//! | `wire` | a protocol, a side of it, and edits of what an honest peer sends it | the party ends; with the honest bytes its result is the honest one; after edits a checked protocol has an error or that result |
//! | `csv` | options, then a text file | as a plain parser written apart from it says; what is written parses again to the same rows |
//! | `parquet` | options, then a Parquet file | two readings are the same; what is written parses again to the same keys |
//! | `npy` | an array, or the four arrays of two folders | what is read and written again is the same; `volery verify` accepts what holds and nothing else |
//! | `identity` | a fingerprint, an identity file, a peer's bytes under TLS, or changes on the way | what is read is written the same; nobody but the peer is let in, and what is heard is what the peer said |
//!
//! No input may make one panic, hang, or take memory that its size does not explain; the last two are the fuzzer's to
//! see.

mod csv;
mod edits;
mod files;
mod handshake;
mod identity;
mod npy;
mod parquet;
mod reference;
mod replay;
mod wire;

pub use csv::csv;
pub use handshake::handshake;
pub use identity::identity;
pub use npy::npy;
pub use parquet::parquet;
pub use wire::{wire, wire_input};

/// A target by its name: the folder of its corpus, and the file that hands it to the fuzzer.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 6] = [
    ("handshake", handshake),
    ("wire", wire),
    ("csv", csv),
    ("parquet", parquet),
    ("npy", npy),
    ("identity", identity),
];

/// Decisions out of the bytes of an input; zeros when they are used up.
struct Script<'a>(&'a [u8]);

impl<'a> Script<'a> {
    fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or_default()
    }

    fn word(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    /// At most `count` bytes.
    fn take(&mut self, count: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        taken
    }

    fn rest(&mut self) -> &'a [u8] {
        self.take(usize::MAX)
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
