//! `volery report`: the page of a written report.

use std::io::Write as _;
use std::path::PathBuf;

use volery_run::failure::{Failure, Result, Status};
use volery_run::output::SingleFile;
use volery_run::page::render;
use volery_run::paths::{check_free, same};

/// Make a page of a report: one HTML file that loads nothing
///
/// The report is a file that another subcommand wrote with --report.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The report, a JSON file
    file: PathBuf,

    /// Output file, .html [default: standard output]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Replace an existing output file
    #[arg(long)]
    force: bool,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let file = &arguments.file;
    let json = std::fs::read(file).map_err(|error| Failure::file(file, error))?;
    let report: serde_json::Value = serde_json::from_slice(&json)
        .map_err(|error| Failure::file(file, error).with_hint(NO_REPORT))?;
    if !report["command"].is_string() {
        return Err(Failure::file(file, "is not a report of volery").with_hint(NO_REPORT));
    }
    let page = render(&report);
    let Some(out) = &arguments.out else {
        return std::io::stdout().write_all(page.as_bytes()).map_err(|error| {
            Failure::new(Status::Other, format_args!("standard output: {error}"))
        });
    };
    if same(file, out) {
        return Err(Failure::usage("--out", format_args!("{} is the report", out.display())));
    }
    check_free(out, arguments.force)?;
    SingleFile::prepare("--out", out)?.commit(page.as_bytes())
}

const NO_REPORT: &str = "a report is the file that --report of another subcommand writes";
