//! Locks and queues.

use std::fmt;
use std::ops::{Deref, DerefMut};

pub use std::sync::{
    Arc, LazyLock, LockResult, OnceLock, PoisonError, TryLockError, TryLockResult, Weak, atomic,
};
use std::time::Duration;

use super::world::me;

/// As the standard library's.
#[derive(Default)]
pub struct Mutex<T: ?Sized>(std::sync::Mutex<T>);

/// As the standard library's.
pub struct MutexGuard<'a, T: ?Sized> {
    lock: &'a Mutex<T>,
    /// Always there, but in `drop`.
    inner: Option<std::sync::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// As the standard library's.
    pub const fn new(value: T) -> Self {
        Self(std::sync::Mutex::new(value))
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// As there.
    pub fn into_inner(self) -> LockResult<T> {
        self.0.into_inner()
    }
}

impl<T: ?Sized> Mutex<T> {
    fn key(&self) -> usize {
        (&raw const self.0).cast::<u8>() as usize
    }

    fn guard<'a>(&'a self, inner: std::sync::MutexGuard<'a, T>) -> MutexGuard<'a, T> {
        MutexGuard { lock: self, inner: Some(inner) }
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// As there.
    pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        let Some(me) = me() else {
            return match self.0.lock() {
                Ok(inner) => Ok(self.guard(inner)),
                Err(poison) => Err(PoisonError::new(self.guard(poison.into_inner()))),
            };
        };
        loop {
            match self.try_lock() {
                Ok(guard) => return Ok(guard),
                Err(TryLockError::Poisoned(poison)) => return Err(poison),
                Err(TryLockError::WouldBlock) => me.wait(self.key(), None),
            };
        }
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// As there.
    pub fn try_lock(&self) -> TryLockResult<MutexGuard<'_, T>> {
        match self.0.try_lock() {
            Ok(inner) => Ok(self.guard(inner)),
            Err(TryLockError::Poisoned(poison)) => {
                Err(PoisonError::new(self.guard(poison.into_inner())).into())
            }
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        }
    }

    /// As the standard library's.
    ///
    /// # Errors
    /// As there.
    pub fn get_mut(&mut self) -> LockResult<&mut T> {
        self.0.get_mut()
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Mutex<T> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

impl<T: ?Sized> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.inner.as_ref().expect("it is there until it is dropped")
    }
}

impl<T: ?Sized> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.inner.as_mut().expect("it is there until it is dropped")
    }
}

impl<T: ?Sized> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if self.inner.take().is_some()
            && let Some(me) = me()
        {
            me.wake(self.lock.key());
        }
    }
}

/// As the standard library's.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Condvar, u8);

/// As the standard library's.
#[derive(Clone, Copy, Debug)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// As the standard library's.
    #[must_use]
    pub fn timed_out(self) -> bool {
        self.0
    }
}

/// A guard after a wait, and whether the time was over.
type Waited<'a, T> = (MutexGuard<'a, T>, WaitTimeoutResult);

#[allow(clippy::missing_errors_doc, missing_docs, reason = "they are the standard library's")]
impl Condvar {
    pub const fn new() -> Self {
        // A byte, so that no two of them have one address.
        Self(std::sync::Condvar::new(), 0)
    }

    fn key(&self) -> usize {
        (&raw const self.1) as usize
    }

    pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
        if me().is_some() {
            let waited = self.until(guard, None);
            return waited
                .map(|(guard, _)| guard)
                .map_err(|poison| PoisonError::new(poison.into_inner().0));
        }
        let lock = guard.lock;
        let inner = guard.inner.take().expect("it is there until it is dropped");
        match self.0.wait(inner) {
            Ok(inner) => Ok(lock.guard(inner)),
            Err(poison) => Err(PoisonError::new(lock.guard(poison.into_inner()))),
        }
    }

    pub fn wait_timeout<'a, T>(
        &self,
        mut guard: MutexGuard<'a, T>,
        time: Duration,
    ) -> LockResult<Waited<'a, T>> {
        if let Some(me) = me() {
            return self.until(guard, me.now().checked_add(time));
        }
        let lock = guard.lock;
        let inner = guard.inner.take().expect("it is there until it is dropped");
        let told = |(inner, late): (_, std::sync::WaitTimeoutResult)| {
            (lock.guard(inner), WaitTimeoutResult(late.timed_out()))
        };
        match self.0.wait_timeout(inner, time) {
            Ok(waited) => Ok(told(waited)),
            Err(poison) => Err(PoisonError::new(told(poison.into_inner()))),
        }
    }

    /// Waits in a world.
    fn until<'a, T>(
        &self,
        guard: MutexGuard<'a, T>,
        until: Option<Duration>,
    ) -> LockResult<Waited<'a, T>> {
        let lock = guard.lock;
        drop(guard);
        let is_late = me().is_some_and(|me| me.wait(self.key(), until));
        match lock.lock() {
            Ok(guard) => Ok((guard, WaitTimeoutResult(is_late))),
            Err(poison) => Err(PoisonError::new((poison.into_inner(), WaitTimeoutResult(is_late)))),
        }
    }

    pub fn notify_all(&self) {
        match me() {
            Some(me) => me.wake(self.key()),
            None => self.0.notify_all(),
        }
    }

    /// In a world, wakes all: a thread may always wake without a reason.
    pub fn notify_one(&self) {
        match me() {
            Some(me) => me.wake(self.key()),
            None => self.0.notify_one(),
        }
    }
}

