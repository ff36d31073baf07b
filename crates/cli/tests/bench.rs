//! The measurements: what they say, not how long things take.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{run, text};

/// Runs a benchmark; gives what it printed and its one row.
fn bench(name: &str, n: &str) -> (String, serde_json::Value) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bench.json");
    let finished = run(&["bench", "run", name, "--n", n, "--json", text(&file)]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let mut report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let rows = report["result"]["rows"].as_array_mut().unwrap();
    assert_eq!(rows.len(), 1);
    (finished.stdout, rows.remove(0))
}

/// A figure; not finite, it would have been written as `null`.
fn positive(value: &serde_json::Value) -> f64 {
    let number = value.as_f64().unwrap();
    assert!(number > 0.0 && number.is_finite(), "{number}");
    number
}

fn assert_close(a: f64, b: f64) {
    assert!((a - b).abs() <= 1e-9 * a.abs(), "{a} is not {b}");
}

#[test]
fn parts_are_there_and_add_up() {
    let (stdout, row) = bench("vole-fp61", "100000");
    let parts = &row["parts"];
    let kernels = parts["kernels"].as_array().unwrap();
    let names: Vec<_> = kernels
        .iter()
        .map(|part| {
            (
                part["name"].as_str().unwrap(),
                part["party"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        ("trees", "sender"),
        ("trees", "receiver"),
        ("LPN", "sender"),
        ("LPN", "receiver"),
        ("OT", "both"),
        ("transport", "both"),
    ];
    assert_eq!(names, expected);
    for part in kernels {
        let nanoseconds = positive(&part["nanoseconds"]);
        let units = positive(&part["units_each"]);
        assert_close(positive(&part["nanoseconds_each"]), nanoseconds * units);
        if part["name"] == "transport" {
            assert!(part["limit_nanoseconds"].is_null() && part["ratio"].is_null());
        } else {
            let limit = positive(&part["limit_nanoseconds"]);
            assert_close(positive(&part["ratio"]), nanoseconds / limit);
        }
    }
    for party in ["sender", "receiver"] {
        let sum: f64 = kernels
            .iter()
            .filter(|part| part["party"] == party || part["party"] == "both")
            .map(|part| part["nanoseconds_each"].as_f64().unwrap())
            .sum();
        let whole = &parts[party];
        assert_close(positive(&whole["nanoseconds_each_parts"]), sum);
        let extend = positive(&whole["nanoseconds_each_extend"]);
        let seconds = positive(&row[party]["seconds_extend"]);
        assert_close(extend, seconds * 1e9 / 100_000.0);
        assert_close(positive(&whole["ratio"]), extend / sum);
    }
    positive(&parts["setup_milliseconds"]);
    assert!(
        stdout.contains("where the time of vole-fp61 goes"),
        "{stdout}"
    );
}

#[test]
fn without_lpn_there_are_no_parts() {
    for n in ["0", "1009"] {
        let (stdout, row) = bench("vole-gf128", n);
        assert!(row["parts"].is_null());
        assert!(!stdout.contains("where the time"), "{stdout}");
    }
}
