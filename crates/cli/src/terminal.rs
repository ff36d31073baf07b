//! The terminal: lines on standard error, results on standard output, bars.

use std::any::Any;
use std::fmt;
use std::io::{self, IsTerminal as _, Write as _};
use std::sync::Arc;

use clap::ArgMatches;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle};
use serde_json::{Map, Value};
use volery_channel::Role;
use volery_os::time::{Duration, Instant};
use volery_run::failure::{Failure, visible};
use volery_run::reporter::{
    Display, Drawing, Level, Line, LineKind, Program, Reporter, precisely_now,
};

use crate::exit;

/// The form of the lines on standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Log {
    /// Human-readable lines
    #[default]
    Text,
    /// One JSON object a line: time, level, phase, message or event, and numbers as fields
    Json,
}

/// The streams of this process, and which lines its options ask for.
pub(crate) struct Terminal {
    quiet: bool,
    verbose: u8,
    log: Log,
    start: Instant,
}

impl Terminal {
    /// The terminal of the subcommand that `matches` holds, and the reporter to it.
    pub(crate) fn of(matches: &ArgMatches) -> (Arc<Self>, Reporter) {
        /// The value of an option that not all subcommands have.
        fn value<T: Any + Clone + Send + Sync>(matches: &ArgMatches, name: &str) -> Option<T> {
            matches.try_get_one::<T>(name).ok().flatten().cloned()
        }
        let mut last = matches;
        while let Some((_, inner)) = last.subcommand() {
            last = inner;
        }
        let terminal = Arc::new(Self {
            quiet: value(last, "quiet").unwrap_or(false),
            verbose: value(last, "verbose").unwrap_or(0),
            log: value(last, "log").unwrap_or_default(),
            start: Instant::now(),
        });
        let verb = matches.subcommand_name().unwrap_or_default();
        let role = value::<Role>(last, "role")
            .map(|role| role.name().to_owned())
            .or_else(|| value::<String>(last, "role"));
        let reporter = Reporter::of_program(Arc::clone(&terminal) as _, verb, role);
        (terminal, reporter)
    }

    /// Tells that the run of `reporter` failed.
    pub(crate) fn fail(&self, failure: &Failure, reporter: &Reporter) {
        match self.log {
            Log::Text => exit::print(failure),
            Log::Json => {
                let status = failure.status() as u8;
                let mut more = Map::from_iter([("status".to_owned(), status.into())]);
                if let Some(hint) = failure.hint() {
                    more.insert("hint".to_owned(), hint.into());
                }
                let phase = reporter.record().phase();
                json(Level::Error, phase.as_deref(), failure.message(), more);
            }
        }
    }

    /// The begin of a line for people. With `-vv`, lines have the seconds since the start.
    fn prefix(&self, kind: LineKind) -> String {
        match kind {
            LineKind::Warning | LineKind::Caution => "note: ".to_owned(),
            LineKind::Result => String::new(),
            LineKind::Announcement => "volery: ".to_owned(),
            LineKind::Course
            | LineKind::Phase { .. }
            | LineKind::Explanation
            | LineKind::Detail => match self.verbose {
                0 | 1 => "volery: ".to_owned(),
                _ => format!("volery: {:9.3} s: ", self.start.elapsed().as_secs_f64()),
            },
        }
    }

    /// Whether the options ask for a line.
    fn wants(&self, kind: LineKind) -> bool {
        match kind {
            LineKind::Warning => true,
            LineKind::Caution | LineKind::Result | LineKind::Announcement | LineKind::Course => {
                !self.quiet
            }
            LineKind::Phase { is_long } => !self.quiet && (self.verbose > 0 || is_long),
            LineKind::Explanation => self.verbose > 0,
            LineKind::Detail => self.verbose > 1,
        }
    }
}

impl Program for Terminal {
    fn is_quiet(&self) -> bool {
        self.quiet
    }

    fn line(&self, line: Line<'_>) {
        if !self.wants(line.kind) {
            return;
        }
        match self.log {
            Log::Text => {
                let prefix = self.prefix(line.kind);
                let lines = line.text.lines();
                lines.for_each(|text| write_line(&format!("{prefix}{}", visible(text))));
            }
            Log::Json => json(line.kind.level(), line.phase, line.text, line.fields),
        }
    }

    fn display(&self, name: &'static str, steps: u64) -> Display {
        if self.quiet {
            return Display::Hidden;
        }
        if self.log != Log::Text || !io::stderr().is_terminal() {
            return Display::Lines;
        }
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
        let bar = ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr())
            .with_style(style)
            .with_message(name)
            .with_finish(ProgressFinish::AndClear);
        bar.enable_steady_tick(Duration::from_millis(200));
        Display::Drawn(Box::new(DrawnBar(bar)))
    }

    fn output(&self, text: &str) -> io::Result<()> {
        io::stdout().write_all(text.as_bytes())
    }
}

/// A bar on standard error.
struct DrawnBar(ProgressBar);

impl Drawing for DrawnBar {
    fn set_position(&self, steps: u64) {
        self.0.set_position(steps);
    }

    fn suspend(&self, write: &mut dyn FnMut()) {
        self.0.suspend(write);
    }

    fn clear(&self) {
        self.0.finish_and_clear();
    }
}

/// Writes a line with its level, phase and fields as a JSON object. Where the fields name an event,
/// its name takes the place of a sentence with the same numbers; a warning says what to do, too.
fn json(level: Level, phase: Option<&str>, message: &str, fields: Map<String, Value>) {
    let event = fields.get("event").cloned().filter(|_| level > Level::Warning);
    let mut object = Map::from_iter([
        ("time".to_owned(), precisely_now().into()),
        ("level".to_owned(), level.name().into()),
        ("phase".to_owned(), phase.into()),
        ("message".to_owned(), event.unwrap_or_else(|| message.into())),
    ]);
    object.extend(fields);
    write_line(&Value::Object(object).to_string());
}

/// Writes one line to standard error in one call, so that lines of two processes do not mix.
fn write_line(text: &str) {
    // A closed standard error leaves nothing to do.
    let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
}
