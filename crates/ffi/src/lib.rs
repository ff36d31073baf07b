//! The C library of volery: correlated OT, random and chosen OT, vector OLE and a batched oblivious
//! PRF for programs in C and C++, over their own transport.
//!
//! `include/volery.h` is the documentation for its users; `docs/library.md` says how to build and
//! install it. A function here checks its arguments, calls the Rust library, and turns the outcome
//! into a status and a message:
//!
//! | module | job |
//! |---|---|
//! | `raw` | pointers from C: the only `unsafe` blocks |
//! | `transport` | the caller's two functions as a transport; the session on it |
//! | `options` | the options of a protocol |
//! | `object` | objects that refuse every call after a failure |
//! | `status` | statuses, messages, panics |
//! | `cot`, `card`, `vole`, `oprf` | the functions |
//!
//! The functions of the four last modules are safe to compile: their arguments have types of `raw`
//! that only a C caller can make, who promises what the header asks for.

#![allow(
    unsafe_code,
    reason = "pointers of C callers, in `raw` alone; and `no_mangle` of each function"
)]

mod card;
mod cot;
#[cfg(test)]
mod header;
mod object;
mod oprf;
mod options;
mod raw;
mod status;
mod transport;
mod vole;
