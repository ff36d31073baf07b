//! Identities: makes one, or an access token for a browser, and prints its fingerprint
//! for the other party.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use volery_channel::tls::Identity;
use volery_channel::web::Token;
use volery_options::{NamedValues, parse};

use crate::failure::{Failure, Status};
use crate::identity::store;
use crate::options::{ReportOptions, fill};
use crate::output::{Folder, SingleFile};
use crate::report::Report;
use crate::reporter::Reporter;

const DAY: Duration = Duration::from_secs(86_400);

volery_options::options! {
    /// The options of a new identity alone.
    pub struct KeygenOptions {
        /// Folder for the identity; must not exist, or be empty. With --token the file for the
        /// token
        required out: PathBuf [PathBuf::new(), "Output", "DIR", parse::path];

        /// Make an access token for a browser instead, a secret in a file that only its owner can
        /// read, and print its fingerprint, which a server's --clients or a gateway's --token has
        switch token ["Output"];

        /// Name in the certificate. It proves nothing, and every client that connects to a
        /// listening party can read it
        default name: String ["volery", "Output", "NAME", parse::string];

        /// Validity in days from now
        default days: u32 ["365", "Output", "DAYS", |value| parse::whole(value, 1, 3650)];
    }
}

/// The options of a new identity.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Its own options.
    pub options: KeygenOptions,
    /// The option of the report.
    pub report: ReportOptions,
}

impl Arguments {
    /// The options of a caller.
    ///
    /// # Errors
    /// The option at fault, or one that is missing.
    pub(crate) fn by_name(named: &NamedValues) -> Result<Self, Failure> {
        let mut all = Self::default();
        fill(named, &mut [&mut all.options, &mut all.report], &["out"])?;
        let has = |wanted: &str| named.iter().any(|(name, _)| name == wanted);
        if all.options.token && (has("name") || has("days")) {
            let what = "a token has neither a name nor days";
            return Err(Failure::usage("--token", what));
        }
        Ok(all)
    }
}

/// Makes an identity or a token; returns its fingerprint.
///
/// # Errors
/// If an option is wrong or a file cannot be written.
pub fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String, Failure> {
    if arguments.options.token {
        return make_token(&arguments.options.out, &arguments.report, reporter);
    }
    let now = SystemTime::now();
    // Valid from yesterday: the other party's clock may be slow.
    Identity::check_name(&arguments.options.name)
        .map_err(|error| Failure::usage("--name", error))?;
    let start = now.checked_sub(DAY).unwrap_or(SystemTime::UNIX_EPOCH).max(SystemTime::UNIX_EPOCH);
    let identity =
        Identity::generate(&arguments.options.name, start..now + DAY * arguments.options.days)
            .map_err(|error| {
                Failure::new(Status::Other, error).with_hint("check the clock of this machine")
            })?;
    let folder = Folder::prepare("--out", &arguments.options.out, false)
        // An identity is never replaced.
        .map_err(|failure| match failure.hint() {
            Some(hint) if hint.contains("--force") => failure.with_hint("choose another folder"),
            _ => failure,
        })?;
    let report_place = arguments.report.prepare(reporter)?;
    let place = folder.target().to_owned();
    store(&identity, folder)?;
    let fingerprint = identity.fingerprint().to_string();
    reporter.output(&format!("{fingerprint}\n"))?;
    let last = identity.last_day();
    let mut report = Report::new("keygen", reporter);
    let value = fingerprint.clone().into();
    report.result.insert("fingerprint".to_owned(), value);
    report.result.insert("last_day".to_owned(), last.clone().into());
    report_place.write(&report)?;
    reporter.say(format_args!(
        "wrote an identity valid until {last} to {}; give its fingerprint (on standard output) to the other party",
        place.display()
    ));
    Ok(fingerprint)
}

fn make_token(path: &Path, report: &ReportOptions, reporter: &Reporter) -> Result<String, Failure> {
    if path.symlink_metadata().is_ok() {
        let what = format_args!("{} exists", path.display());
        return Err(Failure::usage("--out", what).with_hint("choose another file"));
    }
    let token = Token::random().map_err(|error| Failure::new(Status::Other, error))?;
    let file = SingleFile::prepare("--out", path)?;
    let report_place = report.prepare(reporter)?;
    // In two pieces: text that grows leaves a copy behind.
    file.write(|file| {
        let written = file.write_all(token.text().as_bytes());
        let written = written.and_then(|()| file.write_all(b"\n"));
        written.map_err(|error| Failure::file(path, error))
    })?;
    let fingerprint = token.fingerprint().to_string();
    reporter.output(&format!("{fingerprint}\n"))?;
    let mut report = Report::new("keygen", reporter);
    let value = fingerprint.clone().into();
    report.result.insert("fingerprint".to_owned(), value);
    report_place.write(&report)?;
    reporter.say(format_args!(
        "wrote an access token to {}: give it to the browser's user, over a channel that others cannot read, and its fingerprint (on standard output) to whoever runs the server",
        path.display()
    ));
    Ok(fingerprint)
}
