//! Identities: makes one, or an access token for a browser, and prints its fingerprint
//! for the other party.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use volery_channel::tls::Identity;
use volery_channel::web::Token;
use volery_options::{NamedValues, parse};
use volery_os::time::wall_clock;

use crate::failure::{Failure, Result, Status};
use crate::identity::{IdentitySource, PassphraseSource, store};
use crate::options::{ReportOptions, fill};
use crate::output::{Folder, SingleFile};
use crate::report::{PreparedReport, Report};
use crate::reporter::Reporter;

const DAY: Duration = Duration::from_secs(86_400);

/// The options of an identity that a token does not have.
pub const TOKEN_HAS_NO: [&str; 4] = ["name", "days", "renew", "identity_passphrase"];

volery_options::options! {
    /// The options of a new identity alone.
    pub struct KeygenOptions {
        /// Folder for the identity; must not exist, or be empty. With --token the file for the
        /// token
        required out: PathBuf [PathBuf::new(), "Output", "DIR", parse::path];

        /// Make an access token for a browser instead, a secret in a file that only its owner can
        /// read, and print its fingerprint, which a server's --clients or a gateway's --token has
        switch token ["Output"];

        /// Make the successor of the identity in this folder instead: a new key with the same name,
        /// announced by the old identity. Both are valid meanwhile; a peer with --follow-key
        /// changes by itself, others name both fingerprints with --peer
        once renew: PathBuf ["Output", "DIR", parse::path];

        /// Passphrase that encrypts the private key, and that of the one in --renew if it is
        /// encrypted: file:PATH, env:NAME or prompt
        once identity_passphrase: PassphraseSource ["Output", "SOURCE", parse::text];

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
    pub(crate) fn by_name(named: &NamedValues) -> Result<Self> {
        let mut all = Self::default();
        fill(named, &mut [&mut all.options, &mut all.report], &["out"])?;
        let has = |wanted: &str| named.iter().any(|(name, _)| name == wanted);
        if all.options.token && TOKEN_HAS_NO.into_iter().any(has) {
            let what = "a token has neither a name, days nor a passphrase, and is not renewed";
            return Err(Failure::usage("--token", what));
        }
        if all.options.renew.is_some() && has("name") {
            return Err(Failure::usage("--name", "a renewed identity keeps its name"));
        }
        Ok(all)
    }
}

/// Makes an identity or a token; returns its fingerprint.
pub fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String> {
    if arguments.options.token {
        return make_token(&arguments.options.out, &arguments.report, reporter);
    }
    let now = wall_clock();
    // Valid from yesterday: the other party's clock may be slow.
    Identity::check_name(&arguments.options.name)
        .map_err(|error| Failure::usage("--name", error))?;
    let start = now.checked_sub(DAY).unwrap_or(SystemTime::UNIX_EPOCH).max(SystemTime::UNIX_EPOCH);
    let validity = start..now + DAY * arguments.options.days;
    let passphrase = arguments.options.identity_passphrase.as_ref();
    let folder = arguments.options.renew.as_deref();
    let old = match folder {
        Some(_) => IdentitySource { folder, command: None, passphrase, group: false }.load()?,
        None => None,
    };
    let identity = match &old {
        Some(old) => old.renew(validity),
        None => Identity::generate(&arguments.options.name, validity),
    };
    let identity = identity.map_err(|error| {
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
    store(&identity, passphrase, folder)?;
    let fingerprint = identity.fingerprint().to_string();
    let last = identity.last_day();
    let mut values = vec![("fingerprint", fingerprint), ("last_day", last.clone())];
    if let Some(old) = &old {
        values.push(("renewed", old.fingerprint().to_string()));
        reporter.say(format_args!(
            "the identity {} announces its successor until {}: use the new one when all peers without --follow-key have both fingerprints as --peer",
            old.fingerprint(),
            old.last_day()
        ));
    }
    let place = place.display();
    conclude(
        values,
        report_place,
        reporter,
        format_args!(
            "wrote an identity valid until {last} to {place}; give its fingerprint (on standard output) to the other party",
        ),
    )
}

fn make_token(path: &Path, report: &ReportOptions, reporter: &Reporter) -> Result<String> {
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
    let values = vec![("fingerprint", token.fingerprint().to_string())];
    let path = path.display();
    conclude(
        values,
        report_place,
        reporter,
        format_args!(
            "wrote an access token to {path}: give it to the browser's user, over a channel that others cannot read, and its fingerprint (on standard output) to whoever runs the server",
        ),
    )
}

/// Prints the first of `values`, the fingerprint, and writes all of them into the report.
fn conclude(
    values: Vec<(&str, String)>,
    report_place: PreparedReport,
    reporter: &Reporter,
    what: std::fmt::Arguments<'_>,
) -> Result<String> {
    let fingerprint = values[0].1.clone();
    reporter.output(&format!("{fingerprint}\n"))?;
    let mut report = Report::new("keygen", reporter);
    report.result.extend(values.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
    report_place.write(&report)?;
    reporter.say(what);
    Ok(fingerprint)
}
