//! AES-128 with AES-NI, eight blocks in flight.

use std::arch::x86_64::*;

use bytemuck::Pod;
use zeroize::Zeroize;

use crate::Block;
use crate::arch::portable::aes as portable;
use crate::arch::x86_64::vector::side_by_side;

/// Blocks in flight: enough to hide the latency of a round on every processor with AES-NI.
const LANES: usize = 8;

/// The eleven round keys, wiped on drop.
pub(crate) struct Schedule([Block; 11]);

impl Schedule {
    /// The key schedule of FIPS 197, section 5.2, in constant time.
    #[target_feature(enable = "aes,avx2")]
    pub(crate) fn new(key: Block) -> Self {
        let mut keys = [Block::ZERO; 11];
        keys[0] = key;
        // AESKEYGENASSIST takes the round constant as an immediate.
        keys[1] = next_round_key::<0x01>(keys[0]);
        keys[2] = next_round_key::<0x02>(keys[1]);
        keys[3] = next_round_key::<0x04>(keys[2]);
        keys[4] = next_round_key::<0x08>(keys[3]);
        keys[5] = next_round_key::<0x10>(keys[4]);
        keys[6] = next_round_key::<0x20>(keys[5]);
        keys[7] = next_round_key::<0x40>(keys[6]);
        keys[8] = next_round_key::<0x80>(keys[7]);
        keys[9] = next_round_key::<0x1b>(keys[8]);
        keys[10] = next_round_key::<0x36>(keys[9]);
        Self(keys)
    }

    #[inline]
    pub(crate) fn keys(&self) -> &[__m128i; 11] {
        bytemuck::cast_ref(&self.0)
    }
}

impl Drop for Schedule {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// Words `w[4i..4i+4]` of the schedule from the four before them.
#[target_feature(enable = "aes,avx2")]
fn next_round_key<const CONSTANT: i32>(previous: Block) -> Block {
    let previous: __m128i = bytemuck::cast(previous);
    // Word 3 of the result is RotWord(SubWord(w[4i-1])) ^ CONSTANT.
    let assist = _mm_shuffle_epi32::<0xff>(_mm_aeskeygenassist_si128::<CONSTANT>(previous));
    // Each word of the new key is that word plus the sum of the old words up to its position.
    let mut sums = _mm_xor_si128(previous, _mm_slli_si128::<4>(previous));
    sums = _mm_xor_si128(sums, _mm_slli_si128::<8>(sums));
    bytemuck::cast(_mm_xor_si128(sums, assist))
}

/// Encrypts `x`, all lanes under the same key.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn encrypt_lanes<const N: usize>(keys: &[__m128i; 11], mut x: [__m128i; N]) -> [__m128i; N] {
    for lane in &mut x {
        *lane = _mm_xor_si128(*lane, keys[0]);
    }
    rounds(keys, x)
}

/// The rounds after the addition of the first round key.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn rounds<const N: usize>(keys: &[__m128i; 11], mut x: [__m128i; N]) -> [__m128i; N] {
    for key in &keys[1..10] {
        for lane in &mut x {
            *lane = _mm_aesenc_si128(*lane, *key);
        }
        // More lanes, and what is added to them afterwards, do not fit into the registers.
        if N == PARENTS {
            side_by_side(&mut x);
        }
    }
    for lane in &mut x {
        *lane = _mm_aesenclast_si128(*lane, keys[10]);
    }
    x
}

/// `AES(x) ^ x` in each lane.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn hash_lanes<const N: usize>(keys: &[__m128i; 11], x: [__m128i; N]) -> [__m128i; N] {
    let mut y = encrypt_lanes(keys, x);
    for (y, x) in y.iter_mut().zip(x) {
        *y = _mm_xor_si128(*y, x);
    }
    y
}

