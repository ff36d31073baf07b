//! The input and output files of a run.

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

/// The output of the matching rows.
pub(crate) struct OutputFile {
    /// None: standard output.
    file: Option<SingleFile>,
    path: PathBuf,
    format: (Format, Packing),
    force: bool,
}

impl OutputFile {
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
        if path == Path::new("-") {
            return Ok(Some(Self {
                file: None,
                path: "standard output".into(),
                format: (Format::Csv, Packing::None),
                force: true,
            }));
        }
        let format = Format::of(path).map_err(|error| {
            let failure = Failure::usage("--out", &error);
            match error.hint() {
                Some(hint) => failure.with_hint(hint),
                None => failure,
            }
        })?;
        if arguments.input.iter().any(|input| same(path, input)) {
            return Err(Failure::usage(
                "--out",
                format_args!("{} is the input file", path.display()),
            )
            .with_hint("choose another file; the input is never overwritten"));
        }
        check_free(path, arguments.force)?;
        let file = SingleFile::prepare("--out", path)?;
        Ok(Some(Self { file: Some(file), path: path.clone(), format, force: arguments.force }))
    }

    /// The format of the file.
    pub(crate) fn format(&self) -> Format {
        self.format.0
    }

    /// Checks that the columns of the table have a form in this format.
    pub(crate) fn check(&self, table: &Table) -> Result<(), Failure> {
        let output = Output { format: self.format.0, packing: self.format.1, like: Some(table) };
        let tried = Sink::new(std::io::sink(), output, table.schema());
        tried.map(|_| ()).map_err(|problem| failure(&self.path, &problem))
    }

    /// Writes the matching rows and returns the number of rows of the output.
    pub(crate) fn write(
        self,
        table: &Table,
        matches: &Matches,
        columns: &Columns,
        told: &mut PhaseProgress<'_>,
    ) -> Result<u64, Failure> {
        let Self { file, path, format, force } = self;
        let refused = |error| refused(error, &path);
        let Some(file) = file else {
            let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout());
            let written = matches.write(table, columns, &mut out, format, told);
            let written = written.map_err(refused)?;
            out.flush().map_err(|error| Failure::file(&path, error))?;
            return Ok(written.rows);
        };
        let mut rows = 0;
        file.write(|file| {
            let written = matches.write(table, columns, file, format, told);
            rows = written.map_err(refused)?.rows;
            // Another process may have created the file in the meantime.
            check_free(&path, force)
        })?;
        Ok(rows)
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
