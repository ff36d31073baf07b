//! Malicious peers and bad networks in every phase of matching. Each run ends within its timeout
//! with the documented status, reveals nothing about the keys, and leaves nothing on the disk.

use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::common::pair::{Folder, PLANTED, assert_matched};
use crate::common::proxy::{Act, Tampering, wire};
use crate::common::{Finished, Running};
use volery_channel::{Channel, Hello, SessionId, handshake, tcp};
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};
use volery_psi::lookup::value_bytes;
use volery_psi::{Parameters, Variant, vole};

/// The longest that our side may take beyond its own timeout, on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Keys of each side; half of them are common.
const KEYS: usize = 3000;

/// The settings of the runs: a protocol whose messages this file knows, in its longest form.
const KKRT: &[&str] = &["--protocol", "kkrt", "--security", "semi-honest", "--both"];

/// Two sides, each with its own folder that holds its file.
struct Sides {
    verb: &'static str,
    settings: &'static [&'static str],
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
        Self {
            verb,
            settings: KKRT,
            folders,
        }
    }

    /// Starts one side, which requests its rows.
    fn start(&self, side: usize, endpoint: [&str; 2], timeout: &str) -> Running {
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
        call.extend(self.settings);
        if side == 1 || self.settings.contains(&"--both") {
            call.extend(["--out", &out]);
        }
        if self.verb == "lookup" && side == 0 {
            call.extend(["--value", "v"]);
        }
        Running::start(&call)
    }

    /// Runs both over the proxy; `meanwhile` is called once both are started.
    fn run(
        &self,
        tampering: Tampering,
        timeout: &str,
        meanwhile: impl FnOnce([&Running; 2], mpsc::Receiver<()>),
    ) -> [Finished; 2] {
        let sender = self.start(0, ["--listen", "127.0.0.1:0"], timeout);
        let (port, begins) = wire(sender.port(), tampering);
        let receiver = self.start(1, ["--connect", &format!("127.0.0.1:{port}")], timeout);
        meanwhile([&sender, &receiver], begins);
        [sender.finish_within(LIMIT), receiver.finish_within(LIMIT)]
    }

    /// Fails unless this side ended with one of the statuses and left no output.
    fn assert_failed(&self, side: usize, ended: &Finished, allowed: &[i32], why: &str) {
        let status = ended.status.unwrap();
        assert!(allowed.contains(&status), "{why}: {ended:?}");
        ended.assert_refused(status, &[]);
        assert!(!ended.stderr.contains(PLANTED), "{why}: {ended:?}");
        let folder = &self.folders[side];
        assert_eq!(
            folder.names(),
            ["data.csv", "report.json"],
            "{why}: {ended:?}"
        );
        let report = folder.read("report.json");
        assert!(!report.contains(PLANTED), "{why}: {report}");
        assert_eq!(folder.json("report.json")["status"], status, "{why}");
        self.clean(side);
    }

    /// The bytes that each side sends in an undisturbed run.
    fn traffic(&self) -> [u64; 2] {
        let nothing = Tampering {
            of_listener: true,
            at: 0,
            act: Act::Pass,
        };
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
    (0..count)
        .map(place)
        .chain([0, total - 17, total - 16, total - 1])
        .collect()
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
        .flat_map(|side| {
            places(totals[side], count)
                .into_iter()
                .map(move |at| (side, at))
        })
        .collect();
    let attempt = |(side, at): (usize, u64)| {
        let sides = Sides::new(verb);
        let total = totals[side];
        let tampering = Tampering {
            of_listener: side == 0,
            at,
            act,
        };
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
    every_phase("psi", Act::Cut, 16, "60", 2);
}

#[test]
fn a_connection_cut_in_every_phase_of_lookup() {
    every_phase("lookup", Act::Cut, 16, "60", 2);
}

#[test]
fn a_peer_that_stalls() {
    every_phase("psi", Act::Stall, 6, "1", 10);
}

#[test]
fn a_peer_that_stalls_in_a_lookup() {
    every_phase("lookup", Act::Stall, 3, "1", 7);
}

#[test]
fn more_bytes_than_the_sizes_ask_for() {
    for verb in ["psi", "lookup"] {
        let sides = Sides::new(verb);
        let totals = sides.traffic();
        for (side, total) in totals.into_iter().enumerate() {
            // In the outputs, or in the rows and the indices of the common items; and before the
            // last message.
            for back in [17, 100, 5000] {
                for count in [1, 16, 100_000] {
                    let (at, act) = (total - back, Act::Insert(count));
                    let tampering = Tampering {
                        of_listener: side == 0,
                        at,
                        act,
                    };
                    let why = format!("{verb} {tampering:?} of {total}");
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
        }
    }
}

#[test]
fn fewer_bytes_than_the_sizes_ask_for() {
    let totals = Sides::new("psi").traffic();
    let all: Vec<_> = [0, 1]
        .into_iter()
        .flat_map(|side| [(17, 1), (300, 16), (5000, 2)].map(|drop| (side, drop)))
        .collect();
    each(&all, 6, |(side, (back, count)): (usize, (u64, usize))| {
        let sides = Sides::new("psi");
        let (at, act) = (totals[side] - back, Act::Drop(count));
        let tampering = Tampering {
            of_listener: side == 0,
            at,
            act,
        };
        let why = format!("{tampering:?} of {totals:?}");
        let ended = sides.run(tampering, "1", |_, _| ());
        sides.assert_failed(1 - side, &ended[1 - side], &[3, 4], &why);
        if ended[side].status != Some(0) || side == 0 {
            sides.assert_failed(side, &ended[side], &[3, 4], &why);
        }
    });
}

#[test]
fn a_side_that_is_killed() {
    for verb in ["psi", "lookup"] {
        let sides = Sides::new(verb);
        let totals = sides.traffic();
        for (victim, signal) in [(0, "TERM"), (1, "TERM"), (0, "KILL"), (1, "KILL")] {
            for (side, total) in totals.into_iter().enumerate() {
                for at in [0, 3000, total / 3, total - 500] {
                    // Later bytes are held back, so that the moment is exact.
                    let tampering = Tampering {
                        of_listener: side == 0,
                        at,
                        act: Act::Stall,
                    };
                    let why = format!("{verb} SIG{signal} of {victim}, {tampering:?} of {total}");
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
                        sides.clean(victim);
                    }
                }
            }
        }
    }
}

/// A peer that follows the protocol through the handshake; returns its channel.
fn well_begun(us: &Running, verb: &'static str, role: &'static str) -> Channel {
    let fields = [
        ("--protocol", "kkrt"),
        ("--both", "yes"),
        ("security", "semi-honest"),
        ("the key columns", "text"),
    ];
    begun_with(us, verb, role, &fields).0
}

/// A peer that says the fields in the handshake.
fn begun_with(
    us: &Running,
    verb: &'static str,
    role: &'static str,
    fields: &[(&'static str, &str)],
) -> (Channel, SessionId) {
    let address = (Ipv4Addr::LOCALHOST, us.port());
    let mut channel = tcp::connect(address, Duration::from_secs(10)).unwrap();
    // A psi says first what it gives.
    let result = (verb == "psi").then_some(("--result", "rows"));
    let fields = result.iter().chain(fields);
    let fields = fields.map(|&(name, value)| (name, value.to_owned()));
    let hello = Hello {
        protocol: verb,
        role,
        fields: fields.collect(),
    };
    let session = handshake(&mut channel, &hello, [9; 32]).unwrap();
    (channel, session)
}

/// The session of the first bucket of the first key.
fn first_part(session: SessionId) -> SessionId {
    let mut oracle = RandomOracle::new("volery matching: part");
    oracle
        .absorb(session.as_bytes())
        .absorb_u64(0)
        .absorb_u64(0);
    SessionId::from_bytes(oracle.finish32())
}

/// A peer of a choice of the protocol that tells one number of keys, and then runs the chosen
/// protocol with another, or not at all.
#[test]
fn sizes_that_are_not_those_of_the_sets() {
    for (told, keys, fragment) in [
        (1_u64 << 40, 0, "announced a set larger than the maximum"),
        (50_000, 0, "closed the connection"),
        (50_000, 7, "another size than it announced"),
    ] {
        let mut sides = Sides::new("psi");
        sides.settings = &["--link", "100Mbit,20ms"];
        let us = sides.start(0, ["--listen", "127.0.0.1:0"], "20");
        let fields = [
            ("--protocol", "auto"),
            ("--both", "no"),
            ("security", "malicious"),
            ("--link", "100000000 bit/s, 0.02 s"),
            ("the key columns", "text"),
        ];
        let (mut channel, session) = begun_with(&us, "psi", "receiver", &fields);
        // No progress of an earlier run, and one bucket.
        channel.send(&[0; 33]).unwrap();
        channel.send(&1_u32.to_le_bytes()).unwrap();
        channel.send(&told.to_le_bytes()).unwrap();
        channel.flush().unwrap();
        channel.recv(&mut [0; 37 + 8]).unwrap();
        if keys > 0 {
            // It keeps no progress.
            channel.send(&[0]).unwrap();
            channel.recv(&mut [0]).unwrap();
            let session = first_part(session);
            let items: Vec<_> = (0..keys).map(|i| format!("key {i}")).collect();
            let receiver = vole::Receiver::new(session, Prg::new(Block::new(5)));
            let settings = vole::Settings::default();
            let received = receiver.intersect(&items, settings, &mut (), &mut channel);
            assert_eq!(received.unwrap().parameters.sender_items, KEYS as u64);
        }
        drop(channel);
        let ended = us.finish_within(LIMIT);
        let status = if fragment.starts_with("closed") { 4 } else { 3 };
        sides.assert_failed(0, &ended, &[status], fragment);
        assert!(ended.stderr.contains(fragment), "{ended:?}");
    }
}

/// Runs our side of a subcommand in one role against a peer that is honest until after the
/// handshake.
fn against(
    verb: &'static str,
    side: usize,
    status: i32,
    fragment: &str,
    peer: impl FnOnce(Channel),
) {
    let sides = Sides::new(verb);
    let us = sides.start(side, ["--listen", "127.0.0.1:0"], "5");
    let channel = well_begun(&us, verb, ["receiver", "sender"][side]);
    peer(channel);
    let ended = us.finish_within(LIMIT);
    let why = format!("{verb}, side {side}, {fragment}");
    sides.assert_failed(side, &ended, &[status], &why);
    assert!(ended.stderr.contains(fragment), "{why}: {ended:?}");
}

#[test]
fn garbage_after_a_good_hello() {
    for verb in ["psi", "lookup"] {
        for side in [0, 1] {
            against(
                verb,
                side,
                3,
                "does not follow the protocol",
                |mut channel| {
                    // No encoding of a point is all ones.
                    let _ = channel.send(&[0xff; 1 << 20]);
                    let _ = channel.flush();
                    let _ = channel.recv(&mut [0; 1 << 20]);
                },
            );
        }
    }
}

#[test]
fn a_peer_that_leaves_after_a_good_hello() {
    for side in [0, 1] {
        against("psi", side, 4, "closed the connection", |channel| {
            drop(channel)
        });
    }
}

/// Bytes of a commitment.
const COMMITTED: u64 = 32;

/// Bytes of the message in which a side opens its commitment: its size, a number that belongs to
/// it, its settings and its share of a seed.
const STATED: u64 = 8 + 8 + 16 + 32;

/// Bytes of the last message of each side.
const END: u64 = 16;

impl Sides {
    /// The position of the message [`STATED`] in the bytes that each side sends: the length of
    /// everything after it is known.
    fn stated(&self) -> [u64; 2] {
        let keys = KEYS as u64;
        let parameters = Parameters::new(Variant::Kkrt, keys, keys);
        // With the length of the payload, its bits of nulls, and the length of the text.
        let longest = 2 + 1 + 1 + format!("{PLANTED} {}", KEYS - 1).len();
        let values = match self.verb {
            "lookup" => value_bytes(&parameters, longest),
            _ => 0,
        };
        let common = keys.div_ceil(8);
        let after = [
            parameters.tag_bytes() + values + END,
            1 + parameters.row_bytes() + common + END,
        ];
        let totals = self.traffic();
        [0, 1].map(|side| totals[side] - after[side] - STATED)
    }

    /// Runs both with eight bytes of `side`'s stream changed; fails unless its peer reports
    /// `fragment`.
    fn lied(&self, side: usize, at: u64, mask: u64, fragment: &str) {
        let (of_listener, act) = (side == 0, Act::Xor(mask));
        let tampering = Tampering {
            of_listener,
            at,
            act,
        };
        let why = format!("{} {tampering:?}", self.verb);
        let ended = self.run(tampering, "60", |_, _| ());
        self.assert_failed(1 - side, &ended[1 - side], &[3], &why);
        assert!(
            ended[1 - side].stderr.contains(fragment),
            "{why}: {ended:?}"
        );
        self.assert_failed(side, &ended[side], &[3, 4], &why);
    }
}

/// A size, a number, settings, a share, or a commitment changed in transit.
#[test]
fn statements_that_were_not_committed_to() {
    for verb in ["psi", "lookup"] {
        let sides = Sides::new(verb);
        for (side, at) in sides.stated().into_iter().enumerate() {
            let fragment = "its opening does not match its commitment";
            for at in [at - COMMITTED, at, at + 8, at + 16, at + 32] {
                sides.lied(side, at, 1, fragment);
            }
        }
    }
}

#[test]
fn hash_functions_that_cannot_be() {
    for verb in ["psi", "lookup"] {
        let sides = Sides::new(verb);
        let at = sides.stated()[1] + STATED;
        sides.lied(1, at, 0xff, "selected an unknown set of hash functions");
    }
}
