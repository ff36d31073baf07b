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
//! Security: that of so many streams with one key, whose messages may come in any order. What a
//! peer could guess and be caught at, it may guess in every substream before it is caught in one:
//! with `L` substreams the probability that none of its guesses fails is no larger than that of the
//! best alone, and all substreams end with the first failure, before any output of the call is
//! returned.

use rayon::ThreadPoolBuilder;
use volery_channel::{Channel, Result, mux::side_by_side};

use super::{AnyRounds, Role, fill};
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

    /// The substream of the next output; `None` after the total of the plan.
    pub(super) fn current(&mut self) -> Option<&mut AnyRounds<R>> {
        if self.left == 0 {
            self.substream += 1;
            if self.substream == self.substreams.len() {
                self.substream = 0;
                self.before += self.plan.delivery(self.before) as u64;
            }
            if self.plan.total() == Some(self.before) {
                return None;
            }
            self.left = self.plan.delivery(self.before);
        }
        Some(&mut self.substreams[self.substream])
    }

    /// The next outputs.
    pub(super) fn draw(&mut self, out: R::Part<'_>, channel: &mut Channel) -> Result<()> {
        let mut parts: Vec<_> = self.substreams.iter().map(|_| Vec::new()).collect();
        let mut rest = out;
        while rest.count() > 0 {
            self.current().expect("no more correlations than the plan was made for");
            let now;
            let count = self.left.min(rest.count());
            (now, rest) = rest.split_at(count);
            self.left -= now.count();
            parts[self.substream].push(now);
        }
        let drawn = self.substreams.iter_mut().zip(parts).filter(|(_, parts)| !parts.is_empty());
        let tasks = drawn.map(|(substream, parts)| {
            move |channel: &mut Channel| {
                let mut parts = parts.into_iter();
                parts.try_for_each(|part| fill::<R>(substream, part, channel))
            }
        });
        in_substreams(channel, tasks.collect())
    }
}

/// Runs the task of one substream here, and those of several side by side.
fn in_substreams(
    channel: &mut Channel,
    mut tasks: Vec<impl FnOnce(&mut Channel) -> Result<()> + Send>,
) -> Result<()> {
    if tasks.len() < 2 {
        return tasks.pop().map_or(Ok(()), |task| task(channel));
    }
    let tasks = tasks.into_iter().map(|task| {
        move |channel: &mut Channel| {
            // The thread is its own pool: it waits for no other one's work.
            let pool = ThreadPoolBuilder::new().num_threads(1).use_current_thread().build();
            let _pool = pool.expect("a pool of this thread alone");
            task(channel)
        }
    });
    side_by_side(channel, rayon::current_num_threads(), tasks.collect()).map(drop)
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
