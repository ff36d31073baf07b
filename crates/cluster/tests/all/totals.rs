//! Totals by several workers of each side.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{ArrayRef, FixedSizeBinaryArray, Int32Array, Int64Array, RecordBatch};
use volery_channel::{Channel, Error as ChannelError, Role, run_two_unchecked};
use volery_cluster::driver::{self, ClusterTable, ResumeState};
use volery_cluster::staging::Items;
use volery_cluster::totals::{self, Driver, Keep, SHARES};
use volery_cluster::worker::{Place, Worker};
use volery_cluster::{Manifest, Secrets, WorkerSettings, WorkerStats};
use volery_matching::Error;
use volery_matching::steps::{self, LocalManifest};
use volery_matching::totals::{PreparedTable, Recipient, Settings, Total};
use volery_tables::{EmptyKeys, Reading, Rule};
use zeroize::Zeroizing;

use crate::common::run_cut;
use crate::totals_common::*;
use crate::workers::{Objects, WHOLE, divided, work_pair};

struct Sides {
    run: Run,
    rows: [Vec<Row>; 2],
    folders: [tempfile::TempDir; 2],
    workers: u32,
    shards: u32,
}

type Agreement = (Driver, Manifest);

fn terms_of(settings: &Settings, keys: &str, workers: u32) -> WorkerSettings {
    let organisations = ["the sender", "the receiver"].map(str::to_owned);
    WorkerSettings::new(settings, keys, "test", workers, organisations).unwrap()
}

fn terms(side: &PreparedTable, workers: u32) -> WorkerSettings {
    terms_of(side.settings(), &side.summary().key_description, workers)
}

type Opened = Result<Vec<Total>, Error>;

fn open_by((driver, manifest): &Agreement) -> impl FnOnce(&mut Channel) -> Opened + Send {
    move |channel| driver.open(manifest, channel, &mut ())
}

/// The totals of both sides.
fn both<T: Send>(
    one: impl FnOnce(&mut Channel) -> Result<T, Error> + Send,
    other: impl FnOnce(&mut Channel) -> Result<T, Error> + Send,
) -> [T; 2] {
    let (sent, received) = run_two_unchecked(one, other);
    [sent.unwrap(), received.unwrap()]
}

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
    fn agree(&self) -> [Result<Agreement, Error>; 2] {
        let go = |i: usize| {
            let side = self.run.read(ROLES[i], &table(&self.rows[i])).unwrap();
            let terms = terms(&side, self.workers);
            let mut driver = Driver::new(side, self.folders[i].path()).unwrap();
            move |channel: &mut Channel| {
                let manifest = driver.agree(terms, Some(self.shards), channel, &mut ())?;
                Ok((driver, manifest))
            }
        };
        let (sent, received) = run_two_unchecked(go(0), go(1));
        [sent, received]
    }

    fn agreed(&self) -> [Agreement; 2] {
        let both = self.agree().map(Result::unwrap);
        for (role, (driver, manifest)) in ROLES.into_iter().zip(&both) {
            // Workers have the settings from the manifest.
            let read = manifest.totals(role).unwrap().hello("k");
            assert_eq!(read.fields, driver.side().settings().hello("k").fields);
        }
        both
    }

    /// One worker of each side; what each sends is cut after so many bytes.
    fn work(
        &self,
        both: &[Agreement; 2],
        worker: u32,
        ends: [u64; 2],
    ) -> [Result<WorkerStats, Error>; 2] {
        let new = |i: usize| {
            let place = Place::Folder(self.folders[i].path());
            Worker::new(&both[i].1, ROLES[i], 0, worker, 1, place).unwrap()
        };
        work_pair([new(0), new(1)], ends)
    }

    /// The result of each worker of both sides.
    fn work_all(&self, both: &[Agreement; 2]) -> Vec<[WorkerStats; 2]> {
        let all = 0..self.workers;
        all.map(|worker| self.work(both, worker, WHOLE).map(Result::unwrap)).collect()
    }

    fn open(both: &[Agreement; 2]) -> [Result<Vec<Total>, Error>; 2] {
        run_two_unchecked(open_by(&both[0]), open_by(&both[1])).into()
    }

    fn check(&self, both: &[Agreement; 2]) {
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
            assert!(driver.opened().unwrap().unwrap().told);
            assert!(driver.finish().unwrap());
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
                to: [Recipient::Sender, Recipient::Receiver, Recipient::Both][number % 3],
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
        let run = Run { kind: "mean", to: Recipient::Both, minimum, ..Run::default() };
        Sides::new(&run, [rows(sender), rows(receiver)]).check_all();
    }
}