/// Up to `N` blocks, padded with zeros.
#[inline]
fn padded<T: Pod, const N: usize>(x: &[T]) -> [T; N] {
    let mut lanes = [T::zeroed(); N];
    lanes[..x.len()].copy_from_slice(x);
    lanes
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn encrypt_blocks(keys: &Schedule, x: &mut [Block]) {
    let keys = keys.keys();
    let x: &mut [__m128i] = bytemuck::cast_slice_mut(x);
    let (chunks, rest) = x.as_chunks_mut::<LANES>();
    for chunk in chunks {
        *chunk = encrypt_lanes(keys, *chunk);
    }
    if let [one] = rest {
        [*one] = encrypt_lanes(keys, [*one]);
    } else if !rest.is_empty() {
        let n = rest.len();
        rest.copy_from_slice(&encrypt_lanes::<LANES>(keys, padded(rest))[..n]);
    }
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn ctr(keys: &Schedule, counter: u128, out: &mut [Block]) {
    let keys = keys.keys();
    let out: &mut [__m128i] = bytemuck::cast_slice_mut(out);
    // Adding word by word is allowed only without a carry from the low word into the high one.
    let carries = (counter as u64).checked_add(out.len() as u64).is_none();
    let step = _mm_set_epi64x(0, LANES as i64);
    let mut counter = counter;
    let mut counters = counters_from(counter);
    let (chunks, rest) = out.as_chunks_mut::<LANES>();
    for chunk in chunks {
        *chunk = encrypt_lanes(keys, counters);
        if carries {
            counter = counter.wrapping_add(LANES as u128);
            counters = counters_from(counter);
        } else {
            for counter in &mut counters {
                *counter = _mm_add_epi64(*counter, step);
            }
        }
    }
    if !rest.is_empty() {
        rest.copy_from_slice(&encrypt_lanes(keys, counters)[..rest.len()]);
    }
}

/// `counter`, `counter + 1`, ...
#[inline]
fn counters_from(counter: u128) -> [__m128i; LANES] {
    let counters: [u128; LANES] = std::array::from_fn(|i| counter.wrapping_add(i as u128));
    bytemuck::cast(counters)
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn feed_forward(keys: &Schedule, x: &[Block], out: &mut [Block]) {
    let keys = keys.keys();
    let x: &[__m128i] = bytemuck::cast_slice(x);
    let out: &mut [__m128i] = bytemuck::cast_slice_mut(out);
    let (x, x_rest) = x.as_chunks::<LANES>();
    let (out, out_rest) = out.as_chunks_mut::<LANES>();
    for (x, out) in x.iter().zip(out) {
        *out = hash_lanes(keys, *x);
    }
    if let ([x], [out]) = (x_rest, &mut *out_rest) {
        [*out] = hash_lanes(keys, [*x]);
    } else if !x_rest.is_empty() {
        out_rest.copy_from_slice(&hash_lanes::<LANES>(keys, padded(x_rest))[..x_rest.len()]);
    }
}

/// Four parents and their eight children: even lanes under the first key, odd ones under the
/// second.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn double_lanes(keys: [&[__m128i; 11]; 2], parents: [__m128i; LANES / 2]) -> [__m128i; LANES] {
    let [even, odd] = keys;
    let mut x: [__m128i; LANES] = bytemuck::Zeroable::zeroed();
    for (pair, parent) in x.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
        *pair = [_mm_xor_si128(parent, even[0]), _mm_xor_si128(parent, odd[0])];
    }
    for (even, odd) in even[1..10].iter().zip(&odd[1..10]) {
        for [left, right] in x.as_chunks_mut::<2>().0 {
            *left = _mm_aesenc_si128(*left, *even);
            *right = _mm_aesenc_si128(*right, *odd);
        }
    }
    for ([left, right], parent) in x.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
        *left = _mm_xor_si128(_mm_aesenclast_si128(*left, even[10]), parent);
        *right = _mm_xor_si128(_mm_aesenclast_si128(*right, odd[10]), parent);
    }
    x
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn double(
    keys: [&Schedule; 2],
    parents: &[Block],
    children: &mut [Block],
) -> [Block; 2] {
    let keys = [keys[0].keys(), keys[1].keys()];
    let parents: &[__m128i] = bytemuck::cast_slice(parents);
    let children: &mut [__m128i] = bytemuck::cast_slice_mut(children);
    let (children, children_rest) = children.as_chunks_mut::<LANES>();
    let (parents, parents_rest) = parents.split_at(children.len() * (LANES / 2));
    let mut sums: [__m128i; 2] = bytemuck::Zeroable::zeroed();
    for (parents, children) in parents.as_chunks().0.iter().zip(children) {
        *children = double_lanes(keys, *parents);
        for i in 0..LANES {
            sums[i % 2] = _mm_xor_si128(sums[i % 2], children[i]);
        }
    }
    // Up to four parents, the last of which may have one child only.
    if !children_rest.is_empty() {
        let last = double_lanes(keys, padded(parents_rest));
        for (i, child) in children_rest.iter_mut().enumerate() {
            *child = last[i];
            sums[i % 2] = _mm_xor_si128(sums[i % 2], last[i]);
        }
    }
    bytemuck::cast(sums)
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn leaf_pairs(keys: &Schedule, parents: &[Block], out: &mut [u64]) {
    let keys = keys.keys();
    let parents: &[__m128i] = bytemuck::cast_slice(parents);
    let (chunks, out_rest) = out.as_chunks_mut::<{ 2 * LANES }>();
    let (parents, parents_rest) = parents.split_at(chunks.len() * LANES);
    for (parents, out) in parents.as_chunks().0.iter().zip(chunks) {
        *out = bytemuck::cast(hash_lanes::<LANES>(keys, *parents));
    }
    // Up to eight parents, the last of which may have one word only.
    if !out_rest.is_empty() {
        let words: [u64; 2 * LANES] =
            bytemuck::cast(hash_lanes::<LANES>(keys, padded(parents_rest)));
        out_rest.copy_from_slice(&words[..out_rest.len()]);
    }
}

/// Parents at a time where the work around the rounds is done on vectors of two: a processor has
/// few units for AES rounds, and other instructions compete with them. Several groups of four are
/// in flight, as they are independent; larger groups exceed the registers.
const PARENTS: usize = 4;
type Vectors = [__m256i; PARENTS / 2];

/// The orthomorphism `s(l || r) = (l ^ r) || l` in each lane, `l` the high half.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn orthomorphism(x: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_unpackhi_epi64(x, x), _mm256_slli_si256::<8>(x))
}

/// `H(x) = AES(s(x)) ^ s(x)` in each lane.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn circular_lanes(keys: &[__m128i; 11], mut x: Vectors) -> Vectors {
    let first_key: __m256i = bytemuck::cast([keys[0]; 2]);
    let mut y = x;
    for (y, x) in y.iter_mut().zip(&mut x) {
        *x = orthomorphism(*x);
        *y = _mm256_xor_si256(*x, first_key);
    }
    let mut y: Vectors = bytemuck::cast(rounds::<PARENTS>(keys, bytemuck::cast(y)));
    for (y, x) in y.iter_mut().zip(x) {
        *y = _mm256_xor_si256(*y, x);
    }
    y
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn split(
    keys: &Schedule,
    parents: &[Block],
    children: &mut [Block],
    mask: Block,
) -> [Block; 2] {
    let keys = keys.keys();
    let masks: __m256i = bytemuck::cast([mask; 2]);
    let (parents, parents_rest) = parents.as_chunks::<PARENTS>();
    let (children, children_rest) = children.split_at_mut(parents.len() * (2 * PARENTS));
    let children = children.as_chunks_mut::<{ 2 * PARENTS }>().0;
    // The sums of the left children and of the parents; the sum of the right children is their
    // difference.
    let mut sums: [__m256i; 2] = bytemuck::Zeroable::zeroed();
    for (parents, children) in parents.iter().zip(children) {
        let parents: Vectors = bytemuck::cast(*parents);
        let hashes = circular_lanes(keys, parents);
        let children = children.as_chunks_mut::<4>().0;
        for ((children, parents), left) in children.iter_mut().zip(parents).zip(hashes) {
            let right = _mm256_xor_si256(parents, left);
            sums = [_mm256_xor_si256(sums[0], left), _mm256_xor_si256(sums[1], parents)];
            let left: [Block; 2] = bytemuck::cast(_mm256_and_si256(left, masks));
            let right: [Block; 2] = bytemuck::cast(_mm256_and_si256(right, masks));
            *children = [left[0], right[0], left[1], right[1]];
        }
    }
    let [mut left_sum, mut parent_sum] = sums.map(|sum| {
        let [a, b]: [Block; 2] = bytemuck::cast(sum);
        a ^ b
    });
    // Up to three parents.
    if !parents_rest.is_empty() {
        let hashes: [Block; PARENTS] = bytemuck::cast(circular_lanes(
            keys,
            bytemuck::cast(padded::<_, PARENTS>(parents_rest)),
        ));
        let pairs = children_rest.as_chunks_mut::<2>().0;
        for ((pair, &parent), left) in pairs.iter_mut().zip(parents_rest).zip(hashes) {
            *pair = [left & mask, (parent ^ left) & mask];
            left_sum ^= left;
            parent_sum ^= parent;
        }
    }
    [left_sum, left_sum ^ parent_sum]
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn hash_words(keys: &Schedule, parents: &[Block], out: &mut [u64]) {
    let keys = keys.keys();
    let (chunks, out_rest) = out.as_chunks_mut::<{ 2 * PARENTS }>();
    let (parents, parents_rest) = parents.split_at(chunks.len() * PARENTS);
    for (parents, out) in parents.as_chunks::<PARENTS>().0.iter().zip(chunks) {
        *out = bytemuck::cast(circular_lanes(keys, bytemuck::cast(*parents)));
    }
    // Up to four parents, the last of which may have one word only.
    if !out_rest.is_empty() {
        let last: [Block; PARENTS] = padded(parents_rest);
        let words: [u64; 2 * PARENTS] = bytemuck::cast(circular_lanes(keys, bytemuck::cast(last)));
        out_rest.copy_from_slice(&words[..out_rest.len()]);
    }
}

/// The hashes of four parents, each followed by that of the parent with its lowest bit changed.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn pair_lanes(keys: &[__m128i; 11], parents: [__m128i; LANES / 2]) -> [__m128i; LANES] {
    let parents: [__m256i; LANES / 4] = bytemuck::cast(parents);
    // `s` is linear: s(x ^ 1) = s(x) ^ s(1).
    let change = orthomorphism(bytemuck::cast([Block::ONE; 2]));
    let mut x: [[__m128i; 4]; LANES / 4] = bytemuck::Zeroable::zeroed();
    for (x, parents) in x.iter_mut().zip(parents) {
        let inputs = orthomorphism(parents);
        let changed: [__m128i; 2] = bytemuck::cast(_mm256_xor_si256(inputs, change));
        let inputs: [__m128i; 2] = bytemuck::cast(inputs);
        *x = [inputs[0], changed[0], inputs[1], changed[1]];
    }
    hash_lanes(keys, bytemuck::cast(x))
}

#[target_feature(enable = "aes,avx2")]
pub(crate) fn hash_pairs(keys: &Schedule, parents: &[Block], out: &mut [Block]) -> [Block; 2] {
    let keys = keys.keys();
    let parents: &[__m128i] = bytemuck::cast_slice(parents);
    let out: &mut [__m128i] = bytemuck::cast_slice_mut(out);
    let (chunks, out_rest) = out.as_chunks_mut::<LANES>();
    let (parents, parents_rest) = parents.split_at(chunks.len() * (LANES / 2));
    let mut sums: [__m128i; 2] = bytemuck::Zeroable::zeroed();
    for (parents, out) in parents.as_chunks().0.iter().zip(chunks) {
        *out = pair_lanes(keys, *parents);
        for i in 0..LANES {
            sums[i % 2] = _mm_xor_si128(sums[i % 2], out[i]);
        }
    }
    // Up to four parents, the last of which may have one child only.
    if !out_rest.is_empty() {
        let last = pair_lanes(keys, padded(parents_rest));
        for (i, out) in out_rest.iter_mut().enumerate() {
            *out = last[i];
            sums[i % 2] = _mm_xor_si128(sums[i % 2], last[i]);
        }
    }
    bytemuck::cast(sums)
}

/// The round constants of FIPS 197, section 5.2.
const ROUND_CONSTANTS: [i32; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

/// The next round key in each lane.
///
/// AESKEYGENASSIST is slow on many processors. AESENCLAST substitutes bytes as well; it also shifts
/// rows, which has no effect if all columns are equal.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn next_round_keys<const N: usize>(keys: &mut [__m128i; N], constant: i32) {
    let constant = _mm_set1_epi32(constant);
    // RotWord of the last word, in all four.
    let rotate = _mm_set1_epi32(0x0c0f_0e0d);
    for key in keys {
        let assist = _mm_aesenclast_si128(_mm_shuffle_epi8(*key, rotate), constant);
        let mut sums = _mm_xor_si128(*key, _mm_slli_si128::<4>(*key));
        sums = _mm_xor_si128(sums, _mm_slli_si128::<8>(sums));
        *key = _mm_xor_si128(sums, assist);
    }
}

/// `AES(x) ^ x`, each lane under its own key: `B` blocks for each key.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn rekeyed_lanes<const N: usize, const B: usize>(
    mut keys: [__m128i; N],
    x: [[__m128i; B]; N],
) -> [[__m128i; B]; N] {
    let mut y = x;
    for (y, key) in y.iter_mut().zip(keys) {
        for y in y {
            *y = _mm_xor_si128(*y, key);
        }
    }
    for constant in &ROUND_CONSTANTS[..9] {
        next_round_keys(&mut keys, *constant);
        for (y, key) in y.iter_mut().zip(keys) {
            for y in y {
                *y = _mm_aesenc_si128(*y, key);
            }
        }
    }
    next_round_keys(&mut keys, ROUND_CONSTANTS[9]);
    for ((y, key), x) in y.iter_mut().zip(keys).zip(x) {
        for (y, x) in y.iter_mut().zip(x) {
            *y = _mm_xor_si128(_mm_aesenclast_si128(*y, key), x);
        }
    }
    y
}

