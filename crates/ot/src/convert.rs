//! Every form of OT from one source of correlated OTs.
//!
//! A source gives `w = v + u*delta` with random choice bits `u`. From there:
//!
//! ```text
//! Sender: delta, v                                Receiver: u, w, wanted choices x
//!                                                 d = u + x                 (*_chosen, chosen*)
//!     <------------------- d --------------------
//! v <- v + d*delta                                now w = v + x*delta
//! m_0 = h(i, v), m_1 = h(i, v + delta)            m_x = h(i, w)             (random*)
//!     --- m_0 + message_0, m_1 + message_1 ----->                           (chosen*)
//! ```
//!
//! The first step is that of Beaver, *Precomputing Oblivious Transfer*, CRYPTO 1995; breaking the
//! correlation with a hash is from Ishai, Kilian, Nissim, Petrank, CRYPTO 2003. The hash `h` is
//! tweakable, circular and correlation robust (Guo, Katz, Wang, Yu, ePrint 2019/074, section 7.4;
//! with a key for each tweak as in ePrint 2019/1168), and starts from the session. Its tweak is the
//! running number of the OT within this object, so no tweak is ever used twice: a peer who can make
//! two rows equal or related (a malicious receiver can, through `d` and the extension's messages)
//! still gets unrelated hashes. Each OT is hashed under an AES key of its own: knowing the messages
//! of many OTs helps to find `delta` no more than knowing those of one.
//!
//! Functionality: a corrupt party may choose its own part of the random forms (the sender its `v`
//! and both messages, the receiver its `u`, `w` and the message it gets), as it may in the source.
//! The values that it does not get are random to it.
//!
//! Security: that of the source. Over a malicious-secure source (`softspoken`) all forms are secure
//! against malicious parties in the ideal cipher model; over a semi-honest one
//! (`softspoken` unchecked) all forms are semi-honest only. Two objects of the same parties must
//! have different sessions, and each must have its own source.
//!
//! `u` hides `x`; a wrong `d` only changes the receiver's own choice. A `d` with non-zero unused
//! bits is refused: its encoding is unique. A failed call deletes the source on the sender's side.
//!
//! Cost beyond the source's, per batch of at most 2^16 OTs:
//!
//! | form | receiver to sender | sender to receiver |
//! |---|---|---|
//! | `correlated`, `random` | nothing | nothing |
//! | `correlated_chosen`, `random_chosen` | 1 message, 1 bit per OT | nothing |
//! | `chosen` | 1 message, 1 bit per OT | 1 message, 32 bytes per OT |
//! | `chosen_bytes` | 1 message, 1 bit per OT | 1 message, `2*len` bytes per OT |

use std::borrow::BorrowMut;

use volery_channel::{Channel, Session, SessionId};
use volery_primitives::Block;
use volery_primitives::bits::{clear_from, xor_into};
use volery_primitives::hash::Tweaked;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use zeroize::Zeroizing;

use crate::bits::{bytes_for, correct, mask};
use crate::poisonable::Poisonable;
use crate::{CotReceiver, CotSender, Error, Result};

/// Maximum number of OTs made at a time; whole bytes of choice bits.
const BATCH: usize = 1 << 16;

/// The party that holds `delta` and provides the messages.
pub struct Sender<C> {
    cot: Poisonable<C>,
    hash: RunningHash,
}

