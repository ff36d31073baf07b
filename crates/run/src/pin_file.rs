//! The file of `--peer`, to which `--follow-key` adds the successors of the identity in it.
//!
//! It holds a fingerprint alone, or a line for each identity, the newest last, with the time at
//! which the one before announced it (seconds since 1970); and a line for each key of a server's
//! filter that was replaced:
//!
//! ```text
//! FINGERPRINT SECONDS
//! filter KEY
//! ```

use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use volery_channel::tls::{Fingerprint, Follow, ShownIdentity};
use volery_os::fs::Lock;
use volery_os::thread;
use volery_os::time::wall_clock;

use crate::failure::{Failure, Result, Status};
use crate::output::SingleFile;

/// Longest file read, in bytes: about a thousand changes.
const BOUND: u64 = 64 << 10;

/// The option that writes it.
const OPTION: &str = "--follow-key";

/// The identities of a peer, and replaced keys of its filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PinFile {
    path: PathBuf,
    newest: (Fingerprint, u64),
    earlier: Vec<(Fingerprint, u64)>,
    filters: Vec<String>,
}

impl PinFile {
    pub(crate) fn read(path: &Path) -> Result<Self, String> {
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(BOUND + 1).read_to_string(&mut text));
        let read = read.map_err(|error| format!("the file: {error}"))?;
        if read as u64 > BOUND {
            return Err(format!("the file has more than {BOUND} bytes: remove its oldest lines"));
        }
        let (mut prints, mut filters) = (Vec::new(), Vec::new());
        let wrong = |wrong: String| format!("the file holds no fingerprint: {wrong}");
        let alone = text.trim().parse::<Fingerprint>();
        for line in text.lines().filter(|_| alone.is_err()) {
            match line.split_once(' ').unwrap_or((line, "0")) {
                ("filter", key) => filters.push(key.to_owned()),
                (print, seconds) => {
                    let print = print.parse().map_err(|_| wrong(format!("'{line}'")))?;
                    prints.push((print, seconds.parse().map_err(|_| wrong(format!("'{line}'")))?));
                }
            }
        }
        let newest = prints.pop().map_or_else(|| alone.map(|print| (print, 0)), Ok);
        let newest = newest.map_err(|error| wrong(error.to_string()))?;
        Ok(Self { path: path.to_owned(), newest, earlier: prints, filters })
    }

    pub(crate) fn pinned(&self) -> Fingerprint {
        self.newest.0
    }

    /// The successors that are not accepted; checks that the file can be replaced, before there is
    /// need to.
    pub(crate) fn follow(&self) -> Result<Follow> {
        SingleFile::prepare(OPTION, &self.path)?;
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(self.newest.1));
        let earlier = self.earlier.iter().map(|(print, _)| *print).collect();
        Ok(Follow { since: since.unwrap_or(UNIX_EPOCH), earlier })
    }

    /// Pins the successor that the peer has shown; the file as it is then.
    pub(crate) fn pin(&self, shown: ShownIdentity) -> Result<Self> {
        let time = shown.announced.unwrap_or(wall_clock()).duration_since(UNIX_EPOCH);
        let mut next = self.clone();
        next.earlier.push(next.newest);
        next.newest = (shown.fingerprint, time.unwrap_or_default().as_secs());
        self.replace(next)
    }

    /// Follows the server from a key of its filter to another, which is none that it had before.
    pub(crate) fn follow_filter(&self, ours: String, theirs: &String) -> Result<Self> {
        // mutant(follow-filter): false
        if self.filters.contains(theirs) {
            let what = format_args!("{OPTION}: the server is back at an earlier key ({theirs})");
            return Err(Failure::new(Status::Mismatch, what).with_hint(
                "ask its operator whether an old store was restored; --refresh then fetches the filter again",
            ));
        }
        let mut next = self.clone();
        next.filters.push(ours);
        self.replace(next)
    }

    /// Writes `next`, unless another process has changed the file meanwhile.
    fn replace(&self, next: Self) -> Result<Self> {
        let failed = |error: io::Error| Failure::file(&self.path, error);
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // The file itself is replaced, so that a lock of it would not hold.
        let _lock = match File::open(folder.unwrap_or(Path::new("."))) {
            Ok(folder) => Some(lock(folder).map_err(failed)?),
            Err(_) if !cfg!(unix) => None,
            Err(error) => return Err(failed(error)),
        };
        if Self::read(&self.path).as_ref() != Ok(self) {
            let what = format_args!("{OPTION}: {} has changed meanwhile", self.path.display());
            return Err(Failure::new(Status::Other, what).with_hint("start again"));
        }
        let prints = next.earlier.iter().chain([&next.newest]);
        let prints = prints.map(|(print, seconds)| format!("{print} {seconds}\n"));
        let lines: String =
            prints.chain(next.filters.iter().map(|key| format!("filter {key}\n"))).collect();
        SingleFile::prepare(OPTION, &self.path)?.commit(lines.as_bytes())?;
        Ok(next)
    }
}

/// Locks a folder, which another user may hold locked: at most for some seconds.
fn lock(mut folder: File) -> io::Result<Lock> {
    for _ in 0..50 {
        folder = match Lock::try_new(folder) {
            Err((folder, TryLockError::WouldBlock)) => folder,
            Err((_, TryLockError::Error(error))) => return Err(error),
            Ok(lock) => return Ok(lock),
        };
        thread::sleep(Duration::from_millis(100));
    }
    Err(io::Error::other("another process holds a lock of its folder"))
}
