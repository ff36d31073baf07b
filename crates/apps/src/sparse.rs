//! The product of the holder's sparse matrix with an additively shared dense vector.
//!
//! Section 7.1.1 of the 2019 paper. The matrix is a list of entries `(row, column, value)`; entries
//! at the same position add up.
//!
//! ```text
//! helper (P1): x1                         holder (P2): entries, x2
//! 1. ---- gather: x at the column of each entry, in the order of the columns ----
//! 2.                                      value*x2_column, alone
//!    ---- value*x1_column (ole) ----
//! 3. ---- scatter: the products added up by their rows ----
//! ```
//!
//! and for the product with the transposed matrix, rows and columns exchanged. As gather leaves the
//! entries in the order of the columns and scatter takes them in any order, three networks are
//! enough: to the columns, from there to the rows, and to the places.
//!
//! ```
//! use volery_apps::sparse::{self, Factor, Matrix, Shape};
//! use volery_channel::{SessionId, run_two_parties};
//! use volery_field::Z64;
//! use volery_ot::{convert, softspoken::{self, SmallField}};
//! use volery_primitives::prg::Prg;
//! use zeroize::Zeroizing;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
//! let shape = Shape { rows: 2, columns: 3, entries: 10, bits: 8 }; // both know
//! let entries = [(0, 1, Z64::new(5)), (1, 0, Z64::new(2)), (1, 2, Z64::new(7))]; // the holder's
//! // Here the helper knows the vector; any two vectors that add up to it are allowed.
//! let x = [1, 10, 100].map(Z64::new);
//! let session = SessionId::from_bytes([0; 32]); // from the handshake, never twice the same
//! type Outcome = Result<Zeroizing<Vec<Z64>>, Box<dyn std::error::Error + Send + Sync>>;
//! let (left, right) = run_two_parties(
//!     |channel| -> Outcome {
//!         let field = SmallField::Bits8;
//!         let cot = softspoken::Sender::setup(None, field, session, Prg::from_os()?, channel)?;
//!         let mut ot = convert::Sender::new(cot, session);
//!         Ok(sparse::send(shape, Factor::Plain, &x, &mut Prg::from_os()?, &mut ot, channel)?)
//!     },
//!     |channel| -> Outcome {
//!         let matrix = Matrix::new(shape, &entries)?;
//!         let field = SmallField::Bits8;
//!         let cot = softspoken::Receiver::setup(field, session, Prg::from_os()?, channel)?;
//!         let mut ot = convert::Receiver::new(cot, session);
//!         let (zeros, mut rng) = ([Z64::new(0); 3], Prg::from_os()?);
//!         Ok(sparse::receive(&matrix, Factor::Plain, &zeros, &mut rng, &mut ot, channel)?)
//!     },
//! );
//! let (left, right) = (left?, right?);
//! assert_eq!([left[0] + right[0], left[1] + right[1]], [50, 702].map(Z64::new));
//! # Ok(()) }
//! ```
//!
//! Security: semi-honest; that of [`crate::scatter`] and [`ole`]. Both know the rows, the columns,
//! a bound of the number of entries and one of their values: [`Shape`]. The helper learns nothing
//! else: not the positions of the entries, their number in a row, or their total number below the
//! bound. Neither party learns anything about the vector or the result. (The helper learns with
//! probability 2^-40 that hashing failed, if step 3 uses trees: then both get [`Error::Hashing`].)
//! The holder's entries index and branch in its own memory, and the holder sorts them between the
//! public numbers and its first message, in a time that depends on them: a helper that times this
//! message may learn something about the order in which they were given, and about their number
//! below the bound. Cost for a vector of `n` entries, a result of `m`, and `t` entries of the
//! matrix: 48 bytes in both directions, crossing. In products: `switches(max(n, t)) + t - 1`, then
//! `t` times [`ole::width`], then `switches(t) + t - 1` and step 3 of [`crate::scatter`].

pub mod ole;

#[cfg(test)]
mod tests;

use crate::{mpfss, switching};
use volery_channel::Channel;
use volery_field::Ring;
use volery_ot::{CotReceiver, CotSender, convert};
use volery_primitives::prg::Prg;
use zeroize::{Zeroize, Zeroizing};

use crate::{
    agree,
    error::{Error, Result},
    scatter::{self, Overflow, Repeats, gather},
};

