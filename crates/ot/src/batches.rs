//! The batches of an extension: one per thread at a time, with reused matrices.

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
