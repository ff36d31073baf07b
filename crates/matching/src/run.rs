//! A run, from the opened table to the matches.
//!
//! ```text
//! each alone: reads its table: an item for each row and rule            Side::read
//! handshake: settings, types and normalisers of the keys
//! 1. progress of an earlier attempt, least number of buckets      <-->
//! 2. key of the buckets, tossed by commitment                     <-->  unless there is one bucket
//!    each alone: divides its items
//! 3. distinct keys by rule; the sender's columns, longest payload <-->
//! 4. the protocol, by sizes and link                              (module `choice` of volery_psi)
//! 5. finished parts                                               <-->  where a run is resumed
//! 6. for each rule, for each bucket: the protocol on both sets    (crate volery_psi)
//! 7. both have all results                                        <-->  where a run is resumed
//! ```
//!
//! **Sizes.** With several buckets each set is filled up with random items to a capacity that
//! follows from the number of distinct keys alone, so the distribution of the keys over the buckets
//! stays hidden. By the second rule and later ones the receiver takes part with the rows that have
//! not matched, filled up to the number of keys that all its rows have: the sender does not learn
//! how many matched. So each side learns of the other's table the number of distinct keys by each
//! rule, and of a lookup the names and types of the columns, and the length of the longest payload.
//!
//! **The key of the buckets** is tossed when both tables have been read, so nobody can choose keys
//! that fall into one bucket.
//!
//! **Time** is not hidden: a receiver with more matches takes longer to write them before it goes on
//! with the next part.
//!
//! **Failures.** All executions together fail with the probability for which one has parameters:
//! each gets as many bits more as there are executions.
//!
//! **Resumption.** A part that is begun again runs in another session with fresh randomness. A
//! malicious receiver may take part with another set each time, so parts are begun at most
//! [`ATTEMPTS`](crate::error::ATTEMPTS) times.

use std::ops::Sub;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use volery_channel::link::{Side as LinkSide, estimate};
use volery_channel::{Channel, Error as ChannelError, Link, Role, SessionId, Stats, handshake};
use volery_okvs::bin_capacity;
use volery_primitives::prg::Prg;
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_psi::choice::{Candidate, Protocol, Task, candidates};
use volery_psi::lookup::MAX_VALUE;
use volery_psi::params::MAX_ITEMS;
use volery_tables::{Counts, Duplicates, PayloadSchema, Problem, Reader, Reading, Table};

use crate::error::{Error, Result, misbehaved};
use crate::keys::{FRAME, Keys, Rows, Set, Values, divide, unframe};
use crate::matches::{Collected, RowSet, append};
use crate::parameters::Parameters;
use crate::progress::{Inner, Progress};
use crate::protocol::execute;
use crate::settings::{PROGRESS, Settings, Verb};
use crate::work::{Agreed, Part, VERSION, Work, is_complete};

/// The most rules of a run.
pub const MAX_RULES: usize = 16;

/// The most buckets of a run.
pub const MAX_BUCKETS: u32 = 1 << 14;

/// Least nanoseconds for each item, which bounds the time spent on measuring the link.
const EACH: u64 = 100;

/// Bits of the failure probability of the run that are left to overflowing buckets.
const OVERFLOW: f64 = 42.0;

/// The longest description of the keys, in bytes: it is in the first message.
const LONGEST_KEYS: usize = 3072;

/// The longest line of names and types of the payload, in bytes.
const LONGEST_LINE: usize = 1 << 16;

/// Tells the peer in step 7 that all results are on disk.
const DONE: u8 = 0x56;

/// Where this side keeps its items. Each side may choose for itself.
#[derive(Clone, Debug, Default)]
pub struct Local {
    /// Bytes of memory that the run may take: the items are then on disk. Without it they are in
    /// memory.
    pub memory: Option<u64>,
    /// The folder of the items on disk; without it, the system's folder of temporary files.
    pub folder: Option<PathBuf>,
    /// Keeps the folder until the run is complete, and goes on with the run that is in it.
    pub resume: bool,
    /// The least number of buckets; 0 and 1 leave it to the memory.
    pub buckets: u32,
}

impl Local {
    /// Whether an earlier attempt completed the run, so that nothing is left to do. Removes the keys
    /// that it left if it was killed before it had.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let folder = self.folder.as_deref().filter(|_| self.resume);
        let Some(folder) = folder.filter(|folder| is_complete(folder)) else {
            return false;
        };
        // The mark is what counts: a folder that cannot be tidied is complete as well.
        let _ = Work::kept(folder).and_then(|work| work.clear());
        true
    }
}

