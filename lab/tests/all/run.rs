//! The contents of measurements; durations are not checked.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::common::{Finished, run, text};

/// Every kind of benchmark in one call, which measures the machine once, with every combination of
/// options.
#[test]
fn every_combination_is_measured() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bench.json");
    let finished = run(&[
        "run",
        "cot",
        "vole-fp61",
        "vole-z64",
        "vole-gf128",
        "--n",
        "100000",
        "--runs",
        "1",
        "--protocol",
        "primal,auto",
        "--security",
        "semi-honest",
        "--json",
        text(&file),
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("Times are the slower party"), "{finished:?}");
    let measurements = measurements(&file);
    let mut expected = Vec::new();
    for name in ["cot", "vole-fp61", "vole-z64", "vole-gf128"] {
        for protocol in ["-primal", ""] {
            expected.push(format!("{name}-semi-honest-regular{protocol}"));
        }
    }
    let names: Vec<_> =
        measurements.iter().map(|one| one["key"]["protocol"].as_str().unwrap()).collect();
    assert_eq!(names, expected);
    for one in &measurements {
        let phases = one["samples"][0]["phases"].as_array().unwrap();
        let of = |place: usize| (&phases[place]["name"], &phases[place]["outputs"]);
        assert_eq!([of(0).0, of(1).0], ["setup", "stream"]);
        assert_eq!(of(1).1, 100_000);
    }
}

#[test]
fn a_malicious_run_with_two_sets() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bench.json");
    let call = "run cot --n 1009 --runs 1 --set r14,u14 -q --json";
    let call: Vec<_> = call.split(' ').chain([text(&file)]).collect();
    let finished = run(&call);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let measurements = measurements(&file);
    let names = measurements.iter().map(|one| &one["key"]["protocol"]);
    let expected = ["cot-malicious-regular-r14", "cot-malicious-uniform-u14"];
    assert!(names.eq(expected), "{measurements:?}");
}

/// The measurements of a file.
fn measurements(file: &Path) -> Vec<Value> {
    let mut results: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    serde_json::from_value(results["measurements"].take()).unwrap()
}

/// A network of its own, of which the loopback interface is down.
#[test]
#[expect(clippy::print_stderr, reason = "it says why it tests nothing")]
fn a_missing_port_is_told() {
    let alone = ["--map-root-user", "--net"];
    let possible = Command::new("unshare").args(alone).arg("true").output();
    if !possible.is_ok_and(|output| output.status.success()) {
        eprintln!("this machine gives nobody a network of its own: nothing was tested");
        return;
    }
    let output = Command::new("unshare")
        .args(alone)
        .arg(env!("CARGO_BIN_EXE_volery-bench"))
        .args(["run", "cot", "--n", "1000"])
        .output();
    let finished = Finished::from(output.unwrap());
    finished.assert_refused(4, &["cannot open a port on the loopback interface"]);
    assert!(finished.stderr.contains("hint: the loopback interface must be up"), "{finished:?}");
}

#[test]
fn wrong_calls_are_refused_by_name() {
    for (call, fragment) in [
        ("run", "NAME"),
        ("run nothing", "vole-fp61"),
        ("run vole-fp61 --link wet-string", "--link"),
        ("run vole-z64 --security malicious", "--security"),
        ("run vole-fp61 --parameters ferret", "--parameters"),
        ("run cot --set b10,u99 --n 10", "u99"),
        ("run cot --runs 0", "--runs"),
        ("run vole-fp61 --json /proc/volery-json", "--json"),
    ] {
        let arguments: Vec<_> = call.split(' ').collect();
        run(&arguments).assert_refused(2, &[fragment]);
    }
    let help = run(&["run", "--help"]);
    assert!(help.status == Some(0) && !help.stdout.is_empty() && help.stderr.is_empty());
}
