//! Sums of AES key streams: the rows of a VOLE over a small field, for an OT extension.
//!
//! Leaf `x` of `2^k` leaves is the key of a stream `r_x`, blocks of AES in counter mode. The result
//! is, for each of the `k` bits, the sum of the streams whose number has that bit set, and the sum
//! of all streams. Roy, *SoftSpokenOT*, ePrint 2022/192, section 3.1: merged in pairs, pairs in
//! fours and so on, the sums cost about two additions per stream. Constant time.

use zeroize::Zeroizing;

use crate::Block;
use crate::aes::Aes128;

/// Maximum number of bits of a leaf's number.
pub(crate) const HEIGHTS: usize = 8;

/// Blocks of a stream computed at a time without a kernel, so that the partial sums stay in the
/// first-level cache.
const CHUNK: usize = 64;

/// The use of the sum of all streams.
pub(crate) enum Finish<'a> {
    /// Writes it here.
    Sum(&'a mut [Block]),
    /// Adds it, plus the correction, to each row whose mask is all ones.
    Correct { masks: &'a [Block], correction: &'a [Block] },
}

impl Finish<'_> {
    /// Blocks of a row.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sum(sum) => sum.len(),
            Self::Correct { correction, .. } => correction.len(),
        }
    }
}

/// With `r_x` the stream of leaf `x`, `sum.len()` blocks from `counter` on: fills row `j` with the
/// sum of all `r_x` whose `x` has bit `j` set, and `sum` with the sum of all. Row `j` begins at
/// block `j*stride` of `rows`; gaps between rows are not written.
///
/// # Panics
/// If the number of leaves is not `2^k` with `k` from 1 to 8; if `rows` is not `k*stride` blocks
/// long or the stride is shorter than `sum`; if the leaves were made for different processor
/// levels.
pub fn fold(
    leaves: &[Aes128],
    counter: u128,
    rows: &mut [Block],
    stride: usize,
    sum: &mut [Block],
) {
    fold_with(leaves, counter, rows, stride, Finish::Sum(sum));
}

/// Folds like [`fold`], for the party that lacks one stream: the sum of all, plus `correction`, is
/// not written but added to each row `j` for which `masks[j]` is all ones, and not to those for
/// which it is zero.
///
/// # Panics
/// The panics of [`fold`], for `correction` in place of `sum`, and a panic if the number of masks
/// is not the number of rows.
pub fn fold_corrected(
    leaves: &[Aes128],
    counter: u128,
    rows: &mut [Block],
    stride: usize,
    masks: &[Block],
    correction: &[Block],
) {
    assert_eq!(leaves.len(), 1 << masks.len(), "a mask for each row");
    let finish = Finish::Correct { masks, correction };
    fold_with(leaves, counter, rows, stride, finish);
}

fn fold_with(
    leaves: &[Aes128],
    counter: u128,
    rows: &mut [Block],
    stride: usize,
    finish: Finish<'_>,
) {
    let heights = leaves.len().trailing_zeros() as usize;
    assert!(
        leaves.len().is_power_of_two() && (1..=HEIGHTS).contains(&heights),
        "a tree has 2^k leaves, k from 1 to 8"
    );
    assert!(finish.len() <= stride, "rows do not overlap");
    assert_eq!(rows.len(), heights * stride, "a row for each bit");
    if finish.len() == 0 {
        return;
    }
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    if (counter as u64).checked_add(stride as u64).is_some() {
        use crate::arch::wide::fold;
        macro_rules! call {
            ($module:ident, $schedules:ident, $($height:literal)*) => {
                match heights {
                    $(
                        // SAFETY: such schedules exist only where the level is available.
                        $height => return unsafe {
                            fold::$module::fold::<$height>($schedules, counter, rows, stride, finish)
                        },
                    )*
                    _ => {}
                }
            };
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(schedules) = crate::aes::for_fours(leaves) {
            call!(x4, schedules, 1 2 4 8);
        }
        if let Some(schedules) = crate::aes::for_pairs(leaves) {
            call!(x2, schedules, 1 2 4 8);
        }
    }
    fold_streams(leaves, counter, rows, stride, finish);
}

/// [`fold_with`] on whole streams, a chunk of each at a time.
fn fold_streams(
    leaves: &[Aes128],
    counter: u128,
    rows: &mut [Block],
    stride: usize,
    mut finish: Finish<'_>,
) {
    let n = finish.len();
    let heights = rows.len() / stride;
    let chunk = CHUNK.min(n);
    let mut scratch = Zeroizing::new(vec![Block::ZERO; (heights + 1) * chunk]);
    for start in (0..n).step_by(chunk) {
        let blocks = chunk.min(n - start);
        let counter = counter.wrapping_add(start as u128);
        for row in rows.chunks_exact_mut(stride) {
            row[start..][..blocks].fill(Block::ZERO);
        }
        let all = add_up(leaves, counter, &mut rows[start..], stride, &mut scratch, blocks);
        match &mut finish {
            Finish::Sum(sum) => sum[start..][..blocks].copy_from_slice(all),
            Finish::Correct { masks, correction } => {
                for (row, &mask) in rows.chunks_exact_mut(stride).zip(masks.iter()) {
                    let terms = all.iter().zip(&correction[start..]);
                    for (row, (&all, &correction)) in row[start..].iter_mut().zip(terms) {
                        *row ^= mask & (all ^ correction);
                    }
                }
            }
        }
    }
}

/// Adds up `blocks` blocks of each stream, rows beginning at multiples of `stride`; returns the sum
/// of all.
///
/// The leaves are added up as in a binary counter: whenever two neighbours of one height are
/// complete, the right one (all its leaves have the bit of that height set) is added to the row of
/// that bit, and both are merged.
fn add_up<'a>(
    leaves: &[Aes128],
    counter: u128,
    rows: &mut [Block],
    stride: usize,
    scratch: &'a mut [Block],
    blocks: usize,
) -> &'a [Block] {
    // The waiting left neighbours, by height.
    let (current, waiting) = scratch.split_at_mut(blocks);
    for (x, leaf) in leaves.iter().enumerate() {
        leaf.ctr(counter, current);
        let height = x.trailing_ones() as usize;
        for (j, left) in waiting.chunks_exact(blocks).take(height).enumerate() {
            let row = &mut rows[j * stride..][..blocks];
            for ((v, right), left) in row.iter_mut().zip(&mut *current).zip(left) {
                *v ^= *right;
                *right ^= *left;
            }
        }
        if x + 1 < leaves.len() {
            waiting[height * blocks..][..blocks].copy_from_slice(current);
        }
    }
    current
}
