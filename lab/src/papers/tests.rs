//! The data files, what is measured for them, and a measurement of each paper.

use std::collections::BTreeSet;

use super::*;
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Settings};

const fn scope(size: Size) -> Scope {
    Scope { size, threads: 1, timeout: Duration::from_secs(60) }
}

fn all() -> Vec<&'static Experiment> {
    ALL.iter().collect()
}

#[test]
fn experiments_by_name() {
    let names = |asked: &[&str]| {
        let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
        named(&asked).map(|all| all.iter().map(|one| one.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).map(|all| all.len()), Ok(ALL.len()));
    assert_eq!(
        names(&["kkrt-table-2", "ferret-table-5", "kkrt-table-2"]),
        Ok(vec!["ferret-table-5", "kkrt-table-2"])
    );
    assert_eq!(names(&["dvole"]), Ok(vec!["dvole-figure-3", "dvole-figure-4", "dvole-figure-5"]));
    for unknown in ["", "table", "ferret-table-2", "Ferret", "figure-3"] {
        let error = names(&["kkrt", unknown]).expect_err("the name is unknown");
        assert!(error.contains(&format!("'{unknown}'")) && error.contains("kkrt-table-5"));
    }
}

/// `lab/test_tables.py` tests the fields that only `lab/tables.py` reads.
#[test]
fn the_data_files_are_whole() {
    for table in ALL.iter().flat_map(|experiment| &experiment.published.tables) {
        assert!(table.rows.iter().all(|row| row.protocols.len() == table.sides.len()), "{table:?}");
        assert!(table.quick.iter().flatten().all(|quick| table.columns.contains(quick)));
    }
}

/// Measurements with `--quick` can be compared with those without; each is made once.
#[test]
fn quick_cells_are_cells_of_the_whole() {
    let keys = |size| {
        let cells = cells(&all(), &scope(size)).expect("there are parameters for all");
        let keys: BTreeSet<_> = cells.iter().map(|cell| cell.key.clone()).collect();
        assert_eq!(keys.len(), cells.len());
        assert!(cells.is_sorted_by_key(|cell| cell.key.n));
        keys
    };
    let (quick, full) = (keys(Size::Quick), keys(Size::Full));
    assert!(quick.is_subset(&full), "{:?}", quick.difference(&full));
    assert!(2 * quick.len() < full.len(), "{} {}", quick.len(), full.len());
    // The shipped results have the same keys, so that they can be compared.
    let shipped = include_str!("../../results.json");
    for key in &full {
        let json = serde_json::to_value(key).expect("a key").to_string();
        assert!(key.threads > 2 || shipped.contains(&json), "{json}");
    }
}

/// A quick cell of each paper, by the runner of the program; the nightly command runs all of them.
#[test]
fn a_quick_cell_of_each_paper() {
    let wanted = [("spfss-half-fp61", 1 << 14), ("vole-paper80-z64", 1 << 12), ("kkrt", 1 << 8)];
    let mut quick = cells(&all(), &scope(Size::Quick)).expect("there are parameters for all");
    quick.retain(|cell| wanted.contains(&(cell.key.protocol.as_str(), cell.key.n)));
    let mut results = Results::new("test");
    results.sittings.push(BenchmarkSession::example());
    let settings = Settings { runs: 1, limit: 1000.0 };
    runner::run(&quick, &mut results, settings, &mut |_: &_, _: &_| Ok(()))
        .expect("all results are right");
    for (protocol, _) in wanted {
        let one = results.measurements.iter().find(|one| one.key.protocol == protocol);
        assert_eq!(one.map(|one| one.samples.len()), Some(1), "{protocol}");
    }
}
