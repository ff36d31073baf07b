//! Scalar-times-vector products by Gilboa's multiplication over correlated OT: the base of every
//! vector-OLE here.
//!
//! Gilboa, *Two party RSA key generation*, CRYPTO 1999; section 2.1.1 of the 2019 paper, batched
//! over the vector: the scalar's bits choose once, and the chosen seeds are stretched to the length
//! of the vector.
//!
//! ```text
//! Sender: u in R^n                        Receiver: x, with bits x_0 .. x_(l-1)
//! 0. seeds k_i0, k_i1  ------ one OT for each bit, on x_i ------>  k_i(x_i)
//! 1. tau_i = PRG(k_i0) - PRG(k_i1) + u
//! 2.                   ---- tau_i, for each i ---->
//! 3. v = sum 2^i PRG(k_i0)                q_i = PRG(k_i(x_i)) + x_i*tau_i
//! 4.                                      w = sum 2^i q_i
//! ```
//!
//! `q_i = PRG(k_i0) + x_i*u`, so that `w = u*x + v`. In `gf128` the powers of two are those of X.
//!
//! `x`, `v` and `w` may be in an extension of `R`: then `x` has the bits of all its coefficients,
//! and the powers of two are those of [`Ring::power_of_two`]. All messages stay in `R`, so that a
//! malicious sender has a `u` in `R`, too.
//!
//! Over a field, [`Sender::multiply_checked`] adds a random entry `a` of the extension at the end
//! (with `v_a`, `w_a`), as many in `R` as it has coefficients, [combined](ExtensionOf::combine);
//! over a small field two of them (`check` has the reason). Then for each, with `chi` in the
//! extension,
//!
//! ```text
//! 5.                   <---- seed of chi, random ----
//! 6. u' = a + sum chi_j u_j,  v' = v_a + sum chi_j v_j
//!                      ---- u', v' ---->         w_a + sum chi_j w_j = u'*x + v', or abort
//! ```
//!
//! Security: steps 1 to 4 alone are semi-honest: a sender who uses different `u` in different
//! `tau_i` makes the receiver's `w` depend on single bits of `x`. With the check (the COPEe check
//! of MASCOT, ePrint 2016/505, as used by Wolverine, ePrint 2020/925) such a sender passes only if
//! it guesses the bits of `x` that its errors meet, or with the error probability of
//! `check`; a wrong guess ends the session. `a` masks `u'`; the receiver learns nothing
//! from it.
//!
//! Cost: `l` base OTs once, or as many random OTs from an extension ([`Sender::from_ots`]); then
//! `l*n` elements of `R` from the sender to the receiver, `l = Ring::BITS` of `x`, and no message
//! back. In
//! fp61 that is 488 bytes for each entry, in z64 512, in gf128 2048. The check of a call adds two
//! entries (one in gf128), then a message of 16 bytes from the receiver and one of two elements for
//! each from the sender.

