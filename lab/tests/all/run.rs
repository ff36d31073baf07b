//! The contents of measurements; durations are not checked.

use std::process::Command;

use serde_json::Value;

use crate::common::{Finished, run, text};

/// Every kind of benchmark in one call, which measures the machine once: rows, parts, and every
/// combination of options.
#[test]
fn rows_and_their_parts() {
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
    let results: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let rows = results["more"]["rows"].as_array().unwrap();
    let measurements = results["measurements"].as_array().unwrap();
    assert_eq!((rows.len(), measurements.len()), (8, 8));
    assert_eq!(
        measurements[0]["key"]["protocol"],
        "cot-semi-honest-regular-primal"
    );
    assert_eq!(
        measurements[1]["key"]["protocol"],
        "cot-semi-honest-regular"
    );
    for (row, measurement) in rows.iter().zip(measurements) {
        let number = |pointer: &str| row.pointer(pointer).unwrap().as_f64().unwrap();
        let bytes = number("/sender/bytes_sent") + number("/receiver/bytes_sent");
        assert!((number("/bits_each") - 8.0 * bytes / 1e5).abs() < 1e-6);
        let seconds = number("/sender/seconds_total").max(number("/receiver/seconds_total"));
        assert!((number("/nanoseconds_each") - seconds * 1e4).abs() < 1.0);
        let phases = measurement["samples"][0]["phases"].as_array().unwrap();
        let sum: f64 = phases
            .iter()
            .map(|phase| phase["bytes"].as_f64().unwrap())
            .sum();
        assert_eq!(sum, bytes);
        let by_name = measurement["key"]["protocol"]
            .as_str()
            .unwrap()
            .ends_with("primal");
        assert_eq!(
            row["choice"].is_null(),
            by_name,
            "auto tells its candidates"
        );
        if by_name {
            check_parts(row);
        }
    }
    assert!(
        finished.stdout.contains("where the time of vole-fp61"),
        "{finished:?}"
    );
    let names = |row: &Value| -> Vec<String> {
        let parts = row["parts"]["kernels"].as_array().unwrap().iter();
        parts
            .map(|part| format!("{} {}", part["name"], part["party"]).replace('"', ""))
            .collect()
    };
    let of_cot = [
        "trees sender",
        "trees receiver",
        "indices both",
        "gather sender",
        "LPN sender",
        "gather receiver",
        "LPN receiver",
        "bits receiver",
        "transport both",
    ];
    assert_eq!(names(&rows[0]), of_cot);
    let of_vole = [
        "trees receiver",
        "trees sender",
        "indices both",
        "gather receiver",
        "LPN receiver",
        "gather sender",
        "LPN sender",
        "OT both",
        "transport both",
    ];
    assert_eq!(names(&rows[2]), of_vole);
}

/// The figures of the parts add up.
fn check_parts(row: &Value) {
    let number = |value: &Value| value.as_f64().filter(|number| *number > 0.0).unwrap();
    let parts = &row["parts"];
    for party in ["sender", "receiver"] {
        let own = parts["kernels"].as_array().unwrap().iter().filter(|part| {
            (part["party"] == party || part["party"] == "both") && part["summed"] == true
        });
        let (mut time, mut lines) = (0.0, 0.0);
        for part in own {
            let each = number(&part["nanoseconds"]) * number(&part["units_each"]);
            assert!((number(&part["nanoseconds_each"]) - each).abs() < 1e-9 * each);
            time += each;
            lines += part["work_each"]["random_lines"].as_f64().unwrap();
        }
        let whole = &parts[party];
        assert!((number(&whole["nanoseconds_each_parts"]) - time).abs() < 1e-9 * time);
        let extend = number(&whole["nanoseconds_each_extend"]);
        assert!((extend - number(&row[party]["seconds_extend"]) * 1e4).abs() < 1e-6 * extend);
        // Ten positions per output, and those of the rounds before the last.
        assert!((10.0..20.0).contains(&lines), "{lines}");
    }
}

#[test]
fn a_malicious_run_with_two_sets_and_no_parts() {
    let place = tempfile::tempdir().unwrap();
    let report = place.path().join("report.json");
    let finished = run(&[
        "run",
        "cot",
        "--n",
        "1009",
        "--runs",
        "1",
        "--set",
        "r14,u14",
        "-q",
        "--report",
        text(&report),
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
    let rows = report["result"]["rows"].as_array().unwrap();
    let found: Vec<_> = rows
        .iter()
        .map(|row| (&row["noise"], &row["security"]))
        .collect();
    assert!(
        found.iter().all(|(_, security)| *security == "malicious"),
        "{found:?}"
    );
    assert_eq!(
        found.iter().map(|(noise, _)| *noise).collect::<Vec<_>>(),
        ["regular", "uniform"]
    );
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
    assert!(
        finished
            .stderr
            .contains("hint: the loopback interface must be up"),
        "{finished:?}"
    );
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
