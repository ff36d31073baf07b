//! Runs that several workers on each side share.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::Path;
use std::sync::Mutex;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray as _;
use volery_channel::{
    Channel, Error as ChannelError, Hello, Role, handshake, run_two_parties, run_two_unchecked,
};
use volery_cluster::driver::{self, ClusterTable, ResumeState};
use volery_cluster::staging::{Items, found, shards};
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{
    ClusterStats, MANIFEST, Manifest, Store, WorkerSettings, WorkerStats, take_back,
};
use volery_matching::{ATTEMPTS, Error, Operation, Outcome, PreparedTable, ProtocolChoice};
use volery_primitives::ro::RandomOracle;
use volery_tables::{Duplicates, EmptyKeys, Reading, Rule, Table};

use crate::common::{RULES, Row, Run, begun, forget_begun, kept, rows, run_cut, table, written};

const ROLES: [Role; 2] = [Role::Sender, Role::Receiver];

const LOOKUP: Run = Run {
    verb: Operation::Lookup,
    name: ProtocolChoice::Vole,
    security: None,
    both: false,
    rules: 2,
    duplicates: Duplicates::Keep,
};

/// The terms that a side brings.
#[derive(Clone, Copy)]
pub(crate) struct Request {
    run: &'static str,
    workers: u32,
    shards: Option<u32>,
}

const REQUEST: Request = ask(2, Some(5));

pub(crate) const fn ask(workers: u32, shards: Option<u32>) -> Request {
    let run = "test";
    Request { run, workers, shards }
}

/// Messages that are not cut.
pub(crate) const WHOLE: [u64; 2] = [u64::MAX; 2];