#[test]
fn shares_of_two_attempts_are_refused_before_anything_is_opened() {
    let run = Run { kind: "sum", to: Recipient::Both, ..Run::default() };
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

/// A side that cannot keep its totals comes back for them, and finds the other one's shares.
#[test]
fn a_side_keeps_its_folder_until_the_other_has_its_totals() {
    for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
        for failing in [0, 1] {
            let run = Run { kind: "sum", to, ..Run::default() };
            let sides = Sides::new(&run, [rows(0..30), rows(10..45)]);
            let both = sides.agreed();
            sides.work_all(&both);
            // No file of that name can be made.
            let place = sides.folders[failing].path().join("totals.json");
            fs::create_dir(&place).unwrap();
            let results = Sides::open(&both);
            assert!(matches!(results[failing], Err(Error::Work { .. })));
            assert!(results[1 - failing].is_err());
            fs::remove_dir(&place).unwrap();
            let opened = both[1 - failing].0.opened().unwrap();
            assert!(!opened.unwrap().told, "{to:?} {failing}");
            // The drivers are started again, and leave their folders as they are.
            drop(both);
            for (driver, _) in sides.agreed() {
                assert!(!driver.finish().unwrap());
            }
            let both = sides.agreed();
            sides.check(&both);
            for (driver, _) in both {
                assert!(driver.finish().unwrap());
            }
        }
    }
}

/// A side without totals notes that the other one has its own before it says so.
#[test]
fn a_side_without_totals_speaks_last() {
    for (to, gets) in [(Recipient::Sender, 0), (Recipient::Receiver, 1)] {
        let run = Run { kind: "count", to, ..Run::default() };
        let sides = Sides::new(&run, [rows(0..9), rows(3..12)]);
        let both = sides.agreed();
        sides.work_all(&both);
        // No file of that name can be made.
        let place = sides.folders[1 - gets].path().join("totals.told");
        fs::create_dir(&place).unwrap();
        assert!(Sides::open(&both).iter().all(Result::is_err));
        let opened = both[gets].0.opened().unwrap();
        assert!(!opened.unwrap().told, "{to:?}");
        fs::remove_dir(&place).unwrap();
        sides.check(&both);
    }
}

/// Wherever the opening breaks: a side that has ended leaves nobody behind who needs its shares.
#[test]
fn an_opening_that_breaks_is_repeated_as_long_as_one_side_needs_it() {
    for to in [Recipient::Sender, Recipient::Receiver, Recipient::Both] {
        let run = Run { kind: "count", to, ..Run::default() };
        let sides = Sides::new(&run, [rows(0..9), rows(3..12)]);
        let both = sides.agreed();
        sides.work_all(&both);
        let open = |ends: [u64; 2]| {
            let (results, sent) = run_cut(ends, open_by(&both[0]), open_by(&both[1]));
            ([results.0, results.1].map(|result| result.is_ok()), sent)
        };
        let (done, sent) = open(WHOLE);
        assert_eq!(done, [true; 2]);
        for i in [0, 1] {
            for less in 1..4 {
                for folder in &sides.folders {
                    for name in ["totals.json", "totals.told"] {
                        // The end may have come before.
                        let _ = fs::remove_file(folder.path().join(name));
                    }
                }
                let mut ends = WHOLE;
                ends[i] = sent[i] - less;
                assert_ne!(open(ends).0, [true; 2]);
                let opened = [0, 1].map(|i| both[i].0.opened().unwrap());
                let has = opened.clone().map(|one| one.is_some());
                let told = opened.map(|one| one.is_some_and(|one| one.told));
                for (side, role) in ROLES.into_iter().enumerate() {
                    let other = 1 - side;
                    // The other one gets none, and ends without this side, or has its own.
                    let gets = to == Recipient::Both
                        || (to == Recipient::Sender) == (role == Role::Receiver);
                    let is_served = if gets { has[other] } else { told[other] };
                    assert!(!told[side] || is_served, "{to:?} {i} {less} {told:?}");
                }
            }
        }
        sides.check(&both);
    }
}

