//! The data files, and the sections with few measurements and with none.

use std::time::Duration;

use crate::measurement::{Key, Measurement, Sample};
use crate::page::{Section, Series, Value};
use crate::results::{BenchmarkSession, Results};
use crate::runner::{self, Cell, Forecast, Observer, Settings};
use crate::{Link, Result};
use volery_field::Z64;

use super::candidate::Candidate;
use super::stated::{Figure, Quantity, stated};
use super::{figure3, figure4, figure5};
use crate::experiment::{self, Experiment, Scope, Size};

const ALL: [&dyn Experiment; 3] = [&figure3::Figure3, &figure4::Figure4, &figure5::Figure5];

fn scope(size: Size) -> Scope {
    Scope {
        size,
        threads: 1,
        timeout: Duration::from_secs(60),
    }
}

fn section(experiment: &dyn Experiment, size: Size, results: &Results) -> Section {
    let section = experiment.section(&scope(size), results);
    section.expect("there are parameters for all")
}

#[test]
fn every_data_file_is_whole() {
    for (figure, what, columns, rows) in [
        (figure3::figure(), "Figure 3", 1, 1),
        (figure4::figure(), "Figure 4", 2, 5),
        (figure5::figure(), "Figure 5", 3, 2),
    ] {
        let Figure {
            columns: have,
            rows: statements,
            ..
        } = &figure;
        assert_eq!(figure.what, what);
        assert_eq!((have.len(), statements.len()), (columns, rows), "{what}");
        assert!(figure.paper.contains("CCS 2019") && figure.section.starts_with("8.3"));
        assert!(figure.note.contains("no curve is read off it"));
        for row in statements {
            assert_eq!(row.values.len(), columns, "{what}");
            assert!(row.values.iter().flatten().all(|value| *value > 0.0));
            assert!(row.values.iter().any(Option::is_some) && !row.source.is_empty());
        }
        let texts = [&figure.ours, &figure.differences, &figure.findings];
        for text in texts.into_iter().flatten() {
            assert!(text.ends_with('.'), "{what}: {text}");
        }
    }
}

#[test]
fn the_text_of_the_paper() {
    let figure4 = figure4::figure();
    let crossing = |ring, link| stated(&figure4, Quantity::Crossing, ring, link);
    assert_eq!(crossing("fp61", "loopback"), Some(300_000.0));
    assert_eq!(crossing("z64", "loopback"), Some(2_000_000.0));
    assert_eq!(crossing("fp61", "100Mbit"), Some(200_000.0));
    assert_eq!(crossing("z64", "100Mbit"), Some(400_000.0));
    assert_eq!(crossing("gf128", "100Mbit"), None);
    assert_eq!(crossing("z64", "10Mbit"), None);
    let over_field = |quantity| stated(&figure4, quantity, "fp61", "loopback");
    assert_eq!(over_field(Quantity::Seconds), Some(5.0));
    assert_eq!(over_field(Quantity::GilboaTime), Some(1.7));
    assert_eq!(over_field(Quantity::GilboaBytes), Some(2.6));
    assert_eq!(stated(&figure4, Quantity::Seconds, "z64", "loopback"), None);
    assert_eq!(stated(&figure4, Quantity::Seconds, "fp61", "100Mbit"), None);
    let figure5 = figure5::figure();
    let speed_up = |threads| stated(&figure5, Quantity::SpeedUp, "z64", threads);
    assert_eq!([speed_up("8"), speed_up("32")], [Some(5.0), Some(9.8)]);
    assert_eq!(speed_up("16"), None);
    let figure3 = figure3::figure();
    let lead = stated(&figure3, Quantity::LeadAtMost, "z64", "loopback");
    assert_eq!(lead, Some(10.0));
}

/// This paper's share of the minutes for all papers.
#[test]
fn all_of_it_fits_into_minutes() {
    let settings = Settings {
        runs: 5,
        limit: f64::INFINITY,
    };
    for (size, minutes) in [(Size::Full, 9.0), (Size::Quick, 2.5)] {
        let cells = experiment::cells(&ALL, &scope(size)).expect("there are parameters for all");
        let seconds = runner::foretell(&cells, &Results::new(""), settings).seconds;
        let fits = (30.0..60.0 * minutes).contains(&seconds);
        assert!(fits, "{size:?}: {seconds}");
    }
}

/// All values of all tables but the names of the rows.
fn values(section: &Section) -> Vec<&Value> {
    let rows = section.tables.iter().flat_map(|table| &table.rows);
    rows.flatten().collect()
}

