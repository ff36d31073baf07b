//! Existing files at the path of the output, and inputs that change during a run.

use std::os::unix::fs::symlink;

use crate::common::pair::{Folder, PLANTED, assert_matched, pair};
use crate::common::{ProcessResult, RunningProcess, run, words};

/// Runs a receiver that must fail before it connects.
fn refused(folder: &Folder, input: &str, more: &str) -> ProcessResult {
    let before = (folder.names(), std::fs::read(input).ok());
    let call = "psi --role receiver --listen 127.0.0.1:0 -v --key k";
    let finished = run(&words(&format!("{call} --input {input} {more}")));
    assert!(!finished.stderr.contains(PLANTED), "{finished:?}");
    assert!(!finished.stderr.contains("listening"), "{finished:?}");
    assert_eq!((folder.names(), std::fs::read(input).ok()), before, "{finished:?}");
    finished
}

#[test]
fn an_output_never_replaces_what_it_should_not() {
    let folder = Folder::new();
    let data = folder.write("data.csv", format!("k,v\n{PLANTED},1\n"));
    symlink("data.csv", folder.path("link.csv")).unwrap();
    std::fs::hard_link(&data, folder.path("hard.csv")).unwrap();
    symlink("nowhere.csv", folder.path("lost.csv")).unwrap();
    let precious = folder.write("precious.csv", "years of work\n");
    std::fs::create_dir(folder.path("sub")).unwrap();
    let link = folder.path("link.csv");
    let spelling = folder.path("sub/../data.csv");
    let inputs =
        [(&data, "data.csv"), (&data, "link.csv"), (&data, "hard.csv"), (&data, "sub/../data.csv")];
    let inputs = inputs.into_iter().chain([
        (&link, "data.csv"),
        (&link, "hard.csv"),
        (&spelling, "link.csv"),
    ]);
    for (input, out) in inputs {
        let out = folder.path(out);
        for force in ["", " --force"] {
            let finished = refused(&folder, input, &format!("--out {out}{force}"));
            finished.assert_refused(2, &["--out: ", "is the input file"]);
            assert!(finished.stderr.contains("the input is never overwritten"));
        }
    }
    for out in [&precious, &folder.path("lost.csv")] {
        let finished = refused(&folder, &data, &format!("--out {out}"));
        finished.assert_refused(2, &["--out: ", "exists"]);
        assert!(finished.stderr.contains("--force"), "{finished:?}");
    }
    assert_eq!(folder.read("precious.csv"), "years of work\n");

    // The report must not replace the input or the output either.
    let out = folder.path("out.csv");
    for (report, fragment) in [
        ("hard.csv", "is the input file"),
        ("sub/../out.csv", "is the output file"),
        ("out.csv", "is the output file"),
    ] {
        let more = format!("--out {out} --report {}", folder.path(report));
        refused(&folder, &data, &more).assert_refused(2, &["--report: ", fragment]);
    }
}

#[test]
fn an_existing_output_is_replaced_by_force_and_only_when_all_is_well() {
    let folder = Folder::new();
    let data = folder.write("data.csv", "k\nx\n");
    let out = folder.write("out.csv", "from before\n");
    let left = format!("--input {data} --key k");
    // The settings of the other side differ: the run fails, and the existing file is kept.
    let right = format!("{left} --out {out} --force");
    for side in pair("psi", &format!("{left} --protocol kkrt-paper"), &right) {
        side.assert_refused(5, &["--protocol"]);
    }
    assert_eq!(folder.read("out.csv"), "from before\n");
    assert_matched(&pair("psi", &left, &right));
    assert_eq!(folder.read("out.csv"), "k\nx\n");
    assert_eq!(folder.names(), ["data.csv", "out.csv"]);
}

/// Starts a receiver that has read its file when this returns, and a sender for it once `change` is
/// done.
fn changed_meanwhile(folder: &Folder, change: impl FnOnce()) -> [ProcessResult; 2] {
    let data = folder.write("data.csv", format!("k,v\n{PLANTED},1\nb,2\n"));
    let theirs = folder.write("theirs.csv", format!("k\nb\n{PLANTED}\n"));
    let out = folder.path("out.csv");
    let start = |line: &str| RunningProcess::start(&words(&format!("psi --key k {line}")));
    let receiver =
        start(&format!("--role receiver --listen 127.0.0.1:0 --input {data} --out {out}"));
    let port = receiver.port();
    change();
    let sender = start(&format!("--role sender --connect 127.0.0.1:{port} --input {theirs}"));
    let ended = [sender.finish(), receiver.finish()];
    for side in &ended {
        assert!(!side.stderr.contains(PLANTED), "{side:?}");
    }
    ended
}

#[test]
fn files_that_change_during_the_run() {
    let folder = Folder::new();
    let [sender, receiver] = changed_meanwhile(&folder, || {
        folder.write("data.csv", format!("k,v\n{PLANTED},1\nc,2\n"));
    });
    assert_eq!(sender.status, Some(0), "{sender:?}");
    receiver.assert_refused(1, &["data.csv has changed while it was in use"]);
    assert_eq!(folder.names(), ["data.csv", "theirs.csv"]);

    // A file created by another process meanwhile is not replaced.
    let [_, receiver] = changed_meanwhile(&folder, || {
        folder.write("out.csv", "years of work\n");
    });
    receiver.assert_refused(2, &["out.csv exists"]);
    assert_eq!(folder.read("out.csv"), "years of work\n");
    assert_eq!(folder.names(), ["data.csv", "out.csv", "theirs.csv"]);
}
