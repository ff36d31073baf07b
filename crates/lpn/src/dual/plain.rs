//! The code computed from the definition in the paper, with whole matrices and lists: slow, for
//! tests only.

use volery_primitives::{Block, aes::Aes128};

use super::Term;

/// Words of 32 bits of a stream, from the first on, low part of a block first.
fn words(seed: Block, stream: u128, n: usize) -> Vec<u32> {
    let aes = Aes128::new(seed);
    let blocks = (0..n.div_ceil(4) as u128).map(|i| aes.encrypt(Block::from((stream << 64) + i)));
    let all = blocks.flat_map(|block| (0..4).map(move |i| (u128::from(block) >> (32 * i)) as u32));
    all.take(n).collect()
}

/// For each place the earlier ones that a convolution adds to it.
pub(super) fn state(seed: Block, number: u128, n: usize) -> Vec<Vec<usize>> {
    let words = words(seed, number, n);
    let adds = |i: usize, from: usize| {
        // Bit 24 is the first of the group of four that `i` is in.
        let bit = 24 + from as isize - (i / 4 * 4) as isize;
        words[i] >> bit & 1 == 1
    };
    (0..n).map(|i| (i.saturating_sub(24)..i).filter(|from| adds(i, *from)).collect()).collect()
}

/// The seven columns of each row in which the expander has a one.
pub(super) fn expander(seed: Block, n: usize) -> Vec<[usize; 7]> {
    let words = words(seed, 2, 7 * n);
    let column = |row: usize, part: usize| {
        let (start, end) = (part * n / 7, (part + 1) * n / 7);
        let place = u128::from(words[part * n + row]) * (end - start) as u128 / (1 << 32);
        start + place as usize
    };
    (0..n).map(|row| std::array::from_fn(|part| column(row, part))).collect()
}

/// `x = e1 + B*A*A'*e2`.
pub(super) fn compress<T: Term>(seed: Block, e: &[T]) -> Vec<T> {
    let (e1, e2) = e.split_at(e.len() / 2);
    let mut z = e2.to_vec();
    for number in [0, 1] {
        for (i, state) in state(seed, number, z.len()).iter().enumerate() {
            for from in state {
                z[i] = z[i].plus(z[*from]);
            }
        }
    }
    let rows = expander(seed, z.len());
    let sums = rows.iter().zip(e1);
    sums.map(|(row, e)| row.iter().fold(*e, |sum, column| sum.plus(z[*column]))).collect()
}

/// The code word of a message: the message, then its product with `B*A*A'`, over F2.
pub(super) fn encode(seed: Block, message: &[bool]) -> Vec<bool> {
    let n = message.len();
    let mut p = vec![false; n];
    for (row, bit) in expander(seed, n).iter().zip(message) {
        for column in row {
            p[*column] ^= bit;
        }
    }
    for number in [1, 0] {
        // From the last place on: the value of a place is final when all later ones have been added
        // to it.
        for (i, state) in state(seed, number, n).iter().enumerate().rev() {
            for to in state {
                p[*to] ^= p[i];
            }
        }
    }
    [message.to_vec(), p].concat()
}
