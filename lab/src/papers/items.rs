//! Items that look random and are all different.

use rayon::prelude::*;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;

/// Items enciphered at a time.
const CHUNK: usize = 256;

/// The first `count` items of `bits` bits, an even number: a Feistel network over their numbers,
/// converted by `form`. Computed on all cores.
pub(super) fn items<T: Copy + Default + Send>(
    count: usize,
    bits: u32,
    form: impl Fn(Block) -> T + Sync,
) -> Vec<T> {
    let aes = Aes128::new(Block::new(0x6974_656d));
    let mut items = vec![T::default(); count];
    items
        .par_chunks_mut(CHUNK)
        .enumerate()
        .for_each(|(chunk, items)| fill(&aes, (chunk * CHUNK) as u128, bits, items, &form));
    items
}

/// The items from the number `first` on.
fn fill<T>(aes: &Aes128, first: u128, bits: u32, items: &mut [T], form: impl Fn(Block) -> T) {
    /// Rounds; four make a random permutation of a random function.
    const ROUNDS: u128 = 4;
    let half = bits / 2;
    let low = u128::MAX >> (128 - half);
    let mut halves = [(0, 0); CHUNK];
    let halves = &mut halves[..items.len()];
    for (number, (left, right)) in (first..).zip(&mut *halves) {
        (*left, *right) = (number >> half, number & low);
    }
    let mut hashes = [Block::ZERO; CHUNK];
    let hashes = &mut hashes[..items.len()];
    for round in 0..ROUNDS {
        for (hash, (_, right)) in hashes.iter_mut().zip(&*halves) {
            *hash = Block::new(right << 8 | round);
        }
        aes.encrypt_blocks(hashes);
        for ((left, right), &hash) in halves.iter_mut().zip(&*hashes) {
            (*left, *right) = (*right, *left ^ (u128::from(hash) & low));
        }
    }
    for (item, (left, right)) in items.iter_mut().zip(&*halves) {
        *item = form(Block::new(left << half | right));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn items_are_different_and_as_long_as_they_should_be() {
        for bits in [16, 32, 64, 128] {
            let items = items(10_005, bits, u128::from);
            let different: HashSet<u128> = items.iter().copied().collect();
            assert_eq!(different.len(), items.len());
            assert!(bits == 128 || items.iter().all(|item| item >> bits == 0));
            // They reach all over the range.
            assert!(items.iter().any(|item| item >> (bits - 1) == 1));
        }
    }

    #[test]
    fn an_item_is_the_same_among_few_and_among_many() {
        let few = items(CHUNK + 3, 64, Block::to_bytes);
        let many = items(5 * CHUNK, 64, Block::to_bytes);
        assert_eq!(few[..], many[..few.len()]);
    }
}