/// A side that has read its table.
pub struct Side {
    settings: Settings,
    stored: Stored,
    work: Option<Work>,
    memory: Option<u64>,
    least: u32,
    policy: Duplicates,
    rows: u64,
    rules: usize,
    counts: Counts,
    key_description: String,
    payload: Option<PayloadSchema>,
    longest: usize,
    digest: [u8; 32],
    /// The agreement of an earlier attempt.
    earlier: Option<Agreed>,
}

/// The items of a side.
enum Stored {
    /// Rule by rule, bucket by bucket.
    Memory(Vec<Vec<Keys>>),
    /// In the folder.
    Disk,
}

/// The keys of a part.
enum Loaded<'a> {
    Held(&'a Keys),
    Read(Keys),
}

impl std::ops::Deref for Loaded<'_> {
    type Target = Keys;

    fn deref(&self) -> &Keys {
        match self {
            Self::Held(keys) => keys,
            Self::Read(keys) => keys,
        }
    }
}

/// What a run cost and gave.
pub struct Outcome {
    /// The session, public and the same on both sides.
    pub session: SessionId,
    /// The protocol.
    pub protocol: Protocol,
    /// Why, if it was chosen.
    pub choice: Option<Choice>,
    /// The parameters of the last execution, the same for all of a rule; none if nothing was left
    /// to do.
    pub parameters: Option<Parameters>,
    /// Buckets of each rule.
    pub buckets: u32,
    /// Distinct keys of sender and receiver, rule by rule.
    pub sizes: Vec<[u64; 2]>,
    /// Items of sender and receiver in each execution, rule by rule.
    pub capacities: Vec<[u64; 2]>,
    /// Parts that an earlier attempt had finished.
    pub resumed: u32,
    /// The most times that any part was begun.
    pub attempts: u32,
    /// Lookup: bytes of the longest payload.
    pub longest: Option<usize>,
    /// Up to the choice of the protocol.
    pub setup: Duration,
    /// After it.
    pub online: Duration,
    /// Traffic of `setup`, and of base OTs.
    pub setup_traffic: Stats,
    /// All traffic.
    pub traffic: Stats,
    /// The matching rows, if this side gets them.
    pub matches: Option<Matches>,
    work: Option<Work>,
}

/// The matching rows of this side.
pub struct Matches {
    pub(crate) collected: Collected,
    /// The columns that the sender's payload has.
    pub(crate) payload: Option<PayloadSchema>,
}

impl Matches {
    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.collected.total()
    }

    /// Number of rows by the rule that they matched by first.
    #[must_use]
    pub fn by_rule(&self) -> &[u64] {
        &self.collected.by_rule
    }

    /// The columns of the payload.
    #[must_use]
    pub fn payload(&self) -> Option<&PayloadSchema> {
        self.payload.as_ref()
    }
}

/// The protocols that were compared, and for what.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The sizes of one execution.
    pub task: Task,
    /// The link.
    pub link: Link,
    /// The fastest first.
    pub candidates: Vec<Candidate>,
}

/// Names the file of two rows with the same key by the first rule.
fn in_file(table: &Table, error: Error) -> Error {
    let Error::DuplicateKey {
        rule: 1,
        first,
        second,
    } = error
    else {
        return error;
    };
    let (first_file, first) = table.place(first - 1);
    let (file, second) = table.place(second - 1);
    let problem = Problem::DuplicateKey {
        first,
        first_file: (first_file != file).then(|| first_file.to_owned()),
        second,
    };
    volery_tables::Error::new(file, problem).into()
}

