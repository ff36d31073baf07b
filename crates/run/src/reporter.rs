//! The lines that a run tells its operator, and the record that it keeps of them for a report.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Map, Value, json};
use volery_channel::{Cancel, Role};

use crate::failure::{Failure, Status};
use crate::output::SingleFile;

/// Time between progress lines where standard error is no terminal.
const PROGRESS: Duration = Duration::from_secs(10);

/// Seconds of a long phase.
const LONG: f64 = 1.0;

/// The record of a run for its report, also of one that failed.
#[derive(Clone, Debug, Default)]
pub struct RunRecord {
    /// Fingerprint of this party.
    pub identity: Option<String>,
    /// Fingerprint of the peer.
    pub peer: Option<String>,
    /// Names of phases, with seconds.
    pub phases: Vec<(String, f64)>,
    /// The facts that the run reveals, once a peer was met.
    pub revealed: Vec<String>,
    current: Option<(String, Instant)>,
}

impl RunRecord {
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
    pub fn phases(&self) -> Vec<(String, f64)> {
        let current = self.current.iter();
        let current = current.map(|(name, start)| (name.clone(), start.elapsed().as_secs_f64()));
        self.phases.iter().cloned().chain(current).collect()
    }

    /// The name of the current phase.
    #[must_use]
    pub fn phase(&self) -> Option<String> {
        self.current.as_ref().map(|(name, _)| name.clone())
    }
}

/// The time now, as RFC 3339 in UTC.
pub fn now() -> String {
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
pub fn many(number: u64, one: &str) -> String {
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
    /// The explanation of the course.
    Debug,
    /// Details.
    Trace,
}

impl Level {
    /// The name in the lines of `--log json`.
    #[must_use]
    pub fn name(self) -> &'static str {
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

    /// `steps` steps of the phase are done by now.
    fn done(&self, steps: u64);
}

/// How a line begins where people read it, and which option `-q` or `-v` it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// A line that even `-q` leaves.
    Warning,
    /// A line about something to look into.
    Caution,
    /// A result.
    Result,
    /// A line about the run for scripts: the same at each `-v`.
    Announcement,
    /// A line about the run.
    Course,
    /// A line about the begin or the end of a phase: as text, without `-v`, only the end of a long
    /// one.
    Phase {
        /// Whether it is the end of a long one.
        is_long: bool,
    },
    /// A line about a phase, for `-v`.
    Explanation,
    /// A line for `-vv`.
    Detail,
}

impl LineKind {
    /// The weight of the line.
    #[must_use]
    pub fn level(self) -> Level {
        match self {
            Self::Warning | Self::Caution => Level::Warning,
            Self::Result | Self::Announcement | Self::Course | Self::Phase { .. } => Level::Info,
            Self::Explanation => Level::Debug,
            Self::Detail => Level::Trace,
        }
    }
}

/// A line of a run.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its kind.
    pub kind: LineKind,
    /// Its text.
    pub text: &'a str,
    /// The phase of the run.
    pub phase: Option<&'a str>,
    /// Its numbers.
    pub numbers: Map<String, Value>,
}

/// The form in which a program shows the progress of a phase.
pub enum Display {
    /// Not at all.
    Hidden,
    /// By a line every ten seconds.
    Lines,
    /// By a bar.
    Drawn(Box<dyn Drawing>),
}

/// A bar on a terminal; it goes away with this object.
pub trait Drawing: Send + Sync {
    /// Shows that `steps` steps are done.
    fn set_position(&self, steps: u64);

    /// Writes a line, with the bar out of the way.
    fn suspend(&self, write: &mut dyn FnMut());

    /// Removes the bar.
    fn clear(&self);
}

/// The program: it has standard streams and only one run.
pub trait Program: Send + Sync {
    /// Whether `-q` is set.
    fn is_quiet(&self) -> bool;

