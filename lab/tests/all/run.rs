//! The contents of measurements; durations are not checked.

use std::process::Command;

use crate::common::{Finished, run, text};

/// Runs a benchmark; returns its output and its rows.
fn bench(arguments: &[&str]) -> (String, Vec<serde_json::Value>) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bench.json");
    let finished = run(&[&["run", "--json", text(&file)], arguments].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let rows = results["more"]["rows"].as_array().unwrap();
    assert_eq!(
        rows.len(),
        results["measurements"].as_array().unwrap().len()
    );
    (finished.stdout, rows.clone())
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

/// Checks the parts of a run of 100,000: those that are expected, and that their figures add up.
fn check_parts(name: &str, more: &[&str], expected: &[(&str, &str)]) {
    let (stdout, rows) = bench(&[&[name, "--n", "100000"], more].concat());
    let [row] = &rows[..] else {
        panic!("one row");
    };
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
    assert_eq!(names, expected);
    for part in kernels {
        let nanoseconds = positive(&part["nanoseconds"]);
        let units = positive(&part["units_each"]);
        assert_close(positive(&part["nanoseconds_each"]), nanoseconds * units);
        if ["transport", "check"].contains(&part["name"].as_str().unwrap()) {
            assert!(part["limit_nanoseconds"].is_null() && part["ratio"].is_null());
        } else {
            let limit = positive(&part["limit_nanoseconds"]);
            assert_close(positive(&part["ratio"]), nanoseconds / limit);
        }
    }
    for party in ["sender", "receiver"] {
        let sum = |pointer: &str| -> f64 {
            kernels
                .iter()
                .filter(|part| part["party"] == party || part["party"] == "both")
                .filter(|part| part["summed"] == true)
                .map(|part| part.pointer(pointer).unwrap().as_f64().unwrap())
                .sum()
        };
        let whole = &parts[party];
        let in_parts = sum("/nanoseconds_each");
        assert_close(positive(&whole["nanoseconds_each_parts"]), in_parts);
        let extend = positive(&whole["nanoseconds_each_extend"]);
        let seconds = positive(&row[party]["seconds_extend"]);
        assert_close(extend, seconds * 1e9 / 100_000.0);
        assert_close(positive(&whole["ratio"]), extend / in_parts);
        for work in ["aes_blocks", "random_lines", "bytes_read", "bytes_written"] {
            let each = positive(&whole["work_each"][work]);
            assert_close(each, sum(&format!("/work_each/{work}")));
        }
        // Ten positions per output, and those of the rounds before the last.
        let lines = positive(&whole["work_each"]["random_lines"]);
        assert!((10.0..20.0).contains(&lines), "{lines}");
    }
    positive(&parts["setup_milliseconds"]);
    let title = format!("where the time of {name} goes");
    assert!(stdout.contains(&title), "{stdout}");
}

#[test]
fn parts_of_a_vector_ole() {
    let expected = [
        ("trees", "receiver"),
        ("trees", "sender"),
        ("check", "both"),
        ("indices", "both"),
        ("gather", "receiver"),
        ("LPN", "receiver"),
        ("gather", "sender"),
        ("LPN", "sender"),
        ("OT", "both"),
        ("transport", "both"),
    ];
    check_parts("vole-fp61", &["--protocol", "primal"], &expected);
}

#[test]
fn parts_of_a_correlated_ot() {
    let expected = [
        ("trees", "sender"),
        ("trees", "receiver"),
        ("indices", "both"),
        ("gather", "sender"),
        ("LPN", "sender"),
        ("gather", "receiver"),
        ("LPN", "receiver"),
        ("bits", "receiver"),
        ("transport", "both"),
    ];
    let more = ["--set", "r17", "--security", "semi-honest"];
    check_parts("cot", &more, &expected);
}

#[test]
fn without_lpn_there_are_no_parts() {
    for n in ["0", "1009"] {
        let (stdout, rows) = bench(&["vole-gf128", "--n", n]);
        assert!(rows[0]["parts"].is_null());
        assert!(!stdout.contains("where the time"), "{stdout}");
    }
}

#[test]
fn every_combination_is_a_row() {
    let (_, rows) = bench(&[
        "cot",
        "--n",
        "1009",
        "--set",
        "r14,u14",
        "--security",
        "malicious,semi-honest",
    ]);
    let found: Vec<_> = rows
        .iter()
        .map(|row| ["noise", "security"].map(|field| row[field].as_str().unwrap()))
        .collect();
    assert_eq!(
        found,
        [
            ["regular", "malicious"],
            ["regular", "semi-honest"],
            ["uniform", "malicious"],
            ["uniform", "semi-honest"],
        ]
    );
}

/// A network of its own, of which the loopback interface is down.
#[test]
#[expect(clippy::print_stderr, reason = "it says why it tests nothing")]
fn no_port_to_meet_at_is_said() {
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
        ("run cot --set b10,u99 --n 10", "u99"),
        ("run cot --runs 0", "--runs"),
        ("run vole-fp61 --json /proc/volery-json", "--json"),
    ] {
        let arguments: Vec<_> = call.split(' ').collect();
        run(&arguments).assert_refused(2, &[fragment]);
    }
}

#[test]
fn help_and_lists_go_to_standard_output() {
    let help = run(&["run", "--help"]);
    assert_eq!(help.status, Some(0));
    assert!(
        !help.stdout.is_empty() && help.stderr.is_empty(),
        "{help:?}"
    );
    let list = run(&["list"]);
    assert_eq!(list.status, Some(0));
    for name in ["cot", "vole-fp61", "vole-z64", "vole-gf128"] {
        assert!(list.stdout.contains(name), "{list:?}");
    }
}

/// A link that another user planted in a shared folder is not followed.
#[test]
fn results_do_not_go_through_links() {
    let place = tempfile::tempdir().unwrap();
    let (there, link) = (place.path().join("there"), place.path().join("link"));
    std::fs::create_dir(&there).unwrap();
    std::os::unix::fs::symlink(&there, &link).unwrap();
    let refused = run(&["paper", "ferret-table-3", "--out", link.to_str().unwrap()]);
    refused.assert_refused(2, &["--out: ", "is a symbolic link"]);
    assert_eq!(std::fs::read_dir(&there).unwrap().count(), 0);
}
