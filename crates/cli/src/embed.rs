//! The subcommands for callers that are not a shell: options as words, tables and arrays from
//! memory, results to memory.
//!
//! The words are those of the command line, with the program's own names, defaults and checks,
//! without the subcommand: `["--role", "sender", "--key", "email"]`. What is given as a value must
//! not be named. The environment and files of options are not read, and `-q`, `-v`, `--log` and
//! `--report -` have no effect: a caller gets all lines as [`Events`], and the report as a value.
//!
//! Nothing is global: runs in several threads of a process do not see each other.

pub mod cluster;

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use volery_channel::Cancel;
use volery_channel::Role;
use volery_channel::tcp::{self, Patience};
pub use volery_matching::Operation;
use volery_matching::Options;
use volery_options::{Description, Named, OptionSet as _};
use volery_tables::Table;
use zeroize::Zeroizing;

pub use crate::command::endpoint::Connection;
use crate::command::endpoint::EndpointOptions;
use crate::command::matching::arguments::{MatchingArguments, not_an_option};
use crate::command::matching::job::MatchInputs;
use crate::command::options::{ReportOptions, RunOptions};
use crate::command::stream::Destination;
use crate::command::{self, guarded, matching, numbers, parse_for_caller};
pub use crate::exit::{Failure, Status};
use crate::npy;
use crate::report::report_failure;
pub use crate::results::{Matched, Part, Shares, Values};
use crate::said::Reporter;
pub use crate::said::{Events, Level};

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

    /// Runs the subcommand `verb`, some arguments of which are given as values.
    fn of<T>(
        &self,
        verb: &str,
        words: &[OsString],
        given: &[&'static str],
        body: impl FnOnce(&command::Verb, &Reporter) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let (matches, command) = parse_for_caller(verb, words, given)?;
        let role = matches
            .subcommand()
            .and_then(|(_, inner)| inner.try_get_one::<Role>("role").ok().flatten())
            .copied();
        self.with(verb, role, |reporter| body(&command, reporter))
    }

    fn with<T>(
        &self,
        verb: &str,
        role: Option<Role>,
        body: impl FnOnce(&Reporter) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
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

/// Another subcommand than the parser was asked for.
fn unexpected() -> ! {
    unreachable!("the parser returns the subcommand that it was given")
}

/// Opens a connection on which several runs follow each other. The options are `listen`, `connect`,
/// `identity`, `peer`, `wait`, `timeout` and `allow_group_readable_identity`.
///
/// # Errors
/// As for a run: a wrong option, no peer in time, a peer with another identity.
pub fn open(named: &Named, run: &Run) -> Result<Connection, Failure> {
    let (mut endpoint, mut options) = (EndpointOptions::default(), RunOptions::default());
    volery_options::fill(named, &mut [&mut endpoint, &mut options]).map_err(not_an_option)?;
    run.with("", None, |reporter| {
        let endpoint = endpoint.endpoint(None, reporter)?;
        let met = endpoint.open(options.timeout, reporter)?;
        Ok(met.into_connection(run.cancel.clone()))
    })
}

/// The two ends of a connection within this process, over the loopback interface. Each of `cancels`
/// closes one.
///
/// # Errors
/// If no port is free.
pub fn pair(timeout: Duration, cancels: [Cancel; 2]) -> Result<[Connection; 2], Failure> {
    command::check_level()?;
    let listener = tcp::Listener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let [left, right] = cancels.clone().map(|cancel| Patience {
        cancel,
        ..timeout.into()
    });
    let (left, right) = thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(address, left));
        let right = listener.accept_channel(right, |_| ());
        let left = connecting.join();
        (
            left.unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            right,
        )
    });
    let [of_left, of_right] = cancels;
    Ok([
        Connection::new(left?, None, of_left),
        Connection::new(right?, None, of_right),
    ])
}

/// The options that [`matching`] takes by name.
pub fn options(verb: Operation) -> Vec<Description> {
    let of_matching = Options::describe().into_iter();
    let others = [
        EndpointOptions::describe(),
        RunOptions::describe(),
        ReportOptions::describe(),
    ];
    let of_matching = of_matching.filter(|option| verb.has(option.name));
    of_matching.chain(others.into_iter().flatten()).collect()
}

/// `psi` and `lookup`, with their options by name. The table and the connection replace `input` and
/// the options of the peer; with `rows`, and without `out`, the result has the rows.
///
/// # Errors
/// Any error that ends the run.
pub fn matching(
    verb: Operation,
    named: &Named,
    table: Option<Table>,
    rows: bool,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<Matched, Failure> {
    let arguments = MatchingArguments::by_name(verb, named, table.is_some())?;
    let inputs = MatchInputs {
        table,
        connection,
        rows,
        workers: None,
    };
    run.with(verb.name(), Some(arguments.role), |reporter| {
        matching::run(&arguments, inputs, reporter)
    })
}

/// The subcommands of [`stream`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamVerb {
    /// Correlated OTs, `w = v + u*delta`.
    Cot,
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
    words: &[OsString],
    delta: Option<[u64; 2]>,
    chunk: Option<usize>,
    connection: Option<&mut Connection>,
    run: &Run,
    put: &mut dyn FnMut(Part) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let name = match verb {
        StreamVerb::Cot => "cot",
        StreamVerb::Vole => "vole",
    };
    run.of(name, words, &["out"], |verb, reporter| {
        let destination = Destination::Caller { chunk, put };
        match verb {
            command::Verb::Cot(arguments) => {
                let delta = delta.map(bytemuck::cast);
                command::cot::run(arguments, delta, connection, destination, reporter)
            }
            command::Verb::Vole(arguments) => {
                command::vole::run(arguments, connection, destination, reporter)
            }
            _ => unexpected(),
        }
    })
}

