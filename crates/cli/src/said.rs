//! What the program tells its operator on standard error, line by line, and what it keeps of it for
//! a report.

use std::fmt;
use std::io::{IsTerminal as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use indicatif::{
    ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle, WeakProgressBar,
};
use serde_json::{Map, Value, json};

/// The form of the lines on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Log {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object a line: time, level, phase, message, and numbers where there are any
    Json,
}

/// Time between progress lines where standard error is no terminal.
const PROGRESS: Duration = Duration::from_secs(10);

/// Whether lines are JSON. Errors, which know no options, are too.
static JSON: AtomicBool = AtomicBool::new(false);

/// The run of this process so far.
static RUN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

/// When the process began to speak.
static START: LazyLock<Instant> = LazyLock::new(Instant::now);

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

/// The run of this process so far.
pub(crate) fn known() -> MutexGuard<'static, Known> {
    RUN.lock().unwrap_or_else(PoisonError::into_inner)
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
pub(crate) fn line(text: &str) {
    // A closed standard error leaves nothing to do.
    let _ = std::io::stderr().write_all(format!("{text}\n").as_bytes());
}

/// Whether lines are JSON.
pub(crate) fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// Writes a line of the log: `prefix` and the message, or a JSON object.
pub(crate) fn log(level: &str, prefix: &str, message: &str, numbers: Map<String, Value>) {
    if !is_json() {
        return line(&format!("{prefix}{message}"));
    }
    let mut object = Map::from_iter([
        ("time".to_owned(), now().into()),
        ("level".to_owned(), level.into()),
        ("phase".to_owned(), known().phase().into()),
        ("message".to_owned(), message.into()),
    ]);
    object.extend(numbers);
    line(&Value::Object(object).to_string());
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

/// Output to standard error other than errors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reporter {
    pub(crate) quiet: bool,
    pub(crate) verbose: u8,
}

impl Reporter {
    /// A reporter; `log` holds for the process.
    pub(crate) fn new(quiet: bool, verbose: u8, log: Log) -> Self {
        LazyLock::force(&START);
        if log == Log::Json {
            JSON.store(true, Ordering::Relaxed);
        }
        Self { quiet, verbose }
    }

    /// Prints a result line, unless `-q` is set.
    pub(crate) fn say(self, message: impl fmt::Display) {
        if !self.quiet {
            log("info", "", &message.to_string(), Map::new());
        }
    }

    /// Prints a line about the run, unless `-q` is set.
    pub(crate) fn tell(self, message: impl fmt::Display) {
        self.tell_with(message, Map::new());
    }

    /// As [`tell`](Self::tell), in the same words at each `-v`: for scripts.
    pub(crate) fn announce(self, message: impl fmt::Display) {
        if !self.quiet {
            log("info", "volery: ", &message.to_string(), Map::new());
        }
    }

    fn tell_with(self, message: impl fmt::Display, numbers: Map<String, Value>) {
        if !self.quiet {
            log("info", &self.prefix(), &message.to_string(), numbers);
        }
    }

    /// Prints a line about a phase, only with `-v`.
    pub(crate) fn explain(self, message: impl fmt::Display) {
        if self.verbose > 0 {
            log("debug", &self.prefix(), &message.to_string(), Map::new());
        }
    }

    /// Prints a detail, only with `-vv`.
    pub(crate) fn detail(self, message: impl fmt::Display) {
        if self.verbose > 1 {
            log("trace", &self.prefix(), &message.to_string(), Map::new());
        }
    }

    /// With `-vv`, lines have the seconds since the start.
    fn prefix(self) -> String {
        match self.verbose {
            0 | 1 => "volery: ".to_owned(),
            _ => format!("volery: {:9.3} s: ", START.elapsed().as_secs_f64()),
        }
    }

    /// Begins a phase of the run: a line at its begin and, by [`end`](Self::end) or the next phase,
    /// one at its end.
    pub(crate) fn begin(self, name: &str) {
        self.end();
        known().begin(name);
        self.tell_with(format_args!("{name} begins"), Map::new());
    }

    /// Ends the current phase, if there is one.
    pub(crate) fn end(self) {
        let ended = known().end();
        if let Some((name, seconds)) = ended {
            let numbers = Map::from_iter([
                ("ended".to_owned(), name.as_str().into()),
                ("seconds".to_owned(), json!(seconds)),
            ]);
            self.tell_with(format_args!("{name} ended after {seconds:.3} s"), numbers);
            if let Some(bytes) = crate::report::peak_memory() {
                self.detail(format_args!("peak memory {} MB", bytes / 1_000_000));
            }
        }
    }

    /// Begins a phase of `steps` steps, 0 where they are not known, with a progress bar: on a
    /// terminal it is drawn, elsewhere a line every ten seconds says how far it is.
    pub(crate) fn phase(self, name: &'static str, steps: u64) -> ProgressBar {
        self.begin(name);
        self.bar(name, steps)
    }

    /// A progress bar over `n` correlations.
    pub(crate) fn progress(self, n: u64) -> ProgressBar {
        self.bar("correlations", n)
    }

    fn bar(self, name: &'static str, steps: u64) -> ProgressBar {
        let is_drawn = !self.quiet && !is_json() && std::io::stderr().is_terminal();
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
        } else if !self.quiet && steps > 0 {
            let watched = bar.downgrade();
            // Without a thread there are no progress lines.
            let _ = thread::Builder::new()
                .name("volery progress".into())
                .spawn(move || self.watch(name, &watched));
        }
        bar
    }

    /// Prints a line every ten seconds until the bar is gone or full.
    fn watch(self, name: &str, bar: &WeakProgressBar) {
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
