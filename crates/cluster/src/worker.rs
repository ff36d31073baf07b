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
//! The steps are those of [`run`](mod@volery_matching::run), or for totals those of a worker in
//! module [`totals`](crate::totals). A shard is a bucket that all workers of a side have access to:
//! in a folder, or through the process that started the worker ([`Store`]).
//!
//! Correlated randomness and keys of protocols are in the memory of a worker only.

use std::cmp::Ordering;
use std::io;
use std::ops::Deref;
use std::path::Path;

use volery_channel::{Channel, Error as ChannelError, Hello, Role, SessionId, handshake};
use volery_matching::steps::{
    Folder, Inner, Journal, Keys, Part, Parts, RowSet, SESSION, append, conclude, session_of,
};
use volery_matching::totals::{self, Values, shares};
use volery_matching::{Error, Progress, Result, Settings};
use volery_os::time::Instant;
use volery_primitives::prg::Prg;
use volery_tables::Duplicates;
use zeroize::Zeroizing;

use crate::error::misbehaved;
use crate::folder::{has_note, matched, put_matched, put_note, shared};
use crate::manifest::{MANIFEST, Manifest};
use crate::stats::WorkerStats;
use crate::store::{Objects, Store, append_item, items, valued_items};
use crate::task::Task;

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
    kept: ResultStorage<'a>,
}

enum ResultStorage<'a> {
    Folder(Folder),
    Store(&'a dyn Store),
}

