//! Batched oblivious PRF, private set intersection and keyword search.
#![forbid(unsafe_code)]
pub mod code;
pub mod oprf;
