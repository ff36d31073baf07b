//! The options that several calls share: the report, threads and times. [`crate::choices`] has the
//! options that determine the parameters, [`crate::endpoint`] those for the peer.

use std::ffi::OsStr;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use volery_options::{NamedValues, SetByName, parse};
use volery_os::thread::carried;

use crate::failure::{Failure, Result, Status};
use crate::report::PreparedReport;
use crate::reporter::Reporter;

/// The most correlations in one run.
pub const MAX_COUNT: u64 = 1 << 40;

volery_options::options! {
    /// The option of the report.
    pub struct ReportOptions {
        /// Write the settings, results and costs of the run to FILE as one JSON object, even if the
        /// run fails; '-' is standard output
        once report: PathBuf ["Output", "FILE", parse::path];
    }
}

volery_options::options! {
    /// The options of everything that computes with a peer.
    pub struct RunOptions {
        /// Threads for this party's computation [default: one per core]
        once threads: u16 ["Running", "T", threads];

        /// Fail if no data or heartbeat arrives from the peer for TIME, such as 90s or 2m
        default timeout: Duration ["60s", "Peer", "TIME", parse::time];
    }
}

fn threads(value: &OsStr) -> Result<u16, String> {
    parse::whole(value, 1, 1024).map(|threads| threads as u16)
}

/// The options of every call that computes.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// The option of the report.
    pub report: ReportOptions,
    /// The options of the computation.
    pub run: RunOptions,
}

impl Deref for Common {
    type Target = RunOptions;

    fn deref(&self) -> &RunOptions {
        &self.run
    }
}

impl Common {
    /// The file of the report.
    pub fn report(&self) -> Option<&Path> {
        self.report.report.as_deref()
    }

    /// Calls [`ReportOptions::prepare`].
    pub fn prepare_report(&self, reporter: &Reporter) -> Result<PreparedReport> {
        self.report.prepare(reporter)
    }
}

impl ReportOptions {
    /// Checks, before any work, that the report can be written. From now on a failure is reported,
    /// too.
    pub fn prepare(&self, reporter: &Reporter) -> Result<PreparedReport> {
        PreparedReport::prepare(self.report.as_deref(), reporter)
    }
}

impl RunOptions {
    /// A pool with the requested number of threads; one party computes in it.
    pub fn pool(&self) -> Result<Pool> {
        pool(self.threads.map_or(0, usize::from))
    }
}

/// Sets options by name, each in the first of `sets` that has it.
///
/// # Errors
/// The option at fault, or one of `required` that is missing.
pub(crate) fn fill(
    named: &NamedValues,
    sets: &mut [&mut dyn SetByName],
    required: &[&str],
) -> Result<()> {
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    volery_options::fill(named, sets).map_err(|(name, what)| Failure::usage(&flag(name), what))?;
    let has = |wanted: &str| named.iter().any(|(name, _)| name == wanted);
    match required.iter().find(|name| !has(name)) {
        Some(missing) => Err(Failure::usage(&flag(missing), "required")),
        None => Ok(()),
    }
}

/// The threads in which one party computes.
pub struct Pool(rayon::ThreadPool);

impl Pool {
    /// Runs `body` on one of them, which acts for this thread meanwhile.
    pub fn install<T: Send>(&self, body: impl FnOnce() -> T + Send) -> T {
        self.0.install(carried(body))
    }
}

/// A pool of `threads` threads; 0 means one per core.
pub fn pool(threads: usize) -> Result<Pool> {
    let built = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    built.map(Pool).map_err(unbuilt)
}

fn unbuilt(error: impl std::fmt::Display) -> Failure {
    Failure::new(Status::Other, format_args!("--threads: {error}"))
}

/// The pool of the whole process, which all threads of a service share; the first call builds it.
pub fn process_pool(threads: usize) -> Result<()> {
    static BUILT: OnceLock<Result<(), String>> = OnceLock::new();
    let build = || rayon::ThreadPoolBuilder::new().num_threads(threads).build_global();
    BUILT.get_or_init(|| build().map_err(|error| error.to_string())).clone().map_err(unbuilt)
}

/// A count of at most [`MAX_COUNT`].
pub fn count(value: &OsStr) -> Result<u64, String> {
    match parse::count(value)? {
        count if count <= MAX_COUNT => Ok(count),
        _ => Err(format!("more than {MAX_COUNT} (2^40), the most in one run")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_bounded() {
        assert_eq!(count("2^40".as_ref()), Ok(MAX_COUNT));
        assert!(count("1099511627777".as_ref()).is_err());
    }
}