/// A worker of each side; the messages of each are cut after so many bytes.
pub(crate) fn work_pair(
    workers: [Worker<'_>; 2],
    ends: [u64; 2],
) -> [Result<WorkerStats, Error>; 2] {
    let [one, other] = &workers;
    let run = |worker: &Worker<'_>, channel: &mut Channel| worker.run(channel, &mut ());
    run_cut(ends, |channel| run(one, channel), |channel| run(other, channel)).0.into()
}

fn terms(run: &Run, role: Role, side: &str, asked: Request) -> WorkerSettings {
    let organisations = ["the sender", "the receiver"].map(str::to_owned);
    WorkerSettings::new(&run.settings(role), side, asked.run, asked.workers, organisations).unwrap()
}

/// A side whose table is in a cluster agrees with the other side's driver.
pub(crate) fn agree_by(
    run: &Run,
    role: Role,
    facts: &ClusterTable,
    asked: Request,
    channel: &mut Channel,
) -> Result<Manifest, Error> {
    let settings = run.settings(role);
    let terms = (terms(run, role, &facts.keys, asked), asked.shards);
    let secrets = driver::secrets(&settings, facts, None)?;
    let known = (facts, &secrets);
    let keep = &mut |_: &Manifest| Ok(());
    driver::agree(&settings, known, terms, ResumeState::default(), channel, keep)
}

/// The first message of a receiver that asks for two workers, and in these words for shards.
pub(crate) fn hello_of_receiver(run: &Run, shards: &str) -> Hello {
    let mut hello = run.settings(Role::Receiver).hello("keys");
    let fields = [("--run", "test"), ("--workers", "2"), ("--shards", shards)];
    hello.fields.extend(fields.map(|(name, value)| (name, value.to_owned())));
    hello
}

/// A table of nine keys, as a driver has it.
pub(crate) fn nine_keys() -> ClusterTable {
    ClusterTable {
        keys: "keys".to_owned(),
        sizes: vec![9],
        payload: None,
        digest: String::new(),
        rows: 9,
    }
}

fn channel_error(error: Error) -> ChannelError {
    match error {
        Error::Protocol(volery_psi::Error::Channel(error)) => error,
        other => panic!("{other}"),
    }
}

fn differs(error: Error, in_field: &str) {
    match channel_error(error) {
        ChannelError::Mismatch { field, .. } => assert_eq!(field, in_field),
        other => panic!("{other}"),
    }
}

fn outcome(side: PreparedTable, manifest: &Manifest) -> Result<Outcome, Error> {
    driver::into_outcome(side, manifest, &ClusterStats::default())
}

/// Two sides, each with a folder.
struct Sides {
    run: Run,
    rows: [Vec<Row>; 2],
    tables: [Table; 2],
    folders: [tempfile::TempDir; 2],
}

impl Sides {
    fn new(run: Run, rows: [Vec<Row>; 2]) -> Self {
        Self {
            run,
            tables: [table(&rows[0]), table(&rows[1])],
            rows,
            folders: [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()],
        }
    }

    fn folder(&self, i: usize) -> &Path {
        self.folders[i].path()
    }

    fn read(&self, i: usize) -> PreparedTable {
        take_back(self.folder(i)).unwrap();
        let local = kept(self.folder(i), 1);
        self.run.read(ROLES[i], &self.tables[i], &local).unwrap()
    }

    /// Both drivers.
    fn agree(&self, asked: [Request; 2]) -> [Result<(PreparedTable, Manifest), Error>; 2] {
        let driver = |i: usize| {
            let mut side = self.read(i);
            move |channel: &mut Channel| {
                let terms = terms(&self.run, ROLES[i], side.key_description(), asked[i]);
                let terms = (terms, asked[i].shards);
                let manifest = driver::agree_on_workers(&mut side, terms, channel, &mut ())?;
                Ok((side, manifest))
            }
        };
        let (sent, received) = run_two_parties(driver(0), driver(1));
        [sent, received]
    }

    /// One worker of each side; what each sends is cut after so many bytes.
    fn work(
        &self,
        manifests: [&Manifest; 2],
        [rule, worker]: [u32; 2],
        ends: [u64; 2],
    ) -> [Result<WorkerStats, Error>; 2] {
        let new = |i: usize| {
            let place = Place::Folder(self.folder(i));
            Worker::new(manifests[i], ROLES[i], rule as usize, worker, 1, place).unwrap()
        };
        work_pair([new(0), new(1)], ends)
    }

    /// All workers of all rules, and the outcomes.
    fn finish(&self, asked: Request) -> [Outcome; 2] {
        let [sender, receiver] = self.agree([asked; 2]).map(Result::unwrap);
        let manifests = [&sender.1, &receiver.1];
        assert_eq!(manifests[0].id(), manifests[1].id());
        for rule in 0..self.run.rules as u32 {
            for worker in 0..asked.workers {
                let [sent, received] = self.work(manifests, [rule, worker], WHOLE);
                assert_eq!(sent.unwrap().shards, received.unwrap().shards);
            }
        }
        [sender, receiver].map(|(side, manifest)| outcome(side, &manifest).unwrap())
    }

    fn assert_exact(&self, outcome: &Outcome) {
        let expected = self.run.expected(&self.rows[0], &self.rows[1], true);
        assert_eq!(written(outcome, &self.tables[1], true), expected);
    }
}

#[test]
fn workers_find_what_one_connection_finds() {
    for (run, keys, asked) in [
        (LOOKUP, [0..30, 20..45], REQUEST),
        // Fewer keys than shards, and shards than workers.
        (LOOKUP, [0..2, 1..3], ask(7, Some(5))),
        (LOOKUP, [0..0, 1..9], REQUEST),
        (LOOKUP, [0..9, 0..0], REQUEST),
        (LOOKUP, [0..40, 10..50], ask(2, None)),
        (LOOKUP, [0..40, 10..50], ask(4, Some(9))),
        (Run { verb: Operation::Psi, rules: 3, ..LOOKUP }, [0..30, 5..20], ask(1, Some(5))),
    ] {
        let sides = Sides::new(run, keys.map(rows));
        let [sent, received] = sides.finish(asked);
        sides.assert_exact(&received);
        assert!(sent.matches.is_none());
        assert_eq!(sent.sizes, received.sizes);
    }
}

#[test]
fn both_sides_get_rows() {
    let run = Run { verb: Operation::Psi, both: true, ..LOOKUP };
    let sides = Sides::new(run, [rows(0..30), rows(20..45)]);
    let [sent, received] = sides.finish(REQUEST);
    sides.assert_exact(&received);
    let of_sender = sides.run.join(&sides.rows[0], &sides.rows[1]).1;
    let (found, _) = sent.matches.unwrap().rows_and_rules().unwrap();
    let expected = (0..).zip(&of_sender).filter(|(_, matches)| **matches);
    assert_eq!(found, expected.map(|(row, _)| row).collect::<Vec<u64>>());
}

#[test]
fn a_worker_goes_on_where_the_last_one_ended() {
    let sides = Sides::new(LOOKUP, [rows(0..30), rows(20..45)]);
    let [sender, receiver] = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let manifests = [&sender.1, &receiver.1];
    let whole = sides.work(manifests, [0, 1], WHOLE).map(Result::unwrap);
    let sent = whole.map(|worked| worked.traffic.bytes_sent);
    for i in [0, 1] {
        // A shard is begun twice at most in each case.
        for step in 0..10 {
            let sides = Sides::new(LOOKUP, [rows(0..30), rows(20..45)]);
            let [sender, receiver] = sides.agree([REQUEST; 2]).map(Result::unwrap);
            let manifests = [&sender.1, &receiver.1];
            let mut ends = WHOLE;
            ends[i] = sent[i] * step / 10;
            let broken = sides.work(manifests, [0, 1], ends);
            assert!(broken.iter().any(Result::is_err));
            drop((sender, receiver));
            // The drivers are started again, too.
            let [_, received] = sides.finish(REQUEST);
            sides.assert_exact(&received);
            assert!(received.attempts <= 2);
            let begun = begun(sides.folder(1));
            let different: HashSet<_> = begun.iter().map(|(_, session)| session).collect();
            assert_eq!(different.len(), begun.len(), "a session came twice");
        }
    }
}

#[test]
fn drivers_that_differ_say_so() {
    for (theirs, field) in [
        (Request { run: "other", ..REQUEST }, "--run"),
        (ask(3, Some(5)), "--workers"),
        (ask(2, Some(6)), "--shards"),
        (ask(2, None), "--shards"),
    ] {
        let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
        for result in sides.agree([REQUEST, theirs]) {
            differs(result.map(drop).unwrap_err(), field);
        }
    }
}

#[test]
fn workers_that_differ_say_so() {
    let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    let [sender, receiver] = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let others = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    let [_, other] = others.agree([REQUEST; 2]).map(Result::unwrap);
    let meet = |manifests: [&Manifest; 2], [left, right]: [[u32; 2]; 2]| {
        let worker = |i: usize, [rule, worker]: [u32; 2]| {
            let place = Place::Folder(sides.folder(i));
            Worker::new(manifests[i], ROLES[i], rule as usize, worker, 1, place).unwrap()
        };
        work_pair([worker(0, left), worker(1, right)], WHOLE)
    };
    let pair =
        |manifests, workers| meet(manifests, workers).map(|result| result.map(drop).unwrap_err());
    // The folder has another manifest.
    let place = Place::Folder(sides.folder(1));
    let refused = Worker::new(&other.1, Role::Receiver, 0, 0, 1, place).map(drop);
    assert!(matches!(refused.unwrap_err(), Error::Manifest(_)));
    let strange = Objects::default();
    let place = Place::Folder(sides.folder(0));
    let one = Worker::new(&sender.1, Role::Sender, 0, 0, 1, place).unwrap();
    let place = Place::Store(&strange);
    let two = Worker::new(&other.1, Role::Receiver, 0, 0, 1, place).unwrap();
    for result in work_pair([one, two], WHOLE) {
        differs(result.unwrap_err(), MANIFEST);
    }
    for error in pair([&sender.1, &receiver.1], [[0, 0], [0, 1]]) {
        differs(error, "--worker");
    }
    // A sender at a later rule has left, though results are missing; a receiver at a later one has
    // all of them.
    let [sent, received] = meet([&sender.1, &receiver.1], [[1, 0], [0, 0]]);
    assert!(matches!(channel_error(sent.unwrap_err()), ChannelError::Disconnected));
    let error = channel_error(received.unwrap_err());
    assert!(matches!(error, ChannelError::PeerMisbehaved(_)), "{error}");
    let [sent, received] = meet([&sender.1, &receiver.1], [[0, 0], [1, 0]]);
    assert_eq!(sent.unwrap().shards, 0);
    assert!(matches!(channel_error(received.unwrap_err()), ChannelError::Disconnected));
    // No such worker, no such rule; and the shards of the rule before are not finished.
    for (rule, worker) in [(0, 2), (2, 0)] {
        let place = Place::Folder(sides.folder(0));
        let refused = Worker::new(&sender.1, Role::Sender, rule, worker, 1, place).map(drop);
        assert!(matches!(refused.unwrap_err(), Error::Manifest(_)));
    }
    let [_, received] = sides.work([&sender.1, &receiver.1], [1, 0], WHOLE);
    assert!(matches!(received.unwrap_err(), Error::Manifest(_)));
}

#[test]
fn a_run_with_workers_is_not_another_run() {
    let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    drop(sides.agree([REQUEST; 2]).map(Result::unwrap));
    let side = sides.read(1);
    let other = ask(3, Some(5));
    let terms = terms(&sides.run, Role::Receiver, side.key_description(), other);
    let refused = driver::manifest_of(&side, &terms).map(drop).unwrap_err();
    assert!(refused.to_string().contains("number of workers"), "{refused}");
    let (sent, received) = run_two_parties(
        |channel| sides.read(0).run(channel, &mut ()).map(drop),
        |channel| side.run(channel, &mut ()).map(drop),
    );
    for result in [sent, received] {
        assert!(matches!(result.unwrap_err(), Error::OtherRun { .. }));
    }
}

/// The contents of a folder, by name.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    names
}