/// A side whose table is in a cluster: distinct items with their values and groups.
struct Cluster {
    settings: Settings,
    facts: ClusterTable,
    items: BTreeMap<Vec<u8>, (i64, i32)>,
    store: Objects,
    secrets: Secrets,
    earlier: Option<Manifest>,
}

const SHARDS: u32 = 5;

impl Cluster {
    fn new(run: &Run, role: Role, rows: &[Row]) -> Self {
        let reading = Reading {
            rules: vec![Rule::parse("k").unwrap()],
            empty_keys: EmptyKeys::Skip,
            ..Reading::default()
        };
        let (settings, table) = (run.settings(role), table(rows));
        let schema = table.schema().clone();
        let mut reader = Items::for_totals(schema, reading, &settings).unwrap();
        let staged = reader.batch(&table).unwrap();
        let column = |name| staged.column_by_name(name);
        let values = column("value").map(|all| all.as_primitive::<Int64Type>());
        let groups = column("group").map(|all| all.as_primitive::<Int32Type>());
        assert_eq!(values.is_some(), settings.column.is_some());
        assert_eq!(groups.is_some(), settings.group_by.is_some());
        let all = column("item_0").unwrap().as_fixed_size_binary();
        let mut items = BTreeMap::new();
        for row in 0..staged.num_rows() {
            let group = groups.map_or(-1, |all| all.value(row));
            let own = items.entry(all.value(row).to_vec()).or_insert((0, group));
            own.0 += values.map_or(0, |all| all.value(row));
        }
        let facts = ClusterTable {
            keys: reader.description().to_owned(),
            sizes: vec![items.len() as u64],
            payload: None,
            digest: format!("digest of {role:?}"),
            rows: staged.num_rows() as u64,
        };
        let secrets = driver::secrets(&settings, &facts, None).unwrap();
        let again = driver::secrets(&settings, &facts, Some(&secrets)).unwrap();
        assert_eq!(again, secrets);
        Self { settings, facts, items, store: Objects::default(), secrets, earlier: None }
    }

    fn agree(&mut self, channel: &mut Channel) -> Result<(), Error> {
        let terms = terms_of(&self.settings, &self.facts.keys, 2);
        let earlier = ResumeState { manifest: self.earlier.as_ref(), begun: false };
        let mut kept = None;
        let keep = &mut |manifest: &Manifest| {
            kept = Some(manifest.clone());
            Ok(())
        };
        let (known, terms) = ((&self.facts, &self.secrets), (terms, Some(SHARDS)));
        let manifest = driver::agree(&self.settings, known, terms, earlier, channel, keep)?;
        assert_eq!(kept.as_ref(), Some(&manifest));
        let items = FixedSizeBinaryArray::try_from_iter(self.items.keys());
        let values: Int64Array = self.items.values().map(|(value, _)| *value).collect();
        let groups: Int32Array = self.items.values().map(|(_, group)| *group).collect();
        let mut columns: Vec<(_, ArrayRef)> = vec![("item", Arc::new(items.unwrap()))];
        if self.settings.column.is_some() {
            columns.push(("value", Arc::new(values)));
        }
        if self.settings.group_by.is_some() {
            columns.push(("group", Arc::new(groups)));
        }
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        self.store.shards = divided(&manifest, SHARDS, &rows);
        self.earlier = Some(manifest);
        Ok(())
    }