/// Lanes whose keys and blocks fit into the registers together.
const REKEYED: usize = 6;

/// Likewise where each key serves two blocks.
const PAIRED: usize = 4;

#[target_feature(enable = "aes,avx2")]
pub(crate) fn rekeyed(keys: &[Block], x: &mut [Block]) {
    rekeyed_sets::<REKEYED, 1, false>(keys, bytemuck::cast_slice_mut(x));
}

/// Encrypts like [`rekeyed`], with the orthomorphism applied first.
#[target_feature(enable = "aes,avx2")]
pub(crate) fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
    rekeyed_sets::<REKEYED, 1, true>(keys, bytemuck::cast_slice_mut(x));
}

/// Encrypts like [`rekeyed_circular`], two blocks under each key.
#[target_feature(enable = "aes,avx2")]
pub(crate) fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
    rekeyed_sets::<PAIRED, 2, true>(keys, x);
}

/// `AES(x) ^ x` for each block of a set, under the set's key, with the orthomorphism applied first
/// if `CIRCULAR`.
#[inline]
#[target_feature(enable = "aes,avx2")]
fn rekeyed_sets<const N: usize, const B: usize, const CIRCULAR: bool>(
    keys: &[Block],
    x: &mut [[Block; B]],
) {
    let lanes = |keys: [Block; N], mut x: [[Block; B]; N]| {
        if CIRCULAR {
            x = x.map(|set| set.map(portable::orthomorphism));
        }
        let x = x.map(|set| set.map(bytemuck::cast));
        rekeyed_lanes(keys.map(bytemuck::cast), x).map(|set| set.map(bytemuck::cast))
    };
    let (keys, keys_rest) = keys.as_chunks::<N>();
    let (x, x_rest) = x.as_chunks_mut::<N>();
    for (keys, x) in keys.iter().zip(x) {
        *x = lanes(*keys, *x);
    }
    if !x_rest.is_empty() {
        let (mut keys, mut last) = ([Block::ZERO; N], [[Block::ZERO; B]; N]);
        keys[..x_rest.len()].copy_from_slice(keys_rest);
        last[..x_rest.len()].copy_from_slice(x_rest);
        x_rest.copy_from_slice(&lanes(keys, last)[..x_rest.len()]);
    }
}
