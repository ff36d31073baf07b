//! The input and output files of a run.

use std::io::{BufWriter, Write};
use std::path::Path;

use volery_channel::Role;
use volery_matching::{Columns, Matches, Settings, WriteError, WrittenRows};
use volery_tables::{Format, Output, Packing, Problem, Sink, Table};

use super::arguments::MatchingArguments;
use crate::failure::{Failure, Result, Status};
use crate::paths::{ResultFile, check_report, same};
use crate::progress::PhaseProgress;

/// Refuses files that would overwrite each other or the input.
pub(crate) fn check_names(arguments: &MatchingArguments) -> Result<()> {
    let report = arguments.common.report();
    let out = arguments.out.as_deref();
    let inputs = arguments.input.iter().map(|input| Some(input.as_path()));
    for input in inputs.chain([None]) {
        check_report("--report", report, input, out)?;
        check_report("--html", arguments.html.as_deref(), input, out)?;
    }
    if let (Some(report), Some(html)) = (report, arguments.html.as_deref())
        && same(report, html)
    {
        let what = format_args!("{} is also the file of --report", html.display());
        return Err(Failure::usage("--html", what).with_hint("name another file for the page"));
    }
    Ok(())
}

/// The file of a table, and its format.
pub(crate) type TableFile = (ResultFile, (Format, Packing));

/// The format of the file of `--out`.
pub(crate) fn format_of(path: &Path) -> Result<(Format, Packing)> {
    Format::of(path).map_err(|error| {
        let failure = Failure::usage("--out", &error);
        match error.hint() {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    })
}

/// The output of the matching rows.
pub(crate) enum RowOutput {
    StandardOutput,
    File(ResultFile, (Format, Packing)),
}

impl RowOutput {
    /// Checks, before any work, that the output can be written; `None` if this side gets no rows.
    pub(crate) fn prepare(
        arguments: &MatchingArguments,
        settings: &Settings,
        is_required: bool,
    ) -> Result<Option<Self>> {
        let path = match (&arguments.out, settings.gets_rows()) {
            (Some(path), true) => path,
            (None, false) => return Ok(None),
            (Some(_), false) => {
                return Err(Failure::usage("--out", "the sender gets no rows; remove --out")
                    .with_hint("--both on both sides gives the result to the sender too"));
            }
            (None, true) if !is_required => return Ok(None),
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
        Ok(Some(match path == Path::new("-") {
            true => Self::StandardOutput,
            false => {
                let format = format_of(path)?;
                Self::File(ResultFile::prepare(path, &arguments.input, arguments.force)?, format)
            }
        }))
    }

    /// The format of the rows, and the path for error messages.
    fn target(&self) -> ((Format, Packing), &Path) {
        match self {
            Self::StandardOutput => ((Format::Csv, Packing::None), "standard output".as_ref()),
            Self::File(file, format) => (*format, file.path()),
        }
    }

    /// The format of the rows.
    pub(crate) fn format(&self) -> Format {
        self.target().0.0
    }

    /// Checks that the columns of the table can be read and have a form in this format, by a file
    /// without rows.
    pub(crate) fn check(&self, table: &Table) -> Result<()> {
        table.check_columns()?;
        let ((format, packing), path) = self.target();
        let output = Output { format, packing, like: Some(table) };
        let tried = Sink::new(std::io::sink(), output, table.schema());
        let tried = tried.and_then(Sink::finish);
        tried.map(|_| ()).map_err(|problem| failure(path, &problem))
    }

    /// Checks, before the peer is met and after the table was read, that `matching` of its `rows`
    /// rows fit on the disk. Each is predicted to take as much as in the table, without compression
    /// where the output has none, and an eighth of it where only the output is compressed; what the
    /// sender adds is not known.
    pub(crate) fn check_space(&self, table: &Table, matching: u64, rows: u64) -> Result<()> {
        let Self::File(file, (format, packing)) = self else {
            return Ok(());
        };
        let (stored, unpacked) = (table.bytes(), table.unpacked_bytes());
        let was_packed = table.format() == Format::Parquet || stored < unpacked;
        let (bytes, less) = match *packing != Packing::None || *format == Format::Parquet {
            true if was_packed => (stored, 1),
            true => (unpacked, 8),
            false => (unpacked, 1),
        };
        let bytes = u128::from(bytes) * u128::from(matching) / u128::from(rows.max(1)) / less;
        file.check_space(u64::try_from(bytes).unwrap_or(u64::MAX))
    }

    /// Writes the matching rows.
    pub(crate) fn write(
        self,
        table: &Table,
        matches: &Matches,
        columns: &Columns,
        told: &mut PhaseProgress<'_>,
    ) -> Result<WrittenRows> {
        let (format, path) = self.target();
        let path = path.to_owned();
        let refused = |error| refused(error, &path);
        match self {
            Self::StandardOutput => {
                let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
                let written = matches.write(table, columns, &mut out, format, told);
                let written = written.map_err(refused)?;
                out.flush().map_err(|error| Failure::file(&path, error))?;
                Ok(written)
            }
            Self::File(file, _) => {
                let mut written = WrittenRows::default();
                file.write(|file| {
                    let result = matches.write(table, columns, file, format, told);
                    written = result.map_err(refused)?;
                    Ok(())
                })?;
                Ok(written)
            }
        }
    }
}

pub(crate) fn refused(error: WriteError, path: &Path) -> Failure {
    match error {
        WriteError::Run(error) => error.into(),
        WriteError::Output(problem) => failure(path, &problem),
        WriteError::Names(what) => {
            Failure::usage("--value-name", what).with_hint("choose another name")
        }
        other => Failure::new(Status::Other, other),
    }
}

pub(crate) fn failure(path: &Path, problem: &Problem) -> Failure {
    let failure = Failure::new(Status::Other, format_args!("{}: {problem}", path.display()));
    match problem.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn a_result_needs_as_much_as_its_rows_in_the_table() {
        let place = tempfile::tempdir().unwrap();
        let input = place.path().join("in.csv");
        std::fs::write(&input, "id\n1\n").unwrap();
        let inputs = volery_tables::Inputs { paths: vec![input], ..Default::default() };
        let table = Table::open(&inputs).unwrap();
        for (name, needed) in [("out.csv", 5_u64 << 60), ("out.csv.gz", 5_u64 << 57)] {
            let path = place.path().join(name);
            let file = ResultFile::prepare(&path, &[], false).unwrap();
            let output = RowOutput::File(file, format_of(&path).unwrap());
            assert!(output.check_space(&table, 1, 1).is_ok());
            let refused = output.check_space(&table, 1 << 60, 1).unwrap_err().to_string();
            assert!(refused.contains(&format!("needs {needed} bytes")), "{refused}");
        }
    }
}