impl<C: CotSender> Sender<C> {
    /// OTs from the source `cot`, with hashes keyed by `session`.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self { cot: Poisonable::new(cot), hash: RunningHash::new(session) }
    }

    /// [`new`](Self::new) on a session, with an id that no other object on it has. The peer makes
    /// its end at the same point.
    pub fn start(cot: C, session: &mut Session<impl BorrowMut<Channel>>) -> Self {
        Self::new(cot, session.parts().0)
    }

    /// The global difference of the source.
    ///
    /// # Panics
    /// If a call failed: the source has been wiped.
    pub fn delta(&self) -> Block {
        self.cot.get().delta()
    }

    /// As [`delta`](Self::delta), without its panic.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed, here or on a sibling of the source.
    pub fn try_delta(&self) -> Result<Block> {
        self.cot.try_get()?.try_delta()
    }

    /// The source, for operations specific to its type.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed: the source has been wiped.
    pub fn source(&mut self) -> Result<&mut C> {
        self.cot.get_mut()
    }

    /// Two random messages for each of the correlated OTs `v` of this object: `h(i, v)` and
    /// `h(i, v + delta)`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed, here or on a sibling of the source.
    pub fn hash(&mut self, v: &[Block], m: &mut [[Block; 2]]) -> Result<()> {
        assert_eq!(v.len(), m.len(), "two messages for each OT");
        let delta = self.try_delta()?;
        for (v, m) in v.chunks(BATCH).zip(m.chunks_mut(BATCH)) {
            self.hash.pairs(delta, v, m);
        }
        Ok(())
    }

    /// Correlated OT with random choice bits: fills `v` so that the receiver's `w = v + u*delta`.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn correlated(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.cot.call(|cot| v.chunks_mut(BATCH).try_for_each(|v| cot.extend(v, channel)))
    }

    /// Correlated OT whose choice bits the receiver picks: fills `v` so that the receiver's
    /// `w = v + x*delta`.
    ///
    /// # Errors
    /// The errors of the source; an error if the channel fails, or if the receiver's message is not
    /// a bit string of this length.
    pub fn correlated_chosen(&mut self, v: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.cot.call(|cot| {
            v.chunks_mut(BATCH).try_for_each(|v| {
                cot.extend(v, channel)?;
                let difference = recv_difference(v.len(), channel)?;
                correct(cot.try_delta()?, v, &difference);
                Ok(())
            })
        })
    }

    /// Random OT with random choice bits: fills every `m[i]` with two random messages.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn random(&mut self, m: &mut [[Block; 2]], channel: &mut Channel) -> Result<()> {
        for m in m.chunks_mut(BATCH) {
            let mut v = Zeroizing::new(vec![Block::ZERO; m.len()]);
            self.correlated(&mut v, channel)?;
            self.hash.pairs(self.try_delta()?, &v, m);
        }
        Ok(())
    }

    /// Random OT whose choice bits the receiver picks: fills every `m[i]` with two random messages.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn random_chosen(&mut self, m: &mut [[Block; 2]], channel: &mut Channel) -> Result<()> {
        for m in m.chunks_mut(BATCH) {
            let mut v = Zeroizing::new(vec![Block::ZERO; m.len()]);
            self.correlated_chosen(&mut v, channel)?;
            self.hash.pairs(self.try_delta()?, &v, m);
        }
        Ok(())
    }

    /// OT of chosen blocks: the receiver gets `messages[i][x_i]`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen(&mut self, messages: &[[Block; 2]], channel: &mut Channel) -> Result<()> {
        for messages in messages.chunks(BATCH) {
            let mut m = Zeroizing::new(vec![[Block::ZERO; 2]; messages.len()]);
            self.random_chosen(&mut m, channel)?;
            for (pad, message) in m.iter_mut().zip(messages) {
                pad[0] ^= message[0];
                pad[1] ^= message[1];
            }
            channel.send_blocks(m.as_flattened())?;
        }
        channel.flush()
    }

    /// OT of chosen byte strings of `len` bytes each: `zeros` and `ones` hold the concatenated
    /// strings, and the receiver gets the `i`-th string of `zeros` or of `ones`.
    ///
    /// # Panics
    /// If `zeros` and `ones` differ in length, or are not a whole number of strings, or if `len` is
    /// 0.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen_bytes(
        &mut self,
        zeros: &[u8],
        ones: &[u8],
        len: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(zeros.len(), ones.len(), "as many strings for 0 as for 1");
        let batch = batch_of_strings(zeros.len(), len);
        for (zeros, ones) in zeros.chunks(batch * len).zip(ones.chunks(batch * len)) {
            let mut m = Zeroizing::new(vec![[Block::ZERO; 2]; zeros.len() / len]);
            let starts = self.hash.starts();
            self.random_chosen(&mut m, channel)?;
            let mut message = vec![0; 2 * zeros.len()];
            let strings = zeros.chunks(len).zip(ones.chunks(len));
            let outs = message.chunks_mut(2 * len).zip(strings);
            for ((out, strings), (seeds, start)) in outs.zip(m.iter().zip(starts)) {
                let (zero, one) = out.split_at_mut(len);
                mask_string(seeds[0], start, strings.0, zero);
                mask_string(seeds[1], start, strings.1, one);
            }
            channel.send(&message)?;
        }
        channel.flush()
    }
}

