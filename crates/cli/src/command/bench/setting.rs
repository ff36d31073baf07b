//! What a measurement of `volery bench run` is of.

use volery_bench::Link;

use crate::command::choices::Choices;
use crate::command::options::Common;

/// What to measure, and how.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// By which it is asked for.
    pub(super) name: &'static str,
    /// Correlations.
    pub(super) n: u64,
    pub(super) link: Link,
    pub(super) choices: Choices,
    /// Of each party.
    pub(super) threads: usize,
    pub(super) common: Common,
}
