//! `volery cot`: two processes over the loopback interface; their files are read and checked
//! without the library.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{self, ProcessResult, assert_done, names, read_npy, run, text, words};

/// Runs both sides of `cot`.
fn both(place: &Path, more: &[&str], left: &[&str], right: &[&str]) -> [ProcessResult; 2] {
    common::both("cot", place, more, left, right)
}

/// Checks the files of both folders against each other, and their shapes and ranges; returns delta.
fn check_files(place: &Path, n: usize) -> [u64; 2] {
    let array = |name: &str, shape: &[u64]| {
        let (found, values) = read_npy(&place.join(name));
        assert_eq!(found, shape, "{name}");
        values
    };
    let size = n as u64;
    let delta: [u64; 2] = array("s/delta.npy", &[1, 2]).try_into().unwrap();
    let (v, w) = (array("s/v.npy", &[size, 2]), array("r/w.npy", &[size, 2]));
    let u = array("r/u.npy", &[size]);
    assert_ne!(delta, [0, 0]);
    for i in 0..n {
        assert!(u[i] <= 1, "u[{i}] of {n}");
        for j in 0..2 {
            assert_eq!(w[2 * i + j], v[2 * i + j] ^ (u[i] * delta[j]), "{i} of {n}");
        }
    }
    if n > 100 {
        let ones = u.iter().sum::<u64>() as usize;
        assert!((n / 3..n - n / 3).contains(&ones), "{ones} ones of {n}");
        assert_ne!(v[..2], v[2..4], "v is random");
    }
    delta
}

fn verify(place: &Path) -> ProcessResult {
    run(&["verify", text(&place.join("s")), text(&place.join("r"))])
}

/// One run, from the call to the result of `verify`.
fn check(n: usize, more: &[&str], security: &str) {
    let place = tempfile::tempdir().unwrap();
    let count = n.to_string();
    let ended = both(place.path(), &[&["--n", &count], more].concat(), &[], &[]);
    assert_done(&ended, security);
    assert_eq!(names(place.path()), ["r", "s"], "nothing temporary is left");
    assert_eq!(names(&place.path().join("s")), ["delta.npy", "report.json", "v.npy"]);
    assert_eq!(names(&place.path().join("r")), ["report.json", "u.npy", "w.npy"]);
    for folder in ["s", "r"] {
        let folder = place.path().join(folder);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        for name in names(&folder) {
            assert_eq!(mode(&folder.join(name)), 0o600);
        }
    }
    check_files(place.path(), n);
    let verified = verify(place.path());
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let all = format!("all {n} correlated OTs");
    assert!(verified.stdout.contains(&all), "{verified:?}");
}

#[test]
fn every_length() {
    for n in [0, 1, 2, 7, 8, 9, 1009] {
        check(n, &[], "malicious, 128 bits");
    }
}

#[test]
fn both_securities_and_noises() {
    for set in ["r14", "u14"] {
        for security in ["malicious", "semi-honest"] {
            check(20_011, &["--set", set, "--security", security], security);
        }
    }
}

/// More than one step of the stream, and a length that is no multiple of a step.
#[test]
fn several_steps() {
    check(300_003, &["--link", "100Mbit,20ms"], "malicious");
}

#[test]
fn the_papers_parameters() {
    let more = ["--parameters", "ferret", "--security", "semi-honest"];
    check(1009, &more, "semi-honest, 85 bits");
}

