//! `volery ope`: oblivious polynomial evaluation, the sender's polynomial at the receiver's points.

use clap::Arg;
use volery_run::failure::Failure;
use volery_run::numbers::NumericInputs;
use volery_run::ope::{self, OpeOptions};
use volery_run::reporter::Reporter;

use super::numbers::PeerArguments;
use crate::flat::{Flat, Selection};

/// Evaluate the sender's polynomial at the receiver's points, over the integers modulo 2^61 - 1
///
/// The sender gives the coefficients, the constant one first: a .csv file with the header
/// 'coefficient', or an .npy array of uint64. The receiver gives points and gets the values. The
/// receiver learns the degree and the values at its points; the sender learns the number of points.
/// The values at (degree + 1) points determine the polynomial: see --max-points.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    meeting: PeerArguments,

    #[command(flatten)]
    own: Flat<OpeOptions, OpeSelection>,
}

/// All options of the subcommand.
#[derive(Clone, Debug)]
struct OpeSelection;

impl Selection for OpeSelection {
    fn refine(argument: Arg) -> Arg {
        match argument.get_id().as_str() {
            "point" => argument.conflicts_with("points"),
            _ => argument,
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
    let arguments =
        ope::Arguments { options: arguments.own.0.clone(), meeting: arguments.meeting.options() };
    ope::run(&arguments, NumericInputs::default(), reporter).map(drop)
}
