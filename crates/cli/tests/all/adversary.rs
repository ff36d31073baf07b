//! Signals and a full disk: each ends a run with its documented status and one error,
//! and leaves no output. The crates below test what a peer and a network may do.

use std::fs;
use std::process::Command;

use crate::common::{ProcessResult, RunningProcess, names, text, words};

#[test]
fn a_signal_leaves_nothing() {
    for signal in ["INT", "TERM", "HUP"] {
        let place = tempfile::tempdir().unwrap();
        let (out, report) = (place.path().join("out"), place.path().join("report.json"));
        let us = RunningProcess::start(&words(&format!(
            "vole --role sender --n 5 --listen 127.0.0.1:0 --out {} --report {}",
            text(&out),
            text(&report)
        )));
        us.port(); // it waits for the peer now
        assert_eq!(names(place.path()).len(), 2, "the temporary folder and file");
        us.signal(signal);
        us.finish().assert_refused(1, &["signal"]);
        assert_eq!(names(place.path()), ["report.json"], "{signal}");
        let report = fs::read(&report).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!((&report["status"], &report["command"]), (&1.into(), &"vole".into()));
        assert!(report["error"].as_str().unwrap().contains("signal"), "{report}");
    }
}

#[test]
fn a_disk_that_fills_up_ends_both_and_leaves_nothing() {
    let place = tempfile::tempdir().unwrap();
    let rows: String = (0..30_000).map(|i| format!("{i}\n")).collect();
    let input = place.path().join("in.csv");
    fs::write(&input, format!("id\n{rows}")).unwrap();
    let before = names(place.path());
    let file = |name: &str| text(&place.path().join(name)).to_owned();
    // The signal for this limit is ignored, so that a write fails as on a full disk.
    let full = |call: &str| {
        let script = "trap '' XFSZ; ulimit -f 100; exec \"$0\" \"$@\"";
        let mut command = Command::new("bash");
        command.args(["-c", script, env!("CARGO_BIN_EXE_volery")]).args(words(call));
        ProcessResult::from(command.output().unwrap())
    };
    let store = file("store");
    let prepared =
        full(&format!("serve --prepare --store {store} --input {} --key id", text(&input)));
    prepared.assert_refused(1, &[&store, "too large"]);
    fs::remove_dir_all(store).unwrap();
    for (verb, left, right, out) in [
        (
            "cot",
            format!("--n 2_000_000 --out {}", file("s")),
            format!("--n 2_000_000 --out {}", file("r")),
            "r",
        ),
        (
            "psi",
            format!("--input {} --key id", text(&input)),
            format!("--input {} --key id --out {}", text(&input), file("out.csv")),
            "out.csv",
        ),
    ] {
        let sender = format!("{verb} --role sender --listen 127.0.0.1:0 {left}");
        let sender = RunningProcess::start(&words(&sender));
        let receiver =
            format!("{verb} --role receiver --connect 127.0.0.1:{} {right}", sender.port());
        let full = full(&receiver);
        full.assert_refused(1, &[out]);
        assert!(full.stderr.contains("too large"), "{full:?}");
        let sender = sender.finish();
        // The sender of an intersection gets no file, and may have finished before.
        assert!(sender.status == Some(4) || verb == "psi", "{sender:?}");
        assert_eq!(names(place.path()), before, "{verb}");
    }
}
