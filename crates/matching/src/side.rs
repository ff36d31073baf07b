//! One side before the run: its table read into items, in memory or in files.

use std::path::PathBuf;

use volery_channel::{Channel, Hello, Role, SessionId};
use volery_primitives::prg::Prg;
use volery_primitives::ro::{RandomOracle, StreamHash};
use volery_psi::lookup::MAX_VALUE;
use volery_tables::{Counts, Duplicates, PayloadSchema, Problem, Reader, Reading, Table};

use crate::agree::Proposal;
use crate::agreement::{Agreement, LocalManifest, MAX_BUCKETS, parse};
use crate::error::{Error, Result, misbehaved};
use crate::folder::{Finish, Folder, is_complete};
use crate::keys::{FRAME, Keys, Rows, divide};
use crate::matches::{MatchCollection, Matches};
use crate::output::Columns;
use crate::parameters::peak;
use crate::parts::{Journal as _, Part};
use crate::progress::Progress;
use crate::settings::{Operation, Settings};
use crate::steps::hex;

/// The most rules of a run.
pub const MAX_RULES: usize = 16;

/// The longest description of the keys, in bytes: it is in the first message.
pub(crate) const LONGEST_KEYS: usize = 3072;

/// The phase of steps 1 to 3.
const AGREEING: &str = "agreeing on settings and sizes";

/// Where this side keeps its items. Each side may choose for itself.
#[derive(Clone, Debug, Default)]
pub struct StorageOptions {
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

impl StorageOptions {
    /// Whether an earlier attempt completed the run, so that nothing is left to do. Removes the
    /// keys that it left if it was killed before it had.
    pub fn is_complete(&self) -> bool {
        let folder = self.folder.as_deref().filter(|_| self.resume);
        let Some(folder) = folder.filter(|folder| is_complete(folder)) else {
            return false;
        };
        // The mark is what counts: a folder that cannot be tidied is complete as well.
        let _ = Folder::kept(folder).and_then(|work| work.clear());
        true
    }
}

/// A side that has read its table.
pub struct PreparedTable {
    pub(crate) settings: Settings,
    pub(crate) stored: KeyStorage,
    pub(crate) work: Option<Folder>,
    pub(crate) memory: Option<u64>,
    pub(crate) least: u32,
    pub(crate) policy: Duplicates,
    pub(crate) rows: u64,
    pub(crate) rules: usize,
    pub(crate) counts: Counts,
    pub(crate) key_description: String,
    pub(crate) payload: Option<PayloadSchema>,
    pub(crate) longest: usize,
    pub(crate) names: usize,
    pub(crate) digest: [u8; 32],
    /// A digest of all that the run of this side depends on, in hexadecimal.
    pub(crate) identity: String,
    /// The agreement of an earlier attempt with the same table and settings.
    pub(crate) earlier: Option<Agreement>,
}

/// The items of a side.
pub(crate) enum KeyStorage {
    /// Rule by rule, bucket by bucket.
    Memory(Vec<Vec<Keys>>),
    /// In the folder.
    Disk,
}

pub(crate) enum PartKeys<'a> {
    Held(&'a Keys),
    Read(Keys),
}

impl std::ops::Deref for PartKeys<'_> {
    type Target = Keys;

    fn deref(&self) -> &Keys {
        match self {
            Self::Held(keys) => keys,
            Self::Read(keys) => keys,
        }
    }
}

/// A hash of what the run of a side depends on: its table, settings and policy.
pub fn own(digest: &[u8], hello: &Hello, policy: Duplicates) -> RandomOracle {
    let mut oracle = RandomOracle::new("volery matching: own");
    oracle.absorb(digest);
    oracle.absorb(hello.protocol.as_bytes());
    oracle.absorb(hello.role.as_bytes());
    for (name, value) in &hello.fields {
        oracle.absorb(name.as_bytes()).absorb(value.as_bytes());
    }
    oracle.absorb(&[policy as u8]);
    oracle
}