/// Queues between threads.
#[allow(clippy::missing_errors_doc, missing_docs, reason = "they are the standard library's")]
pub mod mpsc {
    use std::collections::VecDeque;
    pub use std::sync::mpsc::{RecvError, RecvTimeoutError, SendError, TryRecvError};

    use super::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
    use crate::time::{Duration, Instant};

    #[derive(Debug)]
    struct State<T> {
        items: VecDeque<T>,
        /// The most items that wait.
        bound: usize,
        senders: usize,
        has_receiver: bool,
    }

    #[derive(Debug)]
    struct Shared<T>(Mutex<State<T>>, Condvar);

    impl<T> Shared<T> {
        fn lock(&self) -> MutexGuard<'_, State<T>> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }
    }

    #[derive(Debug)]
    pub struct Sender<T>(Arc<Shared<T>>);

    pub type SyncSender<T> = Sender<T>;

    #[derive(Debug)]
    pub struct Receiver<T>(Arc<Shared<T>>);

    pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
        sync_channel(usize::MAX)
    }

    /// A `bound` of 0 counts as 1.
    pub fn sync_channel<T>(bound: usize) -> (SyncSender<T>, Receiver<T>) {
        let (items, bound) = (VecDeque::new(), bound.max(1));
        let state = State { items, bound, senders: 1, has_receiver: true };
        let shared = Arc::new(Shared(Mutex::new(state), Condvar::new()));
        (Sender(Arc::clone(&shared)), Receiver(shared))
    }

    impl<T> Clone for Sender<T> {
        fn clone(&self) -> Self {
            self.0.lock().senders += 1;
            Self(Arc::clone(&self.0))
        }
    }

    impl<T> Drop for Sender<T> {
        fn drop(&mut self) {
            self.0.lock().senders -= 1;
            self.0.1.notify_all();
        }
    }

    impl<T> Drop for Receiver<T> {
        fn drop(&mut self) {
            let mut state = self.0.lock();
            state.has_receiver = false;
            let left = std::mem::take(&mut state.items);
            drop(state);
            self.0.1.notify_all();
            drop(left);
        }
    }

    impl<T> Sender<T> {
        pub fn send(&self, item: T) -> Result<(), SendError<T>> {
            let mut state = self.0.lock();
            while state.has_receiver && state.items.len() >= state.bound {
                state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if !state.has_receiver {
                return Err(SendError(item));
            }
            state.items.push_back(item);
            drop(state);
            self.0.1.notify_all();
            Ok(())
        }
    }

    impl<T> Receiver<T> {
        pub fn try_recv(&self) -> Result<T, TryRecvError> {
            self.within(Some(Duration::ZERO)).map_err(|error| match error {
                RecvTimeoutError::Timeout => TryRecvError::Empty,
                RecvTimeoutError::Disconnected => TryRecvError::Disconnected,
            })
        }

        pub fn recv(&self) -> Result<T, RecvError> {
            self.within(None).map_err(|_| RecvError)
        }

        pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
            self.within(Some(time))
        }

        pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
            std::iter::from_fn(|| self.recv().ok())
        }

        pub fn try_iter(&self) -> impl Iterator<Item = T> + '_ {
            std::iter::from_fn(|| self.try_recv().ok())
        }

        fn within(&self, time: Option<Duration>) -> Result<T, RecvTimeoutError> {
            let end = time.and_then(|time| Instant::now().checked_add(time));
            let mut state = self.0.lock();
            loop {
                if let Some(item) = state.items.pop_front() {
                    drop(state);
                    self.0.1.notify_all();
                    return Ok(item);
                }
                if state.senders == 0 {
                    return Err(RecvTimeoutError::Disconnected);
                }
                let Some(end) = end else {
                    state = self.0.1.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                };
                let left = end.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(RecvTimeoutError::Timeout);
                }
                let waited = self.0.1.wait_timeout(state, left);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    impl<T> IntoIterator for Receiver<T> {
        type Item = T;
        type IntoIter = IntoIter<T>;

        fn into_iter(self) -> IntoIter<T> {
            IntoIter(self)
        }
    }

    #[derive(Debug)]
    pub struct IntoIter<T>(Receiver<T>);

    impl<T> Iterator for IntoIter<T> {
        type Item = T;

        fn next(&mut self) -> Option<T> {
            self.0.recv().ok()
        }
    }
}