impl Side {
    /// Reads the keys, and the payload if `reading` names columns.
    ///
    /// # Errors
    /// Those of the table and of the work folder; in a run that is resumed also if the table is not
    /// the one with which it began.
    pub fn read(
        table: &Table,
        reading: &Reading,
        settings: &Settings,
        local: &Local,
        progress: &mut dyn Progress,
    ) -> Result<Self> {
        let mut reader = Reader::new(table, reading)?;
        if reader.key_description().len() > LONGEST_KEYS {
            return Err(Error::LongKeys);
        }
        let rules = reading.rules.len();
        let work = match (local.resume, local.memory) {
            (true, _) => {
                let folder = local.folder.as_ref();
                Some(Work::kept(folder.expect("a run to resume has a folder"))?)
            }
            (false, Some(_)) => {
                let folder = local.folder.clone();
                Some(Work::temporary(&folder.unwrap_or_else(std::env::temp_dir))?)
            }
            (false, None) => None,
        };
        let mut earlier = None;
        if let Some(work) = work.as_ref().filter(|_| local.resume) {
            earlier = work.agreed()?;
            if earlier.is_none() {
                work.clear()?;
            }
        }
        let with_payload = !reading.values.is_empty();
        let mut spools = Vec::new();
        let mut in_memory: Vec<Rows> = Vec::new();
        match &work {
            None => in_memory.extend((0..rules).map(|_| Rows::new(with_payload))),
            Some(work) if earlier.is_none() => {
                for rule in 0..rules {
                    spools.push(work.spool(rule, with_payload)?);
                }
            }
            Some(_) => {}
        }

        progress.begin("reading keys", table.bytes());
        let mut digest = StreamHash::default();
        let mut scan = table.scan(&reader.columns())?;
        let mut items = Vec::new();
        let (mut payload, mut hashed) = (Vec::new(), Vec::new());
        let (mut rows, mut longest) = (0, 0);
        while let Some(batch) = scan.next()? {
            hashed.clear();
            for rule in 0..rules {
                items.clear();
                reader.items(&batch, rule, &mut items)?;
                for (i, item) in items.iter().enumerate() {
                    hashed.push(u8::from(item.is_some()));
                    let Some(item) = item else { continue };
                    hashed.extend_from_slice(item);
                    payload.clear();
                    reader.payload(&batch, i, &mut payload)?;
                    hashed.extend_from_slice(&payload);
                    if payload.len() + FRAME > MAX_VALUE {
                        let (path, row) = table.place(batch.row_number(i));
                        let limit = (MAX_VALUE - FRAME) as u64;
                        let problem = Problem::ValueTooLong { row, limit };
                        return Err(volery_tables::Error::new(path, problem).into());
                    }
                    longest = longest.max(payload.len());
                    let row = batch.row_number(i);
                    if let Some(rows) = in_memory.get_mut(rule) {
                        rows.push(*item, row, &payload);
                    } else if let Some(spool) = spools.get_mut(rule) {
                        spool.push(*item, row, &payload)?;
                    }
                }
            }
            digest.update(&hashed);
            rows += batch.rows.num_rows() as u64;
            progress.done(batch.done_bytes);
        }
        table.check_unchanged()?;
        for spool in spools {
            spool.finish()?;
        }
        let stored = match &work {
            Some(_) => Stored::Disk,
            None => {
                progress.begin("sorting keys", 0);
                let keys = in_memory.into_iter().enumerate();
                let keys = keys.map(|(rule, rows)| {
                    let keys = Keys::new(rows, rule, reading.duplicates);
                    Ok(vec![keys.map_err(|error| in_file(table, error))?])
                });
                Stored::Memory(keys.collect::<Result<_>>()?)
            }
        };
        let side = Self {
            settings: *settings,
            stored,
            work,
            memory: local.memory,
            least: local.buckets.clamp(1, MAX_BUCKETS),
            policy: reading.duplicates,
            rows,
            rules,
            counts: reader.counts().clone(),
            key_description: reader.key_description(),
            payload: reader.payload_schema().cloned(),
            longest,
            digest: digest.finish32(),
            earlier,
        };
        if let Some(earlier) = &side.earlier
            && earlier.own != side.own()
        {
            let path = side.work.as_ref().map(|work| work.path().to_owned());
            return Err(Error::OtherRun {
                path: path.unwrap_or_default(),
                what: "it has the progress of a run with another table or other settings",
            });
        }
        Ok(side)
    }

    /// Rows of the table.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// What was found in the rows.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Distinct keys of a rule and rows whose key an earlier row has, if they are known before the
    /// run: not where the items are on disk.
    #[must_use]
    pub fn distinct(&self, rule: usize) -> Option<(u64, u64)> {
        match &self.stored {
            Stored::Memory(keys) => {
                let buckets = keys.get(rule)?;
                let distinct = buckets.iter().map(|keys| keys.len() as u64).sum();
                Some((distinct, buckets.iter().map(|keys| keys.duplicates).sum()))
            }
            Stored::Disk => None,
        }
    }

    /// Types and normalisers of the keys, for people.
    #[must_use]
    pub fn key_description(&self) -> &str {
        &self.key_description
    }

    /// BLAKE3 of the items and payload of all rows in their order: equal for equal keys only. It
    /// tells the keys of a small table to whoever can guess them all.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether an earlier attempt has all results, and perhaps the peer does not know that.
    #[must_use]
    pub fn has_all_results(&self) -> bool {
        let (Some(work), Some(earlier)) = (&self.work, &self.earlier) else {
            return false;
        };
        self.settings.gets_rows() && self.parts(earlier.buckets).all(|part| work.has_found(part))
    }

