//! The row of [`counting`](crate::counting) about Diffie-Hellman.

use super::*;
use crate::counting::{Count, numbered};
use crate::failure::equal_bits;

/// Pairs of different items whose tags have the same first two bytes, or the same last two: a trial
/// is an item of the receiver.
pub(crate) fn tags() -> Count {
    let [n, m] = [256_u64; 2];
    let bits = equal_bits(16, [n, m]) + (m as f64).log2() - 1.0;
    Count::of(100, m, [bits, 0.1], |trial| {
        let mut rng = Prg::new(Block::new(trial.into()));
        let agreement = Agreement::numbered(trial, [n, m]);
        let digests = numbered(0..n + m).into_iter().map(|item| {
            let mut name = [0; 32];
            name[..8].copy_from_slice(&item);
            Digest { point: Element::ONE, name }
        });
        let run = Run { digests: Zeroizing::new(digests.collect()), agreement };
        let mut keys = Zeroizing::new(vec![[[0; 32]; 2]; (n + m) as usize]);
        rng.fill_bytes(keys.as_flattened_mut().as_flattened_mut());
        let tags = run.derive(&[9; 32], &keys, TAG);
        let (tags, _) = tags.as_chunks::<TAG>();
        let (ours, theirs) = tags.split_at(n as usize);
        let equal = |range: std::ops::Range<usize>| -> u64 {
            let same = |a: &[u8; TAG], b: &[u8; TAG]| a[range.clone()] == b[range.clone()];
            let of = |a| ours.iter().filter(|b| same(a, b)).count() as u64;
            theirs.iter().map(of).sum()
        };
        equal(0..2) + equal(TAG - 2..TAG)
    })
}