/// The digest in the secrets of an earlier attempt.
fn read_identity(text: &[u8]) -> Result<String, &'static str> {
    #[derive(serde::Deserialize)]
    struct Secrets {
        digest: String,
    }
    let read = serde_json::from_slice::<Secrets>(text);
    read.map(|secrets| secrets.digest).map_err(|_| "it does not hold the secrets of a driver")
}

/// Names the file of two rows with the same key by the first rule.
pub(crate) fn in_file(table: &Table, error: Error) -> Error {
    let Error::DuplicateKey { rule: 1, first, second } = error else {
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

impl PreparedTable {
    /// Reads the keys, and the payload if `reading` names columns.
    ///
    /// # Errors
    /// Errors of the table and of the work folder; in a run that is resumed also if the table is
    /// not the one with which it began.
    pub fn read(
        table: &Table,
        reading: &Reading,
        settings: &Settings,
        local: &StorageOptions,
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
                Some(Folder::kept(folder.expect("a run to resume has a folder"))?)
            }
            (false, Some(_)) => {
                let folder = local.folder.clone();
                Some(Folder::temporary(&folder.unwrap_or_else(std::env::temp_dir))?)
            }
            (false, None) => None,
        };
        let (mut earlier, mut identity) = (None, None);
        if let Some(work) = work.as_ref().filter(|_| local.resume) {
            earlier = work.read_record(|text| {
                let earlier: Agreement = parse(text)?;
                earlier.check().map(|()| earlier)
            })?;
            identity = work.read_secrets(read_identity)?;
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
        let mut items = vec![Vec::new(); rules];
        let (mut payload, mut hashed) = (Vec::new(), Vec::new());
        let (mut rows, mut longest) = (0, 0);
        while let Some(batch) = scan.next()? {
            hashed.clear();
            for (rule, items) in items.iter_mut().enumerate() {
                items.clear();
                reader.items(&batch, rule, items)?;
            }
            // Row by row, so that it does not matter where a batch ends: two tables would have one
            // digest if the items of a rule could pass for those of another.
            for i in 0..batch.rows.num_rows() {
                let row = batch.row_number(i);
                payload.clear();
                if items.iter().any(|items| items[i].is_some()) {
                    reader.payload(&batch, i, &mut payload)?;
                }
                if payload.len() + FRAME > MAX_VALUE {
                    let (path, row) = table.place(row);
                    let limit = (MAX_VALUE - FRAME) as u64;
                    let problem = Problem::ValueTooLong { row, limit };
                    return Err(volery_tables::Error::new(path, problem).into());
                }
                longest = longest.max(payload.len());
                for (rule, items) in items.iter().enumerate() {
                    hashed.push(u8::from(items[i].is_some()));
                    let Some(item) = &items[i] else { continue };
                    hashed.extend_from_slice(item);
                    if let Some(rows) = in_memory.get_mut(rule) {
                        rows.push(*item, row, &payload);
                    } else if let Some(spool) = spools.get_mut(rule) {
                        spool.push(*item, row, &payload)?;
                    }
                }
                // Its columns say where it ends; a row without an item has none.
                hashed.extend_from_slice(&payload);
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
            Some(_) => KeyStorage::Disk,
            None => {
                progress.begin("sorting keys", 0);
                let keys = in_memory.into_iter().enumerate();
                let keys = keys.map(|(rule, rows)| {
                    let keys = Keys::new(rows, rule, reading.duplicates);
                    Ok(vec![keys.map_err(|error| in_file(table, error))?])
                });
                KeyStorage::Memory(keys.collect::<Result<_>>()?)
            }
        };
        let mut side = Self {
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
            names: 0,
            digest: digest.finish32(),
            identity: String::new(),
            earlier,
        };
        side.identity = side.own();
        let least = side.peak(MAX_BUCKETS);
        if let Some(given) = local.memory.filter(|memory| *memory < least) {
            return Err(Error::LittleMemory { given, least });
        }
        if side.earlier.is_some() {
            // mutant(match-own): false
            if identity.as_ref() != Some(&side.identity) {
                return Err(side.other_run(
                    "it has the progress of a run with another table or other settings",
                ));
            }
        }
        Ok(side)
    }

    /// The side with the names that `columns` has for the sender's columns: a run ends before its
    /// protocol if the sender has another number of columns.
    #[must_use]
    pub fn naming(self, columns: &Columns) -> Self {
        Self { names: columns.names.len(), ..self }
    }

    /// Rows of the table.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Counts of empty, malformed and changed keys.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Distinct keys of a rule and rows whose key an earlier row has, if they are known before the
    /// run: not where the items are on disk.
    #[must_use]
    pub fn distinct(&self, rule: usize) -> Option<(u64, u64)> {
        match &self.stored {
            KeyStorage::Memory(keys) => {
                let buckets = keys.get(rule)?;
                let distinct = buckets.iter().map(|keys| keys.len() as u64).sum();
                Some((distinct, buckets.iter().map(|keys| keys.duplicates).sum()))
            }
            KeyStorage::Disk => None,
        }
    }

    /// The most rows that can match where the peer has so many rows, or as many keys as it stated
    /// in an earlier attempt.
    pub fn most_matches(&self, peer_rows: Option<u64>) -> u64 {
        let stated = |earlier: &Agreement| {
            let sizes = earlier.sizes().iter().map(|sizes| self.settings.role.sides(*sizes)[1]);
            sizes.sum()
        };
        let keys = peer_rows.map(|rows| rows.saturating_mul(self.rules as u64));
        let peer = self.earlier.as_ref().map(stated).or(keys).unwrap_or(u64::MAX);
        let rules = 0..self.rules;
        let repeated = rules.map(|rule| self.distinct(rule).map(|(_, repeated)| repeated));
        // A key of the peer matches one row, and those that repeat it.
        let repeated = repeated.sum::<Option<u64>>().unwrap_or(self.rows);
        self.rows.min(peer.saturating_add(repeated))
    }

    /// Types and normalisers of the keys, for people.
    pub fn key_description(&self) -> &str {
        &self.key_description
    }

    /// BLAKE3 of the items and payload of all rows in their order: equal for equal keys only. It
    /// tells the keys of a small table to whoever can guess them all.
    pub fn digest(&self) -> [u8; 32] {
        self.digest
    }

    /// Whether an earlier attempt has all results of this side, and perhaps the peer does not know
    /// that. With `both`, the peer may lack results of its own.
    pub fn has_all_results(&self) -> bool {
        let (Some(work), Some(earlier)) = (&self.work, &self.earlier) else {
            return false;
        };
        self.settings.gets_rows() && self.parts(earlier.buckets()).all(|part| work.has_found(part))
    }

    /// The matches of a run of which an earlier attempt has all results.
    ///
    /// # Panics
    /// If [`has_all_results`](Self::has_all_results) is false.
    pub fn into_matches(self) -> Result<(Matches, Finish)> {
        assert!(self.has_all_results(), "results are missing");
        let agreement = self.earlier.clone().expect("there was an attempt");
        let (matches, finish) = self.into_results(&agreement)?;
        Ok((matches.expect("this side gets rows"), finish))
    }

    /// The matches of a run that has finished all its parts, if this side gets them, and the end of
    /// the run.
    ///
    /// # Errors
    /// Errors of the work folder; if a result is missing.
    pub fn into_results(self, agreement: &Agreement) -> Result<(Option<Matches>, Finish)> {
        let matches = match self.settings.gets_rows() {
            true => {
                let mut collected = self.collected()?;
                for rule in 0..self.rules {
                    self.collect(rule, agreement.buckets(), &[], &mut collected)?;
                }
                let payload = self.peer_payload(agreement)?;
                Some(Matches { collected, payload })
            }
            false => {
                self.work.as_ref().map_or(Ok(()), Folder::complete)?;
                None
            }
        };
        Ok((matches, Finish(self.work)))
    }

    /// The receiver's view of the sender's columns.
    pub(crate) fn peer_payload(&self, agreement: &Agreement) -> Result<Option<PayloadSchema>> {
        match (self.settings.role, agreement.payload()) {
            (Role::Receiver, Some((line, _))) => {
                let schema = PayloadSchema::parse(line);
                Ok(Some(schema.map_err(|_| misbehaved("its list of columns is malformed"))?))
            }
            _ => Ok(None),
        }
    }

    /// A digest of all that the run of this side depends on, in hexadecimal.
    pub(crate) fn own(&self) -> String {
        let hello = self.settings.hello(&self.key_description);
        let mut oracle = own(&self.digest, &hello, self.policy);
        if let Some(payload) = &self.payload {
            oracle.absorb(payload.line().as_bytes());
        }
        hex(&oracle.finish32())
    }

    pub(crate) fn parts(&self, buckets: u32) -> impl Iterator<Item = Part> + use<> {
        let rules = 0..self.rules;
        rules.flat_map(move |rule| (0..buckets).map(move |bucket| (rule, bucket)))
    }

    pub(crate) fn collected(&self) -> Result<MatchCollection> {
        let folder = self.work.as_ref().map(|work| work.path().to_owned());
        MatchCollection::new(self.rows, self.rules, folder)
    }

    /// Takes the matches of a rule: of the parts in memory, or of those on disk.
    pub(crate) fn collect(
        &self,
        rule: usize,
        buckets: u32,
        in_memory: &[Vec<u8>],
        collected: &mut MatchCollection,
    ) -> Result<()> {
        match &self.work {
            None => in_memory.iter().try_for_each(|found| collected.take(rule, found)),
            Some(work) => (0..buckets).try_for_each(|bucket| {
                let found = work.found((rule, bucket))?;
                let found = found.ok_or_else(|| Error::OtherRun {
                    path: work.path().to_owned(),
                    what: "the result of a part is missing",
                })?;
                collected.take(rule, &found)
            }),
        }
    }

    /// The settings of the run.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Bytes of the longest payload of the table.
    pub(crate) fn longest(&self) -> usize {
        self.longest
    }

    /// The number of buckets with which a run of this size fits into the memory.
    pub(crate) fn min_buckets(&self) -> u32 {
        let Some(memory) = self.memory else {
            return match self.stored {
                // Progress is kept a bucket of some hundred thousand keys at a time.
                KeyStorage::Disk => self.least.max((self.rows >> 20) as u32).min(MAX_BUCKETS),
                KeyStorage::Memory(_) => self.least,
            };
        };
        let mut buckets = self.least;
        while buckets < MAX_BUCKETS && self.peak(buckets) > memory {
            buckets = (buckets * 2).min(MAX_BUCKETS);
        }
        buckets
    }

    /// Bytes of memory of a run with this many buckets, predicted for a peer with as many rows.
    pub fn peak(&self, buckets: u32) -> u64 {
        peak(&self.settings, self.rows, buckets, self.longest)
    }

    pub(crate) fn other_run(&self, what: &'static str) -> Error {
        let path = self.work.as_ref().map(|work| work.path().to_owned());
        Error::OtherRun { path: path.unwrap_or_default(), what }
    }

    /// The folder, if this side keeps its progress.
    pub fn kept(&self) -> Option<&Folder> {
        self.work.as_ref().filter(|work| work.is_kept())
    }

    /// Steps 1 to 3.
    pub(crate) fn agree(
        &mut self,
        rng: &mut Prg,
        channel: &mut Channel,
        progress: &mut dyn Progress,
    ) -> Result<(SessionId, bool, Agreement)> {
        progress.begin(AGREEING, 0);
        let proposal = self.proposal()?;
        let met = proposal.meet(rng, channel)?;
        if let (true, Some(earlier)) = (met.resumed, &self.earlier) {
            return Ok((met.session, true, earlier.clone()));
        }
        self.forget()?;
        let key = proposal.key(&met, rng, channel)?;
        let sizes = self.divide(&key, met.buckets, progress)?;
        progress.begin(AGREEING, 0);
        let agreement = proposal.settle(&met, key, &sizes, channel)?;
        Ok((met.session, false, agreement))
    }

    /// The proposal with which this side meets the peer.
    pub fn proposal(&self) -> Result<Proposal> {
        let begun = match (&self.work, &self.earlier) {
            (Some(work), Some(_)) => work.most_attempts()? > 0,
            _ => false,
        };
        let payload = self.payload.as_ref();
        let earlier = self.earlier.as_ref();
        earlier.map_or(Ok(()), |earlier| earlier.check_names(self.names))?;
        Ok(Proposal {
            role: self.settings.role,
            hello: self.settings.hello(&self.key_description),
            own: LocalManifest { rows: self.rows, dedup: self.policy == Duplicates::Dedup },
            lookup: self.settings.verb == Operation::Lookup,
            payload: payload.map(|payload| (payload.line(), self.longest)),
            names: self.names,
            least: self.min_buckets(),
            earlier: earlier.map(|earlier| (earlier.id(&()), earlier.buckets())),
            begun,
        })
    }

    /// Forgets the agreement of an earlier attempt, which the peer had not written: both begin
    /// anew.
    pub fn forget(&mut self) -> Result<()> {
        if let (Some(work), Some(earlier)) = (&self.work, self.earlier.take()) {
            work.forget()?;
            for rule in 0..self.rules {
                work.join(rule, earlier.buckets())?;
            }
        }
        Ok(())
    }

    /// Writes the record of a run of several processes, of which `agreement` is a part, and the
    /// secrets with which this side agreed.
    ///
    /// # Panics
    /// If the side keeps no folder.
    pub fn keep(&mut self, agreement: &Agreement, record: &str, secrets: &str) -> Result<()> {
        let work = self.kept().expect("a run of several processes has a folder");
        work.put_record(record, secrets)?;
        let mut earlier = agreement.clone();
        earlier.is_divided = true;
        self.earlier = Some(earlier);
        Ok(())
    }

    /// A digest of all that the run of this side depends on, in hexadecimal: of its table, settings
    /// and policy. It tells the keys of a small table to whoever can guess them all.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Whether there is the agreement of an earlier attempt.
    pub fn has_earlier(&self) -> bool {
        self.earlier.is_some()
    }

    /// Divides the items into buckets; returns the number of distinct keys by rule.
    pub fn divide(
        &mut self,
        key: &[u8; 32],
        buckets: u32,
        progress: &mut dyn Progress,
    ) -> Result<Vec<u64>> {
        let with_payload = self.payload.is_some();
        let policy = self.policy;
        match (&mut self.stored, &self.work) {
            (KeyStorage::Memory(all), _) => {
                if buckets > 1 {
                    for (rule, keys) in all.iter_mut().enumerate() {
                        let rows = keys.pop().expect("one bucket").into_rows();
                        let rows = divide(&rows, key, buckets).into_iter();
                        *keys = rows
                            .map(|rows| Keys::new(rows, rule, policy))
                            .collect::<Result<_>>()?;
                    }
                }
                let sizes = all.iter().map(|keys| keys.iter().map(|keys| keys.len() as u64));
                Ok(sizes.map(Iterator::sum).collect())
            }
            (KeyStorage::Disk, Some(work)) => {
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
            (KeyStorage::Disk, None) => unreachable!("items on disk are in a folder"),
        }
    }

    pub(crate) fn load(&self, (rule, bucket): Part) -> Result<PartKeys<'_>> {
        match (&self.stored, &self.work) {
            (KeyStorage::Memory(keys), _) => Ok(PartKeys::Held(&keys[rule][bucket as usize])),
            (KeyStorage::Disk, Some(work)) => {
                let rows = work.rows((rule, bucket), self.payload.is_some())?;
                Ok(PartKeys::Read(Keys::new(rows, rule, self.policy)?))
            }
            (KeyStorage::Disk, None) => unreachable!("items on disk are in a folder"),
        }
    }
}
