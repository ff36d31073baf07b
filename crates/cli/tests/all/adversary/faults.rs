//! A killed party, a file that cannot grow, a folder that disappears: one clear error, and no
//! partial output.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Finished, Running, names, text};

/// The timeout given to the parties; a party that sees the other disconnect need not wait for it.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The receiver's file of an intersection.
const RESULT: &str = "result.csv";

/// The outputs of the two parties of `verb`; the sender of an intersection has none.
fn outputs(verb: &str) -> [&'static str; 2] {
    if verb == "psi" {
        ["none", RESULT]
    } else {
        ["sender", "receiver"]
    }
}

/// The arguments of the two parties of `verb`, except the endpoint; all their output is in `place`.
fn calls(verb: &str, place: &Path) -> [Vec<String>; 2] {
    ["sender", "receiver"].map(|role| {
        let file = |name: &str| text(&place.join(name)).to_owned();
        let own: Vec<String> = match (verb, role) {
            ("psi", "sender") => vec!["--input".into(), file("s.csv"), "--key".into(), "id".into()],
            ("psi", _) => [
                "--input",
                &file("r.csv"),
                "--key",
                "id",
                "--out",
                &file(RESULT),
            ]
            .map(str::to_owned)
            .to_vec(),
            _ => ["--n", "2_000_000", "--out", &file(role)]
                .map(str::to_owned)
                .to_vec(),
        };
        let seconds = TIMEOUT.as_secs().to_string();
        let start = [verb, "--role", role, "--timeout", &seconds];
        let start = [&start[..], &["--wait", &seconds]].concat();
        [start.into_iter().map(str::to_owned).collect(), own].concat()
    })
}

fn start([sender, receiver]: &[Vec<String>; 2]) -> [Running; 2] {
    let call = |own: &[String], endpoint: [&str; 2]| {
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        Running::start(&[&own[..], &endpoint].concat())
    };
    let sender = call(sender, ["--listen", "127.0.0.1:0"]);
    let address = format!("127.0.0.1:{}", sender.port());
    [sender, call(receiver, ["--connect", &address])]
}

/// Random numbers without cryptographic quality.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

fn remove_outputs(verb: &str, place: &Path) {
    for path in outputs(verb).map(|name| place.join(name)) {
        let _ = if path.is_dir() {
            fs::remove_dir_all(path)
        } else {
            fs::remove_file(path)
        };
    }
}

/// Fails unless `place` holds the inputs and the outputs of a complete run and nothing else;
/// removes the outputs.
fn take_outputs(verb: &str, place: &Path) {
    let expected: &[&str] = match verb {
        "psi" => &["r.csv", RESULT, "s.csv"],
        _ => &["receiver", "sender"],
    };
    assert_eq!(names(place), expected, "{verb}");
    remove_outputs(verb, place);
}

/// The files of an output and their lengths; `None` if it does not exist.
fn contents(path: &Path) -> Option<Vec<(String, u64)>> {
    if path.is_file() {
        return Some(vec![(String::new(), fs::metadata(path).unwrap().len())]);
    }
    let length = |name: &str| {
        let bytes = fs::read(path.join(name)).unwrap();
        if name == "report.json" {
            // The figures of the report differ between runs.
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
            return 0;
        }
        bytes.len() as u64
    };
    path.is_dir().then(|| {
        names(path)
            .into_iter()
            .map(|name| (name.clone(), length(&name)))
            .collect()
    })
}

/// Either party is killed at a random point, repeatedly, with runs to the same paths: the other
/// party reports it in time, an output exists completely or not at all, and the next run works and
/// leaves nothing but its output. `VOLERY_KILLS` is the number of kills; the default is small.
#[test]
fn either_party_may_be_killed_at_any_time() {
    let kills: u64 = std::env::var("VOLERY_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let mut dice = Dice(kills);
    let places = ["cot", "vole", "psi"].map(|verb| (verb, tempfile::tempdir().unwrap()));
    for (verb, place) in &places {
        if *verb == "psi" {
            let rows = |first: u32| {
                (first..first + 30_000)
                    .map(|i| format!("{i}\n"))
                    .collect::<String>()
            };
            for (name, first) in [("s.csv", 0), ("r.csv", 29_000)] {
                fs::write(place.path().join(name), format!("id\n{}", rows(first))).unwrap();
            }
        }
    }
    let outputs = |verb: &str, place: &Path| outputs(verb).map(|name| contents(&place.join(name)));
    let whole = places.each_ref().map(|(verb, place)| {
        let begin = Instant::now();
        let done = start(&calls(verb, place.path())).map(Running::finish);
        assert!(done.iter().all(|side| side.status == Some(0)), "{done:?}");
        let took = begin.elapsed();
        let outputs = outputs(verb, place.path());
        take_outputs(verb, place.path());
        (took, outputs)
    });
    let mut finished = 0;
    for kill in 0..kills {
        let which = dice.below(3) as usize;
        let (verb, place) = &places[which];
        let (victim, other) = if dice.below(2) == 0 { (0, 1) } else { (1, 0) };
        let mut parties = start(&calls(verb, place.path())).map(Some);
        thread::sleep(whole[which].0 * dice.below(100) as u32 / 90);
        let killed = parties[victim].take().unwrap();
        killed.signal("KILL");
        let begin = Instant::now();
        let survivor = parties[other].take().unwrap().finish();
        let took = begin.elapsed();
        let killed = killed.finish();
        if killed.status == Some(0) {
            // The party had finished before.
            finished += 1;
        } else {
            assert!(
                took < TIMEOUT + TIMEOUT / 2,
                "{kill}: {verb}: reported after {took:?}: {survivor:?}"
            );
            let late = survivor.status == Some(0);
            assert!(
                late || survivor.status == Some(4),
                "{kill}: {verb}: {survivor:?}"
            );
            assert!(
                late || survivor
                    .stderr
                    .lines()
                    .filter(|line| line.starts_with("error: "))
                    .count()
                    == 1
            );
            // Either party may have finished, or been killed between its output and its end.
            let left = outputs(verb, place.path());
            for party in [victim, other] {
                let half = left[party].is_some() && left[party] != whole[which].1[party];
                assert!(!half, "{kill}: {verb}: {left:?}");
            }
            assert!(late || left[other].is_none(), "{kill}: {verb}");
        }
        remove_outputs(verb, place.path());
    }
    assert!(kills < 4 || finished < kills, "every kill came too late");
    for (verb, place) in &places {
        let done = start(&calls(verb, place.path())).map(Running::finish);
        assert!(done.iter().all(|side| side.status == Some(0)), "{done:?}");
        take_outputs(verb, place.path());
    }
}

/// Starts a party whose files may have at most this many kilobytes: writes fail as on a full disk.
fn start_limited(kilobytes: u32, own: &[String], endpoint: [&str; 2]) -> Finished {
    // The signal for this limit is ignored, so that the write fails as on a full disk.
    let script = format!("trap '' XFSZ; ulimit -f {kilobytes}; exec \"$0\" \"$@\"");
    let output = Command::new("bash")
        .args(["-c", &script, env!("CARGO_BIN_EXE_volery")])
        .args(own)
        .args(endpoint)
        .output()
        .unwrap();
    Finished::from(output)
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
        let sender = Running::start(&[&call[..], &["--listen", "127.0.0.1:0"]].concat());
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
        Running::start(&[&start[..], &endpoint].concat())
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
        Running::start(&[&start[..], &["--out", &out], &endpoint].concat())
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
