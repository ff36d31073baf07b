//! OT of one of N messages, from `log2 N` OTs of one of two.
//!
//! Naor, Pinkas, *Oblivious Transfer and Polynomial Evaluation*, STOC 1999, Protocol 3.1, with
//! random OTs for its keys and a tweakable hash for its pseudorandom function. For row `r` with
//! choice `x`, `k = log2 N` rounded up, and `I_j` for bit `j` of `I`:
//!
//! ```text
//! Sender                                        Receiver: x
//! 1. K_0^0, K_0^1, .. K_(k-1)^1  <- k random OTs on the bits of x ->  K_0^x_0, .., K_(k-1)^x_(k-1)
//! 2. m_I = sum over j of h(r*N + I, K_j^I_j)    m_x = sum over j of h(r*N + x, K_j^x_j)
//! 3.        ---- message_I + G(m_I) for each I ---->
//! ```
//!
//! For each `I` but `x` the receiver lacks a key of the sum, and no tweak serves two messages. `h`
//! is that of [`volery_ot::convert`] under a key of its own.
//!
//! Security: that of the source. A receiver that deviates chooses another `x`, or one that is not
//! below `N` and gives it no message.
//!
//! Cost of a row beside the source: `k` bits from the receiver, `N` messages from the sender; `k*N`
//! hashes by the sender and `k` by the receiver.

use subtle::{ConditionallySelectable as _, ConstantTimeEq as _};
use volery_channel::{Channel, Result, SessionId};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::{Block, bits, hash::Tweaked, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

/// Messages whose masks are in memory at a time, unless a row has more.
const BATCH: usize = 1 << 16;

/// The hash of the masks, and the tweak of the next message.
type Masks = (Tweaked, u128);

fn masks(session: SessionId) -> Masks {
    let mut oracle = RandomOracle::new("volery mpc: 1-of-N OT");
    (Tweaked::new(oracle.absorb(session.as_bytes()).finish_block()), 0)
}

/// OTs of one of two in a row of `n`, and rows at a time.
fn shape(n: usize) -> (usize, usize) {
    assert!(n > 0, "one of at least one message");
    ((n.next_power_of_two().ilog2() as usize).max(1), (BATCH / n).max(1))
}

/// Adds the key stream of a random message. It starts at the tweak, so that one guess of a message
/// cannot be compared with all streams.
fn mask(m: Block, tweak: u128, string: &mut [u8]) {
    let mut stream = Zeroizing::new(vec![0; string.len()]);
    Prg::starting_at(m, Block::from(tweak)).fill_bytes(&mut stream);
    bits::xor_into(string, &stream);
}

/// The party with `n` messages for each row.
pub struct Sender<C>(convert::Sender<C>, Masks);

impl<C: CotSender> Sender<C> {
    /// OTs from the source `cot`; `session` is of this object alone, and the same at the peer.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self(convert::Sender::new(cot, session), masks(session))
    }

    /// Sends strings of `len` bytes: rows of `n`, all after each other in `messages`. Panics if the
    /// rows are not whole or `len` or `n` is zero.
    pub fn send(
        &mut self,
        n: usize,
        len: usize,
        messages: &[u8],
        channel: &mut Channel,
    ) -> Result<()> {
        let (Self(ot, masks), (k, rows)) = (self, shape(n));
        let mut m = Zeroizing::new(vec![Block::ZERO; n]);
        let mut hashes = m.clone();
        for messages in messages.chunks(rows * n * len) {
            assert_eq!(messages.len() % (n * len), 0, "whole rows");
            let mut keys = Zeroizing::new(vec![[Block::ZERO; 2]; messages.len() / (n * len) * k]);
            ot.random_chosen(&mut keys, channel)?; // step 1
            let mut masked = messages.to_vec();
            for (masked, keys) in masked.chunks_mut(n * len).zip(keys.chunks(k)) {
                m.fill(Block::ZERO);
                for (j, keys) in keys.iter().enumerate() {
                    hashes.iter_mut().enumerate().for_each(|(i, hash)| *hash = keys[i >> j & 1]);
                    masks.0.hash_slice(masks.1, &mut hashes);
                    m.iter_mut().zip(hashes.iter()).for_each(|(m, hash)| *m ^= *hash); // step 2
                }
                for (m, masked) in m.iter().zip(masked.chunks_mut(len)) {
                    mask(*m, masks.1, masked);
                    masks.1 += 1;
                }
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
        Self(convert::Receiver::new(cot, session), masks(session))
    }

    /// The sender's string number `choices[r]` of row `r`, after each other in `out`. Panics if it
    /// does not hold `len` bytes for each choice, or a choice is not below `n`.
    pub fn receive(
        &mut self,
        n: usize,
        len: usize,
        choices: &[u32],
        out: &mut [u8],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(out.len(), choices.len() * len, "one string for each choice");
        let (Self(ot, masks), (k, rows)) = (self, shape(n));
        let mut row = vec![0; n * len];
        for (choices, out) in choices.chunks(rows).zip(out.chunks_mut(rows * len)) {
            let mut packed = Zeroizing::new(vec![0; bits::bytes_for(choices.len() * k)]);
            for (r, &x) in choices.iter().enumerate() {
                assert!((x as usize) < n, "a choice is below the number of messages");
                for j in 0..k {
                    packed[(r * k + j) / 8] |= ((x >> j) as u8 & 1) << ((r * k + j) % 8);
                }
            }
            let mut keys = Zeroizing::new(vec![Block::ZERO; choices.len() * k]);
            ot.random_chosen(&packed, &mut keys, channel)?; // step 1
            for ((keys, &x), out) in keys.chunks(k).zip(choices).zip(out.chunks_mut(len)) {
                let tweak = masks.1 + u128::from(x);
                let hashes = keys.iter().map(|key| masks.0.hash(tweak, *key));
                let m = hashes.fold(Block::ZERO, |sum, hash| sum ^ hash); // step 2
                masks.1 += n as u128;
                channel.recv(&mut row)?; // step 3
                // All strings are read, as which of them is the choice.
                for (i, string) in (0..).zip(row.chunks(len)) {
                    // no mutant: a selection
                    let here = x.ct_eq(&i);
                    out.iter_mut()
                        .zip(string)
                        .for_each(|(o, byte)| o.conditional_assign(byte, here));
                }
                mask(m, tweak, out);
            }
        }
        Ok(())
    }
}
