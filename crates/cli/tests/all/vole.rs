//! Two processes over the loopback interface, for every ring; their files are read and checked
//! without the library.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::{
    self, ProcessResult, RunningProcess, assert_done, names, read_npy, run, text, words,
};

/// Runs both sides of `vole`.
fn both(place: &Path, more: &[&str], left: &[&str], right: &[&str]) -> [ProcessResult; 2] {
    common::both("vole", place, more, left, right)
}

const P: u128 = (1 << 61) - 1;

/// `u*x + v` over a ring, on words in file order.
fn expected(ring: &str, u: &[u64], x: &[u64], v: &[u64]) -> Vec<u64> {
    match ring {
        "fp61" => ((u128::from(u[0]) * u128::from(x[0]) + u128::from(v[0])) % P)
            .try_into()
            .map(|w| vec![w])
            .unwrap(),
        "z64" => vec![u[0].wrapping_mul(x[0]).wrapping_add(v[0])],
        "gf128" => {
            let whole = |words: &[u64]| u128::from(words[0]) | u128::from(words[1]) << 64;
            let (mut a, b) = (whole(u), whole(x));
            let mut w = whole(v);
            for bit in 0..128 {
                if b >> bit & 1 == 1 {
                    w ^= a;
                }
                // Times X, modulo X^128 + X^7 + X^2 + X + 1.
                a = a << 1 ^ if a >> 127 == 1 { 0x87 } else { 0 };
            }
            vec![w as u64, (w >> 64) as u64]
        }
        _ => unreachable!(),
    }
}

/// Checks the files of both folders against each other, and their shapes and ranges.
fn check_files(place: &Path, ring: &str, n: u64) {
    let words = if ring == "gf128" { 2 } else { 1 };
    let shape = |n: u64| if words == 2 { vec![n, 2] } else { vec![n] };
    let array = |name: &str, n: u64| {
        let (found, values) = read_npy(&place.join(name));
        assert_eq!(found, shape(n), "{name}");
        if ring == "fp61" {
            assert!(values.iter().all(|&value| u128::from(value) < P), "{name}");
        }
        values
    };
    let (u, v) = (array("s/u.npy", n), array("s/v.npy", n));
    let (x, w) = (array("r/x.npy", 1), array("r/w.npy", n));
    for i in 0..n as usize {
        let at = i * words..(i + 1) * words;
        assert_eq!(
            w[at.clone()],
            expected(ring, &u[at.clone()], &x, &v[at]),
            "correlation {i} of {n} over {ring}"
        );
    }
    if n > 1 {
        assert_ne!(u[..words], u[words..2 * words], "u is random");
        assert_ne!(x, vec![0; words], "x is random");
    }
}

/// Every length, with the default security of the ring.
fn check_ring(ring: &str, security: &str) {
    for n in [0, 1, 2, 1009, 100_003] {
        let place = tempfile::tempdir().unwrap();
        let count = n.to_string();
        let ended = both(place.path(), &["--ring", ring, "--n", &count], &[], &[]);
        assert_done(&ended, security);
        assert_eq!(names(place.path()), ["r", "s"], "nothing temporary is left");
        assert_eq!(names(&place.path().join("s")), ["report.json", "u.npy", "v.npy"]);
        assert_eq!(names(&place.path().join("r")), ["report.json", "w.npy", "x.npy"]);
        check_files(place.path(), ring, n);
        let folders = [place.path().join("s"), place.path().join("r")];
        let verified = run(&["verify", text(&folders[0]), text(&folders[1])]);
        assert_eq!(verified.status, Some(0), "{verified:?}");
        assert!(verified.stdout.contains(&format!("all {n} correlations over {ring}")));
    }
}

#[test]
fn fp61() {
    check_ring("fp61", "malicious");
}

#[test]
fn z64() {
    check_ring("z64", "semi-honest");
}

#[test]
fn gf128() {
    check_ring("gf128", "malicious");
}

#[test]
fn uniform_noise_and_the_papers_parameters() {
    for more in [
        &["--n", "20_011", "--noise", "uniform"][..],
        &["--n", "20_011", "--set", "u14", "--security", "semi-honest"],
        &["--n", "9001", "--parameters", "paper80", "--ring", "z64"],
    ] {
        let place = tempfile::tempdir().unwrap();
        let ended = both(place.path(), more, &[], &[]);
        let security = if more.len() == 4 { "malicious" } else { "semi-honest" };
        assert_done(&ended, security);
        let [sender, _] = ended;
        let paper = more.contains(&"paper80");
        let bits = if paper { "60 bits" } else { "128 bits" };
        assert!(sender.stderr.contains(bits), "{sender:?}");
        if paper {
            check_files(place.path(), "z64", 9001);
        } else {
            check_files(place.path(), "fp61", 20_011);
        }
    }
}

