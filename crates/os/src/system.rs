//! The system itself.

/// The clock.
pub mod time {
    pub use std::time::{Duration, UNIX_EPOCH};

    #[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
    #[allow(clippy::disallowed_types, reason = "this is the place that has them")]
    pub use std::time::{Instant, SystemTime};
    #[cfg(all(target_family = "wasm", target_os = "unknown"))]
    pub use web_time::{Instant, SystemTime};

    /// The time of day.
    pub fn wall_clock() -> SystemTime {
        SystemTime::now()
    }
}

/// Locks and queues.
pub mod sync {
    pub use std::sync::{Arc, LazyLock, OnceLock, PoisonError, Weak, atomic};
    pub use std::sync::{Condvar, Mutex, MutexGuard, TryLockError, WaitTimeoutResult, mpsc};
}

/// Threads.
pub mod thread {
    pub use std::thread::*;

    /// A scope, as a closure of [`scope`] has it.
    pub type ScopeRef<'scope, 'env> = &'scope Scope<'scope, 'env>;

    /// Lets `body`, on another thread while this one waits for it, act for this thread: around what
    /// a pool runs.
    pub fn carried<T>(body: impl FnOnce() -> T) -> impl FnOnce() -> T {
        body
    }
}

/// Sockets.
#[cfg(feature = "net")]
pub mod net {
    use std::io;
    use std::net::SocketAddr;
    pub use std::net::TcpListener;

    pub use socket2::Socket;

    /// A connection of a listener, and its origin.
    ///
    /// # Errors
    /// Those of the system.
    pub fn accept(listener: &TcpListener) -> io::Result<(Socket, SocketAddr)> {
        listener.accept().map(|(stream, from)| (stream.into(), from))
    }
}

/// Changes of files that must outlive a failure. What only reads is in the standard library.
pub mod fs {
    use std::fs::{File, TryLockError};
    use std::io;

    pub use std::fs::{remove_dir, remove_dir_all, remove_file, rename};

    /// As [`File::sync_all`]; of an opened folder, puts its names on the disk.
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync_all(file: &File) -> io::Result<()> {
        file.sync_all()
    }

    /// As [`File::sync_data`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn sync_data(file: &File) -> io::Result<()> {
        file.sync_data()
    }

    /// A file or folder that is locked until this is dropped, or the process ends.
    #[derive(Debug)]
    pub struct Lock(File);

    impl Lock {
        /// Locks a file that no other one has locked.
        ///
        /// # Errors
        /// The file, and why it is not locked.
        pub fn try_new(file: File) -> Result<Self, (File, TryLockError)> {
            match file.try_lock() {
                Ok(()) => Ok(Self(file)),
                Err(error) => Err((file, error)),
            }
        }

        /// Locks a file for several, which no other one has locked alone.
        ///
        /// # Errors
        /// The file, and why it is not locked.
        pub fn try_shared(file: File) -> Result<Self, (File, TryLockError)> {
            match file.try_lock_shared() {
                Ok(()) => Ok(Self(file)),
                Err(error) => Err((file, error)),
            }
        }

        /// Waits until no other one has the file locked, and locks it.
        ///
        /// # Errors
        /// Those of the system.
        pub fn new(file: File) -> io::Result<Self> {
            file.lock()?;
            Ok(Self(file))
        }

        /// The file.
        pub fn file(&self) -> &File {
            &self.0
        }
    }
}

/// The process.
pub mod process {
    /// A static of which each process has its own.
    pub use std::sync::LazyLock as OfProcess;
}

/// Randomness.
pub mod random {
    use std::io;

    /// Fills `bytes` with cryptographic randomness of the system.
    ///
    /// # Errors
    /// If the system has none.
    pub fn fill(bytes: &mut [u8]) -> io::Result<()> {
        getrandom::fill(bytes).map_err(io::Error::other)
    }
}

/// Another thread of a world may run here, or a fault strike: before a change of the outside that
/// no function of this crate makes.
pub fn call(_what: &'static str) {}
