//! A bad network and killed sides in every phase of a matching. Each run ends within its timeout
//! with the documented status, reveals nothing about the keys, and leaves nothing on the disk. The
//! crates below test what a peer may send.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::pair::{Folder, PLANTED, assert_matched};
use crate::common::proxy::{Act, Tampering, wire};
use crate::common::{ProcessResult, RunningProcess};

/// The longest that our side may take beyond its own timeout, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Keys of each side; half of them are common.
const KEYS: usize = 3000;

/// The settings of the runs: both sides get their rows.
const BOTH: &[&str] = &["--protocol", "kkrt", "--security", "semi-honest", "--both"];

/// Two sides, each with its own folder that holds its file.
struct Sides {
    verb: &'static str,
    folders: [Folder; 2],
}

impl Sides {
    fn new(verb: &'static str) -> Self {
        let folders = [0, KEYS / 2].map(|first| {
            let folder = Folder::new();
            let rows = (first..first + KEYS).map(|i| format!("{PLANTED}{i},{PLANTED} {i}\n"));
            folder.write("data.csv", "k,v\n".to_owned() + &rows.collect::<String>());
            folder
        });
        Self { verb, folders }
    }

    /// Starts one side, which requests its rows.
    fn start(&self, side: usize, endpoint: [&str; 2], timeout: &str) -> RunningProcess {
        let folder = &self.folders[side];
        let (data, out) = (folder.path("data.csv"), folder.path("out.csv"));
        let report = folder.path("report.json");
        let mut call = vec![
            self.verb,
            "--role",
            ["sender", "receiver"][side],
            // On a busy machine a listener may take its peer for a stranger: it ends before
            // `LIMIT`.
            "--wait",
            "20s",
            "--timeout",
            timeout,
        ];
        call.extend(endpoint);
        call.extend(["--input", &data, "--key", "k", "--report", &report]);
        call.extend(BOTH);
        call.extend(["--out", &out]);
        if self.verb == "lookup" && side == 0 {
            call.extend(["--value", "v"]);
        }
        RunningProcess::start(&call)
    }

    /// Runs both over the proxy; `meanwhile` is called once both are started.
    fn run(
        &self,
        tampering: Tampering,
        timeout: &str,
        meanwhile: impl FnOnce([&RunningProcess; 2], mpsc::Receiver<()>),
    ) -> [ProcessResult; 2] {
        let sender = self.start(0, ["--listen", "127.0.0.1:0"], timeout);
        let (port, begins) = wire(sender.port(), tampering);
        let receiver = self.start(1, ["--connect", &format!("127.0.0.1:{port}")], timeout);
        meanwhile([&sender, &receiver], begins);
        [sender.finish_within(LIMIT), receiver.finish_within(LIMIT)]
    }

    /// Fails unless this side ended with one of the statuses and left no output.
    fn assert_failed(&self, side: usize, ended: &ProcessResult, allowed: &[i32], why: &str) {
        let status = ended.status.unwrap();
        assert!(allowed.contains(&status), "{why}: {ended:?}");
        ended.assert_refused(status, &[]);
        assert!(!ended.stderr.contains(PLANTED), "{why}: {ended:?}");
        let folder = &self.folders[side];
        assert_eq!(folder.names(), ["data.csv", "report.json"], "{why}: {ended:?}");
        let report = folder.read("report.json");
        assert!(!report.contains(PLANTED), "{why}: {report}");
        assert_eq!(folder.json("report.json")["status"], status, "{why}");
        self.clean(side);
    }

    /// The bytes that each side sends in an undisturbed run.
    fn traffic(&self) -> [u64; 2] {
        let nothing = Tampering { of_listener: true, at: 0, act: Act::Pass };
        let ended = self.run(nothing, "60", |_, _| ());
        assert_matched(&ended);
        let sent = [0, 1].map(|side: usize| {
            let folder = &self.folders[side];
            assert_eq!(folder.names(), ["data.csv", "out.csv", "report.json"]);
            assert_eq!(folder.read("out.csv").lines().count(), 1 + KEYS / 2);
            let sent = folder.json("report.json")["bytes_sent"].as_u64().unwrap();
            self.clean(side);
            sent
        });
        for ended in &ended {
            assert!(!ended.stderr.contains(PLANTED), "{ended:?}");
        }
        sent
    }

    /// Removes the outputs of a side.
    fn clean(&self, side: usize) {
        for name in self.folders[side].names() {
            if name != "data.csv" {
                std::fs::remove_file(self.folders[side].path(&name)).unwrap();
            }
        }
    }
}

