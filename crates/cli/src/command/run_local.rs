//! `volery run-local`: `psi` and `lookup` with several worker processes on this machine. The peer's
//! workers may be on a cluster.

use std::ffi::OsString;

use volery_matching::ResultKind;
use volery_run::failure::Result;
use volery_run::matching::arguments::MatchingArguments;
use volery_run::matching::job::{MatchInputs, PrepareWorkers};
use volery_run::reporter::Reporter;
use volery_run::totals;

use super::matching::{self, Words};
use super::workers::{LocalWorkers, RunArguments};

/// Match tables with several workers on this machine
///
/// The tables are read and divided into shards here; each worker matches its shards with the same
/// worker of the other side, which is a process of 'volery run-local' too or runs on a cluster. The
/// same command goes on with a run that broke.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Verb {
    Psi(Psi),
    Lookup(Lookup),
}

/// 'volery psi' with workers; --resume is required
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "volery run-local psi --workers <W> --gateway <HOST:PORT> --run <NAME> .."
)]
struct Psi {
    #[command(flatten)]
    workers: RunArguments,

    #[command(flatten)]
    arguments: Words<matching::Psi>,
}

/// 'volery lookup' with workers; --resume is required
#[derive(Clone, Debug, clap::Args)]
#[command(
    override_usage = "volery run-local lookup --workers <W> --gateway <HOST:PORT> --run <NAME> .."
)]
struct Lookup {
    #[command(flatten)]
    workers: RunArguments,

    #[command(flatten)]
    arguments: Words<matching::Lookup>,
}

impl Arguments {
    /// Refuses results that workers do not compute.
    pub(super) fn check_result(&self) -> Result<()> {
        match self.parts().1.result {
            ResultKind::Shares(_) => Err(totals::no_shares()),
            _ => Ok(()),
        }
    }

    /// The options of the workers, and those of the matching.
    pub(super) fn parts(&self) -> (&RunArguments, &MatchingArguments) {
        match &self.verb {
            Verb::Psi(psi) => (&psi.workers, &psi.arguments),
            Verb::Lookup(lookup) => (&lookup.workers, &lookup.arguments),
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, own: &[OsString], reporter: &Reporter) -> Result<()> {
    let (workers, options) = arguments.parts();
    let prepare: &PrepareWorkers<'_> = &|| {
        let workers = LocalWorkers::prepare(workers, own, options, reporter)?;
        Ok(Box::new(workers))
    };
    let inputs = MatchInputs { workers: Some(prepare), ..MatchInputs::default() };
    volery_run::matching::run(options, inputs, reporter).map(drop)
}