/// Workers on other machines see a folder of their own and the rows that matched, nothing else; the
/// results are those of workers that see the whole folder of the run.
#[cfg(unix)]
#[test]
fn each_worker_gets_its_own_shards_and_no_secret() {
    let sides = Sides::new(LOOKUP, [rows(0..30), rows(20..45)]);
    let both = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let handed = [0, 1].map(|i| driver::hand_out(&both[i].0, &both[i].1).unwrap());
    let machines = [0, 1].map(|_| tempfile::tempdir().unwrap());
    let place = |i: usize, worker: usize| machines[i].path().join(format!("{worker}"));
    for i in [0, 1] {
        assert_eq!(
            names(sides.folder(i)),
            ["driver.json", "matched", "run.json", "worker-0", "worker-1"]
        );
        let secrets = std::fs::read_to_string(sides.folder(i).join("driver.json")).unwrap();
        let secrets: serde_json::Value = serde_json::from_str(&secrets).unwrap();
        for (worker, folder) in handed[i].iter().enumerate() {
            let shards = [&["0", "2", "4"][..], &["1", "3"][..]][worker];
            let parts =
                ["0", "1"].map(|rule| shards.iter().map(move |s| format!("part-{rule}-{s}")));
            let mut expected: Vec<_> = parts.into_iter().flatten().collect();
            expected.extend(["matched", "run.json"].map(str::to_owned));
            expected.sort();
            assert_eq!(names(folder), expected);
            let manifest = std::fs::read_to_string(folder.join("run.json")).unwrap();
            for secret in ["digest", "opening", "noise"] {
                assert!(!manifest.contains(secret), "{secret}");
            }
            assert!(!manifest.contains(secrets["digest"].as_str().unwrap()));
            // Another machine, which sees the two folders alone.
            std::fs::rename(folder, place(i, worker)).unwrap();
            let matched = place(i, worker).join("matched");
            std::fs::remove_dir(&matched).unwrap();
            std::os::unix::fs::symlink(sides.folder(i).join("matched"), matched).unwrap();
        }
    }
    for rule in 0..2 {
        for worker in 0..2 {
            let new = |i: usize| {
                let folder = place(i, worker);
                let manifest = std::fs::read(folder.join("run.json")).unwrap();
                (folder, Manifest::from_json(&manifest).unwrap())
            };
            let seen = [new(0), new(1)];
            let both = [0, 1].map(|i| {
                let (folder, manifest) = &seen[i];
                let place = Place::Folder(folder);
                Worker::new(manifest, ROLES[i], rule, worker as u32, 1, place).unwrap()
            });
            let [sent, received] = work_pair(both, WHOLE).map(Result::unwrap);
            assert_eq!(sent.shards, received.shards);
        }
    }
    drop(both);
    for i in [0, 1] {
        for worker in [0, 1] {
            let matched = place(i, worker).join("matched");
            std::fs::remove_file(matched).unwrap();
            let back = sides.folder(i).join(format!("worker-{worker}"));
            std::fs::rename(place(i, worker), back).unwrap();
        }
    }
    let received = sides.read(1);
    let all = names(sides.folder(1));
    assert!(!all.iter().any(|name| name.starts_with("worker-")), "{all:?}");
    let terms = terms(&LOOKUP, Role::Receiver, received.key_description(), REQUEST);
    let manifest = driver::manifest_of(&received, &terms).unwrap().unwrap();
    let outcome = outcome(received, &manifest).unwrap();
    sides.assert_exact(&outcome);
}

