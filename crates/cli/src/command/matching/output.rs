//! Writing this party's matching rows.

use std::path::PathBuf;

use volery_records::{Extra, Format, Output, Problem, Records};

use super::{MatchingArguments, Outcome, Role, Verb};
use crate::command::paths::{check_free, same};
use crate::exit::{Failure, Status};
use crate::output::SingleFile;

/// Where the matching rows go.
pub(super) struct Place {
    file: SingleFile,
    path: PathBuf,
    format: Format,
    force: bool,
}

impl Place {
    /// Makes sure, before anything is done, that the output can be written; none if this side gets no rows.
    pub(super) fn prepare(arguments: &MatchingArguments) -> Result<Option<Self>, Failure> {
        let path = match (&arguments.out, arguments.gets_rows()) {
            (Some(path), true) => path,
            (None, false) => return Ok(None),
            (Some(_), false) => {
                return Err(
                    Failure::usage("--out", "the sender gets no rows: leave --out away")
                        .hint("--both, on both sides, gives the result to the sender, too"),
                );
            }
            (None, true) => {
                let whose = match arguments.role {
                    Role::Receiver => "the receiver",
                    Role::Sender => "with --both the sender",
                };
                return Err(Failure::usage(
                    "--out",
                    format_args!("{whose} needs a file for its matching rows"),
                ));
            }
        };
        let format = Format::of(path).map_err(|error| {
            let failure = Failure::usage("--out", &error);
            match error.hint() {
                Some(hint) => failure.hint(hint),
                None => failure,
            }
        })?;
        if same(path, &arguments.input) {
            return Err(Failure::usage(
                "--out",
                format_args!("{} is the input file", path.display()),
            )
            .hint("the input is never written to: name another file"));
        }
        check_free(path, arguments.force)?;
        let file = SingleFile::prepare("--out", path)?;
        Ok(Some(Self {
            file,
            path: path.clone(),
            format,
            force: arguments.force,
        }))
    }

    /// The format that the extension names.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Writes the rows of the items that are common, and gives how many.
    pub(super) fn write(
        self,
        records: &Records,
        common: &[usize],
        outcome: &Outcome,
        verb: Verb<'_>,
    ) -> Result<u64, Failure> {
        let value = |place: usize| outcome.values.get(place).map_or(&[][..], Vec::as_slice);
        let extra = match verb {
            Verb::Lookup { value: None, name } => Some(Extra {
                name,
                value: &value,
            }),
            _ => None,
        };
        let path = self.path;
        // A file has fewer than 2^32 rows.
        let items: Vec<u32> = common.iter().map(|&item| item as u32).collect();
        let mut rows = 0;
        self.file.write(|file| {
            let output = Output {
                file,
                format: self.format,
                extra,
            };
            let written = records.write_matches(&items, output, &mut |_, _| ());
            let written = written.map_err(|error| match error.problem() {
                // The error is named after the file that is read.
                Problem::Output(why) => Failure::file(&path, why),
                _ => error.into(),
            })?;
            rows = written.rows;
            // Somebody may have made the file in the meantime.
            check_free(&path, self.force)
        })?;
        if rows == common.len() as u64 {
            return Ok(rows);
        }
        Err(Failure::new(
            Status::Other,
            format_args!("{}: not all matching rows were written", path.display()),
        ))
    }
}
