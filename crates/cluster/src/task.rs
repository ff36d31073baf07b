//! The task of a run: rows, or totals.

use volery_channel::{Hello, Role};
use volery_matching::{Operation, Settings, totals};

/// The settings of a run, whatever it computes.
#[derive(Clone, Debug)]
pub enum Task {
    /// Rows.
    Rows(Settings),
    /// Totals.
    Totals(Box<totals::Settings>),
}

impl From<&Settings> for Task {
    fn from(settings: &Settings) -> Self {
        Self::Rows(*settings)
    }
}

impl From<&totals::Settings> for Task {
    fn from(settings: &totals::Settings) -> Self {
        Self::Totals(Box::new(settings.clone()))
    }
}

impl Task {
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::Rows(settings) => settings.role,
            Self::Totals(settings) => settings.role,
        }
    }

    pub(crate) fn hello(&self, keys: &str) -> Hello {
        match self {
            Self::Rows(settings) => settings.hello(keys),
            Self::Totals(settings) => settings.hello(keys),
        }
    }

    pub(crate) fn is_lookup(&self) -> bool {
        matches!(self, Self::Rows(settings) if settings.verb == Operation::Lookup)
    }

    /// Whether this side keeps results of its parts: its rows, or its shares.
    pub(crate) fn keeps(&self) -> bool {
        match self {
            Self::Rows(settings) => settings.gets_rows(),
            Self::Totals(_) => true,
        }
    }
}
