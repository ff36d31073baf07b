//! Reads this party's file.

use volery_tables::{Format, Reading, Records};

use super::output::OutputFile;
use super::{MatchingArguments, Verb};
use crate::exit::{Failure, Status};

impl From<volery_tables::Error> for Failure {
    fn from(error: volery_tables::Error) -> Self {
        let failure = Self::new(Status::Other, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Reads the keys, and the values if requested.
pub(super) fn read_records(
    arguments: &MatchingArguments,
    verb: Verb<'_>,
    output: Option<Format>,
) -> Result<Records, Failure> {
    let reading = Reading {
        keys: arguments.key.clone(),
        value: match verb {
            Verb::Psi => None,
            Verb::Lookup { value, .. } => value.map(str::to_owned),
        },
        delimiter: arguments.delimiter,
        encoding: arguments.encoding,
        duplicates: arguments.duplicates,
        empty_keys: arguments.empty_keys,
        output,
    };
    let reporter = arguments.common.reporter();
    let bar = reporter.phase("reading the file", 0);
    let records = volery_tables::read(&arguments.input, &reading, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(records?)
}

/// Calls [`read_records`] and reports notable properties of the file.
pub(super) fn read(
    arguments: &MatchingArguments,
    verb: Verb<'_>,
    place: Option<&OutputFile>,
) -> Result<Records, Failure> {
    let records = read_records(arguments, verb, place.map(OutputFile::format))?;
    if let (Some(_), Verb::Lookup { value: None, name }) = (place, verb)
        && records.columns().any(|column| column == name)
    {
        return Err(Failure::usage(
            "--value-name",
            format_args!(
                "{} already has a column {name:?}",
                arguments.input.display()
            ),
        )
        .hint("choose another name for the value column"));
    }
    let reporter = arguments.common.reporter();
    for notice in records.notices() {
        reporter.say(format_args!(
            "volery: {}: {notice}",
            arguments.input.display()
        ));
    }
    let counts = records.counts();
    for (number, why) in [
        (counts.duplicates, "an earlier row has the same key"),
        (counts.empty, "a key column is empty or null"),
    ] {
        if number > 0 {
            reporter.say(format_args!(
                "volery: {}: {number} rows left out because {why}",
                arguments.input.display()
            ));
        }
    }
    Ok(records)
}
