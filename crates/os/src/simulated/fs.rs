//! Changes of files that must outlive a failure.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use super::world::{LockState, Me, me};

/// How long a program waits before it tries a lock again.
const PAUSE: Duration = Duration::from_millis(20);

fn change(what: &'static str) -> io::Result<()> {
    me().map_or(Ok(()), |me| me.file_call(what))
}

/// As the standard library's.
///
/// # Errors
/// Those of the system.
pub fn remove_dir(path: impl AsRef<Path>) -> io::Result<()> {
    change("remove_dir")?;
    fs::remove_dir(path)
}

/// As the standard library's, but a loss of power or a kill may strike between two files.
///
/// # Errors
/// Those of the system.
pub fn remove_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    if me().is_some() {
        for entry in fs::read_dir(&path)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => remove_dir_all(entry.path())?,
                false => remove_file(entry.path())?,
            }
        }
        return remove_dir(path);
    }
    fs::remove_dir_all(path)
}

/// As the standard library's.
///
/// # Errors
/// Those of the system.
pub fn remove_file(path: impl AsRef<Path>) -> io::Result<()> {
    change("remove_file")?;
    fs::remove_file(path)
}

/// As the standard library's.
///
/// # Errors
/// Those of the system.
pub fn rename(from: impl AsRef<Path>, to: impl AsRef<Path>) -> io::Result<()> {
    change("rename")?;
    fs::rename(from, to)
}

/// As [`File::sync_all`]; of an opened folder, puts its names on the disk.
///
/// # Errors
/// Those of the system.
pub fn sync_all(file: &File) -> io::Result<()> {
    let Some(me) = me() else {
        return file.sync_all();
    };
    let called = me.file_call("sync");
    let machine = me.machine();
    let disk = &mut me.world.lock().machines[machine].disk;
    match called {
        Ok(()) => disk.sync(file),
        Err(error) => disk.fail(file).and(Err(error)),
    }
}

/// As [`File::sync_data`].
///
/// # Errors
/// Those of the system.
pub fn sync_data(file: &File) -> io::Result<()> {
    match me() {
        Some(_) => sync_all(file),
        None => file.sync_data(),
    }
}

/// A file or folder that is locked until this is dropped, or the process ends.
#[derive(Debug)]
pub struct Lock {
    file: File,
    _held: Option<Held>,
}

struct Held(Me, u64);

impl std::fmt::Debug for Held {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", self.1)
    }
}

impl Lock {
    /// Locks a file that no other one has locked.
    ///
    /// # Errors
    /// The file, and why it is not locked.
    pub fn try_new(file: File) -> Result<Self, (File, TryLockError)> {
        Self::locked(file, false)
    }

    /// Locks a file for several, which no other one has locked alone.
    ///
    /// # Errors
    /// The file, and why it is not locked.
    pub fn try_shared(file: File) -> Result<Self, (File, TryLockError)> {
        Self::locked(file, true)
    }

    fn locked(file: File, is_shared: bool) -> Result<Self, (File, TryLockError)> {
        let Some(me) = me() else {
            let locked = if is_shared { file.try_lock_shared() } else { file.try_lock() };
            return match locked {
                Ok(()) => Ok(Self { file, _held: None }),
                Err(error) => Err((file, error)),
            };
        };
        me.call("lock");
        let key = match file.metadata() {
            Ok(data) => (data.dev(), data.ino()),
            Err(error) => return Err((file, TryLockError::Error(error))),
        };
        let mut inner = me.world.lock();
        let mut others = inner.locks.iter().filter(|other| other.file == key);
        if others.any(|other| !(is_shared && other.is_shared)) {
            drop(inner);
            return Err((file, TryLockError::WouldBlock));
        }
        inner.drawn_locks += 1;
        let number = inner.drawn_locks;
        inner.locks.push(LockState { file: key, program: me.program, number, is_shared });
        drop(inner);
        Ok(Self { file, _held: Some(Held(me, number)) })
    }

    /// Waits until no other one has the file locked, and locks it.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new(mut file: File) -> io::Result<Self> {
        let Some(me) = me() else {
            file.lock()?;
            return Ok(Self { file, _held: None });
        };
        loop {
            match Self::try_new(file) {
                Ok(lock) => return Ok(lock),
                Err((_, TryLockError::Error(error))) => return Err(error),
                Err((again, TryLockError::WouldBlock)) => file = again,
            }
            me.sleep(PAUSE);
        }
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.world.lock().locks.retain(|lock| lock.number != self.1);
    }
}