/// The party that holds the choice bits and gets one message of each OT.
pub struct Receiver<C> {
    cot: C,
    hash: RunningHash,
}

impl<C: CotReceiver> Receiver<C> {
    /// OTs from the source `cot`, with hashes keyed by `session`.
    pub fn new(cot: C, session: SessionId) -> Self {
        Self { cot, hash: RunningHash::new(session) }
    }

    /// [`new`](Self::new) on a session, with an id that no other object on it has. The peer makes
    /// its end at the same point.
    pub fn start(cot: C, session: &mut Session<impl BorrowMut<Channel>>) -> Self {
        Self::new(cot, session.parts().0)
    }

    /// The source, for operations specific to its type.
    pub fn source(&mut self) -> &mut C {
        &mut self.cot
    }

    /// The selected messages of the peer's [`Sender::hash`], replacing the correlated OTs `w`.
    pub fn hash(&mut self, w: &mut [Block]) {
        self.hash.in_place(w);
    }

    /// Correlated OT with random choice bits: fills `u` (packed, low bit first) and
    /// `w = v + u*delta`.
    ///
    /// # Panics
    /// If `u.len()` is not `w.len().div_ceil(8)`.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn correlated(
        &mut self,
        u: &mut [u8],
        w: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), bytes_for(w.len()), "one packed bit per OT");
        for (u, w) in u.chunks_mut(BATCH / 8).zip(w.chunks_mut(BATCH)) {
            self.cot.extend(u, w, channel)?;
        }
        Ok(())
    }

    /// Correlated OT with the choice bits `x` (packed, low bit first): fills `w = v + x*delta`.
    ///
    /// # Panics
    /// If `x.len()` is not `w.len().div_ceil(8)`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn correlated_chosen(
        &mut self,
        x: &[u8],
        w: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(x.len(), bytes_for(w.len()), "one packed bit per OT");
        for (x, w) in x.chunks(BATCH / 8).zip(w.chunks_mut(BATCH)) {
            // Until `x` is added it holds the random choices themselves.
            let mut difference = Zeroizing::new(vec![0; x.len()]);
            self.cot.extend(&mut difference, w, channel)?;
            xor_into(&mut difference, x);
            clear_from(&mut difference, w.len());
            channel.send(&difference)?;
        }
        channel.flush()
    }

    /// Random OT with random choice bits: fills `u` (packed, low bit first) and the message `m[i]`
    /// that it chose.
    ///
    /// # Panics
    /// If `u.len()` is not `m.len().div_ceil(8)`.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn random(&mut self, u: &mut [u8], m: &mut [Block], channel: &mut Channel) -> Result<()> {
        self.correlated(u, m, channel)?;
        self.hash.in_place(m);
        Ok(())
    }

    /// Random OT with the choice bits `x` (packed, low bit first): fills `m[i]` with the message
    /// that it chose.
    ///
    /// # Panics
    /// If `x.len()` is not `m.len().div_ceil(8)`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn random_chosen(
        &mut self,
        x: &[u8],
        m: &mut [Block],
        channel: &mut Channel,
    ) -> Result<()> {
        self.correlated_chosen(x, m, channel)?;
        self.hash.in_place(m);
        Ok(())
    }

    /// OT of the sender's blocks with the choice bits `x` (packed, low bit first).
    ///
    /// # Panics
    /// If `x.len()` is not `m.len().div_ceil(8)`.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen(&mut self, x: &[u8], m: &mut [Block], channel: &mut Channel) -> Result<()> {
        assert_eq!(x.len(), bytes_for(m.len()), "one packed bit per OT");
        for (x, m) in x.chunks(BATCH / 8).zip(m.chunks_mut(BATCH)) {
            self.random_chosen(x, m, channel)?;
            let mut messages = vec![[Block::ZERO; 2]; m.len()];
            channel.recv_blocks(messages.as_flattened_mut())?;
            for (j, (m, pair)) in m.iter_mut().zip(&messages).enumerate() {
                *m ^= pair[0] ^ (mask(x, j) & (pair[0] ^ pair[1]));
            }
        }
        Ok(())
    }

    /// OT of the sender's byte strings of `len` bytes each with the choice bits `x` (packed, low
    /// bit first): fills `out` with the concatenated strings.
    ///
    /// # Panics
    /// If `out` is not a whole number of strings, if `x` does not hold one bit for each, or if
    /// `len` is 0.
    ///
    /// # Errors
    /// The errors of the source, and an error if the channel fails.
    pub fn chosen_bytes(
        &mut self,
        x: &[u8],
        out: &mut [u8],
        len: usize,
        channel: &mut Channel,
    ) -> Result<()> {
        let batch = batch_of_strings(out.len(), len);
        assert_eq!(x.len(), bytes_for(out.len() / len), "one packed bit per OT");
        for (x, out) in x.chunks(batch / 8).zip(out.chunks_mut(batch * len)) {
            let mut m = Zeroizing::new(vec![Block::ZERO; out.len() / len]);
            let starts = self.hash.starts();
            self.random_chosen(x, &mut m, channel)?;
            let mut message = vec![0; 2 * out.len()];
            channel.recv(&mut message)?;
            let strings = message.chunks(2 * len).zip(out.chunks_mut(len));
            for (j, ((pair, out), (seed, start))) in strings.zip(m.iter().zip(starts)).enumerate() {
                let (zero, one) = pair.split_at(len);
                let mask = mask(x, j).to_bytes()[0];
                let mut chosen = Zeroizing::new(zero.to_vec());
                for (chosen, one) in chosen.iter_mut().zip(one) {
                    *chosen ^= mask & (*chosen ^ one);
                }
                mask_string(*seed, start, &chosen, out);
            }
        }
        Ok(())
    }
}

