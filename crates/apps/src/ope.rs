//! Oblivious polynomial evaluation: the sender has a polynomial `P` of degree at most `n`, the
//! receiver points `z`; the receiver learns `P(z)`, the sender nothing.
//!
//! Section 7.2 of the 2019 paper reduces this to one vector-OLE of length `n` for each point (Naor
//! and Pinkas, Gilboa). The random vector-OLE is itself the evaluation of a random polynomial: with
//! `u_(-1) = u_n = v_n = 0`, let
//!
//! ```text
//! R(X) = sum (u_(i-1) + v_i) X^i,  i = 0..n,
//! U(X) = sum u_i X^i,   W(X) = sum w_i X^i,  i = 0..n-1.
//! ```
//!
//! If `w = u*z + v`, then `R(X) = W(X) + (X - z)*U(X)`, so that `R(z) = W(z)`, and one vector of
//! corrections is enough. The `x` of the vector-OLE is random; `v' = v - u*(z - x)` gives
//! `w = u*z + v'`, with the same `w`.
//!
//! ```text
//! Sender: P, u, v                         Receiver: z, x, w = u*x + v
//! 1.                  <---- delta = z - x ----
//! 2. d_i = p_i - u_(i-1) - v_i + delta*u_i,  i = 0..n
//!                     ---- d ---->
//! 3.                                      d(z) + W(z) = P(z) - R(z) + W(z) = P(z)
//! ```
//!
//! Several points are batched: one vector-OLE each, all `delta` in one message, then all `d`.
//!
//! The degree is public, and both parties give it. A polynomial of fewer coefficients has leading
//! zeros, and the receiver cannot tell. The degree 0 is allowed: then `P(z)` is the constant for
//! every `z`, so the receiver learns the constant; it is sent in the clear (`d = p`, as there is no
//! `u` and `v`), without a vector-OLE. A polynomial without coefficients is refused.
//!
//! The values at `n + 1` distinct points, as many as there are coefficients, determine the
//! polynomial. So the number of points that a sender accepts, over all runs with the same
//! polynomial, is a decision about what it gives away. The number is public, and the sender sets
//! it: no further point is evaluated.
//!
//! # Security
//!
//! That of the vector-OLEs, in either model; the formulas hold over any ring.
//!
//! *The receiver learns `P(z)` only*, for each of its points; more points reveal more of `P`, and
//! `n + 1` distinct ones all of it. Given `x` and `w`, the `u` of the vector-OLE is pseudorandom to
//! the receiver, and everything else follows: `d = P - R = P - W - (X - z)*U`. As `X - z` is monic,
//! `(X - z)*U` for uniform `U` of degree below `n` is uniform among the polynomials of degree at
//! most `n` that vanish at `z` (each of them has one quotient). So `d` is uniform among those with
//! the value `P(z) - W(z)` at `z`: it can be simulated from `P(z)`, `w` and `z`. A receiver that
//! sends another `delta` has chosen another point, `x + delta`; one that deviates in the offline
//! phase has chosen its own `x` and `w`, for which the same holds.
//!
//! *The sender learns nothing.* It sees `delta = z - x` with an `x` that is uniform to it (except
//! for guesses of a malicious sender about `x` in the offline phase, at the risk of detection:
//! `volery_pcg::check`). Step 3 has no check that could fail. A sender that sends another `d` has
//! chosen another polynomial of degree at most `n`, `d + R`, which it knows; it may choose a
//! different one for each point. The receiver gets no proof that the polynomial is the same for all
//! points, or one that was promised.
//!
//! # Cost
//!
//! Online, for `k` points: one message of `k` ring elements from the receiver, none for degree 0,
//! and one of `k*(n + 1)` from the sender; in fp61 with `n = 2^20` and one point, 8 bytes and
//! 8,388,616. About one multiplication a coefficient at each party. Offline, [`crate::offline`] for
//! each point, and a message of 32 bytes in both directions that compares ring, security, degree
//! and number of points. Memory: `2n + 1` elements a point at the sender, `n` at the receiver, and
//! pieces of 2^14.
//!
//! # Examples
//!
//! ```
//! use volery_apps::{Result, offline, ope};
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::Fp61;
//! use volery_pcg::Security;
//! use volery_primitives::prg::Prg;
//! use zeroize::Zeroizing;
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let session = SessionId::from_bytes([0; 32]); // from the handshake, never twice the same
//! let (rng_s, rng_r) = (Prg::from_os()?, Prg::from_os()?);
//! let (degree, points) = (2, [Fp61::reduce(10), Fp61::reduce(100)]);
//! let (sent, values) = run_two_parties(
//!     |channel| -> Result<()> {
//!         let p = ope::coefficients(&[3, 2, 1])?; // 3 + 2X + X^2
//!         let mut source = offline::Sender::setup(Security::default(), session, rng_s, channel)?;
//!         ope::Sender::offline(degree, points.len(), &mut source, channel)?.online(&p, channel)
//!     },
//!     |channel| -> Result<Zeroizing<Vec<Fp61>>> {
//!         let security = Security::default();
//!         let mut source = offline::Receiver::setup(security, session, rng_r, channel)?;
//!         ope::Receiver::offline(degree, points.len(), &mut source, channel)?
//!             .online(&points, channel)
//!     },
//! );
//! sent?;
//! assert_eq!(**values?, [Fp61::reduce(123), Fp61::reduce(10_203)]);
//! # Ok(()) }
//! ```