    fn worker(&self, role: Role, worker: u32, attempt: u64) -> Worker<'_> {
        let manifest = self.earlier.as_ref().unwrap();
        Worker::new(manifest, role, 0, worker, attempt, Place::Store(&self.store)).unwrap()
    }

    /// The names of a shard's shares.
    fn names(&self, shard: u32) -> Vec<String> {
        let prefix = format!("found/0-{shard:05}.a");
        let objects = self.store.objects.lock().unwrap();
        let names = objects.keys().filter(|name| name.starts_with(&prefix));
        names.cloned().collect()
    }

    /// Loses objects.
    fn remove(&self, prefix: &str) {
        let mut objects = self.store.objects.lock().unwrap();
        objects.retain(|name, _| !name.starts_with(prefix));
    }

    fn open(&self, channel: &mut Channel) -> Result<Vec<Total>, Error> {
        let attempt = |name: &String| -> u64 {
            let attempt = name.split('.').nth(1).unwrap();
            attempt[1..].parse().unwrap()
        };
        let newest = |shard| {
            let name = self.names(shard).into_iter().max_by_key(attempt).unwrap();
            let bytes = self.store.objects.lock().unwrap()[&name].clone();
            // The session in the name is that of the content.
            let session: String = bytes[..32].iter().map(|byte| format!("{byte:02x}")).collect();
            assert!(name.ends_with(&session));
            Zeroizing::new(bytes)
        };
        let all: Vec<_> = (0..SHARDS).map(newest).collect();
        let found = ("found".as_ref(), &all[..]);
        let known = (self.earlier.as_ref().unwrap(), &self.secrets);
        let (mut kept, mut told) = (Vec::new(), false);
        let keep = &mut |what: Keep<'_>| {
            match what {
                Keep::Totals(totals) => kept = totals.to_vec(),
                Keep::Told => told = true,
            }
            Ok(())
        };
        let opened = totals::open_shards(&self.settings, known, found, channel, keep, &mut ())?;
        assert_eq!((&kept, told), (&opened, true));
        Ok(opened)
    }
}

enum Anywhere {
    Cluster(Box<Cluster>),
    Folder(Box<(Driver, Option<Manifest>, tempfile::TempDir)>),
}

impl Anywhere {
    fn new(run: &Run, role: Role, rows: &[Row], cluster: bool) -> Self {
        if cluster {
            return Self::Cluster(Box::new(Cluster::new(run, role, rows)));
        }
        let folder = tempfile::tempdir().unwrap();
        let side = run.read(role, &table(rows)).unwrap();
        let driver = Driver::new(side, folder.path()).unwrap();
        Self::Folder(Box::new((driver, None, folder)))
    }

    fn agree(&mut self, channel: &mut Channel) -> Result<(), Error> {
        match self {
            Self::Cluster(cluster) => cluster.agree(channel),
            Self::Folder(folder) => {
                let (driver, manifest, _) = &mut **folder;
                let terms = terms(driver.side(), 2);
                *manifest = Some(driver.agree(terms, Some(SHARDS), channel, &mut ())?);
                Ok(())
            }
        }
    }

    fn worker(&self, role: Role, worker: u32, attempt: u64) -> Worker<'_> {
        match self {
            Self::Cluster(cluster) => cluster.worker(role, worker, attempt),
            Self::Folder(folder) => {
                let (manifest, place) = (folder.1.as_ref(), Place::Folder(folder.2.path()));
                Worker::new(manifest.unwrap(), role, 0, worker, attempt, place).unwrap()
            }
        }
    }

    fn open(&self, channel: &mut Channel) -> Result<Vec<Total>, Error> {
        match self {
            Self::Cluster(cluster) => cluster.open(channel),
            Self::Folder(folder) => {
                let (driver, manifest, _) = &**folder;
                driver.open(manifest.as_ref().unwrap(), channel, &mut ())
            }
        }
    }
}

