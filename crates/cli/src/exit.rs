//! The error lines of the program on standard error, and the errors of the argument parser.
//!
//! Every error is one line `error: ..` that says what failed and where, followed by one line `hint:
//! ..` if there is a remedy. The status tells scripts the cause without parsing either line.

use std::io::Write as _;

use volery_run::failure::{Failure, Status};

/// Writes the lines of a failure to standard error.
pub(crate) fn print(failure: &Failure) {
    // The stream removes the colours where the terminal has none, or `NO_COLOR` is set.
    let text = failure.to_string();
    let text = text.replacen("error:", "\x1b[1;31merror:\x1b[0m", 1);
    let text = text.replacen("\nhint:", "\n\x1b[1mhint:\x1b[0m", 1);
    // A closed standard error leaves nothing to do.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

/// Tells an error of the argument parser in the form of a failure, and returns the exit status;
/// help and version go to standard output with status 0. `hint` stands where the parser has none.
pub(crate) fn tell_usage(error: &clap::Error, hint: &str) -> u8 {
    use clap::error::ErrorKind;
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return 0;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A call without a subcommand prints the help, but its status is not success.
        let _ = error.print();
        return Status::Usage as u8;
    }
    print(&wrong_words(error, hint));
    Status::Usage as u8
}

/// An error of the argument parser; `hint` stands where the parser has none.
pub(crate) fn wrong_words(error: &clap::Error, hint: &str) -> Failure {
    let text = error.render().to_string();
    // The parser's text is `error: what`, possibly over several lines, an empty line, then tips and
    // the usage.
    let mut paragraphs = text.split("\n\n");
    let what = paragraphs.next().unwrap_or_default();
    let what = what.strip_prefix("error: ").unwrap_or(what);
    let tip = paragraphs
        .find_map(|paragraph| paragraph.trim().strip_prefix("tip: ").map(str::to_owned))
        .or_else(|| transposed(error))
        .unwrap_or_else(|| hint.to_owned());
    Failure::new(Status::Usage, what).with_hint(tip)
}

/// The subcommand that a word becomes when two neighbouring letters are swapped: the parser's own
/// measure finds no similarity in short words.
fn transposed(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return None;
    };
    let swapped = |place: usize| {
        let mut letters: Vec<char> = word.chars().collect();
        letters.swap(place, place + 1);
        letters.into_iter().collect::<String>()
    };
    (0..word.chars().count().saturating_sub(1))
        .map(swapped)
        .find(|other| SUBCOMMANDS.contains(&other.as_str()))
        .map(|other| format!("a similar subcommand exists: '{other}'"))
}

/// The subcommands.
pub(crate) const SUBCOMMANDS: [&str; 13] = [
    "demo", "vole", "cot", "psi", "lookup", "ope", "matvec", "verify", "params", "keygen", "lint",
    "gateway", "serve",
];
