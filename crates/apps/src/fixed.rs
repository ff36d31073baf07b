//! Products of matrices of real numbers, as fixed-point numbers in `z64`.
//!
//! A number `a` with `|a| <= A` becomes the integer nearest to `a * 2^f`, `f` fraction bits, as an
//! element of the integers modulo 2^64, negative ones as their two's complement. A product of two
//! such numbers has `2f` fraction bits, and so has a sum of `m` of them, an entry of a matrix
//! product; nothing is truncated on the way, so [`linear`](crate::linear) is the only protocol
//! needed. The result is right if it never leaves the range of a signed 64-bit integer:
//!
//! ```text
//! m * round(A * 2^f) * round(X * 2^f) < 2^63          (about m * A * X * 2^(2f) < 2^63)
//! ```
//!
//! for the declared bounds `A` of the left and `X` of the right factor. [`Format::new`] refuses a
//! format that violates this, before any protocol; encoding refuses, with its position, an entry
//! that is beyond its bound or not a number, and a factor whose products have sums of another
//! number of terms.
//!
//! # The error
//!
//! Let `a' = a + e` and `x' = x + g` be the encoded numbers, `|e|, |g| <= 2^(-f-1)` as they are
//! rounded to the nearest. Then `a'*x' - a*x = a*g + x*e + e*g`, at most `2^(-f-1)*(A + X) +
//! 2^(-2f-2)`. An entry is a sum of `m` of these, and everything else is exact, so the result
//! differs from the product of the real matrices by at most
//!
//! ```text
//! m * (2^(-f-1) * (A + X) + 2^(-2f-2)).
//! ```
//!
//! If an entry has more than 53 bits, conversion to `f64` rounds it to the nearest, an additional
//! relative error of 2^-53.
//!
//! Security: for a real-valued product exactly that of [`linear`](crate::linear), semi-honest, as
//! `z64` supports nothing else. A party that violates its declared bound makes the result wrong and
//! learns nothing by it; the bounds are public. The encoder branches on values only to refuse them.
//! Cost: encoding and decoding are local; [`Format::agree`] takes one message of 32 bytes in both
//! directions.

use volery_channel::Channel;
use volery_field::Z64;
use zeroize::Zeroizing;

use crate::{
    agree,
    error::{Error, Result},
    linear::{Matrix, Side},
};

/// The encoding of real matrices, for products with sums of at most `terms` terms.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Format {
    terms: usize,
    fraction: u32,
    left: f64,
    right: f64,
}

impl Format {
    /// The format with `fraction` fraction bits for factors with entries up to `left` and up to
    /// `right` in absolute value, whose product has sums of `terms` terms: the columns of the left
    /// factor.
    ///
    /// # Errors
    /// If a bound is not a positive finite number, or the sums could exceed 64 bits.
    pub fn new(terms: usize, fraction: u32, left: f64, right: f64) -> Result<Self> {
        for (bound, what) in [(left, "the left factor"), (right, "the right factor")] {
            if !(bound.is_finite() && bound > 0.0) {
                return Err(Error::Input(format!(
                    "{what}: the declared bound {bound} is not a positive finite number"
                )));
            }
        }
        let format = Self { terms, fraction, left, right };
        if format.largest().is_none() {
            return Err(Error::Input(format!(
                "{terms} products of numbers up to {left} and up to {right} with {fraction} \
                 fraction bits each could reach 2^63: take fewer fraction bits or smaller bounds"
            )));
        }
        Ok(format)
    }

    /// The largest absolute value of an entry of the result as an integer, if it is below 2^63.
    fn largest(&self) -> Option<u128> {
        const END: f64 = (1_u64 << 63) as f64;
        if self.fraction > 62 {
            return None;
        }
        let integer = |bound: f64| {
            let scaled = (bound * self.scale()).round();
            (scaled < END).then_some(scaled as u128)
        };
        let all = (integer(self.left)? * integer(self.right)?).checked_mul(self.terms as u128)?;
        (all < 1 << 63).then_some(all)
    }

    /// Compares the formats of the two parties.
    ///
    /// # Errors
    /// If they differ, at both parties with both values; if the channel fails.
    pub fn agree(&self, channel: &mut Channel) -> Result<()> {
        // mutant(fixed-terms): `self.terms as u64` => `0`
        // mutant(fixed-fraction): `u64::from(self.fraction)` => `0`
        // mutant(fixed-left): `self.left.to_bits()` => `0`
        // mutant(fixed-right): `self.right.to_bits()` => `0`
        Ok(agree::same(
            &[
                ("terms of a sum", self.terms as u64),
                ("fraction bits", u64::from(self.fraction)),
                ("bound of the left factor (as the bits of a double)", self.left.to_bits()),
                ("bound of the right factor (as the bits of a double)", self.right.to_bits()),
            ],
            channel,
        )?)
    }