/// Positions in a stream of `total` bytes, in every phase: dense at the front, where phases are
/// short.
fn places(total: u64, count: u32) -> Vec<u64> {
    let last = f64::from(count - 1);
    let place = |i| ((total - 1) as f64).powf(f64::from(i) / last) as u64;
    (0..count).map(place).chain([0, total - 17, total - 16, total - 1]).collect()
}

/// Positions at which the receiver has finished but the sender has not been told: the receiver's
/// result is then right, and is kept.
fn receiver_may_be_done(tampering: Tampering, total: u64) -> bool {
    // The indices of the common items, and the last message.
    !tampering.of_listener && tampering.at + 16 + (KEYS as u64).div_ceil(8) >= total
}

/// Runs all cases, `together` at a time: most of them wait.
fn each<T: Copy + Send>(cases: &[T], together: usize, run: impl Fn(T) + Sync) {
    for some in cases.chunks(together) {
        thread::scope(|scope| {
            for &case in some {
                let run = &run;
                scope.spawn(move || run(case));
            }
        });
    }
}

/// Tries an act at positions in every phase and both directions, `together` at a time.
fn every_phase(verb: &'static str, act: Act, count: u32, timeout: &str, together: usize) {
    let totals = Sides::new(verb).traffic();
    let all: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|side| places(totals[side], count).into_iter().map(move |at| (side, at)))
        .collect();
    let attempt = |(side, at): (usize, u64)| {
        let sides = Sides::new(verb);
        let total = totals[side];
        let tampering = Tampering { of_listener: side == 0, at, act };
        let why = format!("{verb} {tampering:?} of {total}");
        let [sender, receiver] = sides.run(tampering, timeout, |_, _| ());
        sides.assert_failed(0, &sender, &[4], &why);
        if receiver.status == Some(0) && receiver_may_be_done(tampering, total) {
            return;
        }
        sides.assert_failed(1, &receiver, &[4], &why);
    };
    each(&all, together, attempt);
}

#[test]
fn a_connection_cut_in_every_phase_of_psi() {
    every_phase("psi", Act::Cut, 8, "60", 4);
}

#[test]
fn a_connection_cut_in_every_phase_of_lookup() {
    every_phase("lookup", Act::Cut, 2, "60", 4);
}

#[test]
fn a_peer_that_stalls() {
    every_phase("psi", Act::Stall, 3, "1", 7);
}

#[test]
fn more_bytes_than_the_sizes_ask_for() {
    let sides = Sides::new("lookup");
    for (side, total) in sides.traffic().into_iter().enumerate() {
        let tampering = Tampering { of_listener: side == 0, at: total - 100, act: Act::Insert(16) };
        let why = format!("{tampering:?} of {total}");
        let ended = sides.run(tampering, "60", |_, _| ());
        sides.assert_failed(1 - side, &ended[1 - side], &[3], &why);
        // The other side has finished, or sees that its peer disconnected.
        if ended[side].status == Some(0) && side == 1 {
            sides.clean(side);
        } else {
            sides.assert_failed(side, &ended[side], &[3, 4], &why);
        }
    }
}

#[test]
fn a_side_that_is_killed() {
    let totals = Sides::new("psi").traffic();
    let cases = [(0, "TERM"), (1, "TERM"), (0, "KILL"), (1, "KILL")];
    let all: Vec<_> = cases
        .into_iter()
        .enumerate()
        .flat_map(|(number, (victim, signal))| {
            // Each side's bytes are held back, so that the moment is exact: at the start, within,
            // and before the end.
            let ends = [(number % 2, 0), (0, totals[0] / 3), (1, totals[1] - 500)];
            ends.map(|(side, at)| (victim, signal, side, at))
        })
        .collect();
    each(&all, 4, |(victim, signal, side, at)| {
        let sides = Sides::new("psi");
        let tampering = Tampering { of_listener: side == 0, at, act: Act::Stall };
        let why = format!("SIG{signal} of {victim}, {tampering:?}");
        let ended = sides.run(tampering, "60", |running, begins| {
            begins.recv_timeout(LIMIT).unwrap();
            running[victim].signal(signal);
        });
        let other = 1 - victim;
        sides.assert_failed(other, &ended[other], &[4], &why);
        if signal == "TERM" {
            ended[victim].assert_refused(1, &["interrupted by a signal"]);
            sides.assert_failed(victim, &ended[victim], &[1], &why);
        } else {
            assert_eq!(ended[victim].status, None, "{why}");
            let left = sides.folders[victim].names();
            assert!(!left.contains(&"out.csv".to_owned()), "{why}: {left:?}");
        }
    });
}
