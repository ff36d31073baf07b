//! What the four tables have in common, and all of them from one real run.

use std::time::Duration;

use volery_bench::measurement::Measurement;
use volery_bench::page::{Section, Value};
use volery_bench::results::Results;
use volery_bench::runner::Cell;
use volery_pcg::Security;

use super::cells::Extent;
use super::published::{Protocol, Published, Rate};
use super::tables::Shown;
use super::{table1, table3, table4, table5};

/// A data file has so many rows and columns, says where it is from, and no figure is missing.
pub(super) fn assert_whole(table: &Published, what: &str, [rows, columns]: [usize; 2]) {
    assert_eq!(table.what, what);
    assert_eq!((table.rows.len(), table.columns.len()), (rows, columns));
    assert!(table.columns.is_sorted());
    assert!(table.paper.contains("2020/924") && table.section.contains('.'));
    for row in &table.rows {
        assert_eq!(row.values.len(), columns, "{row:?}");
        assert!(row.values.iter().all(|value| *value > 0.0), "{row:?}");
        assert!([Security::SemiHonest, Security::Malicious].contains(&row.security()));
        let direct = matches!(row.protocol, Protocol::Alsz13 | Protocol::Kos15);
        let stated = what != "Table 5" && !(what == "Table 4" && direct);
        assert_eq!(row.traffic.is_some(), stated, "{row:?}");
    }
    assert_eq!(table.traffic_unit.is_some(), what != "Table 5");
    for said in [&table.ours, &table.differences, &table.findings] {
        assert!(
            !said.is_empty() && said.iter().all(|text| text.ends_with('.')),
            "{said:?}"
        );
    }
}

fn all() -> [Shown; 4] {
    [
        table1::shown(),
        table3::shown(),
        table4::shown(),
        table5::shown(),
    ]
}

fn few() -> Extent {
    Extent {
        n: 1000,
        rates: vec![Rate::Mbit100],
        costliest: vec![Rate::Mbit100],
        limit: 4.0,
        threads: 1,
        timeout: Duration::from_secs(120),
    }
}

/// The cells of all tables, each once.
fn cells(extent: &Extent) -> Vec<Cell> {
    let mut all_cells: Vec<Cell> = Vec::new();
    for shown in all() {
        for cell in extent
            .cells(&shown.published)
            .expect("there are parameters")
        {
            if !all_cells.iter().any(|have| have.key == cell.key) {
                all_cells.push(cell);
            }
        }
    }
    all_cells
}

