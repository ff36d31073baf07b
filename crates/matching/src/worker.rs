//! A worker of a run that several workers on each side share.
//!
//! The drivers of both sides have agreed on a [`Manifest`]. Worker w of a side does the shards `w`,
//! `w + W`, .. of a rule, ascending, with worker w of the other side, over a connection of their
//! own:
//!
//! ```text
//! handshake: the manifest's name, the worker's number
//! the rule: a side that is at an earlier one learns that the other has finished it  <-->
//! 5. finished shards                          <-->
//! 6. for each shard: the protocol on both sets       (crate volery_psi)
//! 7. both have all results                    <-->
//! ```
//!
//! The steps are those of [`run`](mod@crate::run), or for totals those of a worker in module
//! `totals::workers`. A shard is a bucket that all workers of a side have access to: in a folder,
//! or through the process that started the worker ([`Store`]).
//!
//! Correlated randomness and keys of protocols are in the memory of a worker only.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, Stats, handshake};
use volery_primitives::prg::Prg;
use volery_tables::Duplicates;
use web_time::Instant;

use crate::error::{ATTEMPTS, Error, Result, misbehaved};
use crate::keys::{Keys, Rows};
use crate::manifest::{Manifest, hex};
use crate::matches::{RowSet, append};
use crate::parts::{Journal, Parts, SESSION, conclude};
use crate::progress::{Inner, Progress};
use crate::settings::Settings;
use crate::task::Task;
use crate::totals::side::payload;
use crate::totals::{self, workers};
use crate::work::{Part, Work};

/// The name under which the handshake compares manifests.
pub const MANIFEST: &str = "the manifest of the run";

/// The shards and the journal of a worker, in the care of the process that started it. An object is
/// there whole or not at all.
pub trait Store: Sync {
    /// The items of a shard: in each batch a column `item` of 16 bytes; at the sender of a lookup a
    /// column `payload`, as the reader of tables makes them; for totals a column `value` of Int64
    /// where this side has values, and `group` of Int32 where it has the groups, -1 for none. The
    /// items are distinct.
    ///
    /// # Errors
    /// If they cannot be had.
    fn shard(&self, rule: usize, shard: u32) -> io::Result<Vec<RecordBatch>>;

    /// The names of the objects that begin with `prefix`.
    ///
    /// # Errors
    /// If they cannot be had.
    fn list(&self, prefix: &str) -> io::Result<Vec<String>>;

    /// Keeps an object under a new name.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is an object of this name; others if it cannot be
    /// kept.
    fn put(&self, name: &str, bytes: &[u8]) -> io::Result<()>;
}

/// Where a worker finds its shards and keeps its results.
pub enum Place<'a> {
    /// The folder of a side's run.
    Folder(&'a Path),
    /// With the process that started it.
    Store(&'a dyn Store),
}

/// A worker before its connection.
pub struct Worker<'a> {
    manifest: &'a Manifest,
    task: Task,
    rule: usize,
    worker: u32,
    attempt: u64,
    kept: Kept<'a>,
}

enum Kept<'a> {
    Folder(Work),
    Store(&'a dyn Store),
}

/// What a worker did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worked {
    /// Its shards.
    pub shards: u64,
    /// Those that were finished before.
    pub resumed: u64,
    /// The matches that it found.
    pub found: u64,
    /// All traffic.
    pub traffic: Stats,
    /// Seconds from the handshake on.
    pub seconds: f64,
}

impl<'a> Worker<'a> {
    /// Worker `worker` of the side `role`, for the shards of `rule`, counted from 0. `attempt`
    /// tells its results from those of earlier ones.
    ///
    /// # Errors
    /// If the manifest is of another kind of run or has no such rule or worker, or the folder
    /// cannot be used.
    pub fn new(
        manifest: &'a Manifest,
        role: Role,
        rule: usize,
        worker: u32,
        attempt: u64,
        place: Place<'a>,
    ) -> Result<Self> {
        let (Some(terms), Some(task)) = (manifest.terms(), manifest.task(role)) else {
            return Err(Error::Manifest("is not of a run with workers".to_owned()));
        };
        if worker >= terms.workers {
            let (worker, all) = (worker, terms.workers);
            return Err(Error::Manifest(format!(
                "is for {all} workers, counted from 0: there is no worker {worker}"
            )));
        }
        if rule >= manifest.rules() {
            return Err(Error::Manifest(format!("has no rule {}", rule + 1)));
        }
        let kept = match place {
            Place::Folder(path) => Kept::Folder(Work::shared(path, manifest)?),
            Place::Store(store) => Kept::Store(store),
        };
        Ok(Self {
            manifest,
            task,
            rule,
            worker,
            attempt,
            kept,
        })
    }

