//! Counter mode under many keys for a few blocks each, with VAES on AVX-512: two keys at a time,
//! each with four vectors in flight. The setup per key matters here, so the round keys are
//! broadcast to the lanes as they are loaded.

use std::arch::x86_64::*;

use crate::Block;

use super::aes::Schedule;

/// Blocks in a vector.
const WIDTH: usize = 4;
/// Vectors of one key.
const VECTORS: usize = 4;
/// Blocks of one key.
pub(crate) const BLOCKS: usize = WIDTH * VECTORS;
/// Keys at a time.
const KEYS: usize = 2;

/// `out[BLOCKS*k + i] = AES(2^64 start + counter + i)` for each key and its start, where no counter
/// carries from the low word into the high one.
#[target_feature(enable = "vaes,aes,avx2,avx512f")]
pub(crate) fn ctr<'a>(
    mut keys: impl Iterator<Item = (&'a Schedule, &'a u64)>,
    counter: u64,
    out: &mut [Block],
) {
    let counters: [Block; BLOCKS] =
        std::array::from_fn(|i| Block::from_words(counter.wrapping_add(i as u64), 0));
    let counters: [__m512i; VECTORS] = bytemuck::cast(counters);
    let (pairs, rest) = out.as_chunks_mut::<{ KEYS * BLOCKS }>();
    for pair in pairs {
        if let (Some(first), Some(second)) = (keys.next(), keys.next()) {
            *pair = bytemuck::cast(streams([first, second], counters));
        }
    }
    if let (Some(last), Some(out)) = (keys.next(), rest.first_chunk_mut::<BLOCKS>()) {
        *out = bytemuck::cast(streams([last], counters));
    }
}

#[inline]
#[target_feature(enable = "vaes,aes,avx2,avx512f")]
fn streams<const N: usize>(
    columns: [(&Schedule, &u64); N],
    counters: [__m512i; VECTORS],
) -> [[__m512i; VECTORS]; N] {
    let key =
        |round: usize| columns.map(|(schedule, _)| _mm512_broadcast_i32x4(schedule.keys()[round]));
    let mut x = [counters; N];
    for (x, (key, (_, start))) in x.iter_mut().zip(key(0).into_iter().zip(columns)) {
        let start = _mm512_broadcast_i32x4(_mm_set_epi64x(start.cast_signed(), 0));
        let key = _mm512_xor_si512(key, start);
        for lanes in x {
            *lanes = _mm512_xor_si512(*lanes, key);
        }
    }
    for round in 1..10 {
        for (x, key) in x.iter_mut().zip(key(round)) {
            for lanes in x {
                *lanes = _mm512_aesenc_epi128(*lanes, key);
            }
        }
    }
    for (x, key) in x.iter_mut().zip(key(10)) {
        for lanes in x {
            *lanes = _mm512_aesenclast_epi128(*lanes, key);
        }
    }
    x
}
