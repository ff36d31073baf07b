//! AES-128 with VAES on AVX-512, four vectors of four blocks in flight. The remainder goes to
//! AES-NI.
//!
//! VAES adds only the two instructions for a round, so the kernels are a macro over them. The tests
//! instantiate a second set with AES-NI rounds, which runs on every processor with AVX-512.

use std::arch::x86_64::*;

use crate::Block;

use super::aes::{self, Schedule};

/// Blocks in a vector.
const WIDTH: usize = 4;
/// Vectors in flight: enough to hide the latency of a round.
const VECTORS: usize = 4;
/// Blocks in flight.
const LANES: usize = WIDTH * VECTORS;

/// The eleven round keys, each vector with the same keys for its four lanes.
type Keys = [__m512i; 11];
type Vectors = [__m512i; VECTORS];

/// Round keys with `even` in lanes 0 and 2 and `odd` in lanes 1 and 3.
#[inline]
#[target_feature(enable = "aes,avx2,avx512f")]
fn interleaved(even: &Schedule, odd: &Schedule) -> Keys {
    let mut keys: Keys = [_mm512_setzero_si512(); 11];
    for (key, (&even, &odd)) in keys.iter_mut().zip(even.keys().iter().zip(odd.keys())) {
        *key = bytemuck::cast([even, odd, even, odd]);
    }
    keys
}

/// The orthomorphism `s(l || r) = (l ^ r) || l` in each lane, `l` the high half.
#[inline]
#[target_feature(enable = "aes,avx2,avx512f")]
pub(super) fn orthomorphism(x: __m512i) -> __m512i {
    const HALVES_EXCHANGED: i32 = 0b01_00_11_10;
    // a ^ (b & c), for each bit of the three.
    const A_XOR_B_AND_C: i32 = 0b0111_1000;
    let high: [Block; WIDTH] = [Block::from_words(0, u64::MAX); WIDTH];
    _mm512_ternarylogic_epi64::<A_XOR_B_AND_C>(
        _mm512_shuffle_epi32::<HALVES_EXCHANGED>(x),
        x,
        bytemuck::cast(high),
    )
}

/// Each of eight blocks twice.
#[inline]
#[target_feature(enable = "aes,avx2,avx512f")]
fn twice([low, high]: [__m512i; 2]) -> Vectors {
    // Lanes 0 0 1 1, then 2 2 3 3.
    [
        _mm512_shuffle_i64x2::<0b01_01_00_00>(low, low),
        _mm512_shuffle_i64x2::<0b11_11_10_10>(low, low),
        _mm512_shuffle_i64x2::<0b01_01_00_00>(high, high),
        _mm512_shuffle_i64x2::<0b11_11_10_10>(high, high),
    ]
}

/// The XOR of the even lanes and that of the odd ones.
#[inline]
#[target_feature(enable = "aes,avx2,avx512f")]
fn sums_of_sides(sum: __m512i) -> [Block; 2] {
    let lanes: [Block; WIDTH] = bytemuck::cast(sum);
    [lanes[0] ^ lanes[2], lanes[1] ^ lanes[3]]
}

