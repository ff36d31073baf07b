//! OT of one of N messages, from `log2 N` OTs of one of two.
//!
//! Naor, Pinkas, *Oblivious Transfer and Polynomial Evaluation*, STOC 1999, Protocol 3.1, with
//! random OTs for its keys and a tweakable hash for its pseudorandom function. For row `r` with
//! choice `x`, `k = log2 N` rounded up, and `I_j` for bit `j` of `I`:
//!
//! ```text
//! Sender                                        Receiver: x
//! 1. K_0^0, K_0^1, .. K_(k-1)^1  <- k random OTs on the bits of x ->  K_0^x_0, .., K_(k-1)^x_(k-1)
//! 2. m_I = sum over j of h(r*N + I, K_j^I_j)    m_x = sum over j of h(r*N + x, K_j^x_j)  (random)
//! 3.        ---- message_I + m_I for each I ---->                                        (chosen)
//! ```
//!
//! For each `I` other than `x` the receiver lacks at least one key of the sum, and no tweak is used
//! for two messages. `h` is that of [`volery_ot::convert`], under a key of its own.
//!
//! Security: that of the source. A receiver that deviates can only choose another `x`, or one that
//! is not below `N`, whose row gives it no message.
//!
//! Cost for each row beside the source's: `k` bits from the receiver; `16*N` bytes (blocks) or
//! `len*N` bytes (strings) from the sender, nothing in the random form. `k*N` hashes by the sender,
//! `k` by the receiver.

use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use volery_channel::{Channel, Result, SessionId};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::hash::Tweaked;
use volery_primitives::ro::RandomOracle;
use volery_primitives::{Block, bits, prg::Prg};
use zeroize::Zeroizing;

/// Messages whose masks are in memory at a time, unless a row has more.
const BATCH: usize = 1 << 16;

/// The part that both parties have: the hash and its next tweak.
struct Masks {
    hash: Tweaked,
    next: u128,
}

impl Masks {
    fn new(session: SessionId) -> Self {
        let key =
            RandomOracle::new("volery mpc: 1-of-N OT").absorb(session.as_bytes()).finish_block();
        Self { hash: Tweaked::new(key), next: 0 }
    }
}

/// OTs of one of two for a choice of one of `n`.
///
/// # Panics
/// If `n` is zero.
fn width(n: usize) -> usize {
    assert!(n > 0, "one of at least one message");
    (n.next_power_of_two().ilog2() as usize).max(1)
}

/// Rows at a time.
const fn rows(n: usize) -> usize {
    if n < BATCH { BATCH / n } else { 1 }
}

/// The party with `n` messages for each row.
pub struct Sender<C> {
    ot: convert::Sender<C>,
    masks: Masks,
}

impl<C: CotSender> Sender<C> {
    /// OTs from the source `cot`; `session` is of this object alone, and the same at the peer.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self { ot: convert::Sender::new(cot, session), masks: Masks::new(session) }
    }

    /// Random messages: fills `m` with rows of `n`.
    ///
    /// # Panics
    /// If `n` is zero or `m` is not a whole number of rows.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn random(&mut self, n: usize, m: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(m.len() % n, 0, "whole rows");
        let k = width(n);
        for m in m.chunks_mut(rows(n) * n) {
            let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; m.len() / n * k]);
            self.ot.random_chosen(&mut keys, channel)?; // step 1
            m.fill(Block::ZERO);
            let mut hashes = Zeroizing::new(vec![Block::ZERO; n]);
            for (m, keys) in m.chunks_mut(n).zip(keys.chunks(k)) {
                for (j, keys) in keys.iter().enumerate() {
                    for (i, hash) in hashes.iter_mut().enumerate() {
                        *hash = keys[i >> j & 1];
                    }
                    self.masks.hash.hash_slice(self.masks.next, &mut hashes);
                    for (m, hash) in m.iter_mut().zip(hashes.iter()) {
                        *m ^= *hash; // step 2
                    }
                }
                self.masks.next += n as u128;
            }
        }
        Ok(())
    }

    /// OT of chosen blocks: rows of `n` each, one after the other in `messages`.
    ///
    /// # Panics
    /// The panics of [`random`](Self::random).
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen(&mut self, n: usize, messages: &[Block], channel: &mut Channel) -> Result<()> {
        self.chosen_bytes(n, 16, Block::as_bytes(messages), channel)
    }

    /// OT of chosen strings of `len` bytes: rows of `n` strings, one after the other in `messages`.
    ///
    /// # Panics
    /// If `n` or `len` is zero, or `messages` is not a whole number of rows.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen_bytes(
        &mut self,
        n: usize,
        len: usize,
        messages: &[u8],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(messages.len() % (n * len), 0, "whole rows");
        for messages in messages.chunks(rows(n) * n * len) {
            let first = self.masks.next;
            let mut m = Zeroizing::new(vec![Block::ZERO; messages.len() / len]);
            self.random(n, &mut m, channel)?;
            let mut masked = messages.to_vec();
            for ((m, masked), tweak) in m.iter().zip(masked.chunks_mut(len)).zip(first..) {
                mask(*m, tweak, masked);
            }
            channel.send(&masked)?; // step 3
        }
        channel.flush()
    }
}

