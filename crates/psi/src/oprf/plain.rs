//! A plain reference implementation of Figure 2: rows are lists of bits, products are made bit by
//! bit, and each row is computed separately. It shares nothing with the tested code except AES of
//! one block and the random oracle, which draws the code.

use std::cell::RefCell;

use volery_channel::SessionId;
use volery_primitives::Block;
use volery_primitives::aes::Aes128;
use volery_primitives::ro::RandomOracle;

use crate::code::MAX_WIDTH;

/// Bit `i` has value `2^i`; AES gets a block as bytes, the least significant first.
pub(super) type Bits = Vec<bool>;

fn aes(key: u128) -> Aes128 {
    Aes128::new(Block::new(key))
}

fn encrypt(key: &Aes128, x: u128) -> u128 {
    key.encrypt(Block::new(x)).into()
}

/// The product modulo `X^128 + X^7 + X^2 + X + 1`.
pub(super) fn times(a: u128, b: u128) -> u128 {
    let (mut a, mut product) = (a, 0);
    for i in 0..128 {
        if b >> i & 1 == 1 {
            product ^= a;
        }
        a = a << 1 ^ if a >> 127 == 1 { 0x87 } else { 0 };
    }
    product
}

/// The code, the weights and the hash derived from a seed.
pub(super) struct Code {
    pub(super) width: usize,
    keys: Vec<Aes128>,
    weights: Vec<u128>,
    hash: u128,
}

impl Code {
    pub(super) fn new(seed: &[u8; 32], width: usize) -> Self {
        let mut bytes = [0; 9 * 16];
        RandomOracle::new("volery oprf: code")
            .absorb(seed)
            .absorb_u64(width as u64)
            .finish_into(&mut bytes);
        let (blocks, _) = bytes.as_chunks();
        let drawn: Vec<_> = blocks.iter().map(|&bytes| u128::from_le_bytes(bytes)).collect();
        Self {
            width,
            keys: drawn[..4].iter().map(|&key| aes(key)).collect(),
            weights: drawn[4..8].to_vec(),
            hash: drawn[8],
        }
    }

    /// `C(x)`.
    pub(super) fn word(&self, x: u128) -> Bits {
        let blocks: Vec<_> = self.keys.iter().map(|key| encrypt(key, x)).collect();
        (0..self.width).map(|i| blocks[i / 128] >> (i % 128) & 1 == 1).collect()
    }

    /// `L(row)`.
    pub(super) fn fold(&self, row: &[bool]) -> u128 {
        let blocks = row.chunks(128).map(block);
        blocks.zip(&self.weights).fold(0, |sum, (block, &weight)| sum ^ times(block, weight))
    }

    /// `H(j, x, y)`.
    pub(super) fn hash(&self, instance: u64, x: u128, y: u128) -> u128 {
        encrypt(&aes(self.hash ^ x ^ u128::from(instance) << 64), y) ^ y
    }
}

/// At most 128 bits.
pub(super) fn block(bits: &[bool]) -> u128 {
    bits.iter().rev().fold(0, |block, &bit| block << 1 | u128::from(bit))
}

pub(super) fn add(a: &[bool], b: &[bool]) -> Bits {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

pub(super) fn and(a: &[bool], b: &[bool]) -> Bits {
    a.iter().zip(b).map(|(a, b)| a & b).collect()
}

/// The keys of the OTs: both for each column, and the bits of `s`.
pub(super) struct Ots {
    pub(super) keys: Vec<[u128; 2]>,
    pub(super) s: Bits,
    expanded: Vec<[Aes128; 2]>,
    /// The last used block of each stream, and its number.
    last: RefCell<(u64, Vec<[u128; 2]>)>,
}

/// The session of all OTs here.
pub(super) const SESSION: SessionId = SessionId::from_bytes([7; 32]);

/// The high words of the first counters: eight bytes of the oracle for each column.
pub(super) fn starts() -> impl Iterator<Item = u128> {
    let mut oracle = RandomOracle::new("volery oprf: starts of the columns");
    oracle.absorb(SESSION.as_bytes());
    let mut bytes = [0; 8 * MAX_WIDTH];
    oracle.finish_into(&mut bytes);
    let words = bytes.as_chunks().0.to_vec().into_iter();
    words.map(|word| u64::from_le_bytes(word).into())
}

impl Ots {
    pub(super) fn new(keys: Vec<[u128; 2]>, s: Bits) -> Self {
        Self {
            expanded: keys.iter().map(|pair| pair.map(aes)).collect(),
            last: RefCell::new((u64::MAX, Vec::new())),
            keys,
            s,
        }
    }

    /// Row `j` of the matrix whose columns are the streams of the keys that `which` picks.
    fn row(&self, j: u64, width: usize, which: impl Fn(usize) -> usize) -> Bits {
        let (number, streams) = &mut *self.last.borrow_mut();
        if *number != j / 128 {
            *number = j / 128;
            let columns = self.expanded.iter().zip(starts());
            let blocks = |(pair, start): (&[Aes128; 2], u128)| {
                let counter = (start << 64) + u128::from(j / 128);
                pair.each_ref().map(|key| encrypt(key, counter))
            };
            *streams = columns.map(blocks).collect();
        }
        let bit = |column: usize| streams[column][which(column)] >> (j % 128) & 1 == 1;
        (0..width).map(bit).collect()
    }

    /// Steps 2 and 5: `u_j` and `F_j(r_j)`.
    pub(super) fn receive(&self, code: &Code, j: u64, input: Block) -> (Bits, Block) {
        let t = self.row(j, code.width, |_| 0);
        let other = self.row(j, code.width, |_| 1);
        let u = add(&add(&t, &other), &code.word(input.into()));
        (u, Block::new(code.hash(j, input.into(), code.fold(&t))))
    }

    /// Steps 3 and 4: `q_j`.
    pub(super) fn key(&self, code: &Code, j: u64, u: &[bool]) -> Bits {
        let own = self.row(j, code.width, |column| usize::from(self.s[column]));
        add(&own, &and(u, &self.s[..code.width]))
    }

    /// `F_j(x)` as in Figure 2: the row `q_j + C(x)*s` is made first, then folded and hashed.
    pub(super) fn evaluate(&self, code: &Code, j: u64, q: &[bool], x: Block) -> Block {
        let row = add(q, &and(&code.word(x.into()), &self.s[..code.width]));
        Block::new(code.hash(j, x.into(), code.fold(&row)))
    }
}

/// The bytes of the message for consecutive instances: for each run of 2048 of them the first 128
/// bits of all rows, then the next, up to the last ones, which are fewer.
pub(super) fn message(rows: &[Bits]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for rows in rows.chunks(2048) {
        for start in (0..rows[0].len()).step_by(128) {
            for row in rows {
                let bits = &row[start..row.len().min(start + 128)];
                bytes.extend_from_slice(&block(bits).to_le_bytes()[..bits.len() / 8]);
            }
        }
    }
    bytes
}
