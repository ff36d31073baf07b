//! The data files, the values that are computed, and the tables over a few results.

use std::collections::BTreeSet;

use super::*;
use crate::measurement::Phase;
use crate::results::BenchmarkSession;
use crate::runner::{self, Observer, Settings};

const fn scope(size: Size) -> Scope {
    Scope { size, threads: 1, timeout: Duration::from_secs(60) }
}

fn all() -> Vec<&'static Experiment> {
    ALL.iter().collect()
}

fn experiment(name: &str) -> &'static Experiment {
    named(&[name.to_owned()]).expect("there is one")[0]
}

fn section(name: &str, size: Size, results: &Results) -> Section {
    experiment(name).section(&scope(size), results).expect("there are parameters")
}

#[test]
fn experiments_by_name() {
    let names = |asked: &[&str]| {
        let asked: Vec<_> = asked.iter().map(|name| (*name).to_owned()).collect();
        named(&asked).map(|all| all.iter().map(|one| one.name).collect::<Vec<_>>())
    };
    assert_eq!(names(&[]).map(|all| all.len()), Ok(ALL.len() - 1));
    assert_eq!(
        names(&["kkrt-table-2", "ferret-table-5", "kkrt-table-2"]),
        Ok(vec!["ferret-table-5", "kkrt-table-2"])
    );
    assert_eq!(names(&["dvole"]), Ok(vec!["dvole-figure-3", "dvole-figure-4", "dvole-figure-5"]));
    assert_eq!(names(&[BY_NAME_ONLY]), Ok(vec![BY_NAME_ONLY]));
    for unknown in ["", "table", "ferret-table-2", "Ferret", "figure-3"] {
        let error = names(&["kkrt", unknown]).expect_err("the name is unknown");
        assert!(error.contains(&format!("'{unknown}'")) && error.contains("kkrt-table-5"));
    }
}

#[test]
fn the_data_files_are_whole() {
    for experiment in &ALL {
        let published = &*experiment.published;
        assert!(published.section.chars().any(char::is_numeric) && !published.there.is_empty());
        for texts in [&published.ours, &published.differences] {
            assert!(!texts.is_empty() && texts.iter().all(|text| text.ends_with('.')));
        }
        for table in &published.tables {
            for row in &table.rows {
                assert_eq!(row.labels.len(), table.labels.len(), "{row:?}");
                assert_eq!(row.protocols.len(), table.sides.len(), "{row:?}");
                assert!([0, table.columns.len()].contains(&row.values.len()), "{row:?}");
                assert!(row.values.iter().flatten().all(|value| *value > 0.0), "{row:?}");
            }
            for quick in table.quick.iter().flatten() {
                assert!(table.columns.contains(quick), "{quick}");
            }
        }
    }
}

/// Detects any change of a published figure: the files were compared with the papers, and the sums
/// are of the columns and values of all rows.
#[test]
fn every_digit_is_as_it_was_compared_with_the_papers() {
    let sum = |experiment: &Experiment| {
        let mut hash = blake3::Hasher::new();
        for table in &experiment.published.tables {
            for row in &table.rows {
                hash.update(table.columns.join(";").as_bytes());
                hash.update(
                    format!("{:?}{:?}{:?}\n", row.labels, row.about, row.values).as_bytes(),
                );
            }
        }
        (experiment.name, hash.finalize().to_hex()[..8].to_owned())
    };
    let sums: Vec<_> = ALL.iter().map(sum).collect();
    let expected = include_str!("sums.txt").lines().filter_map(|line| line.split_once(' '));
    let found: Vec<_> = sums.iter().map(|(name, sum)| (*name, sum.as_str())).collect();
    assert_eq!(found, expected.collect::<Vec<_>>());
}

/// The published values of a row, by the words of its labels.
fn values(name: &str, table: usize, labels: &[&str]) -> Vec<f64> {
    let table = &experiment(name).published.tables[table];
    let mut rows = table.rows.iter();
    let row = rows.find(|row| row.labels[..labels.len()] == *labels).expect("a row");
    row.values.iter().copied().flatten().collect()
}

