//! Sums of AES key streams on vectors of blocks: a chunk of the streams never leaves the registers
//! and the first-level cache.

use crate::Block;
use crate::fold::Finish;

use crate::arch::native::aes::Schedule;

macro_rules! kernels {
    ($module:ident, $features:literal, $vectors:literal) => {
        pub(crate) mod $module {
            use super::*;
            use crate::arch::native::vector::$module::*;

            /// Vectors of a chunk: with those of the next leaves, enough to hide the latency of a
            /// round.
            const VECTORS: usize = $vectors;

            /// The sums of one chunk: of the streams whose number has each of `K` bits set, and of
            /// all.
            struct Sums<const K: usize, const V: usize> {
                rows: [[Vector; V]; K],
                all: [Vector; V],
            }

            /// The `K` rows of a tree of `2^K` leaves. The caller checks the arguments; the
            /// counters do not carry into their upper words.
            #[target_feature(enable = $features)]
            pub(crate) fn fold<'a, const K: usize>(
                leaves: impl Iterator<Item = &'a Schedule> + Clone,
                counter: u128,
                rows: &mut [Block],
                stride: usize,
                mut finish: Finish<'_>,
            ) {
                let n = finish.len();
                let first = repeated(Block::new(counter));
                let lanes: [Block; WIDTH] = std::array::from_fn(|lane| Block::new(lane as u128));
                let mut next = add_words(first, bytemuck::cast(lanes));
                let step = repeated(Block::new(WIDTH as u128));
                let mut done = 0;
                while done + WIDTH * VECTORS <= n {
                    let mut counters = [next; VECTORS];
                    for counter in &mut counters {
                        *counter = next;
                        next = add_words(next, step);
                    }
                    let sums = sums::<K, VECTORS>(leaves.clone(), counters);
                    write(&sums, done, WIDTH * VECTORS, rows, stride, &mut finish);
                    done += WIDTH * VECTORS;
                }
                while done < n {
                    let sums = sums::<K, 1>(leaves.clone(), [next]);
                    next = add_words(next, step);
                    write(&sums, done, WIDTH.min(n - done), rows, stride, &mut finish);
                    done += WIDTH;
                }
            }

            /// The leaves are added up as in a binary counter: whenever two neighbours of one
            /// height are complete, the right one (all its leaves have the bit of that height set)
            /// is added to the sum of that bit, and both are merged. Two leaves are made at a time.
            #[inline]
            #[target_feature(enable = $features)]
            fn sums<'a, const K: usize, const V: usize>(
                mut leaves: impl Iterator<Item = &'a Schedule>,
                counters: [Vector; V],
            ) -> Sums<K, V> {
                let zero = [zero(); V];
                let mut rows = [zero; K];
                // The waiting left neighbours, by height; height 0 never waits.
                let mut waiting = [zero; K];
                let mut all = zero;
                let mut pair = 0_usize;
                while let (Some(left), Some(right)) = (leaves.next(), leaves.next()) {
                    let [left, right] = encrypt([left, right], counters);
                    all = add(left, right);
                    rows[0] = add(rows[0], right);
                    let height = 1 + pair.trailing_ones() as usize;
                    for j in 1..height.min(K) {
                        rows[j] = add(rows[j], all);
                        all = add(all, waiting[j]);
                    }
                    if height < K {
                        waiting[height] = all;
                    }
                    pair += 1;
                }
                Sums { rows, all }
            }

            #[inline]
            #[target_feature(enable = $features)]
            fn add<const V: usize>(mut a: [Vector; V], b: [Vector; V]) -> [Vector; V] {
                for (a, b) in a.iter_mut().zip(b) {
                    *a = xor(*a, b);
                }
                a
            }

            /// The encryptions under both keys, computed in parallel.
            #[inline]
            #[target_feature(enable = $features)]
            fn encrypt<const V: usize>(leaves: [&Schedule; 2], x: [Vector; V]) -> [[Vector; V]; 2] {
                let keys = leaves.map(Schedule::keys);
                let key = |leaf: usize, round: usize| repeated(bytemuck::cast(keys[leaf][round]));
                let mut y = [x; 2];
                for leaf in 0..2 {
                    for y in &mut y[leaf] {
                        *y = xor(*y, key(leaf, 0));
                    }
                }
                for round in 1..10 {
                    for leaf in 0..2 {
                        for y in &mut y[leaf] {
                            *y = aes_round(*y, key(leaf, round));
                        }
                    }
                }
                for leaf in 0..2 {
                    for y in &mut y[leaf] {
                        *y = aes_last_round(*y, key(leaf, 10));
                    }
                }
                y
            }

            /// Writes `blocks` blocks of each sum.
            #[inline]
            #[target_feature(enable = $features)]
            fn write<const K: usize, const V: usize>(
                sums: &Sums<K, V>,
                start: usize,
                blocks: usize,
                rows: &mut [Block],
                stride: usize,
                finish: &mut Finish<'_>,
            ) {
                let all = match finish {
                    Finish::Sum(sum) => {
                        store(&sums.all, &mut sum[start..][..blocks]);
                        sums.all
                    }
                    Finish::Correct { correction, .. } => {
                        add(sums.all, load(&correction[start..][..blocks]))
                    }
                };
                for (j, values) in sums.rows.iter().enumerate() {
                    let row = &mut rows[j * stride + start..][..blocks];
                    if let Finish::Correct { masks, .. } = finish {
                        let mask = repeated(masks[j]);
                        let masked = all.map(|all| and(all, mask));
                        store(&add(*values, masked), row);
                    } else {
                        store(values, row);
                    }
                }
            }

            /// Loads up to `V` vectors of blocks, padded with zeros.
            #[inline]
            #[target_feature(enable = $features)]
            fn load<const V: usize>(blocks: &[Block]) -> [Vector; V] {
                let mut vectors = [zero(); V];
                for (vector, blocks) in vectors.iter_mut().zip(blocks.chunks(WIDTH)) {
                    let mut padded = [Block::ZERO; WIDTH];
                    match <[Block; WIDTH]>::try_from(blocks) {
                        Ok(full) => padded = full,
                        Err(_) => padded[..blocks.len()].copy_from_slice(blocks),
                    }
                    *vector = bytemuck::cast(padded);
                }
                vectors
            }

            /// Stores up to `V` vectors of blocks.
            #[inline]
            #[target_feature(enable = $features)]
            fn store<const V: usize>(vectors: &[Vector; V], blocks: &mut [Block]) {
                for (vector, blocks) in vectors.iter().zip(blocks.chunks_mut(WIDTH)) {
                    let vector: [Block; WIDTH] = bytemuck::cast(*vector);
                    match <&mut [Block; WIDTH]>::try_from(&mut *blocks) {
                        Ok(full) => *full = vector,
                        Err(_) => blocks.copy_from_slice(&vector[..blocks.len()]),
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
kernels!(x2, "vaes,vpclmulqdq,aes,pclmulqdq,avx2", 4);
#[cfg(target_arch = "x86_64")]
kernels!(x4, "vaes,vpclmulqdq,aes,pclmulqdq,avx2,avx512f,avx512bw", 4);
#[cfg(target_arch = "aarch64")]
kernels!(x2, "neon,aes", 4);
