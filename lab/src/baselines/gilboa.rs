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

/// A ring with a multiplication for it.
pub(crate) trait Multiply: Ring {
    /// The holder of the vector.
    type Sender: Send;
    /// The holder of the scalar.
    type Receiver: Send;

    /// Step 0 for the holder of the vector.
    fn setup_sender(
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<Self::Sender>;

    /// Step 0 for the holder of the scalar `self`.
    fn setup_receiver(
        self,
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<Self::Receiver>;

    /// Steps 1 to 3: `v` such that the receiver gets `w = u*x + v`.
    fn multiply_sender(
        sender: &mut Self::Sender,
        u: &[Self],
        v: &mut [Self],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Steps 2 to 4: `w = u*x + v`.
    fn multiply_receiver(
        receiver: &mut Self::Receiver,
        w: &mut [Self],
        channel: &mut Channel,
    ) -> Result<()>;

    /// Bytes that the sender sends for a vector of `n` entries, without the setup.
    fn bytes(n: usize) -> u64 {
        n as u64 * u64::from(Self::BITS) * Self::BYTES as u64
    }
}

/// The holder of `u` and `v`: a vector OLE of length `n` including setup, with a random `u`.
pub(crate) fn send<R: Multiply>(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(Vec<R>, Vec<R>)> {
    let mut sender = R::setup_sender(session, rng, channel)?;
    let (mut u, mut v) = (vec![R::ZERO; n], vec![R::ZERO; n]);
    R::random_slice(rng, &mut u);
    R::multiply_sender(&mut sender, &u, &mut v, channel)?;
    Ok((u, v))
}

/// The holder of a random `x`, who gets `w = u*x + v`.
pub(crate) fn receive<R: Multiply>(
    n: usize,
    session: SessionId,
    rng: &mut Prg,
    channel: &mut Channel,
) -> Result<(R, Vec<R>)> {
    let x = R::random(rng);
    let mut receiver = x.setup_receiver(session, rng, channel)?;
    let mut w = vec![R::ZERO; n];
    R::multiply_receiver(&mut receiver, &mut w, channel)?;
    Ok((x, w))
}

macro_rules! whole_elements {
    ($R:ty) => {
        impl Multiply for $R {
            type Sender = gilboa::Sender;
            type Receiver = gilboa::Receiver<$R>;

            fn setup_sender(
                session: SessionId,
                rng: &mut Prg,
                channel: &mut Channel,
            ) -> Result<gilboa::Sender> {
                gilboa::Sender::setup::<$R>(session, rng, channel)
            }

            fn setup_receiver(
                self,
                session: SessionId,
                rng: &mut Prg,
                channel: &mut Channel,
            ) -> Result<Self::Receiver> {
                gilboa::Receiver::setup(self, session, rng, channel)
            }

            fn multiply_sender(
                sender: &mut gilboa::Sender,
                u: &[Self],
                v: &mut [Self],
                channel: &mut Channel,
            ) -> Result<()> {
                sender.multiply(u, v, channel)
            }

            fn multiply_receiver(
                receiver: &mut Self::Receiver,
                w: &mut [Self],
                channel: &mut Channel,
            ) -> Result<()> {
                receiver.multiply(w, channel)
            }
        }
    };
}

whole_elements!(Fp61);
whole_elements!(Gf128);

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

/// The holder of a vector over `z64`.
pub(crate) struct Z64Sender {
    seeds: Vec<[Prg; 2]>,
}

/// The holder of a scalar of `z64`.
pub(crate) struct Z64Receiver {
    x: u64,
    seeds: Vec<Prg>,
}

impl Drop for Z64Receiver {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

impl Multiply for Z64 {
    type Sender = Z64Sender;
    type Receiver = Z64Receiver;

    fn setup_sender(session: SessionId, rng: &mut Prg, channel: &mut Channel) -> Result<Z64Sender> {
        let keys = base::send(BITS, session, rng, channel)?;
        Ok(Z64Sender { seeds: keys.iter().map(|keys| keys.map(Prg::new)).collect() })
    }

    fn setup_receiver(
        self,
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<Z64Receiver> {
        let choices = Zeroizing::new(self.value().to_le_bytes());
        let keys = base::receive(&choices[..], BITS, session, rng, channel)?;
        Ok(Z64Receiver { x: self.value(), seeds: keys.iter().copied().map(Prg::new).collect() })
    }

    fn multiply_sender(
        sender: &mut Z64Sender,
        u: &[Self],
        v: &mut [Self],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        let mut message = vec![Self::ZERO; words_for(CHUNK)];
        for (u, v) in u.chunks(CHUNK).zip(v.chunks_mut(CHUNK)) {
            let message = &mut message[..words_for(u.len())];
            sender.chunk(u, v, message);
            wire::send(message, channel)?; // step 2
        }
        channel.flush()
    }

    fn multiply_receiver(
        receiver: &mut Z64Receiver,
        w: &mut [Self],
        channel: &mut Channel,
    ) -> Result<()> {
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

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties_with_stats;
    use volery_primitives::Block;

    use super::*;

    const SESSION: SessionId = SessionId::from_bytes([3; 32]);

    fn check<R: Multiply>(n: usize) {
        let (sent, received) = run_two_parties_with_stats(
            |channel| send::<R>(n, SESSION, &mut Prg::new(Block::new(1)), channel),
            |channel| receive::<R>(n, SESSION, &mut Prg::new(Block::new(2)), channel),
        );
        let (setup, _) = run_two_parties_with_stats(
            |channel| {
                let rng = &mut Prg::new(Block::new(1));
                R::setup_sender(SESSION, rng, channel).map(|_| ())
            },
            |channel| {
                let rng = &mut Prg::new(Block::new(2));
                R::ONE.setup_receiver(SESSION, rng, channel).map(|_| ())
            },
        );
        let (u, v) = sent.0.expect("no fault");
        let (x, w) = received.0.expect("no fault");
        assert!((0..n).all(|i| w[i] == u[i] * x + v[i]), "{n} over {}", R::NAME);
        assert!(n < 2 || u[0] != u[1]);
        assert_eq!(sent.1.bytes_sent - setup.1.bytes_sent, R::bytes(n));
        assert_eq!(sent.1.bytes_received, setup.1.bytes_received);
    }

    #[test]
    fn the_line_holds_and_costs_what_it_says() {
        for n in [0, 1, 2, 63, 255, 256, 257, 511, 1009] {
            check::<Z64>(n);
            check::<Fp61>(n);
            check::<Gf128>(n);
        }
        let each = |bytes: u64| bytes as f64 / 1024.0;
        assert_eq!(
            [Z64::bytes(1024), Fp61::bytes(1024), Gf128::bytes(1024)].map(each),
            [260.0, 488.0, 2048.0]
        );
    }

    /// Every bit of the scalar alone, and its extremes.
    #[test]
    fn every_bit_of_the_scalar() {
        let scalars = (0..64).map(|i| 1 << i).chain([0, u64::MAX, u64::MAX - 1]);
        for x in scalars.map(Z64::new) {
            let mut random = Prg::new(Block::new(9));
            let mut seeds = vec![[Block::ZERO; 2]; BITS];
            random.fill_blocks(seeds.as_flattened_mut());
            let mut sender =
                Z64Sender { seeds: seeds.iter().map(|pair| pair.map(Prg::new)).collect() };
            let chosen = |i: usize| seeds[i][usize::from(x.bit(i as u32).unwrap_u8())];
            let mut receiver = Z64Receiver {
                x: x.value(),
                seeds: (0..BITS).map(|i| Prg::new(chosen(i))).collect(),
            };
            for n in [3, 4] {
                let (mut u, mut v, mut w) =
                    (vec![Z64::ZERO; n], vec![Z64::ONE; n], vec![Z64::ONE; n]);
                Z64::random_slice(&mut random, &mut u);
                let mut message = vec![Z64::ZERO; words_for(n)];
                sender.chunk(&u, &mut v, &mut message);
                receiver.chunk(&message, &mut w);
                assert!((0..n).all(|i| w[i] == u[i] * x + v[i]), "{x}");
            }
        }
    }
}
