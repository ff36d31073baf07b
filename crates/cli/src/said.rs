//! What a run tells its operator, line by line, and what it keeps of it for a report.

use std::any::Any;
use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::ArgMatches;
use indicatif::{
    ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle, WeakProgressBar,
};
use serde_json::{Map, Value, json};
use volery_channel::{Cancel, Role};

use crate::exit::{Failure, Status};
use crate::output::Target;

/// The form of the lines on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Log {
    /// Human-readable lines
    #[default]
    Text,
    /// One JSON object a line: time, level, phase, message, and numbers where there are any
    Json,
}

/// Time between progress lines where standard error is no terminal.
const PROGRESS: Duration = Duration::from_secs(10);

/// Seconds of a phase that gets a line of text without `-v`.
const LONG: f64 = 1.0;

/// What a report says of a run, also of one that failed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known {
    /// Fingerprint of this party.
    pub(crate) identity: Option<String>,
    /// Fingerprint of the peer.
    pub(crate) peer: Option<String>,
    /// Names of phases, with seconds.
    pub(crate) phases: Vec<(String, f64)>,
    /// What the run reveals, once a peer was met.
    pub(crate) revealed: Vec<String>,
    current: Option<(String, Instant)>,
}

impl Known {
    /// A phase begins, and the one before it ends.
    fn begin(&mut self, name: &str) {
        self.end();
        self.current = Some((name.to_owned(), Instant::now()));
    }

    /// The current phase ends: its name and seconds.
    fn end(&mut self) -> Option<(String, f64)> {
        let (name, start) = self.current.take()?;
        let ended = (name, start.elapsed().as_secs_f64());
        self.phases.push(ended.clone());
        Some(ended)
    }

    /// The phases, with the current one as long as it has taken.
    pub(crate) fn phases(&self) -> Vec<(String, f64)> {
        let current = self.current.iter();
        let current = current.map(|(name, start)| (name.clone(), start.elapsed().as_secs_f64()));
        self.phases.iter().cloned().chain(current).collect()
    }

    fn phase(&self) -> Option<String> {
        self.current.as_ref().map(|(name, _)| name.clone())
    }
}

/// Writes one line to standard error in one call, so that lines of two processes do not mix.
fn line(text: &str) {
    // A closed standard error leaves nothing to do.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// The time now, as RFC 3339 in UTC.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    rfc3339(since.unwrap_or_default().as_secs())
}

fn rfc3339(seconds: u64) -> String {
    // Days from 1 March 0000; a year that begins in March ends with the leap day.
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// `1 row`, `2 rows`.
pub(crate) fn many(number: u64, one: &str) -> String {
    let s = if number == 1 { "" } else { "s" };
    format!("{number} {one}{s}")
}

/// The weight of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The failure of a run.
    Error,
    /// Something to look into.
    Warning,
    /// The course of a run.
    Info,
    /// What explains it.
    Debug,
    /// Details.
    Trace,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}

/// Receives what a run tells. Called on threads of the run; must not block.
pub trait Events: Send + Sync {
    /// A line that the program writes to standard error, without `volery: ` in front.
    fn line(&self, level: Level, text: &str);

    /// A phase of so many steps begins; 0 where their number is not known.
    fn phase(&self, name: &str, steps: u64);

    /// So many steps of the phase are done by now.
    fn done(&self, steps: u64);
}

/// What one run tells, and what it keeps of it for its report. Clones are the same.
#[derive(Clone)]
pub(crate) struct Reporter(Arc<Run>);

struct Run {
    to: To,
    cancel: Cancel,
    quiet: bool,
    verbose: u8,
    log: Log,
    verb: String,
    role: Option<String>,
    start: Instant,
    known: Mutex<Known>,
    /// Where the report goes that is not written yet.
    report: Mutex<Option<Target>>,
}

/// Where the lines of a run go.
enum To {
    /// To standard error, and results to standard output: the program.
    Streams,
    /// To the caller, who gets the results as values.
    Events(Arc<dyn Events>),
}

impl Reporter {
    /// The reporter of a run for a caller.
    pub(crate) fn of_caller(
        events: Arc<dyn Events>,
        cancel: Cancel,
        verb: &str,
        role: Option<Role>,
    ) -> Self {
        Self(Arc::new(Run {
            to: To::Events(events),
            cancel,
            quiet: false,
            verbose: 0,
            log: Log::default(),
            verb: verb.to_owned(),
            role: role.map(|role| role.name().to_owned()),
            start: Instant::now(),
            known: Mutex::default(),
            report: Mutex::default(),
        }))
    }

