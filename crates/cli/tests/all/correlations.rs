//! `volery cot` and `volery vole`: two processes over the loopback interface; their files are read
//! and checked without the library.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::{
    ProcessResult, RunningProcess, assert_done, names, read_npy, run, text, words,
};

/// Runs both sides of a subcommand into the folders `s` and `r` of `place`; `more` goes to both,
/// `left` to the sender, which listens, and `right` to the receiver.
fn both(verb: &str, place: &Path, more: &str, left: &str, right: &str) -> [ProcessResult; 2] {
    let call = |role, end: &str, folder, own| {
        let out = place.join(folder);
        let line = format!("{verb} --role {role} {end} --out {} {more} {own}", text(&out));
        RunningProcess::start(&line.split_whitespace().collect::<Vec<_>>())
    };
    let sender = call("sender", "--listen 127.0.0.1:0", "s", left);
    let receiver = call("receiver", &format!("--connect 127.0.0.1:{}", sender.port()), "r", right);
    [sender.finish(), receiver.finish()]
}

const P: u128 = (1 << 61) - 1;

/// `u*x + v` over a ring, on words in file order.
fn expected(ring: &str, u: &[u64], x: &[u64], v: &[u64]) -> Vec<u64> {
    match ring {
        "fp61" => {
            let w = (u128::from(u[0]) * u128::from(x[0]) + u128::from(v[0])) % P;
            vec![w.try_into().unwrap()]
        }
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

/// Checks the files of both folders against each other, and their shapes and ranges; returns the
/// key. Over `f2` they are those of `cot`.
fn check_files(place: &Path, ring: &str, n: usize) -> Vec<u64> {
    let width = if ["f2", "gf128"].contains(&ring) { 2 } else { 1 };
    let array = |name: &str, n: usize| {
        let (shape, values) = read_npy(&place.join(name));
        assert_eq!(shape, [n as u64, width as u64][..width], "{name}");
        if ring == "fp61" {
            assert!(values.iter().all(|&value| u128::from(value) < P), "{name}");
        }
        values
    };
    let (v, w) = (array("s/v.npy", n), array("r/w.npy", n));
    let (u, key) = match ring {
        "f2" => {
            let (shape, bits) = read_npy(&place.join("r/u.npy"));
            assert_eq!(shape, [n as u64]);
            assert!(bits.iter().all(|bit| *bit <= 1));
            let ones = bits.iter().sum::<u64>() as usize;
            assert!(n <= 100 || (n / 3..n - n / 3).contains(&ones), "{ones} ones of {n}");
            // A bit is an element of the field of the key.
            (bits.iter().flat_map(|bit| [*bit, 0]).collect(), array("s/delta.npy", 1))
        }
        _ => (array("s/u.npy", n), array("r/x.npy", 1)),
    };
    assert!(key.iter().any(|word| *word != 0));
    let ring = if ring == "f2" { "gf128" } else { ring };
    for i in 0..n {
        let at = i * width..(i + 1) * width;
        let expected = expected(ring, &u[at.clone()], &key, &v[at.clone()]);
        assert_eq!(w[at], expected, "correlation {i} of {n} over {ring}");
    }
    if n > 1 {
        assert_ne!(v[..width], v[width..2 * width], "v is random");
    }
    key
}

fn verify(place: &Path) -> ProcessResult {
    run(&["verify", text(&place.join("s")), text(&place.join("r"))])
}

/// One run, from the call to the result of `verify`.
fn check(ring: &str, n: usize, more: &str, security: &str) {
    let place = tempfile::tempdir().unwrap();
    let place = place.path();
    let (verb, ring_option) = match ring {
        "f2" => ("cot", String::new()),
        ring => ("vole", format!("--ring {ring}")),
    };
    let ended = both(verb, place, &format!("--n {n} {ring_option} {more}"), "", "");
    assert_done(&ended, security);
    assert_eq!(names(place), ["r", "s"], "nothing temporary is left");
    let files = match verb {
        "cot" => [["delta.npy", "report.json", "v.npy"], ["report.json", "u.npy", "w.npy"]],
        _ => [["report.json", "u.npy", "v.npy"], ["report.json", "w.npy", "x.npy"]],
    };
    for (folder, files) in ["s", "r"].into_iter().zip(files) {
        let folder = place.join(folder);
        assert_eq!(names(&folder), files);
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&folder), 0o700);
        assert!(files.iter().all(|name| mode(&folder.join(name)) == 0o600));
    }
    check_files(place, ring, n);
    let verified = verify(place);
    assert_eq!(verified.status, Some(0), "{verified:?}");
    let all = match verb {
        "cot" => format!("all {n} correlated OTs"),
        _ => format!("all {n} correlations over {ring}"),
    };
    assert!(verified.stdout.contains(&all), "{verified:?}");
}