/// Table 3's totals of BaRK-OPRF are the sums of Table 4's phases; Table 1 of Ferret is a part of
/// its Table 3; the parts of its Table 5 are 1 ns short of the total.
#[test]
fn the_tables_agree_with_each_other() {
    for link in [0, 1] {
        let totals = values("kkrt-table-3", link, &["BaRK-OPRF"]);
        let [offline, online] =
            ["offline", "online"].map(|of| values("kkrt-table-4", link, &["BaRK-OPRF", of]));
        assert!(
            totals.iter().eq(&offline.iter().zip(&online).map(|(a, b)| a + b).collect::<Vec<_>>())
        );
    }
    for protocol in ["[KOS15]", "[BCG+19a]", "Ferret-Reg", "Ferret-Uni"] {
        let first = values("ferret-table-1", 0, &["malicious", protocol]);
        let mut third = values("ferret-table-3", 0, &["malicious", protocol]);
        third.remove(3); // 500Mbit
        assert!(first.iter().zip(&third).all(|(a, b)| (a - b / 10.0).abs() <= 1.0), "{protocol}");
    }
    let of = |row: &str| values("ferret-table-5", 0, &["malicious", row]);
    let [trees, lpn, total] = ["Ferret-Reg: SPCOT", "Ferret-Reg: LPN", "Ferret-Reg"].map(of);
    assert!((0..3).all(|i| trees[i] + lpn[i] + 1.0 == total[i]));
}

/// How the findings of Table 3 compare OT extension with 128 bits at the link's rate.
#[test]
fn extension_is_as_fast_as_its_link() {
    for labels in [["semi-honest", "[ALSZ13]"], ["malicious", "[KOS15]"]] {
        let times = values("ferret-table-3", 0, &labels);
        for (rate, time) in [10.0, 50.0, 100.0, 500.0, 1000.0].iter().zip(times) {
            assert!((1.0..1.09).contains(&(time / (128.0 * 1e4 / rate))), "{labels:?}");
        }
    }
}

/// All computed values equal the printed ones, except those that the notes name.
#[test]
fn computed_values_are_the_published_ones() {
    let nothing = Results::new("nothing");
    for (name, lines, tolerance) in
        [("kkrt-table-1", 50, 0.0051), ("kkrt-table-2", 15, 0.0), ("kkrt-table-5", 25, 0.0085)]
    {
        let table = &section(name, Size::Full, &nothing).tables[0];
        // The formulas of Table 5 are its last columns.
        let here = if name == "kkrt-table-5" { 7 } else { 5 };
        assert_eq!(table.rows.len(), lines);
        for row in &table.rows {
            let [printed, computed] = [4, here].map(|column| row[column].number().unwrap_or(-1.0));
            let is = |of: &str, items: &[&str]| {
                row[1] == Value::text(of)
                    && row[2] == Value::text("32")
                    && items.iter().any(|items| row[3] == Value::text(*items))
            };
            let misprint = is("OT cost, bits", &["2^16"]) || is("ratio of costs", &["2^8", "2^16"]);
            assert_eq!((printed - computed).abs() <= tolerance, !misprint, "{name}: {row:?}");
        }
    }
    // The hybrid picks PSSZ for items of 32 bits in large sets.
    let choices = &section("kkrt-table-1", Size::Full, &nothing).tables[1];
    let pssz: Vec<_> = choices.rows.iter().filter(|row| row[3] == Value::text("PSSZ")).collect();
    let expected =
        [("fractions of an OT", "2^20"), ("fractions of an OT", "2^24"), ("whole OTs", "2^24")];
    assert_eq!(pssz.len(), 3);
    for (row, (counted, items)) in pssz.iter().zip(expected) {
        assert_eq!(row[..3], [counted, "32", items].map(Value::text));
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
        let other = key.threads > 2 || key.protocol.starts_with("trees-");
        assert!(other || shipped.contains(&json), "{json}");
    }
}