/// Every cell measured once.
fn measured(extent: &Extent) -> Results {
    let mut results = Results::new("a few");
    for cell in cells(extent) {
        let sample = (cell.run)().expect("both parties are honest");
        let sent = sample.bytes() as f64;
        assert!(cell.forecast.bytes <= sent, "{}: at least", cell.key);
        assert!(
            cell.forecast.bytes >= 0.5 * sent || sent < 1e6,
            "{}: about",
            cell.key
        );
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

fn text(value: &Value) -> &str {
    match value {
        Value::Text { text } => text,
        other => panic!("words are expected, not {other:?}"),
    }
}

/// The first columns are words, then `published`, `here` and `volery`; ours are there where they should be, with the ratio to
/// the published one.
fn assert_beside(rows: &[Vec<Value>], name: &str) {
    for row in rows {
        let protocol = text(&row[1]);
        let [.., published, here, volery] = &row[..] else {
            panic!("{name}: too few columns");
        };
        assert_eq!(
            matches!(here, Value::Measured { .. }),
            protocol != "[BCG+19a]",
            "{name}: {row:?}"
        );
        assert_eq!(
            matches!(volery, Value::Measured { .. }),
            protocol.starts_with("Ferret"),
            "{name}: {row:?}"
        );
        for ours in [here, volery] {
            let Some(number) = ours.number() else {
                assert_eq!(ours.ratio(), None);
                continue;
            };
            let expected = published.number().map(|published| number / published);
            let close = |ratio: f64, expected: f64| (ratio - expected).abs() <= 1e-9 * ratio.abs();
            match (ours.ratio(), expected) {
                (Some(ratio), Some(expected)) => assert!(close(ratio, expected), "{name}: {row:?}"),
                (ratio, expected) => assert_eq!(ratio, expected, "{name}: {row:?}"),
            }
        }
    }
}

fn section(shown: &Shown, extent: &Extent, results: &Results) -> Section {
    shown
        .section(extent, results)
        .expect("there are parameters")
}

#[test]
fn all_tables_of_a_real_run() {
    let extent = few();
    let results = measured(&extent);
    assert_eq!(
        results.measurements.len(),
        10,
        "two baselines, two columns of four"
    );
    for shown in all() {
        let section = section(&shown, &extent, &results);
        let (rows, name) = (&shown.published.rows, shown.name);
        let times = &section.tables[0];
        assert_eq!(times.rows.len(), rows.len(), "{name}: one link");
        for (row, published) in times.rows.iter().zip(rows) {
            assert_eq!(row.len(), times.columns.len());
            assert_eq!(text(&row[0]), published.security().to_string());
            assert_eq!(text(&row[1]), published.name());
            assert_eq!(text(&row[2]), "100Mbit");
        }
        assert_beside(&times.rows, name);
        if shown.published.traffic_unit.is_some() {
            assert_eq!(section.tables[1].rows.len(), rows.len(), "{name}");
            assert_beside(&section.tables[1].rows, name);
        }
        // A sentence for each of ours, before those of the data file.
        let generated = section.findings.len() - shown.published.findings.len();
        let ours = rows.iter().map(|row| match row.protocol {
            Protocol::Bcg19a => 0,
            Protocol::Alsz13 | Protocol::Kos15 => 1,
            Protocol::FerretReg | Protocol::FerretUni => 2,
        });
        assert_eq!(
            generated,
            ours.sum::<usize>(),
            "{name}: {:?}",
            section.findings
        );
        assert!(section.findings[0].contains("times the published time over 100Mbit"));
        let plotted: usize = section.plots.iter().map(|plot| plot.series.len()).sum();
        let expected = if section.plots.is_empty() {
            0
        } else {
            rows.len() + generated
        };
        assert_eq!(plotted, expected, "{name}: published ones and ours");
        assert_eq!(section.plots.len(), [1, 2, 2, 0][place(&shown)], "{name}");
    }
    the_papers_own_bits(&section(&table1::shown(), &extent, &results));
    the_weakest_set_is_labelled(&section(&table5::shown(), &extent, &results));
}

fn place(shown: &Shown) -> usize {
    let names = all().map(|shown| shown.name);
    names
        .iter()
        .position(|name| *name == shown.name)
        .expect("one of them")
}

/// These do not depend on the machine: an OT has 257 bits, of which 1 goes the other way.
fn the_papers_own_bits(section: &Section) {
    let bits = |row: usize| section.tables[1].rows[row][3].number().expect("measured");
    assert!(
        (127.0..200.0).contains(&bits(0)),
        "with its check: {}",
        bits(0)
    );
    assert!((bits(2) - 0.44).abs() < 0.02, "{}", bits(2));
    assert!((bits(3) - 0.73).abs() < 0.08, "{}", bits(3));
}

fn the_weakest_set_is_labelled(section: &Section) {
    let plans = section.tables.last().expect("the parameters are the last");
    let claimed = |row: &Vec<Value>| row[2].number().expect("bits");
    for row in &plans.rows {
        let expected = if text(&row[0]).starts_with("ferret-regular") {
            122.0
        } else {
            128.0
        };
        assert!((claimed(row) - expected).abs() < 1e-9, "{row:?}");
    }
    assert_eq!(
        plans.rows.len(),
        4,
        "two noises, the paper's and the default"
    );
}

#[test]
fn what_was_not_measured_is_shown_as_missing() {
    let extent = Extent {
        rates: Rate::ALL.to_vec(),
        costliest: Rate::ALL.to_vec(),
        ..few()
    };
    let nothing = Results::new("nothing");
    for shown in all() {
        let section = section(&shown, &extent, &nothing);
        assert_eq!(section.findings, shown.published.findings, "{}", shown.name);
        let columns = shown.published.columns.len();
        assert_eq!(
            section.tables[0].rows.len(),
            shown.published.rows.len() * columns
        );
        for row in &section.tables[0].rows {
            assert!(matches!(row[3], Value::Published { .. }));
            assert_eq!(row[4..], [Value::None, Value::None]);
        }
        let series = section.plots.iter().flat_map(|plot| &plot.series);
        assert!(
            series
                .into_iter()
                .all(|series| series.published && series.points.len() == columns)
        );
        let plans = section.tables.last().expect("the parameters");
        assert!(plans.rows.iter().all(|row| row[2].number().is_some()));
    }
}

#[test]
fn what_was_skipped_is_told() {
    let extent = few();
    let mut results = Results::new("nothing");
    results.measurements = cells(&extent)
        .into_iter()
        .map(|cell| Measurement {
            key: cell.key,
            plan: cell.plan,
            security_bits: cell.security_bits,
            skipped_seconds: Some(99.0),
            samples: Vec::new(),
        })
        .collect();
    let section = section(&table1::shown(), &extent, &results);
    let row = &section.tables[0].rows[2];
    let skipped = Value::Skipped { seconds: 99.0 };
    assert_eq!(row[4..], [skipped.clone(), skipped]);
    assert_eq!(section.findings, table1::published().findings);
}