#[test]
fn the_report_says_what_was_run() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("report.json");
    let more = ["--n", "20_000", "--set", "r14"];
    let ended = both(place.path(), &more, &["--report", text(&path)], &[]);
    assert_done(&ended, "malicious");
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let report = read(&path);
    for (field, value) in [
        ("protocol", "cot"),
        ("role", "sender"),
        ("ring", "f2"),
        ("security", "malicious"),
        ("noise", "regular"),
        ("version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(report[field], value);
    }
    assert_eq!(report["n"], 20_000);
    let result = &report["result"];
    assert_eq!(result["security_bits"], 128);
    assert!(result["statistical_bits"].as_u64().unwrap() >= 40);
    assert_eq!(result["delta_bits"], 127, "one carries the choice bit");
    let arrays = serde_json::json!({
        "delta": { "file": "delta.npy", "dtype": "uint64", "shape": [1, 2] },
        "v": { "file": "v.npy", "dtype": "uint64", "shape": [20_000, 2] },
    });
    assert_eq!(result["arrays"], arrays);
    assert!(report["parameters"].as_str().unwrap().contains("r14"));
    let assumption = report["assumption"].as_str().unwrap();
    assert!(assumption.contains("LPN") && assumption.contains("bits"), "{assumption}");

    // The bytes that one side sent are those the other received.
    let other = read(&place.path().join("r/report.json"));
    assert_eq!(other["bytes_sent"], report["bytes_received"]);
    assert_eq!(other["bytes_received"], report["bytes_sent"]);
    assert_eq!(other["result"]["session"], result["session"]);
    let bits = serde_json::json!({ "file": "u.npy", "dtype": "uint8", "shape": [20_000] });
    assert_eq!(other["result"]["arrays"]["u"], bits);
}

#[test]
fn a_given_delta_is_used_and_a_bad_one_refused() {
    let first = tempfile::tempdir().unwrap();
    let more = ["--n", "20_000", "--set", "r14"];
    assert_done(&both(first.path(), &more, &[], &[]), "malicious");
    let delta = first.path().join("s/delta.npy");
    let second = tempfile::tempdir().unwrap();
    let left = ["--delta", text(&delta)];
    assert_done(&both(second.path(), &more, &left, &[]), "malicious");
    assert_eq!(check_files(first.path(), 20_000), check_files(second.path(), 20_000));

    let place = tempfile::tempdir().unwrap();
    let bad = place.path().join("bad.npy");
    let good = std::fs::read(&delta).unwrap();
    let (header, value) = good.split_at(good.len() - 16);
    let out = place.path().join("out");
    let refused = || {
        run(&words(&format!(
            "cot --role sender --listen 127.0.0.1:0 --n 5 --out {} --delta {}",
            text(&out),
            text(&bad)
        )))
    };
    std::fs::write(&bad, [header, &[0; 16]].concat()).unwrap();
    refused().assert_refused(1, &["bad.npy", "delta is zero"]);
    std::fs::write(&bad, [header, &value[..8]].concat()).unwrap();
    refused().assert_refused(1, &["bad.npy", "bytes, but its header"]);
    std::fs::copy(second.path().join("r/u.npy"), &bad).unwrap();
    refused().assert_refused(1, &["bad.npy", "but a delta is"]);
    assert_eq!(names(place.path()), ["bad.npy"]);
}

#[test]
fn verify_finds_every_corruption() {
    let place = tempfile::tempdir().unwrap();
    assert_done(&both(place.path(), &["--n", "100"], &[], &[]), "malicious");
    for (name, last, fragment) in [
        ("s/v.npy", 1, "1 of 100 correlations, the first at index 99"),
        ("r/w.npy", 1, "1 of 100 correlations, the first at index 99"),
        ("r/u.npy", 1, "1 of 100 correlations, the first at index 99"),
        ("r/u.npy", 2, "element 99 is neither 0 nor 1"),
        ("s/delta.npy", 1, "of 100 correlations, the first at index"),
    ] {
        let path = place.path().join(name);
        let good = std::fs::read(&path).unwrap();
        let mut bad = good.clone();
        *bad.last_mut().unwrap() ^= last;
        std::fs::write(&path, &bad).unwrap();
        verify(place.path()).assert_refused(1, &[fragment]);
        bad.pop();
        std::fs::write(&path, &bad).unwrap();
        verify(place.path()).assert_refused(1, &[name, "bytes, but its header"]);
        std::fs::write(&path, &good).unwrap();
    }
    assert_eq!(verify(place.path()).status, Some(0));

    // Parts of two runs, with their reports and without.
    let other = tempfile::tempdir().unwrap();
    assert_done(&both(other.path(), &["--n", "100"], &[], &[]), "malicious");
    let (s, r) = (place.path().join("s"), other.path().join("r"));
    run(&["verify", text(&s), text(&r)]).assert_refused(1, &["session"]);
    run(&["verify", text(&r), text(&s)]).assert_refused(1, &["the folder of a receiver"]);
    for folder in [&s, &r] {
        std::fs::remove_file(folder.join("report.json")).unwrap();
    }
    run(&["verify", text(&s), text(&r)]).assert_refused(1, &["of 100 correlations"]);
}

