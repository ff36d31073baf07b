//! The code computed from its definition, with whole matrices and lists: slow, for tests only.

use volery_primitives::{Block, aes::Aes128};

use super::{Term, buckets_for};

/// The words of a stream, of any length.
struct Stream {
    aes: Aes128,
    counter: u128,
}

impl Stream {
    fn new(seed: Block, purpose: u128, stage: u128, bucket: usize) -> Self {
        Self {
            aes: Aes128::new(seed),
            counter: (bucket as u128) << 80 | stage << 72 | purpose << 64,
        }
    }

    /// The blocks of the next `n` words of `bits` bits, cut.
    fn words(&mut self, n: usize, bits: u32) -> Vec<u32> {
        let per_block = 128 / bits as usize;
        let mut words = Vec::new();
        while words.len() < n {
            let block = u128::from(self.aes.encrypt(Block::from(self.counter)));
            self.counter += 1;
            let cut = |i| (block >> (bits as usize * i)) as u32 & (u32::MAX >> (32 - bits));
            words.extend((0..per_block).map(cut));
        }
        words.truncate(n);
        words
    }
}

/// A permutation: the source place of each of its elements, in order.
pub(super) fn permutation(seed: Block, stage: u8, runs: &[usize], len: usize) -> Vec<usize> {
    let stage = u128::from(stage);
    let count = buckets_for(len);
    let mut buckets = vec![Vec::new(); count];
    let mut stream = Stream::new(seed, 0, stage, 0);
    let mut place = 0;
    // Each run begins a block of eight numbers.
    for run in runs {
        for word in stream.words(*run, 16) {
            buckets[word as usize % count].push(place);
            place += 1;
        }
    }
    assert_eq!(place, len);
    let mut order = Vec::with_capacity(len);
    for (number, bucket) in buckets.iter_mut().enumerate() {
        let mut draws = Stream::new(seed, 1, stage, number);
        let mut again = Stream::new(seed, 2, stage, number);
        let words = draws.words(bucket.len(), 32);
        for mut word in words {
            let left = bucket.len() as u64;
            // Rejects words whose multiples of 2^32/left are hit less often than the others
            while (u64::from(word) * left) % (1 << 32) < (1 << 32) % left {
                word = again.words(1, 32)[0];
            }
            order.push(bucket.swap_remove(((u64::from(word) * left) >> 32) as usize));
        }
    }
    order
}

/// The number of elements that a permutation takes from each bucket, in order.
pub(super) fn sizes(seed: Block, stage: u8, runs: &[usize], len: usize) -> Vec<usize> {
    let count = buckets_for(len);
    let mut sizes = vec![0; count];
    let mut stream = Stream::new(seed, 0, u128::from(stage), 0);
    for run in runs {
        for word in stream.words(*run, 16) {
            sizes[word as usize % count] += 1;
        }
    }
    sizes
}

/// The sets of at most three of eight variables.
fn sets() -> Vec<usize> {
    (0..256usize).filter(|set| set.count_ones() <= 3).collect()
}

/// `x = B(P2(S(P1(S(e)))))`, with `S` the running sums, `P1` and `P2` the permutations, and `B`
/// blocks of the transposed matrix of the Reed-Muller code.
pub(super) fn compress<T: Term>(seed: Block, e: &[T]) -> Vec<T> {
    let first = permutation(seed, 0, &[e.len()], e.len());
    let runs = sizes(seed, 0, &[e.len()], e.len());
    let second = permutation(seed, 1, &runs, e.len());
    let mut values = e.to_vec();
    for order in [first, second] {
        let mut sum = T::zeroed();
        for value in &mut values {
            sum = sum.plus(*value);
            *value = sum;
        }
        values = order.iter().map(|place| values[*place]).collect();
    }
    let sets = sets();
    let blocks = values.chunks(256).flat_map(|block| {
        sets.iter().map(|set| {
            let covered = (0..256).filter(|point| point & set == *set);
            covered.fold(T::zeroed(), |sum, point| sum.plus(block[point]))
        })
    });
    blocks.collect()
}

/// Row `i` of the generator matrix `G`, for each message bit: the transpose of the matrix of
/// [`compress`], over F2.
pub(super) fn encode(seed: Block, message: &[bool]) -> Vec<bool> {
    let sets = sets();
    let len = message.len() / sets.len() * 256;
    let first = permutation(seed, 0, &[len], len);
    let second = permutation(seed, 1, &sizes(seed, 0, &[len], len), len);
    let mut word: Vec<bool> = message
        .chunks(sets.len())
        .flat_map(|message| {
            let sets = &sets;
            (0..256).map(move |point| {
                let bits = message.iter().zip(sets);
                bits.fold(false, |sum, (bit, set)| sum ^ (*bit && point & set == *set))
            })
        })
        .collect();
    for order in [second, first] {
        let mut moved = vec![false; len];
        for (value, place) in word.iter().zip(&order) {
            moved[*place] = *value;
        }
        // The transpose of a running sum: a sum from the other end.
        let mut sum = false;
        for value in moved.iter_mut().rev() {
            sum ^= *value;
            *value = sum;
        }
        word = moved;
    }
    word
}