macro_rules! kernels {
    ($module:ident, $features:literal, $round:path, $last_round:path) => {
        pub(crate) mod $module {
            use super::*;

            #[inline]
            #[target_feature(enable = $features)]
            fn encrypt_lanes(keys: &Keys, mut x: Vectors) -> Vectors {
                for lanes in &mut x {
                    *lanes = _mm512_xor_si512(*lanes, keys[0]);
                }
                for key in &keys[1..10] {
                    for lanes in &mut x {
                        *lanes = $round(*lanes, *key);
                    }
                }
                for lanes in &mut x {
                    *lanes = $last_round(*lanes, keys[10]);
                }
                x
            }

            /// `AES(x) ^ x` in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn hash_lanes(keys: &Keys, x: Vectors) -> Vectors {
                let mut y = encrypt_lanes(keys, x);
                for (y, x) in y.iter_mut().zip(x) {
                    *y = _mm512_xor_si512(*y, x);
                }
                y
            }

            #[target_feature(enable = $features)]
            pub(crate) fn encrypt_blocks(schedule: &Schedule, x: &mut [Block]) {
                let (chunks, rest) = x.as_chunks_mut::<LANES>();
                if !chunks.is_empty() {
                    let keys = interleaved(schedule, schedule);
                    for chunk in chunks {
                        *chunk = bytemuck::cast(encrypt_lanes(&keys, bytemuck::cast(*chunk)));
                    }
                }
                aes::encrypt_blocks(schedule, rest);
            }

            #[target_feature(enable = $features)]
            pub(crate) fn ctr(schedule: &Schedule, counter: u128, out: &mut [Block]) {
                // The counters are kept as words, without a carry between them.
                let carries = (counter as u64).checked_add(out.len() as u64).is_none();
                if carries || out.len() < LANES {
                    return aes::ctr(schedule, counter, out);
                }
                let keys = interleaved(schedule, schedule);
                let (chunks, rest) = out.as_chunks_mut::<LANES>();
                let offsets: [Block; LANES] = std::array::from_fn(|i| Block::new(i as u128));
                let mut counters: Vectors = bytemuck::cast(offsets);
                // Added as a vector: from sixteen sums of words the compiler would rebuild the
                // vectors in every iteration.
                let first = _mm512_broadcast_i32x4(bytemuck::cast(Block::new(counter)));
                for counters in &mut counters {
                    *counters = _mm512_add_epi64(*counters, first);
                }
                let step = bytemuck::cast([Block::new(LANES as u128); WIDTH]);
                let done = chunks.len() * LANES;
                for chunk in chunks {
                    *chunk = bytemuck::cast(encrypt_lanes(&keys, counters));
                    for counters in &mut counters {
                        *counters = _mm512_add_epi64(*counters, step);
                    }
                }
                aes::ctr(schedule, counter.wrapping_add(done as u128), rest);
            }

            #[target_feature(enable = $features)]
            pub(crate) fn feed_forward(schedule: &Schedule, x: &[Block], out: &mut [Block]) {
                let (x, x_rest) = x.as_chunks::<LANES>();
                let (out, out_rest) = out.as_chunks_mut::<LANES>();
                if !x.is_empty() {
                    let keys = interleaved(schedule, schedule);
                    for (x, out) in x.iter().zip(out) {
                        *out = bytemuck::cast(hash_lanes(&keys, bytemuck::cast(*x)));
                    }
                }
                aes::feed_forward(schedule, x_rest, out_rest);
            }

            #[target_feature(enable = $features)]
            pub(crate) fn double(
                schedules: [&Schedule; 2],
                parents: &[Block],
                children: &mut [Block],
            ) -> [Block; 2] {
                let (children, children_rest) = children.as_chunks_mut::<LANES>();
                let (parents, parents_rest) = parents.split_at(children.len() * (LANES / 2));
                let mut sums = aes::double(schedules, parents_rest, children_rest);
                if children.is_empty() {
                    return sums;
                }
                let keys = interleaved(schedules[0], schedules[1]);
                let mut sum = _mm512_setzero_si512();
                for (parents, children) in
                    parents.as_chunks::<{ LANES / 2 }>().0.iter().zip(children)
                {
                    let hashes = hash_lanes(&keys, twice(bytemuck::cast(*parents)));
                    for hashes in hashes {
                        sum = _mm512_xor_si512(sum, hashes);
                    }
                    *children = bytemuck::cast(hashes);
                }
                for (total, sum) in sums.iter_mut().zip(sums_of_sides(sum)) {
                    *total ^= sum;
                }
                sums
            }

            #[target_feature(enable = $features)]
            pub(crate) fn leaf_pairs(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
                let (chunks, out_rest) = out.as_chunks_mut::<{ 2 * LANES }>();
                let (parents, parents_rest) = parents.split_at(chunks.len() * LANES);
                if !chunks.is_empty() {
                    let keys = interleaved(schedule, schedule);
                    for (parents, out) in parents.as_chunks::<LANES>().0.iter().zip(chunks) {
                        *out = bytemuck::cast(hash_lanes(&keys, bytemuck::cast(*parents)));
                    }
                }
                aes::leaf_pairs(schedule, parents_rest, out_rest);
            }

            /// `H(x) = AES(s(x)) ^ s(x)` in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn circular_lanes(keys: &Keys, mut x: Vectors) -> Vectors {
                for lanes in &mut x {
                    *lanes = orthomorphism(*lanes);
                }
                hash_lanes(keys, x)
            }

            #[target_feature(enable = $features)]
            pub(crate) fn split(
                schedule: &Schedule,
                parents: &[Block],
                children: &mut [Block],
                mask: Block,
            ) -> [Block; 2] {
                let (parents, parents_rest) = parents.as_chunks::<LANES>();
                let (children, children_rest) = children.split_at_mut(parents.len() * (2 * LANES));
                let mut sums = aes::split(schedule, parents_rest, children_rest, mask);
                if parents.is_empty() {
                    return sums;
                }
                let keys = interleaved(schedule, schedule);
                let masked = mask != Block::ALL_ONES;
                let mask = bytemuck::cast([mask; WIDTH]);
                // Words of two vectors, those of the second numbered from 8 on: blocks of the two
                // alternate.
                let low_halves = _mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0);
                let high_halves = _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4);
                let mut sum = [_mm512_setzero_si512(); 2];
                let children = children.as_chunks_mut::<{ 2 * LANES }>().0;
                for (parents, children) in parents.iter().zip(children) {
                    let parents: Vectors = bytemuck::cast(*parents);
                    let mut pairs = [[_mm512_setzero_si512(); 2]; VECTORS];
                    let hashes = circular_lanes(&keys, parents);
                    for ((pair, parents), left) in pairs.iter_mut().zip(parents).zip(hashes) {
                        let right = _mm512_xor_si512(parents, left);
                        sum = [
                            _mm512_xor_si512(sum[0], left),
                            _mm512_xor_si512(sum[1], right),
                        ];
                        // Inner levels keep all bits.
                        let (left, right) = if masked {
                            (_mm512_and_si512(left, mask), _mm512_and_si512(right, mask))
                        } else {
                            (left, right)
                        };
                        *pair = [
                            _mm512_permutex2var_epi64(left, low_halves, right),
                            _mm512_permutex2var_epi64(left, high_halves, right),
                        ];
                    }
                    *children = bytemuck::cast(pairs);
                }
                for (total, sum) in sums.iter_mut().zip(sum) {
                    let [even, odd] = sums_of_sides(sum);
                    *total ^= even ^ odd;
                }
                sums
            }

            #[target_feature(enable = $features)]
            pub(crate) fn hash_words(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
                let (chunks, out_rest) = out.as_chunks_mut::<{ 2 * LANES }>();
                let (parents, parents_rest) = parents.split_at(chunks.len() * LANES);
                if !chunks.is_empty() {
                    let keys = interleaved(schedule, schedule);
                    for (parents, out) in parents.as_chunks::<LANES>().0.iter().zip(chunks) {
                        *out = bytemuck::cast(circular_lanes(&keys, bytemuck::cast(*parents)));
                    }
                }
                aes::hash_words(schedule, parents_rest, out_rest);
            }

            #[target_feature(enable = $features)]
            pub(crate) fn hash_pairs(
                schedule: &Schedule,
                parents: &[Block],
                out: &mut [Block],
            ) -> [Block; 2] {
                let (chunks, out_rest) = out.as_chunks_mut::<LANES>();
                let (parents, parents_rest) = parents.split_at(chunks.len() * (LANES / 2));
                let mut sums = aes::hash_pairs(schedule, parents_rest, out_rest);
                if chunks.is_empty() {
                    return sums;
                }
                let keys = interleaved(schedule, schedule);
                // `s` is linear: s(x ^ 1) = s(x) ^ s(1).
                let change: [Block; WIDTH] = [Block::ZERO, Block::ONE, Block::ZERO, Block::ONE];
                let change = orthomorphism(bytemuck::cast(change));
                let mut sum = _mm512_setzero_si512();
                for (parents, out) in parents.as_chunks::<{ LANES / 2 }>().0.iter().zip(chunks) {
                    let [low, high]: [__m512i; 2] = bytemuck::cast(*parents);
                    let mut x = twice([orthomorphism(low), orthomorphism(high)]);
                    for lanes in &mut x {
                        *lanes = _mm512_xor_si512(*lanes, change);
                    }
                    let hashes = hash_lanes(&keys, x);
                    for hashes in hashes {
                        sum = _mm512_xor_si512(sum, hashes);
                    }
                    *out = bytemuck::cast(hashes);
                }
                for (total, sum) in sums.iter_mut().zip(sums_of_sides(sum)) {
                    *total ^= sum;
                }
                sums
            }
        }
    };
}

