//! AES-128 with a key for each block, on vectors of blocks: the key schedules are computed
//! alongside the rounds.

use crate::Block;

use crate::arch::native::aes;

/// The round constants of FIPS 197, section 5.2.
const ROUND_CONSTANTS: [i32; 10] = [1, 2, 4, 8, 0x10, 0x20, 0x40, 0x80, 0x1b, 0x36];

macro_rules! kernels {
    ($module:ident, $features:literal, $vectors:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::native::vector::$module::*;

            /// Vectors in flight: keys and blocks fit into the registers together.
            const VECTORS: usize = $vectors;

            /// The next round key in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn next_round_keys<const N: usize>(keys: &mut [Vector; N], constant: i32) {
                let constant = fill(constant);
                // RotWord of the last word, in all four.
                let rotate = fill(0x0c0f_0e0d);
                for key in keys {
                    let assist = aes_last_round(shuffle(*key, rotate), constant);
                    let sums = xor(*key, left::<4>(*key));
                    *key = xor(xor(sums, left::<8>(sums)), assist);
                }
            }

            /// `AES(x) ^ x`, each lane under its own key: `B` blocks for each key.
            #[inline]
            #[target_feature(enable = $features)]
            fn rekeyed_lanes<const N: usize, const B: usize>(
                mut keys: [Vector; N],
                x: [[Vector; N]; B],
            ) -> [[Vector; N]; B] {
                let mut y = x;
                for y in &mut y {
                    for (y, key) in y.iter_mut().zip(keys) {
                        *y = xor(*y, key);
                    }
                }
                for constant in &ROUND_CONSTANTS[..9] {
                    next_round_keys(&mut keys, *constant);
                    for y in &mut y {
                        for (y, key) in y.iter_mut().zip(keys) {
                            *y = aes_round(*y, key);
                        }
                    }
                }
                next_round_keys(&mut keys, ROUND_CONSTANTS[9]);
                for (y, x) in y.iter_mut().zip(x) {
                    for ((y, key), x) in y.iter_mut().zip(keys).zip(x) {
                        *y = xor(aes_last_round(*y, key), x);
                    }
                }
                y
            }

            #[target_feature(enable = $features)]
            pub(crate) fn rekeyed(keys: &[Block], x: &mut [Block]) {
                let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * VECTORS }>();
                let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * VECTORS }>();
                for (keys, x) in keys.iter().zip(x) {
                    let [lanes] =
                        rekeyed_lanes::<VECTORS, 1>(bytemuck::cast(*keys), [bytemuck::cast(*x)]);
                    *x = bytemuck::cast(lanes);
                }
                aes::rekeyed(keys_rest, x_rest);
            }

            /// Encrypts like [`rekeyed`], with the orthomorphism applied first.
            #[target_feature(enable = $features)]
            pub(crate) fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
                let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * VECTORS }>();
                let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * VECTORS }>();
                for (keys, x) in keys.iter().zip(x) {
                    let mut lanes: [Vector; VECTORS] = bytemuck::cast(*x);
                    for lane in &mut lanes {
                        *lane = orthomorphism(*lane);
                    }
                    let [lanes] = rekeyed_lanes::<VECTORS, 1>(bytemuck::cast(*keys), [lanes]);
                    *x = bytemuck::cast(lanes);
                }
                aes::rekeyed_circular(keys_rest, x_rest);
            }

            /// Vectors of keys in flight if each key serves two blocks.
            const PAIRED: usize = VECTORS / 2;

            /// Encrypts like [`rekeyed_circular`], two blocks under each key.
            #[target_feature(enable = $features)]
            pub(crate) fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
                let (keys, keys_rest) = keys.as_chunks::<{ WIDTH * PAIRED }>();
                let (x, x_rest) = x.as_chunks_mut::<{ WIDTH * PAIRED }>();
                // Loops, because the compiler does not inline closures with their own instruction
                // sets.
                for (keys, x) in keys.iter().zip(x) {
                    let pairs: [[Vector; 2]; PAIRED] = bytemuck::cast(*x);
                    let mut sides = [[zero(); PAIRED]; 2];
                    for (place, pair) in pairs.into_iter().enumerate() {
                        let [first, second] = separated(pair);
                        sides[0][place] = orthomorphism(first);
                        sides[1][place] = orthomorphism(second);
                    }
                    let [a, b] = rekeyed_lanes::<PAIRED, 2>(bytemuck::cast(*keys), sides);
                    let mut pairs = [[zero(); 2]; PAIRED];
                    for (pairs, (a, b)) in pairs.iter_mut().zip(a.into_iter().zip(b)) {
                        *pairs = alternated(a, b);
                    }
                    *x = bytemuck::cast(pairs);
                }
                aes::rekeyed_circular_pairs(keys_rest, x_rest);
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(x1, "aes,avx2", 3);
#[cfg(target_arch = "x86_64")]
kernels!(x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2", 6);
#[cfg(target_arch = "x86_64")]
kernels!(x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw", 8);
#[cfg(target_arch = "aarch64")]
kernels!(x2, "neon,aes", 6);