/// Results of one sample each, whose phases are `phases`.
fn measured(names: &[&str], size: Size, phases: &[(&str, u64, f64, u64)]) -> Results {
    let experiments: Vec<_> = names.iter().map(|name| experiment(name)).collect();
    let mut results = Results::new("test");
    for cell in cells(&experiments, &scope(size)).expect("there are parameters") {
        let phase = |&(name, outputs, seconds, bytes): &(&str, u64, f64, u64)| Phase {
            name: name.to_owned(),
            outputs,
            seconds,
            bytes,
            messages: 1,
        };
        let sample = Sample { phases: phases.iter().map(phase).collect(), ..Sample::default() };
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

/// Every row has a value for each column; missing values are missing, and no sentence mentions
/// them.
#[test]
fn sections_without_results() {
    for experiment in &ALL {
        for size in [Size::Full, Size::Quick] {
            let section = section(experiment.name, size, &Results::new("nothing"));
            for table in &section.tables {
                assert!(table.rows.iter().all(|row| row.len() == table.columns.len()));
            }
            let of_data = experiment.published.findings.len();
            let computed = experiment.name.starts_with("kkrt-table");
            assert!(section.findings.len() == of_data || computed, "{:?}", section.findings);
            assert!(
                section
                    .plots
                    .iter()
                    .flat_map(|plot| &plot.series)
                    .all(|line| line.published || experiment.name == "kkrt-table-5")
            );
        }
    }
}

#[test]
fn values_stand_beside_the_published_ones() {
    let phases = [("offline", 0, 0.25, 9 << 20), ("online", 256, 0.75, 3 << 20)];
    let results = measured(&["kkrt-table-3"], Size::Quick, &phases);
    let third = section("kkrt-table-3", Size::Quick, &results);
    assert_eq!((third.tables.len(), third.plots.len()), (3, 2));
    let row = &third.tables[0].rows[12];
    assert_eq!((&row[0], row[4].number()), (&Value::text("BaRK-OPRF"), Some(192.0)));
    assert_eq!([5, 6].map(|column| row[column].number()), [Some(1000.0); 2]);
    assert_eq!(row[5].ratio(), Some(1000.0 / 192.0));
    let fourth = &section("kkrt-table-4", Size::Quick, &results).tables[0];
    assert_eq!([0, 3].map(|row| fourth.rows[row][5].number()), [Some(250.0), Some(750.0)]);
    let fifth = &section("kkrt-table-5", Size::Quick, &results).tables[0];
    assert_eq!(fifth.rows[0][5].number(), Some(3.0));

    let mut skipped = results.clone();
    for one in &mut skipped.measurements {
        (one.skipped_seconds, one.samples) = (Some(9.5), Vec::new());
    }
    let third = section("kkrt-table-3", Size::Quick, &skipped);
    assert!(third.tables[0].rows.iter().all(|row| row[5] == Value::Skipped { seconds: 9.5 }));
}

/// Of a stream: scaled where fewer were made, a setup that is lost is below a bound, and the parts
/// of a round are of the same parameters only.
#[test]
fn values_of_a_stream() {
    let phases = [
        ("first", 10, 1.0, 2_000_000),
        ("first-rest", 10, 1.0, 0),
        ("begin", 10, 1.25, 1_000_000),
        ("rest", 999_990, 0.25, 0),
        ("stream", 1_000_000, 0.5, 0),
    ];
    let mut results = measured(&["ferret-table-3"], Size::Quick, &phases);
    let times =
        |results: &Results| section("ferret-table-1", Size::Quick, results).tables[0].clone();
    let row = times(&results).rows[4].clone();
    assert_eq!(row[1..3], ["Ferret-Reg", "50Mbit"].map(Value::text));
    for ours in &row[4..] {
        assert!(matches!(ours, Value::Measured { extrapolated: true, .. }), "{ours:?}");
        assert_eq!(ours.number().map(f64::round), Some(1000.0));
    }
    let setup = &section("ferret-table-4", Size::Quick, &results).tables[0].rows[2];
    assert!(matches!(setup[4], Value::Below { bound: 1000.0, count: 1 }), "{setup:?}");
    let fifth =
        |results: &Results| section("ferret-table-5", Size::Quick, results).tables[0].clone();
    let values =
        |table: &Table, row: usize| [4, 5].map(|side| table.rows[row][side].number().is_some());
    assert_eq!(values(&fifth(&results), 1), [true; 2], "LPN");
    assert_eq!(fifth(&results).rows.last().map(|row| row[4].number()), Some(Some(0.0)), "extra");
    for one in &mut results.measurements {
        one.plan = one.plan.take().map(|plan| plan + "+");
    }
    assert_eq!(values(&fifth(&results), 1), [false; 2]);
}

#[test]
fn values_that_compare_two_measurements() {
    let mut results = measured(&["dvole-figure-4"], Size::Quick, &[("total", 9, 1.0, 100)]);
    // Gilboa's multiplication takes a tenth of a millisecond an entry, all else a second.
    for one in &mut results.measurements {
        if one.key.protocol.starts_with("gilboa") {
            one.samples[0].phases[0].seconds = one.key.n as f64 / 1e4;
        }
    }
    let shown = section("dvole-figure-4", Size::Quick, &results);
    let crossings = shown.tables.iter().find(|table| table.columns[0].heading == "protocol");
    let row = &crossings.expect("a table of them").rows[0];
    assert_eq!((row[3].number(), row[4].number()), (Some(300_000.0), Some(10_000.0)));
    assert_eq!(row[5], Value::text("above 150000"), "bytes");
    assert!(
        shown.tables[1].rows.iter().flatten().any(|value| matches!(value, Value::Skipped { .. }))
    );

    let leads = [(1.0, 2.0), (2.0, 0.5), (4.0, 2.0)];
    assert_eq!(crossing(&leads, Some(28.0)).and_then(|value| value.ratio()), Some(0.1));
    assert_eq!(crossing(&leads[..1], None), Some(Value::text("below 1")));
    assert_eq!(crossing(&[], None), None);
}

/// Ignores all events.
struct Silent;

impl Observer for Silent {
    fn begin(&mut self, _: &Cell, _: [usize; 2]) {}
    fn done(&mut self, _: &Cell, _: &Sample) {}
    fn skipped(&mut self, cell: &Cell, seconds: f64) {
        panic!("{} takes no {seconds} s", cell.key);
    }
    fn keep(&mut self, _: &Results) -> Result<()> {
        Ok(())
    }
}

/// A quick cell of each paper, by the runner of the program; the nightly command runs all of them.
#[test]
fn a_quick_cell_of_each_paper() {
    let wanted = [("dpf-fp61", 1 << 14), ("iknp", 10_000_000), ("kkrt", 1 << 8)];
    let mut quick = cells(&all(), &scope(Size::Quick)).expect("there are parameters for all");
    quick.retain(|cell| wanted.contains(&(cell.key.protocol.as_str(), cell.key.n)));
    let mut results = Results::new("test");
    results.sittings.push(BenchmarkSession::example());
    let settings = Settings { runs: 1, limit: 1000.0 };
    runner::run(&quick, &mut results, settings, &mut Silent).expect("all results are right");
    for (name, table, row) in
        [("dvole-figure-3", 0, 0), ("ferret-table-3", 0, 0), ("kkrt-table-3", 0, 12)]
    {
        let shown = section(name, Size::Quick, &results);
        let row = &shown.tables[table].rows[row];
        let measured = |value: &Value| matches!(value, Value::Measured { .. });
        assert!(row.iter().any(measured), "{name}: {row:?}");
        assert!(!shown.tables.is_empty() && !shown.findings.is_empty());
    }
}
