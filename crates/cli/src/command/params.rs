//! `volery params`: the parameters that the program uses, as dated data with a source.

use std::io::Write as _;

use volery_pcg::lpn;

use super::table::table;
use crate::exit::{Failure, Status};

/// The parameter sets
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Copy, Debug, clap::Subcommand)]
enum Action {
    /// List the LPN sets: n samples, dimension k, noise weight t, the bits claimed against all known attacks
    List,
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match arguments.action {
        Action::List => writeln!(std::io::stdout(), "{}", list()),
    }
    .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))
}

fn list() -> String {
    let rows = lpn::sets().iter().map(|set| {
        [
            set.name.to_owned(),
            set.n.to_string(),
            set.k.to_string(),
            set.t.to_string(),
            set.noise.to_string(),
            format!("{} bits", set.claim),
            set.source.to_owned(),
            set.date.to_owned(),
        ]
    });
    table(
        [
            "name", ">n", ">k", ">t", "noise", ">claims", "source", "date",
        ],
        rows,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_set_is_listed_with_its_numbers() {
        let text = list();
        for set in lpn::sets() {
            let line = text
                .lines()
                .find(|line| line.split_whitespace().next() == Some(set.name))
                .unwrap_or_else(|| panic!("{} is missing", set.name));
            for number in [set.n, set.k, set.t] {
                assert!(
                    line.split_whitespace()
                        .any(|word| word == number.to_string()),
                    "{line}"
                );
            }
        }
    }
}
