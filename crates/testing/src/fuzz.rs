//! Fuzz entry points: functions that take any bytes and panic if a guarantee is broken.
//!
//! They are here and not beside the fuzzer so that `cargo test` runs them on every file of the
//! committed corpora, with the ordinary compiler (`tests/all/corpus.rs`).
//!
//! * `handshake`: the peer's bytes, raw or an edited hello. The result is an error, or the peer's
//!   settings equal ours; messages are short and printable.
//! * `wire`: a protocol, a side of it, and edits of the bytes of an honest peer. The party ends;
//!   with the honest bytes its result is the honest one; after edits a checked protocol returns an
//!   error or that result.
//! * `csv`: options, then a text file. The result equals that of an independent plain parser; a
//!   written file parses again to the same rows.
//! * `parquet`: options, then a Parquet file. Two readings are equal; a written file parses again
//!   to the same keys.
//! * `npy`: an array, or the four arrays of two folders. An array that is read and written again is
//!   unchanged; `volery verify` accepts only valid correlations.
//! * `gateway`: a client's ticket, raw or an edited one. Only the ticket itself is accepted.
//! * `filter`: the filter of a server's items, raw or an edited one, with the right hash or not. A
//!   file that is read is written unchanged, and lookups stay within it.
//! * `identity`: a fingerprint, an identity file, a peer's bytes under TLS, or changes in transit.
//!   A file that is read is written unchanged; only the pinned peer is accepted, and every received
//!   byte was sent by the peer.
//!
//! No input may make one panic, hang, or use memory out of proportion to its size; only the fuzzer
//! detects the last two.

mod csv;
mod edits;
mod files;
mod filter;
mod gateway;
mod handshake;
mod identity;
mod npy;
mod parquet;
mod reference;
mod replay;
mod wire;

pub use csv::csv;
pub use filter::filter;
pub use gateway::gateway;
pub use handshake::handshake;
pub use identity::identity;
pub use npy::npy;
pub use parquet::parquet;
pub use wire::wire;

/// A target by its name, which is the folder of its corpus, and its entry point.
pub type Target = (&'static str, fn(&[u8]));

/// All targets.
pub const TARGETS: [Target; 8] = [
    ("handshake", handshake),
    ("wire", wire),
    ("csv", csv),
    ("parquet", parquet),
    ("npy", npy),
    ("identity", identity),
    ("gateway", gateway),
    ("filter", filter),
];

/// Reads decisions from the bytes of an input; zeros when they are used up.
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
