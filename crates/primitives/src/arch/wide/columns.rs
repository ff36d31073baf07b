//! Counter mode under many keys for a few blocks each, on vectors of blocks: two keys at a time.
//! The setup per key matters here, so the round keys are broadcast to the lanes as they are loaded.

use crate::Block;

use crate::arch::native::aes::Schedule;

/// Blocks of one key.
pub(crate) const BLOCKS: usize = 16;
/// Keys at a time.
const KEYS: usize = 2;

macro_rules! kernels {
    ($module:ident, $features:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::native::vector::$module::*;

            /// Vectors of one key.
            const VECTORS: usize = BLOCKS / WIDTH;

            /// `out[BLOCKS*k + i] = AES(2^64 start + counter + i)` for each key and its start,
            /// where no counter carries from the low word into the high one.
            #[target_feature(enable = $features)]
            pub(crate) fn ctr<'a>(
                mut keys: impl Iterator<Item = (&'a Schedule, &'a u64)>,
                counter: u64,
                out: &mut [Block],
            ) {
                let counters: [Block; BLOCKS] =
                    std::array::from_fn(|i| Block::from_words(counter.wrapping_add(i as u64), 0));
                let counters: [Vector; VECTORS] = bytemuck::cast(counters);
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
            #[target_feature(enable = $features)]
            fn streams<const N: usize>(
                columns: [(&Schedule, &u64); N],
                counters: [Vector; VECTORS],
            ) -> [[Vector; VECTORS]; N] {
                let key = |round: usize| {
                    columns.map(|(schedule, _)| repeated(bytemuck::cast(schedule.keys()[round])))
                };
                let mut x = [counters; N];
                for (x, (key, (_, start))) in x.iter_mut().zip(key(0).into_iter().zip(columns)) {
                    let key = xor(key, repeated(Block::from_words(0, *start)));
                    for lanes in x {
                        *lanes = xor(*lanes, key);
                    }
                }
                for round in 1..10 {
                    for (x, key) in x.iter_mut().zip(key(round)) {
                        for lanes in x {
                            *lanes = aes_round(*lanes, key);
                        }
                    }
                }
                for (x, key) in x.iter_mut().zip(key(10)) {
                    for lanes in x {
                        *lanes = aes_last_round(*lanes, key);
                    }
                }
                x
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2");
#[cfg(target_arch = "x86_64")]
kernels!(x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw");
#[cfg(target_arch = "aarch64")]
kernels!(x2, "neon,aes");