/// A folder is not taken from a worker that runs in it.
#[test]
fn a_driver_takes_nothing_back_from_a_worker_that_runs() {
    let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    let [sender, _] = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let handed = driver::hand_out(&sender.0, &sender.1).unwrap();
    let place = Place::Folder(&handed[1]);
    let worker = Worker::new(&sender.1, Role::Sender, 0, 1, 1, place).unwrap();
    drop(sender.0);
    let refused = take_back(sides.folder(0));
    assert!(matches!(refused, Err(Error::OtherRun { .. })));
    drop(worker);
    // Nor does a driver begin that left it there: what the worker began would not count.
    let mut side = sides.run.read(ROLES[0], &sides.tables[0], &kept(sides.folder(0), 1)).unwrap();
    let terms = (terms(&LOOKUP, ROLES[0], side.key_description(), REQUEST), REQUEST.shards);
    let (refused, _) = run_two_unchecked(
        |channel| driver::agree_on_workers(&mut side, terms, channel, &mut ()),
        |channel| channel.recv(&mut [0]),
    );
    assert!(matches!(refused, Err(Error::OtherRun { .. })));
    drop(side);
    // A folder that was there before stays.
    let other = sides.folder(0).join("worker-7");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("part-0-1"), "somebody's").unwrap();
    drop(sides.read(0));
    assert_eq!(names(&other), ["part-0-1"]);
    assert!(!handed[1].exists());
}

