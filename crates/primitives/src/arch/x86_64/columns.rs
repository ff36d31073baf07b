//! Counter mode under many keys for a few blocks each, with VAES on AVX-512: two keys at a time, each with four vectors in
//! flight. What a key takes to set up counts here, so the round keys are spread over the lanes as they are loaded.

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

/// `out[BLOCKS*k + i] = AES(counter + i)` under `keys[k]`, where no counter carries from the low word into the high one.
#[target_feature(enable = "vaes,aes,avx2,avx512f")]
pub(crate) fn ctr<'a>(
    mut keys: impl Iterator<Item = &'a Schedule>,
    counter: u128,
    out: &mut [Block],
) {
    let counters: [Block; BLOCKS] =
        std::array::from_fn(|i| Block::new(counter.wrapping_add(i as u128)));
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
    schedules: [&Schedule; N],
    counters: [__m512i; VECTORS],
) -> [[__m512i; VECTORS]; N] {
    let key =
        |round: usize| schedules.map(|schedule| _mm512_broadcast_i32x4(schedule.keys()[round]));
    let mut x = [counters; N];
    for (x, key) in x.iter_mut().zip(key(0)) {
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