/// Numbers of one party, row by row.
pub enum Numbers {
    /// Elements of a ring.
    Words(Vec<u64>),
    /// Real numbers.
    Reals(Vec<f64>),
}

/// An array of one or two dimensions.
pub struct Array {
    /// `(n,)` or `(n, m)`.
    pub shape: Vec<usize>,
    /// The numbers, the last index running fastest.
    pub numbers: Numbers,
}

impl Array {
    fn into_table(self) -> Result<npy::Table, Failure> {
        let values = match self.numbers {
            Numbers::Words(words) => npy::Values::Words(Zeroizing::new(words)),
            Numbers::Reals(reals) => npy::Values::Reals(Zeroizing::new(reals)),
        };
        npy::Table::new(self.shape, values).map_err(|error| Failure::usage("the array", error))
    }
}

/// `ope`: `input` replaces `--input` at the sender and `--points` at the receiver, who gets the
/// values.
///
/// # Errors
/// Any error that ends the run.
pub fn ope(
    words: &[OsString],
    input: Option<Array>,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<(String, Option<Vec<u64>>), Failure> {
    run.of("ope", words, &[], |verb, reporter| {
        let command::Verb::Ope(arguments) = verb else {
            unexpected();
        };
        let input = input.map(Array::into_table).transpose()?;
        let given = numbers::Given { input, connection };
        command::ope::run(arguments, given, reporter)
    })
}

/// `matvec`: `input` replaces `--input`. The side that gets the result also gets it as a value.
///
/// # Errors
/// Any error that ends the run.
pub fn matvec(
    words: &[OsString],
    input: Option<Array>,
    connection: Option<&mut Connection>,
    run: &Run,
) -> Result<(String, Option<Array>), Failure> {
    let replaced: &[_] = match &input {
        Some(_) => &["input"],
        None => &[],
    };
    run.of("matvec", words, replaced, |verb, reporter| {
        let command::Verb::Matvec(arguments) = verb else {
            unexpected();
        };
        let input = input.map(Array::into_table).transpose()?;
        let given = numbers::Given { input, connection };
        let (report, result) = command::matvec::run(arguments, given, reporter)?;
        let result = result.map(|values| {
            let numbers = match values {
                npy::Values::Words(mut words) => Numbers::Words(std::mem::take(&mut *words)),
                npy::Values::Reals(mut reals) => Numbers::Reals(std::mem::take(&mut *reals)),
            };
            let count = match &numbers {
                Numbers::Words(words) => words.len(),
                Numbers::Reals(reals) => reals.len(),
            };
            Array {
                shape: vec![count],
                numbers,
            }
        });
        Ok((report, result))
    })
}

/// `lint`: the table replaces the files. Returns the report.
///
/// # Errors
/// Any error that ends the run.
pub fn lint(words: &[OsString], table: Option<Table>, run: &Run) -> Result<String, Failure> {
    let replaced: &[_] = match &table {
        Some(_) => &["files"],
        None => &[],
    };
    run.of("lint", words, replaced, |verb, reporter| match verb {
        command::Verb::Lint(arguments) => command::lint::run(arguments, table, reporter),
        _ => unexpected(),
    })
}

/// `keygen`: returns the fingerprint.
///
/// # Errors
/// Any error that ends the run.
pub fn keygen(words: &[OsString], run: &Run) -> Result<String, Failure> {
    run.of("keygen", words, &[], |verb, reporter| match verb {
        command::Verb::Keygen(arguments) => command::keygen::run(arguments, reporter),
        _ => unexpected(),
    })
}

/// `verify`: returns the report.
///
/// # Errors
/// Any error that ends the run; so is a relation that does not hold.
pub fn verify(words: &[OsString], run: &Run) -> Result<String, Failure> {
    run.of("verify", words, &[], |verb, reporter| match verb {
        command::Verb::Verify(arguments) => command::verify::run(arguments, reporter),
        _ => unexpected(),
    })
}

/// The program: parses the words, the first of which is the subcommand, prints, and returns the
/// exit status. It takes over the signals of the process. `program` are the words that start it
/// again.
#[must_use]
pub fn main(program: Vec<OsString>, words: Vec<OsString>) -> u8 {
    command::set_own_program(program);
    command::main(words)
}
