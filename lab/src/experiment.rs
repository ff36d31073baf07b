//! The interface between the harness and a table or figure of a paper.

use std::time::Duration;

use crate::page::Section;
use crate::results::Results;
use crate::runner::Cell;
use crate::{Error, Result};
use volery_channel::SessionId;
use volery_primitives::prg::Prg;

use crate::{dvole, ferret, kkrt};

/// A table or figure of a paper: its measurements, and their presentation beside the published
/// figures.
pub trait Experiment: Sync {
    /// One word: `ferret-table-3`.
    fn name(&self) -> &'static str;

    /// One line.
    fn about(&self) -> String;

    /// The measurements, from the smallest to the largest where sizes differ; the same key means
    /// the same measurement in all experiments.
    ///
    /// # Errors
    /// If there are no parameters for the scope.
    fn cells(&self, scope: &Scope) -> Result<Vec<Cell>>;

    /// The results beside the published figures. Missing measurements are shown as missing.
    ///
    /// # Errors
    /// As [`Self::cells`].
    fn section(&self, scope: &Scope, results: &Results) -> Result<Section>;
}

/// The amount of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The size of the experiments.
    pub size: Size,
    /// Threads of each party, unless the experiment sets them.
    pub threads: usize,
    /// The channel between the parties gives up after this long without data.
    pub timeout: Duration,
}

/// The size of the experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// As in the paper, as far as one machine shared by both parties can.
    Full,
    /// Fewer links and smaller sizes, as a quick check with approximate results.
    Quick,
}

/// All of them, in the order of the papers.
pub static ALL: [&dyn Experiment; 12] = [
    &dvole::figure3::Figure3,
    &dvole::figure4::Figure4,
    &dvole::figure5::Figure5,
    &ferret::table1::Table1,
    &ferret::table3::Table3,
    &ferret::table4::Table4,
    &ferret::table5::Table5,
    &kkrt::table1::Table1,
    &kkrt::table2::Table2,
    &kkrt::table3::Table3,
    &kkrt::table4::Table4,
    &kkrt::table5::Table5,
];

/// The experiments with the given names, each once and in order; a name is that of an experiment or
/// of a paper (`dvole`, `ferret`, `kkrt`). No names: all.
///
/// # Errors
/// If a name is unknown; the text lists the known ones.
pub fn named(names: &[String]) -> std::result::Result<Vec<&'static dyn Experiment>, String> {
    let asks = |name: &str, experiment: &dyn Experiment| {
        let have = experiment.name();
        have == name || have.split('-').next() == Some(name)
    };
    for name in names {
        if !ALL.iter().any(|experiment| asks(name, *experiment)) {
            let all: Vec<_> = ALL.iter().map(|experiment| experiment.name()).collect();
            return Err(format!(
                "unknown experiment '{name}'; choose from {}; dvole, ferret and kkrt select all of a paper",
                all.join(", ")
            ));
        }
    }
    let wanted = |experiment: &&&dyn Experiment| {
        names.is_empty() || names.iter().any(|name| asks(name, **experiment))
    };
    Ok(ALL.iter().filter(wanted).copied().collect())
}

/// The measurements of several experiments, each measurement once.
///
/// # Errors
/// Those of [`Experiment::cells`].
pub fn cells(experiments: &[&dyn Experiment], scope: &Scope) -> Result<Vec<Cell>> {
    let mut all: Vec<Cell> = Vec::new();
    for experiment in experiments {
        for cell in experiment.cells(scope)? {
            if !all.iter().any(|have| have.key == cell.key) {
                all.push(cell);
            }
        }
    }
    Ok(all)
}

/// Randomness from the system, for one party of a run.
///
/// # Errors
/// If the system provides none.
pub(crate) fn fresh_prg() -> Result<Prg> {
    Prg::from_os().map_err(|error| {
        failed(format_args!(
            "the operating system returned no random numbers: {error}"
        ))
    })
}

/// A fresh session id for each run.
///
/// # Errors
/// As [`fresh_prg`].
pub(crate) fn fresh_session() -> Result<SessionId> {
    let mut session = [0; 32];
    fresh_prg()?.fill_bytes(&mut session);
    Ok(SessionId::from_bytes(session))
}

/// A protocol failed or computed a wrong result.
pub(crate) fn failed(error: impl std::fmt::Display) -> Error {
    Error::protocol(error)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn names(asked: &[&str]) -> std::result::Result<Vec<&'static str>, String> {
        let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
        let found = named(&asked)?;
        Ok(found.iter().map(|experiment| experiment.name()).collect())
    }

    #[test]
    fn experiments_by_name() {
        assert_eq!(names(&[]).map(|all| all.len()), Ok(ALL.len()));
        assert_eq!(
            names(&["kkrt-table-2", "ferret-table-5", "kkrt-table-2"]),
            Ok(vec!["ferret-table-5", "kkrt-table-2"])
        );
        assert_eq!(
            names(&["dvole"]),
            Ok(vec!["dvole-figure-3", "dvole-figure-4", "dvole-figure-5"])
        );
        for unknown in ["", "table", "ferret-table-2", "Ferret", "figure-3"] {
            let error = names(&["kkrt", unknown]).expect_err("the name is unknown");
            assert!(
                error.contains(&format!("'{unknown}'")) && error.contains("kkrt-table-5"),
                "{error}"
            );
        }
    }

    /// Measurements with `--quick` can be compared with those without.
    #[test]
    fn quick_cells_are_cells_of_the_whole() {
        let keys = |size| -> BTreeSet<_> {
            let scope = Scope {
                size,
                threads: 1,
                timeout: Duration::from_secs(1),
            };
            let cells = cells(&ALL, &scope).expect("there are parameters for all");
            cells.into_iter().map(|cell| cell.key).collect()
        };
        let (quick, full) = (keys(Size::Quick), keys(Size::Full));
        assert!(quick.is_subset(&full), "{:?}", quick.difference(&full));
        assert!(
            2 * quick.len() < full.len(),
            "{} {}",
            quick.len(),
            full.len()
        );
    }

    #[test]
    fn names_are_different_and_every_measurement_is_made_once() {
        let mut all: Vec<_> = ALL.iter().map(|experiment| experiment.name()).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), ALL.len());
        for size in [Size::Full, Size::Quick] {
            let scope = Scope {
                size,
                threads: 1,
                timeout: Duration::from_secs(1),
            };
            let cells = cells(&ALL, &scope).expect("there are parameters for all");
            let mut keys: Vec<_> = cells.iter().map(|cell| cell.key.clone()).collect();
            keys.sort();
            keys.dedup();
            assert_eq!(keys.len(), cells.len());
        }
    }
}
