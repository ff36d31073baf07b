//! Authenticated multiplication triples over fp61, secure against a malicious peer.
//!
//! Keller, Orsini, Scholl, *MASCOT: Faster Malicious Arithmetic Secure Computation with Oblivious
//! Transfer*, CCS 2016 (ePrint 2016/505), protocol `Pi_Triple`, whose steps have names, with the
//! tags of [`authenticated`](crate::authenticated) in place of its global MAC:
//!
//! ```text
//! both parties, for each triple: a in F^T and b in F random
//! Multiply.     OLEs of each a[t] with the peer's b, in which the holder of a has the choice bits:
//!               c[t] = a[t]*b + shares of both cross products
//! Combine.      a common seed, by commitment, gives r, r' in F^T:
//!               a = <a, r>,  c = <c, r>;  a' = <a, r'>,  c' = <c, r'>
//! Authenticate. a, b, c, a', c'
//! Sacrifice.    another seed gives s: opens p = s*a - a', then s*c - c' - p*b, which is zero
//! ```
//!
//! Security: malicious, over malicious-secure sources, with an abort. A party that deviates in an
//! OLE adds an error that depends on bits of the peer's `a`, and passes only if it guesses what
//! they add up to: with probability `2^-g` it learns `g` of the `61*T` bits. By the leftover hash
//! lemma the sums `a` and `a'` are then within `2^-((61*(T - 2) - g)/2)` of uniform: it gains less
//! than `2^-60` with `T = 4`. A wrong product passes with probability at most `2^-60`. The masks of
//! OLE are `2^-61` from uniform, 244 of them a triple: below `2^-40` up to 8,600 triples.
//!
//! Cost for each triple, in each direction: 244 correlated OTs, 5 vector OLEs, 1982.5 bytes of OLEs
//! and 56 of differences and openings.

use volery_channel::{Channel, Error, Result};
use volery_field::{Fp61, Ring as _};
use volery_ot::{CotReceiver, CotSender, convert};
use volery_pcg::vole::{VoleReceiver, VoleSender};
use volery_primitives::{Block, prg::Prg};
use zeroize::Zeroizing;

use crate::authenticated::{Party, Values};
use crate::{agree, in_order, ole};

/// `T`, the number of products that each triple combines.
const COMBINED: usize = 4;

/// `n` random triples `[a, b, a*b]`, from malicious-secure OTs in both directions.
pub fn triples<U: VoleSender<Fp61>, V: VoleReceiver<Fp61>>(
    n: usize,
    party: &mut Party<U, V, Fp61>,
    mut ots: (&mut convert::Sender<impl CotSender>, &mut convert::Receiver<impl CotReceiver>),
    channel: &mut Channel,
) -> Result<[Values<Fp61>; 3]> {
    party.call(|party| {
        // Product `t` of triple `i` is at `t*n + i`.
        let a = random(COMBINED * n, &mut party.rng);
        let b = random(n, &mut party.rng);
        let repeated = Zeroizing::new(b.repeat(COMBINED));
        let (p, mut c) = in_order(
            party.role,
            &mut ots,
            channel,
            |ots, channel| ole::send(&repeated, ots.0, channel),
            |ots, channel| ole::receive(&a, ots.1, channel),
        )?; // Multiply
        Fp61::add_slice(&mut c, &p);
        Fp61::add_products([&a], [&repeated], &mut c);

        let mut seed = Prg::new(agree::toss(party.role, &mut party.rng, channel)?);
        let combine = |values: &[Fp61], r: &[Fp61]| {
            let mut out = Zeroizing::new(vec![Fp61::ZERO; n]);
            for (values, r) in values.chunks(n.max(1)).zip(r.chunks(n.max(1))) {
                Fp61::add_products([values], [r], &mut out);
            }
            out
        }; // Combine
        let [r, other] = [(); 2].map(|()| random(COMBINED * n, &mut seed));
        let [a, other_a] = [&r, &other].map(|r| combine(&a, r));
        let [c, other_c] = [&r, &other].map(|r| combine(&c, r));
        let mut input = |own| party.input(own, channel); // Authenticate
        let (a, b, c) = (input(&a)?, input(&b)?, input(&c)?);
        let (other_a, other_c) = (input(&other_a)?, input(&other_c)?);

        let seed: Block = agree::toss(party.role, &mut party.rng, channel)?;
        let s = random(n, &mut Prg::new(seed));
        let mut p = Values::zeros(n);
        p.subtract(&other_a);
        p.add_scaled(&s, &a);
        let p = party.open(&p, channel)?; // Sacrifice
        let mut zero = Values::zeros(n);
        zero.add_scaled(&p, &b);
        zero.add(&other_c);
        let mut product = Values::zeros(n);
        product.add_scaled(&s, &c);
        zero.subtract(&product);
        // mutant(mascot-sacrifice): false
        if party.open(&zero, channel)?.iter().any(|zero| *zero != Fp61::ZERO) {
            return Err(Error::PeerMisbehaved("the sacrifice of a triple failed"));
        }
        Ok([a, b, c])
    })
}

fn random(n: usize, prg: &mut Prg) -> Zeroizing<Vec<Fp61>> {
    let mut out = Zeroizing::new(vec![Fp61::ZERO; n]);
    Fp61::random_slice(prg, &mut out);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STATISTICAL;

    /// The leftover hash lemma for `a` and `a'`.
    #[test]
    fn as_few_products_are_combined_as_is_secure() {
        let distance = |combined: usize| Fp61::BITS as usize * (combined - 2) / 2;
        assert!(distance(COMBINED) >= STATISTICAL && distance(COMBINED - 1) < STATISTICAL);
    }
}
