//! A run on a thread of its own, and the calling thread that waits for it.
//!
//! The calling thread is detached from the interpreter but for moments: it handles signals, hands
//! what the run tells to a Python object, and asks that object whether to cancel. So Ctrl-C ends a
//! run, and callbacks come on the thread that called.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use volery_run::embed::{Cancel, Events, Failure, Level, Part, Run, Status};

/// Time between two looks at signals and the caller's object.
const TICK: Duration = Duration::from_millis(50);

/// Time that a cancelled run has to end before the caller goes on without it. Its thread then ends
/// when its computation next reaches a message.
const FAREWELL: Duration = Duration::from_millis(600);

/// Options by name, each with its text.
pub(crate) type Named = Vec<(String, std::ffi::OsString)>;

/// Makes the result of a run a Python object.
pub(crate) type Result<T> = std::result::Result<T, Failure>;
pub(crate) type Finished = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Each phase has a counter of its own: the caller may be told of a phase when the next has begun.
type Steps = Arc<AtomicU64>;

enum Message {
    Line(Level, String, String),
    /// Name, number of steps, and the steps done.
    Phase(String, u64, Steps),
    Part(Part),
    /// A text for the caller to keep, and who waits for it to be kept.
    Keep(String, SyncSender<()>),
    Finished(Result<Finished>),
}

/// A run that has begun.
pub(crate) struct Job {
    messages: Receiver<Message>,
    /// One for each part that the run may make before it waits.
    permits: SyncSender<()>,
    /// Of the phase that the caller knows of.
    done: Steps,
    /// Bytes sent and received.
    traffic: Arc<AtomicU64>,
    cancel: Cancel,
    /// The last look at signals and the caller's object: parts may come faster than one is due.
    ticked: Instant,
    is_over: bool,
}

/// The next part of a job, or its end.
pub(crate) enum JobOutput {
    Part(Part),
    Finished(Finished),
}

/// Hands the parts of a stream to the calling thread.
pub(crate) struct Parts {
    messages: std::sync::mpsc::Sender<Message>,
    permits: Receiver<()>,
}

impl Parts {
    /// Waits until `watch.keep(text)` has returned.
    pub(crate) fn keep(&self, text: &str) -> Result<()> {
        let (kept, wait) = sync_channel(1);
        let sent = self.messages.send(Message::Keep(text.to_owned(), kept));
        match (sent, wait.recv()) {
            (Ok(()), Ok(())) => Ok(()),
            _ => Err(Failure::new(Status::Other, "cancelled")),
        }
    }

    /// Waits until the part before the last one was taken.
    pub(crate) fn put(&self, part: Part) -> Result<()> {
        let taken = self.messages.send(Message::Part(part)).is_ok();
        match self.permits.recv() {
            Ok(()) if taken => Ok(()),
            _ => Err(Failure::new(Status::Other, "cancelled")),
        }
    }
}

struct EventSender {
    messages: std::sync::mpsc::Sender<Message>,
    done: Mutex<Steps>,
    traffic: Arc<AtomicU64>,
}

impl Events for EventSender {
    // The caller is gone where a message cannot be sent.
    fn line(&self, level: Level, text: &str, fields: &str) {
        let _ = self.messages.send(Message::Line(level, text.to_owned(), fields.to_owned()));
    }

    fn phase(&self, name: &str, steps: u64) {
        let done = Steps::default();
        *self.done.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&done);
        let _ = self.messages.send(Message::Phase(name.to_owned(), steps, done));
    }

    fn done(&self, steps: u64) {
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        done.store(steps, Ordering::Relaxed);
    }

    fn traffic(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.traffic)
    }
}

impl Job {
    /// Begins a run.
    pub(crate) fn begin(
        cancel: Cancel,
        work: impl FnOnce(&Run, Parts) -> Result<Finished> + Send + 'static,
    ) -> PyResult<Self> {
        let (sender, messages) = channel();
        let (permits, wait) = sync_channel(2);
        // The run is one part ahead of the caller.
        let _ = permits.send(());
        let traffic = Arc::<AtomicU64>::default();
        let tell = EventSender {
            messages: sender.clone(),
            done: Mutex::default(),
            traffic: Arc::clone(&traffic),
        };
        let run = Run::new(Arc::new(tell), cancel.clone());
        let parts = Parts { messages: sender.clone(), permits: wait };
        thread::Builder::new().name("volery".into()).spawn(move || {
            let result = work(&run, parts);
            let _ = sender.send(Message::Finished(result));
        })?;
        Ok(Self {
            messages,
            permits,
            done: Steps::default(),
            traffic,
            cancel,
            ticked: Instant::now(),
            is_over: false,
        })
    }

