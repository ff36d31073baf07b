//! The calls of bindings: options by name, tables and arrays from memory, results to memory.
//!
//! Names, defaults and checks are those of the program's options. What is given as a value must not
//! be named. The environment, but for its proxies, and files of options are not read, and `report`
//! as `-` has no effect: a caller gets all lines as [`Events`], and the report as a value.
//!
//! Nothing is global: runs in several threads of a process do not see each other.

pub mod cluster;

use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use volery_channel::Role;
use volery_channel::tcp::{self, Patience};
pub use volery_channel::{Cancel, Error as ProtocolError, Transport};
pub use volery_matching::Operation;
use volery_matching::Options;
use volery_options::{Description, NamedValues, OptionSet};
use volery_os::thread;
#[cfg(feature = "gpu")]
pub use volery_pcg::card::dlpack;
use volery_tables::Table;

use crate::choices::Choices;
use crate::cot::{self, CotOptions};
pub use crate::endpoint::Connection;
use crate::endpoint::EndpointOptions;
pub use crate::failure::{Failure, Result, Status};
use crate::guard::{check_level, guarded};
use crate::keygen::{self, KeygenOptions};
use crate::lint::{self, LintOptions};
use crate::matching;
use crate::matching::arguments::MatchingArguments;
use crate::matching::job::MatchInputs;
use crate::matvec::{self, MatvecOptions};
pub use crate::npy;
use crate::numbers::{NumbersOptions, NumericInputs};
use crate::ope::{self, OpeOptions};
use crate::options::{ReportOptions, RunOptions, fill};
use crate::report::report_failure;
use crate::reporter::Reporter;
pub use crate::reporter::{Events, Level};
pub use crate::results::{MatchResult, Part, Shares, Values};
use crate::stream::{Destination, StreamArguments, StreamOptions};
use crate::verify::{self, VerifyOptions};
use crate::vole::{self, VoleOptions};

/// One call: who hears of it, and what ends it.
#[derive(Clone)]
pub struct Run {
    events: Arc<dyn Events>,
    cancel: Cancel,
}

impl Run {
    /// A call that tells `events` what happens, and that `cancel` ends with the failure
    /// `cancelled`: at once where it waits for the peer, otherwise at its next message or report of
    /// progress.
    pub fn new(events: Arc<dyn Events>, cancel: Cancel) -> Self {
        Self { events, cancel }
    }

    fn with<T>(
        &self,
        verb: &str,
        role: Option<Role>,
        body: impl FnOnce(&Reporter) -> Result<T>,
    ) -> Result<T> {
        let (events, cancel) = (Arc::clone(&self.events), self.cancel.clone());
        let reporter = Reporter::of_caller(events, cancel, verb, role);
        let result = guarded(&reporter, || {
            if self.cancel.is_cancelled() {
                return Err(Failure::new(Status::Other, "cancelled"));
            }
            body(&reporter)
        });
        result.inspect_err(|failure| report_failure(failure, &reporter))
    }
}

/// Opens a connection on which several runs follow each other. The options are `listen`, `connect`,
/// `identity`, `peer`, `proxy`, `wait`, `timeout` and `allow_group_readable_identity`.
///
/// # Errors
/// As for a run: a wrong option, no peer in time, a peer with another identity.
pub fn open(named: &NamedValues, run: &Run) -> Result<Connection> {
    let (mut endpoint, mut options) = (EndpointOptions::default(), RunOptions::default());
    fill(named, &mut [&mut endpoint, &mut options], &[])?;
    run.with("", None, |reporter| {
        let endpoint = endpoint.endpoint(None, reporter)?;
        let met = endpoint.open(options.timeout, reporter)?;
        Ok(met.into_connection(run.cancel.clone()))
    })
}

/// The times `wait` and `timeout`.
pub fn times(named: &NamedValues) -> Result<(Duration, Duration)> {
    let (mut endpoint, mut options) = (EndpointOptions::default(), RunOptions::default());
    fill(named, &mut [&mut endpoint, &mut options], &[])?;
    Ok((endpoint.wait, options.timeout))
}

/// A connection over a byte stream of the caller, which its first run begins. The peer has the
/// first of the times for its first bytes. `cancel` must end the calls of `stream`, too.
pub fn over(
    stream: impl Transport + 'static,
    (wait, timeout): (Duration, Duration),
    cancel: Cancel,
) -> Connection {
    let begin = move || volery_channel::greeted(stream, timeout, wait);
    Connection::later(Box::new(begin), cancel)
}

/// The two ends of a connection within this process, over the loopback interface. Each of `cancels`
/// closes one.
pub fn pair(timeout: Duration, cancels: [Cancel; 2]) -> Result<[Connection; 2]> {
    check_level()?;
    let listener = tcp::Listener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let [left, right] = cancels.clone().map(|cancel| Patience { cancel, ..timeout.into() });
    let (left, right) = thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(address, left));
        let right = listener.accept_channel(right, |_| ());
        let left = connecting.join();
        (left.unwrap_or_else(|panic| std::panic::resume_unwind(panic)), right)
    });
    let [of_left, of_right] = cancels;
    Ok([Connection::new(left?, None, of_left), Connection::new(right?, None, of_right)])
}