    /// The matches of a run of which an earlier attempt has all results.
    ///
    /// # Errors
    /// Those of the work folder.
    ///
    /// # Panics
    /// If [`has_all_results`](Self::has_all_results) is false.
    pub fn into_matches(self) -> Result<(Matches, Finish)> {
        assert!(self.has_all_results(), "results are missing");
        let agreed = self.earlier.as_ref().expect("there was an attempt");
        let mut collected = self.collected()?;
        for rule in 0..self.rules {
            self.collect(rule, agreed.buckets, &[], &mut collected)?;
        }
        let line = agreed.payload.as_ref().map(|(line, _)| line.as_str());
        let payload = self.peer_payload(line)?;
        let matches = Matches { collected, payload };
        Ok((matches, Finish(self.work)))
    }

    /// What this side's run depends on, in hexadecimal.
    fn own(&self) -> String {
        let mut oracle = RandomOracle::new("volery matching: own");
        oracle.absorb(&self.digest);
        let hello = self.settings.hello(&self.key_description);
        oracle.absorb(hello.protocol.as_bytes());
        oracle.absorb(hello.role.as_bytes());
        for (name, value) in &hello.fields {
            oracle.absorb(name.as_bytes()).absorb(value.as_bytes());
        }
        oracle.absorb(&[self.policy as u8]);
        if let Some(payload) = &self.payload {
            oracle.absorb(payload.line().as_bytes());
        }
        oracle
            .finish32()
            .iter()
            .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    }

    fn parts(&self, buckets: u32) -> impl Iterator<Item = Part> + use<> {
        let rules = 0..self.rules;
        rules.flat_map(move |rule| (0..buckets).map(move |bucket| (rule, bucket)))
    }

    fn collected(&self) -> Result<Collected> {
        let folder = self.work.as_ref().map(|work| work.path().to_owned());
        Collected::new(self.rows, self.rules, folder)
    }

