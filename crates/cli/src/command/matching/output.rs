//! Writing this party's matching rows.

use std::path::PathBuf;

use volery_channel::Role;
use volery_tables::{Extra, Format, Output, Problem, Records};

use super::{MatchingArguments, Outcome, Verb};
use crate::command::paths::{check_free, same};
use crate::exit::{Failure, Status};
use crate::output::SingleFile;

/// The output file of the matching rows.
pub(super) struct OutputFile {
    file: SingleFile,
    path: PathBuf,
    format: Format,
    force: bool,
}

impl OutputFile {
    /// Checks, before any work, that the output can be written; `None` if this side gets no rows.
    pub(super) fn prepare(arguments: &MatchingArguments) -> Result<Option<Self>, Failure> {
        let path = match (&arguments.out, arguments.gets_rows()) {
            (Some(path), true) => path,
            (None, false) => return Ok(None),
            (Some(_), false) => {
                return Err(
                    Failure::usage("--out", "the sender gets no rows; remove --out")
                        .hint("--both on both sides gives the result to the sender too"),
                );
            }
            (None, true) => {
                let whose = match arguments.role {
                    Role::Receiver => "the receiver",
                    Role::Sender => "with --both the sender",
                };
                return Err(Failure::usage(
                    "--out",
                    format_args!("{whose} needs an output file for its matching rows"),
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
            .hint("choose another file; the input is never overwritten"));
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

    /// The format given by the extension.
    pub(super) fn format(&self) -> Format {
        self.format
    }

    /// Writes the rows of the matching items and returns their number.
    pub(super) fn write(
        self,
        records: &Records,
        common: &[usize],
        outcome: &Outcome,
        verb: Verb<'_>,
    ) -> Result<u64, Failure> {
        let values = &outcome.matched.values;
        let value = |place: usize| values.get(place).map_or(&[][..], Vec::as_slice);
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
                // The error names the file that is read.
                Problem::Output(why) => Failure::file(&path, why),
                _ => error.into(),
            })?;
            rows = written.rows;
            // Another process may have created the file in the meantime.
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
