//! Noise for totals that are opened: the discrete Laplace and the discrete Gaussian distribution,
//! sampled exactly. Canonne, Kamath, Steinke, *The Discrete Gaussian for Differential Privacy*,
//! NeurIPS 2020, Algorithms 1 to 3.
//!
//! **Privacy.** A total changes by its *sensitivity* at most when one row of a table is added,
//! removed or, for a caller that bounds that, changed. A total plus a sample is
//!
//! * `epsilon`-differentially private with [`Mechanism::laplace`], whose probability of `x` is
//!   proportional to `exp(-|x|/scale)`, `scale = sensitivity/epsilon`;
//! * `(epsilon, delta)`-differentially private with [`Mechanism::gaussian`], whose probability of
//!   `x` is proportional to `exp(-x^2/(2 sigma^2))`: it is `rho`-zCDP for
//!   `rho = sensitivity^2/(2 sigma^2)` (their Theorem 4), and `rho`-zCDP is
//!   `(rho + 2 sqrt(rho ln(1/delta)), delta)`-differentially private (Bun and Steinke,
//!   *Concentrated Differential Privacy*, TCC 2016, Proposition 1.3). With `L = ln(1/delta)` the
//!   largest such `rho` is `(sqrt(L + epsilon) - sqrt(L))^2`, so that
//!   `sigma = sensitivity * (sqrt(L + epsilon) + sqrt(L)) / (sqrt(2) * epsilon)`. That is more than
//!   the exact condition of their Theorem 7 asks for, and holds for every `epsilon` and `delta`.
//!
//! Several totals need the sum of the `epsilon`, and of the `delta`, of each. Noise is for whoever
//! does not know it: a party that learns the total subtracts its own. So each party whose peer
//! learns a total adds a sample, and both add one where both learn it.
//!
//! **Exactness.** A sample is made of uniform integers and comparisons of integers: none of the
//! attacks on rounded real numbers (Mironov, *On significance of the least significant bits for
//! differential privacy*, CCS 2012) has a place. `sigma` is computed in floating point and rounded
//! up to a fraction, which is the exact `sigma` of the samples. Samples that do not fit into an
//! `i64` are cut to its bounds: [`Error::Scale`] keeps their probability below `2^-180`.
//!
//! **Time.** How long a sample takes depends on it, as in every exact sampler: on its size above
//! all, by some ten nanoseconds for each uniform number of a few hundred. The computation touches
//! this party's own memory alone. A peer that times messages could learn from it, so that a caller
//! draws all samples before the messages of a run begin, not between two of them.

use std::fmt;
use std::str::FromStr;

use volery_primitives::prg::Prg;

/// A positive rational number, in lowest terms: of an `epsilon` or a `delta`.
///
/// It is read from decimal numbers: `0.1`, `3`, `1e-6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rational {
    numerator: u64,
    denominator: u64,
}

/// The reason why there is no such noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not a number as [`Rational`] reads it.
    #[error("not a number above zero of at most 19 digits, such as 0.5 or 1e-6")]
    Number,
    /// Noise hides nothing if one row changes nothing.
    #[error("the sensitivity is zero: it must be the most that one row changes the total by")]
    Sensitivity,
    /// A `delta` near one allows everything.
    #[error("delta must be 0.5 at most, and should be far below 1 divided by the number of rows")]
    Delta,
    /// Samples would not fit into 64 bits.
    #[error(
        "the noise would be too large for 64 bits: use a smaller bound for values or a larger \
         epsilon"
    )]
    Scale,
}

impl Rational {
    /// `numerator/denominator`; `None` if either is zero.
    #[must_use]
    pub const fn new(numerator: u64, denominator: u64) -> Option<Self> {
        if numerator == 0 || denominator == 0 {
            return None;
        }
        let (mut a, mut b) = (numerator, denominator);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        Some(Self { numerator: numerator / a, denominator: denominator / a })
    }

    /// Half of it; `None` if that needs more digits.
    #[must_use]
    pub const fn half(self) -> Option<Self> {
        match self.denominator.checked_mul(2) {
            Some(denominator) => Self::new(self.numerator, denominator),
            None => None,
        }
    }

