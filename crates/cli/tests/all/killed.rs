//! A run whose sides are killed again and again: it goes on, its result is exact, and no session
//! comes twice.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::pair::Folder;
use crate::common::{self, RunningProcess};

const ROWS: u32 = 20_000;
const KILLS: u32 = 20;

/// A number that looks random.
fn mix(number: u32) -> u32 {
    let mixed = u64::from(number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 37) as u32
}

/// Starts both sides.
fn start(folder: &Folder, [a, b]: [&str; 2]) -> [RunningProcess; 2] {
    let same = ["--key", "id", "--buckets", "64", "--protocol", "vole", "--wait", "5s"];
    let [left, right] = ["work-a", "work-b"].map(|name| folder.path(name));
    let listen = ["psi", "--role", "sender", "--listen", "127.0.0.1:0"];
    let left = ["--input", a, "--resume", &left];
    let sender = RunningProcess::start(&[&listen[..], &same, &left].concat());
    let address = format!("127.0.0.1:{}", sender.port());
    let connect = ["psi", "--role", "receiver", "--connect", &address];
    let out = folder.path("out.csv");
    let right = ["--input", b, "--resume", &right, "--out", &out];
    [sender, RunningProcess::start(&[&connect[..], &same, &right].concat())]
}

/// The parts that a side has begun, each with its session, as often as it was.
fn begun(folder: &Folder, side: &str) -> Vec<(String, String)> {
    common::begun(folder.path(&format!("work-{side}")).as_ref())
}

fn parts(folder: &Folder, side: &str) -> usize {
    let begun = begun(folder, side);
    let parts: HashSet<_> = begun.iter().map(|(part, _)| part).collect();
    parts.len()
}

fn assert_all_different(begun: &[(String, String)]) {
    let sessions: HashSet<_> = begun.iter().map(|(_, session)| session).collect();
    assert_eq!(sessions.len(), begun.len(), "a session came twice");
}

#[test]
fn killed_sides_go_on() {
    let folder = Folder::new();
    let (mut a, mut b, mut expected) =
        ("id\n".to_owned(), "n,id\n".to_owned(), "n,id\n".to_owned());
    for i in 0..ROWS {
        writeln!(a, "{}", 3 * i).unwrap();
        writeln!(b, "{i},{}", 2 * i).unwrap();
        if (2 * i) % 3 == 0 {
            writeln!(expected, "{i},{}", 2 * i).unwrap();
        }
    }
    let (a, b) = (folder.write("a.csv", a), folder.write("b.csv", b));
    for kill in 0..KILLS {
        let [sender, receiver] = start(&folder, [&a, &b]);
        let started = Instant::now();
        // The first ones fall before any part has an end, the others after three parts more each.
        let wanted = 3 * kill.saturating_sub(1) as usize;
        while parts(&folder, "a") < wanted {
            assert!(started.elapsed() < Duration::from_secs(60), "no progress");
            thread::sleep(Duration::from_millis(2));
        }
        thread::sleep(Duration::from_millis(u64::from(mix(kill) % 60)));
        let killed = [&sender, &receiver][mix(kill + 100) as usize % 2];
        killed.signal("KILL");
        let ended = [sender.finish(), receiver.finish()];
        assert!(ended.iter().all(|side| side.status != Some(0)), "{ended:?}");
        assert!(!folder.names().contains(&"out.csv".to_owned()));
        assert_all_different(&begun(&folder, "a"));
        assert_all_different(&begun(&folder, "b"));
    }
    let before = ["a", "b"].map(|side| begun(&folder, side));
    assert!(before[0].len() > 3 * KILLS as usize - 6, "{}", before[0].len());

    // The files of attempts go when the run is complete: they are read up to then.
    let over = AtomicBool::new(false);
    let (ended, all_a, all_b) = thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut longest = ["a", "b"].map(|side| begun(&folder, side));
            while !over.load(Ordering::Relaxed) {
                for (side, longest) in ["a", "b"].iter().zip(&mut longest) {
                    let now = begun(&folder, side);
                    if now.len() > longest.len() {
                        *longest = now;
                    }
                }
                thread::sleep(Duration::from_millis(1));
            }
            longest
        });
        let [sender, receiver] = start(&folder, [&a, &b]);
        let ended = [sender.finish(), receiver.finish()];
        over.store(true, Ordering::Relaxed);
        let [a, b] = watch.join().unwrap();
        (ended, a, b)
    });
    for side in &ended {
        assert_eq!(side.status, Some(0), "{side:?}");
    }
    assert_eq!(folder.read("out.csv"), expected);
    for (all, before) in [(&all_a, &before[0]), (&all_b, &before[1])] {
        assert_all_different(all);
        assert!(before.iter().all(|one| all.contains(one)));
        for (part, _) in all {
            let times = all.iter().filter(|(other, _)| other == part).count();
            assert!(times <= 3, "part {part}: {times} times");
        }
    }
    for side in ["a", "b"] {
        let path = folder.path(&format!("work-{side}"));
        assert_eq!(common::names(path.as_ref()), ["complete"]);
    }
}
