//! The compression function of BLAKE3 in all lanes: sixteen at once with AVX-512, eight with AVX2,
//! four with NEON.

#[cfg(target_arch = "aarch64")]
use std::arch::aarch64::*;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

use crate::keyed::{
    FLAGS, INITIAL, KEY_WORDS, LANES, Lanes, Message, OUT_WORDS, SCHEDULE, STEPS, WORDS,
};

macro_rules! kernel {
    ($module:ident, $features:literal, $vector:ty, $set:path, $add:path, $xor:path, $rotate:ident) => {
        pub(crate) mod $module {
            use super::*;

            /// Vectors that hold a word of each lane.
            const PARTS: usize = LANES * 4 / size_of::<$vector>();

            /// The function G.
            #[inline]
            #[target_feature(enable = $features)]
            fn mix(state: &mut [$vector; WORDS], [a, b, c, d]: [usize; 4], message: [$vector; 2]) {
                state[a] = $add($add(state[a], message[0]), state[b]);
                state[d] = $rotate::<16>($xor(state[d], state[a]));
                state[c] = $add(state[c], state[d]);
                state[b] = $rotate::<12>($xor(state[b], state[c]));
                state[a] = $add($add(state[a], message[1]), state[b]);
                state[d] = $rotate::<8>($xor(state[d], state[a]));
                state[c] = $add(state[c], state[d]);
                state[b] = $rotate::<7>($xor(state[b], state[c]));
            }

            /// Round `ROUND`: the steps are written out so that the state stays in registers.
            #[inline]
            #[target_feature(enable = $features)]
            fn round<const ROUND: usize>(
                state: &mut [$vector; WORDS],
                words: &[[$vector; PARTS]; WORDS],
                part: usize,
            ) {
                let pair = |step: usize| {
                    let [first, second] = [2 * step, 2 * step + 1];
                    [words[SCHEDULE[ROUND][first]][part], words[SCHEDULE[ROUND][second]][part]]
                };
                mix(state, STEPS[0], pair(0));
                mix(state, STEPS[1], pair(1));
                mix(state, STEPS[2], pair(2));
                mix(state, STEPS[3], pair(3));
                mix(state, STEPS[4], pair(4));
                mix(state, STEPS[5], pair(5));
                mix(state, STEPS[6], pair(6));
                mix(state, STEPS[7], pair(7));
            }

            /// The first words of the compression of each lane's message.
            #[target_feature(enable = $features)]
            pub(crate) fn compress(
                key: &[u32; KEY_WORDS],
                message: &Message,
            ) -> [Lanes; OUT_WORDS] {
                let mut out: [[$vector; PARTS]; OUT_WORDS] = bytemuck::Zeroable::zeroed();
                let words: &[[$vector; PARTS]; WORDS] = bytemuck::cast_ref(&message.words);
                let bytes: [$vector; PARTS] = bytemuck::cast(message.bytes);
                for part in 0..PARTS {
                    let mut state: [$vector; WORDS] = bytemuck::Zeroable::zeroed();
                    for (state, &word) in state.iter_mut().zip(key.iter().chain(&INITIAL)) {
                        *state = $set(word);
                    }
                    state[14] = bytes[part];
                    state[15] = $set(FLAGS);
                    round::<0>(&mut state, words, part);
                    round::<1>(&mut state, words, part);
                    round::<2>(&mut state, words, part);
                    round::<3>(&mut state, words, part);
                    round::<4>(&mut state, words, part);
                    round::<5>(&mut state, words, part);
                    round::<6>(&mut state, words, part);
                    for (i, out) in out.iter_mut().enumerate() {
                        out[part] = $xor(state[i], state[i + 8]);
                    }
                }
                bytemuck::cast(out)
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn fill_16_lanes(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn fill_8_lanes(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f")]
fn rotate_16_lanes<const BITS: i32>(x: __m512i) -> __m512i {
    _mm512_ror_epi32::<BITS>(x)
}

#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx2")]
fn rotate_8_lanes<const BITS: i32>(x: __m256i) -> __m256i {
    // Whole bytes move in one instruction.
    let bytes = |order: [u8; 16]| -> __m256i { bytemuck::cast([order, order]) };
    match BITS {
        16 => {
            let order = bytes([2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13]);
            _mm256_shuffle_epi8(x, order)
        }
        8 => {
            let order = bytes([1, 2, 3, 0, 5, 6, 7, 4, 9, 10, 11, 8, 13, 14, 15, 12]);
            _mm256_shuffle_epi8(x, order)
        }
        _ => {
            let (right, left) = (_mm_cvtsi32_si128(BITS), _mm_cvtsi32_si128(32 - BITS));
            _mm256_or_si256(_mm256_srl_epi32(x, right), _mm256_sll_epi32(x, left))
        }
    }
}

#[cfg(target_arch = "x86_64")]
kernel!(
    avx512,
    "avx512f",
    __m512i,
    fill_16_lanes,
    _mm512_add_epi32,
    _mm512_xor_si512,
    rotate_16_lanes
);

#[cfg(target_arch = "x86_64")]
kernel!(avx2, "avx2", __m256i, fill_8_lanes, _mm256_add_epi32, _mm256_xor_si256, rotate_8_lanes);

#[cfg(target_arch = "aarch64")]
#[inline]
#[target_feature(enable = "neon")]
fn rotate_4_lanes<const BITS: i32>(x: uint32x4_t) -> uint32x4_t {
    match BITS {
        16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(x))),
        _ => {
            let (right, left) = (vdupq_n_s32(-BITS), vdupq_n_s32(32 - BITS));
            vorrq_u32(vshlq_u32(x, right), vshlq_u32(x, left))
        }
    }
}

#[cfg(target_arch = "aarch64")]
kernel!(neon, "neon", uint32x4_t, vdupq_n_u32, vaddq_u32, veorq_u32, rotate_4_lanes);
