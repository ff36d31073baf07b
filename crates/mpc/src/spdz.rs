//! Authenticated elements and multiplication triples over fp61, secure against a malicious peer.
//!
//! An element `x = x_A + x_B` is *authenticated* if the sender `A` has `x_A`, a tag `t_A` of it
//! and a key `k_A` for `x_B`, `B` likewise, and `k_B = x_A*alpha_B + t_A`,
//! `k_A = x_B*alpha_A + t_B`. Vector OLEs in both directions are authenticated random elements, and
//! a difference of 8 bytes makes them those of a chosen element. Linear functions are local.
//!
//! *Triples*: Keller, Orsini, Scholl, *MASCOT: Faster Malicious Arithmetic Secure Computation with
//! Oblivious Transfer*, CCS 2016 (ePrint 2016/505), protocol `Pi_Triple`, whose steps have names,
//! with these tags in place of its global MAC:
//!
//! ```text
//! both parties, for each triple: a in F^T and b in F random
//! Multiply.     OLEs of a[t] with the peer's b, in which the party with a has the choice bits:
//!               c[t] = a[t]*b + shares of both cross products
//! Combine.      a common seed, by commitment, gives r, r' in F^T:
//!               a = <a, r>,  c = <c, r>;  a' = <a, r'>,  c' = <c, r'>
//! Authenticate. a, b, c, a', c'
//! Sacrifice.    another seed gives s: opens p = s*a - a', then s*c - c' - p*b, which is zero
//! ```
//!
//! Security: malicious, over malicious-secure sources, with an abort. A party that deviates in an
//! OLE adds an error that depends on bits of the peer's `a`, and passes the sacrifice only if it
//! guesses what they add up to: with probability `2^-g` it learns `g` bits of the `61*T`. By the
//! leftover hash lemma `a` and `a'` are then within `2^-(61*T - 122)/2` of uniform, weighted with
//! that probability: `2^-61` with `T = 4`. A wrong product, or a wrong opening, passes with
//! probability at most `2^-60`. A failed call deletes the state.
//!
//! Cost for each triple, in each direction beside the sources: `T` OLEs (1984 bytes), 40 bytes to
//! authenticate and 16 to open; in each direction 244 correlated OTs and 5 vector OLEs. An opening
//! is 8 bytes each way, and 32 bytes each way for each call.

use subtle::ConstantTimeEq as _;
use volery_channel::{Channel, Error, Result, Role, SessionId};
use volery_field::{Fp61, Ring as _};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_pcg::wire;
use volery_primitives::{prg::Prg, ro::RandomOracle};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{agree, exchange, in_order, ole};

/// `T`, the number of products that each triple combines.
const COMBINED: usize = 4;

/// A party's part of authenticated elements; wiped when dropped.
#[derive(Clone, Default, Zeroize, ZeroizeOnDrop)]
pub struct Elements {
    shares: Vec<Fp61>,
    tags: Vec<Fp61>,
    keys: Vec<Fp61>,
}

impl Elements {
    fn zeros(n: usize) -> Self {
        let zeros = || vec![Fp61::ZERO; n];
        Self { shares: zeros(), tags: zeros(), keys: zeros() }
    }

    /// Number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shares.len()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shares.is_empty()
    }

    /// This party's shares.
    #[must_use]
    pub fn shares(&self) -> &[Fp61] {
        &self.shares
    }

    fn columns(&mut self) -> [&mut Vec<Fp61>; 3] {
        [&mut self.shares, &mut self.tags, &mut self.keys]
    }

    /// Adds `factors[i]*other[i]`, with public factors.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add_scaled(&mut self, factors: &[Fp61], other: &Self) {
        let others = [&other.shares, &other.tags, &other.keys];
        for (own, other) in self.columns().into_iter().zip(others) {
            Fp61::add_products([factors], [other], own);
        }
    }

    /// Adds other elements, one by one.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn add(&mut self, other: &Self) {
        self.add_scaled(&vec![Fp61::ONE; other.len()], other);
    }

    /// Subtracts other elements, one by one.
    ///
    /// # Panics
    /// If the lengths differ.
    pub fn subtract(&mut self, other: &Self) {
        self.add_scaled(&vec![-Fp61::ONE; other.len()], other);
    }
}

/// A party with its sources: correlated OTs and vector OLEs, in both directions.
pub struct Party<S, R, U, V>(Option<Live<S, R, U, V>>);

struct Live<S, R, U, V> {
    role: Role,
    ot_sender: convert::Sender<S>,
    ot_receiver: convert::Receiver<R>,
    values: U,
    keys: V,
    alpha: Zeroizing<Fp61>,
    rng: Prg,
}