    /// The nearest floating-point number.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }
}

impl FromStr for Rational {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (digits, exponent) = match text.split_once(['e', 'E']) {
            Some((digits, exponent)) => (digits, exponent.parse().map_err(|_| Error::Number)?),
            None => (text, 0_i32),
        };
        let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
        let number = format!("{whole}{part}");
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::Number);
        }
        let number: u64 = number.parse().map_err(|_| Error::Number)?;
        let places = i32::try_from(part.len()).map_err(|_| Error::Number)?;
        let exponent = exponent.checked_sub(places).ok_or(Error::Number)?;
        let power = 10_u64.checked_pow(exponent.unsigned_abs());
        let power = power.ok_or(Error::Number)?;
        let rational = if exponent < 0 {
            Self::new(number, power)
        } else {
            Self::new(number.checked_mul(power).ok_or(Error::Number)?, 1)
        };
        rational.ok_or(Error::Number)
    }
}

impl fmt::Display for Rational {
    /// As a fraction, or a whole number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.numerator)?;
        match self.denominator {
            1 => Ok(()),
            other => write!(f, "/{other}"),
        }
    }
}

/// A distribution of noise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mechanism {
    law: Law,
    /// The scale of the Laplace distribution, or `sigma`: `numerator/denominator`.
    numerator: u128,
    denominator: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Law {
    Laplace,
    Gaussian,
}

/// The largest scale, and the largest `sigma`: beyond `2^62` are samples of probability
/// `exp(-2^7)`.
const MOST: f64 = (1_u64 << 55) as f64;

/// The parts of a whole in which a `sigma` below [`FINE`] is counted.
const PARTS: u64 = 1 << 16;
const FINE: f64 = (1_u64 << 32) as f64;

/// A bound on the rounding errors in the computation of `sigma`, far above those of its few
/// operations.
const MARGIN: f64 = 1.0 + 1e-9;

impl Mechanism {
    /// The discrete Laplace distribution for this `epsilon`, and for a total that one row changes
    /// by `sensitivity` at most.
    ///
    /// # Errors
    /// [`Error::Sensitivity`], [`Error::Scale`].
    pub fn laplace(sensitivity: u64, epsilon: Rational) -> Result<Self, Error> {
        if sensitivity == 0 {
            return Err(Error::Sensitivity);
        }
        let numerator = u128::from(sensitivity) * u128::from(epsilon.denominator);
        Self::checked(Law::Laplace, numerator, epsilon.numerator)
    }

    /// The discrete Gaussian distribution for this `epsilon` and `delta`, and for a total that one
    /// row changes by `sensitivity` at most.
    ///
    /// # Errors
    /// [`Error::Sensitivity`], [`Error::Delta`], [`Error::Scale`].
    pub fn gaussian(sensitivity: u64, epsilon: Rational, delta: Rational) -> Result<Self, Error> {
        if sensitivity == 0 {
            return Err(Error::Sensitivity);
        }
        // mutant(noise-delta): false
        if delta.numerator > delta.denominator / 2 {
            return Err(Error::Delta);
        }
        let (epsilon, log) = (epsilon.to_f64(), -delta.to_f64().ln());
        let roots = (log + epsilon).sqrt() + log.sqrt();
        let sigma = sensitivity as f64 * roots / (std::f64::consts::SQRT_2 * epsilon) * MARGIN;
        // Before the conversion, which cuts what does not fit.
        if sigma > MOST {
            return Err(Error::Scale);
        }
        // mutant(noise-sigma): `sigma < FINE` => `false`
        let parts = if sigma < FINE { PARTS } else { 1 };
        let numerator = (sigma * parts as f64).ceil() as u128;
        Self::checked(Law::Gaussian, numerator, parts)
    }

    fn checked(law: Law, numerator: u128, denominator: u64) -> Result<Self, Error> {
        let mechanism = Self { law, numerator, denominator };
        // mutant(noise-scale): false
        if mechanism.scale() > MOST {
            return Err(Error::Scale);
        }
        Ok(mechanism)
    }

    /// The scale of the Laplace distribution, or `sigma` of the Gaussian one.
    pub fn scale(&self) -> f64 {
        self.numerator as f64 / self.denominator as f64
    }

