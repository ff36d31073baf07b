//! Options shared by several subcommands: the ring and the common options. [`crate::choices`] has
//! the options that determine the parameters, [`super::endpoint`] those for the peer.

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use volery_channel::link::ParseLinkError;
use volery_channel::{Link, Role};

use crate::exit::{Failure, Status};
use crate::output::SingleFile;
use crate::report::Report;

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

/// The options that every subcommand takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Common {
    /// Write the settings, results and costs of the run to this file as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    /// Threads for this party's computation [default: one per core]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,

    /// Give up when nothing has arrived from the peer for this long
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        value_parser = clap::value_parser!(u32).range(1..),
    )]
    pub(crate) timeout: u32,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print each phase on standard error
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

impl Common {
    /// The timeout as a duration.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout.into())
    }

    /// A pool with the requested number of threads; one party computes in it.
    pub(crate) fn pool(&self) -> Result<rayon::ThreadPool, Failure> {
        pool(self.threads.map_or(0, usize::from))
    }

    /// The reporter for the user's terminal.
    pub(crate) fn reporter(&self) -> Reporter {
        Reporter {
            quiet: self.quiet,
            verbose: self.verbose > 0,
        }
    }

    /// Checks, before any work, that the report can be written.
    pub(crate) fn prepare_report(&self) -> Result<PreparedReport, Failure> {
        let file = self
            .report
            .as_deref()
            .map(|path| SingleFile::prepare("--report", path))
            .transpose()?;
        Ok(PreparedReport(file))
    }
}

/// A pool of `threads` threads; 0 means one per core.
pub(crate) fn pool(threads: usize) -> Result<rayon::ThreadPool, Failure> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Failure::new(Status::Other, format_args!("--threads: {error}")))
}

/// The file of a report that is written at the end of the run.
pub(crate) struct PreparedReport(Option<SingleFile>);

impl PreparedReport {
    /// Writes the report if one was requested.
    pub(crate) fn write(self, report: &Report) -> Result<(), Failure> {
        match self.0 {
            Some(file) => file.commit(&report.to_json()),
            None => Ok(()),
        }
    }
}

/// Output to standard error other than errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    quiet: bool,
    verbose: bool,
}

impl Reporter {
    /// Prints a result line, unless `-q` is set.
    pub(crate) fn say(self, line: impl fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{line}");
        }
    }

    /// Prints a line about a phase, only with `-v`.
    pub(crate) fn explain(self, line: impl fmt::Display) {
        if self.verbose {
            let _ = writeln!(std::io::stderr().lock(), "volery: {line}");
        }
    }

    /// Prints a line with `-v`, on a terminal, or when `needed`; never with `-q`.
    pub(crate) fn announce(self, line: impl fmt::Display, needed: bool) {
        if self.verbose || (!self.quiet && (needed || std::io::stderr().is_terminal())) {
            let _ = writeln!(std::io::stderr().lock(), "volery: {line}");
        }
    }

    /// A progress bar for one phase of `steps` steps, a spinner for 0 steps; hidden with `-q` and
    /// when standard error is not a terminal.
    pub(crate) fn phase(self, name: &'static str, steps: u64) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let template = if steps == 0 {
            "{spinner} {msg}"
        } else {
            "{msg:24} {bar:30} {human_pos}/{human_len}"
        };
        let style = ProgressStyle::with_template(template).expect("the constant template is valid");
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr())
            .with_style(style)
            .with_message(name);
        bar.enable_steady_tick(Duration::from_millis(200));
        bar
    }

    /// A progress bar over `n` correlations; hidden with `-q` and when standard error is not a
    /// terminal.
    pub(crate) fn progress(self, n: u64) -> ProgressBar {
        self.bar(n, "{bar:40} {human_pos}/{human_len}, {eta} left")
    }

    fn bar(self, steps: u64, template: &str) -> ProgressBar {
        if self.quiet || !std::io::stderr().is_terminal() {
            return ProgressBar::hidden();
        }
        let style = ProgressStyle::with_template(template).expect("the constant template is valid");
        ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr()).with_style(style)
    }
}

/// Parses a count: decimal digits, optionally with underscores between them.
pub(crate) fn parse_count(text: &str) -> Result<u64, String> {
    let digits: String = text.chars().filter(|&character| character != '_').collect();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err("a count consists of digits, such as 1_000_000".to_owned());
    }
    match digits.parse() {
        Ok(count) if count <= MAX_COUNT => Ok(count),
        _ => Err(format!("more than {MAX_COUNT} (2^40), the most in one run")),
    }
}

/// Parses a link: rate and round-trip time, or the loopback interface with or without TLS.
pub(crate) fn parse_link(text: &str) -> Result<Link, ParseLinkError> {
    match text {
        "loopback" | "tls" => Ok(Link::LOOPBACK),
        _ => text.parse(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(parse_count("0"), Ok(0));
        assert_eq!(parse_count("10_000_000"), Ok(10_000_000));
        assert_eq!(parse_count("1099511627776"), Ok(MAX_COUNT));
        for bad in [
            "",
            "_",
            "-1",
            "1e6",
            "0x10",
            " 5",
            "1099511627777",
            "99999999999999999999999",
        ] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }
}
