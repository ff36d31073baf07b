//! `volery verify`: checks that two output folders hold the correlations or the shares they claim.

use std::path::PathBuf;

use volery_run::failure::Result;
use volery_run::reporter::Reporter;
use volery_run::verify::{self, VerifyOptions};

use super::options::Common;
use crate::flat::Flat;

/// Check that two output folders of 'vole' or 'cot' are correlated as they claim, or that those of
/// 'psi --result shares' fit together, at every index
///
/// This needs the output of both parties: it is for tests, on one machine.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The sender's folder: u.npy and v.npy, or delta.npy and v.npy, or match.npy and others; of
    /// shares also a Parquet file
    sender: PathBuf,

    /// The receiver's folder: x.npy and w.npy, or u.npy and w.npy, or match.npy and others; of
    /// shares also a Parquet file
    receiver: PathBuf,

    #[command(flatten)]
    own: Flat<VerifyOptions>,

    #[command(flatten)]
    common: Common,
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<()> {
    let arguments = verify::Arguments {
        sender: arguments.sender.clone(),
        receiver: arguments.receiver.clone(),
        options: arguments.own.0.clone(),
        common: arguments.common.options(),
    };
    verify::run(&arguments, reporter).map(drop)
}