/// The party with a choice for each row.
pub struct Receiver<C> {
    ot: convert::Receiver<C>,
    masks: Masks,
}

impl<C: CotReceiver> Receiver<C> {
    /// OTs from the source `cot`; `session` is of this object alone, and the same at the peer.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self { ot: convert::Receiver::new(cot, session), masks: Masks::new(session) }
    }

    /// Random messages: message number `choices[r]` of row `r` in `m[r]`.
    ///
    /// # Panics
    /// If the lengths differ, `n` is zero, or a choice is not below `n`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn random(
        &mut self,
        n: usize,
        choices: &[u32],
        m: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(choices.len(), m.len(), "one choice for each message");
        let k = width(n);
        for (choices, m) in choices.chunks(rows(n)).zip(m.chunks_mut(rows(n))) {
            let mut packed = Zeroizing::new(vec![0; bits::bytes_for(choices.len() * k)]);
            for (r, &x) in choices.iter().enumerate() {
                assert!((x as usize) < n, "a choice is below the number of messages");
                for j in 0..k {
                    packed[(r * k + j) / 8] |= ((x >> j) as u8 & 1) << ((r * k + j) % 8);
                }
            }
            let mut keys = Zeroizing::new(vec![Block::ZERO; choices.len() * k]);
            self.ot.random_chosen(&packed, &mut keys, channel)?; // step 1
            for ((m, keys), &x) in m.iter_mut().zip(keys.chunks(k)).zip(choices) {
                let hash =
                    |key: &Block| self.masks.hash.hash(self.masks.next + u128::from(x), *key);
                *m = keys.iter().map(hash).fold(Block::ZERO, |sum, hash| sum ^ hash); // step 2
                self.masks.next += n as u128;
            }
        }
        Ok(())
    }

    /// OT of the sender's blocks: block number `choices[r]` of row `r` in `out[r]`.
    ///
    /// # Panics
    /// The panics of [`random`](Self::random).
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen(
        &mut self,
        n: usize,
        choices: &[u32],
        out: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        self.chosen_bytes(n, 16, choices, Block::as_bytes_mut(out), channel)
    }

    /// OT of the sender's strings of `len` bytes: string number `choices[r]` of row `r` is the
    /// `r`-th of `out`.
    ///
    /// # Panics
    /// If `out` does not hold a string for each choice, `n` or `len` is zero, or a choice is not
    /// below `n`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen_bytes(
        &mut self,
        n: usize,
        len: usize,
        choices: &[u32],
        out: &mut [u8],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(out.len(), choices.len() * len, "one string for each choice");
        for (choices, out) in choices.chunks(rows(n)).zip(out.chunks_mut(rows(n) * len)) {
            let tweak = self.masks.next;
            let mut m = Zeroizing::new(vec![Block::ZERO; choices.len()]);
            self.random(n, choices, &mut m, channel)?;
            let mut row = vec![0; n * len];
            for (r, ((m, &x), out)) in m.iter().zip(choices).zip(out.chunks_mut(len)).enumerate() {
                channel.recv(&mut row)?; // step 3
                // All strings are read: which one is the choice.
                for (i, string) in (0..).zip(row.chunks(len)) {
                    // no mutant: a selection
                    let here = x.ct_eq(&i);
                    for (out, byte) in out.iter_mut().zip(string) {
                        out.conditional_assign(byte, here);
                    }
                }
                mask(*m, tweak + (r * n) as u128 + u128::from(x), out);
            }
        }
        Ok(())
    }
}

/// Adds the mask of a message: the message of a random OT itself for a block, else its key stream,
/// which starts at the tweak, so that one guess cannot be compared with all streams.
fn mask(m: Block, tweak: u128, string: &mut [u8]) {
    let mut stream = Zeroizing::new(vec![0; string.len()]);
    match <&mut [u8; 16]>::try_from(&mut stream[..]) {
        Ok(block) => *block = m.to_bytes(),
        Err(_) => Prg::starting_at(m, Block::from(tweak)).fill_bytes(&mut stream),
    }
    bits::xor_into(string, &stream);
}
