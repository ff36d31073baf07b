//! The lines that a run tells its operator, and the record that it keeps of them for a report.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use volery_channel::{Cancel, Role};
use volery_os::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use volery_os::thread;
use volery_os::time::{Duration, Instant};

use crate::failure::{Failure, Result, Status};
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
    pub fn phase(&self) -> Option<String> {
        self.current.as_ref().map(|(name, _)| name.clone())
    }
}

/// The time now to the millisecond, as RFC 3339 in UTC.
pub fn precisely_now() -> String {
    let now = OffsetDateTime::now_utc();
    let (hour, minute, second, millis) = now.to_hms_milli();
    format!("{}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z", now.date())
}

/// The time now to the second, as RFC 3339 in UTC.
pub fn now() -> String {
    precisely_now().split('.').next().unwrap_or_default().to_owned() + "Z"
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
    pub fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

/// Receives what a run tells. Called on threads of the run; must not block.
pub trait Events: Send + Sync {
    /// A line that the program writes to standard error, without `volery: ` in front, and its
    /// fields as a JSON object.
    fn line(&self, level: Level, text: &str, fields: &str);

    /// A phase of so many steps begins; 0 where their number is not known.
    fn phase(&self, name: &str, steps: u64);

    /// `steps` steps of the phase are done by now.
    fn done(&self, steps: u64);

    /// The counter of the bytes that the run sends and receives.
    fn traffic(&self) -> Arc<AtomicU64> {
        Arc::default()
    }
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
    /// A line about the begin or the end of a phase: without `-v` only the end of a long one.
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
    pub fn level(self) -> Level {
        match self {
            Self::Warning | Self::Caution => Level::Warning,
            Self::Result | Self::Announcement | Self::Course | Self::Phase { is_long: true } => {
                Level::Info
            }
            Self::Phase { is_long: false } | Self::Explanation => Level::Debug,
            Self::Detail => Level::Trace,
        }
    }
}

/// A line of a run.
#[derive(Clone, Debug)]
pub struct Line<'a> {
    /// Its kind.
    pub kind: LineKind,
    /// Its text: lines, in which a person reads the fields.
    pub text: &'a str,
    /// The phase of the run.
    pub phase: Option<&'a str>,
    /// Fields that programs read in place of the text: a name, `event`, and numbers.
    pub fields: Map<String, Value>,
}

/// The fields of a JSON literal.
pub(crate) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => unreachable!("the JSON literal is an object"),
    }
}

/// The fields of an event, those of a JSON object with its name.
///
/// # Panics
/// If `fields` is no object.
pub fn event(name: &str, fields: Value) -> Map<String, Value> {
    let mut fields = object(fields);
    fields.insert("event".to_owned(), name.into());
    fields
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
    fn output(&self, text: &str) -> io::Result<()>;
}

/// The place of a report.
pub(crate) enum Target {
    File(SingleFile),
    /// Standard output.
    Output,
}

impl Target {
    pub(crate) fn write(self, json: &str, reporter: &Reporter) -> Result<()> {
        match self {
            Self::File(file) => file.commit(json.as_bytes()),
            Self::Output => reporter.output(json),
        }
    }
}

