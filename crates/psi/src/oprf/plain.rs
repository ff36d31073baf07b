//! A plain reference implementation of Figure 2: rows are lists of bits, AES works byte by byte,
//! products bit by bit, and each row is computed separately. It shares nothing with the tested code
//! except the random oracle, which draws the code.

use std::cell::RefCell;
use std::sync::OnceLock;

use volery_channel::SessionId;
use volery_primitives::Block;
use volery_primitives::ro::RandomOracle;

use crate::code::MAX_WIDTH;

/// Bit `i` has value `2^i`; AES gets a block as bytes, the least significant first.
pub(super) type Bits = Vec<bool>;

/// AES-128 of FIPS 197 under one key.
pub(super) struct Aes([[u8; 16]; 11]);

impl Aes {
    pub(super) fn new(key: u128) -> Self {
        let mut keys = [[0; 16]; 11];
        keys[0] = key.to_le_bytes();
        let mut constant = 1;
        for round in 1..11 {
            let before = keys[round - 1];
            let mut word = [before[13], before[14], before[15], before[12]].map(substitute);
            word[0] ^= constant;
            constant = double(constant);
            for (i, byte) in before.into_iter().enumerate() {
                word[i % 4] ^= byte;
                keys[round][i] = word[i % 4];
            }
        }
        Self(keys)
    }

    pub(super) fn encrypt(&self, x: u128) -> u128 {
        let add = |state: [u8; 16], round: usize| -> [u8; 16] {
            std::array::from_fn(|i| state[i] ^ self.0[round][i])
        };
        let mut state = add(x.to_le_bytes(), 0);
        for round in 1..11 {
            let bytes = state.map(substitute);
            // Row `i % 4` turns left by as many columns; columns have four bytes.
            state = std::array::from_fn(|i| bytes[(i + 4 * (i % 4)) % 16]);
            if round < 10 {
                let before = state;
                state = std::array::from_fn(|i| {
                    let column = |step: usize| before[i / 4 * 4 + (i + step) % 4];
                    double(column(0)) ^ double(column(1)) ^ column(1) ^ column(2) ^ column(3)
                });
            }
            state = add(state, round);
        }
        u128::from_le_bytes(state)
    }
}

/// `X*a` in GF(2^8).
fn double(a: u8) -> u8 {
    a << 1 ^ if a >> 7 == 1 { 0x1b } else { 0 }
}

/// The S-box: the inverse in GF(2^8), found by trying, and an affine map.
fn substitute(byte: u8) -> u8 {
    static TABLE: OnceLock<[u8; 256]> = OnceLock::new();
    let times = |a: u8, b: u8| {
        let (mut a, mut product) = (a, 0);
        for i in 0..8 {
            product ^= if b >> i & 1 == 1 { a } else { 0 };
            a = double(a);
        }
        product
    };
    let entry = |byte: usize| {
        let inverse = (0..=255).find(|&other| times(byte as u8, other) == 1);
        let inverse = inverse.unwrap_or(0);
        (0..5).fold(0x63, |sum, turn| sum ^ inverse.rotate_left(turn))
    };
    TABLE.get_or_init(|| std::array::from_fn(entry))[usize::from(byte)]
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
    keys: Vec<Aes>,
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
            keys: drawn[..4].iter().map(|&key| Aes::new(key)).collect(),
            weights: drawn[4..8].to_vec(),
            hash: drawn[8],
        }
    }

    /// `C(x)`.
    pub(super) fn word(&self, x: u128) -> Bits {
        let blocks: Vec<_> = self.keys.iter().map(|key| key.encrypt(x)).collect();
        (0..self.width).map(|i| blocks[i / 128] >> (i % 128) & 1 == 1).collect()
    }

    /// `L(row)`.
    pub(super) fn fold(&self, row: &[bool]) -> u128 {
        let blocks = row.chunks(128).map(block);
        blocks.zip(&self.weights).fold(0, |sum, (block, &weight)| sum ^ times(block, weight))
    }

    /// `H(j, x, y)`.
    pub(super) fn hash(&self, instance: u64, x: u128, y: u128) -> u128 {
        Aes::new(self.hash ^ x ^ u128::from(instance) << 64).encrypt(y) ^ y
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
    expanded: Vec<[Aes; 2]>,
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
            expanded: keys.iter().map(|pair| pair.map(Aes::new)).collect(),
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
            let blocks = |(pair, start): (&[Aes; 2], u128)| {
                let counter = (start << 64) + u128::from(j / 128);
                pair.each_ref().map(|key| key.encrypt(counter))
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

/// FIPS 197, appendix B; the product in a known case.
#[test]
fn the_plain_reading_is_sound() {
    let bytes = |hex: u128| u128::from_le_bytes(hex.to_be_bytes());
    let aes = Aes::new(bytes(0x2b7e_1516_28ae_d2a6_abf7_1588_09cf_4f3c));
    let out = aes.encrypt(bytes(0x3243_f6a8_885a_308d_3131_98a2_e037_0734));
    assert_eq!(out, bytes(0x3925_841d_02dc_09fb_dc11_8597_196a_0b32));
    assert_eq!(times(1 << 127, 2), 0x87);
    assert_eq!(times(3, 3), 5);
    assert_eq!(block(&[true, false, true]), 5);
}