    /// A sample.
    pub fn sample(&self, rng: &mut Prg) -> i64 {
        match self.law {
            Law::Laplace => laplace(self.numerator, self.denominator, rng),
            Law::Gaussian => self.sample_gaussian(rng),
        }
    }

    /// Algorithm 3, with a proposal of scale `sigma` itself: it is right for every scale, and the
    /// fraction in the exponent then is `(|y| - sigma)^2/(2 sigma^2)`.
    fn sample_gaussian(&self, rng: &mut Prg) -> i64 {
        loop {
            let y = laplace(self.numerator, self.denominator, rng);
            let scaled = u128::from(y.unsigned_abs()) * u128::from(self.denominator);
            // 2^63 is 2^8 times sigma at least, and as good as never accepted: exp(-2^15).
            let distance = scaled.abs_diff(self.numerator);
            // mutant(noise-gaussian): `distance < 1 << 63` => `true`
            if distance < 1 << 63
                && bernoulli_exp(distance * distance, 2 * self.numerator * self.numerator, rng)
            {
                return y;
            }
        }
    }

    /// A bound that the absolute value of a sample exceeds with probability `2^-bits` at most.
    pub fn tail(&self, bits: u32) -> u64 {
        // Twice the probability of one side, below exp(-x/scale) and exp(-x^2/(2 sigma^2)).
        let exponent = (f64::from(bits) + 1.0) * std::f64::consts::LN_2;
        let scales = match self.law {
            Law::Laplace => exponent,
            Law::Gaussian => (2.0 * exponent).sqrt(),
        };
        // The conversion cuts what does not fit.
        (self.scale() * scales * MARGIN).ceil() as u64
    }
}

impl fmt::Display for Mechanism {
    /// Describes the noise, for reports.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = self.scale();
        match self.law {
            Law::Laplace => write!(f, "discrete Laplace noise of scale {scale:.3}"),
            Law::Gaussian => write!(f, "discrete Gaussian noise of sigma {scale:.3}"),
        }
    }
}

/// A uniform number below `bound`, which is above zero.
fn below(bound: u128, rng: &mut Prg) -> u128 {
    let mask = u128::MAX.checked_shr((bound - 1).leading_zeros()).unwrap_or(0);
    loop {
        let number = u128::from(rng.block()) & mask;
        if number < bound {
            return number;
        }
    }
}

/// Algorithm 1: whether a coin falls that does so with probability `exp(-numerator/denominator)`.
fn bernoulli_exp(numerator: u128, denominator: u128, rng: &mut Prg) -> bool {
    let (whole, rest) = (numerator / denominator, numerator % denominator);
    // A coin of exp(-1) for each whole: the first that does not fall ends it.
    (0..whole).all(|_| bernoulli_exp_of_at_most_one(1, 1, rng))
        && bernoulli_exp_of_at_most_one(rest, denominator, rng)
}

fn bernoulli_exp_of_at_most_one(numerator: u128, denominator: u128, rng: &mut Prg) -> bool {
    let mut k = 1_u128;
    // A coin of numerator/(denominator*k), as one of numerator/denominator and one of 1/k.
    while below(denominator, rng) < numerator && below(k, rng) == 0 {
        k += 1;
    }
    k % 2 == 1
}

/// Algorithm 2: the discrete Laplace distribution of scale `t/s`.
fn laplace(t: u128, s: u64, rng: &mut Prg) -> i64 {
    loop {
        let u = below(t, rng);
        // mutant(noise-rounded): false
        if !bernoulli_exp(u, t, rng) {
            continue;
        }
        let mut v = 0_u128;
        while bernoulli_exp_of_at_most_one(1, 1, rng) {
            v += 1;
        }
        let x = v.saturating_mul(t).saturating_add(u);
        let y = i64::try_from(x / u128::from(s)).unwrap_or(i64::MAX);
        let negative = below(2, rng) == 1;
        // Zero has one sign.
        // mutant(noise-zero): false
        if !(negative && y == 0) {
            return if negative { -y } else { y };
        }
    }
}

#[cfg(test)]
mod tests;
