//! The input and output files of a run.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use volery_channel::Role;
use volery_matching::{Columns, Matches, Settings, WriteError};
use volery_tables::{Format, Output, Packing, Problem, Sink, Table};

use super::arguments::MatchingArguments;
use crate::failure::{Failure, Status};
use crate::output::SingleFile;
use crate::paths::{check_free, check_report, same};
use crate::progress::PhaseProgress;

/// Refuses files that would overwrite each other or the input.
pub(crate) fn check_names(arguments: &MatchingArguments) -> Result<(), Failure> {
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

/// A file for a result.
pub(crate) struct ResultFile {
    file: SingleFile,
    pub(crate) path: PathBuf,
    pub(crate) format: (Format, Packing),
    force: bool,
}

impl ResultFile {
    /// Checks, before any work, that `path` of `--out` can be written.
    pub(crate) fn prepare(arguments: &MatchingArguments, path: &Path) -> Result<Self, Failure> {
        let format = Format::of(path).map_err(|error| {
            let failure = Failure::usage("--out", &error);
            match error.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        if arguments.input.iter().any(|input| same(path, input)) {
            let what = format_args!("{} is the input file", path.display());
            return Err(Failure::usage("--out", what)
                .with_hint("choose another file; the input is never overwritten"));
        }
        check_free(path, arguments.force)?;
        let file = SingleFile::prepare("--out", path)?;
        Ok(Self { file, path: path.to_owned(), format, force: arguments.force })
    }

    /// Writes the file by `write`, and puts it in its place.
    pub(crate) fn write(
        self,
        write: impl FnOnce(&mut File) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let Self { file, path, force, .. } = self;
        file.write(|file| {
            write(file)?;
            // Another process may have created the file in the meantime.
            check_free(&path, force)
        })
    }
}

/// The output of the matching rows.
pub(crate) enum RowOutput {
    StandardOutput,
    File(ResultFile),
}

impl RowOutput {
    /// Checks, before any work, that the output can be written; `None` if this side gets no rows.
    pub(crate) fn prepare(
        arguments: &MatchingArguments,
        settings: &Settings,
        is_required: bool,
    ) -> Result<Option<Self>, Failure> {
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
            false => Self::File(ResultFile::prepare(arguments, path)?),
        }))
    }

    /// The format of the rows, and the path for error messages.
    fn target(&self) -> ((Format, Packing), &Path) {
        match self {
            Self::StandardOutput => ((Format::Csv, Packing::None), "standard output".as_ref()),
            Self::File(file) => (file.format, &file.path),
        }
    }

    /// The format of the rows.
    pub(crate) fn format(&self) -> Format {
        self.target().0.0
    }

    /// Checks that the columns of the table have a form in this format.
    pub(crate) fn check(&self, table: &Table) -> Result<(), Failure> {
        let ((format, packing), path) = self.target();
        let output = Output { format, packing, like: Some(table) };
        let tried = Sink::new(std::io::sink(), output, table.schema());
        tried.map(|_| ()).map_err(|problem| failure(path, &problem))
    }

    /// Writes the matching rows and returns the number of rows of the output.
    pub(crate) fn write(
        self,
        table: &Table,
        matches: &Matches,
        columns: &Columns,
        told: &mut PhaseProgress<'_>,
    ) -> Result<u64, Failure> {
        let (format, path) = self.target();
        let path = path.to_owned();
        let refused = |error| refused(error, &path);
        match self {
            Self::StandardOutput => {
                let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
                let written = matches.write(table, columns, &mut out, format, told);
                let written = written.map_err(refused)?;
                out.flush().map_err(|error| Failure::file(&path, error))?;
                Ok(written.rows)
            }
            Self::File(file) => {
                let mut rows = 0;
                file.write(|file| {
                    let written = matches.write(table, columns, file, format, told);
                    rows = written.map_err(refused)?.rows;
                    Ok(())
                })?;
                Ok(rows)
            }
        }
    }
}

/// The failure to write rows to `path`.
pub(crate) fn refused(error: WriteError, path: &Path) -> Failure {
    match error {
        WriteError::Run(error) => error.into(),
        WriteError::Output(problem) => failure(path, &problem),
        WriteError::Names(what) => Failure::usage("--value-name", what)
            .with_hint("give a name for each column of the sender, in their order"),
        other => Failure::new(Status::Other, other),
    }
}

/// A problem of the output file.
pub(crate) fn failure(path: &Path, problem: &Problem) -> Failure {
    let failure = Failure::new(Status::Other, format_args!("{}: {problem}", path.display()));
    match problem.hint() {
        Some(hint) => failure.with_hint(hint),
        None => failure,
    }
}
