//! Distribution of items to the threads that own their targets, and batch sizes for several
//! threads.
//!
//! With one thread there is no partition. The results are the same for every number of threads: an
//! owner gets its items in input order.

use rayon::prelude::*;
use zeroize::Zeroizing;

/// The maximum number of owners.
const MOST: usize = 16;

/// Items between two synchronizations of all threads.
const GROUP: usize = 1 << 17;

/// Items whose owners one thread computes at a time.
const TASK: usize = 1 << 13;

/// Items of a group that an owner scans before it takes its own.
pub(crate) const RUN: usize = 1 << 12;

/// The owner of items without an owner.
pub(crate) const NOBODY: u8 = u8::MAX;

/// Whether there is more than one thread.
pub(crate) fn several() -> bool {
    rayon::current_num_threads() > 1
}

/// Steps per batch, of `steps`: one on a single thread, otherwise enough to keep all threads busy
/// without stalling the peer.
pub(crate) fn at_a_time(steps: usize) -> usize {
    match rayon::current_num_threads() {
        1 => 1,
        threads => (2 * threads).min(steps / 8).max(1),
    }
}

/// The owner of each of `parts` parts, ascending from 0 without gaps: there is one owner a thread,
/// if there are enough parts, and all owners have about the same number of parts.
pub(crate) fn owners_of(parts: usize) -> Vec<u8> {
    let owners = rayon::current_num_threads().min(MOST).min(parts);
    (0..parts).map(|part| (part * owners / parts) as u8).collect()
}

/// Distributes the numbers below `count` to their owners, in ascending order: `owner_of` returns
/// the owner's index in `owners`, or [`NOBODY`]. `take` gets several of them at a time.
///
/// Nothing here branches on the owner of a number. `owner_of` and `take` are outside this promise:
/// they may index by their arguments, and the time of `take` depends on how many numbers it gets.
pub(crate) fn part<O: Send>(
    count: usize,
    owner_of: impl Fn(usize) -> u8 + Sync,
    owners: &mut [O],
    take: impl Fn(&mut O, &[usize]) + Sync,
) {
    let mut whose = Zeroizing::new(vec![NOBODY; GROUP.min(count)]);
    for first in (0..count).step_by(GROUP) {
        let whose = &mut whose[..GROUP.min(count - first)];
        whose.par_chunks_mut(TASK).enumerate().for_each(|(task, whose)| {
            for (owner, number) in whose.iter_mut().zip(first + task * TASK..) {
                *owner = owner_of(number);
            }
        });
        let whose = &*whose;
        owners.par_iter_mut().enumerate().for_each(|(me, owner)| {
            let mut mine = Zeroizing::new([0; RUN]);
            for (run, whose) in whose.chunks(RUN).enumerate() {
                let mut found = 0;
                for (number, &owner) in (first + run * RUN..).zip(whose) {
                    mine[found] = number;
                    found += usize::from(usize::from(owner) == me);
                }
                take(owner, &mine[..found]);
            }
        });
    }
}