/// The public parameters of the matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// The maximum number of entries of the matrix.
    pub entries: usize,
    /// Values are at least `-2^bits` and below `2^bits`. If `bits` is at least the bits of the ring
    /// less one, all values are allowed.
    pub bits: u32,
}

/// The matrix or its transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Factor {
    /// The product with the matrix: the vector has an entry for each column, the result one for
    /// each row.
    Plain,
    /// The product with the transposed matrix: the vector has an entry for each row, the result one
    /// for each column.
    Transposed,
}

/// The holder's matrix; its entries are wiped when dropped.
pub struct Matrix<R: Ring> {
    shape: Shape,
    /// `Shape::entries` of them: after the given ones, zeros.
    entries: Vec<(usize, usize, R)>,
}

impl<R: Ring> Drop for Matrix<R> {
    fn drop(&mut self) {
        self.entries.zeroize();
    }
}

impl<R: Ring> Matrix<R> {
    /// The matrix of the given entries `(row, column, value)`, in any order.
    ///
    /// # Errors
    /// If the shape has no rows or no columns or is too large, an entry is outside it or beyond its
    /// bits, or there are more than declared.
    pub fn new(shape: Shape, entries: &[(usize, usize, R)]) -> Result<Self> {
        shape.check()?;
        let Shape { rows, columns, bits, .. } = shape;
        for (entry, &(row, column, value)) in entries.iter().enumerate() {
            if row >= rows {
                return Err(Error::Input(format!(
                    "the row of entry {entry} (counted from 0) is not below {rows}, the rows of \
                     the matrix: the first is number 0"
                )));
            }
            if column >= columns {
                return Err(Error::Input(format!(
                    "the column of entry {entry} (counted from 0) is not below {columns}, the \
                     columns of the matrix: the first is number 0"
                )));
            }
            if !ole::fits(value, bits) {
                return Err(Error::Input(format!(
                    "the value of entry {entry} (counted from 0) is not within the declared {bits} \
                     bits and a sign: declare more on both sides"
                )));
            }
        }
        if entries.len() > shape.entries {
            let declared = shape.entries;
            return Err(Error::Input(format!(
                "the matrix has more entries than the declared {declared}: declare more on both sides"
            )));
        }
        let mut padded = Vec::with_capacity(shape.entries);
        padded.extend_from_slice(entries);
        padded.resize(shape.entries, (0, 0, R::ZERO));
        Ok(Self { shape, entries: padded })
    }

    /// The public parameters of the matrix.
    pub fn shape(&self) -> Shape {
        self.shape
    }
}

impl Shape {
    /// Checks that the shape is valid: every function calls this first.
    ///
    /// # Errors
    /// If it has no rows or no columns, or more of anything than [`scatter::LARGEST`].
    pub fn check(&self) -> Result<()> {
        let Self { rows, columns, entries, .. } = *self;
        if rows == 0 || columns == 0 {
            return Err(Error::Empty("a matrix without rows or columns"));
        }
        if rows.max(columns).max(entries) > scatter::LARGEST {
            return Err(Error::TooLarge {
                what: "the rows, columns or entries of a sparse matrix",
                bits: scatter::LARGEST.ilog2(),
            });
        }
        Ok(())
    }

    fn agree<R: Ring>(&self, factor: Factor, channel: &mut Channel) -> Result<()> {
        // mutant(sparse-rows): `self.rows as u64` => `0`
        // mutant(sparse-columns): `self.columns as u64` => `0`
        // mutant(sparse-entries): `self.entries as u64` => `0`
        // mutant(sparse-bits): `self.bits.into()` => `0`
        // mutant(sparse-factor): `factor as u64` => `0`
        let numbers = [
            ("the rows of the matrix", self.rows as u64),
            ("the columns of the matrix", self.columns as u64),
            ("the entries of the matrix", self.entries as u64),
            ("the bits of the entries", self.bits.into()),
            ("whether the matrix is transposed", factor as u64),
        ];
        Ok(agree::same_over::<R>(None, &numbers, channel)?)
    }

    /// Entries of the vector and of the result.
    pub fn lengths(&self, factor: Factor) -> (usize, usize) {
        match factor {
            Factor::Plain => (self.columns, self.rows),
            Factor::Transposed => (self.rows, self.columns),
        }
    }