impl<S, R, U, V> Party<S, R, U, V>
where
    S: CotSender,
    R: CotReceiver,
    U: VoleSender<Fp61>,
    V: VoleReceiver<Fp61>,
{
    /// A party over correlated OTs (`delta` here, then at the peer) and vector OLEs (`u` here, then
    /// at the peer). `session` is of this object alone, and the same at the peer; `rng` is this
    /// party's randomness.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call on a source failed.
    pub fn new(
        role: Role,
        (sender, receiver): (S, R),
        (values, keys): (U, V),
        session: SessionId,
        rng: Prg,
    ) -> Result<Self> {
        let id = |of: Role| {
            let mut oracle = RandomOracle::new("volery mpc: OTs of fp61 triples");
            oracle.absorb(session.as_bytes()).absorb(of.name().as_bytes());
            SessionId::from_bytes(oracle.finish32())
        };
        Ok(Self(Some(Live {
            role,
            ot_sender: convert::Sender::new(sender, id(role)),
            ot_receiver: convert::Receiver::new(receiver, id(role.other())),
            alpha: Zeroizing::new(keys.try_x()?),
            values,
            keys,
            rng,
        })))
    }

    /// Runs a call; if it fails, the state is dropped.
    fn call<T>(&mut self, call: impl FnOnce(&mut Live<S, R, U, V>) -> Result<T>) -> Result<T> {
        let mut live = self.0.take().ok_or(Error::Broken)?;
        // mutant(spdz-again): `call(&mut live)?` => `match call(&mut live) { Err(error) if $ON => {
        //     self.0 = Some(live); return Err(error); } result => result? }`
        let out = call(&mut live)?;
        self.0 = Some(live);
        Ok(out)
    }

    /// `n` authenticated random elements: neither party knows their sums.
    ///
    /// # Errors
    /// The errors of the sources; [`Error::Broken`] if a call failed.
    pub fn random(&mut self, n: usize, channel: &mut Channel) -> Result<Elements> {
        self.call(|live| live.random(n, channel))
    }

    /// Authenticates a share of each party for each element.
    ///
    /// # Errors
    /// The errors of the sources; if the channel fails, or the peer's message is not of elements;
    /// [`Error::Broken`] if a call failed.
    pub fn input(&mut self, own: &[Fp61], channel: &mut Channel) -> Result<Elements> {
        self.call(|live| live.input(own, channel))
    }

    /// Opens elements to both parties.
    ///
    /// # Errors
    /// If the channel fails, or the peer opens another element than it has; [`Error::Broken`] if a
    /// call failed.
    pub fn open(&mut self, elements: &Elements, channel: &mut Channel) -> Result<Vec<Fp61>> {
        self.call(|live| live.open(elements, channel))
    }

    /// `n` random triples `[a, b, c]`, `c = a*b` element by element.
    ///
    /// # Errors
    /// The errors of the sources; if the channel fails, or a check finds that the peer deviated;
    /// [`Error::Broken`] if a call failed.
    pub fn triples(&mut self, n: usize, channel: &mut Channel) -> Result<[Elements; 3]> {
        self.call(|live| live.triples(n, channel))
    }

    /// The products of `x` and `y`, by as many unused triples: opens their differences from `x` and
    /// `y`.
    ///
    /// # Panics
    /// If the lengths differ.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open).
    pub fn multiply(
        &mut self,
        x: &Elements,
        y: &Elements,
        [a, b, mut c]: [Elements; 3],
        channel: &mut Channel,
    ) -> Result<Elements> {
        let (mut d, mut e) = (x.clone(), y.clone());
        d.subtract(&a);
        e.subtract(&b);
        let (d, e) = self.call(|live| Ok((live.open(&d, channel)?, live.open(&e, channel)?)))?;
        // x*y = (d + a)*y = d*y + e*a + c
        c.add_scaled(&d, y);
        c.add_scaled(&e, &a);
        Ok(c)
    }
}