    fn shards(&self) -> Vec<Part> {
        let workers = self.manifest.terms().map_or(1, |terms| terms.workers);
        let own = (self.worker..self.manifest.buckets()).step_by(workers as usize);
        own.map(|shard| (self.rule, shard)).collect()
    }

    /// The name of the object that says that this worker's shards are complete at both sides.
    fn complete_name(&self) -> String {
        format!("complete/{}-{:05}", self.rule, self.worker)
    }

    /// Whether an earlier attempt left nothing to do.
    ///
    /// # Errors
    /// Those of the folder or store.
    pub fn is_complete(&self) -> Result<bool> {
        let name = self.complete_name();
        match &self.kept {
            Kept::Folder(work) => Ok(work.has_note(&name)),
            Kept::Store(store) => {
                let listed = store.list(&name).map_err(Error::work(name.as_ref()))?;
                Ok(listed.contains(&name))
            }
        }
    }

    /// Whether this side has all its results, and perhaps the peer does not know that.
    ///
    /// # Errors
    /// Those of the folder or store.
    pub fn has_all_results(&self) -> Result<bool> {
        if !self.task.keeps() {
            return Ok(false);
        }
        let journal = self.journal()?;
        Ok(self.shards().iter().all(|&part| journal.has_found(part)))
    }

