//! Sums over a moving window of columns, by the method of four Russians: the columns stand in
//! groups of four, and of each group all sixteen sums are kept.
//!
//! Arlazarov, Dinic, Kronrod, Faradzev, *On economical construction of the transitive closure of a
//! directed graph*, 1970.

use crate::band::Value;
use crate::pages::Buffer;

/// The sums of all subsets of each group of four columns of a window. The groups stand where their
/// columns are in a pattern.
struct Window<V: Value, const WORDS: usize> {
    /// Sixteen groups for each word of a pattern.
    sums: Buffer<[[V; 16]; 16]>,
}

impl<V: Value, const WORDS: usize> Window<V, WORDS> {
    /// A window over columns that are all zero.
    fn new() -> Self {
        Self { sums: Buffer::zeroed(WORDS) }
    }

    /// Adds `difference` to the column of the window that stands at the place of `column`.
    #[inline(always)]
    fn add(&mut self, column: usize, difference: V) {
        let groups = self.sums.as_flattened_mut();
        let group = &mut groups[column / 4 % (16 * WORDS)];
        let bit = 1 << (column % 4);
        for i in 0..8 {
            let subset = (i + (i & !(bit - 1)) + bit) % 16;
            group[subset] = group[subset].xor(difference);
        }
    }

    /// The sum of the columns that a pattern selects.
    #[inline(always)]
    fn sum(&self, pattern: &[u64; WORDS]) -> V {
        let mut total = V::zeroed();
        for (word, groups) in pattern.iter().zip(self.sums.iter()) {
            let mut part = V::zeroed();
            for (i, group) in groups.iter().enumerate() {
                part = part.xor(group[(word >> (4 * i)) as usize % 16]);
            }
            total = total.xor(part);
        }
        total
    }
}

pub(crate) fn sums<V: Value, const WORDS: usize>(
    starts: &[u32],
    patterns: &[[u64; WORDS]],
    columns: &[V],
    out: &mut [V],
) {
    let Some(&first) = starts.first() else {
        return;
    };
    let mut window = Window::<V, WORDS>::new();
    let mut end = first as usize;
    for ((&start, pattern), out) in starts.iter().zip(patterns).zip(out) {
        while end < start as usize + 64 * WORDS {
            let mut difference = columns[end];
            if end >= first as usize + 64 * WORDS {
                difference = difference.xor(columns[end - 64 * WORDS]);
            }
            window.add(end, difference);
            end += 1;
        }
        *out = window.sum(pattern);
    }
}

pub(crate) fn substitute<V: Value, const WORDS: usize>(pivots: &[[u64; WORDS]], columns: &mut [V]) {
    let mut window = Window::<V, WORDS>::new();
    for (column, pivot) in pivots.iter().enumerate().rev() {
        let mut pattern = *pivot;
        pattern[column / 64 % WORDS] &= !(1 << (column % 64));
        let value = columns[column].xor(window.sum(&pattern));
        columns[column] = value;
        let leaving = columns.get(column + 64 * WORDS);
        window.add(column, leaving.map_or(value, |leaving| value.xor(*leaving)));
    }
}
