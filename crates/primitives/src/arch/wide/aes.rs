//! AES-128 on vectors of blocks. The remainder goes to the kernels for single blocks.

use crate::Block;

use crate::arch::native::aes::{self, Schedule};

macro_rules! kernels {
    ($module:ident, $features:literal, $vectors:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::native::vector::$module::*;

            /// Vectors in flight: enough to hide the latency of a round.
            const VECTORS: usize = $vectors;
            /// Blocks in flight.
            const LANES: usize = WIDTH * VECTORS;

            /// The eleven round keys, each vector with the same keys for its blocks.
            type Keys = [Vector; 11];
            type Vectors = [Vector; VECTORS];

            /// Round keys with `even` at even places and `odd` at odd ones.
            #[inline]
            #[target_feature(enable = $features)]
            fn interleaved(even: &Schedule, odd: &Schedule) -> Keys {
                let mut keys: Keys = [zero(); 11];
                for (key, (&even, &odd)) in keys.iter_mut().zip(even.keys().iter().zip(odd.keys()))
                {
                    *key = bytemuck::cast([[even, odd]; WIDTH / 2]);
                }
                keys
            }

            /// Each block of the first half of the vectors twice.
            #[inline]
            #[target_feature(enable = $features)]
            fn twice(x: [Vector; VECTORS / 2]) -> Vectors {
                let mut pairs = [[zero(); 2]; VECTORS / 2];
                for (pair, x) in pairs.iter_mut().zip(x) {
                    *pair = alternated(x, x);
                }
                bytemuck::cast(pairs)
            }

            /// The XOR of the blocks at even places and that of the blocks at odd ones.
            #[inline]
            #[target_feature(enable = $features)]
            fn sums_of_sides(sum: Vector) -> [Block; 2] {
                let pairs: [[Block; 2]; WIDTH / 2] = bytemuck::cast(sum);
                pairs
                    .into_iter()
                    .fold([Block::ZERO; 2], |[even, odd], pair| [even ^ pair[0], odd ^ pair[1]])
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn encrypt_lanes(keys: &Keys, mut x: Vectors) -> Vectors {
                for lanes in &mut x {
                    *lanes = xor(*lanes, keys[0]);
                }
                for key in &keys[1..10] {
                    for lanes in &mut x {
                        *lanes = aes_round(*lanes, *key);
                    }
                    side_by_side(&mut x);
                }
                for lanes in &mut x {
                    *lanes = aes_last_round(*lanes, keys[10]);
                }
                x
            }

            /// `AES(x) ^ x` in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn hash_lanes(keys: &Keys, x: Vectors) -> Vectors {
                let mut y = encrypt_lanes(keys, x);
                for (y, x) in y.iter_mut().zip(x) {
                    *y = xor(*y, x);
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
                let first = repeated(Block::new(counter));
                for counters in &mut counters {
                    *counters = add_words(*counters, first);
                }
                let step = repeated(Block::new(LANES as u128));
                let done = chunks.len() * LANES;
                for chunk in chunks {
                    *chunk = bytemuck::cast(encrypt_lanes(&keys, counters));
                    for counters in &mut counters {
                        *counters = add_words(*counters, step);
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
                let mut sum = zero();
                for (parents, children) in
                    parents.as_chunks::<{ LANES / 2 }>().0.iter().zip(children)
                {
                    let hashes = hash_lanes(&keys, twice(bytemuck::cast(*parents)));
                    for hashes in hashes {
                        sum = xor(sum, hashes);
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
                let children = children.as_chunks_mut::<{ 2 * LANES }>().0;
                let lanes = if mask == Block::ALL_ONES {
                    split_lanes::<false>(schedule, parents, children, mask)
                } else {
                    split_lanes::<true>(schedule, parents, children, mask)
                };
                for (total, sum) in sums.iter_mut().zip(lanes) {
                    let [even, odd] = sums_of_sides(sum);
                    *total ^= even ^ odd;
                }
                sums
            }

            /// Splits whole vectors like [`split`]: inner levels keep all bits, and are not
            /// `MASKED`. Returns the sums in each lane.
            #[inline]
            #[target_feature(enable = $features)]
            fn split_lanes<const MASKED: bool>(
                schedule: &Schedule,
                parents: &[[Block; LANES]],
                children: &mut [[Block; 2 * LANES]],
                mask: Block,
            ) -> [Vector; 2] {
                let keys = interleaved(schedule, schedule);
                let mask = repeated(mask);
                let mut sum = [zero(); 2];
                for (parents, children) in parents.iter().zip(children) {
                    let parents: Vectors = bytemuck::cast(*parents);
                    let mut pairs = [[zero(); 2]; VECTORS];
                    let hashes = circular_lanes(&keys, parents);
                    for ((pair, parents), left) in pairs.iter_mut().zip(parents).zip(hashes) {
                        let right = xor(parents, left);
                        sum = [xor(sum[0], left), xor(sum[1], right)];
                        *pair = if MASKED {
                            alternated(and(left, mask), and(right, mask))
                        } else {
                            alternated(left, right)
                        };
                    }
                    *children = bytemuck::cast(pairs);
                }
                sum
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
                let change = [[Block::ZERO, Block::ONE]; WIDTH / 2];
                let change = orthomorphism(bytemuck::cast(change));
                let mut sum = zero();
                for (parents, out) in parents.as_chunks::<{ LANES / 2 }>().0.iter().zip(chunks) {
                    let mut parents: [Vector; VECTORS / 2] = bytemuck::cast(*parents);
                    for parents in &mut parents {
                        *parents = orthomorphism(*parents);
                    }
                    let mut x = twice(parents);
                    for lanes in &mut x {
                        *lanes = xor(*lanes, change);
                    }
                    let hashes = hash_lanes(&keys, x);
                    for hashes in hashes {
                        sum = xor(sum, hashes);
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

#[cfg(target_arch = "x86_64")]
kernels!(x1, "aes,avx2", 2);
#[cfg(target_arch = "x86_64")]
kernels!(x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2", 4);
#[cfg(target_arch = "x86_64")]
kernels!(x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw", 4);
#[cfg(target_arch = "aarch64")]
kernels!(x2, "neon,aes", 6);
