//! Authenticated multiplication triples over F2, secure against a malicious peer.
//!
//! Leaky triples by the protocol `Pi_LaAND` of Katz, Ranellucci, Rosulek, Wang, *Optimizing
//! Authenticated Garbling for Faster Secure Two-Party Computation*, CRYPTO 2018 (ePrint 2018/578);
//! buckets of them by `Pi_aAND` of Wang, Ranellucci, Katz, *Authenticated Garbling and Efficient
//! Maliciously Secure Two-Party Computation*, CCS 2017 (ePrint 2017/030). With the shares `x_A`,
//! tags `t_A(x)` and keys `k_A(x)` of [`crate::authenticated`], and `delta` for its
//! `alpha`:
//!
//! ```text
//! A (and B, with the indices exchanged); together C(y) = y*(delta_A + delta_B), where
//!    C_A(y) = y_A*delta_A + k_A(y) + t_A(y)
//! 1. authenticated random bits x, y, r
//! 2. --- G_A = H(k_A(x)) + H(k_A(x) + delta_A) + C_A(y) --->                <--- G_B ---
//! 3. S_A = H(k_A(x)) + H(t_A(x)) + x_A*(G_B + C_A(y));   together x*y*(delta_A + delta_B),
//!    whose lowest bit is x*y
//! 4. --- lowest bit of S_A, + r_A --->  and back;   z = r + both bits
//! 5. both compare a hash of all S + C(z), which are equal if all z = x*y
//! 6. a common seed, by commitment, permutes the leaky triples into buckets
//! 7. in each bucket: opens d_j = y_1 + y_j;   x = sum of all x_j,  y = y_1,
//!    z = z_1 + sum over j > 1 of z_j + d_j*x_j
//! ```
//!
//! In step 3 the lowest bit of `delta_A + delta_B` must be set: [`delta`] sets `A`'s and clears
//! `B`'s. A party with another one would choose `z`, and step 5 would tell it `x*y`. The papers
//! assume the bit. Here each party proves it in step 0: it opens the lowest bit of its keys for
//! [`STATISTICAL`] random bits of the peer, which are thrown away. With the wrong `delta` it must
//! guess them, which it does with probability `2^-40`.
//!
//! Security: malicious, over malicious-secure sources, with an abort. A party that sends another
//! `G` learns an `x_j` of the peer if it guesses it, and is caught in step 5 otherwise. A triple
//! leaks if all of its bucket do: of `m = n*B` leaky triples, with `c` guesses, with probability at
//! most `n * 2^-c * C(m-B, c-B) / C(m, c)`, which is at most `2^-40` at the least `B` that
//! [`bucket`] allows. The bound is for each call: few large calls are better, and cheaper. Steps 0
//! and 7 together fail with probability `2^-39`.
//!
//! Cost for each triple, in each direction: `3*B` correlated OTs, `16*B` bytes and `2*B - 1` bits.
//! `B` is 3 from 276,325 triples on, 4 from 3,044 and 5 from 320.

use std::borrow::BorrowMut;

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role, Session};
use volery_field::{ExtensionOf as _, F2, Gf128, Ring as _};
use volery_pcg::vole::{FromCot, VoleReceiver, VoleSender};
use volery_pcg::{Plan, Security, cot};
use volery_primitives::hash::Tweaked;
use volery_primitives::{Block, prg::Prg, ro::RandomOracle};
use zeroize::Zeroizing;

use crate::authenticated::{self, Values};
use crate::{STATISTICAL, agree, exchange};

/// Authenticated bits.
pub type Bits = Values<Gf128, F2>;

/// A party with authenticated bits.
pub type Party<U, V> = authenticated::Party<U, V, Gf128, F2>;

/// A random `delta` for the COT in which this party is the sender, its lowest bit as
/// [`triples`] needs it.
#[must_use]
pub fn delta(role: Role, rng: &mut Prg) -> Block {
    rng.block().with_lsb(role == Role::Sender)
}

/// The least number of triples for each size of bucket.
const BUCKETS: [(usize, usize); 8] =
    [(276_325, 3), (3_044, 4), (320, 5), (84, 6), (34, 7), (12, 9), (3, 16), (0, 40)];

/// The number of leaky triples for each of `n` triples.
#[must_use]
pub fn bucket(n: usize) -> usize {
    BUCKETS.iter().find(|of| n >= of.0).expect("a size for any number").1
}

/// The number of correlated OTs in each direction for one call of [`triples`] for `n`.
#[must_use]
pub fn cots(n: usize) -> usize {
    3 * n * bucket(n) + STATISTICAL
}

/// A party over correlated OTs in both directions that are started here, each by this plan: it
/// needs [`cots`] and one for each bit of input. Panics if it is not for malicious correlated OT.
pub fn start(
    plan: &Plan,
    role: Role,
    session: &mut Session<impl BorrowMut<Channel>>,
) -> Result<Party<FromCot<cot::Receiver>, FromCot<cot::Sender>>> {
    assert_eq!(plan.security(), Security::Malicious, "authenticated bits need checked OTs");
    let (id, mut rng, _) = session.parts();
    let delta = Zeroizing::new(delta(role, &mut rng));
    let start = |session: &mut Session<_>| cot::Sender::start(plan, Some(*delta), session);
    let (sender, receiver) = if role == Role::Sender {
        (start(session)?, cot::Receiver::start(plan, session)?)
    } else {
        let receiver = cot::Receiver::start(plan, session)?;
        (start(session)?, receiver)
    };
    session.flush()?;
    Party::new(role, FromCot(receiver), FromCot(sender), id, rng)
}

