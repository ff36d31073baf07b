//! `volery keygen`: makes an identity, or an access token for a browser, and prints its fingerprint
//! for the other party.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use volery_channel::tls::Identity;
use volery_channel::web::Token;

use super::identity::store;
use super::options::{OutputArguments, Reporter};
use crate::exit::{Failure, Status};
use crate::output::{Folder, SingleFile};
use crate::report::Report;

const DAY: Duration = Duration::from_secs(86_400);

/// Make an identity, a key pair in a folder that only its owner can read, and print its
/// fingerprint, which the other party gives to --peer
///
/// Give the fingerprint to the other party over a channel that cannot be forged, such as a
/// telephone call, and ask for theirs.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Folder for the identity; must not exist, or be empty. With --token the file for the token
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Make an access token for a browser instead, a secret in a file that only its owner can read,
    /// and print its fingerprint, which a server's --clients or a gateway's --token has
    #[arg(long, conflicts_with_all = ["name", "days"])]
    token: bool,

    /// Name in the certificate. It proves nothing, and every client that connects to a listening
    /// party can read it
    #[arg(long, value_name = "NAME", default_value = "volery")]
    name: String,

    /// Validity in days from now
    #[arg(
        long,
        value_name = "DAYS",
        default_value_t = 365,
        value_parser = clap::value_parser!(u32).range(1..=3650),
    )]
    days: u32,

    #[command(flatten)]
    output: OutputArguments,
}

/// Runs the subcommand; returns the fingerprint.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<String, Failure> {
    if arguments.token {
        return make_token(&arguments.out, &arguments.output, reporter);
    }
    let now = SystemTime::now();
    // Valid from yesterday: the other party's clock may be slow.
    Identity::check_name(&arguments.name).map_err(|error| Failure::usage("--name", error))?;
    let start = now
        .checked_sub(DAY)
        .unwrap_or(SystemTime::UNIX_EPOCH)
        .max(SystemTime::UNIX_EPOCH);
    let identity = Identity::generate(&arguments.name, start..now + DAY * arguments.days).map_err(
        |error| Failure::new(Status::Other, error).with_hint("check the clock of this machine"),
    )?;
    let folder = Folder::prepare("--out", &arguments.out, false)
        // An identity is never replaced.
        .map_err(|failure| match failure.hint() {
            Some(hint) if hint.contains("--force") => failure.with_hint("choose another folder"),
            _ => failure,
        })?;
    let report_place = arguments.output.prepare_report(reporter)?;
    let place = folder.target().to_owned();
    store(&identity, folder)?;
    let fingerprint = identity.fingerprint().to_string();
    reporter.output(&format!("{fingerprint}\n"))?;
    let last = identity.last_day();
    let mut report = Report::new("keygen", reporter);
    let value = fingerprint.clone().into();
    report.result.insert("fingerprint".to_owned(), value);
    report
        .result
        .insert("last_day".to_owned(), last.clone().into());
    report_place.write(&report)?;
    reporter.say(format_args!(
        "wrote an identity valid until {last} to {}; give its fingerprint (on standard output) to the other party",
        place.display()
    ));
    Ok(fingerprint)
}

fn make_token(
    path: &Path,
    output: &OutputArguments,
    reporter: &Reporter,
) -> Result<String, Failure> {
    if path.symlink_metadata().is_ok() {
        let what = format_args!("{} exists", path.display());
        return Err(Failure::usage("--out", what).with_hint("choose another file"));
    }
    let token = Token::random().map_err(|error| Failure::new(Status::Other, error))?;
    let file = SingleFile::prepare("--out", path)?;
    let report_place = output.prepare_report(reporter)?;
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
