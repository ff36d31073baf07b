//! The folder of a run on disk: items in buckets, and the progress of a run that can be resumed.
//!
//! | file | content | written |
//! |---|---|---|
//! | `items-R` | items and rows of rule R, in the order of the rows | once, then removed |
//! | `part-R-B` | those of bucket B, in the order of the rows | appended, all before `run.json` |
//! | `driver.json` | the secrets of this side's driver | before `run.json`, by renaming |
//! | `run.json` | the manifest, which workers get | once, by renaming |
//! | `begun-R-B-N` | the session in which bucket B of rule R was begun for the Nth time | once, by whoever makes the file |
//! | `found-R-B` | the matches of a finished part, or shares of its totals with their session | once, by renaming; shares again by each attempt |
//! | `totals.json` | totals that were opened | by renaming; again if they are opened again |
//! | `totals.told` | nothing: the peer has its totals, too | once |
//! | `found-rows-N` | matches of a range of rows, made anew from `found-R-B` | appended |
//! | `complete-R-W` | nothing: both sides have all results of worker W for rule R | once |
//! | `ticket-W` | the certificate and key of worker W, while it runs | anew each time |
//! | `matched/R-B` | the receiver's rows that matched in bucket B by rule R, which workers of later rules leave out | once, by renaming |
//! | `worker-W/` | what worker W gets, and its results, while it runs elsewhere | see below |
//! | `complete` | nothing: the peer has all its results, too | once |
//!
//! Correlated randomness, one-time pads and keys of protocols are never written.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use volery_channel::SessionId;
use volery_os::fs::{Lock, remove_dir, remove_file, rename, sync_all};
use volery_os::random::fill;
use zeroize::Zeroizing;

use crate::error::{ATTEMPTS, Error, Result};
use crate::keys::{Entry, Payload, Rows, buckets};
use crate::parts::{Journal, Part, SESSION};
use crate::progress::Progress;
use crate::steps::hex;
use crate::system;

/// The file of the agreement.
pub const RECORD: &str = "run.json";

/// The file of the secrets of this side.
const SECRETS: &str = "driver.json";

/// The folder of rows that matched.
pub const MATCHED: &str = "matched";

/// Bytes read, or collected for one bucket, at a time.
const PIECE: usize = 1 << 18;

/// The folder.
pub struct Folder {
    path: PathBuf,
    /// Removes the folder of a run that is not resumed.
    _removed: Option<tempfile::TempDir>,
    /// The folder, locked: two processes in one would mix their items.
    _locked: Option<Lock>,
}

impl Folder {
    /// A folder that stays until the run is complete.
    pub fn kept(path: &Path) -> Result<Self> {
        system::make_private_folder(path).map_err(Error::work(path))?;
        let folder = system::lock_of_folder(path).map_err(Error::work(path))?;
        let locked = Lock::try_new(folder);
        if let Err((_, TryLockError::WouldBlock)) = locked {
            return Err(Error::OtherRun {
                path: path.to_owned(),
                what: "another process is using it",
            });
        }
        // An attempt that was killed may have renamed what it had not put on the disk.
        system::sync_folder(path).map_err(Error::work(path))?;
        // Some file systems have no locks.
        Ok(Self::at(path, locked.ok()))
    }

    /// The folder, with a lock that is held as long.
    pub fn at(path: &Path, lock: Option<Lock>) -> Self {
        Self { path: path.to_owned(), _removed: None, _locked: lock }
    }

    /// A folder within `parent` that is removed at the end, however the run ends.
    pub(crate) fn temporary(parent: &Path) -> Result<Self> {
        let mut builder = tempfile::Builder::new();
        let made = builder.prefix(".volery-").tempdir_in(parent);
        let folder = made.map_err(Error::work(parent))?;
        Ok(Self { path: folder.path().to_owned(), _removed: Some(folder), _locked: None })
    }

    /// Whether the folder stays.
    pub(crate) fn is_kept(&self) -> bool {
        self._removed.is_none()
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file in it.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Writes a whole file, or none.
    pub fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        // Another process may write the same file.
        let mut number = [0; 8];
        fill(&mut number).map_err(Error::work(&self.path))?;
        let number = u64::from_le_bytes(number);
        let (path, new) = (self.file(name), self.file(&format!("{name}.{number:016x}.new")));
        let write = || -> io::Result<()> {
            let mut file = create(&new)?;
            file.write_all(bytes)?;
            // mutant(world-put-unsynced): drop
            sync_all(&file)?;
            rename(&new, &path)?;
            // mutant(world-put-name): insert `if $ON { return Ok(()); }`
            system::sync_folder(path.parent().unwrap_or(&self.path))
        };
        write().map_err(Error::work(&path))
    }

