//! `volery-bench compare`: its findings in two files, and refused files. All tests change the
//! figures of one file of real measurements.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::common::{Finished, run, text};

/// Measured once: three runs of two protocols.
static MEASURED: LazyLock<Value> = LazyLock::new(|| {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("measured.json");
    let call = ["run", "cot", "vole-z64", "--n", "1009", "--json", text(&file)];
    let finished = run(&call);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
});

/// The measurements with these times of the stream of the first one, in milliseconds; all other
/// times are 1, 2 and 3.
fn with_times(milliseconds: [f64; 3]) -> Value {
    let mut results = MEASURED.clone();
    for (number, measurement) in
        results["measurements"].as_array_mut().unwrap().iter_mut().enumerate()
    {
        for (run, sample) in measurement["samples"].as_array_mut().unwrap().iter_mut().enumerate() {
            for phase in sample["phases"].as_array_mut().unwrap() {
                let is_first = number == 0 && phase["name"] == "stream";
                let times = if is_first { milliseconds } else { [1.0, 2.0, 3.0] };
                phase["seconds"] = json!(times[run] / 1e3);
            }
        }
    }
    results
}

/// Compares two results, with further options.
fn compare(a: &Value, b: &Value, more: &[&str]) -> Finished {
    let place = tempfile::tempdir().unwrap();
    let write = |name: &str, results: &Value| -> PathBuf {
        let path = place.path().join(name);
        fs::write(&path, serde_json::to_vec(results).unwrap()).unwrap();
        path
    };
    let (a, b) = (write("a.json", a), write("b.json", b));
    run(&[&["compare", text(&a), text(&b)], more].concat())
}

fn line<'a>(found: &'a Finished, fragment: &str) -> &'a str {
    found.stdout.lines().find(|line| line.contains(fragment)).unwrap()
}

#[test]
fn a_slower_measurement_decides_the_status() {
    let [before, slower, wider] =
        [[10.0, 11.0, 12.0], [13.0, 14.0, 15.0], [5.0, 14.0, 30.0]].map(with_times);
    let found = compare(&before, &slower, &[]);
    assert_eq!(found.status, Some(1), "{found:?}");
    let error = "error: slower by more than 10 % beyond the spread: 1; sending so much more: 0";
    assert!(found.stderr.starts_with(error), "{found:?}");
    let stream = line(&found, "cot");
    for fragment in ["stream", "1.273", "slower", "yes"] {
        assert!(stream.contains(fragment), "{fragment}: {stream}");
    }
    for (a, b, more, counts) in [
        (&before, &slower, &["--threshold", "30"][..], "0 faster, 1 slower"),
        (&slower, &before, &[], "1 faster, 0 slower"),
        // The median is as much slower, but some runs are not.
        (&before, &wider, &[], "0 faster, 0 slower"),
        (&before, &before, &[], "0 faster, 0 slower"),
    ] {
        let found = compare(a, b, more);
        assert_eq!(found.status, Some(0), "{found:?}");
        assert!(found.stdout.contains(counts), "{found:?}");
    }
    let quiet = compare(&before, &slower, &["-q"]);
    assert!(quiet.status == Some(1) && quiet.stdout.is_empty(), "{quiet:?}");
}

#[test]
fn another_machine_is_compared_in_its_own_units() {
    let machine = |name: &str, nanoseconds: f64, times| {
        let mut results = with_times(times);
        results["measurements"].as_array_mut().unwrap().truncate(1);
        for sample in results["measurements"][0]["samples"].as_array_mut().unwrap() {
            let phases = sample["phases"].as_array_mut().unwrap();
            phases.retain(|phase| phase["name"] == "stream");
        }
        let machine = &mut results["sittings"][0]["machine"];
        machine["processor"] = name.into();
        machine["nanoseconds_aes_block"] = nanoseconds.into();
        machine["nanoseconds_random_read"] = json!(1.0);
        results
    };
    let fast = machine("fast", 1.0, [10.0, 11.0, 12.0]);
    let slow = machine("slow", 4.0, [40.0, 44.0, 48.0]);
    for (unit, status) in [("none", 1), ("aes", 0), ("reads", 1)] {
        let found = compare(&fast, &slow, &["--machine", unit]);
        assert_eq!(found.status, Some(status), "{found:?}");
        assert_eq!(found.stderr.contains("two machines"), unit == "none");
    }
}