    /// The reporter of the program, for the subcommand that `matches` holds.
    pub(crate) fn of_program(matches: &ArgMatches) -> Self {
        /// The value of an option that not all subcommands have.
        fn value<T: Any + Clone + Send + Sync>(matches: &ArgMatches, name: &str) -> Option<T> {
            matches.try_get_one::<T>(name).ok().flatten().cloned()
        }
        let mut last = matches;
        while let Some((_, inner)) = last.subcommand() {
            last = inner;
        }
        Self(Arc::new(Run {
            to: To::Streams,
            cancel: Cancel::default(),
            quiet: value(last, "quiet").unwrap_or(false),
            verbose: value(last, "verbose").unwrap_or(0),
            log: value(last, "log").unwrap_or_default(),
            verb: matches.subcommand_name().unwrap_or_default().to_owned(),
            role: value::<Role>(last, "role")
                .map(|role| role.name().to_owned())
                .or_else(|| value::<String>(last, "role")),
            start: Instant::now(),
            known: Mutex::default(),
            report: Mutex::default(),
        }))
    }

    /// A reporter that says nothing.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        let matches = clap::Command::new("test")
            .arg(clap::arg!(--quiet))
            .get_matches_from(["test", "--quiet"]);
        Self::of_program(&matches)
    }

    /// What a report says of the run so far.
    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.0.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the report goes that is not written yet.
    pub(crate) fn pending(&self) -> MutexGuard<'_, Option<Target>> {
        self.0.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subcommand and the role of this side.
    pub(crate) fn verb_and_role(&self) -> (&str, Option<String>) {
        (&self.0.verb, self.0.role.clone())
    }

    /// What ends the run from another thread.
    pub(crate) fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Whether this is the program, which has standard streams and only one run.
    pub(crate) fn is_program(&self) -> bool {
        matches!(self.0.to, To::Streams)
    }

    /// Writes a result to standard output; callers have it as a value.
    ///
    /// # Errors
    /// Those of standard output.
    pub(crate) fn output(&self, text: &str) -> Result<(), Failure> {
        if !self.is_program() {
            return Ok(());
        }
        std::io::stdout()
            .write_all(text.as_bytes())
            .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
    }

    /// A line: `prefix` is left out in JSON and for callers.
    fn log(&self, level: Level, prefix: &str, message: &str, numbers: Map<String, Value>) {
        match (&self.0.to, self.0.log) {
            (To::Events(events), _) => events.line(level, message),
            (To::Streams, Log::Text) => line(&format!("{prefix}{message}")),
            (To::Streams, Log::Json) => {
                let mut object = Map::from_iter([
                    ("time".to_owned(), now().into()),
                    ("level".to_owned(), level.name().into()),
                    ("phase".to_owned(), self.known().phase().into()),
                    ("message".to_owned(), message.into()),
                ]);
                object.extend(numbers);
                line(&Value::Object(object).to_string());
            }
        }
    }

    /// Tells that the run failed, if that goes to standard error: a caller gets the failure.
    pub(crate) fn fail(&self, failure: &Failure) {
        match (&self.0.to, self.0.log) {
            (To::Events(_), _) => {}
            (To::Streams, Log::Text) => failure.print(),
            (To::Streams, Log::Json) => {
                let status = failure.status() as u8;
                let mut more = Map::from_iter([("status".to_owned(), status.into())]);
                if let Some(hint) = failure.hint() {
                    more.insert("hint".to_owned(), hint.into());
                }
                self.log(Level::Error, "", failure.message(), more);
            }
        }
    }

    /// Prints a line that even `-q` leaves.
    pub(crate) fn warn(&self, message: impl fmt::Display) {
        self.log(Level::Warning, "note: ", &message.to_string(), Map::new());
    }

    /// Prints a line about something to look into, unless `-q` is set.
    pub(crate) fn caution(&self, message: impl fmt::Display) {
        if self.is_heard(!self.0.quiet) {
            self.warn(message);
        }
    }

    /// Whether callers get all lines, whatever the options.
    fn is_heard(&self, wanted: bool) -> bool {
        wanted || !self.is_program()
    }

    /// Prints a result line, unless `-q` is set.
    pub(crate) fn say(&self, message: impl fmt::Display) {
        if self.is_heard(!self.0.quiet) {
            self.log(Level::Info, "", &message.to_string(), Map::new());
        }
    }

    /// Prints a line about the run, unless `-q` is set.
    pub(crate) fn tell(&self, message: impl fmt::Display) {
        self.tell_with(message, Map::new());
    }

    /// As [`tell`](Self::tell), in the same words at each `-v`: for scripts.
    pub(crate) fn announce(&self, message: impl fmt::Display) {
        if self.is_heard(!self.0.quiet) {
            self.log(Level::Info, "volery: ", &message.to_string(), Map::new());
        }
    }

    /// As [`tell`](Self::tell); with `--log json` the line has the fields of `numbers`, too.
    pub(crate) fn tell_with(&self, message: impl fmt::Display, numbers: Map<String, Value>) {
        if self.is_heard(!self.0.quiet) {
            self.log(Level::Info, &self.prefix(), &message.to_string(), numbers);
        }
    }

    /// Prints a line about a phase, only with `-v`.
    pub(crate) fn explain(&self, message: impl fmt::Display) {
        if self.is_heard(self.0.verbose > 0) {
            self.log(
                Level::Debug,
                &self.prefix(),
                &message.to_string(),
                Map::new(),
            );
        }
    }

    /// Prints a detail, only with `-vv`.
    pub(crate) fn detail(&self, message: impl fmt::Display) {
        if self.is_heard(self.0.verbose > 1) {
            self.log(
                Level::Trace,
                &self.prefix(),
                &message.to_string(),
                Map::new(),
            );
        }
    }

    /// With `-vv`, lines have the seconds since the start.
    fn prefix(&self) -> String {
        match self.0.verbose {
            0 | 1 => "volery: ".to_owned(),
            _ => format!("volery: {:9.3} s: ", self.0.start.elapsed().as_secs_f64()),
        }
    }

    /// Prints a line about the begin of a phase, or about its end after `seconds`. As text, without
    /// `-v`, only the ends of long ones.
    fn tell_phase(
        &self,
        message: impl fmt::Display,
        seconds: Option<f64>,
        numbers: Map<String, Value>,
    ) {
        let is_long = seconds.is_some_and(|seconds| seconds >= LONG);
        let is_wanted = self.0.log == Log::Json || self.0.verbose > 0 || is_long;
        if self.is_heard(!self.0.quiet && is_wanted) {
            self.log(Level::Info, &self.prefix(), &message.to_string(), numbers);
        }
    }

    /// Begins a phase of the run: a line at its begin and, by [`end`](Self::end) or the next phase,
    /// one at its end.
    pub(crate) fn begin(&self, name: &str) {
        self.begin_of(name, 0);
    }

    fn begin_of(&self, name: &str, steps: u64) {
        self.end();
        self.known().begin(name);
        self.tell_phase(format_args!("{name} begins"), None, Map::new());
        if let To::Events(events) = &self.0.to {
            events.phase(name, steps);
        }
    }

    /// Ends the current phase, if there is one.
    pub(crate) fn end(&self) {
        let ended = self.known().end();
        if let Some((name, seconds)) = ended {
            let numbers = Map::from_iter([
                ("ended".to_owned(), name.as_str().into()),
                ("seconds".to_owned(), json!(seconds)),
            ]);
            let line = format!("{name} took {seconds:.3} s");
            self.tell_phase(line, Some(seconds), numbers);
            if let Some(bytes) = crate::memory::peak_memory() {
                self.detail(format_args!("peak memory {} MB", bytes / 1_000_000));
            }
        }
    }

    /// Begins a phase of `steps` steps, 0 where they are not known, with a progress bar: on a
    /// terminal it is drawn, elsewhere a line every ten seconds says how far it is.
    pub(crate) fn phase(&self, name: &'static str, steps: u64) -> Bar {
        self.begin_of(name, steps);
        self.bar(name, steps)
    }

    /// A progress bar over `n` correlations.
    pub(crate) fn progress(&self, n: u64) -> Bar {
        self.bar("correlations", n)
    }

    fn bar(&self, name: &'static str, steps: u64) -> Bar {
        let streams = self.is_program() && !self.0.quiet;
        let is_drawn = streams && self.0.log == Log::Text && std::io::stderr().is_terminal();
        let target = match is_drawn {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        // The bar takes the columns that the rest leaves.
        let template = match steps {
            0 => "{spinner} {msg}",
            _ => "{msg} {wide_bar} {percent}% {rate} {eta}",
        };
        let style = ProgressStyle::with_template(template)
            .expect("the constant template is valid")
            .with_key("rate", |state: &ProgressState, out: &mut dyn fmt::Write| {
                // A cell that cannot be drawn is left out.
                let _ = write!(out, "{:.0}/s", state.per_sec());
            });
        let bar = ProgressBar::with_draw_target(Some(steps), target)
            .with_style(style)
            .with_message(name)
            .with_finish(ProgressFinish::AndClear);
        if is_drawn {
            bar.enable_steady_tick(Duration::from_millis(200));
        } else if streams && steps > 0 {
            let watched = bar.downgrade();
            let reporter = self.clone();
            // Without a thread there are no progress lines.
            let _ = thread::Builder::new()
                .name("volery progress".into())
                .spawn(move || reporter.watch(name, &watched));
        }
        Bar {
            bar,
            reporter: self.clone(),
        }
    }

    /// Prints a line every ten seconds until the bar is gone or full.
    fn watch(&self, name: &str, bar: &WeakProgressBar) {
        let start = Instant::now();
        let mut next = PROGRESS;
        loop {
            thread::sleep(Duration::from_millis(250));
            let Some(bar) = bar.upgrade().filter(|bar| !bar.is_finished()) else {
                return;
            };
            if start.elapsed() < next {
                continue;
            }
            next = start.elapsed() + PROGRESS;
            let (done, all) = (bar.position(), bar.length().unwrap_or_default());
            drop(bar);
            if let Some((text, numbers)) = progress(name, done, all, start.elapsed()) {
                self.tell_with(text, numbers);
            }
        }
    }
}

