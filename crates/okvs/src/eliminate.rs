//! Gaussian elimination of a band matrix whose rows are sorted by their starts.

use volery_primitives::prefetch::prefetch;

use crate::Value;
use crate::band::{number, start};

/// Rows between the request of a value and its use.
const AHEAD: usize = 16;

/// Brings the system to a triangular form: `pivots[c]` becomes the pattern of the row that starts
/// at column `c`, and `columns[c]` its right-hand side; where there is none they keep their values,
/// which for `pivots` must be zero.
///
/// `pairs` has starts and numbers of keys as in [`Rows`](crate::Rows), and row `i` the value
/// `values[number(pairs[i])]`. A row that is added to a later one starts at its first
/// column or behind, and ends no later: each sum stays inside the window of its row, where the
/// place of a column in a pattern is that of the column modulo the width.
///
/// # Errors
///
/// The number of a row that is a sum of rows before it.
pub(crate) fn eliminate<V: Value, const WORDS: usize>(
    pairs: &[u64],
    patterns: &[[u64; WORDS]],
    values: &[V],
    pivots: &mut [[u64; WORDS]],
    columns: &mut [V],
) -> Result<(), usize> {
    'rows: for (row, (&pair, pattern)) in pairs.iter().zip(patterns).enumerate() {
        if let Some(&pair) = pairs.get(row + AHEAD) {
            prefetch(values, number(pair));
        }
        let (mut pattern, mut value) = (*pattern, values[number(pair)]);
        let start = start(pair);
        let first = start / 64;
        // The first word has columns from the start on, and those at the end of the window.
        let from_start = !0 << (start % 64);
        for step in 0..=WORDS {
            let word = (first + step) % WORDS;
            let mask = match step {
                0 => from_start,
                _ if step == WORDS => !from_start,
                _ => !0,
            };
            let mut left = pattern[word] & mask;
            while left != 0 {
                let bit = left.trailing_zeros();
                let column = 64 * (first + step) + bit as usize;
                let pivot = &mut pivots[column];
                if pivot[word] >> bit & 1 == 0 {
                    (*pivot, columns[column]) = (pattern, value);
                    continue 'rows;
                }
                left ^= pivot[word] & mask;
                for (word, other) in pattern.iter_mut().zip(pivot) {
                    *word ^= *other;
                }
                value = value.xor(columns[column]);
            }
        }
        return Err(row);
    }
    Ok(())
}
