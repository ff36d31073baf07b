//! The options of one side of a matching, on the command line and by name.

use std::marker::PhantomData;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use volery_matching::{Operation, Options};
use volery_options::{Named, SetByName};

use crate::command::endpoint::{EndpointArguments, EndpointOptions};
use crate::command::options::Common;
use crate::exit::Failure;
use crate::flat::{Flat, Select};

/// The options of one side.
#[derive(Clone, Debug)]
pub(crate) struct MatchingArguments {
    pub(in crate::command) verb: Operation,
    pub(in crate::command) options: Options,
    pub(in crate::command) endpoint: EndpointArguments,
    pub(in crate::command) common: Common,
}

impl Deref for MatchingArguments {
    type Target = Options;

    fn deref(&self) -> &Options {
        &self.options
    }
}

impl MatchingArguments {
    /// The options of a caller who gives a table, or names files with `input`.
    ///
    /// # Errors
    /// The option at fault, or one that is missing.
    pub(crate) fn by_name(
        verb: Operation,
        named: &Named,
        has_table: bool,
    ) -> Result<Self, Failure> {
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
        let mut sets: [&mut dyn SetByName; 4] = [
            &mut options,
            &mut endpoint,
            &mut common.run.0,
            &mut common.output.report.0,
        ];
        volery_options::fill(named, &mut sets).map_err(not_an_option)?;
        for required in ["role", "key", "input"] {
            let optional = required == "input" && has_table;
            if !optional && !named.iter().any(|(name, _)| name == required) {
                return Err(Failure::usage(&format!("--{required}"), "required"));
            }
        }
        Ok(Self {
            verb,
            options,
            endpoint: Flat::new(endpoint),
            common,
        })
    }
}

/// The failure of an option that is set by name.
pub(crate) fn not_an_option((name, what): (&str, String)) -> Failure {
    Failure::usage(&format!("--{}", name.replace('_', "-")), what)
}

/// The operation that a subcommand is.
pub(crate) trait MatchCommand: Clone + std::fmt::Debug + Send + Sync + 'static {
    const VERB: Operation;
}

/// `volery psi`.
#[derive(Clone, Debug)]
pub(crate) struct Psi;

/// `volery lookup`.
#[derive(Clone, Debug)]
pub(crate) struct Lookup;

impl MatchCommand for Psi {
    const VERB: Operation = Operation::Psi;
}

impl MatchCommand for Lookup {
    const VERB: Operation = Operation::Lookup;
}

impl<O: MatchCommand> Select for O {
    fn has(name: &str) -> bool {
        O::VERB.has(name)
    }
}

/// [`MatchingArguments`] of an operation, on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Words<O>(pub(in crate::command) MatchingArguments, PhantomData<O>);

impl<O> Deref for Words<O> {
    type Target = MatchingArguments;

    fn deref(&self) -> &MatchingArguments {
        &self.0
    }
}

impl<O: MatchCommand> Args for Words<O> {
    fn augment_args(command: Command) -> Command {
        let command = Flat::<Options, O>::augment_args(command);
        Common::augment_args(EndpointArguments::augment_args(command))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<O: MatchCommand> FromArgMatches for Words<O> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let arguments = MatchingArguments {
            verb: O::VERB,
            options: Flat::<Options, O>::from_arg_matches(matches)?.0,
            endpoint: EndpointArguments::from_arg_matches(matches)?,
            common: Common::from_arg_matches(matches)?,
        };
        Ok(Self(arguments, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
