//! Vector-OLE by multiplication alone: Gilboa, *Two party RSA key generation*, CRYPTO 1999, by
//! correlated OT in the ring, batched over the vector. Section 2.1.1 and the third baseline of
//! section 8.3.2 of the 2019 paper.
//!
//! The multiplication is [`volery_pcg::gilboa`], which is also the base of every vector OLE of this
//! workspace. In the integers modulo `2^64` there is a saving that it leaves out: the value chosen
//! by bit `i` of `x` is multiplied by `2^i`, so only its low `64 - i` bits matter. Those for bits
//! `i` and `64 - i` then fill one word together:
//!
//! ```text
//! Sender: u in Z_(2^64)^n                 Receiver: x, with bits x_0 .. x_63
//! 0. seeds k_i0, k_i1  ------ one OT for each bit, on x_i ------>  k_i(x_i)
//! 1. tau_i = PRG(k_i0) - PRG(k_i1) + u    modulo 2^(64 - i)
//! 2.       ---- tau_0;  tau_i | tau_(64-i) for i = 1 .. 31;  tau_32, two in a word ---->
//! 3. v = sum 2^i PRG(k_i0)                q_i = PRG(k_i(x_i)) + x_i*tau_i
//! 4.                                      w = sum 2^i q_i
//! ```
//!
//! The pads of the bits from 32 on are half as long.
//!
//! Security: semi-honest; a sender who uses different `u` for different bits is not detected.
//!
//! Cost: 61, 64 or 128 base OTs ([`volery_ot::base`]), then for each entry of the vector from the
//! sender to the receiver, in one direction without an answer: 488 bytes in `fp61`, 2048 in
//! `gf128`, 260 in `z64` (4 more for each 256 entries, or rest of them, that are odd in number).

use volery_channel::{Channel, Result, SessionId};
use volery_field::{Fp61, Gf128, Ring, Z64};
use volery_ot::base;
use volery_pcg::{gilboa, wire};
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, Zeroizing};

/// A ring with a multiplication of a vector by a scalar, base OTs included.
pub(crate) trait Multiply: Ring {
    /// The holder of the vector `u`: `v` such that the other party gets `w = u*x + v`.
    fn multiply_sender(
        u: &[Self],
        v: &mut [Self],
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        gilboa::Sender::setup::<Self>(session, rng, channel)?.multiply(u, v, channel)
    }

    /// The holder of the scalar `self`: `w = u*x + v`.
    fn multiply_receiver(
        self,
        w: &mut [Self],
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        gilboa::Receiver::setup(self, session, rng, channel)?.multiply(w, channel)
    }

    /// Bytes that the sender sends for a vector of `n` entries, without the setup.
    fn bytes(n: usize) -> u64 {
        n as u64 * u64::from(Self::BITS) * Self::BYTES as u64
    }
}

impl Multiply for Fp61 {}
impl Multiply for Gf128 {}

