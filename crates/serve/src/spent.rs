//! The keys that clients have spent: a journal, on disk before a request is answered.
//!
//! ```text
//! volery spent 1
//! CLIENT DAY KEYS
//! ```
//!
//! A line for each request, appended and synchronized; the sum of a client's lines is what it has
//! spent. `DAY` counts from 1970 in UTC. A last line without its end was never answered. The file
//! is written anew, with at most two lines a client, at each start and when it has grown.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use volery_psi::served::{Later, Refusal};
use volery_run::failure::{Failure, Status};

const FIRST: &str = "volery spent 1";

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

    /// In all, and on this day.
    fn on(self, day: u64) -> [u64; 2] {
        let today = if day > self.day { 0 } else { self.today };
        [self.before.saturating_add(self.today), today]
    }
}

/// The journal.
pub(crate) struct Journal {
    path: PathBuf,
    book: Mutex<Book>,
    /// Locked before the book, where both are.
    synced: Mutex<SyncState>,
    /// Why the journal could not be written, until it is told.
    problem: Mutex<Option<String>>,
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
    file: Arc<File>,
    /// Lines appended by this process, and lines of the file.
    appended: u64,
    lines: u64,
    /// The file lacks lines, or may end in the middle of one.
    broken: bool,
}

/// Seconds since 1970.
fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
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
    /// Opens the journal, or begins one.
    pub(crate) fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::file(path, error);
        let sums = match fs::read_to_string(path) {
            Ok(text) => parse(&text).map_err(|line| {
                let what = format_args!("{}: line {line} is damaged", path.display());
                Failure::new(Status::Other, what).with_hint(
                    "restore the file from a copy; without it all clients begin with full budgets",
                )
            })?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            Err(error) => return Err(failed(error)),
        };
        let (file, lines) = write(path, &sums).map_err(failed)?;
        let book = Book { sums, file: Arc::new(file), appended: 0, lines, broken: false };
        Ok(Self {
            path: path.to_owned(),
            book: Mutex::new(book),
            synced: Mutex::default(),
            problem: Mutex::new(None),
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

    fn unavailable(&self, error: &io::Error) -> Refusal {
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
            if book.broken {
                // The sums have every line, also those whose clients got no answer.
                let written = write(&self.path, &book.sums);
                let (file, lines) = written.map_err(|error| self.unavailable(&error))?;
                (book.file, book.lines, book.broken) = (Arc::new(file), lines, false);
            }
            let mut file = &*book.file;
            let line = format!("{who} {day} {keys}\n");
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
            (book.appended, spent)
        };
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
        let appended = book.appended;
        let result = if book.lines > LINES.max(4 * book.sums.len() as u64) {
            write(&self.path, &book.sums).map(|(file, lines)| {
                (book.file, book.lines) = (Arc::new(file), lines);
                drop(book);
            })
        } else {
            let file = Arc::clone(&book.file);
            drop(book);
            file.sync_data()
        };
        match &result {
            Ok(()) => synced.done = appended,
            Err(_) => {
                // mutant(serve-unsynced): drop
                synced.failed = appended;
                lock(&self.book).broken = true;
            }
        }
        result
    }
}

/// The sums of a journal, or the number of the line that is none.
fn parse(text: &str) -> Result<BTreeMap<String, Sum>, usize> {
    // What follows the last end of a line was cut off while it was written.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let mut lines = whole.split('\n').enumerate();
    let mut sums = BTreeMap::<String, Sum>::new();
    match lines.next() {
        Some((_, FIRST)) => {}
        _ => return Err(1),
    }
    for (i, line) in lines {
        let fields: Vec<_> = line.split(' ').collect();
        let number = |text: &str| text.parse::<u64>().ok();
        let [who, day, keys] = fields[..] else {
            return Err(i + 1);
        };
        let (Some(day), Some(keys)) = (number(day), number(keys)) else {
            return Err(i + 1);
        };
        sums.entry(who.to_owned()).or_default().add(day, keys);
    }
    Ok(sums)
}

/// Writes the sums to a file that takes the place of the one that is there; the file, open for
/// appending, and its lines.
fn write(path: &Path, sums: &BTreeMap<String, Sum>) -> io::Result<(File, u64)> {
    let mut text = format!("{FIRST}\n");
    let mut lines = 1;
    for (who, sum) in sums {
        let past = [(0, sum.before), (sum.day, sum.today)];
        for (day, keys) in past.into_iter().filter(|(_, keys)| *keys > 0) {
            text += &format!("{who} {day} {keys}\n");
            lines += 1;
        }
    }
    let new = path.with_extension("new");
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.append(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok((file, lines))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::thread;

    use super::*;

    fn any(_: [u64; 2]) -> Result<(), Refusal> {
        Ok(())
    }

    #[test]
    fn what_was_spent_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        for round in 0..3 {
            let spent = Journal::open(&path).unwrap();
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
        let spent = Journal::open(&path).unwrap();
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
        let again = Journal::open(&path).unwrap();
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
            let spent = Journal::open(&path).unwrap();
            let before = spent.of("a")[0];
            spent.add("a", 5, any).unwrap();
            let file = OpenOptions::new().write(true).open(device).unwrap();
            lock(&spent.book).file = Arc::new(file);
            let refused = spent.add("a", 7, any).unwrap_err();
            assert_eq!(refused, Refusal::Later(Later::Unavailable, LATER));
            assert!(spent.problem().unwrap().contains("spent: "));
            assert!(spent.problem().is_none());
            if kept > 0 {
                // Whoever waited for the same lines is not answered either: the system tells of a
                // failure once.
                lock(&spent.book).file = Arc::new(File::open(&path).unwrap());
                assert!(spent.sync(lock(&spent.book).appended).is_err());
            }
            let after = before + 5 + kept + 11;
            assert_eq!(spent.add("a", 11, any).unwrap()[0], after);
            assert_eq!(Journal::open(&path).unwrap().of("a")[0], after);
        }
    }

    #[test]
    fn days_to_come() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        fs::write(&path, "volery spent 1\na 3 10\nb 99999 1\n").unwrap();
        assert_eq!(Journal::open(&path).unwrap().ahead(), ["b"]);
    }

    #[test]
    fn days() {
        let text = "volery spent 1\na 3 10\na 4 20\nb 9 1\na 4 5\na 2 1\n";
        let sums = parse(text).unwrap();
        assert_eq!(sums["a"].on(4), [36, 26]);
        assert_eq!(sums["a"].on(5), [36, 0]);
        // A clock that was set back does not renew the budget.
        assert_eq!(sums["a"].on(3), [36, 26]);
        assert_eq!(sums["b"].on(9), [1, 1]);
    }

    /// A line that was cut off is forgotten; anything else that is wrong is an error.
    #[test]
    fn damaged_journals() {
        let text = "volery spent 1\na 3 10\na 4 20\n";
        for length in 0..text.len() {
            match parse(&text[..length]) {
                Err(line) => assert!(length < 15 && line == 1, "{length}"),
                Ok(sums) => {
                    let all = sums.get("a").map_or(0, |sum| sum.on(4)[0]);
                    let expected = match length {
                        ..22 => 0,
                        22..29 => 10,
                        _ => 30,
                    };
                    assert_eq!(all, expected, "{length}");
                }
            }
        }
        for wrong in ["x\n", "volery spent 1\na 3\n", "volery spent 1\na b 3\n"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("spent");
        fs::write(&path, "volery spent 1\na 3 10\n??\na 3 10\n").unwrap();
        let refused = Journal::open(&path).err().unwrap().to_string();
        assert!(refused.contains("line 3 is damaged"), "{refused}");
    }
}
