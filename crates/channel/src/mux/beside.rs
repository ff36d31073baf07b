//! Tasks at the same time over a connection that goes on afterwards.

use std::io;
use std::sync::PoisonError;

use volery_os::sync::{Arc, Mutex};
use volery_os::thread;
use volery_primitives::Wiped;

use super::{End, MAX_SUBSTREAMS, shared::Shared};
use crate::pipe::lock;
use crate::{Channel, Error, Result};

/// Runs `tasks` at the same time, each on a thread and a substream of its own, and returns their
/// results in order. At most `threads` of them compute at once: a task that waits for the peer lets
/// another one go on. The peer runs as many tasks at the same point, with any number of threads.
///
/// The bytes are [frames](super); each substream ends with a frame of its own in each direction.
/// After the last of them the connection goes on as before. Where a system has no threads the tasks
/// run in order, which ends as well: both parties then are at work on the first task that is not
/// done.
///
/// Sessions: the tasks must have different ones, as their messages are not in one order. A check
/// by which the peer might learn something ends in [`Channel::verdict`], so that it learns no more
/// than from tasks one after the other.
///
/// All bytes of a substream are to be read by its task: those that are not are dropped. On a
/// transport that queues less than [`QUEUE_BOUND`](crate::QUEUE_BOUND), tasks that send much in
/// opposite directions may wait for each other until the timeout. If the parties compute for long
/// while some of their tasks wait, a short timeout ends that too: nobody sends signs of life
/// meanwhile.
///
/// # Panics
/// If a task panics, `threads` is zero, or there are none or more than [`MAX_SUBSTREAMS`] tasks.
///
/// # Errors
/// The first error of a task; then all others end too, and the channel is
/// [broken](Error::Broken).
///
/// # Examples
///
/// ```
/// use volery_channel::{Channel, Error, mux, run_two_parties};
///
/// fn party(channel: &mut Channel, ours: u8) -> Result<Vec<u8>, Error> {
///     let tasks = (0..3).map(|number| {
///         move |channel: &mut Channel| {
///             let mut theirs = [0];
///             channel.send(&[ours + number])?;
///             channel.recv(&mut theirs)?;
///             Ok(theirs[0])
///         }
///     });
///     mux::side_by_side(channel, 2, tasks.collect())
/// }
///
/// let (left, right) = run_two_parties(|channel| party(channel, 10), |channel| party(channel, 20));
/// assert_eq!((left?, right?), (vec![20, 21, 22], vec![10, 11, 12]));
/// # Ok::<_, Error>(())
/// ```
pub fn side_by_side<T: Send>(
    channel: &mut Channel,
    threads: usize,
    tasks: Vec<impl FnOnce(&mut Channel) -> Result<T> + Send>,
) -> Result<Vec<T>> {
    assert!((1..=MAX_SUBSTREAMS).contains(&tasks.len()), "from 1 to MAX_SUBSTREAMS tasks");
    assert!(threads > 0, "a thread for the tasks");
    let timeout = channel.timeout();
    let (transport, unread) = channel.lend_transport()?;
    // Wiped: made on a stack where secrets of the caller lay.
    let shared = Shared::new(transport, &unread, tasks.len(), threads);
    let mut shared = Arc::new(Wiped::new(shared));
    let failed = Mutex::new(None);
    let mut substreams: Vec<_> = (0..tasks.len())
        .map(|number| {
            let end = End { shared: Arc::clone(&shared), number };
            Wiped::new(channel.substream(end, &shared))
        })
        .collect();
    let run = |number: usize, substream: &mut Channel, task: _| {
        let turn = shared.turn();
        // Dropped before the turn: whoever gets that finds the failure.
        let guard = GiveUp(&shared);
        // One that has waited for its turn until another failed does not begin.
        let begun = shared.failed().map_err(|error| Error::from_io(error, "beginning", timeout));
        let result = begun.and_then(|()| run_one(task, substream, number, &shared));
        let value = match result {
            Ok(value) => {
                std::mem::forget(guard);
                Some(value)
            }
            Err(error) => {
                lock(&failed).get_or_insert(error);
                drop(guard);
                None
            }
        };
        drop(turn);
        value
    };
    let numbered = substreams.iter_mut().zip(tasks).enumerate();
    let results: Vec<_> = if cfg!(target_family = "wasm") {
        numbered.map(|(number, (substream, task))| run(number, substream, task)).collect()
    } else {
        let run = &run;
        thread::scope(|scope| {
            let started: Vec<_> = numbered
                .map(|(number, (substream, task))| {
                    scope.spawn(move || run(number, substream, task))
                })
                .collect();
            started.into_iter().map(|task| task.join().unwrap_or_else(resume)).collect()
        })
    };
    if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    let waited = "waiting for the peer's end of all tasks";
    shared.ended(timeout).map_err(|error| Error::from_io(error, waited, timeout))?;
    channel.join(&mut substreams);
    drop(substreams);
    let shared = Arc::get_mut(&mut shared).expect("all ends are dropped");
    channel.take_back(shared.take_transport());
    Ok(results.into_iter().map(|value| value.expect("no task has failed")).collect())
}

/// A task with the end of its substream.
fn run_one<T>(
    task: impl FnOnce(&mut Channel) -> Result<T>,
    substream: &mut Channel,
    number: usize,
    shared: &Shared,
) -> Result<T> {
    let value = task(substream)?;
    substream.flush()?;
    let (sending, timeout) = ("sending: the peer does not read", substream.timeout());
    let failed = |error: io::Error| Error::from_io(error, sending, timeout);
    shared.end(number, timeout).map_err(failed)?;
    Ok(value)
}

fn resume<T>(panic: Box<dyn std::any::Any + Send>) -> T {
    std::panic::resume_unwind(panic)
}

/// Ends all substreams when it is dropped.
struct GiveUp<'a>(&'a Shared);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}