#[test]
fn policies_for_duplicates_hold_in_shards() {
    for duplicates in [Duplicates::Keep, Duplicates::Dedup] {
        let run = Run { duplicates, ..LOOKUP };
        let twice = [rows(0..9), rows(3..12), rows(0..6)].concat();
        let sides = Sides::new(run, [twice.clone(), twice]);
        let [_, received] = sides.finish(REQUEST);
        sides.assert_exact(&received);
    }
}

#[test]
fn a_result_that_is_missing_is_an_error() {
    let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    let [sender, receiver] = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let manifests = [&sender.1, &receiver.1];
    for rule in 0..2 {
        for worker in 0..2 {
            for result in sides.work(manifests, [rule, worker], WHOLE) {
                result.unwrap();
            }
        }
    }
    std::fs::remove_file(sides.folder(1).join("found-1-3")).unwrap();
    let (side, manifest) = receiver;
    let refused = outcome(side, &manifest).map(drop);
    assert!(matches!(refused.unwrap_err(), Error::OtherRun { .. }));
}

/// The items that fill the shards of a small set can test keys: a peer may not ask for any number.
#[test]
fn too_many_shards_for_the_sets_are_refused() {
    let run = Run { verb: Operation::Psi, rules: 1, ..LOOKUP };
    for (shards, is_good) in [(16_u32, true), (17, false), (1 << 14, false)] {
        let (agreed, _) = run_two_unchecked(
            |channel| agree_by(&run, Role::Sender, &nine_keys(), ask(2, None), channel),
            |channel| -> Result<(), ChannelError> {
                let session = handshake(channel, &hello_of_receiver(&run, "by size"), [0; 32])?;
                channel.send(&[0; 33])?;
                channel.send(&shards.to_le_bytes())?;
                channel.send(&[7; 32])?;
                channel.recv(&mut [0; 37 + 32])?;
                let share = [5; 32];
                let mut commitment = RandomOracle::new("volery matching: commitment");
                commitment.absorb(session.as_bytes()).absorb(b"receiver").absorb(&share);
                channel.send(&commitment.finish32())?;
                channel.recv(&mut [0; 32])?;
                channel.send(&share)?;
                channel.recv(&mut [0; 32])?;
                channel.send(&9_u64.to_le_bytes())?;
                channel.recv(&mut [0; 8])?;
                channel.send(&[0x57])?;
                channel.recv(&mut [0])
            },
        );
        match agreed {
            Ok(manifest) => assert!(is_good && manifest.buckets() == shards),
            Err(error) => {
                assert!(!is_good, "{error}");
                let error = channel_error(error);
                assert!(matches!(error, ChannelError::PeerMisbehaved(_)), "{error}");
            }
        }
    }
}