/// How far a phase is, as it is shown.
pub(crate) struct Bar {
    pub(crate) bar: ProgressBar,
    reporter: Reporter,
}

/// What a thread unwinds with when the run was cancelled; not a panic, and no hook is called.
pub(crate) struct Cancelled;

impl Bar {
    /// `steps` steps are done by now. A run that was cancelled ends here: code that computes waits
    /// for no connection, which would be closed.
    pub(crate) fn set_position(&self, steps: u64) {
        self.bar.set_position(steps);
        self.moved();
    }

    /// `steps` more steps are done.
    pub(crate) fn inc(&self, steps: u64) {
        self.bar.inc(steps);
        self.moved();
    }

    fn moved(&self) {
        if self.reporter.cancel().is_cancelled() {
            std::panic::resume_unwind(Box::new(Cancelled));
        }
        if let To::Events(events) = &self.reporter.0.to {
            events.done(self.bar.position());
        }
    }

    /// Prints a line about a phase, with the bar out of the way.
    pub(crate) fn explain(&self, message: &str) {
        self.bar.suspend(|| self.reporter.explain(message));
    }

    /// The phase is over.
    pub(crate) fn finish_and_clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// A progress line, with its numbers.
fn progress(
    name: &str,
    done: u64,
    all: u64,
    elapsed: Duration,
) -> Option<(String, Map<String, Value>)> {
    let percent = (u128::from(done) * 100).checked_div(all.into())?;
    let rate = done as f64 / elapsed.as_secs_f64();
    let mut numbers = Map::from_iter([
        ("done".to_owned(), json!(done)),
        ("of".to_owned(), json!(all)),
        ("per_second".to_owned(), json!(rate)),
    ]);
    // A step may take longer than a second.
    let digits = if rate < 10.0 { 2 } else { 0 };
    let mut text = format!("{name}: {done} of {all} ({percent} %), {rate:.digits$}/s");
    if rate > 0.0 {
        let left = all.saturating_sub(done) as f64 / rate;
        numbers.insert("seconds_left".to_owned(), json!(left));
        text += &format!(", {left:.0} s left");
    }
    Some((text, numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, date) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_735_689_599, "2024-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), date);
        }
    }

    #[test]
    fn progress_has_rate_and_remaining_time() {
        let line = |done, all| progress("items", done, all, Duration::from_secs(10));
        let (text, numbers) = line(250, 1000).expect("there are steps");
        assert_eq!(text, "items: 250 of 1000 (25 %), 25/s, 30 s left");
        assert_eq!(numbers["seconds_left"], 30.0);
        assert_eq!(
            line(0, 10).expect("there are steps").0,
            "items: 0 of 10 (0 %), 0.00/s"
        );
        assert!(line(0, 0).is_none());
    }

    #[test]
    fn one_is_singular() {
        assert_eq!(
            [many(0, "row"), many(1, "row"), many(2, "row")],
            ["0 rows", "1 row", "2 rows"]
        );
    }
}