/// The options that the call `verb` takes by name: `psi`, `lookup`, `cot`, `vole`, `ope`, `matvec`,
/// `lint`, `keygen` or `verify`. Nothing for another name.
#[must_use]
pub fn options(verb: &str) -> Option<Vec<Description>> {
    let of_match = |verb: Operation| {
        let all = Options::describe().into_iter();
        all.filter(move |option| verb.has(option.name)).collect()
    };
    let peer = EndpointOptions::describe;
    let common = || [RunOptions::describe(), ReportOptions::describe()].concat();
    let stream = |own: Vec<Description>| {
        [own, StreamOptions::describe(), Choices::describe(), peer(), common()].concat()
    };
    let numbers =
        |own: Vec<Description>| [own, NumbersOptions::describe(), peer(), common()].concat();
    Some(match verb {
        "psi" => [of_match(Operation::Psi), peer(), common()].concat(),
        "lookup" => [of_match(Operation::Lookup), peer(), common()].concat(),
        "cot" => stream(CotOptions::describe()),
        "vole" => stream(VoleOptions::describe()),
        "ope" => numbers(OpeOptions::describe()),
        "matvec" => numbers(MatvecOptions::describe()),
        "lint" => {
            let keys = Options::describe().into_iter();
            let keys = keys.filter(|option| lint::has(option.name)).collect();
            [keys, LintOptions::describe(), common()].concat()
        }
        "keygen" => [KeygenOptions::describe(), ReportOptions::describe()].concat(),
        "verify" => [VerifyOptions::describe(), common()].concat(),
        _ => return None,
    })
}

/// `psi` and `lookup`, with their options by name. The table and the connection replace `input` and
/// the options of the peer; with `rows`, and without `out`, the result has the rows.
pub fn matching(
    verb: Operation,
    named: &NamedValues,
    table: Option<Table>,
    rows: bool,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<MatchResult> {
    let arguments = MatchingArguments::by_name(verb, named, table.is_some())?;
    let inputs = MatchInputs { table, connection, rows, workers: None };
    run.with(verb.name(), Some(arguments.role), |reporter| {
        matching::run(&arguments, inputs, reporter)
    })
}

/// The kinds of [`stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamVerb {
    /// Correlated OTs, `w = v + u*delta`.
    Cot,
    /// Random OTs: messages `m0` and `m1`, bits `u`, and the messages `m` that they choose.
    RandomOt,
    /// Vector OLEs, `w = u*x + v`.
    Vole,
}

/// `cot` and `vole`, the report of which it returns. The correlations go to `put`, called on this
/// thread: `chunk` of them at a time, the last time perhaps fewer, or all at once. While `put`
/// runs, the next ones are made: memory holds those of two calls. An error of `put` ends the run.
///
/// # Errors
/// Any error that ends the run: what `put` got before is then not to be used.
pub fn stream(
    verb: StreamVerb,
    named: &NamedValues,
    delta: Option<[u64; 2]>,
    chunk: Option<usize>,
    connection: Option<&mut Connection>,
    run: &Run,
    put: &mut dyn FnMut(Part) -> Result<()>,
) -> Result<String> {
    let (mut cot, mut vole) = (CotOptions::default(), VoleOptions::default());
    let destination = Destination::Caller { chunk, put };
    match verb {
        StreamVerb::Cot | StreamVerb::RandomOt => {
            let stream = StreamArguments::by_name(named, &mut cot)?;
            let delta = delta.map(bytemuck::cast);
            run.with("cot", Some(stream.options.role), |reporter| {
                let is_random = verb == StreamVerb::RandomOt;
                cot::run((&cot, &stream), delta, is_random, connection, destination, reporter)
            })
        }
        StreamVerb::Vole => {
            let stream = StreamArguments::by_name(named, &mut vole)?;
            run.with("vole", Some(stream.options.role), |reporter| {
                vole::run((&vole, &stream), connection, destination, reporter)
            })
        }
    }
}

/// `ope`: `input` replaces `input` at the sender and `points` at the receiver, who gets the values.
pub fn ope(
    named: &NamedValues,
    input: Option<npy::Table>,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<(String, Option<Vec<u64>>)> {
    let arguments = ope::Arguments::by_name(named)?;
    run.with("ope", Some(arguments.meeting.options.role), |reporter| {
        ope::run(&arguments, NumericInputs { input, connection }, reporter)
    })
}

/// `matvec`: `input` replaces the option of this name. The side that gets the result also gets it
/// as a value.
pub fn matvec(
    named: &NamedValues,
    input: Option<npy::Table>,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<(String, Option<npy::Values>)> {
    let arguments = matvec::Arguments::by_name(named)?;
    run.with("matvec", Some(arguments.meeting.options.role), |reporter| {
        matvec::run(&arguments, NumericInputs { input, connection }, reporter)
    })
}

/// `lint` of files, or of a table in their place. Returns the report.
pub fn lint(
    files: Vec<PathBuf>,
    named: &NamedValues,
    table: Option<Table>,
    run: &Run,
) -> Result<String> {
    if files.is_empty() && table.is_none() {
        return Err(Failure::usage("FILE", "required"));
    }
    let arguments = lint::Arguments::by_name(files, named)?;
    run.with("lint", None, |reporter| lint::run(&arguments, table, reporter))
}

/// `keygen`: returns the fingerprint.
pub fn keygen(named: &NamedValues, run: &Run) -> Result<String> {
    let arguments = keygen::Arguments::by_name(named)?;
    run.with("keygen", None, |reporter| keygen::run(&arguments, reporter))
}

/// `verify` of the folders of sender and receiver: returns the report.
///
/// # Errors
/// Any error that ends the run; so is a relation that does not hold.
pub fn verify(folders: [PathBuf; 2], named: &NamedValues, run: &Run) -> Result<String> {
    let arguments = verify::Arguments::by_name(folders, named)?;
    run.with("verify", None, |reporter| verify::run(&arguments, reporter))
}