    /// The factor on the given side, its entries given row after row.
    ///
    /// # Errors
    /// If the number of columns of the left factor, or of rows of the right one, is not the number
    /// of terms of this format: then the size of the sums would be unknown. If an entry is not a
    /// finite number, or beyond the declared bound: the first such entry, with its position; if the
    /// number of entries does not match the shape.
    pub fn encode(
        &self,
        side: Side,
        rows: usize,
        columns: usize,
        entries: &[f64],
    ) -> Result<Matrix<Z64>> {
        let (what, bound, given) = match side {
            Side::Left => ("the left factor", self.left, columns),
            Side::Right => ("the right factor", self.right, rows),
        };
        if given != self.terms {
            let terms = self.terms;
            return Err(Error::Input(format!(
                "{what}: sums of {given} terms, but the format is made for {terms}: the terms are \
                 the columns of the left factor, the rows of the right one"
            )));
        }
        let refuse = |position, why| {
            let text = format!("{what}: entry {position} (counted from 0) is {why}");
            Err(Error::Input(text))
        };
        let mut encoded = Zeroizing::new(Vec::with_capacity(entries.len()));
        for (position, &value) in entries.iter().enumerate() {
            if !value.is_finite() {
                return refuse(position, format_args!("NaN or infinite"));
            }
            if value.abs() > bound {
                return refuse(position, format_args!("beyond the declared bound {bound}"));
            }
            // Exact except for the rounding: the factor is a power of two.
            let integer = (value * self.scale()).round() as i64;
            encoded.push(Z64::new(integer as u64));
        }
        Matrix::from_rows(rows, columns, &encoded)
    }

    /// The entries of a product, row after row: each is the real number of `2f` fraction bits, or
    /// the double nearest to it.
    pub fn decode(&self, product: &Matrix<Z64>) -> Zeroizing<Vec<f64>> {
        let scale = self.scale();
        let entries = product.to_rows();
        let real = |entry: &Z64| entry.value() as i64 as f64 / scale / scale;
        Zeroizing::new(entries.iter().map(real).collect())
    }

    /// The maximum difference between an entry of the result and the product of the real matrices:
    /// `m * (2^(-f-1) * (A + X) + 2^(-2f-2))`.
    pub fn error(&self) -> f64 {
        let half = 0.5 / self.scale();
        self.terms as f64 * (half * (self.left + self.right) + half * half)
    }

