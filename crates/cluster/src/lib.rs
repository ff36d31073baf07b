//! Private matching that several machines of each side share.
//!
//! The drivers of the two sides agree on a [`Manifest`] ([`driver`], [`totals`]); workers
//! ([`worker`]) do the shards of the run, each with one worker of the other side; a driver collects
//! the results. An engine of clusters prepares its rows and reads matches with [`staging`]. The
//! steps between two connected processes are those of `volery_matching`.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod driver;
mod error;
mod folder;
mod manifest;
pub mod staging;
mod stats;
mod store;
mod task;
pub mod totals;
pub mod worker;

pub use folder::take_back;
pub use manifest::{MANIFEST, Manifest, Secrets, WorkerSettings, announced};
pub use stats::{ClusterStats, WorkerStats};
pub use store::Store;
pub use task::Task;