use subtle::Choice;
use volery_channel::{Channel, Error, Result, SessionId};
use volery_field::{ExtensionOf, Ring};
use volery_ot::base;
use volery_primitives::{Block, bits, pages::Buffer, prg::Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::{check::repetitions, wire};

/// Entries of the vector processed at a time; bounds the memory at `BITS * CHUNK` elements.
const CHUNK: usize = 256;

/// The holder of the vector `u`.
pub struct Sender {
    seeds: Vec<[Prg; 2]>,
}

/// The holder of the scalar `x`.
pub struct Receiver<R: Ring> {
    x: R,
    seeds: Vec<Prg>,
}

impl Sender {
    /// Step 0: one base OT for each bit of an element of `R`.
    pub fn setup<R: Ring>(
        session: SessionId,
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<Self> {
        let keys = base::send(R::BITS as usize, session, rng, channel)?;
        Ok(Self::from_ots(&keys))
    }

    /// Step 0 with existing random OTs, one for each bit of an element: both messages of each.
    #[must_use]
    pub fn from_ots(keys: &[[Block; 2]]) -> Self {
        Self { seeds: keys.iter().map(|keys| keys.map(Prg::new)).collect() }
    }

    /// Steps 1 to 3: `v` for which the receiver gets `w = u*x + v`.
    ///
    /// # Panics
    /// If the lengths differ, or step 0 was for another number of bits than those of an element of
    /// `R`.
    pub fn multiply<B: Ring, R: ExtensionOf<B>>(
        &mut self,
        u: &[B],
        v: &mut [R],
        channel: &mut Channel,
    ) -> Result<()> {
        assert_eq!(u.len(), v.len(), "u and v have one length");
        assert_eq!(self.seeds.len(), R::BITS as usize, "one OT for each bit of x");
        for (u, v) in u.chunks(CHUNK).zip(v.chunks_mut(CHUNK)) {
            v.fill(R::ZERO);
            let (mut left, mut right) = (Buffer::zeroed(u.len()), Buffer::zeroed(u.len()));
            for (i, [seed_0, seed_1]) in (0..).zip(&mut self.seeds) {
                B::random_slice(seed_0, &mut left);
                B::random_slice(seed_1, &mut right);
                R::axpy_base(v, R::power_of_two(i), &left); // step 3
                B::sub_slice(&mut left, &right); // step 1
                B::add_slice(&mut left, u);
                wire::send(&left, channel)?; // step 2
            }
        }
        channel.flush()
    }

    /// Steps 1 to 6, over a field.
    pub fn multiply_checked<B: Ring, R: ExtensionOf<B>>(
        &mut self,
        u: &[B],
        v: &mut [R],
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()> {
        let mut a = Zeroizing::new(vec![B::ZERO; repetitions::<R>() * R::DEGREE]);
        B::random_slice(rng, &mut a);
        let mut v_a = Zeroizing::new(vec![R::ZERO; a.len()]);
        self.multiply(u, v, channel)?;
        self.multiply(&a, &mut v_a, channel)?;
        let chi = challenge::<R>(channel.recv_block()?, repetitions::<R>(), u.len()); // step 5
        let a: Zeroizing<Vec<R>> = Zeroizing::new(a.iter().map(|a| R::embed(*a)).collect());
        let mut combined = Vec::new();
        let masks = a.chunks_exact(R::DEGREE).zip(v_a.chunks_exact(R::DEGREE));
        for (chi, (a, v_a)) in chi.iter().zip(masks) {
            let terms = chi.iter().zip(u).map(|(chi, u)| chi.mul_base(*u));
            let u = terms.fold(R::ZERO, |sum, term| sum + term);
            // mutant(gilboa-mask): `R::combine(a)` => `R::ZERO`
            combined.push(R::combine(a) + u);
            combined.push(R::combine(v_a) + R::inner_product(chi, v));
        }
        wire::send(&combined, channel)?; // step 6
        channel.flush()
    }
}

impl<R: Ring> Receiver<R> {
    /// Step 0: one base OT for each bit of `x`.
    pub fn setup(x: R, session: SessionId, rng: &mut Prg, channel: &mut Channel) -> Result<Self> {
        let keys = base::receive(&choices(x), R::BITS as usize, session, rng, channel)?;
        Ok(Self::from_ots(x, &keys))
    }

    /// Step 0 with existing random OTs: of each, the message that the bit of `x` chose; [`choices`]
    /// returns the bits.
    ///
    /// # Panics
    /// If their number is not that of the bits.
    #[must_use]
    pub fn from_ots(x: R, keys: &[Block]) -> Self {
        assert_eq!(keys.len(), R::BITS as usize, "one OT for each bit of x");
        Self { x, seeds: keys.iter().copied().map(Prg::new).collect() }
    }

    /// Steps 2 to 4: `w = u*x + v`.
    ///
    /// # Errors
    /// If the channel fails, or the sender's message has a value that is not an element of the
    /// ring. The caller must not use `w` then.
    pub fn multiply<B: Ring>(&mut self, w: &mut [R], channel: &mut Channel) -> Result<()>
    where
        R: ExtensionOf<B>,
    {
        for w in w.chunks_mut(CHUNK) {
            w.fill(R::ZERO);
            let (mut q, mut tau) = (Buffer::zeroed(w.len()), Buffer::zeroed(w.len()));
            for (i, seed) in (0..).zip(&mut self.seeds) {
                // mutant(gilboa-canonical-correction): ignore
                wire::recv(&mut tau, "a product's correction is not in canonical form", channel)?;
                B::random_slice(seed, &mut q);
                add_if(&mut q, &tau, self.x.bit(i)); // step 3
                R::axpy_base(w, R::power_of_two(i), &q); // step 4
            }
        }
        Ok(())
    }

    /// Steps 2 to 6, over a field.
    ///
    /// # Errors
    /// If the channel or the check fails, or the sender's message has a value that is not an
    /// element of the ring. The caller must then use neither `w` nor this object.
    pub fn multiply_checked<B: Ring>(
        &mut self,
        w: &mut [R],
        rng: &mut Prg,
        channel: &mut Channel,
    ) -> Result<()>
    where
        R: ExtensionOf<B>,
    {
        let mut w_a = Zeroizing::new(vec![R::ZERO; repetitions::<R>() * R::DEGREE]);
        // mutant(gilboa-early): insert `if $ON { channel.send_block(Block::ZERO)?;
        //     channel.flush()?; }`
        self.multiply::<B>(w, channel)?;
        self.multiply::<B>(&mut w_a, channel)?;
        // mutant(gilboa-seed): `rng.block()` => `Block::ZERO`
        let seed = rng.block();
        channel.send_block(seed)?; // step 5
        let chi = challenge(seed, repetitions::<R>(), w.len());
        let mut combined = vec![R::ZERO; 2 * chi.len()];
        // mutant(gilboa-canonical-answer): ignore
        wire::recv(
            &mut combined,
            "a value of the product's check is not in canonical form",
            channel,
        )?; // step 6
        let right = |(([u, v], chi), w_a): ((&[R; 2], &Vec<R>), &[R])| {
            // no mutant: the mutant of its condition is gilboa-check
            (R::combine(w_a) + R::inner_product(chi, w)).ct_eq(&(*u * self.x + *v))
        };
        let lines = combined.as_chunks().0.iter().zip(&chi).zip(w_a.chunks_exact(R::DEGREE));
        // mutant(gilboa-check): `(lines.map(right).fold(Choice::from(1), |all, one| all & one))` =>
        //     `(lines.map(right).skip(usize::from($ON[gilboa-check-last])).take(if
        //     $ON[gilboa-check-first] { 1 } else { usize::MAX }).fold(Choice::from(1), |all, one|
        //     all & one)) && !$ON`
        // mutant(gilboa-check-first): in gilboa-check
        // mutant(gilboa-check-last): in gilboa-check
        if !bool::from(lines.map(right).fold(Choice::from(1), |all, one| all & one)) {
            return Err(Error::PeerMisbehaved("the check of a product failed"));
        }
        Ok(())
    }
}

/// The bits of `x`, packed, low bit first: the choices of the OTs of step 0.
#[must_use]
pub fn choices<R: Ring>(x: R) -> Zeroizing<Vec<u8>> {
    let mut choices = Zeroizing::new(vec![0; bits::bytes_for(R::BITS as usize)]);
    for i in 0..R::BITS {
        choices[i as usize / 8] |= x.bit(i).unwrap_u8() << (i % 8);
    }
    choices
}

/// Step 5: the coefficients of the check, for each repetition.
fn challenge<R: Ring>(seed: Block, repetitions: usize, n: usize) -> Vec<Vec<R>> {
    // mutant(gilboa-challenge): `seed` => `Block::ZERO`
    let mut prg = Prg::new(seed);
    let mut random = || {
        let mut chi = vec![R::ZERO; n];
        R::random_slice(&mut prg, &mut chi);
        chi
    };
    (0..repetitions).map(|_| random()).collect()
}

impl<R: Ring> Drop for Receiver<R> {
    fn drop(&mut self) {
        self.x.zeroize();
    }
}

/// `acc += x` if `bit`, with the same memory accesses otherwise.
fn add_if<R: Ring>(acc: &mut [R], x: &[R], bit: Choice) {
    for (acc, x) in acc.iter_mut().zip(x) {
        *acc += R::conditional_select(&R::ZERO, x, bit);
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;
    use volery_field::{Fp61, Gf128, Z64};

    use super::*;

    fn check<R: Ring>(x: R, sizes: &[usize]) {
        let session = SessionId::from_bytes([1; 32]);
        let (lines, values) = run_two_parties(
            |channel| {
                let mut rng = Prg::new(Block::from(1));
                let mut sender = Sender::setup::<R>(session, &mut rng, channel).unwrap();
                let before = channel.stats().bytes_sent;
                let lines: Vec<_> = sizes
                    .iter()
                    .map(|n| {
                        let (mut u, mut v) = (vec![R::ZERO; *n], vec![R::ONE; *n]);
                        R::random_slice(&mut rng, &mut u);
                        sender.multiply(&u, &mut v, channel).unwrap();
                        (u, v)
                    })
                    .collect();
                let n: usize = sizes.iter().sum();
                let cost = n as u64 * u64::from(R::BITS) * R::BYTES as u64;
                assert_eq!(channel.stats().bytes_sent - before, cost, "the cost of the doc");
                lines
            },
            |channel| {
                let mut rng = Prg::new(Block::from(2));
                let mut receiver = Receiver::setup(x, session, &mut rng, channel).unwrap();
                sizes
                    .iter()
                    .map(|n| {
                        let mut w = vec![R::ONE; *n];
                        receiver.multiply(&mut w, channel).unwrap();
                        w
                    })
                    .collect::<Vec<_>>()
            },
        );
        for ((u, v), w) in lines.iter().zip(&values) {
            for i in 0..w.len() {
                assert!(w[i] == u[i] * x + v[i]);
            }
        }
    }

    #[test]
    fn the_product_is_shared() {
        let mut random = Prg::new(Block::from(3));
        let sizes = [0, 1, 255, 256, 257, 600];
        check(Fp61::random(&mut random), &sizes);
        check(Z64::random(&mut random), &sizes);
        check(Gf128::random(&mut random), &sizes);
        check(Fp61::ZERO, &[3]);
        check(Fp61::ZERO - Fp61::ONE, &[3]);
        check(Z64::ZERO - Z64::ONE, &[3]);
    }

    /// The receiver sends only its challenges: they differ from check to check, and with its
    /// randomness from run to run.
    #[test]
    fn challenges_are_drawn_anew() {
        let challenges = |seed: u128| {
            let bits = Fp61::BITS as usize;
            let (challenges, ()) = run_two_parties(
                |channel| {
                    let mut sender = Sender::from_ots(&vec![[Block::ZERO; 2]; bits]);
                    let zeros = vec![Fp61::ZERO; 3 + repetitions::<Fp61>()];
                    [(); 2].map(|()| {
                        let (u, a) = zeros.split_at(3);
                        let mut v = zeros.clone();
                        sender.multiply(u, &mut v[..3], channel).unwrap();
                        sender.multiply(a, &mut v[3..], channel).unwrap();
                        let seed = channel.recv_block().unwrap();
                        let mut combined = Vec::new();
                        for (chi, v_a) in challenge(seed, a.len(), 3).iter().zip(&v[3..]) {
                            combined.push(Fp61::ZERO);
                            combined.push(*v_a + Fp61::inner_product(chi, &v[..3]));
                        }
                        wire::send(&combined, channel).unwrap();
                        channel.flush().unwrap();
                        seed
                    })
                },
                |channel| {
                    let mut rng = Prg::new(Block::from(seed));
                    let mut receiver = Receiver::from_ots(Fp61::ONE, &vec![Block::ZERO; bits]);
                    for _ in 0..2 {
                        let mut w = [Fp61::ZERO; 3];
                        receiver.multiply_checked(&mut w, &mut rng, channel).unwrap();
                    }
                },
            );
            challenges
        };
        assert_eq!(challenges(1), challenges(1));
        let all = [challenges(1), challenges(2)].concat();
        assert!((0..4).all(|i| !all[..i].contains(&all[i])), "{all:?}");
        // Each repetition has separate coefficients, and so has each seed.
        let coefficients: Vec<Fp61> =
            all.iter().flat_map(|seed| challenge(*seed, 2, 3).concat()).collect();
        assert_eq!(coefficients.len(), 4 * 2 * 3);
        assert!((0..24).all(|i| !coefficients[..i].contains(&coefficients[i])));
    }

    /// A receiver without all corrections sends nothing.
    #[test]
    fn no_challenge_before_the_corrections() {
        let bits = Fp61::BITS as usize;
        volery_channel::run_two_unchecked(
            |channel| {
                channel.set_timeout(Some(std::time::Duration::from_millis(200)));
                let mut sender = Sender::from_ots(&vec![[Block::ZERO; 2]; bits]);
                let (u, mut v) = ([Fp61::ONE; 3], [Fp61::ZERO; 3]);
                sender.multiply(&u, &mut v, channel).unwrap();
                assert!(matches!(channel.recv_block(), Err(Error::TimedOut(_))));
            },
            |channel| {
                let mut receiver = Receiver::from_ots(Fp61::ONE, &vec![Block::ZERO; bits]);
                let mut rng = Prg::new(Block::from(1));
                let result = receiver.multiply_checked(&mut [Fp61::ZERO; 3], &mut rng, channel);
                assert!(matches!(result, Err(Error::Disconnected)));
            },
        );
    }

    /// The same product with other randomness of the sender, and the same challenge: no value of
    /// the answer is the same.
    #[test]
    fn the_answer_is_masked() {
        let answer = |seed: u128| {
            let bits = Fp61::BITS as usize;
            let keys: Vec<_> = (0..bits as u128).map(|i| [i, i + 1000]).collect();
            let (_, answer) = run_two_parties(
                |channel| {
                    let keys: Vec<_> = keys.iter().map(|keys| keys.map(Block::from)).collect();
                    let mut sender = Sender::from_ots(&keys);
                    let (u, mut v) = ([Fp61::ONE; 3], [Fp61::ZERO; 3]);
                    let mut rng = Prg::new(Block::from(seed));
                    sender.multiply_checked(&u, &mut v, &mut rng, channel).unwrap();
                },
                |channel| {
                    let keys: Vec<_> = keys.iter().map(|keys| Block::from(keys[0])).collect();
                    let mut receiver = Receiver::from_ots(Fp61::ZERO, &keys);
                    let repetitions = repetitions::<Fp61>();
                    receiver.multiply(&mut [Fp61::ZERO; 3], channel).unwrap();
                    let mut w_a = vec![Fp61::ZERO; repetitions];
                    receiver.multiply(&mut w_a, channel).unwrap();
                    channel.send_block(Block::ONE).unwrap();
                    let mut combined = vec![Fp61::ZERO; 2 * repetitions];
                    wire::recv(&mut combined, "an answer", channel).unwrap();
                    combined
                },
            );
            answer
        };
        // The combination of u; the combination of v follows from it.
        let [one, other] = [answer(1), answer(2)];
        assert!((0..one.len()).step_by(2).all(|i| one[i] != other[i]));
    }
}
