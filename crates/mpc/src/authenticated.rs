//! Values that neither party can change: shares with tags, over a ring `B` with tags in `R`.
//!
//! A value `x = x_A + x_B` in `B` is *authenticated* if the sender `A` has `x_A`, a tag `t_A` of it
//! and a key `k_A` of the peer's share, `B` likewise, and
//!
//! ```text
//! k_B = x_A*alpha_B + t_A,    k_A = x_B*alpha_A + t_B    in R
//! ```
//!
//! Vector OLEs in both directions are authenticated random values, and so are correlated OTs
//! ([`FromCot`](volery_pcg::vole::FromCot)) with `B` = F2 and `R` = GF(2^128): the authenticated
//! bits of TinyOT (Nielsen, Nordholt, Orlandi, Burra, CRYPTO 2012). A difference makes them those
//! of chosen values. Linear functions are local; products take a triple of [`crate::tinyot`] or
//! [`crate::mascot`].
//!
//! Security: malicious, over malicious-secure sources, with an abort. A party that opens another
//! value must guess the peer's `alpha`, with probability `2^-61` over fp61 and `2^-126` over F2. A
//! failed call deletes the state.
//!
//! Cost: of an input, an element of `B` from each party; of an opening, that and 32 bytes from each
//! party for each call.

use std::marker::PhantomData;

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role, SessionId};
use volery_field::{ExtensionOf, Ring};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_primitives::{prg::Prg, ro::RandomOracle};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{exchange, in_order};

/// A party's part of authenticated values; wiped when dropped.
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Values<R: ExtensionOf<B>, B: Ring = R> {
    pub(crate) shares: Vec<B>,
    pub(crate) tags: Vec<R>,
    pub(crate) keys: Vec<R>,
}

impl<R: ExtensionOf<B>, B: Ring> Values<R, B> {
    /// `n` zeros.
    #[must_use]
    pub fn zeros(n: usize) -> Self {
        Self { shares: vec![B::ZERO; n], tags: vec![R::ZERO; n], keys: vec![R::ZERO; n] }
    }

    /// This party's shares.
    #[must_use]
    pub fn shares(&self) -> &[B] {
        &self.shares
    }

    /// Takes the values from place `at` on away. Panics if there are fewer.
    #[must_use]
    pub fn split_off(&mut self, at: usize) -> Self {
        let Self { shares, tags, keys } = self;
        let split = (shares.split_off(at), tags.split_off(at), keys.split_off(at));
        Self { shares: split.0, tags: split.1, keys: split.2 }
    }

    /// Adds `factors[i]*other[i]`, with public factors. Panics if the lengths differ.
    pub fn add_scaled(&mut self, factors: &[B], other: &Self) {
        B::add_products([factors], [&other.shares], &mut self.shares);
        for (own, other) in [(&mut self.tags, &other.tags), (&mut self.keys, &other.keys)] {
            for ((own, other), factor) in own.iter_mut().zip(other).zip(factors) {
                *own += other.mul_base(*factor);
            }
        }
    }

    /// Adds other values, one by one. Panics if the lengths differ.
    pub fn add(&mut self, other: &Self) {
        self.add_scaled(&vec![B::ONE; other.shares.len()], other);
    }

    /// Subtracts other values, one by one. Panics if the lengths differ.
    pub fn subtract(&mut self, other: &Self) {
        self.add_scaled(&vec![-B::ONE; other.shares.len()], other);
    }

    /// The values at these places, which are public.
    pub(crate) fn select(&self, places: &[usize]) -> Self {
        Self {
            shares: places.iter().map(|&i| self.shares[i]).collect(),
            tags: places.iter().map(|&i| self.tags[i]).collect(),
            keys: places.iter().map(|&i| self.keys[i]).collect(),
        }
    }
}

/// A party with its sources: vector OLEs of which it has `u`, and others of which it has `x`.
pub struct Party<U, V, R: ExtensionOf<B>, B: Ring = R> {
    pub(crate) role: Role,
    pub(crate) alpha: Zeroizing<R>,
    pub(crate) rng: Prg,
    /// `None` after a failed call.
    sources: Option<(U, V)>,
    session: SessionId,
    calls: u64,
    of: PhantomData<B>,
}