    /// Takes the matches of a rule: of the parts in memory, or of those on disk.
    fn collect(
        &self,
        rule: usize,
        buckets: u32,
        in_memory: &[Vec<u8>],
        collected: &mut Collected,
    ) -> Result<()> {
        match &self.work {
            None => in_memory
                .iter()
                .try_for_each(|found| collected.take(rule, found)),
            Some(work) => (0..buckets).try_for_each(|bucket| {
                let found = work.found((rule, bucket))?;
                collected.take(rule, &found.unwrap_or_default())
            }),
        }
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Bytes of the longest payload of the table.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The number of buckets with which a run of this size fits into the memory.
    pub(crate) fn wanted(&self) -> u32 {
        let Some(memory) = self.memory else {
            return match self.stored {
                // Progress is kept a bucket of some hundred thousand keys at a time.
                Stored::Disk => self.least.max((self.rows >> 20) as u32).min(MAX_BUCKETS),
                Stored::Memory(_) => self.least,
            };
        };
        let mut buckets = self.least;
        while buckets < MAX_BUCKETS && self.peak(buckets) > memory {
            buckets = (buckets * 2).min(MAX_BUCKETS);
        }
        buckets
    }

    /// Bytes of memory of a run with this many buckets, predicted for a peer with as many rows.
    #[must_use]
    pub fn peak(&self, buckets: u32) -> u64 {
        crate::plan::peak(&self.settings, self.rows, buckets, self.longest)
    }

    /// Steps 1 to 7, over a new connection.
    ///
    /// # Errors
    /// If the channel or a protocol fails, or a file.
    pub fn run(mut self, channel: &mut Channel, progress: &mut dyn Progress) -> Result<Outcome> {
        let start = Instant::now();
        progress.begin("agreeing on settings and sizes", 0);
        let mut rng = Prg::from_os().map_err(ChannelError::from)?;
        let mut nonce = [0; 32];
        rng.fill_bytes(&mut nonce);
        let hello = self.settings.hello(&self.key_description);
        let session = handshake(channel, &hello, nonce)?;
        let (resumed, buckets) = self.compare_progress(channel)?;
        let agreed = match resumed {
            true => self.earlier.clone().expect("there is progress"),
            false => {
                let key = match buckets {
                    // It divides nothing, and names the run.
                    1 => *session.as_bytes(),
                    _ => toss(self.settings.role, session, &mut rng, channel)?,
                };
                let sizes = self.divide(&key, buckets, progress)?;
                progress.begin("agreeing on settings and sizes", 0);
                self.compare_sizes(key, buckets, &sizes, channel)?
            }
        };
        let (line, longest) = match &agreed.payload {
            Some((line, longest)) => (Some(line.as_str()), Some(*longest)),
            None => (None, None),
        };
        let payload = self.peer_payload(line)?;
        let parts = u64::from(buckets) * self.rules as u64;
        let bits = OVERFLOW + (2.0 * self.rules as f64).log2();
        let capacity = |keys| match buckets {
            1 => keys,
            _ => bin_capacity(keys, buckets.into(), bits) as u64,
        };
        let capacities: Vec<_> = agreed
            .sizes
            .iter()
            .map(|sizes| sizes.map(capacity))
            .collect();
        if capacities.iter().flatten().any(|&items| items > MAX_ITEMS) {
            let items = capacities.iter().flatten().copied().max().unwrap_or(0);
            let most = MAX_ITEMS;
            return Err(volery_psi::Error::TooMany { items, most }.into());
        }
        let (protocol, choice) = self.choose(&capacities, channel)?;
        if let Some(choice) = &choice {
            progress.note(&choice.why());
        }
        if let (Some(work), false) = (&self.work, resumed)
            && self.earlier_kept()
        {
            work.put_agreed(&agreed)?;
        }
        let (both_keep, done) = self.compare_parts(buckets, channel)?;
        let (setup, setup_traffic) = (start.elapsed(), channel.stats());

        let several = parts > 1;
        if several {
            progress.begin("matching buckets", parts);
        }
        let mut collected = self.collected()?;
        let mut parameters = None;
        let mut setups = Vec::new();
        let mut finished = 0;
        for rule in 0..self.rules {
            let earlier = collected.set.clone();
            let mut in_memory = Vec::new();
            for bucket in 0..buckets {
                let part = (rule, bucket);
                if !done[rule * buckets as usize + bucket as usize] {
                    let id = part_session(session, part);
                    if let Some(work) = self.work.as_ref().filter(|_| self.earlier_kept()) {
                        work.begin(part, id)?;
                    }
                    let keys = self.load(part)?;
                    let run = (protocol, id, rng.fork("part"), parts);
                    let sizes = capacities[rule];
                    let longest = longest.unwrap_or(0);
                    let watch = &mut Inner {
                        progress: &mut *progress,
                        shown: !several,
                    };
                    let (found, by, setup) =
                        self.part(run, &keys, &earlier, (sizes, longest), watch, channel)?;
                    parameters = Some(by);
                    setups.push(setup);
                    match &self.work {
                        Some(work) if self.settings.gets_rows() => {
                            if !work.has_found(part) {
                                work.put_found(part, &found)?;
                            }
                        }
                        _ => in_memory.push(found),
                    }
                }
                finished += 1;
                if several {
                    progress.done(finished);
                }
            }
            if self.settings.gets_rows() {
                self.collect(rule, buckets, &in_memory, &mut collected)?;
            }
        }
        if both_keep {
            self.conclude(channel)?;
        }
        let mut attempts = 1;
        if let Some(work) = &self.work {
            let begun = work.attempts()?;
            let count = |part: &Part| begun.iter().filter(|one| *one == part).count() as u32;
            attempts = self
                .parts(buckets)
                .map(|part| count(&part))
                .max()
                .unwrap_or(1);
        }
        let matches = self
            .settings
            .gets_rows()
            .then_some(Matches { collected, payload });
        let traffic = channel.stats();
        let online = setups.into_iter().fold(traffic - setup_traffic, Sub::sub);
        Ok(Outcome {
            session,
            protocol,
            choice,
            parameters,
            buckets,
            sizes: agreed.sizes,
            capacities,
            resumed: done.iter().filter(|done| **done).count() as u32,
            attempts: attempts.max(1),
            longest,
            setup,
            online: start.elapsed() - setup,
            setup_traffic: traffic - online,
            traffic,
            matches,
            work: self.work,
        })
    }

    /// Whether this side keeps its progress.
    fn earlier_kept(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_kept())
    }

