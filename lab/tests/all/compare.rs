//! `volery-bench compare`: its findings in two files, and refused files.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{run, text};
use serde_json::{Value, json};

/// A file of real measurements, of which every other test changes the figures.
fn measured(place: &Path) -> Value {
    let file = place.join("measured.json");
    let finished = run(&[
        "run",
        "cot",
        "vole-z64",
        "--n",
        "1009",
        "--runs",
        "3",
        "--json",
        text(&file),
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Sets the times of the stream of the first measurement, in milliseconds; those of all others are
/// 1, 2 and 3.
fn with_times(mut results: Value, milliseconds: [f64; 3]) -> Value {
    let measurements = results["measurements"].as_array_mut().unwrap();
    for (number, measurement) in measurements.iter_mut().enumerate() {
        let samples = measurement["samples"].as_array_mut().unwrap();
        for (run, sample) in samples.iter_mut().enumerate() {
            for phase in sample["phases"].as_array_mut().unwrap() {
                let times = if number == 0 && phase["name"] == "stream" {
                    milliseconds
                } else {
                    [1.0, 2.0, 3.0]
                };
                phase["seconds"] = json!(times[run] / 1e3);
            }
        }
    }
    results
}

fn write(path: &Path, results: &Value) -> PathBuf {
    fs::write(path, serde_json::to_vec(results).unwrap()).unwrap();
    path.to_owned()
}

#[test]
fn what_got_slower_decides_the_status() {
    let place = tempfile::tempdir().unwrap();
    let measured = measured(place.path());
    let file = |name: &str, times| {
        let results = with_times(measured.clone(), times);
        write(&place.path().join(name), &results)
    };
    let before = file("before.json", [10.0, 11.0, 12.0]);
    let slower = file("slower.json", [13.0, 14.0, 15.0]);
    let wider = file("wider.json", [5.0, 14.0, 30.0]);
    let compare =
        |a: &Path, b: &Path, more: &[&str]| run(&[&["compare", text(a), text(b)], more].concat());

    let found = compare(&before, &slower, &[]);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.stderr.starts_with(
        "error: slower by more than 10 % beyond the spread: 1; sending so much more: 0"
    ));
    let line = found
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("cot"));
    let line = line.unwrap();
    for fragment in ["stream", "1.273", "slower", "yes"] {
        assert!(line.contains(fragment), "{fragment}: {line}");
    }
    assert!(found.stdout.contains("0 faster, 1 slower"), "{found:?}");

    let found = compare(&before, &slower, &["--threshold", "30"]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(found.stdout.contains("1.273") && found.stderr.is_empty());

    let found = compare(&slower, &before, &[]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(found.stdout.contains("1 faster, 0 slower"), "{found:?}");

    // The median is as much slower, but some runs are not.
    for same in [&wider, &before] {
        let found = compare(&before, same, &[]);
        assert_eq!(found.status, Some(0), "{found:?}");
        assert!(found.stdout.contains("0 faster, 0 slower"), "{found:?}");
    }

    let report = place.path().join("report.json");
    let found = compare(&before, &slower, &["-q", "--report", text(&report)]);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.stdout.is_empty());
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    let rows = report["result"]["rows"].as_array().unwrap();
    let verdicts = rows.iter().map(|row| row["verdict"].as_str().unwrap());
    assert_eq!(verdicts.filter(|verdict| *verdict == "slower").count(), 1);
}

#[test]
fn another_machine_is_compared_in_its_own_units() {
    let place = tempfile::tempdir().unwrap();
    let measured = measured(place.path());
    let machine = |name: &str, nanoseconds: f64, times: [f64; 3]| {
        let mut results = with_times(measured.clone(), times);
        let measurements = results["measurements"].as_array_mut().unwrap();
        measurements.truncate(1);
        measurements[0]["samples"]
            .as_array_mut()
            .unwrap()
            .iter_mut()
            .for_each(|sample| {
                sample["phases"]
                    .as_array_mut()
                    .unwrap()
                    .retain(|phase| phase["name"] == "stream");
            });
        let machine = &mut results["sittings"][0]["machine"];
        machine["processor"] = name.into();
        machine["nanoseconds_aes_block"] = nanoseconds.into();
        machine["nanoseconds_random_read"] = json!(1.0);
        write(&place.path().join(format!("{name}.json")), &results)
    };
    let fast = machine("fast", 1.0, [10.0, 11.0, 12.0]);
    let slow = machine("slow", 4.0, [40.0, 44.0, 48.0]);
    for (unit, status) in [("none", 1), ("aes", 0), ("reads", 1)] {
        let found = run(&["compare", text(&fast), text(&slow), "--machine", unit]);
        assert_eq!(found.status, Some(status), "{found:?}");
        assert_eq!(found.stderr.contains("two machines"), unit == "none");
    }
}

#[test]
fn more_bytes_are_found() {
    let place = tempfile::tempdir().unwrap();
    let before = with_times(measured(place.path()), [1.0, 2.0, 3.0]);
    let mut after = before.clone();
    let samples = after["measurements"][1]["samples"].as_array_mut().unwrap();
    for sample in samples {
        sample["phases"][1]["bytes"] = json!(1_000_000);
    }
    let [a, b] = [("a.json", &before), ("b.json", &after)]
        .map(|(name, results)| write(&place.path().join(name), results));
    let found = run(&["compare", text(&a), text(&b)]);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(
        found.stderr.contains("sending so much more: 1"),
        "{found:?}"
    );
    let line = found
        .stdout
        .lines()
        .find(|line| line.trim_start().starts_with("vole-z64"));
    assert!(line.unwrap().contains("sends more"), "{found:?}");
    assert_eq!(run(&["compare", text(&b), text(&a)]).status, Some(0));
}

#[test]
fn what_the_second_file_left_out_as_too_long_counts_as_slower() {
    let place = tempfile::tempdir().unwrap();
    let before = with_times(measured(place.path()), [1.0, 2.0, 3.0]);
    let mut after = before.clone();
    after["measurements"][0]["samples"] = json!([]);
    after["measurements"][0]["skipped_seconds"] = json!(44.0);
    let [a, b] = [("a.json", &before), ("b.json", &after)]
        .map(|(name, results)| write(&place.path().join(name), results));
    let report = place.path().join("report.json");
    let call = ["compare", text(&a), text(&b), "--report", text(&report)];
    let found = run(&call);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(
        found.stderr.contains("left out as too long: 1"),
        "{found:?}"
    );
    let mut lines = found.stdout.lines();
    let line = lines.find(|line| line.contains("left out")).unwrap();
    assert!(line.contains("about 44") && line.contains("yes"), "{line}");
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["result"]["left_out"][0]["seconds_b"], 44.0);
}

#[test]
fn what_makes_figures_hard_to_compare_is_told() {
    let place = tempfile::tempdir().unwrap();
    let mut before = with_times(measured(place.path()), [1.0, 2.0, 3.0]);
    before["sittings"][0]["remarks"] = json!(["It was night."]);
    let mut after = before.clone();
    after["sittings"][0]["machine"]["cores"] = json!(77);
    after["sittings"][0]["remarks"] = json!(["It was day."]);
    let cot = &mut after["measurements"][0];
    cot["security_bits"] = json!(17);
    for sample in cot["samples"].as_array_mut().unwrap() {
        sample["phases"][0]["name"] = json!("begin");
    }
    let samples = after["measurements"][1]["samples"].as_array_mut().unwrap();
    samples.truncate(1);
    for phase in samples[0]["phases"].as_array_mut().unwrap() {
        phase["seconds"] = json!(7.0);
    }
    let [a, b] = [("a.json", &before), ("b.json", &after)]
        .map(|(name, results)| write(&place.path().join(name), results));
    let found = run(&["compare", text(&a), text(&b), "-v"]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(
        found.stderr.contains("two machines") && found.stderr.contains("77 cores"),
        "{found:?}"
    );
    for fragment in [
        "phases that one of the two has: 2\n  cot",
        "measured with other parameters or security, and compared all the same: 1\n  cot",
        "of A: It was night.\nof B: It was day.",
        "of fewer than three runs: 3",
    ] {
        assert!(found.stdout.contains(fragment), "{fragment}: {found:?}");
    }
    let mut lines = found.stdout.lines();
    let line = lines.find(|line| line.contains("unknown")).unwrap();
    assert!(line.contains("vole-z64") && line.contains("yes"), "{line}");
}

#[test]
fn files_without_a_common_phase_are_told_from_files_of_other_measurements() {
    let place = tempfile::tempdir().unwrap();
    let before = with_times(measured(place.path()), [1.0, 2.0, 3.0]);
    let mut after = before.clone();
    for measurement in after["measurements"].as_array_mut().unwrap() {
        for sample in measurement["samples"].as_array_mut().unwrap() {
            let phases = sample["phases"].as_array_mut().unwrap();
            for (phase, name) in phases.iter_mut().zip(["begin", "go on"]) {
                phase["name"] = json!(name);
            }
            // The two are not compared as wholes either, and send the same per output.
            phases[1]["outputs"] = json!(2018);
            for phase in phases {
                phase["bytes"] = json!(2 * phase["bytes"].as_u64().unwrap());
            }
        }
    }
    let [a, b] = [("a.json", &before), ("b.json", &after)]
        .map(|(name, results)| write(&place.path().join(name), results));
    run(&["compare", text(&a), text(&b)])
        .assert_refused(1, &["measurements in common, but no phase"]);
}

#[test]
fn what_is_in_one_file_only_is_counted() {
    let place = tempfile::tempdir().unwrap();
    let both = with_times(measured(place.path()), [1.0, 2.0, 3.0]);
    let only = |kept: usize| {
        let mut results = both.clone();
        let measurements = results["measurements"].as_array_mut().unwrap();
        *measurements = vec![measurements[kept].clone()];
        write(&place.path().join(format!("{kept}.json")), &results)
    };
    let (first, second) = (only(0), only(1));
    let both = write(&place.path().join("both.json"), &both);
    let found = run(&["compare", text(&both), text(&first), "-v"]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(
        found
            .stdout
            .contains("measurements in A only: 1\n  vole-z64"),
        "{found:?}"
    );
    run(&["compare", text(&first), text(&second)]).assert_refused(
        1,
        &[
            "0.json",
            "1.json",
            "in common",
            "protocol is cot-",
            " and vole-z64-",
        ],
    );
}

#[test]
fn what_is_no_file_of_results_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let good = measured(place.path());
    let text_of_good = serde_json::to_string(&good).unwrap();
    let mut newer = good.clone();
    newer["schema"] = json!(99);
    let at = |name: &str| place.path().join(name);
    let good = at("measured.json");
    fs::write(at("half.json"), &text_of_good[..text_of_good.len() / 2]).unwrap();
    fs::write(at("other.json"), "{\"format\": \"recipes\", \"schema\": 1}").unwrap();
    fs::write(at("words.json"), "no JSON at all").unwrap();
    write(&at("newer.json"), &newer);
    for (name, fragment) in [
        ("half.json", "ends too early"),
        ("other.json", "'recipes'"),
        ("words.json", "not a results file"),
        ("newer.json", "version 99"),
        ("absent.json", "No such file"),
        ("", "directory"),
    ] {
        let bad = at(name);
        for [a, b] in [[&bad, &good], [&good, &bad]] {
            run(&["compare", text(a), text(b)]).assert_refused(1, &[name, fragment]);
        }
    }
    for threshold in ["-1", "many", "NaN"] {
        run(&[
            "compare",
            text(&good),
            text(&good),
            "--threshold",
            threshold,
        ])
        .assert_refused(2, &["--threshold"]);
    }
    run(&["compare", text(&good)]).assert_refused(2, &["B.json"]);
    run(&["compare", text(&good), text(&good), "--machine", "sundial"])
        .assert_refused(2, &["sundial"]);
}