enum WorkerJournal<'a> {
    Folder(&'a Folder),
    Store(Objects<'a>),
}

impl<'a> Deref for WorkerJournal<'a> {
    type Target = dyn Journal + 'a;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Folder(folder) => *folder,
            Self::Store(objects) => objects,
        }
    }
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
            Place::Folder(path) => ResultStorage::Folder(shared(path, manifest)?),
            Place::Store(store) => ResultStorage::Store(store),
        };
        Ok(Self { manifest, task, rule, worker, attempt, kept })
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
    /// Errors of the folder or store.
    pub fn is_complete(&self) -> Result<bool> {
        let name = self.complete_name();
        match &self.kept {
            ResultStorage::Folder(work) => Ok(has_note(work, &name)),
            ResultStorage::Store(store) => {
                let listed = store.list(&name).map_err(Error::work(name.as_ref()))?;
                Ok(listed.contains(&name))
            }
        }
    }

    /// Whether this side has all its results, and perhaps the peer does not know that.
    ///
    /// # Errors
    /// Errors of the folder or store.
    pub fn has_all_results(&self) -> Result<bool> {
        if !self.task.keeps() {
            return Ok(false);
        }
        let journal = self.journal()?;
        Ok(self.shards().iter().all(|&part| journal.has_found(part)))
    }

    fn journal(&self) -> Result<WorkerJournal<'_>> {
        Ok(match &self.kept {
            ResultStorage::Folder(work) => WorkerJournal::Folder(work),
            ResultStorage::Store(store) => {
                let of = (self.rule, self.attempt);
                WorkerJournal::Store(Objects::new(*store, of, &self.task)?)
            }
        })
    }

    /// Records that nothing is left to do.
    ///
    /// # Errors
    /// Errors of the folder or store.
    pub fn complete(&self) -> Result<()> {
        if self.is_complete()? {
            return Ok(());
        }
        let name = self.complete_name();
        match &self.kept {
            ResultStorage::Folder(work) => put_note(work, &name),
            ResultStorage::Store(store) => match store.put(&name, b"") {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                put => put.map_err(Error::work(name.as_ref())),
            },
        }
    }

    /// Does the shards that are not finished on both sides, with the same worker of the peer.
    ///
    /// # Errors
    /// If the channel or a protocol fails, or the folder or store.
    pub fn run(&self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<WorkerStats> {
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
            return Ok(WorkerStats::default());
        }
        let journal = self.journal()?;
        let mut worked = match &self.task {
            Task::Rows(settings) => {
                self.match_rows(settings, (session, rng), &*journal, channel, progress)?
            }
            Task::Totals(settings) => {
                self.share_totals(settings, (session, rng), &*journal, channel, progress)?
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
    ) -> Result<WorkerStats> {
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
        let mut worked = WorkerStats { shards: shards.len() as u64, ..WorkerStats::default() };
        for (&part, done) in shards.iter().zip(done) {
            if done {
                worked.resumed += 1;
            } else {
                journal.begin(part, parts.session_of(part))?;
                let keys = self.load(part)?;
                let watch = &mut Inner { progress: &mut *progress, shown: false };
                let (mut found, mut rows) = (Vec::new(), Vec::new());
                parts.run(
                    (part, rng.fork("part")),
                    &keys,
                    |row| !earlier.contains(row),
                    watch,
                    channel,
                    &mut |item, payload| {
                        worked.found += 1;
                        match &self.kept {
                            ResultStorage::Folder(_) => keys.rows_of(item).for_each(|row| {
                                append(&mut found, row, payload);
                                rows.push(row);
                            }),
                            ResultStorage::Store(_) => {
                                append_item(&mut found, keys.item(item), payload)
                            }
                        }
                    },
                )?;
                if settings.gets_rows() && !journal.has_found(part) {
                    if let ResultStorage::Folder(work) = &self.kept
                        && settings.role == Role::Receiver
                        && self.rule + 1 < self.manifest.rules()
                    {
                        put_matched(work, part, &rows)?;
                    }
                    journal.put_found(part, &found)?;
                }
            }
            finished += 1;
            progress.done(finished);
        }
        Ok(worked)
    }

    /// Steps 5 and 6 for totals: makes shares of the totals of the shards that are not finished in
    /// one session on both sides.
    fn share_totals(
        &self,
        settings: &totals::Settings,
        (session, mut rng): (SessionId, Prg),
        journal: &dyn Journal,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<WorkerStats> {
        let announced = self.manifest.items(settings)?;
        let [sender, receiver] = self.manifest.capacities()?[0];
        let size = match settings.role {
            Role::Sender => sender,
            Role::Receiver => receiver,
        };
        let shards = self.shards();
        let mut ours = Vec::new();
        for &part in &shards {
            ours.push(journal.session_of_shares(part)?.unwrap_or_default());
        }
        channel.send(ours.as_flattened())?;
        let mut theirs = vec![[0; SESSION]; ours.len()];
        channel.recv(theirs.as_flattened_mut())?;
        let mut worked = WorkerStats { shards: shards.len() as u64, ..WorkerStats::default() };
        progress.begin("matching shards", worked.shards);
        for (number, &part) in shards.iter().enumerate() {
            // mutant(totals-attempts): `ours[number] == theirs[number]` => `true`
            if ours[number] != [0; SESSION] && ours[number] == theirs[number] {
                worked.resumed += 1;
            } else {
                let session = session_of(session, part);
                journal.begin(part, session)?;
                let values = Values::of_shard(&self.load(part)?, settings, size, &mut rng)?;
                let own = (session, rng.fork("shard"));
                let parts = self.manifest.executions();
                let (_, shares) =
                    shares(settings, parts, announced, &values, own, channel, &mut ())?;
                let mut found = Zeroizing::new(session.as_bytes().to_vec());
                found.extend(shares.words().flat_map(u64::to_le_bytes));
                journal.put_shares(part, session, &found)?;
            }
            progress.done(number as u64 + 1);
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
        let ResultStorage::Folder(work) = &self.kept else {
            return Ok(RowSet::default());
        };
        if self.rule == 0 || self.task.role() == Role::Sender {
            return Ok(RowSet::default());
        }
        let mut rows = RowSet::new(self.manifest.own.rows);
        for rule in 0..self.rule {
            for shard in 0..self.manifest.buckets() {
                let in_shard = matched(work, (rule, shard))?.ok_or_else(|| {
                    let (rule, shard) = (rule + 1, shard);
                    Error::Manifest(format!("has shard {shard} of rule {rule} unfinished"))
                })?;
                for row in in_shard {
                    rows.insert(row);
                }
            }
        }
        Ok(rows)
    }

    fn load(&self, (rule, shard): Part) -> Result<Keys> {
        let with_payload = match &self.task {
            Task::Rows(settings) => {
                settings.role == Role::Sender && self.manifest.payload().is_some()
            }
            // Value and group.
            Task::Totals(_) => true,
        };
        let rows = match &self.kept {
            ResultStorage::Folder(work) => work.rows((rule, shard), with_payload)?,
            ResultStorage::Store(store) => {
                let name = format!("shard {shard} of rule {}", rule + 1);
                let batches = store.shard(rule, shard);
                let batches = batches.map_err(Error::work(name.as_ref()))?;
                let rows = match &self.task {
                    Task::Rows(_) => items(&batches, with_payload),
                    Task::Totals(settings) => valued_items(&batches, settings),
                };
                rows.ok_or(io::ErrorKind::InvalidData.into()).map_err(Error::work(name.as_ref()))?
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