    /// Step 1. Whether both have progress of the same run, and the number of buckets.
    fn compare_progress(&mut self, channel: &mut Channel) -> Result<(bool, u32)> {
        let mut id = [0; 32];
        let (mut begun, mut least) = (false, self.wanted());
        if let (Some(work), Some(earlier)) = (&self.work, &self.earlier) {
            id = earlier.id();
            begun = !work.attempts()?.is_empty();
            least = least.max(earlier.buckets);
        }
        channel.send(&id)?;
        channel.send(&[begun.into()])?;
        channel.send(&least.to_le_bytes())?;
        let (mut theirs, mut their_begun, mut their_least) = ([0; 32], [0], [0; 4]);
        channel.recv(&mut theirs)?;
        channel.recv(&mut their_begun)?;
        channel.recv(&mut their_least)?;
        let their_least = u32::from_le_bytes(their_least);
        if their_least > MAX_BUCKETS || their_begun[0] > 1 {
            return Err(misbehaved("its first numbers are malformed"));
        }
        if let Some(earlier) = self.earlier.as_ref().filter(|_| theirs == id) {
            return Ok((true, earlier.buckets));
        }
        if begun || their_begun == [1] {
            let ours = if begun {
                "the progress of a run"
            } else {
                "none"
            };
            return Err(ChannelError::Mismatch {
                field: PROGRESS.to_owned(),
                ours: ours.to_owned(),
                theirs: "another, or none".to_owned(),
            }
            .into());
        }
        if let (Some(work), Some(earlier)) = (&self.work, self.earlier.take()) {
            // The peer had not written its agreement: both begin anew.
            work.forget()?;
            for rule in 0..self.rules {
                work.join(rule, earlier.buckets)?;
            }
        }
        Ok((false, least.max(their_least).max(1)))
    }

    /// Divides the items into buckets; returns the number of distinct keys by rule.
    fn divide(
        &mut self,
        key: &[u8; 32],
        buckets: u32,
        progress: &mut dyn Progress,
    ) -> Result<Vec<u64>> {
        let with_payload = self.payload.is_some();
        let policy = self.policy;
        match (&mut self.stored, &self.work) {
            (Stored::Memory(all), _) => {
                if buckets > 1 {
                    for (rule, keys) in all.iter_mut().enumerate() {
                        let rows = keys.pop().expect("one bucket").into_rows();
                        let rows = divide(&rows, key, buckets).into_iter();
                        *keys = rows
                            .map(|rows| Keys::new(rows, rule, policy))
                            .collect::<Result<_>>()?;
                    }
                }
                let sizes = all
                    .iter()
                    .map(|keys| keys.iter().map(|keys| keys.len() as u64));
                Ok(sizes.map(Iterator::sum).collect())
            }
            (Stored::Disk, Some(work)) => {
                let mut sizes = Vec::new();
                for rule in 0..self.rules {
                    work.divide(rule, with_payload, (key, buckets), progress)?;
                    progress.begin("counting distinct keys", buckets.into());
                    let mut size = 0;
                    for bucket in 0..buckets {
                        let rows = work.rows((rule, bucket), with_payload)?;
                        size += Keys::new(rows, rule, policy)?.len() as u64;
                        progress.done(u64::from(bucket) + 1);
                    }
                    sizes.push(size);
                }
                Ok(sizes)
            }
            (Stored::Disk, None) => unreachable!("items on disk are in a folder"),
        }
    }

    /// Step 3.
    fn compare_sizes(
        &self,
        key: [u8; 32],
        buckets: u32,
        ours: &[u64],
        channel: &mut Channel,
    ) -> Result<Agreed> {
        for size in ours {
            channel.send(&size.to_le_bytes())?;
        }
        let lookup = self.settings.verb == Verb::Lookup;
        if let (true, Some(payload)) = (lookup, &self.payload) {
            let line = payload.line();
            channel.send(&(line.len() as u32).to_le_bytes())?;
            channel.send(line.as_bytes())?;
            channel.send(&(self.longest as u32).to_le_bytes())?;
        }
        let mut sizes = Vec::new();
        for &ours in ours {
            let mut theirs = [0; 8];
            channel.recv(&mut theirs)?;
            let theirs = u64::from_le_bytes(theirs);
            if theirs > MAX_ITEMS.saturating_mul(buckets.into()) {
                return Err(misbehaved("it announced a set larger than the maximum"));
            }
            sizes.push(match self.settings.role {
                Role::Sender => [ours, theirs],
                Role::Receiver => [theirs, ours],
            });
        }
        let payload = match (lookup, self.settings.role) {
            (false, _) => None,
            (true, Role::Sender) => {
                let payload = self
                    .payload
                    .as_ref()
                    .expect("a sender of a lookup has columns");
                Some((payload.line(), self.longest))
            }
            (true, Role::Receiver) => {
                let mut number = || -> Result<usize> {
                    let mut number = [0; 4];
                    channel.recv(&mut number)?;
                    Ok(u32::from_le_bytes(number) as usize)
                };
                let length = number()?;
                if length > LONGEST_LINE {
                    return Err(misbehaved("its list of columns is too long"));
                }
                let mut line = vec![0; length];
                channel.recv(&mut line)?;
                let mut longest = [0; 4];
                channel.recv(&mut longest)?;
                let longest = u32::from_le_bytes(longest) as usize;
                let line = String::from_utf8(line)
                    .map_err(|_| misbehaved("its list of columns is not UTF-8"))?;
                if longest + FRAME > MAX_VALUE {
                    return Err(misbehaved("it announced values longer than the maximum"));
                }
                Some((line, longest))
            }
        };
        Ok(Agreed {
            version: VERSION,
            own: self.own(),
            key,
            buckets,
            sizes,
            payload,
        })
    }

