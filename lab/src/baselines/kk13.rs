//! Random 1-out-of-256 OT by OT extension with a code.
//!
//! Kolesnikov, Kumaresan, *Improved OT Extension for Transferring Short Secrets*, CRYPTO 2013, with
//! the Walsh-Hadamard code `C` of length 256: bit `i` of `C(c)` is the parity of `i AND c`, so two
//! code words differ in 128 places. Sums are XOR, `*` between rows is AND. With the keys `K_i0`,
//! `K_i1` of 256 base OTs, the messages running the other way:
//!
//! ```text
//! Sender: s (256 bits), keys K_i for the bits s_i   Receiver: choices c_j below 256
//! 1.                                                t_i = G(K_i0), u_i = G(K_i0) + G(K_i1) + column i of C(c_j)
//! 2.  <----------------- u_i ----------------------
//! 3.  q_i = G(K_i) + s_i*u_i, so that row j is
//!     q_j = t_j + C(c_j)*s
//! 4.  m_jc = H(j, L(q_j) + L(C(c)*s)) for any c     m_j = H(j, L(t_j)), which is m_jc for its own choice
//! ```
//!
//! The base OTs are 256 random OTs from [`iknp`], which in turn extends 128.
//!
//! A row is hashed as in `volery-psi`, so that the two protocols differ only in the code and its
//! use: `L` folds a row to a block, `L(r) = w_1*r_1 + w_2*r_2` over GF(2^128) with public random
//! weights, and `H(j, y) = AES_{h+j}(y) + y`. `j` counts the OTs of the object and never repeats.
//! (The paper has a random oracle of the row. `volery_psi::oprf` explains why folding loses at most
//! a bit where two code words differ in 128 places.) As `L` is linear, the 256 blocks `L(C(c)*s)`
//! are computed once.
//!
//! Bit 0 of every code word is zero, so column 0 carries no information and costs a 256th of the
//! traffic; the paper counts 256 columns, and so do we.
//!
//! The sender looks up `L(C(c)*s)` by its own `c`, whose bytes come from its items: memory accesses
//! follow the items, as in cuckoo hashing.
//!
//! Security: semi-honest. The receiver would have to guess the 128 bits of `s` where two code words
//! differ. A malicious receiver may send columns that belong to no code word and learn bits of `s`:
//! there is no check.
//!
//! Cost of the setup: that of 256 random OTs of `iknp`, 4,128 bytes from the sender and 8,192 from
//! the receiver. Cost of an extension: 1 message from the receiver, 32 bytes for each OT, their
//! number rounded up to a multiple of 128.

use volery_channel::{Channel, Result, SessionId};
use volery_ot::{convert, iknp};
use volery_primitives::aes::{Aes128, rekeyed};
use volery_primitives::clmul::gf128_combine;
use volery_primitives::ro::RandomOracle;
use volery_primitives::transpose::transpose_128;
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::Zeroizing;

/// Bits of a code word, and columns of the matrix.
pub(crate) const WIDTH: usize = 256;

/// A row of the matrix, or a code word: bit `i` is bit `i % 128` of block `i / 128`.
pub(crate) type Row = [Block; 2];

/// The party that can compute all 256 messages of each OT.
pub(crate) struct Sender {
    s: Zeroizing<Row>,
    columns: Vec<Aes128>,
    progress: Progress,
    hash: RowHash,
    /// `L(C(c)*s)` for each choice `c`.
    shifts: Zeroizing<Vec<Block>>,
}

impl Sender {
    /// Run the base OTs.
    pub(crate) fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let source = iknp::Receiver::setup(session, rng.fork("base OTs"), channel)?;
        let mut s = Zeroizing::new([Block::ZERO; 2]);
        let mut keys = Zeroizing::new(vec![Block::ZERO; WIDTH]);
        let s_bytes = Block::as_bytes_mut(&mut s[..]);
        convert::Receiver::new(source, session).random(s_bytes, &mut keys, channel)?;
        let hash = RowHash::new(session);
        Ok(Self {
            shifts: hash.shifts(&s),
            s,
            columns: keys.iter().map(|&key| Aes128::new(key)).collect(),
            progress: Progress::default(),
            hash,
        })
    }

    /// The next `count` OTs, as the peer of [`Receiver::extend`].
    pub(crate) fn extend(&mut self, count: usize, channel: &mut Channel) -> Result<Batch> {
        let (first, first_block) = self.progress.take(count);
        let mut u = vec![Block::ZERO; WIDTH * count.div_ceil(128)];
        channel.recv_blocks(&mut u)?; // step 2
        let q = self.columns_of_sender(first_block, u); // step 3
        Ok(Batch { first, folded: self.hash.folded_rows(&q, count) })
    }

    /// Step 4: for each OT of the batch, by its index, and choice the message that belongs to it.
    pub(crate) fn messages(&self, batch: &Batch, of: &[(u32, u8)], messages: &mut [Block]) {
        assert_eq!(of.len(), messages.len(), "one message for each choice");
        for (&(index, choice), message) in of.iter().zip(messages.iter_mut()) {
            *message = batch.folded[index as usize] ^ self.shifts[usize::from(choice)];
        }
        let numbers = of.iter().map(|&(index, _)| batch.first + u64::from(index));
        self.hash.hash(numbers, messages);
    }

    /// Step 3: the columns `q_i` replace the `u_i`.
    fn columns_of_sender(&self, first_block: u128, mut u: Vec<Block>) -> Zeroizing<Vec<Block>> {
        let blocks = u.len() / WIDTH;
        if blocks == 0 {
            return Zeroizing::new(u);
        }
        let s = Block::as_bytes(&self.s[..]);
        let mut stream = Zeroizing::new(vec![Block::ZERO; blocks]);
        for (i, (key, u)) in self.columns.iter().zip(u.chunks_exact_mut(blocks)).enumerate() {
            key.ctr(first_block, &mut stream);
            let mask = Block::select_mask(bits::bit(s, i));
            for (u, stream) in u.iter_mut().zip(stream.iter()) {
                *u = *stream ^ (mask & *u);
            }
        }
        Zeroizing::new(u)
    }
}