    /// A whole file, if it is there.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        let path = self.file(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::work(&path)(error)),
        }
    }

    /// Reads the record of an earlier attempt.
    pub fn read_record<T>(
        &self,
        read: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<Option<T>> {
        self.read(RECORD, read)
    }

    /// Reads the secrets of an earlier attempt.
    pub fn read_secrets<T>(
        &self,
        read: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<Option<T>> {
        self.read(SECRETS, read)
    }

    fn read<T>(
        &self,
        name: &str,
        read: impl FnOnce(&[u8]) -> Result<T, &'static str>,
    ) -> Result<Option<T>> {
        let Some(bytes) = self.get(name)?.map(Zeroizing::new) else {
            return Ok(None);
        };
        let read =
            read(&bytes).map_err(|what| Error::OtherRun { path: self.path.clone(), what })?;
        Ok(Some(read))
    }

    /// Writes the secrets with which this side agrees.
    pub fn put_secrets(&self, secrets: &str) -> Result<()> {
        self.put(SECRETS, secrets.as_bytes())
    }

    /// Writes the record of an agreement, and the secrets with which this side agreed.
    pub fn put_record(&self, record: &str, secrets: &str) -> Result<()> {
        self.put_secrets(secrets)?;
        self.put(RECORD, record.as_bytes())
    }

    /// Forgets a manifest under which no part was begun. The items are of no use without one, so
    /// whatever happens before the next one is written, the table is read again.
    pub fn forget(&self) -> Result<()> {
        let path = self.file(RECORD);
        let manifest = File::open(&path).map_err(Error::work(&path))?;
        let locked = Lock::try_new(manifest);
        if let Err((_, TryLockError::WouldBlock)) = locked {
            return Err(Error::OtherRun {
                path: self.path.clone(),
                what: "workers that were started earlier are still running in it",
            });
        }
        let remove = || -> io::Result<()> {
            remove_file(&path)?;
            system::sync_folder(&self.path)
        };
        remove().map_err(Error::work(&path))?;
        self.remove_matched()?;
        self.remove(|name| name.starts_with("found-") || name.starts_with("complete-"))
    }

    /// Removes all that an attempt left that had not begun any part, or that is complete; of the
    /// latter the mark stays.
    pub fn clear(&self) -> Result<()> {
        self.remove_matched()?;
        self.remove(|_| true)
    }

    fn remove_matched(&self) -> Result<()> {
        let folder = self.file(MATCHED);
        let remove = || -> io::Result<()> {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if is_ours(&format!("part-{name}")) {
                    remove_file(&path)?;
                }
            }
            remove_dir(&folder)
        };
        match remove() {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::work(&folder)(error))
            }
            _ => Ok(()),
        }
    }

    /// Removes some of the files of the table above.
    fn remove(&self, some: impl Fn(&str) -> bool) -> Result<()> {
        let remove = || -> io::Result<()> {
            for entry in fs::read_dir(&self.path)? {
                let path = entry?.path();
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                if is_ours(&name) && some(&name) {
                    remove_file(&path)?;
                }
            }
            Ok(())
        };
        remove().map_err(Error::work(&self.path))
    }

    /// The most times that any part was begun.
    pub fn most_attempts(&self) -> Result<u32> {
        let entries = fs::read_dir(&self.path).map_err(Error::work(&self.path))?;
        let mut most = 0;
        for entry in entries {
            let name = entry.map_err(Error::work(&self.path))?.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("begun-") && is_ours(&name) {
                let times = name.rsplit('-').next().and_then(|times| times.parse().ok());
                most = most.max(times.unwrap_or(0));
            }
        }
        Ok(most)
    }

    /// The result of a finished part.
    pub fn found(&self, (rule, bucket): Part) -> Result<Option<Vec<u8>>> {
        self.get(&format!("found-{rule}-{bucket}"))
    }

    /// Marks the run as complete.
    pub fn complete(&self) -> Result<()> {
        self.put("complete", b"")
    }

    /// A new file for the items of a rule.
    pub fn spool(&self, rule: usize, with_payload: bool) -> Result<Spool> {
        let path = self.file(&format!("items-{rule}"));
        let file = create(&path).map_err(Error::work(&path))?;
        Ok(Spool { file: BufWriter::with_capacity(PIECE, file), path, with_payload })
    }

    /// Divides the items of a rule into buckets, and removes the file with all of them.
    pub fn divide(
        &self,
        rule: usize,
        with_payload: bool,
        (key, count): (&[u8; 32], u32),
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let path = self.file(&format!("items-{rule}"));
        let file = File::open(&path).map_err(Error::work(&path))?;
        let length = file.metadata().map_err(Error::work(&path))?.len();
        progress.begin("dividing keys into buckets", length);
        let mut reader = BufReader::with_capacity(PIECE, file);
        let mut collected = vec![Vec::new(); count as usize];
        // All buckets together take as much memory as some hundred pieces.
        let most = (PIECE * 256 / count as usize).clamp(1 << 12, PIECE);
        let flush = |bucket: usize, bytes: &mut Vec<u8>| {
            let path = self.file(&format!("part-{rule}-{bucket}"));
            let append = || -> io::Result<()> {
                let mut options = system::private_file();
                let mut file = options.create(true).append(true).open(&path)?;
                file.write_all(bytes)
            };
            append().map_err(Error::work(&path))?;
            bytes.clear();
            Ok::<_, Error>(())
        };
        let mut done = 0;
        loop {
            let mut rows = Rows::new(with_payload);
            let read = read_rows(&mut reader, PIECE / 24, &mut rows);
            done += read.map_err(Error::work(&path))?;
            if rows.entries.is_empty() {
                break;
            }
            let places = buckets(key, &rows.entries, count);
            for (entry, bucket) in rows.entries.iter().zip(places) {
                let bytes = &mut collected[bucket as usize];
                let payload = rows.payload.as_ref();
                let payload = payload.map(|all| all.get(entry.place as usize));
                append(bytes, entry.item, rows.row(entry), payload);
                if bytes.len() >= most {
                    flush(bucket as usize, bytes)?;
                }
            }
            progress.done(done);
        }
        for (bucket, bytes) in collected.iter_mut().enumerate() {
            flush(bucket, bytes)?;
            if self.is_kept() {
                // After a power failure, an agreement would stand above buckets cut short.
                let path = self.file(&format!("part-{rule}-{bucket}"));
                // mutant(world-buckets-unsynced): drop
                system::sync_file(&path).map_err(Error::work(&path))?;
            }
        }
        remove_file(&path).map_err(Error::work(&path))
    }

    /// Undoes [`divide`](Self::divide), but for the order of the items; equal ones stay in theirs.
    pub(crate) fn join(&self, rule: usize, count: u32) -> Result<()> {
        let path = self.file(&format!("items-{rule}"));
        let join = || -> io::Result<()> {
            let mut all = create(&path)?;
            for bucket in 0..count {
                let part = self.file(&format!("part-{rule}-{bucket}"));
                io::copy(&mut File::open(&part)?, &mut all)?;
                remove_file(&part)?;
            }
            Ok(())
        };
        join().map_err(Error::work(&path))
    }

    /// The items of a bucket.
    pub fn rows(&self, (rule, bucket): Part, with_payload: bool) -> Result<Rows> {
        let path = self.file(&format!("part-{rule}-{bucket}"));
        let read = || -> io::Result<Rows> {
            let file = File::open(&path)?;
            let mut rows = Rows::new(with_payload);
            if !with_payload {
                rows.entries.reserve_exact((file.metadata()?.len() / 24) as usize);
            }
            let mut reader = BufReader::with_capacity(PIECE, file);
            read_rows(&mut reader, usize::MAX, &mut rows)?;
            Ok(rows)
        };
        read().map_err(Error::work(&path))
    }
}