#[test]
fn the_report_says_what_was_run() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("report.json");
    let report = ["--report", text(&path)];
    assert_done(
        &both(place.path(), &["--n", "20_000", "--protocol", "primal"], &[], &report),
        "malicious",
    );
    let read = |path: &Path| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let report = read(&path);
    for (field, value) in [
        ("protocol", "vole"),
        ("role", "receiver"),
        ("ring", "fp61"),
        ("security", "malicious"),
        ("noise", "regular"),
        ("version", env!("CARGO_PKG_VERSION")),
    ] {
        assert_eq!(report[field], value);
    }
    assert_eq!(report["n"], 20_000);
    assert_eq!(report["result"]["arrays"]["w"]["shape"], serde_json::json!([20_000]));
    for phase in ["setup", "extend", "total"] {
        assert!(report["seconds"][phase].as_f64().unwrap() > 0.0, "{phase}");
    }
    assert!(report["seconds"]["online"].is_null());
    assert!(report["parameters"].as_str().unwrap().contains("gilboa"));
    assert_rests_on_sets(&report);

    // The bytes that one side sent are those the other received.
    let own = read(&place.path().join("s/report.json"));
    assert_eq!(own["bytes_sent"], report["bytes_received"]);
    assert_eq!(own["bytes_received"], report["bytes_sent"]);
    assert_eq!(own["result"]["session"], report["result"]["session"]);
}

/// The report names the sets, and the bits of the weakest set against the strongest attack.
fn assert_rests_on_sets(report: &serde_json::Value) {
    let assumption = report["assumption"].as_str().unwrap();
    assert!(assumption.contains("primal LPN"), "{assumption}");
    let parameters = report["parameters"].as_str().unwrap();
    let (_, sets) = parameters.split_once('+').unwrap();
    let weakest = sets
        .split('+')
        .map(|part| part.rsplit_once('x').unwrap().0)
        .map(|name| volery_pcg::lpn::set_named(name).unwrap())
        .map(|set| (set.level(volery_pcg::lpn::estimate::Field::Fp61).unwrap(), set.name))
        .min_by(|(a, _), (b, _)| a.bits.total_cmp(&b.bits));
    let (level, name) = weakest.unwrap();
    let says = format!(
        "; {:.1} bits for the weakest set, {name} over fp61, by {}",
        level.bits, level.attack
    );
    assert!(assumption.ends_with(&says), "{assumption}");
    assert_eq!(report["result"]["security_bits"], 128);
}

#[test]
fn files_are_for_the_owner_only_and_quiet_is_quiet() {
    let place = tempfile::tempdir().unwrap();
    let sender = RunningProcess::start(&words(&format!(
        "vole --role sender --listen 127.0.0.1:0 --n 3 --out {}",
        text(&place.path().join("s"))
    )));
    let address = format!("127.0.0.1:{}", sender.port());
    let out = place.path().join("r");
    let receiver = run(&words(&format!(
        "vole -q --role receiver --connect {address} --n 3 --out {}",
        text(&out)
    )));
    assert_done(&[sender.finish()], "malicious");
    assert_eq!(receiver.status, Some(0), "{receiver:?}");
    assert_eq!((receiver.stdout.as_str(), receiver.stderr.as_str()), ("", ""));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&out), 0o700);
    for name in names(&out) {
        assert_eq!(mode(&out.join(name)), 0o600);
    }
}

#[test]
fn a_second_run_replaces_the_first_only_by_force() {
    let place = tempfile::tempdir().unwrap();
    assert_done(&both(place.path(), &["--n", "10"], &[], &[]), "malicious");
    let before = read_npy(&place.path().join("s/u.npy"));
    let refused = run(&words(&format!(
        "vole --role sender --listen 127.0.0.1:0 --n 10 --out {}",
        text(&place.path().join("s"))
    )));
    refused.assert_refused(2, &["--out", "not empty"]);
    assert_eq!(read_npy(&place.path().join("s/u.npy")), before);

    let second = both(place.path(), &["--n", "11", "--force"], &[], &[]);
    assert_done(&second, "malicious");
    check_files(place.path(), "fp61", 11);
}

#[test]
fn folders_of_different_runs_are_told_apart() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for place in [&one, &two] {
        assert_done(&both(place.path(), &["--n", "10"], &[], &[]), "malicious");
    }
    let (s, r) = (one.path().join("s"), two.path().join("r"));
    run(&["verify", text(&s), text(&r)]).assert_refused(1, &["session"]);
    // Without the reports, the arrays alone are checked.
    for folder in [&s, &r] {
        std::fs::remove_file(folder.join("report.json")).unwrap();
    }
    run(&["verify", text(&s), text(&r), "--ring", "fp61"])
        .assert_refused(1, &["does not hold for 10 of 10"]);
}

#[test]
fn settings_that_differ_end_both_sides_and_are_named() {
    common::assert_differ(
        "vole",
        &[
            ("--n 10", "--n 20", "n:"),
            ("--n 10 --ring z64", "--n 10", "ring:"),
            ("--n 9000 --noise uniform", "--n 9000", "noise:"),
            ("--n 10 --security semi-honest", "--n 10", "security:"),
            (
                "--n 9000 --noise uniform --security semi-honest",
                "--n 9000 --parameters paper80",
                "parameters:",
            ),
        ],
    );
}

#[test]
fn two_senders_end_and_say_so() {
    let place = tempfile::tempdir().unwrap();
    let arguments = ["vole", "--role", "sender", "--n", "10", "--out"];
    let (a, b) = (place.path().join("a"), place.path().join("b"));
    let first =
        RunningProcess::start(&[&arguments[..], &[text(&a), "--listen", "127.0.0.1:0"]].concat());
    let address = format!("127.0.0.1:{}", first.port());
    let second =
        RunningProcess::start(&[&arguments[..], &[text(&b), "--connect", &address]].concat());
    for side in [first.finish(), second.finish()] {
        side.assert_refused(5, &["role", "sender"]);
    }
    assert!(names(place.path()).is_empty());
}
