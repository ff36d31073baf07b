//! The tables over a real run, and over none.

use std::collections::HashSet;
use std::time::Duration;

use crate::measurement::Measurement;
use crate::page::{Section, Value};
use crate::results::Results;

use super::measure::{OFFLINE, ONLINE};
use super::published::Setting;
use super::table1::Table1;
use super::table2::Table2;
use super::table3::{self, Table3};
use super::table4::{self, Table4};
use super::table5::{self, Table5};
use crate::experiment::{Experiment, Scope, Size, cells};

const SCOPE: Scope = Scope {
    size: Size::Quick,
    threads: 1,
    timeout: Duration::from_secs(60),
};

fn section(experiment: &dyn Experiment, results: &Results) -> Section {
    let section = experiment.section(&SCOPE, results);
    section.expect("there are parameters for all")
}

/// All of the smallest sets; the runs check their results themselves.
fn measured() -> Results {
    let mut results = Results::new("test");
    let cells = cells(&[&Table3, &Table4, &Table5], &SCOPE).expect("there are parameters for all");
    for cell in cells.into_iter().filter(|cell| cell.key.n == 1 << 8) {
        let sample = (cell.run)().expect("an honest run");
        results.measurements.push(Measurement {
            key: cell.key,
            plan: cell.plan,
            security_bits: cell.security_bits,
            skipped_seconds: None,
            samples: vec![sample],
        });
    }
    results
}

/// Captions distinguish tables, titles distinguish plots, and every row has a value for each
/// column.
fn assert_whole(section: &Section) {
    assert!(section.name.starts_with("kkrt-table-") && section.source.contains("2016/799"));
    assert_different(section.tables.iter().map(|table| &table.caption[..]));
    assert_different(section.plots.iter().map(|plot| &plot.title[..]));
    for table in &section.tables {
        assert!(!table.rows.is_empty(), "{}", table.caption);
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}", table.caption);
        }
    }
    for plot in &section.plots {
        assert_different(plot.series.iter().map(|series| &series.name[..]));
        assert!(plot.series.iter().all(|series| !series.points.is_empty()));
    }
}

fn assert_different<'a>(names: impl Iterator<Item = &'a str>) {
    let all: Vec<_> = names.collect();
    let different: HashSet<_> = all.iter().collect();
    assert_eq!(different.len(), all.len(), "{all:?}");
}

#[test]
fn measurements_are_shared_by_the_tables() {
    let third = Table3.cells(&SCOPE).expect("there are parameters");
    assert_eq!(third.len(), 36);
    let all = cells(&[&Table3, &Table4, &Table5], &SCOPE).expect("there are parameters");
    assert_eq!(all.len(), third.len());
    assert!(third.is_sorted_by_key(|cell| cell.key.n));
    let full = Scope {
        size: Size::Full,
        ..SCOPE
    };
    let all = cells(&[&Table3], &full).expect("there are parameters");
    assert_eq!(all.len(), 60);
    assert_eq!(all.last().map(|cell| cell.key.n), Some(1 << 24));
    assert!(Table1.cells(&full).is_ok_and(|cells| cells.is_empty()));
    assert!(Table2.cells(&full).is_ok_and(|cells| cells.is_empty()));
}