    /// Waits for the end of a run that makes no parts.
    pub(crate) fn finish(
        mut self,
        py: Python<'_>,
        watch: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        loop {
            if let JobOutput::Finished(finished) = self.next(py, watch)? {
                return finished(py);
            }
        }
    }

    /// Waits for the next part or the end. `watch` has `line(level, text, fields)`, `phase(name,
    /// steps)` and `tick(done, bytes)`, which returns whether to cancel.
    ///
    /// # Errors
    /// Of the run; of a method of `watch`, or a signal: the run is then cancelled.
    pub(crate) fn next(&mut self, py: Python<'_>, watch: &Bound<'_, PyAny>) -> PyResult<JobOutput> {
        match self.serve(py, watch) {
            Ok(JobOutput::Part(part)) => {
                // The run may have ended by now.
                let _ = self.permits.try_send(());
                Ok(JobOutput::Part(part))
            }
            Ok(finished) => Ok(finished),
            Err(error) => {
                self.abandon(py);
                Err(error)
            }
        }
    }

    fn serve(&mut self, py: Python<'_>, watch: &Bound<'_, PyAny>) -> PyResult<JobOutput> {
        loop {
            if self.ticked.elapsed() >= TICK {
                self.ticked = Instant::now();
                py.check_signals()?;
                if self.tick(watch)? {
                    self.cancel.cancel();
                }
            }
            let messages = &mut self.messages;
            let message = match py.detach(move || messages.recv_timeout(TICK)) {
                Ok(message) => Some(message),
                Err(RecvTimeoutError::Timeout) => None,
                // The thread panicked outside of the run.
                Err(RecvTimeoutError::Disconnected) => {
                    let failure = Failure::new(Status::Other, "internal error in volery");
                    Some(Message::Finished(Err(failure)))
                }
            };
            match message {
                Some(Message::Finished(result)) => {
                    self.is_over = true;
                    return match result {
                        Ok(finished) => {
                            self.tick(watch)?;
                            Ok(JobOutput::Finished(finished))
                        }
                        Err(failure) => Err(error(py, &failure)?),
                    };
                }
                Some(Message::Part(part)) => return Ok(JobOutput::Part(part)),
                Some(Message::Keep(text, kept)) => {
                    watch.call_method1("keep", (text,))?;
                    // The run may have ended by now.
                    let _ = kept.send(());
                }
                Some(Message::Line(level, text, fields)) => {
                    watch.call_method1("line", (self::level(level), text, fields))?;
                }
                Some(Message::Phase(name, steps, done)) => {
                    self.done = done;
                    watch.call_method1("phase", (name, steps))?;
                }
                None => {}
            }
        }
    }

    /// Tells the caller's object how far the run is; whether to cancel it.
    fn tick(&self, watch: &Bound<'_, PyAny>) -> PyResult<bool> {
        let [done, bytes] = [&self.done, &self.traffic].map(|count| count.load(Ordering::Relaxed));
        watch.call_method1("tick", (done, bytes))?.extract()
    }

    /// Cancels the run and gives it a moment to end.
    fn abandon(&mut self, py: Python<'_>) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        self.cancel.cancel();
        let deadline = Instant::now() + FAREWELL;
        let (messages, permits) = (&mut self.messages, &self.permits);
        py.detach(move || {
            while let Some(left) = deadline.checked_duration_since(Instant::now()) {
                match messages.recv_timeout(left) {
                    Ok(Message::Finished(_)) | Err(_) => return,
                    Ok(_) => {
                        let _ = permits.try_send(());
                    }
                }
            }
        });
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // A stream that is not read to its end. The connection of a finished run goes on.
        if !self.is_over {
            self.cancel.cancel();
        }
    }
}

pub(crate) fn error(py: Python<'_>, failure: &Failure) -> PyResult<PyErr> {
    let make = py.import("volery._errors")?.getattr("from_status")?;
    let status = failure.status() as u8;
    let error = make.call1((status, failure.message(), failure.hint()))?;
    Ok(PyErr::from_value(error))
}

/// The level of Python's `logging`.
fn level(level: Level) -> u8 {
    match level {
        Level::Error => 40,
        Level::Warning => 30,
        Level::Info => 20,
        Level::Debug => 10,
        Level::Trace => 5,
    }
}