    /// The receiver's view of the sender's columns.
    fn peer_payload(&self, line: Option<&str>) -> Result<Option<PayloadSchema>> {
        match (self.settings.role, line) {
            (Role::Receiver, Some(line)) => {
                let schema = PayloadSchema::parse(line);
                Ok(Some(schema.map_err(|_| {
                    misbehaved("its list of columns is malformed")
                })?))
            }
            _ => Ok(None),
        }
    }

    /// Step 4.
    fn choose(
        &self,
        capacities: &[[u64; 2]],
        channel: &mut Channel,
    ) -> Result<(Protocol, Option<Choice>)> {
        let settings = &self.settings;
        if let Some(protocol) = settings.name.protocol(settings.security) {
            return Ok((protocol, None));
        }
        let largest = |side: usize| {
            capacities
                .iter()
                .map(|sizes| sizes[side])
                .max()
                .unwrap_or(0)
        };
        let [sender_items, receiver_items] = [largest(0), largest(1)];
        let link = match settings.link {
            Some(link) => link,
            None => {
                let side = match settings.role {
                    Role::Sender => LinkSide::IsMeasured,
                    Role::Receiver => LinkSide::Measures,
                };
                let work = Duration::from_nanos((sender_items + receiver_items) * EACH);
                estimate(channel, side, work)?
            }
        };
        let task = settings.task([sender_items, receiver_items]);
        let candidates = candidates(&task, link);
        let best = candidates.first().expect("the settings were checked");
        let protocol = best.protocol;
        let choice = Choice {
            task,
            link,
            candidates,
        };
        Ok((protocol, Some(choice)))
    }

    /// Step 5: whether both keep their progress, and the parts that need not run, bucket by bucket
    /// of each rule.
    fn compare_parts(&self, buckets: u32, channel: &mut Channel) -> Result<(bool, Vec<bool>)> {
        let count = buckets as usize * self.rules;
        let kept = [u8::from(self.earlier_kept())];
        let mut their_kept = [0];
        channel.send(&kept)?;
        channel.recv(&mut their_kept)?;
        if kept != [1] || their_kept != [1] {
            return Ok((false, vec![false; count]));
        }
        let work = self.work.as_ref().expect("progress is in a folder");
        let mut ours = vec![0; count.div_ceil(8)];
        for (i, part) in self.parts(buckets).enumerate() {
            // The sender has nothing to keep unless it gets rows.
            let done = !self.settings.gets_rows() || work.has_found(part);
            ours[i / 8] |= u8::from(done) << (i % 8);
        }
        channel.send(&ours)?;
        let mut theirs = vec![0; ours.len()];
        channel.recv(&mut theirs)?;
        let bit = |bits: &[u8], i: usize| bits[i / 8] >> (i % 8) & 1 == 1;
        let done = (0..count).map(|i| bit(&ours, i) && bit(&theirs, i));
        Ok((true, done.collect()))
    }