impl<S, R, U, V> Live<S, R, U, V>
where
    S: CotSender,
    R: CotReceiver,
    U: VoleSender<Fp61>,
    V: VoleReceiver<Fp61>,
{
    fn random(&mut self, n: usize, channel: &mut Channel) -> Result<Elements> {
        let mut out = Elements::zeros(n);
        let [shares, tags, keys] = out.columns();
        in_order(
            self.role,
            self,
            channel,
            |live, channel| live.values.extend(shares, tags, channel),
            |live, channel| live.keys.extend(keys, channel),
        )?;
        Ok(out)
    }

    fn input(&mut self, own: &[Fp61], channel: &mut Channel) -> Result<Elements> {
        let mut out = self.random(own.len(), channel)?;
        let mut difference = own.to_vec();
        Fp61::sub_slice(&mut difference, &out.shares);
        let theirs = self.exchange(&difference, channel)?;
        Fp61::axpy(&mut out.keys, *self.alpha, &theirs);
        out.shares.copy_from_slice(own);
        Ok(out)
    }

    fn exchange(&self, own: &[Fp61], channel: &mut Channel) -> Result<Vec<Fp61>> {
        let mut theirs = vec![Fp61::ZERO; own.len()];
        let what = "an authenticated element is not in canonical form";
        in_order(
            self.role,
            &mut theirs,
            channel,
            |_, channel| wire::send(own, channel),
            |theirs, channel| {
                // mutant(spdz-canonical): ignore
                wire::recv(theirs, what, channel)?;
                Ok(())
            },
        )?;
        Ok(theirs)
    }

    fn open(&self, elements: &Elements, channel: &mut Channel) -> Result<Vec<Fp61>> {
        let mut theirs = self.exchange(&elements.shares, channel)?;
        let mut expected = Zeroizing::new(elements.keys.clone());
        Fp61::axpy(&mut expected, -*self.alpha, &theirs);
        let hash = |tags: &[Fp61]| {
            let mut bytes = Zeroizing::new(Vec::new());
            Fp61::write(tags, &mut bytes);
            RandomOracle::new("volery mpc: tags").absorb(&bytes).finish32()
        };
        let claimed = exchange(self.role, &hash(&elements.tags), channel)?;
        // mutant(spdz-tag): false
        if !bool::from(hash(&expected).ct_eq(&claimed[..])) {
            return Err(Error::PeerMisbehaved("an opened element is not the authenticated one"));
        }
        Fp61::add_slice(&mut theirs, &elements.shares);
        Ok(theirs)
    }

    fn triples(&mut self, n: usize, channel: &mut Channel) -> Result<[Elements; 3]> {
        let mut random = |n| {
            let mut out = Zeroizing::new(vec![Fp61::ZERO; n]);
            Fp61::random_slice(&mut self.rng, &mut out);
            out
        };
        let (a, b) = (random(COMBINED * n), random(n));
        // Product `t` of triple `i` is at `t*n + i`.
        let repeated = Zeroizing::new(b.repeat(COMBINED));
        let (p, mut c) = in_order(
            self.role,
            self,
            channel,
            |live, channel| ole::send(&repeated, &mut live.ot_sender, channel),
            |live, channel| ole::receive(&a, &mut live.ot_receiver, channel),
        )?; // Multiply
        Fp61::add_slice(&mut c, &p);
        Fp61::add_products([&a], [&repeated], &mut c);

        let mut seed = Prg::new(agree::toss(self.role, &mut self.rng, channel)?);
        let [r, other_r] = [(); 2].map(|()| public(COMBINED * n, &mut seed));
        let combine = |values: &[Fp61], r: &[Fp61]| {
            let mut out = Zeroizing::new(vec![Fp61::ZERO; n]);
            for (values, r) in values.chunks(n.max(1)).zip(r.chunks(n.max(1))) {
                Fp61::add_products([values], [r], &mut out);
            }
            out
        };
        let own =
            [combine(&a, &r), b, combine(&c, &r), combine(&a, &other_r), combine(&c, &other_r)];
        let [a, b, c, other_a, other_c] = {
            let mut each = own.iter().map(|own| self.input(own, channel)); // Authenticate
            let mut next = || each.next().expect("five values");
            [next()?, next()?, next()?, next()?, next()?]
        };

        let s = public(n, &mut Prg::new(agree::toss(self.role, &mut self.rng, channel)?));
        let mut p = Elements::zeros(n);
        p.add_scaled(&s, &a);
        p.subtract(&other_a);
        let mut p = self.open(&p, channel)?; // Sacrifice
        p.iter_mut().for_each(|p| *p = -*p);
        let mut zero = Elements::zeros(n);
        zero.add_scaled(&s, &c);
        zero.subtract(&other_c);
        zero.add_scaled(&p, &b);
        let zero = self.open(&zero, channel)?;
        // mutant(spdz-sacrifice): false
        if zero.iter().any(|zero| *zero != Fp61::ZERO) {
            return Err(Error::PeerMisbehaved("the sacrifice of a triple failed"));
        }
        Ok([a, b, c])
    }
}

/// Coefficients that both parties draw.
fn public(n: usize, seed: &mut Prg) -> Vec<Fp61> {
    let mut out = vec![Fp61::ZERO; n];
    Fp61::random_slice(seed, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STATISTICAL;

    /// The leftover hash lemma for `a` and `a'`.
    #[test]
    fn as_few_products_are_combined_as_is_secure() {
        let distance = |combined: u32| (Fp61::BITS * (combined - 2)) as usize / 2;
        assert!(distance(COMBINED as u32) >= STATISTICAL);
        assert!(distance(COMBINED as u32 - 1) < STATISTICAL);
    }
}