mod evaluate;

use volery_channel::Channel;
use volery_field::Fp61;
use volery_pcg::{Security, vole::VoleRing, wire};
use volery_primitives::pages::Buffer;
use zeroize::Zeroizing;

pub use evaluate::evaluate;

use crate::{
    agree,
    error::{Error, Result},
    offline,
};
use evaluate::Evaluation;

/// Coefficients processed at a time: a multiple of the evaluation's blocks.
const CHUNK: usize = 1 << 14;

/// The maximum number of coefficients of all points together: a limit of the counters, not of
/// memory.
const LARGEST: u64 = 1 << 40;

/// The holder of the polynomial, with the random polynomials of the points.
pub struct Sender<R: VoleRing> {
    degree: usize,
    lines: Vec<Line<R>>,
}

/// The sender's part of one point.
struct Line<R: VoleRing> {
    /// `u_(i-1) + v_i`, `degree + 1` of them; zero where the degree is.
    shifted: Buffer<R>,
    /// `u_i`, `degree` of them.
    u: Buffer<R>,
}

/// The holder of the points, with their random evaluations.
pub struct Receiver<R: VoleRing> {
    degree: usize,
    keys: Vec<Key<R>>,
}

/// The receiver's part of one point; zero where the degree is.
struct Key<R: VoleRing> {
    x: Zeroizing<R>,
    /// `degree` of them.
    w: Buffer<R>,
}

impl<R: VoleRing> Sender<R> {
    /// The offline phase, for a polynomial of degree at most `degree` at `points` points.
    ///
    /// # Errors
    /// If there are no points or too many coefficients in all; if the peer gives another degree,
    /// number of points, security or ring; if the channel fails or the peer misbehaves.
    pub fn offline(
        degree: usize,
        points: usize,
        source: &mut offline::Sender,
        channel: &mut Channel,
    ) -> Result<Self> {
        agree::<R>(degree, points, source.security(), channel)?;
        let mut lines = Vec::new();
        for _ in 0..points {
            let (mut shifted, mut u) = (Buffer::zeroed(degree + 1), Buffer::zeroed(degree));
            if degree > 0 {
                let v = &mut shifted[..degree];
                source.stream(degree, channel)?.extend(&mut u, v, channel)?;
                R::add_slice(&mut shifted[1..], &u);
            }
            lines.push(Line { shifted, u });
        }
        Ok(Self { degree, lines })
    }

    /// Steps 1 and 2, with the coefficients in ascending order from the constant. Missing ones are
    /// zero.
    ///
    /// # Errors
    /// If there are no coefficients, or more than the degree allows; if the channel fails, or the
    /// receiver sent a value that is not an element of the ring.
    pub fn online(self, coefficients: &[R], channel: &mut Channel) -> Result<()> {
        if coefficients.is_empty() {
            return Err(Error::Empty(
                "a polynomial without coefficients: give at least the constant one",
            ));
        }
        if coefficients.len() > self.degree + 1 {
            let (given, degree) = (coefficients.len(), self.degree);
            let text = format!("{given} coefficients are too many for the agreed degree {degree}");
            return Err(Error::Input(text));
        }
        let mut deltas = vec![R::ZERO; self.lines.len()];
        if self.degree > 0 {
            let what = "a masked point is not in canonical form";
            // mutant(ope-canonical-point): ignore
            wire::recv(&mut deltas, what, channel)?; // step 1
        }
        let mut d = Zeroizing::new(vec![R::ZERO; CHUNK.min(self.degree + 1)]);
        for (line, delta) in self.lines.iter().zip(deltas) {
            for (chunk, shifted) in line.shifted.chunks(CHUNK).enumerate() {
                let first = chunk * CHUNK;
                let d = &mut d[..shifted.len()];
                let p = &coefficients[first.min(coefficients.len())..];
                let p = &p[..p.len().min(d.len())];
                let u = &line.u[first..];
                let u = &u[..u.len().min(d.len())];
                correction(d, p, shifted, delta, u);
                wire::send(d, channel)?; // step 2
            }
        }
        Ok(channel.flush()?)
    }
}

