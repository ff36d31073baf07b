//! The arguments that `cot` and `vole` share.

use clap::Arg;
use volery_run::choices::Choices;
use volery_run::endpoint::EndpointOptions;
use volery_run::stream::{self, StreamOptions};

use super::options::Common;
use crate::flat::{Flat, Selection};

/// The options of a stream, whose output is a folder.
#[derive(Clone, Debug)]
struct StreamSelection;

impl Selection for StreamSelection {
    fn refine(argument: Arg) -> Arg {
        match argument.get_id().as_str() {
            "n" => argument.allow_negative_numbers(true),
            "out" => argument.required(true),
            _ => argument,
        }
    }
}

/// The options of both subcommands.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct StreamArguments {
    #[command(flatten)]
    options: Flat<StreamOptions, StreamSelection>,

    #[command(flatten)]
    endpoint: Flat<EndpointOptions>,

    #[command(flatten)]
    choices: Flat<Choices>,

    #[command(flatten)]
    common: Common,
}

impl StreamArguments {
    /// The options without those of the terminal.
    pub(super) fn options(&self) -> stream::StreamArguments {
        stream::StreamArguments {
            options: self.options.0.clone(),
            choices: self.choices.0.clone(),
            endpoint: self.endpoint.0.clone(),
            common: self.common.options(),
        }
    }
}
