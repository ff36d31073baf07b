//! The cost of the shards of a run.

use std::time::Duration;

use volery_channel::Stats;

/// The shards, matches and traffic of a worker.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkerStats {
    /// Its shards.
    pub shards: u64,
    /// The shards that were finished before.
    pub resumed: u64,
    /// The matches that it found.
    pub found: u64,
    /// All traffic.
    pub traffic: Stats,
    /// Seconds from the handshake on.
    pub seconds: f64,
}

/// The shards and traffic of all workers of a side.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClusterStats {
    /// Shards that were finished before.
    pub resumed: u32,
    /// The traffic of all.
    pub traffic: Stats,
    /// Until the drivers had agreed.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
}
