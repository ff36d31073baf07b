//! `volery params`: the parameters that the program uses, as dated data with a source.

use std::io::Write as _;

use volery_pcg::lpn;

use super::choices::{field_name, fields};
use super::options::Common;
use super::table::table;
use crate::exit::{Failure, Status};
use crate::report::Report;

/// The parameter sets
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Action {
    /// List the LPN sets: n samples, dimension k, noise weight t, the rings that each may be used with (f2: correlated OT),
    /// the bits claimed against all known attacks, and whether it is a paper's own, for reproduction
    List(Common),
}

/// Runs the verb.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Action::List(common) = &arguments.action;
    let place = common.prepare_report()?;
    writeln!(std::io::stdout(), "{}", list())
        .map_err(|error| Failure::new(Status::Other, format_args!("standard output: {error}")))?;
    let sets: Vec<_> = lpn::sets()
        .iter()
        .map(|set| {
            serde_json::json!({
                "name": set.name, "n": set.n, "k": set.k, "t": set.t, "noise": set.noise.to_string(),
                "fields": set.fields.iter().copied().map(field_name).collect::<Vec<_>>(),
                "claimed_bits": set.claim, "paper": set.paper, "source": set.source, "date": set.date,
            })
        })
        .collect();
    let mut report = Report::new("params");
    report.result.insert("sets".to_owned(), sets.into());
    place.write(&report)
}

fn list() -> String {
    let rows = lpn::sets().iter().map(|set| {
        [
            set.name.to_owned(),
            set.n.to_string(),
            set.k.to_string(),
            set.t.to_string(),
            set.noise.to_string(),
            fields(set),
            format!("{} bits", set.claim),
            if set.paper { "paper" } else { "own" }.to_owned(),
            set.source.to_owned(),
            set.date.to_owned(),
        ]
    });
    table(
        [
            "name", ">n", ">k", ">t", "noise", "rings", ">claims", "whose", "source", "date",
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
            assert!(line.contains(&fields(set)), "{line}");
            assert_eq!(
                line.split_whitespace().any(|word| word == "paper"),
                set.paper
            );
        }
    }
}