fn assert_even(section: &Section) {
    for table in &section.tables {
        assert!(!table.rows.is_empty(), "{}", table.caption);
        for row in &table.rows {
            assert_eq!(row.len(), table.columns.len(), "{}", table.caption);
        }
    }
    let mut captions: Vec<_> = section.tables.iter().map(|table| &table.caption).collect();
    captions.sort();
    captions.dedup();
    assert_eq!(captions.len(), section.tables.len());
}

#[test]
fn nothing_was_measured() {
    for experiment in ALL {
        for size in [Size::Full, Size::Quick] {
            let shown = section(experiment, size, &Results::new(""));
            assert_even(&shown);
            assert_eq!(shown.name, experiment.name());
            assert!(shown.plots.is_empty());
            let mut measured = values(&shown).into_iter();
            assert!(measured.all(|value| !matches!(value, Value::Measured { .. })));
            let data = [figure3::figure(), figure4::figure(), figure5::figure()];
            let data = data.iter().find(|data| shown.title.starts_with(&data.what));
            assert_eq!(shown.findings, data.expect("it has a data file").findings);
        }
    }
    // Statements of the text are shown even without measurements.
    let nothing = Results::new("");
    let shown = section(&figure4::Figure4, Size::Quick, &nothing);
    let published = |value: &&&Value| matches!(value, Value::Published { .. });
    let count = |shown: &Section| values(shown).iter().filter(published).count();
    // The crossings: of two of ours in both rings, of one in the field, over two links.
    assert_eq!(count(&shown), 2 * 5);
    let shown = section(&figure4::Figure4, Size::Full, &nothing);
    assert_eq!(count(&shown), 2 * 5 + 3);
    // The speed-ups, for both rings, and a time; the others follow from it.
    let shown = section(&figure5::Figure5, Size::Quick, &nothing);
    assert_eq!(count(&shown), 2 * 3 + 1);
}

/// Ignores all events.
struct Silence;

impl Observer for Silence {
    fn begin(&mut self, _cell: &Cell, _run: [usize; 2]) {}

    fn done(&mut self, _cell: &Cell, _sample: &Sample) {}

    fn skipped(&mut self, cell: &Cell, seconds: f64) {
        panic!("{} takes no {seconds} s", cell.key);
    }

    fn keep(&mut self, _results: &Results) -> Result<()> {
        Ok(())
    }
}

/// Measures those that `wanted` asks for, once.
fn measured(wanted: fn(&Key) -> bool) -> Results {
    let scope = scope(Size::Quick);
    let mut cells = experiment::cells(&ALL, &scope).expect("there are parameters for all");
    cells.retain(|cell| wanted(&cell.key));
    let mut results = Results::new("small");
    results.sittings.push(BenchmarkSession::begin("test", 1));
    let settings = Settings {
        runs: 1,
        limit: 1000.0,
    };
    runner::run(&cells, &mut results, settings, &mut Silence).expect("all results are right");
    results
}

#[test]
fn sections_of_small_measurements() {
    let results = measured(|key| key.n <= 1 << 14 && key.link == Link::Loopback);
    let row = |shown: &Section, table: usize, row: usize| {
        let values = shown.tables[table].rows[row].iter().skip(1);
        values
            .map(|value| matches!(value, Value::Measured { .. }))
            .collect::<Vec<_>>()
    };

    let shown = section(&figure3::Figure3, Size::Quick, &results);
    assert_even(&shown);
    assert_eq!((shown.tables.len(), shown.plots.len()), (4, 2));
    assert_eq!(row(&shown, 0, 0), [true, true, true, false, false]);
    assert_eq!(row(&shown, 1, 0), [true; 6]);
    assert_eq!(row(&shown, 1, 1), [false; 6]);
    assert!(shown.tables[0].rows[0][5].number().is_some());
    assert!(
        shown.plots[0]
            .series
            .iter()
            .all(|line| line.points.len() == 1)
    );
    let words = &shown.findings[0];
    assert!(words.starts_with("fp61: SPFSS is "), "{words}");
    assert!(
        words
            .ends_with("at 2^14 values (one run); the paper: up to 10 times, faster at all sizes."),
        "{words}"
    );
    assert!(shown.findings[1].starts_with("z64: SPFSS is "));

    let shown = section(&figure4::Figure4, Size::Quick, &results);
    assert_even(&shown);
    assert_eq!((shown.tables.len(), shown.plots.len()), (5, 2));
    for (at, z64) in [(0, false), (1, false), (4, true), (5, true)] {
        // The length, then the protocols; there is none against malicious parties over z64.
        let expected = [false, true, !z64, true, true, true, true];
        for table in [0, 2, 3] {
            assert_eq!(
                row(&shown, table, at),
                expected,
                "row {at} of table {table}"
            );
        }
        assert_eq!(row(&shown, 1, at), [false; 7]);
    }
    assert_eq!(row(&shown, 0, 2), [false; 7]);
    let left = &shown.plots[0];
    assert_eq!(left.series.len(), 10 + 2);
    assert_eq!(left.series.iter().filter(|line| line.published).count(), 2);
    assert_eq!((left.marks.len(), left.marks[0].x), (2, 300_000.0));
    assert!(shown.plots[1].marks.is_empty());
    let words = &shown.findings[0];
    assert!(words.starts_with("fp61 over loopback: VOLE "), "{words}");
    assert!(
        words.ends_with(" (one run); published: from 300000 on."),
        "{words}"
    );
    let stated = left.series.iter().filter(|line| line.published);
    let stated: Vec<_> = stated
        .map(|line| (line.name.as_str(), line.points[0].y.median))
        .collect();
    assert_eq!(
        stated,
        [
            ("VOLE, 80 bits, prime field, stated in the text", 5000.0),
            ("Gilboa, prime field, derived from the text", 8500.0),
        ]
    );
    let slow_way = |line: &&Series| line.name == "naive batching (80 bits), prime field";
    assert_eq!(left.series.iter().filter(slow_way).count(), 1);
    let of_slow = shown
        .findings
        .iter()
        .filter(|text| text.contains("over 100 Mbit/s"));
    assert_eq!(of_slow.count(), 0);
}