#[test]
fn bytes_and_left_out_measurements_decide_too() {
    let before = with_times([1.0, 2.0, 3.0]);
    let mut after = before.clone();
    for sample in after["measurements"][1]["samples"].as_array_mut().unwrap() {
        sample["phases"][1]["bytes"] = json!(1_000_000);
    }
    after["measurements"][0]["samples"] = json!([]);
    after["measurements"][0]["skipped_seconds"] = json!(44.0);
    let found = compare(&before, &after, &[]);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.stderr.contains("sending so much more: 1; left out as too long: 1"), "{found:?}");
    assert!(line(&found, "sends more").contains("vole-z64"), "{found:?}");
    assert!(line(&found, "left out").contains("about 44"), "{found:?}");
    assert_eq!(compare(&after, &before, &[]).status, Some(0));
}

#[test]
fn reasons_against_a_comparison_are_told() {
    let mut before = with_times([1.0, 2.0, 3.0]);
    before["sittings"][0]["remarks"] = json!(["It was night."]);
    let mut after = before.clone();
    after["sittings"][0]["machine"]["cores"] = json!(77);
    after["sittings"][0]["remarks"] = json!(["It was day."]);
    after["measurements"][0]["security_bits"] = json!(17);
    for sample in after["measurements"][0]["samples"].as_array_mut().unwrap() {
        sample["phases"][0]["name"] = json!("begin");
    }
    let samples = after["measurements"][1]["samples"].as_array_mut().unwrap();
    samples.truncate(1);
    let found = compare(&before, &after, &["-v"]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(found.stderr.contains("77 cores"), "{found:?}");
    for fragment in [
        "phases that one of the two has: 2\n  cot",
        "measured with other parameters or security, and compared all the same: 1\n  cot",
        "of A: It was night.\nof B: It was day.",
        "of fewer than three runs: 3",
    ] {
        assert!(found.stdout.contains(fragment), "{fragment}: {found:?}");
    }
}

#[test]
fn files_without_a_common_measurement_are_refused() {
    let both = with_times([1.0, 2.0, 3.0]);
    let only = |kept: usize| {
        let mut results = both.clone();
        results["measurements"] = json!([both["measurements"][kept]]);
        results
    };
    let found = compare(&both, &only(0), &["-v"]);
    assert_eq!(found.status, Some(0), "{found:?}");
    assert!(found.stdout.contains("measurements in A only: 1\n  vole-z64"), "{found:?}");
    let fragments = ["a.json", "b.json", "in common", "protocol is cot-", " and vole-z64-"];
    compare(&only(0), &only(1), &[]).assert_refused(1, &fragments);
}

#[test]
fn files_that_hold_no_results_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let good = serde_json::to_string(&*MEASURED).unwrap();
    let at = |name: &str| place.path().join(name);
    fs::write(at("good.json"), &good).unwrap();
    fs::write(at("half.json"), &good[..good.len() / 2]).unwrap();
    fs::write(at("other.json"), "{\"format\": \"recipes\", \"schema\": 1}").unwrap();
    fs::write(at("newer.json"), good.replace("\"schema\":1", "\"schema\":99")).unwrap();
    for (name, fragment) in [
        ("half.json", "ends too early"),
        ("other.json", "'recipes'"),
        ("newer.json", "version 99"),
        ("absent.json", "No such file"),
    ] {
        let [a, b]: [&Path; 2] = [&at(name), &at("good.json")];
        run(&["compare", text(a), text(b)]).assert_refused(1, &[name, fragment]);
        run(&["compare", text(b), text(a)]).assert_refused(1, &[name, fragment]);
    }
    for (option, value) in
        [("--threshold", "-1"), ("--threshold", "many"), ("--machine", "sundial")]
    {
        let good = at("good.json");
        run(&["compare", text(&good), text(&good), option, value]).assert_refused(2, &[value]);
    }
}
