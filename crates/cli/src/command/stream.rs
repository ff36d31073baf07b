//! `volery cot` and `volery vole`: write one party's part of n correlations to files.

use volery_run::choices::Choices;
use volery_run::cot::{self, CotOptions};
use volery_run::endpoint::EndpointOptions;
use volery_run::failure::Result;
use volery_run::reporter::Reporter;
use volery_run::stream::{self, Destination, StreamOptions};
use volery_run::vole::{self, VoleOptions};

use super::options::Common;
use crate::flat::Flat;

/// The options of both subcommands, whose output is a folder.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "n" => argument.allow_negative_numbers(true),
    "out" => argument.required(true),
    _ => argument,
}))]
struct StreamArguments {
    #[command(flatten)]
    options: Flat<StreamOptions>,

    #[command(flatten)]
    endpoint: Flat<EndpointOptions>,

    #[command(flatten)]
    choices: Flat<Choices>,

    #[command(flatten)]
    common: Common,
}

impl StreamArguments {
    /// The options without those of the terminal.
    fn options(&self) -> stream::StreamArguments {
        stream::StreamArguments {
            options: self.options.0.clone(),
            choices: self.choices.0.clone(),
            endpoint: self.endpoint.0.clone(),
            common: self.common.options(),
        }
    }
}

/// Make n correlated OTs w = v + u*delta with a peer and write this party's part as NumPy files
///
/// The sender gets delta and random v (delta.npy, v.npy); the receiver gets random bits u, and w
/// (u.npy, w.npy). Start both sides with the same --n, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Cot {
    #[command(flatten)]
    own: Flat<CotOptions>,

    #[command(flatten)]
    stream: StreamArguments,
}

impl Cot {
    /// Runs the subcommand.
    pub(super) fn run(&self, reporter: &Reporter) -> Result<()> {
        let options = (&*self.own, &self.stream.options());
        cot::run(options, None, false, None, Destination::Folder, reporter).map(drop)
    }
}

/// Make n correlations w = u*x + v with a peer and write this party's part as NumPy files
///
/// The sender gets random u and v (u.npy, v.npy); the receiver gets a random x and w (x.npy,
/// w.npy). Start both sides with the same --n, --ring, --security, --noise, --set, --link,
/// --parameters and --protocol.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Vole {
    #[command(flatten)]
    own: Flat<VoleOptions>,

    #[command(flatten)]
    stream: StreamArguments,
}

impl Vole {
    /// Runs the subcommand.
    pub(super) fn run(&self, reporter: &Reporter) -> Result<()> {
        let options = (&*self.own, &self.stream.options());
        vole::run(options, None, Destination::Folder, reporter).map(drop)
    }
}
