//! Dense matrices.

use std::fmt;

use volery_field::Ring;
use zeroize::Zeroizing;

use crate::error::{Error, Result};

/// A matrix, stored column after column, wiped when dropped. It has at least one row and one
/// column.
#[derive(Clone, PartialEq, Eq)]
pub struct Matrix<R: Ring> {
    rows: usize,
    columns: usize,
    entries: Zeroizing<Vec<R>>,
}

impl<R: Ring> Matrix<R> {
    /// The matrix whose entries are given row after row.
    ///
    /// # Errors
    /// If there are no rows or columns, or not `rows * columns` entries.
    pub fn from_rows(rows: usize, columns: usize, entries: &[R]) -> Result<Self> {
        check(rows, columns, entries.len())?;
        Ok(Self::from_fn(rows, columns, |i, j| entries[i * columns + j]))
    }

    /// The matrix whose entries are given column after column.
    ///
    /// # Errors
    /// If there are no rows or columns, or not `rows * columns` entries.
    pub fn from_columns(rows: usize, columns: usize, entries: Vec<R>) -> Result<Self> {
        let entries = Zeroizing::new(entries);
        check(rows, columns, entries.len())?;
        Ok(Self { rows, columns, entries })
    }

    /// The matrix with `entry(i, j)` in row `i` and column `j`.
    fn from_fn(rows: usize, columns: usize, entry: impl Fn(usize, usize) -> R) -> Self {
        let mut entries = Zeroizing::new(Vec::with_capacity(rows * columns));
        for j in 0..columns {
            entries.extend((0..rows).map(|i| entry(i, j)));
        }
        Self { rows, columns, entries }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Column `j`.
    ///
    /// # Panics
    /// If `j` is out of range.
    pub fn column(&self, j: usize) -> &[R] {
        assert!(j < self.columns, "column {j} of {}", self.columns);
        &self.entries[j * self.rows..][..self.rows]
    }

    /// All entries, column after column.
    pub fn entries(&self) -> &[R] {
        &self.entries
    }

    /// All entries, row after row.
    pub fn to_rows(&self) -> Zeroizing<Vec<R>> {
        self.transposed().entries
    }

    /// The matrix with rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.columns, self.rows, |i, j| self.entries[i * self.rows + j])
    }

    /// The sum. The sum of two shares is the shared matrix.
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn plus(&self, other: &Self) -> Result<Self> {
        if (self.rows, self.columns) != (other.rows, other.columns) {
            return Err(Error::Entries {
                what: "two shares of a matrix",
                given: other.entries.len(),
                wanted: self.entries.len(),
            });
        }
        let mut sum = self.clone();
        R::add_slice(&mut sum.entries, &other.entries);
        Ok(sum)
    }

    /// The product, in the clear.
    ///
    /// # Errors
    /// If the shapes do not fit.
    pub fn times(&self, other: &Self) -> Result<Self> {
        if self.columns != other.rows {
            return Err(Error::Shape {
                left: (self.rows as u64, self.columns as u64),
                right: (other.rows as u64, other.columns as u64),
            });
        }
        let mut entries = Zeroizing::new(vec![R::ZERO; self.rows * other.columns]);
        for (out, right) in entries.chunks_mut(self.rows).zip(other.entries.chunks(other.rows)) {
            for (left, factor) in self.entries.chunks(self.rows).zip(right) {
                R::axpy(out, *factor, left);
            }
        }
        Ok(Self { rows: self.rows, columns: other.columns, entries })
    }
}

/// The shape only: the entries are a party's secret.
impl<R: Ring> fmt::Debug for Matrix<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Matrix({} x {} over {})", self.rows, self.columns, R::NAME)
    }
}

fn check(rows: usize, columns: usize, given: usize) -> Result<()> {
    if rows == 0 || columns == 0 {
        return Err(Error::Empty("a matrix without rows or columns"));
    }
    match rows.checked_mul(columns) {
        Some(wanted) if wanted == given => Ok(()),
        wanted => {
            Err(Error::Entries { what: "a matrix", given, wanted: wanted.unwrap_or(usize::MAX) })
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_field::Z64;

    use super::*;

    fn numbers(entries: &[u64]) -> Vec<Z64> {
        entries.iter().map(|entry| Z64::new(*entry)).collect()
    }

    #[test]
    fn rows_and_columns() {
        let a = Matrix::from_rows(2, 3, &numbers(&[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(a.column(1), numbers(&[2, 5]));
        assert_eq!(a.entries(), numbers(&[1, 4, 2, 5, 3, 6]));
        assert_eq!(*a.to_rows(), numbers(&[1, 2, 3, 4, 5, 6]));
        assert_eq!(a.transposed().transposed(), a);
        let b = Matrix::from_columns(3, 1, numbers(&[1, 10, 100])).unwrap();
        assert_eq!(a.times(&b).unwrap().entries(), numbers(&[321, 654]));
        assert_eq!(a.plus(&a).unwrap().column(0), numbers(&[2, 8]));
        assert_eq!(format!("{a:?}"), "Matrix(2 x 3 over z64)");
    }

    #[test]
    fn shapes_that_do_not_fit() {
        let a = Matrix::from_rows(2, 3, &numbers(&[1, 2, 3, 4, 5, 6])).unwrap();
        assert_eq!(
            a.times(&a).unwrap_err().to_string(),
            "a matrix of 2 x 3 times one of 2 x 3: the first must have as many columns as the second has rows"
        );
        assert!(a.plus(&a.transposed()).is_err());
        for (rows, columns) in [(0, 3), (3, 0), (0, 0)] {
            let empty = Matrix::<Z64>::from_rows(rows, columns, &[]);
            assert!(matches!(empty, Err(Error::Empty(_))));
        }
        assert!(Matrix::from_rows(2, 2, &numbers(&[1, 2, 3])).is_err());
        assert!(Matrix::from_rows(usize::MAX, 2, &numbers(&[1, 2, 3])).is_err());
    }
}
