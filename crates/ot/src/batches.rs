//! The batches of an extension: one per thread at a time, with reused matrices; and computing while
//! messages come and go.

use crate::Result;

/// Maximum number of correlations of one batch; a multiple of 128.
pub(crate) const BATCH: usize = 1 << 15;

/// Number of correlations computed at a time: a batch for each thread of this pool.
pub(crate) fn at_a_time() -> usize {
    BATCH * rayon::current_num_threads()
}

/// Batches of `n` correlations in total, each [`BATCH`] except the last, from those `made` before
/// and new ones. `begin` initializes each with its number of correlations.
pub(crate) fn for_next<B: Default>(
    made: &mut Vec<B>,
    n: usize,
    mut begin: impl FnMut(&mut B, usize),
) -> &mut [B] {
    let count = n.div_ceil(BATCH);
    if made.len() < count {
        made.resize_with(count, B::default);
    }
    let batches = &mut made[..count];
    for (i, batch) in batches.iter_mut().enumerate() {
        begin(batch, BATCH.min(n - i * BATCH));
    }
    batches
}

/// Lets each item arrive, one after the other in this thread, which has the channel; the pool runs
/// `compute` on each that is there while the next ones arrive.
///
/// A task that is spawned lies on the heap and is freed without being wiped. So it carries two
/// references, to its item and to `compute`, whatever these hold.
pub(crate) fn as_they_arrive<T: Send>(
    items: &mut [T],
    mut arrive: impl FnMut(&mut T) -> Result<()>,
    compute: impl Fn(&mut T) + Sync,
) -> Result<()> {
    let compute = &compute;
    rayon::in_place_scope(|scope| {
        items.iter_mut().try_for_each(|item| {
            arrive(item)?;
            scope.spawn(move |_| compute(item));
            Ok(())
        })
    })
}

/// Runs `talk` in this thread, which has the channel, while the pool runs `compute`. The task
/// carries one reference, as those of [`as_they_arrive`].
pub(crate) fn meanwhile<O>(
    mut compute: impl FnMut() + Send,
    talk: impl FnOnce() -> Result<O>,
) -> Result<O> {
    let compute = &mut compute;
    rayon::in_place_scope(|scope| {
        scope.spawn(move |_| compute());
        talk()
    })
}
