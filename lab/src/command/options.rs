//! The options that every subcommand takes.

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::measurement::Measurement;
use crate::results::{Results, unfinished_in};
use crate::{Error, Result};

/// The most correlations in one run.
const MAX_COUNT: u64 = 1 << 40;

/// The options that every subcommand takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Threads of each party, unless an experiment sets them [default: 1, as in the papers]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Give up when nothing has arrived from the other party for this long
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) timeout: u32,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print each phase on standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Common {
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.into())
    }

    pub(crate) fn reporter(&self) -> Reporter {
        Reporter { quiet: self.quiet, verbose: self.verbose > 0 }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.map_or(1, usize::from)
    }
}

/// Output to standard error other than errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    quiet: bool,
    verbose: bool,
}

impl Reporter {
    /// Prints a line about a phase, only with `-v`.
    pub(crate) fn explain(self, line: impl fmt::Display) {
        if self.verbose {
            let _ = writeln!(std::io::stderr().lock(), "volery-bench: {line}");
        }
    }

    /// Prints each run, only with `-v`.
    pub(crate) fn runs(self) -> impl FnMut(&Measurement, &Results) -> Result<()> {
        move |one, _| {
            self.explain(one);
            Ok(())
        }
    }

    /// Prints a line with `-v`, on a terminal, or when `needed`; never with `-q`.
    pub(crate) fn announce(self, line: impl fmt::Display, needed: bool) {
        if self.verbose || (!self.quiet && (needed || std::io::stderr().is_terminal())) {
            let _ = writeln!(std::io::stderr().lock(), "volery-bench: {line}");
        }
    }
}

/// Checks before a measurement that the file that an option names can be written after it. An
/// existing file will be replaced.
pub(crate) fn check_writable(option: &'static str, target: &Path) -> Result<()> {
    let refuse =
        |why: &dyn fmt::Display| Error::usage(option, format_args!("{}: {why}", target.display()));
    if target.symlink_metadata().is_ok_and(|data| !data.is_file()) {
        return Err(refuse(&"exists and is not a file"));
    }
    unfinished_in(target).map(drop).map_err(|error| refuse(&error))
}

/// Parses a count: decimal digits, optionally with underscores between them.
pub(crate) fn parse_count(text: &str) -> std::result::Result<u64, String> {
    let digits: String = text.chars().filter(|&character| character != '_').collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a count consists of digits, such as 1_000_000".to_owned());
    }
    match digits.parse() {
        Ok(count) if count <= MAX_COUNT => Ok(count),
        _ => Err(format!("more than {MAX_COUNT} (2^40), the most in one run")),
    }
}