    fn journal(&self) -> Result<Box<dyn Journal + '_>> {
        Ok(match &self.kept {
            Kept::Folder(work) => Box::new(work),
            Kept::Store(store) => {
                let of = (self.rule, self.attempt);
                Box::new(Objects::new(*store, of, &self.task)?)
            }
        })
    }

    /// Records that nothing is left to do.
    ///
    /// # Errors
    /// Those of the folder or store.
    pub fn complete(&self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        let name = self.complete_name();
        match &self.kept {
            Kept::Folder(work) => work.put_note(&name),
            Kept::Store(store) => match store.put(&name, b"") {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                put => put.map_err(Error::work(name.as_ref())),
            },
        }
    }

    /// Does the shards that are not finished on both sides, with the same worker of the peer.
    ///
    /// # Errors
    /// If the channel or a protocol fails, or the folder or store.
    pub fn run(&self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<Worked> {
        let start = Instant::now();
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let workers = self.manifest.terms().map_or(0, |terms| terms.workers);
        let hello = Hello {
            protocol: "worker",
            role: self.task.role().name(),
            fields: vec![
                (MANIFEST, self.manifest.id_text()),
                ("--worker", format!("{} of {workers}", self.worker)),
            ],
        };
        let session = handshake(channel, &hello, nonce)?;
        if !self.compare_rules(channel)? {
            self.complete()?;
            return Ok(Worked::default());
        }
        let (journal, shards) = (self.journal()?, self.shards());
        let mut worked = match &self.task {
            Task::Rows(settings) => {
                self.match_rows(settings, (session, rng), &*journal, channel, progress)?
            }
            Task::Totals(settings) => {
                let load = |part| self.load(part);
                workers::work(
                    self.manifest,
                    settings,
                    (&*journal, &load),
                    &shards,
                    (session, rng),
                    channel,
                    progress,
                )?
            }
        };
        let own = (self.task.role(), self.task.keeps());
        conclude(own, || self.complete(), channel)?;
        self.complete()?;
        worked.traffic = channel.stats();
        worked.seconds = start.elapsed().as_secs_f64();
        Ok(worked)
    }

    /// Steps 5 and 6 for rows.
    fn match_rows(
        &self,
        settings: &Settings,
        (session, mut rng): (SessionId, Prg),
        journal: &dyn Journal,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<Worked> {
        let capacities = self.manifest.capacities()?;
        let protocol = settings.protocol();
        let parts = Parts {
            settings,
            protocol: protocol.expect("workers run a protocol that is named"),
            session,
            capacities: &capacities,
            longest: self.manifest.payload().map_or(0, |(_, longest)| longest),
            executions: self.manifest.executions(),
        };
        let shards = self.shards();
        let done = parts.compare(journal, &shards, channel)?;
        let earlier = self.earlier_rows()?;
        progress.begin("matching shards", shards.len() as u64);
        let mut finished = 0;
        let mut worked = Worked {
            shards: shards.len() as u64,
            ..Worked::default()
        };
        for (&part, done) in shards.iter().zip(done) {
            if done {
                worked.resumed += 1;
            } else {
                journal.begin(part, parts.session_of(part))?;
                let keys = self.load(part)?;
                let watch = &mut Inner {
                    progress: &mut *progress,
                    shown: false,
                };
                let (mut found, mut matched) = (Vec::new(), Vec::new());
                parts.run(
                    (part, rng.fork("part")),
                    &keys,
                    |row| !earlier.contains(row),
                    watch,
                    channel,
                    &mut |item, payload| {
                        worked.found += 1;
                        match &self.kept {
                            Kept::Folder(_) => keys.rows_of(item).for_each(|row| {
                                append(&mut found, row, payload);
                                matched.push(row);
                            }),
                            Kept::Store(_) => append_item(&mut found, keys.item(item), payload),
                        }
                    },
                )?;
                if settings.gets_rows() && !journal.has_found(part) {
                    if let Kept::Folder(work) = &self.kept
                        && settings.role == Role::Receiver
                        && self.rule + 1 < self.manifest.rules()
                    {
                        work.put_matched(part, &matched)?;
                    }
                    journal.put_found(part, &found)?;
                }
            }
            finished += 1;
            progress.done(finished);
        }
        Ok(worked)
    }

    /// Whether both sides are at this rule; not if the peer is at a later one, which it is only
    /// when both have all results of this one.
    fn compare_rules(&self, channel: &mut Channel) -> Result<bool> {
        channel.send(&(self.rule as u32).to_le_bytes())?;
        let mut theirs = [0; 4];
        channel.recv(&mut theirs)?;
        let theirs = u32::from_le_bytes(theirs) as usize;
        match theirs.cmp(&self.rule) {
            Ordering::Equal => Ok(true),
            // mutant(match-rule): `theirs >= self.manifest.rules()` => `false`
            Ordering::Greater if theirs >= self.manifest.rules() => {
                Err(misbehaved("its rule is not one of the run"))
            }
            // The peer would gain nothing by a lie: a sender that believes it is done sooner.
            Ordering::Greater if !self.task.keeps() || self.has_all_results()? => Ok(false),
            Ordering::Greater => Err(misbehaved("it left a rule whose results are missing here")),
            // It learns of this side's rule, and comes again for that.
            Ordering::Less => Err(ChannelError::Disconnected.into()),
        }
    }

    /// The rows that matched by an earlier rule. A store leaves them out itself.
    fn earlier_rows(&self) -> Result<RowSet> {
        let Kept::Folder(work) = &self.kept else {
            return Ok(RowSet::default());
        };
        if self.rule == 0 || self.task.role() == Role::Sender {
            return Ok(RowSet::default());
        }
        let mut rows = RowSet::new(self.manifest.own.rows);
        for rule in 0..self.rule {
            for shard in 0..self.manifest.buckets() {
                let matched = work.matched((rule, shard))?.ok_or_else(|| {
                    let (rule, shard) = (rule + 1, shard);
                    Error::Manifest(format!("has shard {shard} of rule {rule} unfinished"))
                })?;
                for row in matched {
                    rows.insert(row);
                }
            }
        }
        Ok(rows)
    }

    fn load(&self, (rule, shard): Part) -> Result<Keys> {
        let with_payload = match &self.task {
            Task::Rows(settings) => {
                settings.role == Role::Sender && self.manifest.payload.is_some()
            }
            // Value and group.
            Task::Totals(_) => true,
        };
        let rows = match &self.kept {
            Kept::Folder(work) => work.rows((rule, shard), with_payload)?,
            Kept::Store(store) => {
                let name = format!("shard {shard} of rule {}", rule + 1);
                let batches = store.shard(rule, shard);
                let batches = batches.map_err(Error::work(name.as_ref()))?;
                let rows = match &self.task {
                    Task::Rows(_) => items(&batches, with_payload),
                    Task::Totals(settings) => valued_items(&batches, settings),
                };
                rows.ok_or(io::ErrorKind::InvalidData.into())
                    .map_err(Error::work(name.as_ref()))?
            }
        };
        // An error was found when the keys were divided.
        let policy = match self.manifest.own.dedup {
            true => Duplicates::Dedup,
            false => Duplicates::Keep,
        };
        Keys::new(rows, rule, policy)
    }
}

/// The items of batches, or nothing if they are not as a [`Store`] has to give them.
fn items(batches: &[RecordBatch], with_payload: bool) -> Option<Rows> {
    let mut rows = Rows::new(with_payload);
    let mut row = 0;
    for batch in batches {
        let items = batch.column_by_name("item")?.as_fixed_size_binary_opt()?;
        let payload = match with_payload {
            true => Some(batch.column_by_name("payload")?.as_binary_opt::<i32>()?),
            false => None,
        };
        for i in 0..items.len() {
            let item = items.value(i).try_into().ok()?;
            rows.push(item, row, payload.map_or(&[][..], |all| all.value(i)));
            row += 1;
        }
    }
    Some(rows)
}

/// The items of batches with their values and groups, or nothing if they are not as a [`Store`] has
/// to give them: a value is within the bound, and a group one of the settings, or -1.
fn valued_items(batches: &[RecordBatch], settings: &totals::Settings) -> Option<Rows> {
    let mut rows = Rows::new(true);
    let mut row = 0;
    for batch in batches {
        let column = |name| {
            let column = batch.column_by_name(name)?;
            (column.null_count() == 0).then_some(column)
        };
        let items = column("item")?.as_fixed_size_binary_opt()?;
        let values = match settings.column {
            Some(_) => Some(column("value")?.as_primitive_opt::<Int64Type>()?),
            None => None,
        };
        let groups = match settings.group_by {
            Some(_) => Some(column("group")?.as_primitive_opt::<Int32Type>()?),
            None => None,
        };
        for i in 0..items.len() {
            let item = items.value(i).try_into().ok()?;
            let value = values.map_or(0, |all| all.value(i));
            let group = groups.map_or(-1, |all| all.value(i));
            // mutant(store-groups): `group == -1` => `true`
            let is_group = group == -1 || (0..settings.groups.len() as i32).contains(&group);
            // mutant(store-bound): false
            if value.unsigned_abs() > settings.bound || !is_group {
                return None;
            }
            rows.push(item, row, &payload(value, group)[..]);
            row += 1;
        }
    }
    Some(rows)
}

/// Appends a match to the bytes in which a store keeps the matches of a shard: item, length of the
/// payload, payload.
fn append_item(out: &mut Vec<u8>, item: &[u8], payload: &[u8]) {
    out.extend_from_slice(item);
    out.extend_from_slice(&(payload.len() as u32).to_le_bytes());
    out.extend_from_slice(payload);
}

/// The matches in the bytes of a shard that a store kept: items and payload.
///
/// # Errors
/// If the bytes are cut short.
pub fn found_items(mut bytes: &[u8]) -> Result<Vec<([u8; 16], &[u8])>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let mut next = || {
            let (item, rest) = bytes.split_first_chunk::<16>()?;
            let (length, rest) = rest.split_first_chunk::<4>()?;
            let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            bytes = rest;
            Some((*item, payload))
        };
        let cut = || Error::work("found".as_ref())(io::ErrorKind::UnexpectedEof.into());
        all.push(next().ok_or_else(cut)?);
    }
    Ok(all)
}