/// Workers with stores, with a folder at neither, one or the other side, that break and go on.
#[test]
fn clusters_compute_what_folders_compute() {
    for (number, [sender, receiver]) in
        [[true, true], [true, false], [false, true]].into_iter().cycle().take(9).enumerate()
    {
        let run = Run {
            kind: KINDS[number % KINDS.len()],
            holder: ROLES[number % 2],
            grouped: [None, Some(Role::Sender), Some(Role::Receiver)][number / 3],
            to: Recipient::Both,
            minimum: 3,
            ..Run::default()
        };
        let all = [rows(0..61), rows(40..75)];
        let mut sides = [
            Anywhere::new(&run, Role::Sender, &all[0], sender),
            Anywhere::new(&run, Role::Receiver, &all[1], receiver),
        ];
        let [one, other] = &mut sides;
        both(|channel| one.agree(channel), |channel| other.agree(channel));
        let work = |worker, attempt, ends| {
            work_pair([0, 1].map(|i| sides[i].worker(ROLES[i], worker, attempt)), ends)
        };
        for worker in 0..2 {
            let mut ends = WHOLE;
            ends[number % 2] = 100_000;
            let broken = work(worker, 8, ends);
            assert!(broken.iter().any(Result::is_err));
            let [sent, received] = work(worker, 9, WHOLE).map(Result::unwrap);
            assert_eq!(sent.resumed, received.resumed);
            for i in [0, 1] {
                let again = sides[i].worker(ROLES[i], worker, 12);
                assert!(again.is_complete().unwrap() && again.has_all_results().unwrap());
            }
            let [Anywhere::Cluster(one), Anywhere::Cluster(other)] = &sides else {
                continue;
            };
            // One side loses its shares of a shard: both make new ones, and keep the others'.
            let shard = worker;
            let before = one.names(shard).len();
            other.remove(&format!("found/0-{shard:05}"));
            for (attempt, repeated) in [(10, 1), (11, 0)] {
                one.remove("complete/");
                other.remove("complete/");
                for worked in work(worker, attempt, WHOLE).map(Result::unwrap) {
                    assert_eq!(worked.resumed + repeated, worked.shards);
                }
            }
            assert_eq!(one.names(shard).len(), before + 1);
        }
        let [one, other] = &sides;
        let opened = both(|channel| one.open(channel), |channel| other.open(channel));
        let tables = [&all[0][..], &all[1][..]];
        for (role, totals) in ROLES.into_iter().zip(opened) {
            assert_eq!(totals, run.expected(role, tables), "{role:?} {run:?}");
        }
    }
}

/// A worker checks the rows that a cluster hands to it: shares of them would be opened unseen.
#[test]
fn a_store_with_values_beyond_the_bound_or_unknown_groups_is_refused() {
    let run = Run { kind: "sum", grouped: Some(Role::Sender), ..Run::default() };
    let all = [rows(0..61), rows(40..75)];
    let bound = 100_000;
    let groups = GROUPS.len() as i32;
    for (value, group, is_refused) in [
        (bound, groups - 1, false),
        (-bound, -1, false),
        (bound + 1, 0, true),
        (-bound - 1, 0, true),
        (i64::MIN, 0, true),
        (0, groups, true),
        (0, i32::MAX, true),
        (0, -2, true),
    ] {
        let [mut one, mut other] = [0, 1].map(|i| Cluster::new(&run, ROLES[i], &all[i]));
        let first = one.items.values_mut().next().unwrap();
        *first = (value, group);
        both(|channel| one.agree(channel), |channel| other.agree(channel));
        let sides = [one, other];
        let mut refused = 0;
        for number in 0..2 {
            let workers = [0, 1].map(|i| sides[i].worker(ROLES[i], number, 1));
            let [sent, _] = work_pair(workers, WHOLE);
            if let Err(error) = sent {
                let Error::Work { error, .. } = error else {
                    panic!("{error}");
                };
                assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
                refused += 1;
            }
        }
        assert_eq!(refused, i32::from(is_refused), "{value} {group}");
    }
}