/// Both sides measure, choose the same plan, and report why; with a given link or protocol there is
/// no choice to report.
#[test]
fn the_link_chooses_and_the_report_says_why() {
    let run = |more: &[&str]| {
        let place = tempfile::tempdir().unwrap();
        assert_done(&both(place.path(), more, &[], &[]), "malicious");
        assert_eq!(verify(place.path()).status, Some(0));
        ["s", "r"].map(|side| {
            let bytes = std::fs::read(place.path().join(side).join("report.json")).unwrap();
            let report: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
            report["result"].clone()
        })
    };
    for (n, more) in
        [("0", &[][..]), ("1000", &[]), ("1_000_000", &[]), ("100_000", &["--protocol", "primal"])]
    {
        let [s, r] = run(&[&["--n", n], more].concat());
        assert_eq!(s["protocol"], r["protocol"]);
        assert_eq!(s["choice"], r["choice"]);
        let choice = &s["choice"];
        let predicted = choice["predicted"].as_array().unwrap();
        assert_eq!(predicted[0]["protocol"], s["protocol"]);
        assert!(predicted.len() > 4, "{choice}");
        let seconds = |one: &serde_json::Value| one["seconds"].as_f64().unwrap();
        assert!(predicted.is_sorted_by(|a, b| seconds(a) <= seconds(b)));
        assert!(choice["bits_per_second"].as_u64().unwrap() >= 1000);
        let why = choice["why"].as_str().unwrap();
        assert!(why.starts_with("fastest at "), "{why}");
        assert!(why.contains(s["protocol"].as_str().unwrap()), "{why}");
    }
    for (more, protocol) in [
        (&["--protocol", "softspoken2"][..], "softspoken2"),
        (&["--set", "r14"], "primal-r14"),
        // A link on which low-communication would take less time.
        (&["--link", "1kbit,1s"], "softspoken8"),
        (&["--protocol", "low-communication"], "low-communication"),
    ] {
        let [s, r] = run(&[&["--n", "20_000"], more].concat());
        assert_eq!(s["protocol"], protocol);
        assert_eq!(r["protocol"], protocol);
        assert!(s["choice"].is_null() && r["choice"].is_null());
    }
}

#[test]
fn settings_that_differ_end_both_sides_and_are_named() {
    common::assert_differ(
        "cot",
        &[
            ("--n 10", "--n 20", "n:"),
            ("--n 10 --security semi-honest", "--n 10", "security:"),
            ("--n 9000 --noise uniform", "--n 9000", "noise:"),
            ("--n 9000 --set r14", "--n 9000 --set r17", "parameters:"),
            ("--n 100_000", "--n 100_000 --link 1Mbit,100ms", "parameters:"),
            ("--n 10 --protocol softspoken4", "--n 10 --protocol softspoken8", "parameters:"),
            ("--n 10 --protocol low-communication", "--n 10 --protocol softspoken8", "parameters:"),
        ],
    );
}

/// A COT and a VOLE do not connect to each other.
#[test]
fn another_verb_is_another_protocol() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = (place.path().join("a"), place.path().join("b"));
    let start = |verb, role, endpoint, address: &str, out| {
        common::RunningProcess::start(&words(&format!(
            "{verb} --role {role} --n 10 {endpoint} {address} --out {out}"
        )))
    };
    let cot = start("cot", "sender", "--listen", "127.0.0.1:0", text(&a));
    let address = format!("127.0.0.1:{}", cot.port());
    let vole = start("vole", "receiver", "--connect", &address, text(&b));
    for side in [cot.finish(), vole.finish()] {
        side.assert_refused(5, &["protocol"]);
    }
    assert!(names(place.path()).is_empty());
}