/// The receiver's `d` for `n` OTs.
fn recv_difference(n: usize, channel: &mut Channel) -> Result<Vec<u8>> {
    let mut difference = vec![0; bytes_for(n)];
    channel.recv(&mut difference)?;
    let mut used = difference.clone();
    clear_from(&mut used, n);
    // mutant(convert-unused-bits): false
    if used != difference {
        return Err(Error::PeerMisbehaved("unused bits of the corrected choices are not zero"));
    }
    Ok(difference)
}

/// The hash that breaks correlations, with the number of the next OT.
struct RunningHash {
    hash: Tweaked,
    /// The start of the key streams of byte strings: the high word of the first counter of OT
    /// number 0.
    streams: u64,
    next: u128,
}

/// The key of the hash of the OTs of a session, and the start of its streams.
#[doc(hidden)]
#[must_use]
pub fn hash_start(session: SessionId) -> [Block; 2] {
    let mut oracle = RandomOracle::new("volery OT: keys of the tweakable hash");
    // mutant(convert-hash-session): drop
    oracle.absorb(session.as_bytes());
    let mut start = [Block::ZERO; 2];
    oracle.finish_into(Block::as_bytes_mut(&mut start));
    start
}

impl RunningHash {
    fn new(session: SessionId) -> Self {
        let start = hash_start(session);
        Self {
            hash: Tweaked::new(start[0]),
            // mutant(convert-stream-session): `start[1].low()` => `0`
            streams: start[1].low(),
            next: 0,
        }
    }