/// The sender's state for the OTs of one extension.
pub(crate) struct Batch {
    /// Number of the first of them.
    first: u64,
    /// `L(q_j)`.
    folded: Zeroizing<Vec<Block>>,
}

/// The party that gets one message of each OT.
pub(crate) struct Receiver {
    columns: Vec<[Aes128; 2]>,
    progress: Progress,
    hash: RowHash,
}

impl Receiver {
    /// Run the base OTs, as the peer of [`Sender::setup`].
    pub(crate) fn setup(session: SessionId, mut rng: Prg, channel: &mut Channel) -> Result<Self> {
        let source = iknp::Sender::setup(None, session, rng.fork("base OTs"), channel)?;
        let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; WIDTH]);
        convert::Sender::new(source, session).random(&mut keys, channel)?;
        Ok(Self {
            columns: keys.iter().map(|pair| pair.map(Aes128::new)).collect(),
            progress: Progress::default(),
            hash: RowHash::new(session),
        })
    }

    /// The next OTs: one for each choice, whose message is written into `messages`.
    pub(crate) fn extend(
        &mut self,
        choices: &[u8],
        messages: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(choices.len(), messages.len(), "one message for each choice");
        let (first, first_block) = self.progress.take(choices.len());
        let (t, u) = self.columns_of_receiver(first_block, choices); // step 1
        channel.send_blocks(&u)?; // step 2
        channel.flush()?;
        messages.copy_from_slice(&self.hash.folded_rows(&t, choices.len()));
        self.hash.hash(first.., messages); // step 4
        Ok(())
    }

    /// Step 1: the columns `t_i` and `u_i`.
    fn columns_of_receiver(
        &self,
        first_block: u128,
        choices: &[u8],
    ) -> (Zeroizing<Vec<Block>>, Vec<Block>) {
        let mut u = code_columns(choices);
        let blocks = u.len() / WIDTH;
        let mut t = Zeroizing::new(vec![Block::ZERO; u.len()]);
        if blocks == 0 {
            return (t, u);
        }
        let mut stream = Zeroizing::new(vec![Block::ZERO; blocks]);
        let columns = t.chunks_exact_mut(blocks).zip(u.chunks_exact_mut(blocks));
        for (keys, (t, u)) in self.columns.iter().zip(columns) {
            keys[0].ctr(first_block, t);
            keys[1].ctr(first_block, &mut stream);
            for ((u, t), stream) in u.iter_mut().zip(t.iter()).zip(stream.iter()) {
                *u ^= *t ^ *stream;
            }
        }
        (t, u)
    }
}

/// The code word of a choice: bit `i` is the parity of `i AND choice`.
#[inline]
pub(crate) fn code_word(choice: u8) -> Row {
    /// Bit `i` of entry `b` is bit `b` of `i`, for the `i` of one block; the eighth bit
    /// distinguishes the two blocks.
    const BITS: [u128; 7] = {
        let mut bits = [0; 7];
        let mut i = 0;
        while i < 128 {
            let mut b = 0;
            while b < 7 {
                bits[b] |= ((i >> b & 1) as u128) << i;
                b += 1;
            }
            i += 1;
        }
        bits
    };
    let mut low = 0;
    let mut b = 0;
    while b < 7 {
        // A mask instead of a branch: the choice is a part of somebody's item.
        low ^= BITS[b] & (u128::from(choice >> b & 1)).wrapping_neg();
        b += 1;
    }
    let high = low ^ (u128::from(choice >> 7)).wrapping_neg();
    [Block::new(low), Block::new(high)]
}