/// The noise that a side keeps for its run, as it is in its folder.
fn kept_noise(folder: &Path) -> serde_json::Value {
    let text = fs::read_to_string(folder.join("driver.json")).unwrap();
    let secrets: serde_json::Value = serde_json::from_str(&text).unwrap();
    secrets["noise"].clone()
}

/// A side has drawn its noise before there is a connection, and nothing that a peer does makes it
/// draw again: not one that never answers, not one that goes away anywhere, not one that comes
/// back.
#[test]
fn noise_is_drawn_before_the_sides_meet_and_never_again() {
    let run = Run {
        kind: "mean",
        to: Recipient::Both,
        epsilon: Some("0.5"),
        minimum: 1,
        ..Run::default()
    };
    let sides = Sides::new(&run, [rows(0..80), rows(10..90)]);
    let folder = |i: usize| sides.folders[i].path();
    let driver = |i: usize| {
        let side = run.read(ROLES[i], &table(&sides.rows[i])).unwrap();
        Driver::new(side, folder(i)).unwrap()
    };
    // No channel exists yet.
    let before = [0, 1].map(|i| {
        drop(driver(i));
        kept_noise(folder(i))
    });
    assert_eq!(before[0]["sums"].as_array().unwrap().len(), 1);
    assert_ne!(before[0]["sums"][0], 0);
    let unchanged = || assert_eq!([0, 1].map(|i| kept_noise(folder(i))), before);
    // The peer goes away at once, or later.
    for end in [0, 1, 100, 250, 300] {
        let go = |i: usize| {
            let mut driver = driver(i);
            let terms = terms(driver.side(), 2);
            move |channel: &mut Channel| driver.agree(terms, Some(5), channel, &mut ())
        };
        let ((sent, _), _) = run_cut([u64::MAX, end], go(0), go(1));
        assert!(sent.is_err(), "{end}");
        unchanged();
    }
    let both = sides.agreed();
    unchanged();
    sides.work_all(&both);
    // An opening that breaks, and one with drivers that were started again.
    let ((sent, _), _) = run_cut([u64::MAX, 400], open_by(&both[0]), open_by(&both[1]));
    assert!(sent.is_err());
    drop(both);
    let both = sides.agreed();
    let [sent, received] = Sides::open(&both).map(Result::unwrap);
    unchanged();
    assert_eq!(sent, received);
    // The noise that was kept is that of the totals, and both sides' is in them.
    let tables = [&sides.rows[0][..], &sides.rows[1][..]];
    let expected = run.expected(Role::Sender, tables);
    let noise = |part: &str| -> i64 {
        let of_sides = before.iter().map(|noise| noise[part][0].as_i64().unwrap());
        of_sides.sum()
    };
    assert_eq!(sent[0].sum.unwrap(), expected[0].sum.unwrap() + noise("sums"));
    assert_eq!(sent[0].count.unwrap(), expected[0].count.unwrap() + noise("counts"));
    // Another table is another run.
    let other = Sides::new(&run, [rows(0..80), rows(10..90)]);
    fs::copy(folder(0).join("driver.json"), other.folders[0].path().join("driver.json")).unwrap();
    let side = run.read(Role::Sender, &table(&rows(0..81))).unwrap();
    drop(Driver::new(side, other.folders[0].path()).unwrap());
    assert_ne!(kept_noise(other.folders[0].path()), before[0]);
}

