//! Indices cut, and entries of several registers added up, with AVX2, and with AVX-512.

use std::arch::x86_64::*;

use crate::Block;
use crate::gather::{CUT_BLOCKS, CUT_PLACES, Lanes, PLACE_BITS};

const MIDDLE: u32 = PLACE_BITS;
const HIGH: u32 = 2 * PLACE_BITS;

#[target_feature(enable = "avx2")]
pub(crate) fn cut(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    let mask = _mm256_set1_epi32(mask as i32);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        let words: [__m256i; 2] = bytemuck::cast(*blocks);
        let middle = words.map(|words| _mm256_srli_epi64::<{ MIDDLE as i32 }>(words));
        let high = words.map(|words| _mm256_srli_epi64::<{ HIGH as i32 }>(words));
        let distances = [words, middle, high].map(|pieces| {
            let places = _mm256_and_si256(low_halves(pieces), mask);
            _mm256_sll_epi32(places, shift)
        });
        *out = bytemuck::cast(distances);
    }
}

/// The low halves of eight words, in their order.
#[inline]
#[target_feature(enable = "avx2")]
fn low_halves([a, b]: [__m256i; 2]) -> __m256i {
    // The instruction works on the two lanes of 128 bits separately: a0 a1 b0 b1 | a2 a3 b2 b3.
    let halves = _mm256_shuffle_ps::<0b10_00_10_00>(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b));
    _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_castps_si256(halves))
}

#[target_feature(enable = "avx2,avx512f")]
pub(crate) fn cut_wide(blocks: &[Block], mask: u32, shift: u32, out: &mut [u32]) {
    let mask = _mm256_set1_epi32(mask as i32);
    let shift = _mm_cvtsi32_si128(shift as i32);
    let cuts = blocks.as_chunks::<CUT_BLOCKS>().0;
    for (blocks, out) in cuts.iter().zip(out.as_chunks_mut::<CUT_PLACES>().0) {
        let words: __m512i = bytemuck::cast(*blocks);
        let pieces = [words, _mm512_srli_epi64::<MIDDLE>(words), _mm512_srli_epi64::<HIGH>(words)];
        let distances = pieces.map(|pieces| {
            let places = _mm256_and_si256(_mm512_cvtepi64_epi32(pieces), mask);
            _mm256_sll_epi32(places, shift)
        });
        *out = bytemuck::cast(distances);
    }
}

macro_rules! by_lanes {
    ($kernel:ident, $v:literal, $lanes:expr, $($argument:expr),*) => {
        match $lanes {
            Lanes::Xor => $kernel::<$v, { Lanes::Xor as usize }, WEIGHT>($($argument),*),
            Lanes::Words => $kernel::<$v, { Lanes::Words as usize }, WEIGHT>($($argument),*),
            Lanes::Mersenne => $kernel::<$v, { Lanes::Mersenne as usize }, WEIGHT>($($argument),*),
            Lanes::XorHalves => $kernel::<$v, { Lanes::XorHalves as usize }, WEIGHT>($($argument),*),
        }
    };
}

macro_rules! sums {
    (
        $name:ident, $kernel:ident, $features:literal, $vector:ty, $sizes:expr,
        $zero:ident, $load:ident, $store:ident, $xor:ident, $add:ident, $and:ident, $shift:ident,
        $repeated:ident
    ) => {
        /// The sums of the entries of `size` bytes at the distances of each column; `false` for
        /// another size.
        ///
        /// # Safety
        /// The distances are those of initialised entries in the table, and `out` has memory for
        /// the sums.
        #[target_feature(enable = $features)]
        pub(crate) unsafe fn $name<const WEIGHT: usize>(
            lanes: Lanes,
            size: usize,
            table: *const u8,
            columns: &[[u32; WEIGHT]],
            out: *mut u8,
        ) -> bool {
            let [one, two, four] = $sizes;
            // SAFETY: the caller's.
            unsafe {
                match size {
                    _ if size == one => by_lanes!($kernel, 1, lanes, table, columns, out),
                    _ if size == two => by_lanes!($kernel, 2, lanes, table, columns, out),
                    _ if size == four => by_lanes!($kernel, 4, lanes, table, columns, out),
                    _ => return false,
                }
            }
            true
        }

        #[target_feature(enable = $features)]
        unsafe fn $kernel<const V: usize, const LANES: usize, const WEIGHT: usize>(
            table: *const u8,
            columns: &[[u32; WEIGHT]],
            out: *mut u8,
        ) {
            let mut out = out.cast::<$vector>();
            let mask = $repeated((1 << 61) - 1);
            // SAFETY: an entry has `V` vectors.
            let read = |at, v| unsafe { $load(table.add(at).cast::<$vector>().add(v).cast()) };
            // SAFETY: a sum has as many, and those of a column are consecutive.
            let mut write = |sum| unsafe {
                $store(out.cast(), sum);
                out = out.add(1);
            };
            for column in columns {
                let mut sums = [$zero(); V];
                for (j, distance) in column.iter().enumerate() {
                    if j == WEIGHT / 2 && LANES == Lanes::Mersenne as usize {
                        sums = sums.map(|sum| $add($and(sum, mask), $shift::<61>(sum)));
                    }
                    if j == WEIGHT / 2 && LANES == Lanes::XorHalves as usize {
                        std::mem::replace(&mut sums, [$zero(); V]).into_iter().for_each(&mut write);
                    }
                    for (v, sum) in sums.iter_mut().enumerate() {
                        let entry = read(*distance as usize, v);
                        *sum = match LANES == Lanes::Xor as usize
                            || LANES == Lanes::XorHalves as usize
                        {
                            true => $xor(*sum, entry),
                            false => $add(*sum, entry),
                        };
                    }
                }
                sums.into_iter().for_each(&mut write);
            }
        }
    };
}

sums! {
    sums, sums_of_two, "avx2", __m256i, [32, 64, 128], _mm256_setzero_si256, _mm256_loadu_si256,
    _mm256_storeu_si256, _mm256_xor_si256, _mm256_add_epi64, _mm256_and_si256, _mm256_srli_epi64,
    _mm256_set1_epi64x
}

sums! {
    sums_wide, sums_of_four, "avx512f", __m512i, [64, 128, 256], _mm512_setzero_si512,
    _mm512_loadu_si512, _mm512_storeu_si512, _mm512_xor_si512, _mm512_add_epi64, _mm512_and_si512,
    _mm512_srli_epi64, _mm512_set1_epi64
}