/// Defines a method for each kind of line without fields.
macro_rules! lines {
    ($($(#[$doc:meta])* $name:ident $kind:ident;)*) => {
        impl Reporter {
            $($(#[$doc])* pub fn $name(&self, message: impl fmt::Display) {
                self.line(LineKind::$kind, message, Map::new());
            })*
        }
    };
}

lines! {
    /// Prints a line that even `-q` leaves.
    warn Warning;
    /// Prints a line about something to look into, unless `-q` is set.
    caution Caution;
    /// Prints a result line, unless `-q` is set.
    say Result;
    /// Tells a line as [`tell`](Self::tell) does, in the same words at each `-v`: for scripts.
    announce Announcement;
    /// Prints a line about a phase, only with `-v`.
    explain Explanation;
    /// Prints a detail, only with `-vv`.
    detail Detail;
    /// Prints a line about the run, unless `-q` is set.
    tell Course;
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
    pub fn of_caller(
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

    /// The counter of the bytes that the run sends and receives.
    pub(crate) fn traffic(&self) -> Arc<AtomicU64> {
        match &self.0.to {
            Recipient::Events(events) => events.traffic(),
            Recipient::Program(_) => Arc::default(),
        }
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
    pub fn output(&self, text: &str) -> Result<()> {
        let Recipient::Program(program) = &self.0.to else {
            return Ok(());
        };
        let written = program.output(text);
        written
            .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
    }

    /// Tells a line of this kind; its fields are for programs.
    pub fn line(&self, kind: LineKind, text: impl fmt::Display, fields: Map<String, Value>) {
        let text = &*text.to_string();
        match &self.0.to {
            Recipient::Events(events) => {
                let fields = Value::Object(fields).to_string();
                text.lines().for_each(|line| events.line(kind.level(), line, &fields));
            }
            Recipient::Program(program) => {
                let phase = self.record().phase();
                let phase = phase.as_deref();
                program.line(Line { kind, text, phase, fields });
            }
        }
    }

    /// Announces an address at which this process listens.
    pub fn announce_listener(&self, address: &str) {
        let fields = event("listening", json!({ "address": address }));
        self.line(LineKind::Announcement, format_args!("listening on {address}"), fields);
    }

    /// Tells a line as [`tell`](Self::tell) does; with `--log json` it has these fields.
    pub fn tell_with(&self, message: impl fmt::Display, fields: Map<String, Value>) {
        self.line(LineKind::Course, message, fields);
    }

    /// Begins a phase of the run: a line at its begin and, by [`end`](Self::end) or the next phase,
    /// one at its end.
    pub fn begin(&self, name: &str) {
        self.begin_of(name, 0);
    }

    fn begin_of(&self, name: &str, steps: u64) {
        if self.record().phase().as_deref() == Some(name) {
            return;
        }
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
            let fields = event("phase", json!({ "ended": name, "seconds": seconds }));
            let line = format!("{name} took {seconds:.3} s");
            let is_long = seconds >= LONG;
            self.line(LineKind::Phase { is_long }, line, fields);
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
    let mut numbers = event("progress", json!({ "done": done, "of": all, "per_second": rate }));
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

/// The refused clients of a service, of which not too many are reported.
#[derive(Default)]
pub struct Refusals {
    count: u64,
    /// The minute in which they are counted, with their number.
    minute: Option<(Instant, u64)>,
}

impl Refusals {
    /// Refusals that are reported one by one in a minute; more would flood the log.
    const MAX_REPORTED: u64 = 30;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Counts one more; whether it is reported, and how many of the minute before were not.
    fn add(&mut self, now: Instant) -> (bool, u64) {
        self.count += 1;
        let (start, count) = self.minute.get_or_insert((now, 0));
        let mut left_out = 0;
        if now.duration_since(*start) >= Self::MINUTE {
            left_out = count.saturating_sub(Self::MAX_REPORTED);
            (*start, *count) = (now, 0);
        }
        *count += 1;
        (*count <= Self::MAX_REPORTED, left_out)
    }

    /// Counts one more; whether it is to be reported.
    pub fn add_one(&mut self, reporter: &Reporter) -> bool {
        let (is_told, left_out) = self.add(Instant::now());
        if left_out > 0 {
            let fields = [("event", "refused".into()), ("more", left_out.into())];
            let fields = fields.map(|(name, value): (_, Value)| (name.to_owned(), value));
            let text = format_args!("{left_out} more were refused in a minute");
            reporter.tell_with(text, Map::from_iter(fields));
        }
        is_told
    }

    /// Their number.
    pub fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_do_not_flood_the_log() {
        let mut refusals = Refusals::default();
        let start = Instant::now();
        let told = (0..100).filter(|_| refusals.add(start).0).count();
        assert_eq!(told, 30);
        assert_eq!(refusals.add(start + Refusals::MINUTE), (true, 70));
        assert_eq!(refusals.add(start + 3 * Refusals::MINUTE), (true, 0));
        assert_eq!(refusals.count, 102);
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
}