kernels!(
    real,
    "vaes,aes,avx2,avx512f",
    _mm512_aesenc_epi128,
    _mm512_aesenclast_epi128
);

pub(crate) use real::{
    ctr, double, encrypt_blocks, feed_forward, hash_pairs, hash_words, leaf_pairs, split,
};

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use crate::arch::portable;

    #[target_feature(enable = "aes,avx2,avx512f")]
    fn round(x: __m512i, key: __m512i) -> __m512i {
        let (mut x, key): ([__m128i; 4], [__m128i; 4]) = (bytemuck::cast(x), bytemuck::cast(key));
        for (x, key) in x.iter_mut().zip(key) {
            *x = _mm_aesenc_si128(*x, key);
        }
        bytemuck::cast(x)
    }

    #[target_feature(enable = "aes,avx2,avx512f")]
    fn last_round(x: __m512i, key: __m512i) -> __m512i {
        let (mut x, key): ([__m128i; 4], [__m128i; 4]) = (bytemuck::cast(x), bytemuck::cast(key));
        for (x, key) in x.iter_mut().zip(key) {
            *x = _mm_aesenclast_si128(*x, key);
        }
        bytemuck::cast(x)
    }

    kernels!(twin, "aes,avx2,avx512f", round, last_round);

    /// All kernels on slices of `n` blocks.
    macro_rules! outputs {
        ($kernels:path, $even:expr, $odd:expr, $n:expr) => {{
            use $kernels as kernels;
            let n: usize = $n;
            let x: Vec<Block> = (1..=n as u128)
                .map(|i| Block::new(i.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)))
                .collect();
            let mut encrypted = x.clone();
            kernels::encrypt_blocks(&$even, &mut encrypted);
            let streams = [3, u128::from(u64::MAX) - 40, u128::MAX - 5].map(|counter| {
                let mut stream = x.clone();
                kernels::ctr(&$even, counter, &mut stream);
                stream
            });
            let mut hashes = x.clone();
            kernels::feed_forward(&$odd, &x, &mut hashes);
            let trees = [0, usize::from(n > 0)].map(|missing| {
                let mut children = vec![Block::ONE; 2 * n - missing];
                let sums = kernels::double([&$even, &$odd], &x, &mut children);
                let mut words = vec![1; 2 * n - missing];
                kernels::leaf_pairs(&$odd, &x, &mut words);
                let mut pairs = vec![Block::ONE; 2 * n - missing];
                let pair_sums = kernels::hash_pairs(&$even, &x, &mut pairs);
                let mut circular = vec![1; 2 * n - missing];
                kernels::hash_words(&$even, &x, &mut circular);
                (children, sums, words, pairs, pair_sums, circular)
            });
            let mut correlated = vec![Block::ONE; 2 * n];
            let mask = Block::ALL_ONES.with_lsb(false);
            let correlated_sums = kernels::split(&$odd, &x, &mut correlated, mask);
            (
                encrypted,
                streams,
                hashes,
                trees,
                correlated,
                correlated_sums,
            )
        }};
    }

    #[target_feature(enable = "aes,avx2,avx512f")]
    fn compare(n: usize) {
        let keys = [Block::new(0x1234_5678 << 50), Block::new(0x8765_4321)];
        let [even, odd] = keys.map(portable::aes::Schedule::new);
        let expected = outputs!(portable::aes, even, odd, n);
        let (even, odd) = (Schedule::new(keys[0]), Schedule::new(keys[1]));
        assert!(outputs!(twin, even, odd, n) == expected, "{n} blocks");
    }

    /// Runs on every processor with AVX-512, with VAES or without.
    #[test]
    fn the_kernels_around_the_rounds_agree_with_portable() {
        if !is_x86_feature_detected!("aes") || !is_x86_feature_detected!("avx512f") {
            return;
        }
        for n in [0, 1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 64, 1001] {
            // SAFETY: the processor has AES-NI and AVX-512F, which includes AVX2.
            unsafe { compare(n) };
        }
    }
}