/// The columns of the matrix whose rows are the code words of the choices, padded with zeros to a
/// whole block.
fn code_columns(choices: &[u8]) -> Vec<Block> {
    let blocks = choices.len().div_ceil(128);
    let mut columns = vec![Block::ZERO; WIDTH * blocks];
    if blocks == 0 {
        return columns;
    }
    let planes = bit_planes(choices, blocks);
    for i in 1..WIDTH {
        // The parity of `i AND c` is that of `i` without its lowest bit, plus that bit of `c`.
        let (done, rest) = columns.split_at_mut(i * blocks);
        let before = &done[(i & (i - 1)) * blocks..][..blocks];
        let plane = &planes[i.trailing_zeros() as usize * blocks..][..blocks];
        for ((column, before), plane) in rest.iter_mut().zip(before).zip(plane) {
            *column = *before ^ *plane;
        }
    }
    columns
}

/// Bit `j` of plane `b` is bit `b` of choice `j`; eight planes of `blocks` blocks.
fn bit_planes(choices: &[u8], blocks: usize) -> Zeroizing<Vec<Block>> {
    let mut planes = Zeroizing::new(vec![Block::ZERO; 8 * blocks]);
    let bytes = Block::as_bytes_mut(&mut planes);
    for (at, eight) in choices.chunks(8).enumerate() {
        let mut word = [0; 8];
        word[..eight.len()].copy_from_slice(eight);
        let word = u64::from_le_bytes(word);
        for b in 0..8 {
            // One bit of each byte; the multiplication gathers them in the highest byte, the first
            // lowest.
            let spread = word >> b & 0x0101_0101_0101_0101;
            bytes[b * blocks * 16 + at] = (spread.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u8;
        }
    }
    planes
}

/// The rows of a matrix given by its 256 columns, in two halves: the first 128 bits of all rows,
/// then the others.
fn rows(columns: &[Block]) -> Zeroizing<Vec<Block>> {
    let mut out = Zeroizing::new(vec![Block::ZERO; columns.len()]);
    if columns.is_empty() {
        return out;
    }
    let half = columns.len() / 2;
    for (columns, out) in columns.chunks(half).zip(out.chunks_mut(half)) {
        transpose_128(columns, out);
    }
    out
}

/// `L` and `H` of step 4.
struct RowHash {
    weights: [Block; 2],
    key: Block,
}

impl RowHash {
    fn new(session: SessionId) -> Self {
        let mut drawn = [Block::ZERO; 3];
        RandomOracle::new("volery experiments kk13: row hash")
            .absorb(session.as_bytes())
            .finish_into(Block::as_bytes_mut(&mut drawn));
        let [first, second, key] = drawn;
        Self { weights: [first, second], key }
    }

    /// `L(C(c)*s)` for each choice `c`.
    fn shifts(&self, s: &Row) -> Zeroizing<Vec<Block>> {
        let mut halves = [(); 2].map(|()| Zeroizing::new(vec![Block::ZERO; 256]));
        for choice in 0..=255 {
            let word = code_word(choice);
            for (side, half) in halves.iter_mut().enumerate() {
                half[usize::from(choice)] = word[side] & s[side];
            }
        }
        let mut out = Zeroizing::new(vec![Block::ZERO; 256]);
        gf128_combine([&halves[0], &halves[1]], self.weights, &mut out);
        out
    }

    /// `L` of the first `count` rows of a matrix given by its columns.
    fn folded_rows(&self, columns: &[Block], count: usize) -> Zeroizing<Vec<Block>> {
        let rows = rows(columns);
        let (first, second) = rows.split_at(rows.len() / 2);
        let mut out = Zeroizing::new(vec![Block::ZERO; count]);
        gf128_combine([&first[..count], &second[..count]], self.weights, &mut out);
        out
    }

    /// `H(j, y)` for the numbers `j`, replacing the `y`.
    fn hash(&self, numbers: impl Iterator<Item = u64>, y: &mut [Block]) {
        hash_under(self.key, numbers, y);
    }
}

/// `AES_{h+j}(y) + y` for the numbers `j`, replacing the `y`.
pub(crate) fn hash_under(h: Block, mut numbers: impl Iterator<Item = u64>, y: &mut [Block]) {
    /// Keys that are computed at a time.
    const LANES: usize = 64;
    let mut keys = [Block::ZERO; LANES];
    for y in y.chunks_mut(LANES) {
        let keys = &mut keys[..y.len()];
        for (key, number) in keys.iter_mut().zip(numbers.by_ref()) {
            *key = h ^ Block::new(u128::from(number));
        }
        rekeyed(keys, y);
    }
}

/// Where in the streams the next extension begins.
#[derive(Default)]
struct Progress {
    next: u64,
    next_block: u128,
}

impl Progress {
    /// The number of the first OT, and of the first block of the generators.
    fn take(&mut self, count: usize) -> (u64, u128) {
        let at = (self.next, self.next_block);
        self.next += count as u64;
        self.next_block += count.div_ceil(128) as u128;
        at
    }
}
