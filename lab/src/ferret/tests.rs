//! Tests shared by the four tables, and all tables from one real run.

use std::time::Duration;

use crate::measurement::{Measurement, Phase, Sample};
use crate::page::{Section, Value};
use crate::results::Results;
use crate::runner::Cell;
use volery_pcg::plan::RoundSize;
use volery_pcg::{Base, Noise, Plan, Security};

use super::candidate::Candidate;
use super::cells::Extent;
use super::published::{Protocol, Published, PublishedRow, Rate};
use super::tables::Shown;
use super::{table1, table3, table4, table5};

/// Checks that the figures of a table, row by row, are the printed ones.
pub(super) fn assert_digits(table: &Published, digits: &[(Protocol, Option<f64>, &[f64])]) {
    assert_eq!(table.rows.len(), digits.len());
    for (row, (protocol, traffic, values)) in table.rows.iter().zip(digits) {
        assert_eq!((row.protocol, row.traffic), (*protocol, *traffic));
        assert_eq!(row.values, *values, "{row:?}");
    }
}

/// A data file has this many rows and columns, names its source, and no figure is missing.
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
        assert_eq!(row.about, what == "Table 4" && direct, "{row:?}");
        let stated = what != "Table 5" && !row.about;
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

/// The cells of all tables: Table 3 has all of them.
fn cells(extent: &Extent) -> Vec<Cell> {
    extent
        .cells(&table3::published())
        .expect("there are parameters")
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

/// The first columns are words, then `published`, `here` and `volery`; ours are in their places,
/// with the ratio to the published one.
fn assert_beside(rows: &[Vec<Value>], name: &str) {
    for row in rows {
        let protocol = text(&row[1]);
        let [.., published, here, volery] = &row[..] else {
            panic!("{name}: too few columns");
        };
        assert_eq!(
            here.plotted().is_some(),
            protocol != "[BCG+19a]",
            "{name}: {row:?}"
        );
        assert_eq!(
            volery.plotted().is_some(),
            protocol.starts_with("Ferret"),
            "{name}: {row:?}"
        );
        for ours in [here, volery] {
            let Some(number) = ours.number() else {
                assert_eq!(ours.ratio(), None);
                continue;
            };
            let expected = published.number().map(|published| number / published);
            let expected = expected.filter(|_| number > 0.0);
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
        let ours = |row: &PublishedRow| match row.protocol {
            Protocol::Bcg19a => 0,
            Protocol::Alsz13 | Protocol::Kos15 => 1,
            Protocol::FerretReg | Protocol::FerretUni => 2,
        };
        let told: Vec<_> = rows.iter().filter(|row| !row.about).collect();
        let expected: usize = told.iter().map(|row| ours(row)).sum();
        assert_eq!(generated, expected, "{name}: {:?}", section.findings);
        assert!(section.findings[0].contains("times the published time over 100Mbit"));
        assert!(section.findings[0].ends_with(" (one run)."));
        if !section.plots.is_empty() {
            let series = section.plots.iter().flat_map(|plot| &plot.series);
            let (published, measured): (Vec<_>, Vec<_>) = series.partition(|line| line.published);
            assert_eq!(published.len(), told.len(), "{name}");
            // A figure lost in the noise of the rounds is shown too, at its bound.
            let expected: usize = rows.iter().map(ours).sum();
            assert_eq!(measured.len(), expected, "{name}");
            assert!(measured.iter().all(|line| line.points[0].y.median > 0.0));
        }
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
        let expected = match text(&row[0]) {
            name if name.starts_with("ferret-regular") => 85.0,
            name if name.starts_with("ferret-uniform") => 92.0,
            _ => 128.0,
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
            let about = section.name == "ferret-table-4" && text(&row[1]).starts_with("[");
            match &row[3] {
                Value::Text { text } => assert!(about && text == "about 30", "{row:?}"),
                value => assert!(!about && matches!(value, Value::Published { .. })),
            }
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

/// A first round no longer than a later one: the setup is neither zero nor missing, but below a
/// bound, in the table and in the plot, and no sentence compares it with the published one.
#[test]
fn a_setup_that_is_lost_is_below_a_bound() {
    let extent = few();
    let phase = |name: &str, seconds| Phase {
        name: name.to_owned(),
        outputs: 100,
        seconds,
        bytes: 1000,
        messages: 1,
    };
    let sample = |first, begin| Sample {
        phases: vec![
            phase("first", first),
            phase("first-rest", 0.5),
            phase("begin", begin),
            phase("rest", 0.5),
            phase("stream", 0.5),
        ],
        ..Sample::default()
    };
    let mut results = Results::new("lost");
    results.measurements = cells(&extent)
        .into_iter()
        .map(|cell| Measurement {
            key: cell.key,
            plan: cell.plan,
            security_bits: cell.security_bits,
            skipped_seconds: None,
            samples: vec![sample(2.0, 1.0), sample(1.0, 1.5)],
        })
        .collect();
    let section = section(&table4::shown(), &extent, &results);
    // The runs of one differ by 1 s, those of the other by half a second, and the terms by 1 s at
    // most.
    let below = Value::Below {
        bound: 1500.0,
        count: 2,
    };
    let of_ferret = |row: &&Vec<Value>| text(&row[1]).starts_with("Ferret");
    let rows: Vec<_> = section.tables[0].rows.iter().filter(of_ferret).collect();
    assert_eq!(rows.len(), 4);
    for row in rows {
        assert_eq!(row[4..], [below.clone(), below.clone()]);
    }
    let ours = section.plots.iter().flat_map(|plot| &plot.series);
    let ours = ours.filter(|series| !series.published && series.name.starts_with("Ferret"));
    let points: Vec<_> = ours.flat_map(|series| &series.points).collect();
    assert_eq!(points.len(), 8);
    for point in points {
        assert_eq!(Some(point.y), below.plotted());
        assert_eq!((point.y.least, point.y.most), (0.0, 1500.0));
    }
    let lost = "here: lost in the spread over 100Mbit; MB";
    assert!(
        section.findings[0].contains(lost),
        "{}",
        section.findings[0]
    );
}

/// The plans of a kind of candidate, for each noise and security over each link.
fn plans(candidate: fn(Noise, Security) -> Candidate) -> Vec<(Rate, Plan)> {
    let mut all = Vec::new();
    for noise in [Noise::Regular, Noise::Uniform] {
        for security in [Security::SemiHonest, Security::Malicious] {
            for rate in Rate::ALL {
                let plan = candidate(noise, security).plan(&rate.link());
                all.push((rate, plan.expect("there are parameters").expect("a plan")));
            }
        }
    }
    all
}

/// The main round of a plan.
fn main_round(plan: &Plan) -> RoundSize {
    let set = plan.schedule().last().expect("there is a main set");
    RoundSize::new(
        plan.kind(),
        plan.security(),
        plan.noise(),
        [set.n, set.k, set.t],
    )
}

fn base_bits(plan: &Plan) -> usize {
    match plan.base() {
        Base::SoftSpoken(field) | Base::Packed(field) => field.trees() - 1,
        Base::Iknp | Base::Gilboa => 128,
    }
}

/// The parameters of the default's sets, as the data files state them.
#[test]
fn what_is_said_of_the_default_is_so() {
    let all = plans(Candidate::Volery);
    for (rate, plan) in &all {
        let said = plan.describe();
        assert_eq!(plan.claimed_bits(), 128, "{said}");
        let bits = if *rate == Rate::Gbit5 { 31 } else { 15 };
        assert_eq!(base_bits(plan), bits, "{said}");
        assert!(plan.schedule().iter().all(|set| set.k < 588_160), "{said}");
    }
    let before = Rate::ALL.map(|at| {
        let of_rate = all.iter().filter(|(rate, _)| *rate == at);
        of_rate.map(|(_, plan)| plan.schedule().len() - 1).max()
    });
    assert_eq!(
        before,
        [2, 2, 2, 1, 1, 0].map(Some),
        "smaller sets at each rate"
    );
    for of_links in all.chunks(Rate::ALL.len()) {
        let [slow, fast] = [0, Rate::ALL.len() - 1].map(|link| main_round(&of_links[link].1));
        let sent = |round: &RoundSize| round.levels as f64 / (round.n - round.base) as f64;
        assert!(
            slow.n > fast.n && sent(&slow) < sent(&fast),
            "{} {}: {} {} {} {}",
            of_links[0].1.noise(),
            of_links[0].1.security(),
            slow.n,
            fast.n,
            sent(&slow),
            sent(&fast)
        );
    }
}

/// The parameters of the paper's sets, as the data files state them.
#[test]
fn what_is_said_of_the_papers_sets_is_so() {
    for (_, plan) in plans(Candidate::Ferret) {
        let set = plan.schedule().last().expect("there is a main set");
        let round = main_round(&plan);
        let hands_out = round.n - round.base;
        // The check of a malicious round takes another 128.
        let check = match plan.security() {
            Security::Malicious => 0,
            _ => 128,
        };
        // Three leaves for each output with cuckoo hashing, one without.
        let [k, trees, leaves, levels, cots] = match plan.noise() {
            Noise::Uniform => [588_160, 1_691, 3 * set.n, 15, 10_000_748],
            _ => [589_760, 1_319, set.n, 13, 10_198_213],
        };
        let found = [set.k, round.trees, hands_out];
        assert_eq!(found, [k, trees, cots + check]);
        let each = leaves.div_ceil(trees);
        assert_eq!(each.next_power_of_two().ilog2() as usize, levels);
        let claimed = match plan.noise() {
            Noise::Uniform => 92,
            _ => 85,
        };
        assert_eq!(plan.claimed_bits(), claimed);
        assert!([127, 128].contains(&base_bits(&plan)));
    }
}