/// `n` random triples `[x, y, x*y]`. The party's `alpha` is a [`delta`] of this module; panics if
/// its lowest bit is another one.
pub fn triples<U: VoleSender<Gf128, F2>, V: VoleReceiver<Gf128>>(
    n: usize,
    party: &mut Party<U, V>,
    channel: &mut Channel,
) -> Result<[Bits; 3]> {
    party.call(|party| {
        assert_eq!(lowest(*party.alpha), F2::new(party.role == Role::Sender), "a delta of `delta`");
        party.prove_lowest_bit(channel)?;
        let size = bucket(n);
        let leaky = party.leaky(n * size, channel)?;
        let mut seed = Prg::new(agree::toss(party.role, &mut party.rng, channel)?); // step 6
        let mut order: Vec<_> = (0..n * size).collect();
        (1..n * size).rev().for_each(|i| order.swap(i, seed.below(i as u64 + 1) as usize));
        let nth = |j: usize| leaky.each_ref().map(|bits| bits.select(&order[j * n..][..n]));
        let [mut x, y, mut z] = nth(0);
        for j in 1..size {
            let [x_j, mut d, z_j] = nth(j);
            d.add(&y);
            let d = party.open(&d, channel)?; // step 7
            x.add(&x_j);
            z.add(&z_j);
            z.add_scaled(&d, &x_j);
        }
        Ok([x, y, z])
    })
}

impl<U: VoleSender<Gf128, F2>, V: VoleReceiver<Gf128>> Party<U, V> {
    /// Step 0.
    fn prove_lowest_bit(&mut self, channel: &mut Channel) -> Result<()> {
        let bits: Bits = self.random(STATISTICAL, channel)?;
        let own: Vec<_> = bits.keys.iter().map(|key| lowest(*key)).collect();
        let theirs = exchange(self.role, &own, channel)?;
        let set = F2::new(self.role == Role::Receiver); // the lowest bit of the peer's delta
        let expected = bits.tags.iter().zip(&bits.shares).map(|(tag, x)| lowest(*tag) + *x * set);
        // mutant(tinyot-lowest-bit): false
        if !bool::from(expected.collect::<Vec<_>>()[..].ct_eq(&theirs[..])) {
            return Err(Error::PeerMisbehaved("the lowest bit of its delta is not its role's"));
        }
        Ok(())
    }

    /// `C(y)`.
    fn scaled(&self, y: &Bits) -> Zeroizing<Vec<Gf128>> {
        let mut out = Zeroizing::new(y.keys.clone());
        Gf128::add_slice(&mut out, &y.tags);
        Gf128::axpy_base(&mut out, *self.alpha, &y.shares);
        out
    }

    /// Steps 1 to 5.
    fn leaky(&mut self, m: usize, channel: &mut Channel) -> Result<[Bits; 3]> {
        let [own_hash, their_hash] = self.role.sides(Role::ALL.map(|of| {
            Tweaked::new(
                RandomOracle::new("volery mpc: leaky triples")
                    .absorb(self.session(of).as_bytes())
                    .finish_block(),
            )
        }));
        let (x, y) = (self.random(m, channel)?, self.random(m, channel)?);
        let mut z = self.random(m, channel)?; // step 1
        let scaled = self.scaled(&y);
        let mut hashes = Zeroizing::new(vec![[Block::ZERO; 2]; m]);
        for (pair, key) in hashes.iter_mut().zip(&x.keys) {
            *pair = [key.value(), (*key + *self.alpha).value()];
        }
        own_hash.hash_pairs(0, &mut hashes);
        let own = hashes.iter().zip(scaled.iter());
        let own: Vec<_> = own.map(|(pair, c)| Gf128::new(pair[0] ^ pair[1]) + *c).collect();
        let theirs = exchange(self.role, &own, channel)?; // step 2
        let mut s = Zeroizing::new(x.tags.clone());
        their_hash.hash_slice(0, bytemuck::cast_slice_mut(&mut s));
        for (i, s) in s.iter_mut().enumerate() {
            let product = (theirs[i] + scaled[i]).mul_base(x.shares[i]);
            *s += Gf128::new(hashes[i][0]) + product; // step 3
        }
        let mut d: Vec<_> = s.iter().zip(&z.shares).map(|(s, r)| lowest(*s) + *r).collect();
        let theirs = exchange(self.role, &d, channel)?; // step 4
        F2::add_slice(&mut d, &theirs);
        match self.role {
            Role::Sender => F2::add_slice(&mut z.shares, &d),
            Role::Receiver => Gf128::axpy_base(&mut z.keys, *self.alpha, &d),
        }
        Gf128::add_slice(&mut s, &self.scaled(&z));
        let mut oracle = RandomOracle::new("volery mpc: check of leaky triples");
        let hash = oracle.absorb(bytemuck::cast_slice(&s)).finish32();
        agree::equal(self.role, &hash, "the check of its triples failed", &mut self.rng, channel)?;
        Ok([x, y, z]) // step 5
    }
}

fn lowest(block: Gf128) -> F2 {
    F2::new(block.value().lsb())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the best chance to know all of a bucket of one of `n` is below the bound.
    fn is_secure(n: usize, size: usize) -> bool {
        let m = n * size;
        let of = |c: usize| {
            let all = (0..size).map(|k| ((c - k) as f64 / (m - k) as f64).log2());
            (n as f64).log2() - c as f64 + all.sum::<f64>()
        };
        // Beyond twice the size one guess more halves the chance, and gains less.
        (size..=m.min(2 * size + 2)).map(of).all(|log| log <= -(STATISTICAL as f64))
    }

    #[test]
    fn buckets_have_the_least_size_that_is_secure() {
        for (least, size) in BUCKETS {
            assert!(least == 0 || !is_secure(least - 1, size), "{least} triples");
            assert!([least.max(1), 2 * least + 1, 1 << 30].iter().all(|n| is_secure(*n, size)));
        }
    }
}