impl<R: VoleRing> Receiver<R> {
    /// The offline phase, as the peer of [`Sender::offline`], errors included.
    pub fn offline(
        degree: usize,
        points: usize,
        source: &mut offline::Receiver,
        channel: &mut Channel,
    ) -> Result<Self> {
        agree::<R>(degree, points, source.security(), channel)?;
        let mut keys = Vec::new();
        for _ in 0..points {
            let (mut x, mut w) = (Zeroizing::new(R::ZERO), Buffer::zeroed(degree));
            if degree > 0 {
                let mut stream = source.stream(None, degree, channel)?;
                stream.extend(&mut w, channel)?;
                *x = stream.x();
            }
            keys.push(Key { x, w });
        }
        Ok(Self { degree, keys })
    }

    /// Steps 1 to 3: the polynomial's values at the points.
    ///
    /// # Errors
    /// If the number of points differs from the offline phase; if the channel fails, or the sender
    /// sent a value that is not an element of the ring.
    pub fn online(self, points: &[R], channel: &mut Channel) -> Result<Zeroizing<Vec<R>>> {
        if points.len() != self.keys.len() {
            return Err(Error::Entries {
                what: "the points of a polynomial",
                given: points.len(),
                wanted: self.keys.len(),
            });
        }
        if self.degree > 0 {
            let masked = |(z, key): (&R, &Key<R>)| *z - *key.x;
            let deltas: Vec<R> = points.iter().zip(&self.keys).map(masked).collect();
            wire::send(&deltas, channel)?; // step 1
        }
        let mut d = Zeroizing::new(vec![R::ZERO; CHUNK.min(self.degree + 1)]);
        let mut values = Zeroizing::new(Vec::with_capacity(points.len()));
        for (z, key) in points.iter().zip(&self.keys) {
            let mut evaluation = Evaluation::new(*z);
            for first in (0..=self.degree).step_by(CHUNK) {
                let count = CHUNK.min(self.degree + 1 - first);
                let d = &mut d[..count];
                let what = "a corrected coefficient is not in canonical form";
                // mutant(ope-canonical-coefficient): ignore
                wire::recv(d, what, channel)?; // step 2
                let w = &key.w[first..];
                let w = &w[..w.len().min(count)];
                R::add_slice(&mut d[..w.len()], w);
                evaluation.add(d); // step 3
            }
            values.push(evaluation.value());
        }
        Ok(values)
    }
}

/// The coefficients as elements of the field.
///
/// # Errors
/// At the first number that is not below the modulus.
pub fn coefficients(numbers: &[u64]) -> Result<Vec<Fp61>> {
    let element = |(position, value): (usize, &u64)| {
        let Some(element) = Fp61::new(*value) else {
            return Err(Error::Input(format!(
                "entry {position} (counted from 0) is not below {}: reduce it first",
                Fp61::MODULUS
            )));
        };
        Ok(element)
    };
    numbers.iter().enumerate().map(element).collect()
}

/// Step 2 for some of the coefficients.
fn correction<R: VoleRing>(d: &mut [R], p: &[R], shifted: &[R], delta: R, u: &[R]) {
    d[..p.len()].copy_from_slice(p);
    d[p.len()..].fill(R::ZERO);
    R::sub_slice(d, shifted);
    R::axpy(&mut d[..u.len()], delta, u);
}

/// Compares the parameters of both parties.
fn agree<R: VoleRing>(
    degree: usize,
    points: usize,
    security: Security,
    channel: &mut Channel,
) -> Result<()> {
    if points == 0 {
        return Err(Error::Empty("no points to evaluate a polynomial at"));
    }
    let (degree, points) = (degree as u64, points as u64);
    let coefficients = degree.checked_add(1).and_then(|n| n.checked_mul(points));
    if coefficients.is_none_or(|all| all > LARGEST) {
        return Err(Error::TooLarge {
            what: "the coefficients of a polynomial, for all its points",
            bits: LARGEST.ilog2(),
        });
    }
    // mutant(ope-degree): `degree` => `0`
    // mutant(ope-points): `points` => `0`
    let numbers = [("degree of the polynomial", degree), ("number of points", points)];
    Ok(agree::same_over::<R>(Some(security), &numbers, channel)?)
}

#[cfg(test)]
mod tests;
