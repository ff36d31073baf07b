//! The arguments of a match: `volery psi` and `volery lookup`.

use std::marker::PhantomData;
use std::ops::Deref;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use volery_matching::{Operation, Options};
use volery_run::endpoint::EndpointOptions;
use volery_run::matching::arguments::MatchingArguments;

use super::options::Common;
use crate::flat::{Flat, Selection};

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

impl<O: MatchCommand> Selection for O {
    fn has(name: &str) -> bool {
        O::VERB.has(name)
    }
}

/// [`MatchingArguments`] of an operation, on the command line.
#[derive(Clone, Debug)]
pub(crate) struct Words<O>(MatchingArguments, PhantomData<O>);

impl<O> Deref for Words<O> {
    type Target = MatchingArguments;

    fn deref(&self) -> &MatchingArguments {
        &self.0
    }
}

impl<O: MatchCommand> Args for Words<O> {
    fn augment_args(command: Command) -> Command {
        let command = Flat::<Options, O>::augment_args(command);
        Common::augment_args(Flat::<EndpointOptions>::augment_args(command))
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
            endpoint: Flat::<EndpointOptions>::from_arg_matches(matches)?.0,
            common: Common::from_arg_matches(matches)?.options(),
        };
        Ok(Self(arguments, PhantomData))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
