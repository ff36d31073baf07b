//! Streams of one key side by side, so that no thread waits for the peer while another substream
//! can go on.
//!
//! All substreams run the same plan, each in a session of its own and on a base of its own: the
//! bases are parts of what one setup made, for one key. The outputs are those of round 0 of
//! substream 0, of round 0 of substream 1, .., then of round 1 of substream 0, and so on: a draw
//! takes whatever substreams it reaches. Those of a draw that reaches several run at the same time
//! ([`side_by_side`]), on as many threads as the pool of the caller has; each substream then
//! computes on one thread. A draw from one substream uses the channel and the pool as a stream
//! without substreams does. So the bytes of each substream, and which draws are split, depend on
//! the plan and the draws alone, never on threads.
//!
//! Security: that of so many streams with one key, whose messages may come in any order. Wrong
//! outputs are no likelier: all end with the first failure, before any output of the call is
//! returned, so a peer that cheats in several must pass in each. Nor are right guesses of `x` by
//! the value holder, of places by the key holder: the checks of all rounds have one order
//! ([`Channel::verdict`]), and after the first that fails nothing is sent, so that the peer learns
//! what passed before, as in a single stream. The same holds of the check of the trees' OTs, whose
//! `delta` all substreams have: after a failed one no fork of the source passes, though its own
//! check would have (`volery_ot`, `poisonable`).

use std::sync::{Mutex, PoisonError};
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use volery_channel::{Channel, Result, mux::side_by_side};
use volery_os::thread::carried;

use super::{AnyRounds, Draws, Role, fill};
use crate::{Plan, correlation::OutputMut};

/// The substreams of a stream.
pub(crate) struct Substreams<R: Role> {
    substreams: Vec<AnyRounds<R>>,
    /// The plan of each.
    plan: Plan,
    /// The substream of the next output.
    substream: usize,
    /// The outputs of its round that have not been drawn.
    left: usize,
    /// Outputs of a substream before this round.
    before: u64,
}

impl<R: Role> Substreams<R> {
    /// Substreams with rounds of that plan.
    pub(crate) fn new(plan: Plan, substreams: Vec<AnyRounds<R>>) -> Self {
        let left = plan.delivery(0);
        Self { substreams, plan, substream: 0, left, before: 0 }
    }

    /// The substream of the next output.
    ///
    /// # Panics
    /// After the total of the plan.
    pub(super) fn current(&mut self) -> &mut AnyRounds<R> {
        if self.left == 0 {
            self.substream += 1;
            if self.substream == self.substreams.len() {
                self.substream = 0;
                self.before += self.plan.delivery(self.before) as u64;
            }
            self.left = self.plan.delivery(self.before);
            assert!(self.left > 0, "no more correlations than the plan was made for");
        }
        &mut self.substreams[self.substream]
    }

    /// The next outputs.
    pub(super) fn draw(
        &mut self,
        out: R::Part<'_>,
        draws: &mut Draws,
        channel: &mut Channel,
    ) -> Result<()> {
        let mut parts: Vec<_> = self.substreams.iter().map(|_| Vec::new()).collect();
        let mut rest = out;
        while rest.count() > 0 {
            self.current();
            let now;
            let count = self.left.min(rest.count());
            (now, rest) = rest.split_at(count);
            self.left -= now.count();
            parts[self.substream].push(now);
        }
        let several = parts.iter().filter(|parts| !parts.is_empty()).count() > 1;
        let mut drawn =
            self.substreams.iter_mut().zip(parts).filter(|(_, parts)| !parts.is_empty());
        if !several {
            let Some((substream, parts)) = drawn.next() else { return Ok(()) };
            let mut parts = parts.into_iter();
            return parts.try_for_each(|part| fill::<R>(substream, part, Some(draws), channel));
        }
        channel.agree_drawn(draws.drawn)?;
        draws.begun = true;
        let tasks = drawn.map(|(substream, parts)| {
            move |channel: &mut Channel| {
                let mut parts = parts.into_iter();
                alone(|| parts.try_for_each(|part| fill::<R>(substream, part, None, channel)))
            }
        });
        side_by_side(channel, rayon::current_num_threads(), tasks.collect()).map(drop)
    }
}

/// The pools of one thread that no substream uses. They stay: a pool has padding, into which rayon
/// copies stack contents, so it is made by a thread that does nothing else, and never freed.
static IDLE: Mutex<Vec<ThreadPool>> = Mutex::new(Vec::new());

/// A pool of one thread, which is idle again when it is dropped.
struct Alone(Option<ThreadPool>);

impl Alone {
    fn new() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(Some(idle.unwrap_or_else(|| {
            let pool = || ThreadPoolBuilder::new().num_threads(1).build();
            let made = thread::spawn(pool).join().expect("it does not panic");
            made.expect("the system starts a thread")
        })))
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).extend(self.0.take());
    }
}

/// Runs `task` with one thread for all that it would share with a pool. Where a system has no
/// threads it has one anyway.
fn alone<T: Send>(task: impl FnOnce() -> T + Send) -> T {
    if cfg!(target_family = "wasm") {
        return task();
    }
    let pool = Alone::new();
    pool.0.as_ref().expect("a pool until it is dropped").install(carried(task))
}

#[cfg(test)]
mod tests {
    use super::super::of_substream;

    #[test]
    fn substreams_have_names_of_their_own() {
        let names: Vec<_> = (0..4).map(|substream| of_substream("rounds", substream)).collect();
        assert_eq!(names[0], "rounds");
        assert!((0..4).all(|substream| !names[..substream].contains(&names[substream])));
    }
}