    /// The keys of a part.
    fn load(&self, (rule, bucket): Part) -> Result<Loaded<'_>> {
        match (&self.stored, &self.work) {
            (Stored::Memory(keys), _) => Ok(Loaded::Held(&keys[rule][bucket as usize])),
            (Stored::Disk, Some(work)) => {
                let rows = work.rows((rule, bucket), self.payload.is_some())?;
                Ok(Loaded::Read(Keys::new(rows, rule, self.policy)?))
            }
            (Stored::Disk, None) => unreachable!("items on disk are in a folder"),
        }
    }

    /// Step 6 for one part: the matches, as in [`append`].
    fn part(
        &self,
        (protocol, id, mut rng, parts): (Protocol, SessionId, Prg, u64),
        keys: &Keys,
        earlier: &RowSet,
        ([sender_items, receiver_items], longest): ([u64; 2], usize),
        watch: &mut Inner<'_>,
        channel: &mut Channel,
    ) -> Result<(Vec<u8>, Parameters, Stats)> {
        let role = self.settings.role;
        let size = match role {
            Role::Sender => sender_items,
            Role::Receiver => receiver_items,
        };
        let takes_part = |row| role == Role::Sender || !earlier.contains(row);
        let set = Set::new(keys, takes_part, size, &mut rng)?;
        let answers = (self.settings.verb, role) == (Verb::Lookup, Role::Sender);
        let values = answers.then(|| Values::new(&set, longest));
        let run = (id, rng.fork("protocol"), parts);
        let executed = execute(
            protocol,
            &self.settings,
            run,
            &set,
            values.as_ref(),
            watch,
            channel,
        )?;
        if executed.parameters.sizes() != [sender_items, receiver_items] {
            let what = "its set has another size than it announced";
            return Err(misbehaved(what));
        }
        if let Some(said) = executed.longest
            && size > 0
            && role == Role::Receiver
            && sender_items > 0
            && said != longest + FRAME
        {
            return Err(misbehaved(
                "its values have another length than it announced",
            ));
        }
        let mut found = Vec::new();
        for (i, place) in executed.common.unwrap_or_default().into_iter().enumerate() {
            let Some(item) = set.item_at(place) else {
                continue;
            };
            let payload = match executed.values.get(i) {
                Some(value) => unframe(value)
                    .ok_or_else(|| misbehaved("a value has another length than it states"))?,
                None => &[],
            };
            for row in keys.rows_of(item) {
                append(&mut found, row, payload);
            }
        }
        Ok((found, executed.parameters, executed.setup))
    }

    /// Step 7, where both keep their progress.
    fn conclude(&self, channel: &mut Channel) -> Result<()> {
        let Some(work) = &self.work else {
            return Ok(());
        };
        let mut byte = [0];
        let mut hear = |channel: &mut Channel| -> Result<()> {
            channel.recv(&mut byte)?;
            match byte {
                [DONE] => Ok(()),
                _ => Err(misbehaved("it sent an unexpected final message")),
            }
        };
        match self.settings.role {
            Role::Receiver => {
                channel.send(&[DONE])?;
                hear(channel)
            }
            Role::Sender => {
                hear(channel)?;
                if !self.settings.gets_rows() {
                    work.complete()?;
                }
                channel.send(&[DONE])?;
                Ok(channel.flush()?)
            }
        }
    }
}

/// The end of a run whose output was written: removes the items and results on disk.
pub struct Finish(Option<Work>);

impl Finish {
    /// Removes them; what a resumed run leaves says that it is complete.
    ///
    /// # Errors
    /// Those of the folder.
    pub fn finish(self) -> Result<()> {
        let Some(work) = self.0 else { return Ok(()) };
        if work.is_kept() {
            work.complete()?;
            work.clear()?;
        }
        Ok(())
    }
}

impl Outcome {
    /// The end of the run, for when the output is written, and the rest.
    #[must_use]
    pub fn split(mut self) -> (Finish, Self) {
        (Finish(self.work.take()), self)
    }
}

/// Step 2: a key that neither party chose.
fn toss(role: Role, session: SessionId, rng: &mut Prg, channel: &mut Channel) -> Result<[u8; 32]> {
    let commit = |role: Role, share: &[u8; 32]| {
        RandomOracle::new("volery matching: commitment")
            .absorb(session.as_bytes())
            .absorb(role.name().as_bytes())
            .absorb(share)
            .finish32()
    };
    let mut ours = [0; 32];
    rng.fill_bytes(&mut ours);
    channel.send(&commit(role, &ours))?;
    let mut committed = [0; 32];
    channel.recv(&mut committed)?;
    channel.send(&ours)?;
    let mut theirs = [0; 32];
    channel.recv(&mut theirs)?;
    if committed != commit(role.other(), &theirs) {
        return Err(misbehaved("its opening does not match its commitment"));
    }
    let [sender, receiver] = match role {
        Role::Sender => [ours, theirs],
        Role::Receiver => [theirs, ours],
    };
    Ok(RandomOracle::new("volery matching: key of the buckets")
        .absorb(session.as_bytes())
        .absorb(&sender)
        .absorb(&receiver)
        .finish32())
}

/// The session of a part: another one in each connection.
fn part_session(session: SessionId, (rule, bucket): Part) -> SessionId {
    let mut oracle = RandomOracle::new("volery matching: part");
    oracle.absorb(session.as_bytes());
    oracle.absorb_u64(rule as u64).absorb_u64(bucket.into());
    SessionId::from_bytes(oracle.finish32())
}
