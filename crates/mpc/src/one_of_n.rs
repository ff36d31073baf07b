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
//! For each `I` but `x` the receiver lacks a key of the sum, and no tweak serves two messages. `h`
//! is that of [`volery_ot::convert`] under a key of its own.
//!
//! Security: that of the source. A receiver that deviates chooses another `x`, or one that is not
//! below `N` and gives it no message.
//!
//! Cost of a row beside the source: `k` bits from the receiver; `N` messages from the sender, none
//! in the random form; `k*N` hashes by the sender and `k` by the receiver.

use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use volery_channel::{Channel, Result, SessionId};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits, hash::Tweaked, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

/// Messages whose masks are in memory at a time, unless a row has more.
const BATCH: usize = 1 << 16;

/// OTs of one of two in a row of `n`.
fn width(n: usize) -> usize {
    (n.next_power_of_two().ilog2() as usize).max(1)
}

/// Rows at a time.
fn rows(n: usize) -> usize {
    assert!(n > 0, "one of at least one message");
    (BATCH / n).max(1)
}

/// The hash, and the tweak of the next message.
struct Masks(Tweaked, u128);

impl Masks {
    fn new(session: SessionId) -> Self {
        let mut oracle = RandomOracle::new("volery mpc: 1-of-N OT");
        Self(Tweaked::new(oracle.absorb(session.as_bytes()).finish_block()), 0)
    }
}

/// The party with `n` messages for each row.
pub struct Sender<C>(convert::Sender<C>, Masks);

impl<C: CotSender> Sender<C> {
    /// OTs from the source `cot`; `session` is of this object alone, and the same at the peer.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self(convert::Sender::new(cot, session), Masks::new(session))
    }

    /// Fills `m` with rows of `n` random messages. Panics if they are not whole.
    pub fn random(&mut self, n: usize, m: &mut [Block], channel: &mut Channel) -> Result<()> {
        let (k, Self(ot, masks)) = (width(n), self);
        let mut hashes = Zeroizing::new(vec![Block::ZERO; n]);
        for m in m.chunks_mut(rows(n) * n) {
            assert_eq!(m.len() % n, 0, "whole rows");
            let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; m.len() / n * k]);
            ot.random_chosen(&mut keys, channel)?; // step 1
            m.fill(Block::ZERO);
            for (m, keys) in m.chunks_mut(n).zip(keys.chunks(k)) {
                for (j, keys) in keys.iter().enumerate() {
                    hashes.iter_mut().enumerate().for_each(|(i, hash)| *hash = keys[i >> j & 1]);
                    masks.0.hash_slice(masks.1, &mut hashes);
                    m.iter_mut().zip(hashes.iter()).for_each(|(m, hash)| *m ^= *hash); // step 2
                }
                masks.1 += n as u128;
            }
        }
        Ok(())
    }

    /// Sends chosen strings of `len` bytes: rows of `n`, all after each other in `messages`. Panics
    /// if the rows are not whole or `len` is zero.
    pub fn chosen(
        &mut self,
        n: usize,
        len: usize,
        messages: &[u8],
        channel: &mut Channel,
    ) -> Result<()> {
        for messages in messages.chunks(rows(n) * n * len) {
            assert_eq!(messages.len() % (n * len), 0, "whole rows");
            let first = self.1.1;
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
pub struct Receiver<C>(convert::Receiver<C>, Masks);

impl<C: CotReceiver> Receiver<C> {
    /// OTs from the source `cot`; `session` is of this object alone, and the same at the peer.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self(convert::Receiver::new(cot, session), Masks::new(session))
    }

    /// Random message number `choices[r]` of row `r` in `m[r]`. Panics if the lengths differ, or a
    /// choice is not below `n`.
    pub fn random(
        &mut self,
        n: usize,
        choices: &[u32],
        m: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(choices.len(), m.len(), "one choice for each message");
        let (k, Self(ot, masks)) = (width(n), self);
        for (choices, m) in choices.chunks(rows(n)).zip(m.chunks_mut(rows(n))) {
            let mut packed = Zeroizing::new(vec![0; bits::bytes_for(choices.len() * k)]);
            for (r, &x) in choices.iter().enumerate() {
                assert!((x as usize) < n, "a choice is below the number of messages");
                for j in 0..k {
                    packed[(r * k + j) / 8] |= ((x >> j) as u8 & 1) << ((r * k + j) % 8);
                }
            }
            let mut keys = Zeroizing::new(vec![Block::ZERO; choices.len() * k]);
            ot.random_chosen(&packed, &mut keys, channel)?; // step 1
            for ((m, keys), &x) in m.iter_mut().zip(keys.chunks(k)).zip(choices) {
                let hash = |key: &Block| masks.0.hash(masks.1 + u128::from(x), *key);
                *m = keys.iter().map(hash).fold(Block::ZERO, |sum, hash| sum ^ hash); // step 2
                masks.1 += n as u128;
            }
        }
        Ok(())
    }

    /// The sender's string number `choices[r]` of row `r`, after each other in `out`. Panics if it
    /// does not hold `len` bytes for each choice, or a choice is not below `n`.
    pub fn chosen(
        &mut self,
        n: usize,
        len: usize,
        choices: &[u32],
        out: &mut [u8],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(out.len(), choices.len() * len, "one string for each choice");
        let mut row = vec![0; n * len];
        for (choices, out) in choices.chunks(rows(n)).zip(out.chunks_mut(rows(n) * len)) {
            let first = self.1.1;
            let mut m = Zeroizing::new(vec![Block::ZERO; choices.len()]);
            self.random(n, choices, &mut m, channel)?;
            for (r, ((m, &x), out)) in m.iter().zip(choices).zip(out.chunks_mut(len)).enumerate() {
                channel.recv(&mut row)?; // step 3
                // All strings are read, as which of them is the choice.
                for (i, string) in (0..).zip(row.chunks(len)) {
                    // no mutant: a selection
                    let here = x.ct_eq(&i);
                    out.iter_mut()
                        .zip(string)
                        .for_each(|(o, byte)| o.conditional_assign(byte, here));
                }
                mask(*m, first + (r * n) as u128 + u128::from(x), out);
            }
        }
        Ok(())
    }
}

/// Adds the key stream of a random message. It starts at the tweak, so that one guess of a message
/// cannot be compared with all streams.
fn mask(m: Block, tweak: u128, string: &mut [u8]) {
    let mut stream = Zeroizing::new(vec![0; string.len()]);
    Prg::starting_at(m, Block::from(tweak)).fill_bytes(&mut stream);
    bits::xor_into(string, &stream);
}
