//! AES-128 a block at a time, over the key schedule and the encryption of each instruction set:
//! what the kernels for vectors leave over. A loop over few blocks that do not depend on each other
//! keeps the unit for rounds busy, too.

macro_rules! kernels {
    ($features:literal) => {
        /// `AES(x) ^ x`.
        #[inline]
        #[target_feature(enable = $features)]
        fn hash(keys: &[Block; 11], x: Block) -> Block {
            encrypt(keys, x) ^ x
        }

        #[target_feature(enable = $features)]
        pub(crate) fn encrypt_blocks(schedule: &Schedule, x: &mut [Block]) {
            for x in x {
                *x = encrypt(schedule.keys(), *x);
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn ctr(schedule: &Schedule, counter: u128, out: &mut [Block]) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = encrypt(schedule.keys(), Block::new(counter.wrapping_add(i as u128)));
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn feed_forward(schedule: &Schedule, x: &[Block], out: &mut [Block]) {
            for (x, out) in x.iter().zip(out) {
                *out = hash(schedule.keys(), *x);
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn double(
            schedules: [&Schedule; 2],
            parents: &[Block],
            children: &mut [Block],
        ) -> [Block; 2] {
            let mut sums = [Block::ZERO; 2];
            for (i, child) in children.iter_mut().enumerate() {
                *child = hash(schedules[i % 2].keys(), parents[i / 2]);
                sums[i % 2] ^= *child;
            }
            sums
        }

        /// The two words of each hash, of the last one maybe the first alone.
        #[inline]
        #[target_feature(enable = $features)]
        fn write_words<const CIRCULAR: bool>(
            schedule: &Schedule,
            parents: &[Block],
            out: &mut [u64],
        ) {
            let (pairs, last) = out.as_chunks_mut::<2>();
            let input = |parent| if CIRCULAR { orthomorphism(parent) } else { parent };
            for (pair, &parent) in pairs.iter_mut().zip(parents) {
                *pair = bytemuck::cast(hash(schedule.keys(), input(parent)));
            }
            if let [word] = last {
                *word = hash(schedule.keys(), input(parents[pairs.len()])).low();
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn leaf_pairs(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
            write_words::<false>(schedule, parents, out);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn split(
            schedule: &Schedule,
            parents: &[Block],
            children: &mut [Block],
            mask: Block,
        ) -> [Block; 2] {
            let mut sums = [Block::ZERO; 2];
            for (pair, &parent) in children.as_chunks_mut::<2>().0.iter_mut().zip(parents) {
                let left = hash(schedule.keys(), orthomorphism(parent));
                let right = parent ^ left;
                *pair = [left & mask, right & mask];
                sums = [sums[0] ^ left, sums[1] ^ right];
            }
            sums
        }

        #[target_feature(enable = $features)]
        pub(crate) fn hash_words(schedule: &Schedule, parents: &[Block], out: &mut [u64]) {
            write_words::<true>(schedule, parents, out);
        }

        #[target_feature(enable = $features)]
        pub(crate) fn hash_pairs(
            schedule: &Schedule,
            parents: &[Block],
            out: &mut [Block],
        ) -> [Block; 2] {
            let mut sums = [Block::ZERO; 2];
            for (i, out) in out.iter_mut().enumerate() {
                let parent = parents[i / 2] ^ Block::new((i % 2) as u128);
                *out = hash(schedule.keys(), orthomorphism(parent));
                sums[i % 2] ^= *out;
            }
            sums
        }

        #[target_feature(enable = $features)]
        pub(crate) fn rekeyed(keys: &[Block], x: &mut [Block]) {
            for (key, x) in keys.iter().zip(x) {
                *x = hash(Schedule::new(*key).keys(), *x);
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn rekeyed_circular(keys: &[Block], x: &mut [Block]) {
            for (key, x) in keys.iter().zip(x) {
                *x = hash(Schedule::new(*key).keys(), orthomorphism(*x));
            }
        }

        #[target_feature(enable = $features)]
        pub(crate) fn rekeyed_circular_pairs(keys: &[Block], x: &mut [[Block; 2]]) {
            for (key, [first, second]) in keys.iter().zip(x) {
                let schedule = Schedule::new(*key);
                *first = hash(schedule.keys(), orthomorphism(*first));
                *second = hash(schedule.keys(), orthomorphism(*second));
            }
        }
    };
}

pub(crate) use kernels;