/// Lengths below, at and above a step of the stream, with the default security of each ring.
#[test]
fn every_ring_and_length() {
    for (ring, security) in [
        ("f2", "malicious, 128 bits"),
        ("fp61", "malicious, 128 bits"),
        ("z64", "semi-honest, 128 bits"),
        ("gf128", "malicious, 128 bits"),
    ] {
        for n in [0, 1, 9, 1009] {
            check(ring, n, "", security);
        }
    }
    check("f2", 300_003, "--link 100Mbit,20ms", "malicious");
    check("fp61", 100_003, "", "malicious");
}

#[test]
fn securities_noises_and_the_papers_parameters() {
    for (ring, n, more, security) in [
        ("f2", 20_011, "--set r14 --security semi-honest", "semi-honest"),
        ("f2", 20_011, "--set u14 --security malicious", "malicious"),
        ("f2", 1009, "--parameters ferret --security semi-honest", "semi-honest, 85 bits"),
        ("fp61", 20_011, "--noise uniform", "malicious, 128 bits"),
        ("fp61", 20_011, "--set u14 --security semi-honest", "semi-honest, 128 bits"),
        ("z64", 9001, "--parameters paper80", "60 bits"),
    ] {
        check(ring, n, more, security);
    }
}

/// Runs a subcommand; returns both reports.
fn reports(verb: &str, more: &str) -> [Value; 2] {
    let place = tempfile::tempdir().unwrap();
    assert_done(&both(verb, place.path(), more, "", ""), "malicious");
    assert_eq!(verify(place.path()).status, Some(0));
    ["s", "r"].map(|side| {
        let bytes = std::fs::read(place.path().join(side).join("report.json")).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    })
}

#[test]
fn the_report_says_what_was_run() {
    for (verb, ring, more) in
        [("cot", "f2", "--n 20_000 --set r14"), ("vole", "fp61", "--n 20_000 --protocol primal")]
    {
        let both = reports(verb, more);
        for (report, role) in both.iter().zip(["sender", "receiver"]) {
            for (field, value) in [
                ("command", verb),
                ("role", role),
                ("ring", ring),
                ("security", "malicious"),
                ("noise", "regular"),
                ("version", env!("CARGO_PKG_VERSION")),
            ] {
                assert_eq!(report[field], value);
            }
            assert_eq!(
                (&report["n"], &report["result"]["security_bits"]),
                (&20_000.into(), &128.into())
            );
            assert!(report["assumption"].as_str().unwrap().contains("primal LPN"), "{report}");
            for phase in ["setup", "extend", "total"] {
                assert!(report["seconds"][phase].as_f64().unwrap() > 0.0, "{phase}");
            }
        }
        // The bytes that one side sent are those the other received.
        assert_eq!(both[0]["bytes_sent"], both[1]["bytes_received"]);
        assert_eq!(both[1]["bytes_sent"], both[0]["bytes_received"]);
        assert_eq!(both[0]["result"]["session"], both[1]["result"]["session"]);
        if verb == "vole" {
            continue;
        }
        let result = &both[0]["result"];
        assert_eq!(result["delta_bits"], 127, "one carries the choice bit");
        let arrays = json!({
            "delta": { "file": "delta.npy", "dtype": "uint64", "shape": [1, 2] },
            "v": { "file": "v.npy", "dtype": "uint64", "shape": [20_000, 2] },
        });
        assert_eq!(result["arrays"], arrays);
        let bits = json!({ "file": "u.npy", "dtype": "uint8", "shape": [20_000] });
        assert_eq!(both[1]["result"]["arrays"]["u"], bits);
    }
}

