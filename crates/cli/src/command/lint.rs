//! `volery lint`: what a run would find in the keys of a table.

use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use volery_matching::Options;
use volery_options::parse;
use volery_run::failure::Result;
use volery_run::lint::{self, LintOptions};
use volery_run::reporter::Reporter;

use super::options::Common;
use crate::flat::{Flat, Selection};

/// Check key columns before a run: count empty, malformed, duplicate and changed keys, without
/// printing one
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = lint::normalisers())]
pub(crate) struct Arguments {
    /// Files or folders, as for --input of 'psi'
    #[arg(required_unless_present = "input", value_name = "FILE", value_parser = path())]
    files: Vec<PathBuf>,

    /// The same as FILE; may be repeated
    #[arg(long, value_name = "FILE", value_parser = path(), help_heading = "Input")]
    input: Vec<PathBuf>,

    #[command(flatten)]
    keys: Flat<Options, LintSelection>,

    #[command(flatten)]
    own: Flat<LintOptions>,

    #[command(flatten)]
    common: Common,
}

/// The options of the keys to check.
#[derive(Clone, Debug)]
struct LintSelection;

impl Selection for LintSelection {
    fn has(name: &str) -> bool {
        lint::has(name)
    }
}

fn path() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|text| parse::path(&text))
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let arguments = lint::Arguments {
        files: [&arguments.files[..], &arguments.input].concat(),
        keys: arguments.keys.0.clone(),
        options: arguments.own.0.clone(),
        common: arguments.common.options(),
    };
    lint::run(&arguments, None, reporter).map(drop)
}
