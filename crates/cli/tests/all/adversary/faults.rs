//! A file that cannot grow, a folder that disappears, a stopped party: one clear error, and no
//! partial output.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use crate::common::{ProcessResult, RunningProcess, names, text};

/// The timeout given to the parties; a party that sees the other disconnect need not wait for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The receiver's file of an intersection.
const RESULT: &str = "result.csv";

/// The outputs of the two parties of `verb`; the sender of an intersection has none.
fn outputs(verb: &str) -> [&'static str; 2] {
    if verb == "psi" { ["none", RESULT] } else { ["sender", "receiver"] }
}

/// The arguments of the two parties of `verb`, except the endpoint; all their output is in `place`.
fn calls(verb: &str, place: &Path) -> [Vec<String>; 2] {
    ["sender", "receiver"].map(|role| {
        let file = |name: &str| text(&place.join(name)).to_owned();
        let own: Vec<String> = match (verb, role) {
            ("psi", "sender") => vec!["--input".into(), file("s.csv"), "--key".into(), "id".into()],
            ("psi", _) => ["--input", &file("r.csv"), "--key", "id", "--out", &file(RESULT)]
                .map(str::to_owned)
                .to_vec(),
            _ => ["--n", "2_000_000", "--out", &file(role)].map(str::to_owned).to_vec(),
        };
        let seconds = TIMEOUT.as_secs().to_string();
        let start = [verb, "--role", role, "--timeout", &seconds];
        let start = [&start[..], &["--wait", &seconds]].concat();
        [start.into_iter().map(str::to_owned).collect(), own].concat()
    })
}

/// Starts a party whose files may have at most this many kilobytes: writes fail as on a full disk.
fn start_limited(kilobytes: u32, own: &[String], endpoint: [&str; 2]) -> ProcessResult {
    // The signal for this limit is ignored, so that the write fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_volery")])
        .args(own)
        .args(endpoint)
        .output()
        .unwrap();
    ProcessResult::from(output)
}

#[test]
fn a_disk_that_fills_up_ends_both_and_leaves_nothing() {
    for verb in ["cot", "psi"] {
        let place = tempfile::tempdir().unwrap();
        let rows: String = (0..30_000).map(|i| format!("{i}\n")).collect();
        for name in ["s.csv", "r.csv"] {
            fs::write(place.path().join(name), format!("id\n{rows}")).unwrap();
        }
        let before = names(place.path());
        let [sender, receiver] = calls(verb, place.path());
        let call: Vec<&str> = sender.iter().map(String::as_str).collect();
        let sender = RunningProcess::start(&[&call[..], &["--listen", "127.0.0.1:0"]].concat());
        let address = format!("127.0.0.1:{}", sender.port());
        let full = start_limited(100, &receiver, ["--connect", &address]);
        full.assert_refused(1, &[outputs(verb)[1]]);
        assert!(full.stderr.contains("too large"), "{full:?}");
        let sender = sender.finish();
        // The sender of an intersection gets no file, and may have finished when the receiver
        // writes its own.
        assert!(sender.status == Some(4) || verb == "psi", "{sender:?}");
        assert_eq!(names(place.path()), before, "{verb}");
    }
}

#[test]
fn a_folder_that_goes_away_is_said() {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("here")).unwrap();
    let out = place.path().join("here/out");
    let call = |role, endpoint: [&str; 2], out: &Path| {
        let start = ["cot", "--role", role, "--n", "10", "--out", text(out)];
        RunningProcess::start(&[&start[..], &endpoint].concat())
    };
    let sender = call("sender", ["--listen", "127.0.0.1:0"], &out);
    let address = format!("127.0.0.1:{}", sender.port());
    fs::remove_dir_all(place.path().join("here")).unwrap();
    let receiver = call("receiver", ["--connect", &address], &place.path().join("r"));
    sender.finish().assert_refused(1, &["here"]);
    let receiver = receiver.finish();
    assert!(matches!(receiver.status, Some(0 | 4)), "{receiver:?}");
    assert!(!place.path().join("here").exists());
}

/// A stopped process keeps its connection, and its kernel acknowledges what comes.
#[test]
fn a_stopped_party_is_found_by_the_other() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&place.path().join(name)).to_owned();
    let call = |role, endpoint: [&str; 2]| {
        let out = path(role);
        let start = ["cot", "--role", role, "--n", "1e9", "--timeout", "2"];
        RunningProcess::start(&[&start[..], &["--out", &out], &endpoint].concat())
    };
    let sender = call("sender", ["--listen", "127.0.0.1:0"]);
    let address = format!("127.0.0.1:{}", sender.port());
    let receiver = call("receiver", ["--connect", &address]);
    thread::sleep(Duration::from_secs(1));
    sender.signal("STOP");
    let ended = receiver.finish_within(Duration::from_secs(60));
    sender.signal("KILL");
    sender.finish();
    ended.assert_refused(4, &["timed out"]);
    assert!(!place.path().join("receiver").exists());
}
