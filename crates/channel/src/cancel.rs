//! Ending from another thread what a party waits for.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(feature = "tcp")]
use volery_os::net::Socket;

use volery_os::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use volery_os::time::Instant;

use crate::{Error, Result};

/// Ends the calls of a party that wait for its peer: those that listen, connect or authenticate,
/// and those on the connections made by them. They fail with [`Error::Cancelled`], and the peer
/// finds the connection closed.
///
/// It takes effect at once, except that the resolution of a name is not interrupted, and on
/// systems other than Linux an attempt to connect to a machine that does not answer is not. Clones
/// are the same.
///
/// ```
/// use std::time::Duration;
/// use volery_channel::tcp::{self, Patience};
/// use volery_channel::{Cancel, Error};
///
/// let cancel = Cancel::default();
/// let patience = Patience { cancel: cancel.clone(), ..Duration::from_secs(60).into() };
/// let waiting = std::thread::spawn(|| tcp::listen("127.0.0.1:0", patience));
/// cancel.cancel();
/// let ended = waiting.join().expect("the thread does not panic");
/// assert!(matches!(ended, Err(Error::Cancelled)));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    cancelled: AtomicBool,
    ends: Mutex<Ends>,
    changed: Condvar,
}

/// The sockets and other cancellations that a cancellation ends.
#[derive(Debug, Default)]
struct Ends {
    #[cfg(feature = "tcp")]
    sockets: Vec<Weak<Socket>>,
    others: Vec<Weak<Shared>>,
}

/// While it lives, one [`Cancel`] also cancels another one.
#[derive(Debug)]
pub struct CancelLink {
    from: Cancel,
    to: Weak<Shared>,
}

impl Cancel {
    fn ends(&self) -> MutexGuard<'_, Ends> {
        // Every change of the lists is complete, so a panic elsewhere does not matter.
        self.0.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels; a second time has no effect. Does not wait.
    pub fn cancel(&self) {
        let mut ends = self.ends();
        if self.0.cancelled.swap(true, Ordering::SeqCst) {
            return;
        }
        let taken = std::mem::take(&mut *ends);
        drop(ends);
        self.0.changed.notify_all();
        #[cfg(feature = "tcp")]
        for socket in taken.sockets.iter().filter_map(Weak::upgrade) {
            // The connection may be closed already.
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
        for other in taken.others.iter().filter_map(Weak::upgrade) {
            Self(other).cancel();
        }
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::SeqCst)
    }

    /// Cancels `other` with this one, until the returned value is dropped: for a run on a
    /// connection that was made before it.
    #[must_use = "dropping it ends the effect"]
    pub fn pass_on(&self, other: &Self) -> CancelLink {
        let to = Arc::downgrade(&other.0);
        if !Arc::ptr_eq(&self.0, &other.0) {
            let mut ends = self.ends();
            if self.is_cancelled() {
                drop(ends);
                other.cancel();
            } else {
                ends.others.push(Weak::clone(&to));
            }
        }
        CancelLink { from: self.clone(), to }
    }

    /// Fails once it was cancelled.
    pub(crate) fn check(&self) -> Result<()> {
        match self.is_cancelled() {
            // no mutant: an error by name, where it is made
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }

    /// Closes `socket` when it is cancelled.
    #[cfg(feature = "tcp")]
    pub(crate) fn watch(&self, socket: &Arc<Socket>) {
        let mut ends = self.ends();
        ends.sockets.retain(|socket| socket.strong_count() > 0);
        ends.sockets.push(Arc::downgrade(socket));
        // After the swap in `cancel` nobody looks at the list any more.
        if self.is_cancelled() {
            let _ = socket.shutdown(std::net::Shutdown::Both);
        }
    }

    /// Sleeps, and ends early if this is cancelled.
    ///
    /// # Errors
    /// If it is cancelled.
    pub fn sleep(&self, time: Duration) -> Result<()> {
        let end = Instant::now() + time;
        let mut ends = self.ends();
        loop {
            self.check()?;
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let woken = self.0.changed.wait_timeout(ends, left);
            (ends, _) = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// The same one.
impl PartialEq for Cancel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Cancel {}

impl Drop for CancelLink {
    fn drop(&mut self) {
        let mut ends = self.from.ends();
        if let Some(place) = ends.others.iter().position(|one| one.ptr_eq(&self.to)) {
            ends.others.swap_remove(place);
        }
    }
}
