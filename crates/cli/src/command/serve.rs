//! `volery serve`: prepares a large table once, and answers the queries of many clients at once.

use nix::sys::signal::{SigSet, Signal};
use volery_matching::Options;
use volery_os::sync::mpsc::{Receiver, channel};
use volery_os::thread;
use volery_run::failure::{Failure, Result, Status};
use volery_run::reporter::Reporter;
use volery_serve::ServeOptions;

use super::options::{Common, WebArguments, listens};
use crate::flat::{Flat, Selection};

/// Prepare a large table once, and answer the queries of many clients at the same time: each learns
/// which of its keys are in the table, with 'volery psi --protocol served'
///
/// The first start reads the table, makes a key, and stores it with the filter of the table's keys
/// in --store; later starts check that the table is the same, or serve what is stored if no table
/// is named. It runs until a signal ends it, with status 0.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "public_metrics" => argument.requires("metrics"),
    "rotate" => argument.conflicts_with("rebuild"),
    "prepare" => argument.conflicts_with_all(["listen", "web"]),
    _ => argument,
}))]
pub(crate) struct Arguments {
    #[command(flatten)]
    own: Flat<ServeOptions>,

    #[command(flatten)]
    web: WebArguments,

    #[command(flatten)]
    table: Flat<Options, TableSelection>,

    #[command(flatten)]
    common: Common,
}

/// The options of the table to serve, which a service may have from before.
#[derive(Clone, Debug)]
struct TableSelection;

impl Selection for TableSelection {
    const REQUIRES: bool = false;

    fn has(name: &str) -> bool {
        volery_serve::has(name)
    }
}

impl Arguments {
    pub(super) fn own(&self) -> &ServeOptions {
        &self.own
    }

    /// The addresses at which it listens, each with its option.
    pub(super) fn listens(&self) -> Vec<(&'static str, String)> {
        listens(&self.own.listen, &self.web)
    }
}

/// Keeps SIGHUP for [`run`]; before the first thread begins, so that none ends the process by it.
pub(crate) fn keep_hangup() {
    // It fails for no signal that exists.
    let _ = hangup().thread_block();
}

fn hangup() -> SigSet {
    let mut set = SigSet::empty();
    set.add(Signal::SIGHUP);
    set
}

/// Gets a message for each SIGHUP.
fn hangups() -> Result<Receiver<()>> {
    let (hung_up, reload) = channel();
    // It waits for a signal as long as the process lives.
    let waiting = thread::Builder::new().name("volery hangup".into());
    let waiting =
        waiting.spawn(move || while hangup().wait().is_ok() && hung_up.send(()).is_ok() {});
    waiting.map_err(|error| Failure::new(Status::Other, error))?;
    Ok(reload)
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let arguments = volery_serve::Arguments {
        options: arguments.own.0.clone(),
        web: (*arguments.web).clone(),
        table: arguments.table.0.clone(),
        common: arguments.common.options(),
    };
    volery_serve::run(&arguments, hangups()?, reporter)
}
