//! Arguments that several subcommands share.

use std::ops::Deref;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use volery_channel::Role;
use volery_run::failure::Result;
use volery_run::options::{self, ReportOptions, RunOptions};
use volery_run::report::PreparedReport;
use volery_run::reporter::Reporter;
use volery_run::web::WebOptions;

use crate::flat::Flat;
use crate::terminal::Log;

/// Parses a role; the two texts are the help of its two values.
pub(crate) fn role(
    sender: &'static str,
    receiver: &'static str,
) -> impl TypedValueParser<Value = Role> {
    let value = |role: Role, help| PossibleValue::new(role.name()).help(help);
    PossibleValuesParser::new([value(Role::Sender, sender), value(Role::Receiver, receiver)])
        .try_map(|name| name.parse::<Role>())
}

/// The options of the terminal.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct TerminalArguments {
    /// Format of the lines on standard error
    #[arg(long, value_name = "FORM", value_enum, default_value_t)]
    pub(crate) log: Log,

    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Print more about the run on standard error; -vv adds details and a time stamp on each line
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
}

/// The options of output, which every subcommand takes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct OutputArguments {
    #[command(flatten)]
    pub(crate) report: Flat<ReportOptions>,

    #[command(flatten)]
    terminal: TerminalArguments,
}

/// The options that every subcommand takes which computes.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Common {
    #[command(flatten)]
    output: OutputArguments,

    #[command(flatten)]
    run: Flat<RunOptions>,
}

impl Deref for Common {
    type Target = RunOptions;

    fn deref(&self) -> &RunOptions {
        &self.run
    }
}

impl Common {
    /// The options without those of the terminal.
    pub(crate) fn options(&self) -> options::Common {
        options::Common { report: self.output.report.0.clone(), run: self.run.0.clone() }
    }

    /// Calls [`ReportOptions::prepare`].
    pub(crate) fn prepare_report(&self, reporter: &Reporter) -> Result<PreparedReport> {
        self.output.report.prepare(reporter)
    }
}

/// The options of a place for browsers, some of which require others.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "web_origin" | "web_files" => argument.requires("web"),
    "web_certificate" => argument.requires("web").requires("web_key"),
    "web_key" => argument.requires("web_certificate"),
    _ => argument,
}))]
pub(crate) struct WebArguments {
    #[command(flatten)]
    options: Flat<WebOptions>,
}

impl Deref for WebArguments {
    type Target = WebOptions;

    fn deref(&self) -> &WebOptions {
        &self.options
    }
}

/// The addresses at which a service listens, each with its option.
pub(crate) fn listens(listen: &Option<String>, web: &WebOptions) -> Vec<(&'static str, String)> {
    let all = [("--listen", listen.clone()), ("--web", web.web.clone())];
    all.into_iter().filter_map(|(option, address)| Some((option, address?))).collect()
}