/// A store in memory, with the shards of one side.
#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) shards: HashMap<(usize, u32), RecordBatch>,
    pub(crate) objects: Mutex<BTreeMap<String, Vec<u8>>>,
}

/// The rows of each shard of the first rule.
pub(crate) fn divided(
    manifest: &Manifest,
    count: u32,
    rows: &RecordBatch,
) -> HashMap<(usize, u32), RecordBatch> {
    let places = shards(manifest.key(), count, rows.column_by_name("item").unwrap()).unwrap();
    let shard = |shard| {
        let own = (0..).zip(&places).filter_map(|(row, place)| (*place == shard).then_some(row));
        let own = own.collect::<arrow_array::UInt32Array>();
        ((0, shard), arrow_select::take::take_record_batch(rows, &own).unwrap())
    };
    (0..count).map(shard).collect()
}

impl Store for Objects {
    fn shard(&self, rule: usize, shard: u32) -> io::Result<Vec<RecordBatch>> {
        Ok(self.shards.get(&(rule, shard)).cloned().into_iter().collect())
    }

    fn list(&self, prefix: &str) -> io::Result<Vec<String>> {
        let objects = self.objects.lock().unwrap();
        let names = objects.keys().filter(|name| name.starts_with(prefix));
        Ok(names.cloned().collect())
    }

    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.objects.lock().unwrap().entry(name.to_owned()) {
            Entry::Occupied(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Entry::Vacant(place) => {
                place.insert(bytes.to_vec());
                Ok(())
            }
        }
    }
}

/// The work of a cluster: items, digest and number of keys of one side, for one rule.
fn staged(run: &Run, i: usize, rows: &[Row]) -> (Items, RecordBatch) {
    let answers = run.verb == Operation::Lookup && i == 0;
    let values: &[&str] = if answers { &["n", "t"] } else { &[] };
    let reading = Reading {
        rules: RULES[..run.rules].iter().map(|rule| Rule::parse(rule).unwrap()).collect(),
        values: values.iter().map(|&name| name.to_owned()).collect(),
        empty_keys: EmptyKeys::Skip,
        ..Reading::default()
    };
    let table = table(rows);
    let mut items = Items::new(table.schema().clone(), reading).unwrap();
    let staged = items.batch(&table).unwrap();
    (items, staged)
}

