//! Integers modulo `2^61 - 1`, one word after the other.

use crate::mersenne::{fold, reduce, reduce_wide};

/// Words of each side that are added up in one word before it is folded: `p + 7` and six residues
/// are below 2^64.
const LAZY: usize = 6;

#[inline(always)]
pub(crate) fn reduce_sides(words: &[u64], out: &mut [u64]) -> [u64; 2] {
    let mut sums = [0; 2];
    // A pair of words in each turn, and a fixed number of turns: the compiler takes them together
    // where the processor has vectors.
    let (chunks, words_rest) = words.as_chunks::<{ 2 * LAZY }>();
    let (out, out_rest) = out.as_chunks_mut::<{ 2 * LAZY }>();
    for (words, out) in chunks.iter().zip(out) {
        for (words, out) in words.as_chunks::<2>().0.iter().zip(out.as_chunks_mut().0) {
            *out = words.map(reduce);
            sums = [sums[0] + out[0], sums[1] + out[1]];
        }
        sums = sums.map(fold);
    }
    for (i, (word, out)) in words_rest.iter().zip(out_rest).enumerate() {
        *out = reduce(*word);
        sums[i % 2] += *out;
    }
    sums.map(reduce)
}

#[inline(always)]
pub(crate) fn add_reduce(sums: &[u64], x: &[u64], out: &mut [u64]) {
    for ((out, sum), x) in out.iter_mut().zip(sums).zip(x) {
        *out = reduce(sum + x);
    }
}

#[inline(always)]
pub(crate) fn add_reduce_pairs(sums: &[[u64; 2]], y: &[u64], u: &mut [u64], v: &mut [u64]) {
    for (((u, v), [first, second]), y) in u.iter_mut().zip(v).zip(sums).zip(y) {
        *u = reduce(*first);
        *v = reduce(second + y);
    }
}

pub(crate) fn inner_product(a: &[u64], b: &[u64]) -> u64 {
    // (2^61 - 1)^2 < 2^122, so that 64 products fit in 128 bits.
    a.chunks(64).zip(b.chunks(64)).fold(0, |sum, (a, b)| {
        let products = a.iter().zip(b).fold(0, |sum, (a, b)| sum + u128::from(*a) * u128::from(*b));
        reduce(sum + reduce_wide(products))
    })
}
