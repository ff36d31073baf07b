//! The arguments that `ope` and `matvec` share.

use volery_run::endpoint::EndpointOptions;
use volery_run::numbers::{self, NumbersOptions};

use super::options::Common;
use crate::flat::Flat;

/// The connection and security options of both subcommands.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct PeerArguments {
    #[command(flatten)]
    options: Flat<NumbersOptions>,

    #[command(flatten)]
    endpoint: Flat<EndpointOptions>,

    #[command(flatten)]
    common: Common,
}

impl PeerArguments {
    /// The options without those of the terminal.
    pub(super) fn options(&self) -> numbers::PeerArguments {
        numbers::PeerArguments {
            options: self.options.0.clone(),
            endpoint: self.endpoint.0.clone(),
            common: self.common.options(),
        }
    }
}