    /// The first counter of the key streams of each of the next OTs. All differ, within a session
    /// and (except by chance) between sessions, so one guess of a message cannot be compared with
    /// the strings of many OTs.
    fn starts(&self) -> impl Iterator<Item = Block> + use<> {
        // mutant(convert-stream-number): `self.next as u64` => `0`
        let first = self.streams.wrapping_add(self.next as u64);
        (0..).map(move |i| Block::from_words(0, first.wrapping_add(i)))
    }

    /// The sender's messages: `h(i, v)` and `h(i, v + delta)`, both with the tweak of their OT.
    fn pairs(&mut self, delta: Block, v: &[Block], m: &mut [[Block; 2]]) {
        for (m, &v) in m.iter_mut().zip(v) {
            *m = [v, v ^ delta];
        }
        self.hash.hash_pairs(self.next, m);
        // mutant(convert-hash-number): drop
        self.next += v.len() as u128;
    }

    /// The receiver's messages: `h(i, w)`.
    fn in_place(&mut self, w: &mut [Block]) {
        self.hash.hash_slice(self.next, w);
        self.next += w.len() as u128;
    }
}

/// The number of strings of `len` bytes to process at a time, out of `total` bytes: a multiple of
/// 8, and about as much memory as a batch of blocks.
fn batch_of_strings(total: usize, len: usize) -> usize {
    assert!(len > 0, "strings have at least one byte");
    assert_eq!(total % len, 0, "the bytes are a whole number of strings");
    (BATCH * 16 / len).clamp(8, BATCH) / 8 * 8
}

/// `out = input` plus the key stream of `seed`, its counters from `start` on.
fn mask_string(seed: Block, start: Block, input: &[u8], out: &mut [u8]) {
    Prg::starting_at(seed, start).fill_bytes(out);
    xor_into(out, input);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_streams(session: u8, made: u128, count: usize) -> Vec<Block> {
        let mut hash = RunningHash::new(SessionId::from_bytes([session; 32]));
        hash.next = made;
        let starts = hash.starts().take(count);
        let stream = |start| {
            let mut out = [0; 16];
            mask_string(Block::ONE, start, &[0; 16], &mut out);
            Block::from_bytes(out)
        };
        starts.map(stream).collect()
    }

    /// Equal messages of two OTs, in one session or in two, mask strings with different streams.
    #[test]
    fn key_streams_differ_by_session_and_number() {
        let all = [(1, 0), (1, 40), (2, 0)].map(|(session, made)| first_streams(session, made, 40));
        let all = all.concat();
        for (i, stream) in all.iter().enumerate() {
            assert!(!all[..i].contains(stream), "stream {i}");
        }
        assert_eq!(first_streams(1, 40, 1)[0], all[40]);
    }

    /// The hash of an OT reveals nothing about another one: its key differs by number and by
    /// session.
    #[test]
    fn hashes_differ_by_session_and_number() {
        let hashes = |session| {
            let mut hash = RunningHash::new(SessionId::from_bytes([session; 32]));
            let (mut pairs, mut single) = ([[Block::ZERO; 2]; 8], [Block::ONE; 8]);
            hash.pairs(Block::from(6), &[Block::ONE; 8], &mut pairs);
            hash.next = 0;
            hash.in_place(&mut single);
            assert!(pairs.iter().zip(single).all(|(pair, alone)| pair[0] == alone));
            pairs.concat()
        };
        let all = [hashes(1), hashes(2)].concat();
        for (i, hash) in all.iter().enumerate() {
            assert!(!all[..i].contains(hash), "hash {i}");
        }
    }
}
