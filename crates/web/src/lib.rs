//! The receiver of a matching run in a browser.
//!
//! ```text
//! page            index.js     starts two workers for each call
//!   worker        socket.js    has the WebSocket; its bytes go into a ring in shared memory
//!   worker        run.js       runs this module, which waits for the ring to have bytes
//! ```
//!
//! [`PreparedRun`] is the run: it reads a table in memory, says what the run will reveal, and runs
//! over a [`Channel`](volery_channel::Channel). The module `bindings`, which exists on WebAssembly
//! only, has its functions for JavaScript, and the transport. Reading, agreement and protocols are
//! those of [`volery_tables`] and [`volery_matching`].

// Not `forbid`: the functions that wasm-bindgen generates have `unsafe`. The code of this crate
// has none.
#![deny(unsafe_code)]

#[cfg(target_family = "wasm")]
mod bindings;
mod failure;
mod options;
mod run;

pub use failure::{Failure, Kind};
pub use options::{Call, Options};
pub use run::{Filters, PreparedRun, RunResult};
