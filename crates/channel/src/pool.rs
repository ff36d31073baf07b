//! Threads for protocols that an async task or a caller drives.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use volery_os::process::OfProcess;
use volery_os::sync::{Arc, Condvar, Mutex, PoisonError};
use volery_os::thread;

use crate::pipe::lock;

/// How long a thread waits for work before it ends.
const IDLE: Duration = Duration::from_secs(5);

/// Bytes of the stack of a thread: `docs/design/async.md` has what protocols take.
const STACK: usize = 1 << 20;

/// A bounded number of threads that run protocols, with stacks of 1 MiB, started when they are
/// needed and ended when they have been idle for five seconds. Clones are the same pool.
///
/// A protocol keeps its thread from its first byte to its last, also while it waits for the peer.
/// When all threads are taken, further protocols wait in order, and have sent nothing: their peers'
/// timeouts run. If both ends of sessions are in one process, the pool needs a thread for **each
/// end**: with fewer, all threads may belong to ends that wait for one that has none. A pool for
/// each side, in which the sessions are in the same order, may have any number of threads.
#[derive(Clone)]
pub struct Pool(Arc<Shared>);

struct Shared {
    bound: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Work that no thread has taken.
    jobs: VecDeque<Box<dyn FnOnce() + Send>>,
    threads: usize,
    /// Threads that wait for work.
    free: usize,
}

impl Pool {
    /// A pool of at most `threads` threads.
    ///
    /// # Panics
    /// If `threads` is zero.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        assert!(threads > 0, "a thread for the protocols");
        let (state, changed) = (Mutex::default(), Condvar::new());
        Self(Arc::new(Shared { bound: threads, state, changed }))
    }

    /// The pool of the process, of at most 4,096 threads.
    #[must_use]
    pub fn shared() -> Self {
        static SHARED: OfProcess<Pool> = OfProcess::new(|| Pool::new(4096));
        SHARED.clone()
    }

    /// Runs `job`, which does not panic, on the next free thread.
    pub(crate) fn submit(&self, job: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let mut state = lock(&self.0.state);
        state.jobs.push_back(Box::new(job));
        if state.free < state.jobs.len() && state.threads < self.0.bound {
            let shared = Arc::clone(&self.0);
            let builder = thread::Builder::new().name("volery protocol".into()).stack_size(STACK);
            match builder.spawn(move || shared.work()) {
                Ok(_) => state.threads += 1,
                Err(error) if state.threads == 0 => {
                    state.jobs.pop_back();
                    return Err(error);
                }
                // Later one of the others has time.
                Err(_) => {}
            }
        }
        self.0.changed.notify_one();
        Ok(())
    }
}

impl Shared {
    /// A thread, from its start to its end.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = lock(&self.state);
                continue;
            }
            state.free += 1;
            let waited;
            let woken = self.changed.wait_timeout(state, IDLE);
            (state, waited) = woken.unwrap_or_else(PoisonError::into_inner);
            state.free -= 1;
            if waited.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}