impl Journal for Folder {
    // A new file can be made by one process only, also where several machines have the folder.
    fn begin(&self, (rule, bucket): Part, session: SessionId) -> Result<()> {
        // mutant(match-attempts): `ATTEMPTS` => `ATTEMPTS + if $ON { 9 } else { 0 }`
        for times in 1..=ATTEMPTS {
            let path = self.file(&format!("begun-{rule}-{bucket}-{times}"));
            let mut options = system::private_file();
            let made = options.write(true).create_new(true).open(&path);
            let mut file = match made {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::work(&path)(error)),
            };
            let mut write = || -> io::Result<()> {
                file.write_all(hex(session.as_bytes()).as_bytes())?;
                sync_all(&file)?;
                system::sync_folder(&self.path)
            };
            return write().map_err(Error::work(&path));
        }
        Err(Error::TooManyAttempts { path: self.path.clone(), part: bucket as usize + 1 })
    }

    fn has_found(&self, (rule, bucket): Part) -> bool {
        self.file(&format!("found-{rule}-{bucket}")).exists()
    }

    fn put_found(&self, (rule, bucket): Part, found: &[u8]) -> Result<()> {
        self.put(&format!("found-{rule}-{bucket}"), found)
    }

    fn session_of_shares(&self, part: Part) -> Result<Option<[u8; SESSION]>> {
        let found = self.found(part)?.map(Zeroizing::new);
        Ok(found.and_then(|bytes| bytes.first_chunk().copied()))
    }

    fn put_shares(&self, part: Part, _: SessionId, shares: &[u8]) -> Result<()> {
        self.put_found(part, shares)
    }
}

