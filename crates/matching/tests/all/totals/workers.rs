//! Totals by several workers of each side.

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;

use volery_channel::tamper::Tampered;
use volery_channel::{Error as ChannelError, memory, run_two_channels, run_two_unchecked};
use volery_matching::totals::{Driver, SHARES};
use volery_matching::worker::{Place, Worked, Worker};
use volery_matching::{Manifest, Terms};

use super::*;
use crate::common::begun;

struct Sides {
    run: Run,
    rows: [Vec<Row>; 2],
    folders: [tempfile::TempDir; 2],
    workers: u32,
    shards: u32,
}

type Agreed = (Driver, Manifest);

impl Sides {
    fn new(run: &Run, rows: [Vec<Row>; 2]) -> Self {
        Self {
            run: run.clone(),
            rows,
            folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()],
            workers: 2,
            shards: 5,
        }
    }

    /// Both drivers, of which each reads its table anew.
    fn agree(&self) -> [Result<Agreed, Error>; 2] {
        let go = |i: usize| {
            let side = self.run.read(ROLES[i], &table(&self.rows[i])).unwrap();
            let organisations = ["the sender", "the receiver"].map(str::to_owned);
            let (settings, keys) = (side.settings(), &side.summary().key_description);
            let terms = Terms::for_totals(settings, keys, "test", self.workers, organisations);
            let terms = terms.unwrap();
            let mut driver = Driver::new(side, self.folders[i].path()).unwrap();
            move |channel: &mut Channel| {
                let manifest = driver.agree(terms, Some(self.shards), channel, &mut ())?;
                Ok((driver, manifest))
            }
        };
        let (sent, received) = run_two_unchecked(go(0), go(1));
        [sent, received]
    }

    fn agreed(&self) -> [Agreed; 2] {
        let both = self.agree().map(Result::unwrap);
        for (role, (driver, manifest)) in ROLES.into_iter().zip(&both) {
            // Workers have the settings from the manifest.
            let read = manifest.totals(role).unwrap().hello("k");
            assert_eq!(read.fields, driver.side().settings().hello("k").fields);
        }
        both
    }

    /// One worker of each side; what each sends is cut after so many bytes.
    fn work(&self, both: &[Agreed; 2], worker: u32, ends: [u64; 2]) -> [Result<Worked, Error>; 2] {
        let new = |i: usize| {
            let place = Place::Folder(self.folders[i].path());
            Worker::new(&both[i].1, ROLES[i], 0, worker, 1, place).unwrap()
        };
        let workers = [new(0), new(1)];
        let (near, far) = memory::pair();
        let ((sent, _), (received, _)) = run_two_channels(
            Channel::new(Tampered::truncated(near, ends[0])),
            Channel::new(Tampered::truncated(far, ends[1])),
            |channel| workers[0].run(channel, &mut ()),
            |channel| workers[1].run(channel, &mut ()),
        );
        [sent, received]
    }

    /// What each worker of both sides did.
    fn work_all(&self, both: &[Agreed; 2]) -> Vec<[Worked; 2]> {
        let all = 0..self.workers;
        all.map(|worker| self.work(both, worker, [u64::MAX; 2]).map(Result::unwrap))
            .collect()
    }

    fn open(both: &[Agreed; 2]) -> [Result<Vec<Total>, Error>; 2] {
        let go = |i: usize| {
            let (driver, manifest) = &both[i];
            move |channel: &mut Channel| driver.open(manifest, channel, &mut ())
        };
        let (sent, received) = run_two_unchecked(go(0), go(1));
        [sent, received]
    }

    fn check(&self, both: &[Agreed; 2]) {
        let tables = [&self.rows[0][..], &self.rows[1][..]];
        for (role, totals) in ROLES.into_iter().zip(Self::open(both)) {
            let expected = self.run.expected(role, tables);
            assert_eq!(totals.unwrap(), expected, "{role:?} {:?}", self.run);
        }
    }

    /// The whole run.
    fn check_all(&self) {
        let both = self.agreed();
        self.work_all(&both);
        self.check(&both);
        for (driver, _) in both {
            assert!(driver.opened().unwrap().is_some());
            driver.finish().unwrap();
        }
        for folder in &self.folders {
            let names: Vec<_> = fs::read_dir(folder.path()).unwrap().flatten().collect();
            assert_eq!(names.len(), 1);
            assert_eq!(names[0].file_name(), "complete");
        }
    }

    fn found(&self, side: usize, shard: u32) -> PathBuf {
        self.folders[side].path().join(format!("found-0-{shard}"))
    }
}

#[test]
fn workers_compute_what_one_connection_computes() {
    let mut number = 0;
    for kind in KINDS {
        for grouped in [None, Some(Role::Sender), Some(Role::Receiver)] {
            number += 1;
            let run = Run {
                kind,
                holder: ROLES[number / 2 % 2],
                grouped,
                to: [To::Sender, To::Receiver, To::Both][number % 3],
                minimum: 3,
                ..Run::default()
            };
            Sides::new(&run, [rows(0..61), rows(40..75)]).check_all();
        }
    }
}

#[test]
fn the_minimum_is_that_of_all_shards_and_sets_may_be_empty_or_small() {
    for (sender, receiver, minimum) in [
        (0..50, 30..90, 19),
        (0..50, 30..90, 20),
        (0..50, 30..90, 21),
        (0..0, 0..7, 1),
        (0..7, 0..0, 0),
        (0..0, 0..0, 1),
        // Fewer keys than shards.
        (0..2, 1..3, 1),
    ] {
        let run = Run {
            kind: "mean",
            to: To::Both,
            minimum,
            ..Run::default()
        };
        Sides::new(&run, [rows(sender), rows(receiver)]).check_all();
    }
}

