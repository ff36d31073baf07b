//! Sums of key streams: every level against the definition.

use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::cpu::Cpu;
use volery_primitives::fold::{fold, fold_corrected};

/// Counters whose words carry at different positions of a row, and one that does not carry.
const COUNTERS: [u128; 4] = [7, u64::MAX as u128 - 20, u128::MAX - 3, u64::MAX as u128];

const HEIGHTS: &[usize] = if cfg!(miri) { &[1, 3] } else { &[1, 2, 3, 4, 8] };

const LENGTHS: &[usize] =
    if cfg!(miri) { &[0, 1, 65] } else { &[0, 1, 3, 4, 5, 15, 16, 17, 63, 64, 65, 70] };

/// The `k` rows and the sum of all, `n` blocks each.
fn slow(leaves: &[Aes128], counter: u128, n: usize) -> (Vec<Vec<Block>>, Vec<Block>) {
    let heights = leaves.len().trailing_zeros() as usize;
    let mut rows = vec![vec![Block::ZERO; n]; heights];
    let mut sum = vec![Block::ZERO; n];
    for (x, leaf) in leaves.iter().enumerate() {
        for i in 0..n {
            let block = leaf.encrypt(Block::new(counter.wrapping_add(i as u128)));
            sum[i] ^= block;
            for (j, row) in rows.iter_mut().enumerate() {
                row[i] ^= Block::select_mask(x >> j & 1 == 1) & block;
            }
        }
    }
    (rows, sum)
}

#[test]
fn levels_agree_with_the_definition() {
    for cpu in Cpu::available() {
        for &heights in HEIGHTS {
            let leaves: Vec<Aes128> =
                (0..1 << heights).map(|x| Aes128::with_cpu(Block::new(1 + x * x), cpu)).collect();
            for &n in LENGTHS {
                for counter in COUNTERS {
                    check(&leaves, counter, n, n + 3);
                }
                check(&leaves, 1 << 70, n, n.max(1));
            }
        }
    }
}

fn check(leaves: &[Aes128], counter: u128, n: usize, stride: usize) {
    let (expected, expected_sum) = slow(leaves, counter, n);
    let heights = expected.len();
    let mut rows = vec![Block::ONE; heights * stride];
    let mut sum = vec![Block::ONE; n];
    fold(leaves, counter, &mut rows, stride, &mut sum);
    assert_eq!(sum, expected_sum, "{heights} bits, {n} blocks from {counter}");
    for (row, expected) in rows.chunks(stride).zip(&expected) {
        assert_eq!(row[..n], *expected, "{heights} bits, {n} blocks from {counter}");
        assert!(
            row[n..].iter().all(|&block| block == Block::ONE),
            "gaps between rows are not written"
        );
    }
    let correction: Vec<Block> = (0..n).map(|i| Block::new(1 << (i % 128))).collect();
    let set = |j: usize| (0x5a >> j) & 1 == 1;
    let masks: Vec<Block> = (0..heights).map(|j| Block::select_mask(set(j))).collect();
    rows.fill(Block::ONE);
    fold_corrected(leaves, counter, &mut rows, stride, &masks, &correction);
    for (j, (row, expected)) in rows.chunks(stride).zip(&expected).enumerate() {
        for i in 0..n {
            let change = Block::select_mask(set(j)) & (expected_sum[i] ^ correction[i]);
            assert_eq!(row[i], expected[i] ^ change, "row {j} of {heights}, block {i} of {n}");
        }
        assert!(
            row[n..].iter().all(|&block| block == Block::ONE),
            "gaps between rows are not written"
        );
    }
}

#[test]
#[should_panic(expected = "a row for each bit")]
fn a_missing_row_is_refused() {
    let leaves = [Block::ONE, Block::ZERO].map(Aes128::new);
    fold(&leaves, 0, &mut [Block::ZERO; 3], 4, &mut [Block::ZERO; 4]);
}

#[test]
#[should_panic(expected = "a mask for each row")]
fn a_missing_mask_is_refused() {
    let leaves = [Block::ONE, Block::ZERO].map(Aes128::new);
    fold_corrected(&leaves, 0, &mut [Block::ZERO; 4], 4, &[], &[Block::ZERO; 4]);
}