/// The journal of a worker whose results are objects of a store:
///
/// | object | content |
/// |---|---|
/// | `begun/R-SSSSS.N` | the session in which shard S of rule R was begun for the Nth time |
/// | `found/R-SSSSS.aA` | the matches that attempt A found |
/// | `done/R-SSSSS.aA.json` | the name and digest of that object, written after it |
///
/// For totals in place of the last two:
///
/// | object | content |
/// |---|---|
/// | `found/R-SSSSS.aA.SESSION` | this session in bytes, and the shares that attempt A made in it; those of the highest attempt count |
struct Objects<'a> {
    store: &'a dyn Store,
    rule: usize,
    attempt: u64,
    /// The finished shards; of totals with the highest attempt, and the session of its shares.
    done: BTreeMap<u32, (u64, [u8; SESSION])>,
}

impl<'a> Objects<'a> {
    fn new(store: &'a dyn Store, (rule, attempt): (usize, u64), task: &Task) -> Result<Self> {
        let prefix = match task {
            Task::Rows(_) => format!("done/{rule}-"),
            Task::Totals(_) => format!("found/{rule}-"),
        };
        let names = store.list(&prefix).map_err(Error::work(prefix.as_ref()))?;
        let parse = |name: &String| {
            let mut parts = name.strip_prefix(&prefix)?.split('.');
            let shard: u32 = parts.next()?.parse().ok()?;
            let attempt: u64 = parts.next()?.strip_prefix('a')?.parse().ok()?;
            let session = match task {
                Task::Rows(_) => [0; SESSION],
                Task::Totals(_) => unhex(parts.next()?)?,
            };
            Some((shard, (attempt, session)))
        };
        let mut done = BTreeMap::new();
        for (shard, found) in names.iter().filter_map(parse) {
            let place = done.entry(shard).or_insert(found);
            *place = found.max(*place);
        }
        Ok(Self {
            store,
            rule,
            attempt,
            done,
        })
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let put = self.store.put(name, bytes);
        put.map_err(Error::work(name.as_ref()))
    }
}

