//! `volery matvec`: the product of the sender's matrix and the receiver's vector.

use clap::Arg;
use volery_run::failure::Failure;
use volery_run::matvec::{self, MatvecOptions};
use volery_run::numbers::NumericInputs;
use volery_run::reporter::Reporter;

use super::numbers::PeerArguments;
use crate::flat::{Flat, Selection};

/// Multiply the sender's matrix by the receiver's vector
///
/// The sender gives a matrix; the receiver gives a vector with one entry per matrix column. Both
/// are .npy arrays: uint64 for values of --ring, float64 for real numbers. The result is an .npy
/// array for the receiver, for the sender, or an additive share for each. Start both sides with the
/// same --ring, --result, --security, and for real numbers the same number format. Each side learns
/// the shape of the other's input.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    meeting: PeerArguments,

    #[command(flatten)]
    own: Flat<MatvecOptions, MatvecSelection>,
}

/// All options of the subcommand.
#[derive(Clone, Debug)]
struct MatvecSelection;

impl Selection for MatvecSelection {
    fn refine(argument: Arg) -> Arg {
        match argument.get_id().as_str() {
            "input" => argument.required(true),
            _ => argument,
        }
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments, reporter: &Reporter) -> Result<(), Failure> {
    let arguments = matvec::Arguments {
        options: arguments.own.0.clone(),
        meeting: arguments.meeting.options(),
    };
    matvec::run(&arguments, NumericInputs::default(), reporter).map(drop)
}