impl<U, V, R, B> Party<U, V, R, B>
where
    U: VoleSender<R, B>,
    V: VoleReceiver<R>,
    R: ExtensionOf<B>,
    B: Ring,
{
    /// A party over these sources; `session` is of this object alone and the same at the peer,
    /// `rng` is this party's randomness. Fails if a call on `keys` failed. Panics if their `x`,
    /// which must be random, is zero.
    pub fn new(role: Role, values: U, keys: V, session: SessionId, rng: Prg) -> Result<Self> {
        let alpha = Zeroizing::new(keys.try_x()?);
        // no mutant: a caller's mistake
        assert!(!bool::from(alpha.ct_eq(&R::ZERO)), "a key of zero authenticates nothing");
        let sources = Some((values, keys));
        Ok(Self { role, alpha, rng, sources, session, calls: 0, of: PhantomData })
    }

    /// Runs a call, which may run others; if one fails, the state is dropped.
    pub(crate) fn call<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        // A source can fail by another object of its setup.
        let lives = self.sources.as_ref().is_some_and(|(_, keys)| keys.try_x().is_ok());
        // mutant(mpc-again): true
        let result = if lives { call(self) } else { Err(Error::Broken) };
        if result.is_err() {
            self.sources = None;
            self.alpha.zeroize();
        }
        result
    }

    /// `n` random values: neither party knows their sums.
    pub fn random(&mut self, n: usize, channel: &mut Channel) -> Result<Values<R, B>> {
        self.call(|party| {
            let mut out = Values::zeros(n);
            let Values { shares, tags, keys } = &mut out;
            in_order(
                party.role,
                party.sources.as_mut().ok_or(Error::Broken)?,
                channel,
                |sources, channel| sources.0.extend(shares, tags, channel),
                |sources, channel| sources.1.extend(keys, channel),
            )?;
            Ok(out)
        })
    }

    /// The sums of `own` and of the peer's values, of which it has as many.
    pub fn input(&mut self, own: &[B], channel: &mut Channel) -> Result<Values<R, B>> {
        self.call(|party| {
            let mut out = party.random(own.len(), channel)?;
            let mut difference = own.to_vec();
            B::sub_slice(&mut difference, &out.shares);
            let theirs = exchange(party.role, &difference, channel)?;
            R::axpy_base(&mut out.keys, *party.alpha, &theirs);
            out.shares.copy_from_slice(own);
            Ok(out)
        })
    }

    /// Opens values to both parties.
    pub fn open(&mut self, x: &Values<R, B>, channel: &mut Channel) -> Result<Vec<B>> {
        self.call(|party| {
            let mut theirs = exchange(party.role, &x.shares, channel)?;
            let mut expected = Zeroizing::new(x.keys.clone());
            R::axpy_base(&mut expected, -*party.alpha, &theirs);
            let [own, expected] = [&x.tags, &*expected].map(|tags| {
                let mut bytes = Zeroizing::new(Vec::with_capacity(R::encoded_len(tags.len())));
                R::write(tags, &mut bytes);
                RandomOracle::new("volery mpc: tags").absorb(&bytes).finish32()
            });
            let mut claimed = [0; 32];
            let send = |_: &mut _, channel: &mut Channel| channel.send(&own);
            in_order(party.role, &mut claimed, channel, send, |claimed, c| c.recv(claimed))?;
            // mutant(mpc-tag): false
            if !bool::from(expected.ct_eq(&claimed)) {
                return Err(Error::PeerMisbehaved("an opened value is not the authenticated one"));
            }
            B::add_slice(&mut theirs, &x.shares);
            Ok(theirs)
        })
    }

    /// The products of `x` and `y` by as many triples `[a, b, a*b]`, none of which is used twice.
    /// Panics if the lengths differ.
    pub fn multiply(
        &mut self,
        [x, y]: [&Values<R, B>; 2],
        [a, b, mut c]: [Values<R, B>; 3],
        channel: &mut Channel,
    ) -> Result<Values<R, B>> {
        let (mut d, mut e) = (x.clone(), y.clone());
        d.subtract(&a);
        e.subtract(&b);
        let (d, e) = (self.open(&d, channel)?, self.open(&e, channel)?);
        c.add_scaled(&d, y); // x*y = (d + a)*y = d*y + e*a + c
        c.add_scaled(&e, &a);
        Ok(c)
    }

    /// An id for hashes of one call, in the messages of the party `of`.
    pub(crate) fn session(&mut self, of: Role) -> SessionId {
        let mut oracle = RandomOracle::new("volery mpc: triples");
        oracle.absorb(self.session.as_bytes()).absorb(of.name().as_bytes()).absorb_u64(self.calls);
        self.calls += u64::from(of == Role::Receiver);
        SessionId::from_bytes(oracle.finish32())
    }
}