/// A run for rows without workers leaves a digest alone: it is in the way of totals only while the
/// run itself is.
#[test]
fn a_folder_of_a_run_without_workers() {
    let run = Run::default();
    let folder = tempfile::tempdir().unwrap();
    let driver =
        || Driver::new(run.read(Role::Sender, &table(&rows(0..9))).unwrap(), folder.path());
    let file = |name: &str| folder.path().join(name);
    let agreement =
        steps::Agreement::new(LocalManifest::default(), ([1; 32], 8), vec![[9, 9]], None);
    fs::write(file("run.json"), agreement.to_json(&())).unwrap();
    fs::write(file("driver.json"), r#"{"digest":"00"}"#).unwrap();
    let error = driver().map(drop).unwrap_err();
    assert!(error.to_string().contains("the progress of a run with another table"), "{error}");
    // It broke between the two files.
    fs::remove_file(file("run.json")).unwrap();
    drop(driver().unwrap());
    let drawn = kept_noise(folder.path());
    drop(driver().unwrap());
    assert_eq!(kept_noise(folder.path()), drawn);
    // Secrets that are damaged are not drawn a second time.
    for damaged in [r#"{"digest":"00","noise":null}"#, r#"{"digest":"00""#, "{}"] {
        fs::write(file("driver.json"), damaged).unwrap();
        let error = driver().map(drop).unwrap_err();
        assert!(error.to_string().contains("secrets"), "{error}");
    }
}

/// Nothing is opened without noise, or with noise for fewer totals.
#[test]
fn secrets_without_noise_open_nothing() {
    let run = Run::default();
    let sides = [Role::Sender, Role::Receiver].map(|role| Cluster::new(&run, role, &rows(0..9)));
    let [mut one, mut other] = sides;
    both(|channel| one.agree(channel), |channel| other.agree(channel));
    for worker in 0..2 {
        let workers = [(&one, Role::Sender), (&other, Role::Receiver)];
        let workers = workers.map(|(side, role)| side.worker(role, worker, 1));
        assert!(work_pair(workers, WHOLE).iter().all(Result::is_ok));
    }
    for change in [
        |secrets: &mut serde_json::Value| drop(secrets.as_object_mut().unwrap().remove("noise")),
        |secrets: &mut serde_json::Value| secrets["noise"]["counts"] = serde_json::json!([]),
        |secrets: &mut serde_json::Value| secrets["noise"]["sums"] = serde_json::json!([0, 0]),
    ] {
        let mut secrets = serde_json::from_str(&one.secrets.to_json()).unwrap();
        change(&mut secrets);
        let secrets = Secrets::from_json(secrets.to_string().as_bytes()).unwrap();
        let whole = std::mem::replace(&mut one.secrets, secrets);
        let (sent, _) =
            run_two_unchecked(|channel| one.open(channel), |channel| other.open(channel));
        let error = sent.unwrap_err();
        assert!(error.to_string().contains("without this side's noise"), "{error}");
        one.secrets = whole;
    }
    both(|channel| one.open(channel), |channel| other.open(channel));
}

/// Secrets are of a table and of settings; a driver agrees with no others.
#[test]
fn secrets_of_another_table_or_other_settings_are_refused() {
    let run = Run { kind: "sum", ..Run::default() };
    let new = || Cluster::new(&run, Role::Sender, &rows(0..9));
    let other_settings = Run { minimum: 7, ..run.clone() };
    let mut table = new();
    table.facts.digest.push('0');
    let settings = Cluster::new(&other_settings, Role::Sender, &rows(0..9));
    let mut first = new();
    let own = first.secrets.clone();
    for secrets in
        [driver::secrets(&table.settings, &table.facts, Some(&own)).unwrap(), settings.secrets]
    {
        assert_ne!(secrets, own);
        first.secrets = secrets;
        let (refused, _) = run_two_unchecked(
            |channel| first.agree(channel),
            |channel| Cluster::new(&run, Role::Receiver, &rows(3..12)).agree(channel),
        );
        let error = refused.unwrap_err();
        assert!(error.to_string().contains("another table or other settings"), "{error}");
    }
}