impl Journal for Objects<'_> {
    fn begin(&self, (rule, shard): Part, session: SessionId) -> Result<()> {
        let session = hex(session.as_bytes());
        // mutant(match-begun): `ATTEMPTS` => `ATTEMPTS + if $ON { 9 } else { 0 }`
        for times in 1..=ATTEMPTS {
            let name = format!("begun/{rule}-{shard:05}.{times}");
            match self.store.put(&name, session.as_bytes()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                put => return put.map_err(Error::work(name.as_ref())),
            }
        }
        Err(Error::TooManyAttempts {
            path: format!("begun/{rule}-{shard:05}").into(),
            part: shard as usize + 1,
        })
    }

    fn has_found(&self, (rule, shard): Part) -> bool {
        rule == self.rule && self.done.contains_key(&shard)
    }

    fn put_found(&self, (rule, shard): Part, found: &[u8]) -> Result<()> {
        let attempt = self.attempt;
        let name = format!("found/{rule}-{shard:05}.a{attempt}");
        self.put(&name, found)?;
        let mut hash = volery_primitives::ro::StreamHash::default();
        hash.update(found);
        let done = serde_json::json!({
            "found": name,
            "bytes": found.len(),
            "blake3": hex(&hash.finish32()),
        });
        let name = format!("done/{rule}-{shard:05}.a{attempt}.json");
        self.put(&name, done.to_string().as_bytes())
    }

    fn session_of_shares(&self, (_, shard): Part) -> Result<Option<[u8; SESSION]>> {
        Ok(self.done.get(&shard).map(|(_, session)| *session))
    }

    fn put_shares(&self, (rule, shard): Part, session: SessionId, shares: &[u8]) -> Result<()> {
        let (attempt, session) = (self.attempt, hex(session.as_bytes()));
        self.put(
            &format!("found/{rule}-{shard:05}.a{attempt}.{session}"),
            shares,
        )
    }
}

/// The bytes that [`hex`] wrote.
fn unhex(text: &str) -> Option<[u8; SESSION]> {
    let (digits, []) = text.as_bytes().as_chunks::<2>() else {
        return None;
    };
    let mut bytes = [0; SESSION];
    if digits.len() != bytes.len() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(digits) {
        *byte = u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}