#[test]
fn a_cluster_on_both_sides() {
    let run = Run { rules: 1, ..LOOKUP };
    let all = [rows(0..30), rows(20..45)];
    let sides = [0, 1].map(|i| staged(&run, i, &all[i]));
    let driver = |i: usize| {
        let (items, staged) = &sides[i];
        let longest = staged.column_by_name("payload").map_or(0, |payload| {
            let payload = payload.as_binary::<i32>();
            payload.iter().map(|one| one.unwrap().len()).max().unwrap_or(0)
        });
        let facts = ClusterTable {
            keys: items.description().to_owned(),
            sizes: vec![staged.num_rows() as u64],
            payload: items.payload().map(|line| (line.to_owned(), longest)),
            digest: format!("digest of {i}"),
            rows: staged.num_rows() as u64,
        };
        move |channel: &mut Channel| agree_by(&run, ROLES[i], &facts, REQUEST, channel)
    };
    let (sent, received) = run_two_parties(driver(0), driver(1));
    let manifests = [sent.unwrap(), received.unwrap()];
    assert_eq!(manifests[0].id(), manifests[1].id());
    assert_eq!(manifests[0].sizes(), [[30, 25]]);

    let stores = [0, 1].map(|i| {
        let staged = &sides[i].1;
        let columns = [("item", "item_0"), ("payload", "payload")].into_iter();
        let columns =
            columns.filter_map(|(name, of)| Some((name, staged.column_by_name(of)?.clone())));
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        Objects { shards: divided(&manifests[i], 5, &rows), ..Objects::default() }
    });
    for worker in 0..2 {
        let new = |i: usize, attempt| {
            let place = Place::Store(&stores[i]);
            Worker::new(&manifests[i], ROLES[i], 0, worker, attempt, place).unwrap()
        };
        let work = |ends, attempt| work_pair([new(0, attempt), new(1, attempt)], ends);
        assert!(work([u64::MAX, 60_000], 1).iter().any(Result::is_err));
        let [sent, received] = work(WHOLE, 2).map(Result::unwrap);
        assert_eq!(sent.resumed, received.resumed);
        for i in [0, 1] {
            assert!(new(i, 3).is_complete().unwrap());
        }
    }
    // The receiver's rows by their items.
    let objects = stores[1].objects.lock().unwrap();
    let line = sides[0].0.payload();
    let mut matches = HashMap::new();
    for (_, bytes) in objects.iter().filter(|(name, _)| name.starts_with("found/")) {
        let (rows, refused) = found(bytes, line).unwrap();
        assert_eq!(refused, 0);
        let items = rows.column_by_name("item").unwrap().as_fixed_size_binary();
        let texts = rows.column_by_name("t").unwrap().as_string::<i32>();
        for i in 0..rows.num_rows() {
            matches.insert(items.value(i).to_vec(), texts.value(i).to_owned());
        }
    }
    let items = sides[1].1.column_by_name("item_0").unwrap();
    let items = items.as_fixed_size_binary();
    for (i, found) in run.join(&all[0], &all[1]).0.iter().enumerate() {
        let expected = found.map(|(_, row)| all[0][row].text.clone());
        assert_eq!(matches.get(items.value(i)), expected.as_ref());
    }
    let names = |kind: &str| objects.keys().filter(|name| name.starts_with(kind)).count();
    assert_eq!((names("done/"), names("found/"), names("complete/")), (5, 5, 2));
    assert!(found(&[0; 19], None).is_err());
}

#[test]
fn a_cluster_begins_a_shard_three_times() {
    let sides = Sides::new(LOOKUP, [rows(0..9), rows(3..12)]);
    let [sender, receiver] = sides.agree([REQUEST; 2]).map(Result::unwrap);
    let store = Objects::default();
    let mut results = Vec::new();
    for attempt in 1..=u64::from(ATTEMPTS) + 1 {
        let sent = Worker::new(&sender.1, Role::Sender, 0, 0, attempt, Place::Store(&store));
        let place = Place::Folder(sides.folder(1));
        let received = Worker::new(&receiver.1, Role::Receiver, 0, 0, attempt, place);
        let (sent, received) = (sent.unwrap(), received.unwrap());
        // The receiver's folder knows nothing of the attempts that broke.
        forget_begun(sides.folder(1));
        let [sent, _] = work_pair([sent, received], [1000, u64::MAX]);
        results.push(sent.unwrap_err());
    }
    let last = results.pop().unwrap();
    assert!(matches!(last, Error::TooManyAttempts { .. }), "{last}");
    assert!(results.iter().all(|error| !matches!(error, Error::TooManyAttempts { .. })));
    assert_eq!(store.list("begun/").unwrap().len(), ATTEMPTS as usize);
}
