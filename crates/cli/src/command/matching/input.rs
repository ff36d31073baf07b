//! Reading this party's file.

use volery_records::{Format, Reading, Records};

use super::output::Place;
use super::{MatchingArguments, Verb};
use crate::exit::{Failure, Status};

impl From<volery_records::Error> for Failure {
    fn from(error: volery_records::Error) -> Self {
        let failure = Self::new(Status::Other, &error);
        match error.hint() {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }
}

/// Reads the keys, and the values if there are to be any.
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
    let voice = arguments.common.voice();
    let bar = voice.phase("reading the file", 0);
    let records = volery_records::read(&arguments.input, &reading, &mut |done, of| {
        bar.set_length(of);
        bar.set_position(done);
    });
    bar.finish_and_clear();
    Ok(records?)
}

/// [`read_records`], and what the user should know of the file.
pub(super) fn read(
    arguments: &MatchingArguments,
    verb: Verb<'_>,
    place: Option<&Place>,
) -> Result<Records, Failure> {
    let records = read_records(arguments, verb, place.map(Place::format))?;
    if let (Some(_), Verb::Lookup { value: None, name }) = (place, verb)
        && records.columns().any(|column| column == name)
    {
        return Err(Failure::usage(
            "--value-name",
            format_args!(
                "{} has a column {name:?} already",
                arguments.input.display()
            ),
        )
        .hint("give the column of values another name"));
    }
    let voice = arguments.common.voice();
    for notice in records.notices() {
        voice.say(format_args!(
            "volery: {}: {notice}",
            arguments.input.display()
        ));
    }
    let counts = records.counts();
    for (number, why) in [
        (counts.duplicates, "an earlier row has their key"),
        (counts.empty, "a key column is empty or null"),
    ] {
        if number > 0 {
            voice.say(format_args!(
                "volery: {}: {number} rows left out, because {why}",
                arguments.input.display()
            ));
        }
    }
    Ok(records)
}