/// Both sides measure, choose the same plan, and report why; with a given link or protocol there is
/// no choice to report.
#[test]
fn the_link_chooses_and_the_report_says_why() {
    for more in ["--n 0", "--n 1_000_000", "--n 100_000 --protocol primal"] {
        let [s, r] = reports("cot", more).map(|report| report["result"].clone());
        assert_eq!((&s["protocol"], &s["choice"]), (&r["protocol"], &r["choice"]));
        let predicted = s["choice"]["predicted"].as_array().unwrap();
        assert_eq!(predicted[0]["protocol"], s["protocol"]);
        let seconds = |one: &Value| one["seconds"].as_f64().unwrap();
        assert!(predicted.len() > 4 && predicted.is_sorted_by(|a, b| seconds(a) <= seconds(b)));
        let why = s["choice"]["why"].as_str().unwrap();
        assert!(why.starts_with("fastest at "), "{why}");
        assert!(why.contains(s["protocol"].as_str().unwrap()), "{why}");
    }
    for (more, protocol) in [
        ("--protocol softspoken2", "softspoken2"),
        ("--set r14", "primal-r14"),
        // A link on which low-communication would take less time.
        ("--link 1kbit,1s", "softspoken8"),
        ("--protocol low-communication", "low-communication"),
    ] {
        for report in reports("cot", &format!("--n 20_000 {more}")) {
            assert_eq!(report["result"]["protocol"], protocol);
            assert!(report["result"]["choice"].is_null());
        }
    }
}

/// Neither handshake nor outputs have the device; a set for small runs is computed on no card.
#[test]
fn each_side_chooses_its_device() {
    let place = tempfile::tempdir().unwrap();
    let sides = both("cot", place.path(), "--n 20_000 --set r14", "--device auto", "");
    assert_done(&sides, "malicious");
    check_files(place.path(), "f2", 20_000);
    let report = std::fs::read(place.path().join("s/report.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&report).unwrap()["result"]["device"], "cpu");
}

#[test]
fn a_given_delta_is_used_and_a_bad_one_refused() {
    let [first, second] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let more = "--n 20_000 --set r14";
    assert_done(&both("cot", first.path(), more, "", ""), "malicious");
    let delta = first.path().join("s/delta.npy");
    let left = format!("--delta {}", text(&delta));
    assert_done(&both("cot", second.path(), more, &left, ""), "malicious");
    let [one, other] = [&first, &second].map(|place| check_files(place.path(), "f2", 20_000));
    assert_eq!(one, other);

    let place = tempfile::tempdir().unwrap();
    let (bad, out) = (place.path().join("bad.npy"), place.path().join("out"));
    let call = format!(
        "cot --role sender --listen 127.0.0.1:0 --n 5 --out {} --delta {}",
        text(&out),
        text(&bad)
    );
    let good = std::fs::read(&delta).unwrap();
    let (header, value) = good.split_at(good.len() - 16);
    for (bytes, fragment) in [
        ([header, &[0; 16]].concat(), "delta is zero"),
        ([header, &value[..8]].concat(), "bytes, but its header"),
        (std::fs::read(second.path().join("r/u.npy")).unwrap(), "but a delta is"),
    ] {
        std::fs::write(&bad, bytes).unwrap();
        run(&words(&call)).assert_refused(1, &["bad.npy", fragment]);
    }
    assert_eq!(names(place.path()), ["bad.npy"]);
}

#[test]
fn settings_that_differ_end_both_sides_and_are_named() {
    for (verb, left, right, field) in [
        ("cot", "--n 10", "--n 20", "n:"),
        ("vole", "--n 10 --ring z64", "--n 10", "ring:"),
        ("vole", "--n 9000 --noise uniform", "--n 9000", "noise:"),
        ("cot", "--n 10 --security semi-honest", "--n 10", "security:"),
        ("cot", "--n 9000 --set r14", "--n 9000 --set r17", "parameters:"),
        ("cot", "--n 100_000", "--n 100_000 --link 1Mbit,100ms", "parameters:"),
        ("cot", "--n 9 --protocol softspoken4", "--n 9 --protocol softspoken8", "parameters:"),
    ] {
        let place = tempfile::tempdir().unwrap();
        for side in both(verb, place.path(), "", left, right) {
            side.assert_refused(5, &[field]);
        }
        assert!(names(place.path()).is_empty());
    }
}