/// The end of a run whose output was written: removes the items and results on disk.
#[derive(Default)]
pub struct Finish(pub(crate) Option<Folder>);

impl Finish {
    /// Removes them; what a resumed run leaves says that it is complete.
    pub fn finish(self) -> Result<()> {
        let Some(work) = self.0 else { return Ok(()) };
        if work.is_kept() {
            work.complete()?;
            work.clear()?;
        }
        Ok(())
    }
}

pub(crate) fn is_complete(path: &Path) -> bool {
    path.join("complete").exists()
}

/// Whether this is a name of the table above, to the last digit: the folder may have been there
/// before, and `part-00000-of-64.parquet` is somebody's data.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let is_random = |text: &str| text.len() == 16 && text.bytes().all(|b| b.is_ascii_hexdigit());
    let new = name.strip_suffix(".new").and_then(|name| name.rsplit_once('.'));
    let name = new.map_or(name, |(own, random)| if is_random(random) { own } else { name });
    let numbers = |text: &str, count| {
        let all: Vec<_> = text.split('-').collect();
        let digits =
            |text: &&str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        all.len() == count && all.iter().all(digits)
    };
    match name.split_once('-') {
        None => matches!(name, RECORD | SECRETS | "totals.json" | "totals.told"),
        Some(("begun", rest)) => numbers(rest, 3),
        Some(("items" | "ticket", rest)) => numbers(rest, 1),
        Some(("part" | "complete", rest)) => numbers(rest, 2),
        Some(("found", rest)) => match rest.strip_prefix("rows-") {
            Some(range) => numbers(range, 1),
            None => numbers(rest, 2),
        },
        Some(_) => false,
    }
}

/// A new file that only its owner may read.
fn create(path: &Path) -> io::Result<File> {
    let mut options = system::private_file();
    options.write(true).create(true).truncate(true).open(path)
}

/// The items of a rule being written.
pub struct Spool {
    file: BufWriter<File>,
    path: PathBuf,
    with_payload: bool,
}

impl Spool {
    /// Writes an item, its row and its payload.
    pub fn push(&mut self, item: [u8; 16], row: u64, payload: &[u8]) -> Result<()> {
        let mut bytes = Vec::with_capacity(26 + payload.len());
        append(&mut bytes, item, row, self.with_payload.then_some(payload));
        let written = self.file.write_all(&bytes);
        written.map_err(Error::work(&self.path))
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().map_err(Error::work(&self.path))
    }
}

/// An item in a file: item, row, and with payload its length and bytes.
fn append(out: &mut Vec<u8>, item: [u8; 16], row: u64, payload: Option<&[u8]>) {
    out.extend_from_slice(&item);
    out.extend_from_slice(&row.to_le_bytes());
    if let Some(payload) = payload {
        out.extend_from_slice(&(payload.len() as u16).to_le_bytes());
        out.extend_from_slice(payload);
    }
}

/// Reads up to `most` items; returns the number of bytes.
fn read_rows(reader: &mut impl Read, most: usize, rows: &mut Rows) -> io::Result<u64> {
    let mut bytes = 0;
    let mut head = [0; 24];
    for _ in 0..most {
        match reader.read(&mut head[..1])? {
            0 => break,
            _ => reader.read_exact(&mut head[1..])?,
        }
        bytes += 24;
        let (item, row) = head.split_first_chunk::<16>().expect("24 bytes");
        let row = u64::from_le_bytes(*row.first_chunk().expect("8 bytes"));
        match &mut rows.payload {
            None => rows.entries.push(Entry { item: *item, place: row }),
            Some(payload) => {
                let mut length = [0; 2];
                reader.read_exact(&mut length)?;
                let length = usize::from(u16::from_le_bytes(length));
                read_payload(reader, length, payload)?;
                payload.rows.push(row);
                payload.ends.push(payload.bytes.len());
                rows.entries.push(Entry { item: *item, place: payload.rows.len() as u64 - 1 });
                bytes += 2 + length as u64;
            }
        }
    }
    Ok(bytes)
}

fn read_payload(reader: &mut impl Read, length: usize, out: &mut Payload) -> io::Result<()> {
    let start = out.bytes.len();
    out.bytes.resize(start + length, 0);
    reader.read_exact(&mut out.bytes[start..])
}
