//! `volery ope` and `volery matvec`: the sender's polynomial at the receiver's points, and its
//! matrix times the receiver's vector.

use volery_run::endpoint::EndpointOptions;
use volery_run::failure::Result;
use volery_run::matvec::{self, MatvecOptions};
use volery_run::numbers::{self, NumbersOptions, NumericInputs};
use volery_run::ope::{self, OpeOptions};
use volery_run::reporter::Reporter;

use super::options::Common;
use crate::flat::Flat;

/// The connection and security options of both subcommands.
#[derive(Clone, Debug, clap::Args)]
struct PeerArguments {
    #[command(flatten)]
    options: Flat<NumbersOptions>,

    #[command(flatten)]
    endpoint: Flat<EndpointOptions>,

    #[command(flatten)]
    common: Common,
}

impl PeerArguments {
    /// The options without those of the terminal.
    fn options(&self) -> numbers::PeerArguments {
        numbers::PeerArguments {
            options: self.options.0.clone(),
            endpoint: self.endpoint.0.clone(),
            common: self.common.options(),
        }
    }
}

/// Evaluate the sender's polynomial at the receiver's points, over the integers modulo 2^61 - 1
///
/// The sender gives the coefficients, the constant one first: a .csv file with the header
/// 'coefficient', or an .npy array of uint64. The receiver gives points and gets the values. The
/// receiver learns the degree and the values at its points; the sender learns the number of points.
/// The values at (degree + 1) points determine the polynomial: see --max-points.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "point" => argument.conflicts_with("points"),
    _ => argument,
}))]
pub(crate) struct Ope {
    #[command(flatten)]
    meeting: PeerArguments,

    #[command(flatten)]
    own: Flat<OpeOptions>,
}

impl Ope {
    /// Runs the subcommand.
    pub(super) fn run(&self, reporter: &Reporter) -> Result<()> {
        let arguments =
            ope::Arguments { options: self.own.0.clone(), meeting: self.meeting.options() };
        ope::run(&arguments, NumericInputs::default(), reporter).map(drop)
    }
}

/// Multiply the sender's matrix by the receiver's vector
///
/// The sender gives a matrix; the receiver gives a vector with one entry per matrix column. Both
/// are .npy arrays: uint64 for values of --ring, float64 for real numbers. The result is an .npy
/// array for the receiver, for the sender, or an additive share for each. Start both sides with the
/// same --ring, --result, --security, and for real numbers the same number format. Each side learns
/// the shape of the other's input.
#[derive(Clone, Debug, clap::Args)]
#[command(mut_args(|argument| match argument.get_id().as_str() {
    "input" => argument.required(true),
    _ => argument,
}))]
pub(crate) struct Matvec {
    #[command(flatten)]
    meeting: PeerArguments,

    #[command(flatten)]
    own: Flat<MatvecOptions>,
}

impl Matvec {
    /// Runs the subcommand.
    pub(super) fn run(&self, reporter: &Reporter) -> Result<()> {
        let arguments =
            matvec::Arguments { options: self.own.0.clone(), meeting: self.meeting.options() };
        matvec::run(&arguments, NumericInputs::default(), reporter).map(drop)
    }
}