    /// `2^f`.
    fn scale(&self) -> f64 {
        (1_u64 << self.fraction) as f64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::assert_differ;

    /// The product of the encoded matrices, decoded, and the product in doubles.
    fn both(
        format: &Format,
        (n, m, p): (usize, usize, usize),
        a: &[f64],
        b: &[f64],
    ) -> (Zeroizing<Vec<f64>>, Vec<f64>) {
        let left = format.encode(Side::Left, n, m, a).unwrap();
        let right = format.encode(Side::Right, m, p, b).unwrap();
        let mut plain = Vec::new();
        for i in 0..n {
            for j in 0..p {
                plain.push((0..m).map(|k| a[i * m + k] * b[k * p + j]).sum());
            }
        }
        (format.decode(&left.times(&right).unwrap()), plain)
    }

    /// With the worst rounding everywhere and all of one sign, the bound is reached except for the
    /// second-order term.
    #[test]
    fn the_error_bound_holds_and_is_tight() {
        for (terms, fraction, left, right) in
            [(10, 16, 8.0, 100.0), (1000, 12, 1.0, 1.0), (1, 0, 3.0, 3.0)]
        {
            let format = Format::new(terms, fraction, left, right).unwrap();
            let half = 0.5 / f64::from(2).powi(fraction as i32);
            // Rounded up, away from zero: the largest numbers with a half at the end.
            let (a, b) = (vec![left - half; terms], vec![right - half; terms]);
            for sign in [1.0, -1.0] {
                let b: Vec<f64> = b.iter().map(|b| sign * b).collect();
                let (got, plain) = both(&format, (1, terms, 1), &a, &b);
                let error = (got[0] - plain[0]).abs();
                assert!(error <= format.error(), "{error} of {}", format.error());
                assert!(error >= 0.99 * format.error() - terms as f64 * 2.0 * half * half);
            }
        }
    }

    proptest! {
        #[test]
        fn any_numbers_within_the_bounds(
            a in prop::collection::vec(-5.0..=5.0, 12),
            b in prop::collection::vec(-0.25..=0.25, 12),
            fraction in 0..28_u32,
        ) {
            let format = Format::new(4, fraction, 5.0, 0.25).unwrap();
            let (got, plain) = both(&format, (3, 4, 3), &a, &b);
            for (got, plain) in got.iter().zip(&plain) {
                // The doubles are rounded too.
                prop_assert!((got - plain).abs() <= format.error() + 1e-14);
            }
        }
    }

    /// The largest sums that a format allows are exact.
    #[test]
    fn extremes_do_not_wrap() {
        let large = f64::from(2).powi(31);
        let format = Format::new(1, 0, large, large - 1.0).unwrap();
        let (got, plain) = both(&format, (1, 1, 1), &[-large], &[large - 1.0]);
        assert_eq!(*got, plain);
        assert!(Format::new(2, 0, large, large).is_err());
        assert!(Format::new(1, 1, large, large).is_err());
        let format = Format::new(7, 20, 1.0, 1000.0).unwrap();
        let (got, plain) = both(&format, (1, 7, 1), &[-1.0; 7], &[1000.0; 7]);
        assert_eq!((got[0], plain[0]), (-7000.0, -7000.0));
    }

    #[test]
    fn a_possible_overflow_is_refused_before_the_protocol() {
        let error = Format::new(1000, 24, 100.0, 1000.0).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1000 products of numbers up to 100 and up to 1000 with 24 fraction bits each could reach 2^63: take fewer \
             fraction bits or smaller bounds"
        );
        for fraction in [63, 64, 1000, u32::MAX] {
            assert!(Format::new(1, fraction, 1e-30, 1e-30).is_err());
        }
        for bound in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let error = Format::new(1, 8, bound, 1.0).unwrap_err().to_string();
            assert!(error.contains("is not a positive finite number"), "{error}");
        }
        assert!(Format::new(1, 8, f64::MAX, 1.0).is_err());
        assert!(Format::new(usize::MAX, 8, 1e5, 1e5).is_err());
    }

    #[test]
    fn invalid_numbers_are_named() {
        let format = Format::new(3, 8, 1.0, 2.0).unwrap();
        let error = |entries: &[f64]| format.encode(Side::Left, 1, 3, entries).unwrap_err();
        assert_eq!(
            error(&[-1.5, 0.0, 0.0]).to_string(),
            "the left factor: entry 0 (counted from 0) is beyond the declared bound 1"
        );
        for entry in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(
                error(&[0.0, entry, 0.0]).to_string(),
                "the left factor: entry 1 (counted from 0) is NaN or infinite"
            );
        }
        let shown = format!("{:?}", error(&[0.0, -1.5, 0.0]));
        assert!(!shown.contains("1.5"), "{shown}");
        assert!(matches!(error(&[0.0; 4]), Error::Entries { given: 4, .. }));
    }

    /// More terms than the format's could exceed 64 bits; fewer would give a wrong error bound.
    #[test]
    fn factors_for_other_sums_are_refused() {
        let format = Format::new(3, 8, 1.0, 2.0).unwrap();
        let (left, right) = (Side::Left, Side::Right);
        for (side, rows, columns, inner) in
            [(left, 3, 2, 2), (left, 3, 4, 4), (right, 2, 3, 2), (right, 4, 3, 4), (right, 0, 3, 0)]
        {
            let error = format.encode(side, rows, columns, &vec![0.0; rows * columns]);
            let error = error.map(drop).unwrap_err().to_string();
            let expected = format!("sums of {inner} terms, but the format is made for 3");
            assert!(error.contains(&expected), "{side:?}, {rows} x {columns}: {error}");
        }
        for (side, rows, columns) in [(left, 7, 3), (right, 3, 7)] {
            assert!(format.encode(side, rows, columns, &[0.0; 21]).is_ok());
        }
    }

    #[test]
    fn formats_that_differ_are_named() {
        let compare = |terms, fraction, left, right| {
            let format = Format::new(terms, fraction, left, right).unwrap();
            move |channel: &mut Channel| format.agree(channel)
        };
        for (theirs, name) in [
            (compare(4, 8, 1.0, 2.0), "terms"),
            (compare(3, 9, 1.0, 2.0), "fraction bits"),
            (compare(3, 8, 1.5, 2.0), "left factor"),
            (compare(3, 8, 1.0, 2.5), "right factor"),
        ] {
            assert_differ(name, compare(3, 8, 1.0, 2.0), theirs);
        }
    }
}
