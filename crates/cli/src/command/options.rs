//! Options shared by several subcommands: the ring and the common options. [`crate::choices`] has
//! the options that determine the parameters, `endpoint` those for the peer.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use volery_channel::{Link, Role};
use volery_options::{parse, values};

use crate::exit::{Failure, Status};
use crate::flat::Flat;
use crate::report::PreparedReport;
use crate::said::Log;
pub(crate) use crate::said::Reporter;

/// The most correlations in one run.
pub(crate) const MAX_COUNT: u64 = 1 << 40;

/// Parses a role; the two texts are the help of its two values.
pub(crate) fn role(
    sender: &'static str,
    receiver: &'static str,
) -> impl TypedValueParser<Value = Role> {
    let value = |role: Role, help| PossibleValue::new(role.name()).help(help);
    PossibleValuesParser::new([value(Role::Sender, sender), value(Role::Receiver, receiver)])
        .try_map(|name| name.parse::<Role>())
}

/// A ring, by its name on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum RingName {
    /// The integers modulo 2^61 - 1.
    Fp61,
    /// The integers modulo 2^64.
    Z64,
    /// Binary polynomials modulo X^128 + X^7 + X^2 + X + 1.
    Gf128,
}

impl fmt::Display for RingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Fp61 => "fp61",
            Self::Z64 => "z64",
            Self::Gf128 => "gf128",
        })
    }
}

/// Runs an expression with `$R` standing for the type that a [`RingName`] names.
macro_rules! with_ring {
    ($name:expr, $R:ident => $body:expr) => {
        match $name {
            $crate::command::options::RingName::Fp61 => {
                type $R = volery_field::Fp61;
                $body
            }
            $crate::command::options::RingName::Z64 => {
                type $R = volery_field::Z64;
                $body
            }
            $crate::command::options::RingName::Gf128 => {
                type $R = volery_field::Gf128;
                $body
            }
        }
    };
}
pub(crate) use with_ring;

/// The options of the terminal.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TerminalArguments {
    /// Format of the lines on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print more about the run on standard error; -vv adds details and the time of each line
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

volery_options::options! {
    /// The option of the report.
    pub(crate) struct ReportOptions {
        /// Write the settings, results and costs of the run to FILE as one JSON object, even if the
        /// run fails; '-' is standard output
        once report: PathBuf ["Output", "FILE", parse::path];
    }
}

volery_options::options! {
    /// The options of everything that computes with a peer.
    pub(crate) struct RunOptions {
        /// Threads for this party's computation [default: one per core]
        once threads: u16 ["Running", "T", threads];

        /// Fail if no data or heartbeat arrives from the peer for TIME, such as 90s or 2m
        default timeout: Duration ["60s", "Peer", "TIME", parse::time];
    }
}

fn threads(value: &OsStr) -> Result<u16, String> {
    parse::whole(value, 1, 1024).map(|threads| threads as u16)
}

/// The options of output, which every subcommand takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputArguments {
    #[command(flatten)]
    pub(crate) report: Flat<ReportOptions>,

    #[command(flatten)]
    pub(crate) terminal: TerminalArguments,
}

/// The options that every subcommand takes which computes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Common {
    #[command(flatten)]
    pub(crate) output: OutputArguments,

    #[command(flatten)]
    pub(crate) run: Flat<RunOptions>,
}

impl Deref for Common {
    type Target = RunOptions;

    fn deref(&self) -> &RunOptions {
        &self.run
    }
}

impl Common {
    /// The file of the report.
    pub(crate) fn report(&self) -> Option<&Path> {
        self.output.report.report.as_deref()
    }

    /// As [`OutputArguments::prepare_report`].
    pub(crate) fn prepare_report(&self, reporter: &Reporter) -> Result<PreparedReport, Failure> {
        self.output.prepare_report(reporter)
    }

    /// A pool with the requested number of threads; one party computes in it.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool, Failure> {
        pool(self.threads.map_or(0, usize::from))
    }
}

impl OutputArguments {
    /// Checks, before any work, that the report can be written. From now on a failure is reported,
    /// too.
    pub(crate) fn prepare_report(&self, reporter: &Reporter) -> Result<PreparedReport, Failure> {
        PreparedReport::prepare(self.report.report.as_deref(), reporter)
    }
}

/// A pool of `threads` threads; 0 means one per core.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::new(Status::Other, format_args!("--threads: {error}")))
}

/// Parses a count of at most [`MAX_COUNT`].
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    match values::count(text)? {
        count if count <= MAX_COUNT => Ok(count),
        _ => Err(format!("more than {MAX_COUNT} (2^40), the most in one run")),
    }
}

/// Parses a link; see [`volery_matching::options::link`].
pub(crate) fn parse_link(text: &str) -> Result<Link, String> {
    volery_matching::options::link(text.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded() {
        assert_eq!(parse_count("2^40"), Ok(MAX_COUNT));
        assert!(parse_count("1099511627777").is_err());
    }
}