#[test]
fn sections_of_both_parties_with_several_threads() {
    let results = measured(|key| {
        let figure5 = key.n == figure5::LENGTH;
        figure5 && key.protocol == "vole-semi-honest-fp61" && key.link == Link::Loopback
    });
    let shown = section(&figure5::Figure5, Size::Quick, &results);
    assert_even(&shown);
    let [fp61, z64] = &shown.tables[..] else {
        panic!("a table for each ring");
    };
    let measured = |value: &&Vec<Value>| matches!(value[1], Value::Measured { .. });
    assert!(fp61.rows.iter().filter(measured).count() >= 2);
    assert_eq!(z64.rows.iter().filter(measured).count(), 0);
    let last = fp61.rows.last().expect("there are rows");
    assert_eq!(
        (last[2].number(), last[4].number()),
        (Some(520.0), Some(9.8))
    );
    assert_eq!(fp61.rows[0][3].number(), Some(1.0));
    assert_eq!(fp61.rows[0][3].ratio(), Some(1.0));
    let crowded = "share the machine's cores";
    assert!(fp61.notes[3].contains(crowded), "{:?}", fp61.notes);
    assert!(z64.notes.is_empty());
    let words = &shown.findings[0];
    assert!(words.starts_with("fp61: 2 threads a party are "), "{words}");
    assert!(words.ends_with(" (one run)."), "{words}");
    assert!(!shown.findings[1].starts_with("z64"));
    let series = &shown.plots[0].series;
    assert!(series.len() == 2 && !series[0].published && series[1].published);
}

#[test]
fn the_published_line_stands_beside_ours() {
    let key = Key {
        protocol: "vole-semi-honest-fp61".to_owned(),
        n: figure5::LENGTH,
        link: Link::Loopback,
        threads: 1,
    };
    let mut results = Results::new("");
    results.measurements.push(Measurement {
        key,
        plan: None,
        security_bits: None,
        skipped_seconds: None,
        samples: vec![Sample::default()],
    });
    let shown = section(&figure5::Figure5, Size::Full, &results);
    let line = &shown.plots[0].series[1];
    assert_eq!(line.name, "VOLE, prime field, derived from the text");
    assert!(line.published);
    let times: Vec<_> = line.points.iter().map(|point| point.y.median).collect();
    assert_eq!(times, [5100.0, 1000.0, 520.0]);
}

/// Numbers that the findings of the data files have.
#[test]
fn numbers_in_the_findings() {
    let set = Candidate::Floram.slow_plan(1).set;
    let figure4 = figure4::figure();
    let base = format!("a base of {} products or more", set.k);
    assert!(figure4.findings.iter().any(|text| text.contains(&base)));
    let bytes = |forecast: Forecast| forecast.bytes;
    assert_eq!(bytes(Candidate::Gilboa.forecast::<Z64>(1000)), 260_000.0);
    let [one, two] = [1, 2].map(|n| bytes(Candidate::VOLE.forecast::<Z64>(n)));
    assert_eq!(two - one, 512.0);
}
