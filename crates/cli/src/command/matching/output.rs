//! Writing this party's matching rows.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use volery_records::{Extra, Format, Output, Problem, Records};

use super::{MatchingArguments, Outcome, Role, Verb};
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

/// Refuses to replace a file, or a link to nowhere, unless `force`.
fn check_free(path: &Path, force: bool) -> Result<(), Failure> {
    if force || path.symlink_metadata().is_err() {
        return Ok(());
    }
    Err(
        Failure::usage("--out", format_args!("{} exists", path.display()))
            .hint("choose another file, or --force to replace it"),
    )
}

/// Refuses a report in the place of the input or of the matching rows.
pub(super) fn check_report(arguments: &MatchingArguments) -> Result<(), Failure> {
    let Some(report) = &arguments.common.report else {
        return Ok(());
    };
    let others = [
        (Some(&arguments.input), "the input file"),
        (arguments.out.as_ref(), "the output file"),
    ];
    for (other, what) in others {
        if other.is_some_and(|other| same(report, other)) {
            return Err(
                Failure::usage("--report", format_args!("{} is {what}", report.display()))
                    .hint("name another file for the report"),
            );
        }
    }
    Ok(())
}

/// Whether both names are of one file, by whatever links, or would be.
fn same(a: &Path, b: &Path) -> bool {
    if let (Ok(a), Ok(b)) = (a.metadata(), b.metadata()) {
        return (a.dev(), a.ino()) == (b.dev(), b.ino());
    }
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

/// The full name of a file that need not be there.
fn whole(path: &Path) -> Option<PathBuf> {
    let parent = match path.parent()? {
        parent if parent.as_os_str().is_empty() => Path::new("."),
        parent => parent,
    };
    Some(parent.canonicalize().ok()?.join(path.file_name()?))
}