/// A worker whose connection breaks anywhere goes on, and no shares of two attempts meet.
#[test]
fn a_worker_goes_on_where_the_last_one_ended() {
    let run = Run {
        kind: "sum",
        grouped: Some(Role::Receiver),
        to: To::Both,
        ..Run::default()
    };
    let sides = || Sides::new(&run, [rows(0..30), rows(10..45)]);
    let whole = sides();
    let both = whole.agreed();
    let sent = whole
        .work(&both, 0, [u64::MAX; 2])
        .map(|worked| worked.unwrap().traffic.bytes_sent);
    for i in [0, 1] {
        for end in [0, sent[i] / 3, sent[i] * 2 / 3, sent[i] - 1] {
            let sides = sides();
            let both = sides.agreed();
            let mut ends = [u64::MAX; 2];
            ends[i] = end;
            let broken = sides.work(&both, 0, ends);
            assert!(broken.iter().any(Result::is_err));
            drop(both);
            // The drivers are started again, too.
            let both = sides.agreed();
            let worked = sides.work_all(&both);
            assert_eq!(worked[0][0].resumed, worked[0][1].resumed);
            sides.check(&both);
            let all = begun(sides.folders[0].path());
            let sessions: HashSet<_> = all.iter().map(|(_, session)| session).collect();
            assert_eq!(sessions.len(), all.len(), "a session came twice");
        }
    }
}

#[test]
fn shares_of_two_attempts_are_refused_before_anything_is_opened() {
    let run = Run {
        kind: "sum",
        to: To::Both,
        ..Run::default()
    };
    let sides = Sides::new(&run, [rows(0..30), rows(10..45)]);
    let both = sides.agreed();
    sides.work_all(&both);
    let earlier = fs::read(sides.found(0, 0)).unwrap();
    // The receiver lost its shares of a shard: both make new ones.
    fs::remove_file(sides.found(1, 0)).unwrap();
    let again = sides.work_all(&both);
    assert_eq!((again[0][0].shards, again[0][0].resumed), (3, 2));
    assert_ne!(fs::read(sides.found(0, 0)).unwrap(), earlier);
    fs::write(sides.found(0, 0), earlier).unwrap();
    for result in Sides::open(&both) {
        let error = result.unwrap_err();
        let Error::Protocol(volery_psi::Error::Channel(ChannelError::Mismatch { field, .. })) =
            error
        else {
            panic!("{error}");
        };
        assert_eq!(field, SHARES);
    }
    // Workers that meet again notice it, too.
    let again = sides.work_all(&both);
    assert_eq!(again[0][1].resumed, 2);
    sides.check(&both);
    // A shard is missing, or cut short.
    let whole = fs::read(sides.found(1, 1)).unwrap();
    for length in [0, 31, whole.len() - 1] {
        fs::write(sides.found(1, 1), &whole[..length]).unwrap();
        assert!(Sides::open(&both)[1].is_err());
    }
}

/// Totals that are opened again have the same noise; those of another run have another one.
#[test]
fn noise_is_drawn_once_for_a_run() {
    let run = Run {
        kind: "mean",
        to: To::Both,
        epsilon: Some("0.5"),
        delta: Some("0.00000001"),
        minimum: 1,
        ..Run::default()
    };
    let sides = Sides::new(&run, [rows(0..80), rows(10..90)]);
    let both = sides.agreed();
    sides.work_all(&both);
    let opened = || Sides::open(&both).map(Result::unwrap);
    let [sent, received] = opened();
    assert_eq!(sent, received);
    assert_eq!([sent.clone(), received], opened());
    let tables = [&sides.rows[0][..], &sides.rows[1][..]];
    let expected = run.expected(Role::Sender, tables);
    let off = sent[0].sum.unwrap() - expected[0].sum.unwrap();
    assert!(off != 0 && off.abs() < 100_000_000, "{off}");
    let other = Sides::new(&run, [rows(0..80), rows(10..90)]);
    let both = other.agreed();
    other.work_all(&both);
    assert_ne!(Sides::open(&both).map(Result::unwrap)[0], sent);
}

#[test]
fn all_shards_have_messages_of_equal_lengths() {
    let run = Run {
        kind: "mean",
        grouped: Some(Role::Sender),
        ..Run::default()
    };
    let sides = Sides {
        workers: 4,
        shards: 4,
        ..Sides::new(&run, [rows(0..61), rows(40..75)])
    };
    let worked = sides.work_all(&sides.agreed());
    let traffic = |worked: &[Worked; 2]| worked.map(|one| one.traffic);
    for other in &worked {
        assert_eq!(traffic(other), traffic(&worked[0]));
    }
}

#[test]
fn drivers_that_differ_say_so() {
    let run = Run {
        kind: "sum",
        minimum: 5,
        ..Run::default()
    };
    let sides = Sides::new(&run, [rows(0..9), rows(3..12)]);
    let other = Sides {
        run: Run {
            minimum: 6,
            ..run.clone()
        },
        ..Sides::new(&run, [rows(0..9), rows(3..12)])
    };
    let go = |sides: &Sides, i: usize| {
        let side = sides.run.read(ROLES[i], &table(&sides.rows[i])).unwrap();
        let organisations = ["a", "b"].map(str::to_owned);
        let (settings, keys) = (side.settings(), &side.summary().key_description);
        let terms = Terms::for_totals(settings, keys, "test", 2, organisations).unwrap();
        let mut driver = Driver::new(side, sides.folders[i].path()).unwrap();
        move |channel: &mut Channel| driver.agree(terms, None, channel, &mut ()).map(drop)
    };
    let (sent, received) = run_two_unchecked(go(&sides, 0), go(&other, 1));
    for result in [sent, received] {
        let error = result.unwrap_err();
        assert!(error.to_string().contains("--minimum"), "{error}");
    }
}
