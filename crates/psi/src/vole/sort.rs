//! Sorting by uniform keys: radix sort from the highest bits on, in place.
//!
//! The keys are outputs of the OPRF that are about to be sent in this order; where the items of
//! these keys were before determines the time, as it does for any in-place order.

use rayon::prelude::*;
use volery_primitives::prefetch::prefetch;
use zeroize::{Zeroize, Zeroizing};

/// Items that are sorted with a copy, which stays in the level-1 cache.
const SMALL: usize = 1 << 10;

/// The distance ahead of a part's write position the next items are fetched.
const AHEAD: usize = 6;

/// The binary logarithm of the maximum number of parts: each has its own write position, and the
/// level-2 cache holds no more lines.
const MOST_PARTS: u32 = 11;

/// Sorts by 128-bit keys.
pub(crate) fn sort_by_key<T: Copy + Send + Zeroize>(
    items: &mut [T],
    key: impl Fn(&T) -> u128 + Sync,
) {
    sort(items, &key, 0);
}

/// Sorts items whose keys agree in the highest `known` bits.
fn sort<T: Copy + Send + Zeroize>(items: &mut [T], key: &(impl Fn(&T) -> u128 + Sync), known: u32) {
    if items.len() <= SMALL || known + MOST_PARTS > 128 {
        small(items, key, known);
        return;
    }
    let bits = (items.len() / (SMALL / 2)).ilog2().min(MOST_PARTS);
    let part = |item: &T| (key(item) << known >> (128 - bits)) as usize;
    let mut ends = vec![0; 1 << bits];
    for item in &*items {
        ends[part(item)] += 1;
    }
    let mut next = Vec::with_capacity(1 << bits);
    let mut sum = 0;
    for end in &mut ends {
        next.push(sum);
        sum += *end;
        *end = sum;
    }
    for here in 0..1 << bits {
        while next[here] < ends[here] {
            // Follows a cycle of items until one belongs here.
            let mut item = items[next[here]];
            loop {
                let there = part(&item);
                let place = &mut next[there];
                std::mem::swap(&mut items[*place], &mut item);
                *place += 1;
                // The parts are too many for the processor to see that each ascends.
                prefetch(items, *place + AHEAD);
                if there == here {
                    break;
                }
            }
        }
    }
    let mut parts = Vec::with_capacity(1 << bits);
    let mut rest = items;
    let mut start = 0;
    for end in ends {
        let part;
        (part, rest) = rest.split_at_mut(end - start);
        parts.push(part);
        start = end;
    }
    parts.into_par_iter().with_min_len(16).for_each(|part| sort(part, key, known + bits));
}

/// Sorts few items: by as many bits as leave about one item each, and then by insertion.
fn small<T: Copy + Zeroize>(items: &mut [T], key: &impl Fn(&T) -> u128, known: u32) {
    let bits = items.len().max(1).ilog2();
    if (2..=10).contains(&bits) && known + bits <= 128 {
        let part = |item: &T| (key(item) << known >> (128 - bits)) as usize;
        let mut starts = [0_u16; SMALL + 1];
        for item in &*items {
            starts[part(item) + 1] += 1;
        }
        for part in 0..1 << bits {
            starts[part + 1] += starts[part];
        }
        let copy = Zeroizing::new(items.to_vec());
        for item in copy.iter() {
            let start = &mut starts[part(item)];
            items[usize::from(*start)] = *item;
            *start += 1;
        }
    }
    for sorted in 1..items.len() {
        let (item, mut place) = (items[sorted], sorted);
        let this = key(&item);
        while place > 0 && key(&items[place - 1]) > this {
            items[place] = items[place - 1];
            place -= 1;
        }
        items[place] = item;
    }
}