/// The holder of `u` and `v`: a vector OLE of length `n` including setup, with a random `u`.
pub(crate) fn send<R: Multiply>(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(Vec<R>, Vec<R>)> {
    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    R::random_slice(rng, &mut u);
    R::multiply_sender(&u, &mut v, session, rng, channel)?;
    Ok((u, v))
}

/// The holder of a random `x`, who gets `w = u*x + v`.
pub(crate) fn receive<R: Multiply>(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(R, Vec<R>)> {
    let (x, mut w) = (R::random(rng), vec![R::ZERO; n]);
    x.multiply_receiver(&mut w, session, rng, channel)?;
    Ok((x, w))
}

/// Entries of the vector that are worked on at once.
const CHUNK: usize = 256;

/// Bits of an element, and of the scalar.
const BITS: usize = 64;

/// From this bit on half a word is enough.
const HALF: usize = BITS / 2;

/// Words that are sent for `n` entries, at most a chunk.
const fn words_for(n: usize) -> usize {
    HALF * n + n.div_ceil(2)
}

struct Z64Sender {
    seeds: Vec<[Prg; 2]>,
}

struct Z64Receiver {
    x: u64,
    seeds: Vec<Prg>,
}

impl Drop for Z64Receiver {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

impl Multiply for Z64 {
    fn multiply_sender(
        u: &[Self],
        v: &mut [Self],
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        let keys = base::send(BITS, session, rng, channel)?; // step 0
        let seeds = keys.iter().map(|keys| keys.map(Prg::new)).collect();
        let mut sender = Z64Sender { seeds };
        let mut message = vec![Self::ZERO; words_for(CHUNK)];
        for (u, v) in u.chunks(CHUNK).zip(v.chunks_mut(CHUNK)) {
            let message = &mut message[..words_for(u.len())];
            sender.chunk(u, v, message);
            wire::send(message, channel)?; // step 2
        }
        channel.flush()
    }

    fn multiply_receiver(
        self,
        w: &mut [Self],
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        let choices = Zeroizing::new(self.value().to_le_bytes());
        let keys = base::receive(&choices[..], BITS, session, rng, channel)?; // step 0
        let seeds = keys.iter().copied().map(Prg::new).collect();
        let mut receiver = Z64Receiver { x: self.value(), seeds };
        let mut message = vec![Self::ZERO; words_for(CHUNK)];
        for w in w.chunks_mut(CHUNK) {
            let message = &mut message[..words_for(w.len())];
            wire::recv(message, "every word is an element of z64", channel)?; // step 2
            receiver.chunk(message, w);
        }
        Ok(())
    }

    fn bytes(n: usize) -> u64 {
        let words = n / CHUNK * words_for(CHUNK) + words_for(n % CHUNK);
        8 * words as u64
    }
}

impl Z64Sender {
    /// Steps 1 and 3 for some entries.
    fn chunk(&mut self, u: &[Z64], v: &mut [Z64], message: &mut [Z64]) {
        let n = u.len();
        let [mut pads, mut other, mut pair] = [[0; CHUNK]; 3];
        v.fill(Z64::ZERO);
        let mut tau = |i: usize, out: &mut [u64]| {
            let [left, right] = &mut self.seeds[i];
            fill_pads(left, i, &mut pads[..n]);
            fill_pads(right, i, &mut other[..n]);
            for (((out, left), right), (u, v)) in
                out.iter_mut().zip(&pads).zip(&other).zip(u.iter().zip(&mut *v))
            {
                *out = left.wrapping_sub(*right).wrapping_add(u.value());
                *v += Z64::new(left << i);
            }
        };
        let (first, rest) = message.split_at_mut(n);
        tau(0, &mut pair[..n]);
        for (word, tau) in first.iter_mut().zip(&pair) {
            *word = Z64::new(*tau);
        }
        let (pairs, last) = rest.split_at_mut((HALF - 1) * n);
        let mut short = [0; CHUNK];
        for (i, words) in (1..HALF).zip(pairs.chunks_mut(n.max(1))) {
            tau(i, &mut pair[..n]);
            tau(BITS - i, &mut short[..n]);
            for ((word, long), short) in words.iter_mut().zip(&pair).zip(&short) {
                *word = Z64::new(long << i >> i | short << (BITS - i));
            }
        }
        tau(HALF, &mut pair[..n]);
        for (word, taus) in last.iter_mut().zip(pair[..n].chunks(2)) {
            let high = taus.get(1).copied().unwrap_or_default();
            *word = Z64::new(taus[0] << HALF >> HALF | high << HALF);
        }
        for pads in [&mut pads, &mut other, &mut pair, &mut short] {
            pads.zeroize();
        }
    }
}

impl Z64Receiver {
    /// Steps 3 and 4 for some entries.
    fn chunk(&mut self, message: &[Z64], w: &mut [Z64]) {
        let n = w.len();
        let mut pads = [0; CHUNK];
        w.fill(Z64::ZERO);
        let x = self.x;
        let mut add = |i: usize, words: &[Z64], shift: usize| {
            let chosen = (x >> i & 1).wrapping_neg();
            fill_pads(&mut self.seeds[i], i, &mut pads[..n]);
            for ((w, pad), word) in w.iter_mut().zip(&pads).zip(words) {
                // Bits above those of tau_i are shifted out.
                let q = pad.wrapping_add(chosen & (word.value() >> shift));
                *w += Z64::new(q << i);
            }
        };
        let (first, rest) = message.split_at(n);
        add(0, first, 0);
        let (pairs, last) = rest.split_at((HALF - 1) * n);
        for (i, words) in (1..HALF).zip(pairs.chunks(n.max(1))) {
            add(i, words, 0);
            add(BITS - i, words, BITS - i);
        }
        let halves = last.iter().flat_map(|word| [*word, Z64::new(word.value() >> HALF)]);
        let mut words = [Z64::ZERO; CHUNK];
        for (word, half) in words[..n].iter_mut().zip(halves) {
            *word = half;
        }
        add(HALF, &words, 0);
        pads.zeroize();
    }
}

/// The next pads for bit `i`: words, or halves of them.
fn fill_pads(prg: &mut Prg, i: usize, out: &mut [u64]) {
    let mut words = [Z64::ZERO; CHUNK];
    if i < HALF {
        let words = &mut words[..out.len()];
        Z64::random_slice(prg, words);
        for (out, word) in out.iter_mut().zip(words) {
            *out = word.value();
        }
    } else {
        let words = &mut words[..out.len().div_ceil(2)];
        Z64::random_slice(prg, words);
        for (out, word) in out.chunks_mut(2).zip(words) {
            let halves = [word.value() << HALF >> HALF, word.value() >> HALF];
            for (out, half) in out.iter_mut().zip(halves) {
                *out = half;
            }
        }
    }
    words.zeroize();
}