    /// Writes a line to standard error, if the options ask for it.
    fn line(&self, line: Line<'_>);

    /// Shows a phase of so many steps; 0 where their number is not known.
    fn display(&self, name: &'static str, steps: u64) -> Display;

    /// Writes a result to standard output.
    ///
    /// # Errors
    /// Errors of standard output.
    fn output(&self, text: &str) -> io::Result<()>;
}

/// The place of a report.
pub(crate) enum Target {
    File(SingleFile),
    /// Standard output.
    Output,
}

impl Target {
    /// Writes the whole report.
    pub(crate) fn write(self, json: &str, reporter: &Reporter) -> Result<(), Failure> {
        match self {
            Self::File(file) => file.commit(json.as_bytes()),
            Self::Output => reporter.output(json),
        }
    }
}

/// Tells the lines of one run, and keeps its record for the report. Clones are the same.
#[derive(Clone)]
pub struct Reporter(Arc<Run>);

struct Run {
    to: Recipient,
    cancel: Cancel,
    verb: String,
    role: Option<String>,
    record: Mutex<RunRecord>,
    /// Where the report goes that is not written yet.
    report: Mutex<Option<Target>>,
}

/// Where the lines of a run go.
enum Recipient {
    /// To standard error, and results to standard output.
    Program(Arc<dyn Program>),
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
        let role = role.map(|role| role.name().to_owned());
        Self::new(Recipient::Events(events), cancel, verb, role)
    }

    /// The reporter of the program, for the subcommand `verb` and a role.
    pub fn of_program(program: Arc<dyn Program>, verb: &str, role: Option<String>) -> Self {
        Self::new(Recipient::Program(program), Cancel::default(), verb, role)
    }

    fn new(to: Recipient, cancel: Cancel, verb: &str, role: Option<String>) -> Self {
        Self(Arc::new(Run {
            to,
            cancel,
            verb: verb.to_owned(),
            role,
            record: Mutex::default(),
            report: Mutex::default(),
        }))
    }

    /// A reporter of a program that says nothing.
    #[cfg(test)]
    pub(crate) fn for_tests() -> Self {
        struct Quiet;

        impl Program for Quiet {
            fn is_quiet(&self) -> bool {
                true
            }

            fn line(&self, _: Line<'_>) {}

            fn display(&self, _: &'static str, _: u64) -> Display {
                Display::Hidden
            }

            fn output(&self, _: &str) -> io::Result<()> {
                Ok(())
            }
        }

        Self::of_program(Arc::new(Quiet), "test", None)
    }

    /// The record of the run so far.
    pub fn record(&self) -> MutexGuard<'_, RunRecord> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the report goes that is not written yet.
    pub(crate) fn pending(&self) -> MutexGuard<'_, Option<Target>> {
        self.0.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The subcommand and the role of this side.
    pub fn verb_and_role(&self) -> (&str, Option<String>) {
        (&self.0.verb, self.0.role.clone())
    }

    /// The token that ends the run from another thread.
    pub fn cancel(&self) -> &Cancel {
        &self.0.cancel
    }

    /// Whether this is the program, which has standard streams and only one run.
    pub fn is_program(&self) -> bool {
        matches!(self.0.to, Recipient::Program(_))
    }

    /// Whether the program was asked for errors only.
    pub fn is_quiet(&self) -> bool {
        match &self.0.to {
            Recipient::Program(program) => program.is_quiet(),
            Recipient::Events(_) => false,
        }
    }

    /// Writes a result to standard output; callers have it as a value.
    ///
    /// # Errors
    /// Errors of standard output.
    pub fn output(&self, text: &str) -> Result<(), Failure> {
        let Recipient::Program(program) = &self.0.to else {
            return Ok(());
        };
        let written = program.output(text);
        written
            .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
    }

    fn line(&self, kind: LineKind, text: impl fmt::Display, numbers: Map<String, Value>) {
        let text = &*text.to_string();
        match &self.0.to {
            Recipient::Events(events) => events.line(kind.level(), text),
            Recipient::Program(program) => {
                let phase = self.record().phase();
                let phase = phase.as_deref();
                program.line(Line { kind, text, phase, numbers });
            }
        }
    }

    /// Prints a line that even `-q` leaves.
    pub fn warn(&self, message: impl fmt::Display) {
        self.line(LineKind::Warning, message, Map::new());
    }

    /// Prints a line about something to look into, unless `-q` is set.
    pub fn caution(&self, message: impl fmt::Display) {
        self.line(LineKind::Caution, message, Map::new());
    }

    /// Prints a result line, unless `-q` is set.
    pub fn say(&self, message: impl fmt::Display) {
        self.line(LineKind::Result, message, Map::new());
    }

    /// Prints a line about the run, unless `-q` is set.
    pub fn tell(&self, message: impl fmt::Display) {
        self.tell_with(message, Map::new());
    }

    /// Tells a line as [`tell`](Self::tell) does, in the same words at each `-v`: for scripts.
    pub fn announce(&self, message: impl fmt::Display) {
        self.line(LineKind::Announcement, message, Map::new());
    }

    /// Tells a line as [`tell`](Self::tell) does; with `--log json` it has the fields of `numbers`,
    /// too.
    pub fn tell_with(&self, message: impl fmt::Display, numbers: Map<String, Value>) {
        self.line(LineKind::Course, message, numbers);
    }

    /// Prints a line about a phase, only with `-v`.
    pub fn explain(&self, message: impl fmt::Display) {
        self.line(LineKind::Explanation, message, Map::new());
    }

    /// Prints a detail, only with `-vv`.
    pub fn detail(&self, message: impl fmt::Display) {
        self.line(LineKind::Detail, message, Map::new());
    }

    /// Begins a phase of the run: a line at its begin and, by [`end`](Self::end) or the next phase,
    /// one at its end.
    pub fn begin(&self, name: &str) {
        self.begin_of(name, 0);
    }

    fn begin_of(&self, name: &str, steps: u64) {
        self.end();
        self.record().begin(name);
        let line = format_args!("{name} begins");
        self.line(LineKind::Phase { is_long: false }, line, Map::new());
        if let Recipient::Events(events) = &self.0.to {
            events.phase(name, steps);
        }
    }

    /// Ends the current phase, if there is one.
    pub fn end(&self) {
        let ended = self.record().end();
        if let Some((name, seconds)) = ended {
            let numbers = Map::from_iter([
                ("ended".to_owned(), name.as_str().into()),
                ("seconds".to_owned(), json!(seconds)),
            ]);
            let line = format!("{name} took {seconds:.3} s");
            let is_long = seconds >= LONG;
            self.line(LineKind::Phase { is_long }, line, numbers);
            if let Some(bytes) = crate::memory::peak_memory() {
                self.detail(format_args!("peak memory {} MB", bytes / 1_000_000));
            }
        }
    }

    /// Begins a phase of `steps` steps, 0 where they are not known, with a progress bar: on a
    /// terminal it is drawn, elsewhere a line every ten seconds says how far it is.
    pub fn phase(&self, name: &'static str, steps: u64) -> Bar {
        self.begin_of(name, steps);
        self.bar(name, steps)
    }

    /// A progress bar over `n` correlations.
    pub fn progress(&self, n: u64) -> Bar {
        self.bar("correlations", n)
    }

    fn bar(&self, name: &'static str, steps: u64) -> Bar {
        let display = match &self.0.to {
            Recipient::Program(program) => program.display(name, steps),
            Recipient::Events(_) => Display::Hidden,
        };
        let progress = Arc::new(PhaseSteps {
            steps,
            done: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
        });
        let drawing = match display {
            Display::Drawn(drawing) => Some(drawing),
            Display::Lines if steps > 0 => {
                let (watched, reporter) = (Arc::downgrade(&progress), self.clone());
                // Without a thread there are no progress lines.
                let _ = thread::Builder::new()
                    .name("volery progress".into())
                    .spawn(move || reporter.watch(name, &watched));
                None
            }
            Display::Lines | Display::Hidden => None,
        };
        Bar { progress, drawing, reporter: self.clone() }
    }

    /// Prints a line every ten seconds until the phase is over.
    fn watch(&self, name: &str, progress_of: &Weak<PhaseSteps>) {
        let start = Instant::now();
        let mut next = PROGRESS;
        loop {
            thread::sleep(Duration::from_millis(250));
            let phase = progress_of.upgrade();
            let Some(phase) = phase.filter(|phase| !phase.is_over.load(Ordering::Relaxed)) else {
                return;
            };
            if start.elapsed() < next {
                continue;
            }
            next = start.elapsed() + PROGRESS;
            let done = phase.done.load(Ordering::Relaxed);
            if let Some((text, numbers)) = progress(name, done, phase.steps, start.elapsed()) {
                self.tell_with(text, numbers);
            }
        }
    }
}

/// The steps of a phase.
struct PhaseSteps {
    steps: u64,
    done: AtomicU64,
    is_over: AtomicBool,
}

/// How far a phase is, as it is shown.
pub struct Bar {
    progress: Arc<PhaseSteps>,
    drawing: Option<Box<dyn Drawing>>,
    reporter: Reporter,
}

/// The payload of a thread that unwinds because the run was cancelled; not a panic, and no hook is
/// called.
struct Cancellation;

impl Bar {
    /// `steps` steps are done by now. A run that was cancelled ends here: code that computes waits
    /// for no connection, which would be closed.
    pub(crate) fn set_position(&self, steps: u64) {
        self.progress.done.store(steps, Ordering::Relaxed);
        self.moved(steps);
    }

    /// `steps` more steps are done.
    pub fn inc(&self, steps: u64) {
        let before = self.progress.done.fetch_add(steps, Ordering::Relaxed);
        self.moved(before + steps);
    }

    fn moved(&self, done: u64) {
        if let Some(drawing) = &self.drawing {
            drawing.set_position(done);
        }
        if self.reporter.cancel().is_cancelled() {
            std::panic::resume_unwind(Box::new(Cancellation));
        }
        if let Recipient::Events(events) = &self.reporter.0.to {
            events.done(done);
        }
    }

    /// Prints a line about a phase, with the bar out of the way.
    pub fn explain(&self, message: &str) {
        match &self.drawing {
            Some(drawing) => drawing.suspend(&mut || self.reporter.explain(message)),
            None => self.reporter.explain(message),
        }
    }

    /// The phase is over.
    pub fn finish_and_clear(&self) {
        self.progress.is_over.store(true, Ordering::Relaxed);
        if let Some(drawing) = &self.drawing {
            drawing.clear();
        }
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
        assert_eq!(line(0, 10).expect("there are steps").0, "items: 0 of 10 (0 %), 0.00/s");
        assert!(line(0, 0).is_none());
    }

    #[test]
    fn one_is_singular() {
        assert_eq!([many(0, "row"), many(1, "row"), many(2, "row")], ["0 rows", "1 row", "2 rows"]);
    }
}
