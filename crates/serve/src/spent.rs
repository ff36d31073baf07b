//! The keys that clients have spent: a journal, on disk before a request is answered.
//!
//! ```text
//! volery spent 2
//! CLIENT DAY KEYS CHECKSUM
//! ```
//!
//! A line for each request, appended and synchronized; the sum of a client's lines is what it has
//! spent. `DAY` counts from 1970 in UTC. The checksum is of the line and its number in the file, so
//! that one that was removed is noticed by those behind it. A last line without its end was never
//! answered. The file is written anew, with at most two lines a client, at each start and when it
//! has grown.
//!
//! The file `serving` beside it has the keys of all lines, in all, that are known to be on the
//! disk: `served KEYS CHECKSUM`. A journal with fewer was cut, or is an older copy. The number is
//! written after the lines that it counts are on the disk, so that no crash lets it be ahead of
//! them.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use volery_os::fs::{Lock, sync_all, sync_data};
use volery_os::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volery_os::time::wall_clock;
use volery_psi::served::{Later, Refusal};
use volery_run::failure::{Failure, Result, Status};
use volery_run::output::SingleFile;
use volery_run::reporter::many;

const FIRST: &str = "volery spent 2";

/// The file with the keys that are known to be on the disk.
pub(crate) const SERVING: &str = "serving";

const DAY: u64 = 86_400;

/// Lines after which the file is written anew.
const LINES: u64 = 1 << 16;

/// When to come again after the journal could not be written.
const LATER: Duration = Duration::from_secs(60);

/// Keys of a client: before `day`, and on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    before: u64,
    day: u64,
    today: u64,
}

impl Sum {
    fn add(&mut self, day: u64, keys: u64) {
        if day > self.day {
            // mutant(serve-days): drop
            self.before = self.before.saturating_add(self.today);
            (self.day, self.today) = (day, 0);
        }
        // A clock that was set back does not renew a budget.
        self.today = self.today.saturating_add(keys);
    }

    fn on(self, day: u64) -> [u64; 2] {
        let today = if day > self.day { 0 } else { self.today };
        [self.before.saturating_add(self.today), today]
    }
}

pub(crate) struct Journal {
    path: PathBuf,
    /// The file with the keys that are known to be on the disk.
    known: Lock,
    book: Mutex<Book>,
    /// Locked before the book, where both are.
    synced: Mutex<SyncState>,
    /// Why the journal could not be written, until it is told.
    problem: Mutex<Option<String>>,
    /// The number of times that it could not be written.
    pub(crate) errors: AtomicU64,
    /// Findings at the start that an operator should know.
    pub(crate) notes: Vec<String>,
    /// Whether budgets were lost, and it was started all the same.
    pub(crate) lost: bool,
}

/// Numbers of lines appended by this process.
#[derive(Default)]
struct SyncState {
    /// Up to this one they are on the disk, but for those that failed.
    done: u64,
    /// Up to this one they may not be: the system tells of a failure once, and not whoever asks
    /// again.
    failed: u64,
}

struct Book {
    sums: BTreeMap<String, Sum>,
    /// Keys of all clients.
    total: u64,
    file: Arc<File>,
    /// Lines appended by this process, and lines of the file.
    appended: u64,
    lines: u64,
    /// The file lacks lines, or may end in the middle of one.
    broken: bool,
}

impl Book {
    fn mend(&mut self, path: &Path) -> io::Result<()> {
        if self.broken {
            // The sums have every line, also those whose clients got no answer.
            let (file, lines) = write(path, &self.sums)?;
            (self.file, self.lines, self.broken) = (Arc::new(file), lines, false);
        }
        Ok(())
    }
}

/// The line of this number with its checksum.
fn line(number: u64, entry: impl fmt::Display) -> String {
    let checksum = blake3::hash(format!("{number} {entry}").as_bytes()).to_hex();
    format!("{entry} {}\n", &checksum[..8])
}

/// The content of the file with the keys that are known to be on the disk: of one length, so that
/// it is written in its place.
fn known_keys(total: u64) -> String {
    line(1, format_args!("served {total:020}"))
}

/// Keys of all clients.
fn total(sums: &BTreeMap<String, Sum>) -> u64 {
    sums.values().fold(0, |all, sum| all.saturating_add(sum.on(0)[0]))
}

/// Seconds since 1970.
fn seconds() -> u64 {
    let since = wall_clock().duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}