#[test]
fn a_small_run_fills_every_table() {
    let results = measured();
    assert_eq!(results.measurements.len(), 12);
    for measurement in &results.measurements {
        let sample = &measurement.samples[0];
        let names: Vec<_> = sample.phases.iter().map(|phase| &phase.name[..]).collect();
        assert_eq!(names, [OFFLINE, ONLINE]);
        assert!(sample.seconds() > 0.0 && sample.bytes() > 0);
    }

    let third = section(&Table3, &results);
    assert_whole(&third);
    assert_eq!((third.tables.len(), third.plots.len()), (3, 4));
    for (table, protocols) in third.tables.iter().zip([5, 5]) {
        assert_eq!(table.rows.len(), protocols * 3);
        for (number, row) in table.rows.iter().enumerate() {
            let measured = row[5].number().is_some_and(|value| value > 0.0);
            assert_eq!(measured, number % 3 == 0, "{row:?}");
            let bark = row[0] == Value::text("BaRK-OPRF");
            assert_eq!(row[6].number().is_some(), measured && bark, "{row:?}");
        }
    }
    // Six protocols over two links, compared with the published figures except naive hashing where
    // they have one digit; and one protocol compared with three.
    let generated = third.findings.len() - table3::published().findings.len();
    assert_eq!(generated, 2 * (6 + 3) - 1);
    assert!(third.findings[0].starts_with("PSSZ on items of 32 bits over LAN, here: "));

    let fourth = section(&Table4, &results);
    assert_whole(&fourth);
    assert_eq!((fourth.tables.len(), fourth.plots.len()), (3, 2));
    let generated = fourth.findings.len() - table4::published().findings.len();
    assert_eq!(generated, 2 * 2 * 2);
    // The phases add up to the whole.
    for (totals, phases) in third.tables.iter().zip(&fourth.tables).take(2) {
        for column in [5, 6] {
            let of = |row: &[Value]| row[column].number().expect("it was measured");
            let [offline, online, total] =
                [&phases.rows[0], &phases.rows[3], &totals.rows[12]].map(|row| of(row));
            assert!((offline + online - total).abs() < 1e-6 * total);
        }
    }

    let fifth = section(&Table5, &results);
    assert_whole(&fifth);
    assert_eq!((fifth.tables.len(), fifth.plots.len()), (2, 1));
    // Of the smallest sets one figure alone has enough digits.
    let generated = fifth.findings.len() - table5::published().findings.len();
    assert_eq!(generated, 1);
    assert_eq!(
        fifth.findings[0],
        "PSSZ on items of 128 bits, here: 1.00 of the published bytes at 2^8: the same."
    );
    for row in fifth.tables[0].rows.iter().step_by(3) {
        for [counted, formula] in [[5, 7], [6, 8]] {
            let both = [counted, formula].map(|column| row[column].number());
            let [Some(counted), Some(formula)] = both else {
                assert_eq!(both, [None, None], "{row:?}");
                continue;
            };
            // The bytes that the formulas leave out.
            let more = (counted - formula) * f64::from(1 << 20);
            assert!((0.0..12_000.0).contains(&more), "{row:?}: {more}");
        }
    }
}

/// Missing values are shown as missing, and no sentence mentions them.
#[test]
fn no_results_are_missing_values() {
    let nothing = Results::new("test");
    for (experiment, published) in [
        (&Table3 as &dyn Experiment, table3::published()),
        (&Table4, table4::published()),
        (&Table5, table5::published()),
    ] {
        let section = section(experiment, &nothing);
        assert_whole(&section);
        assert_eq!(section.findings, published.findings);
        let plans = section.tables.len() - 1;
        for row in section.tables[..plans].iter().flat_map(|table| &table.rows) {
            assert!(matches!(row[4], Value::Published { .. }));
            assert_eq!(row[5..7], [Value::None, Value::None]);
        }
        let lines = section.plots.iter().flat_map(|plot| &plot.series);
        assert!(lines.clone().count() > 0 && lines.clone().all(|line| line.published));
    }
    for experiment in [&Table1 as &dyn Experiment, &Table2] {
        assert_whole(&section(experiment, &nothing));
    }
}

#[test]
fn skipped_measurements_say_so() {
    let mut results = Results::new("test");
    for cell in Table3.cells(&SCOPE).expect("there are parameters") {
        results.measurements.push(Measurement {
            key: cell.key,
            plan: cell.plan,
            security_bits: cell.security_bits,
            skipped_seconds: Some(123.4),
            samples: Vec::new(),
        });
    }
    let section = section(&Table3, &results);
    let skipped = Value::Skipped { seconds: 123.4 };
    assert!(section.tables[0].rows.iter().all(|row| row[5] == skipped));
    assert_eq!(section.findings, table3::published().findings);
}

/// Bytes are taken from either link.
#[test]
fn traffic_is_that_of_the_link_that_was_measured() {
    let mut results = measured();
    let lan = Setting::Lan.link();
    let both = section(&Table5, &results).tables[0].rows[12].clone();
    results.measurements.retain(|have| have.key.link != lan);
    let wan = section(&Table5, &results).tables[0].rows[12].clone();
    assert_eq!(both[0], Value::text("BaRK-OPRF"));
    assert!(both[5].number().is_some());
    assert_eq!(both[5].number(), wan[5].number());
}
