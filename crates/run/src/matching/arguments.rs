//! The options of one side of a match.

use std::ops::Deref;

use volery_matching::{Operation, Options};
use volery_options::{NamedValues, SetByName};

use crate::endpoint::EndpointOptions;
use crate::failure::{Failure, Result};
use crate::options::{Common, fill};

/// The options of one side.
#[derive(Clone, Debug)]
pub struct MatchingArguments {
    /// Whether it returns payload.
    pub verb: Operation,
    /// The options of the match.
    pub options: Options,
    /// The peer.
    pub endpoint: EndpointOptions,
    /// The options of every run.
    pub common: Common,
}

impl Deref for MatchingArguments {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

impl MatchingArguments {
    /// The options of a caller who gives a table, or names files with `input`.
    pub(crate) fn by_name(verb: Operation, named: &NamedValues, has_table: bool) -> Result<Self> {
        let mut options = Options::default();
        let mut endpoint = EndpointOptions::default();
        let mut common = Common::default();
        for (name, _) in named {
            if !verb.has(name) {
                let option = format!("--{}", name.replace('_', "-"));
                let what = format_args!("not an option of {}", verb.name());
                return Err(Failure::usage(&option, what));
            }
        }
        let mut sets: [&mut dyn SetByName; 4] =
            [&mut options, &mut endpoint, &mut common.run, &mut common.report];
        let required: &[_] = match has_table {
            true => &["role", "key"],
            false => &["role", "key", "input"],
        };
        fill(named, &mut sets, required)?;
        Ok(Self { verb, options, endpoint, common })
    }
}