/// The time until the next day begins in UTC.
pub(crate) fn until_tomorrow() -> Duration {
    Duration::from_secs(DAY - seconds() % DAY)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journal {
    /// Opens the journal, or begins one where `serving`, the file with the keys that are known to
    /// be on the disk, is empty. One that is damaged, missing or has fewer keys is an error, unless
    /// the operator `accepts` that budgets are lost.
    pub(crate) fn open(path: &Path, serving: Lock, accepts: bool) -> Result<Self> {
        let failed = |error: io::Error| Failure::file(path, error);
        let number_path = path.with_file_name(SERVING);
        let of_number = |error: io::Error| Failure::file(&number_path, error);
        let (mut notes, place) = (Vec::new(), path.display());
        let mut found = Vec::new();
        serving.file().read_to_end(&mut found).map_err(of_number)?;
        let found = String::from_utf8_lossy(&found);
        let was_there = !found.is_empty();
        let number = found.split(' ').nth(1).and_then(|number| number.parse().ok());
        let number = number.filter(|number| known_keys(*number) == found);
        if was_there && number.is_none() {
            notes.push(format!(
                "{}: it is damaged, as by a crash: whether the journal was cut is not seen at this start",
                number_path.display()
            ));
        }
        let known = number.unwrap_or(0);
        let (sums, fault) = match fs::read(path) {
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                let (sums, damaged, is_torn) = parse(&text);
                // mutant(serve-cut): `known` => `0`
                let missing = known.saturating_sub(total(&sums));
                let fault = if let Some(first) = damaged.first() {
                    let lines = many(damaged.len() as u64, "damaged line");
                    Some(format!("{lines}, from line {first} on"))
                } else {
                    let keys = many(missing, "key");
                    (missing > 0).then(|| {
                        format!("it lacks {keys} that it had: it was cut, or is an older copy")
                    })
                };
                if is_torn && fault.is_none() {
                    notes.push(format!(
                        "{place}: its last line was cut off, as by a crash; the request of that line was not answered"
                    ));
                }
                let loss = "the keys that it lacks, which clients may then ask for again";
                (sums, fault.map(|what| (what, loss)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let what = "it is missing, and this store was served before".into();
                let loss = "what clients have spent: all begin with full budgets";
                (BTreeMap::new(), was_there.then_some((what, loss)))
            }
            Err(error) => return Err(failed(error)),
        };
        let lost = fault.is_some();
        if let Some((what, loss)) = fault {
            // mutant(serve-lost): false
            if !accepts {
                return Err(Failure::new(Status::Other, format_args!("{place}: {what}")).with_hint(
                    format_args!(
                        "restore this journal from the newest copy; --accept-lost-budgets starts without {loss}"
                    ),
                ));
            }
            let damaged = path.with_extension("damaged");
            // A copy: after a crash here the next start finds the same damage, not a missing file.
            match fs::copy(path, &damaged) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
                _ => notes.push(format!(
                    "{place}: {what}; started without {loss} (--accept-lost-budgets); a damaged file is kept as {}",
                    damaged.display()
                )),
            }
        }
        let (file, lines) = write(path, &sums).map_err(failed)?;
        let total = total(&sums);
        let written = serving.file().write_all_at(known_keys(total).as_bytes(), 0);
        written.and_then(|()| sync_all(serving.file())).map_err(of_number)?;
        let book = Book { sums, total, file: Arc::new(file), appended: 0, lines, broken: false };
        Ok(Self {
            path: path.to_owned(),
            known: serving,
            book: Mutex::new(book),
            synced: Mutex::default(),
            problem: Mutex::new(None),
            errors: AtomicU64::new(0),
            notes,
            lost,
        })
    }

    /// Why the journal could not be written, once for each time.
    pub(crate) fn problem(&self) -> Option<String> {
        lock(&self.problem).take()
    }

    /// Clients whose last day is still to come: a clock was ahead, and their budget of a day is not
    /// renewed before.
    pub(crate) fn ahead(&self) -> Vec<String> {
        let today = seconds() / DAY;
        let book = lock(&self.book);
        let ahead = book.sums.iter().filter(|(_, sum)| sum.day > today);
        ahead.map(|(who, _)| who.clone()).collect()
    }

    /// Writes the journal anew if that failed before; it is then whole, and clients are answered.
    pub(crate) fn mend(&self) -> io::Result<()> {
        lock(&self.book).mend(&self.path)
    }

    fn unavailable(&self, error: &io::Error) -> Refusal {
        self.errors.fetch_add(1, Ordering::Relaxed);
        *lock(&self.problem) = Some(format!("{}: {error}", self.path.display()));
        Refusal::Later(Later::Unavailable, LATER)
    }

    /// The keys of a client, in all and today.
    pub(crate) fn of(&self, who: &str) -> [u64; 2] {
        let sum = lock(&self.book).sums.get(who).copied();
        sum.unwrap_or_default().on(seconds() / DAY)
    }

    /// Records keys of a client, if `allow` allows it after what it has spent; what it has spent
    /// then. Returns when the record is on the disk.
    pub(crate) fn add(
        &self,
        who: &str,
        keys: u64,
        allow: impl FnOnce([u64; 2]) -> Result<(), Refusal>,
    ) -> Result<[u64; 2], Refusal> {
        let (number, spent) = {
            let mut book = lock(&self.book);
            let today = seconds() / DAY;
            let sum = book.sums.get(who).copied().unwrap_or_default();
            allow(sum.on(today))?;
            let day = today.max(sum.day);
            book.mend(&self.path).map_err(|error| self.unavailable(&error))?;
            let mut file = &*book.file;
            let line = line(book.lines + 1, format_args!("{who} {day} {keys}"));
            if let Err(error) = file.write_all(line.as_bytes()) {
                book.broken = true;
                return Err(self.unavailable(&error));
            }
            book.appended += 1;
            book.lines += 1;
            let sum = book.sums.entry(who.to_owned()).or_default();
            // mutant(serve-spent): drop
            sum.add(day, keys);
            let spent = sum.on(today);
            book.total = book.total.saturating_add(keys);
            (book.appended, spent)
        };
        // mutant(world-answer-first): drop
        self.sync(number).map_err(|error| self.unavailable(&error))?;
        Ok(spent)
    }

    /// Returns when so many lines are on the disk; one thread does it for all that wait.
    fn sync(&self, number: u64) -> io::Result<()> {
        let mut synced = lock(&self.synced);
        if number <= synced.failed {
            return Err(io::Error::other("it could not be written"));
        }
        if number <= synced.done {
            return Ok(());
        }
        let mut book = lock(&self.book);
        let (appended, total) = (book.appended, book.total);
        // mutant(world-number-first): insert `if $ON { let number = self.known.file();
        //     let _ = number.write_all_at(known_keys(total).as_bytes(), 0).and_then(|()|
        //     sync_all(number)); }`
        let result = if book.lines > LINES.max(4 * book.sums.len() as u64) {
            write(&self.path, &book.sums).map(|(file, lines)| {
                (book.file, book.lines) = (Arc::new(file), lines);
                drop(book);
            })
        } else {
            let file = Arc::clone(&book.file);
            drop(book);
            // mutant(world-failed-sync): `sync_data(&file)` => `sync_data(&file).or_else(|error| {
            //     if $ON { Ok(()) } else { Err(error) } })`
            sync_data(&file)
        };
        let result =
            result.and_then(|()| self.known.file().write_all_at(known_keys(total).as_bytes(), 0));
        match &result {
            Ok(()) => synced.done = appended,
            Err(_) => {
                let mut book = lock(&self.book);
                // Lines that came meanwhile, too: the system tells a failure to one sync only.
                // mutant(serve-unsynced): drop
                synced.failed = book.appended;
                book.broken = true;
            }
        }
        result
    }
}

/// The sums of the intact lines of a journal, the numbers of those that are not, and whether the
/// last line was cut off.
fn parse(text: &str) -> (BTreeMap<String, Sum>, Vec<u64>, bool) {
    // mutant(world-torn-line): `text.rsplit_once('\n').unwrap_or(("", text))` => `(text, "")`
    let (whole, rest) = text.rsplit_once('\n').unwrap_or(("", text));
    let (mut sums, mut damaged) = (BTreeMap::<String, Sum>::new(), Vec::new());
    let mut lines = (1..).zip(whole.split('\n'));
    if lines.next() != Some((1, FIRST)) {
        damaged.push(1);
    }
    for (number, text) in lines {
        let entry = text.rsplit_once(' ').map(|(entry, _)| entry);
        // mutant(serve-checksum): `line(number, entry).trim_end() == text` => `true`
        let entry = entry.filter(|entry| line(number, entry).trim_end() == text);
        let fields = entry.and_then(|entry| {
            let mut fields = entry.split(' ');
            let [who, day, keys] = [(); 3].map(|()| fields.next());
            let number = |text: &str| text.parse::<u64>().ok();
            fields.next().is_none().then_some((who?, number(day?)?, number(keys?)?))
        });
        match fields {
            Some((who, day, keys)) => sums.entry(who.to_owned()).or_default().add(day, keys),
            None => damaged.push(number),
        }
    }
    (sums, damaged, !rest.is_empty())
}

/// Writes the sums to a file that takes the place of the one that is there; the file, open for
/// appending, and its lines.
fn write(path: &Path, sums: &BTreeMap<String, Sum>) -> io::Result<(File, u64)> {
    let mut text = format!("{FIRST}\n");
    let mut lines = 1_u64;
    for (who, sum) in sums {
        let past = [(0, sum.before), (sum.day, sum.today)];
        for (day, keys) in past.into_iter().filter(|(_, keys)| *keys > 0) {
            lines += 1;
            text += &line(lines, format_args!("{who} {day} {keys}"));
        }
    }
    let failed = |failure: Failure| io::Error::other(failure.message().to_owned());
    SingleFile::prepare("--store", path)
        .and_then(|new| new.commit(text.as_bytes()))
        .map_err(failed)?;
    let file = OpenOptions::new().append(true).open(path)?;
    Ok((file, lines))
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn any(_: [u64; 2]) -> Result<(), Refusal> {
        Ok(())
    }

    fn try_open(path: &Path, accepts: bool) -> Result<Journal> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true).create(true).truncate(false);
        let serving = options.open(path.with_file_name(SERVING)).unwrap();
        // Shared: some tests have two journals of a file.
        Journal::open(path, Lock::try_shared(serving).unwrap(), accepts)
    }

    fn open(path: &Path) -> Journal {
        try_open(path, false).unwrap()
    }

    fn journal(entries: &[&str]) -> String {
        let lines = (2..).zip(entries).map(|(number, entry)| line(number, entry));
        format!("{FIRST}\n{}", lines.collect::<String>())
    }

    #[test]
    fn what_was_spent_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        for round in 0..3 {
            let spent = open(&path);
            assert_eq!(spent.of("a"), [50 * round; 2]);
            assert_eq!(spent.of("b"), [0; 2]);
            assert_eq!(spent.add("a", 20, any).unwrap(), [50 * round + 20; 2]);
            let refusal = Refusal::Later(Later::Full, LATER);
            assert_eq!(spent.add("a", 7, |_| Err(refusal)), Err(refusal));
            spent.add("a", 30, any).unwrap();
        }
    }

    /// Threads that add at the same time, with the file written anew in between.
    #[test]
    fn nothing_is_lost_between_threads() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        let spent = open(&path);
        lock(&spent.book).lines = LINES - 40;
        thread::scope(|scope| {
            for thread in 0..4_u64 {
                let spent = &spent;
                scope.spawn(move || {
                    let who = format!("c{}", thread % 2);
                    for _ in 0..50 {
                        spent.add(&who, thread + 1, any).unwrap();
                    }
                });
            }
        });
        let again = open(&path);
        for all in [&spent, &again] {
            assert_eq!(all.of("c0"), [50 * (1 + 3); 2]);
            assert_eq!(all.of("c1"), [50 * (2 + 4); 2]);
        }
        assert!(fs::read_to_string(&path).unwrap().lines().count() <= 5);
    }

    /// A file that does not take a line, and one that takes it and does not keep it: nobody is
    /// answered, and the next who asks finds the journal written anew.
    #[test]
    fn a_journal_that_failed_recovers() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        for (device, kept) in [("/dev/full", 0), ("/dev/null", 7)] {
            let spent = open(&path);
            let before = spent.of("a")[0];
            spent.add("a", 5, any).unwrap();
            let file = OpenOptions::new().write(true).open(device).unwrap();
            lock(&spent.book).file = Arc::new(file);
            let refused = spent.add("a", 7, any).unwrap_err();
            assert_eq!(refused, Refusal::Later(Later::Unavailable, LATER));
            assert!(spent.problem().unwrap().contains("spent: "));
            assert!(spent.problem().is_none());
            // The number is not ahead of the disk.
            let known = fs::read_to_string(path.with_file_name(SERVING)).unwrap();
            assert_eq!(known, known_keys(before + 5));
            if kept > 0 {
                // Whoever waited for the same lines is not answered either: the system tells of a
                // failure once.
                lock(&spent.book).file = Arc::new(File::open(&path).unwrap());
                assert!(spent.sync(lock(&spent.book).appended).is_err());
            }
            let after = before + 5 + kept + 11;
            assert_eq!(spent.add("a", 11, any).unwrap()[0], after);
            assert_eq!(open(&path).of("a")[0], after);
        }
    }

    #[test]
    fn days_to_come() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        fs::write(&path, journal(&["a 3 10", "b 99999 1"])).unwrap();
        assert_eq!(open(&path).ahead(), ["b"]);
    }

    #[test]
    fn days() {
        let text = journal(&["a 3 10", "a 4 20", "b 9 1", "a 4 5", "a 2 1"]);
        let (sums, damaged, is_torn) = parse(&text);
        assert!(damaged.is_empty() && !is_torn);
        assert_eq!(sums["a"].on(4), [36, 26]);
        assert_eq!(sums["a"].on(5), [36, 0]);
        // A clock that was set back does not renew the budget.
        assert_eq!(sums["a"].on(3), [36, 26]);
        assert_eq!(sums["b"].on(9), [1, 1]);
    }

    /// A line that was cut off is forgotten; anything else that is wrong stops the start, and is
    /// forgotten only where the operator accepts that.
    #[test]
    fn damaged_and_missing_journals() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        let serving = path.with_file_name(SERVING);
        drop(open(&path));
        let empty = fs::read_to_string(&path).unwrap();
        for keys in [10, 20] {
            open(&path).add("a", keys, any).unwrap();
        }
        let sum = |line: &str| format!("{empty}{line}");
        let [ten, twenty] = [line(2, "a 3 10"), line(3, "a 4 20")];
        let text = sum(&ten) + &twenty;
        for length in empty.len()..text.len() {
            let (sums, damaged, is_torn) = parse(&text[..length]);
            let ends = [empty.len(), empty.len() + ten.len()];
            assert_eq!((damaged.len(), is_torn), (0, !ends.contains(&length)), "{length}");
            let spent = sums.get("a").map_or(0, |sum| sum.on(4)[0]);
            assert_eq!(spent, if length < ends[1] { 0 } else { 10 }, "{length}");
        }
        for (wrong, why, spent) in [
            (String::new(), "1 damaged line, from line 1 on", 0),
            ("\n".to_owned() + &ten, "1 damaged line, from line 1 on", 10),
            (sum("??\n") + &twenty, "1 damaged line, from line 2 on", 20),
            (sum(&twenty), "1 damaged line, from line 2 on", 0),
            (text.replace("a 3 1", "a 3 0"), "1 damaged line, from line 2 on", 20),
            (text.replace('a', "b"), "2 damaged lines, from line 2 on", 0),
            (journal(&["a b 3", "a 3 5"]), "1 damaged line, from line 2 on", 5),
            (sum(&ten), "it lacks 20 keys that it had", 10),
            (sum(&ten) + &twenty[..twenty.len() - 1], "it lacks 20 keys that it had", 10),
            (empty.clone(), "it lacks 30 keys that it had", 0),
        ] {
            fs::write(&serving, known_keys(30)).unwrap();
            fs::write(&path, &wrong).unwrap();
            let refused = try_open(&path, false).err().unwrap();
            assert!(refused.message().contains(why), "{wrong}: {refused}");
            assert!(refused.hint().unwrap().contains("--accept-lost-budgets"), "{refused}");
            let accepted = try_open(&path, true).unwrap();
            assert!(accepted.lost && accepted.notes[0].contains(why), "{:?}", accepted.notes);
            assert_eq!(accepted.of("a")[0], spent, "{wrong}");
            assert_eq!(fs::read_to_string(path.with_extension("damaged")).unwrap(), wrong);
            assert!(!open(&path).lost);
        }
        // A crash after a line, and before its keys were known to be on the disk.
        for known in [10, 30] {
            fs::write(&serving, known_keys(known)).unwrap();
            fs::write(&path, &text).unwrap();
            assert_eq!(open(&path).of("a")[0], 30, "{known}");
            assert_eq!(fs::read_to_string(&serving).unwrap(), known_keys(30));
        }
        fs::write(&serving, "served 000").unwrap();
        assert!(open(&path).notes[0].contains("serving: it is damaged"));
        // Each line that is on the disk counts from then on.
        open(&path).add("b", 7, any).unwrap();
        assert_eq!(fs::read_to_string(&serving).unwrap(), known_keys(37));
        fs::write(&serving, known_keys(10)).unwrap();
        fs::write(&path, &text[..text.len() - 1]).unwrap();
        let torn = open(&path);
        assert!(!torn.lost && torn.notes[0].contains("cut off"), "{:?}", torn.notes);
        fs::remove_file(&path).unwrap();
        assert!(try_open(&path, false).err().unwrap().message().contains("missing"));
        assert!(try_open(&path, true).unwrap().lost);
    }
}
