//! The setting of a measurement of `volery-bench run`.

use crate::Link;

use crate::command::options::Common;
use volery_cli::choices::Choices;

/// The measured protocol and its settings.
#[derive(Clone, Debug)]
pub(super) struct Setting {
    /// Its name on the command line.
    pub(super) name: &'static str,
    /// Correlations.
    pub(super) n: u64,
    pub(super) link: Link,
    pub(super) choices: Choices,
    /// Threads of each party.
    pub(super) threads: usize,
    pub(super) common: Common,
}
