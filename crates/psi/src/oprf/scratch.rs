//! Rows from the columns of the OTs, and the scratch memory for them.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use bytemuck::cast_slice_mut;
use volery_channel::SessionId;
use volery_primitives::Block;
use volery_primitives::aes::{Aes128, ctr_columns};
use volery_primitives::ro::RandomOracle;
use volery_primitives::transpose::transpose_128;
use zeroize::Zeroize;

use super::TASK;
use crate::code::BLOCKS;

/// The seeds of the columns: AES in counter mode.
///
/// The counters of a column start at a public random place. If all started at 0, one guess of a key
/// could be compared with the columns of all sessions.
pub(super) struct Streams {
    pub(super) keys: Vec<Aes128>,
    /// The high words of the counters.
    starts: Vec<u64>,
}

impl Streams {
    /// The streams of a session under one key of each OT. Both keys of an OT have the same start,
    /// because the sender does not reveal which key it has.
    pub(super) fn new(keys: impl ExactSizeIterator<Item = Block>, session: SessionId) -> Self {
        let mut oracle = RandomOracle::new("volery oprf: starts of the columns");
        // mutant(oprf-starts-session): drop
        oracle.absorb(session.as_bytes());
        let mut starts = vec![0; keys.len()];
        oracle.finish_into(cast_slice_mut(&mut starts));
        starts.iter_mut().for_each(|start| *start = u64::from_le(*start));
        Self { keys: keys.map(Aes128::new).collect(), starts }
    }
}

/// A block of each of `n` rows from number `128*first` on: `G` of the seeds of `range` gives its
/// columns, at most 128.
pub(super) fn rows(
    streams: &Streams,
    range: Range<usize>,
    first: u64,
    columns: &mut [Block],
    n: usize,
    out: &mut [Block],
) {
    let row_blocks = n.div_ceil(128);
    let columns = &mut columns[..128 * row_blocks];
    let (used, unused) = columns.split_at_mut(range.len() * row_blocks);
    ctr_columns(&streams.keys[range.clone()], &streams.starts[range], first, used);
    unused.fill(Block::ZERO);
    transpose_128(columns, &mut out[..128 * row_blocks]);
}

/// The scratch memory for the rows of one task.
pub(super) struct Scratch {
    /// The columns of 128 OTs before they are transposed.
    pub(super) columns: Vec<Block>,
    pub(super) rows: [Vec<Block>; BLOCKS],
    /// One block of the rows of the other matrix.
    pub(super) other: Vec<Block>,
    /// One block of the code words.
    pub(super) words: Vec<Block>,
}

impl Scratch {
    fn new() -> Self {
        let blocks = || vec![Block::ZERO; TASK];
        Self {
            columns: blocks(),
            rows: std::array::from_fn(|_| blocks()),
            other: blocks(),
            words: blocks(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for blocks in [&mut self.columns, &mut self.other, &mut self.words] {
            blocks.zeroize();
        }
        self.rows.zeroize();
    }
}

/// A pool of scratch memory: one entry for each thread that was ever at work at a time. The last
/// returned one is handed out first, as it is still in the cache.
#[derive(Default)]
pub(super) struct ScratchPool(Mutex<Vec<Scratch>>);

impl ScratchPool {
    pub(super) fn with(&self, work: impl FnOnce(&mut Scratch)) {
        let free = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let left = free().pop();
        let mut scratch = left.unwrap_or_else(Scratch::new);
        work(&mut scratch);
        free().push(scratch);
    }
}