    /// The number of products, with an OT each, of a product with the matrix. If the last step uses
    /// trees ([`scatter::Public::way`]), their levels are an estimate. For a shape that passes
    /// [`check`](Self::check).
    pub fn products<R: Ring>(&self, factor: Factor) -> usize {
        let (gather, scatter) = self.steps(factor);
        if self.entries == 0 {
            return 0;
        }
        let chains = 2 * (self.entries - 1);
        let last = match scatter.way::<R>() {
            scatter::Way::Network => switching::switches(scatter.length.max(scatter.count)),
            scatter::Way::Trees => {
                let expected = mpfss::expected(scatter.length, scatter.count);
                expected.switches + expected.levels
            }
        };
        switching::switches(gather.length.max(gather.count))
            + self.entries * ole::width::<R>(self.bits) as usize
            + switching::switches(self.entries)
            + chains
            + last
    }

    fn steps(&self, factor: Factor) -> (gather::Public, scatter::Public) {
        let (input, output) = self.lengths(factor);
        let gather =
            gather::Public { length: input, count: self.entries, order: gather::Order::Runs };
        let scatter = scatter::Public {
            length: output,
            count: self.entries,
            repeats: Repeats::Add,
            overflow: Overflow::Abort,
        };
        (gather, scatter)
    }
}

/// Helper: converts its share `x` of the vector to its share of the product.
///
/// # Panics
/// If the length of the vector does not match the shape.
///
/// # Errors
/// If the shape has no rows or no columns or is too large, or the shape or the ring differs from
/// the holder's; [`Error::Hashing`]; if the channel or the source of OTs fails.
pub fn send<R: Ring, C: CotSender>(
    shape: Shape,
    factor: Factor,
    x: &[R],
    rng: &mut Prg,
    ot: &mut convert::Sender<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    shape.check()?;
    assert_eq!(x.len(), shape.lengths(factor).0, "the length of the vector");
    shape.agree::<R>(factor, channel)?;
    let (gather, scatter) = shape.steps(factor);
    let x = gather::send_agreed(gather, x, ot, channel)?; // step 1
    let products = Zeroizing::new(ole::send(shape.bits, &x, ot, channel)?); // step 2
    let way = scatter.way::<R>();
    scatter::send_by(way, scatter, &products, rng, ot, channel) // step 3
}

/// Holder: as [`send`], with the matrix.
///
/// # Panics
/// If the length of the vector does not match the shape.
///
/// # Errors
/// The errors of [`send`], and an error if the helper sent a value that is not an element of the
/// ring.
pub fn receive<R: Ring, C: CotReceiver>(
    matrix: &Matrix<R>,
    factor: Factor,
    x: &[R],
    rng: &mut Prg,
    ot: &mut convert::Receiver<C>,
    channel: &mut Channel,
) -> Result<Zeroizing<Vec<R>>> {
    let shape = matrix.shape;
    assert_eq!(x.len(), shape.lengths(factor).0, "the length of the vector");
    shape.agree::<R>(factor, channel)?;
    let (gather, scatter) = shape.steps(factor);
    let mut entries: Zeroizing<Vec<(usize, usize, R)>> = Zeroizing::new(matrix.entries.clone());
    if factor == Factor::Transposed {
        for (row, column, _) in entries.iter_mut() {
            std::mem::swap(row, column);
        }
    }
    entries.sort_unstable_by_key(|(row, column, _)| (*column, *row));
    let inputs: Zeroizing<Vec<usize>> =
        Zeroizing::new(entries.iter().map(|entry| entry.1).collect());
    let outputs: Zeroizing<Vec<usize>> =
        Zeroizing::new(entries.iter().map(|entry| entry.0).collect());
    let values: Zeroizing<Vec<R>> = Zeroizing::new(entries.iter().map(|entry| entry.2).collect());
    let x = gather::receive_agreed(gather, &inputs, x, ot, channel)?; // step 1
    let mut products = Zeroizing::new(ole::receive(shape.bits, &values, ot, channel)?); // step 2
    for ((product, value), x) in products.iter_mut().zip(values.iter()).zip(x.iter()) {
        *product += *value * *x;
    }
    let way = scatter.way::<R>();
    scatter::receive_by(way, scatter, &outputs, &products, rng, ot, channel) // step 3
}
