//! The public shape of a product, and the agreement on it.

use volery_channel::Channel;

use crate::{
    agree,
    error::{Error, Result},
};

/// The maximum number of ring elements of a product: a limit of the counters, not of memory.
const LARGEST: u64 = 1 << 40;

/// The shape of a product of a `rows x inner` matrix with an `inner x columns` matrix; a vector has
/// one column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
}

/// The factor that a party holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The left one.
    Left,
    /// The right one.
    Right,
}

/// The recipient of the result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    /// Neither party: each gets an additive share.
    #[default]
    Shared,
    /// The holder of the left factor.
    Left,
    /// The holder of the right factor.
    Right,
}

impl Shape {
    /// The shape of a `rows x inner` matrix times an `inner x columns` one.
    ///
    /// # Errors
    /// If a size is zero, or `rows * inner * columns` is above 2^40.
    pub fn new(rows: usize, inner: usize, columns: usize) -> Result<Self> {
        // mutant(shape-empty): false
        if rows == 0 || inner == 0 || columns == 0 {
            return Err(Error::Empty("a matrix without rows or columns"));
        }
        let all =
            (rows as u64).checked_mul(inner as u64).and_then(|all| all.checked_mul(columns as u64));
        // mutant(shape-too-large): false
        if all.is_none_or(|all| all > LARGEST) {
            return Err(Error::TooLarge {
                what: "the ring elements of a matrix product",
                bits: LARGEST.ilog2(),
            });
        }
        Ok(Self { rows, inner, columns })
    }

    /// Exchanges the rows and columns of both factors, and returns the shape of the product.
    /// Nothing is allocated for it: a caller that goes on with it accepts the other's size. That is
    /// a decision about privacy: with as many columns as rows in the other's factor, a revealed
    /// product can be the own matrix itself. Inspect the shape before going on, or use
    /// [`agree_vector`](Self::agree_vector).
    ///
    /// Both parties call it, each with its side and its own factor's rows and columns. A message of
    /// 16 bytes from each.
    ///
    /// # Errors
    /// [`Error::Shape`] with both factors at both parties, if they cannot be multiplied; as
    /// [`new`](Self::new); if the channel fails.
    pub fn agree(
        side: Side,
        (rows, columns): (usize, usize),
        channel: &mut Channel,
    ) -> Result<Self> {
        let ours = [rows as u64, columns as u64];
        let theirs = agree::exchange(ours, channel)?;
        let (left, right) = match side {
            Side::Left => (ours, theirs),
            Side::Right => (theirs, ours),
        };
        // mutant(shape-fit): false
        if left[1] != right[0] {
            return Err(Error::Shape { left: (left[0], left[1]), right: (right[0], right[1]) });
        }
        let size = |n: u64| {
            usize::try_from(n).map_err(|_| Error::TooLarge {
                what: "the ring elements of a matrix product",
                bits: LARGEST.ilog2(),
            })
        };
        Self::new(size(left[0])?, size(left[1])?, size(right[1])?)
    }

    /// Runs [`agree`](Self::agree) for a product with a vector: the right factor must have one
    /// column.
    ///
    /// # Errors
    /// [`Error::NotVector`] at a party that calls this, if the right factor has not exactly one
    /// column; as [`agree`](Self::agree).
    pub fn agree_vector(side: Side, own: (usize, usize), channel: &mut Channel) -> Result<Self> {
        let shape = Self::agree(side, own, channel)?;
        match shape.columns {
            // mutant(shape-vector): insert `_ if $ON => Ok(shape),`
            1 => Ok(shape),
            // no mutant: the arm before has a mutant that widens it
            columns => Err(Error::NotVector { columns: columns as u64 }),
        }
    }

    /// Rows of the left factor, and of the product.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns of the left factor, rows of the right one.
    pub fn inner(&self) -> usize {
        self.inner
    }

    /// Columns of the right factor, and of the product.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The side whose factor provides the vectors of the vector-OLEs, chosen for the fewest
    /// vector-OLEs.
    pub fn vectors(&self) -> Side {
        if self.columns <= self.rows { Side::Left } else { Side::Right }
    }

    /// The shape of the transposed product.
    pub(super) fn transposed(&self) -> Self {
        Self { rows: self.columns, inner: self.inner, columns: self.rows }
    }

    /// Number of vector-OLEs with the left factor as vectors.
    pub(super) fn scalars(&self) -> usize {
        self.inner * self.columns
    }

    /// Entries of the product.
    pub(super) fn entries(&self) -> usize {
        self.rows * self.columns
    }

    /// Refuses a factor of another shape than the agreed one.
    pub(super) fn check(&self, side: Side, rows: usize, columns: usize) -> Result<()> {
        let (wanted, what) = match side {
            Side::Left => ((self.rows, self.inner), "the left factor"),
            Side::Right => ((self.inner, self.columns), "the right factor"),
        };
        if (rows, columns) != wanted {
            return Err(Error::Input(format!(
                "{what} has {rows} x {columns} entries, but the parties agreed on {} x {}: give a \
                 matrix of that shape",
                wanted.0, wanted.1
            )));
        }
        Ok(())
    }
}

impl Output {
    /// The same output, as named in the transposed product.
    pub(super) fn transposed(self) -> Self {
        match self {
            Self::Shared => Self::Shared,
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

#[cfg(test)]
mod tests {
    use volery_channel::run_two_parties;

    use super::*;

    type Agree = fn(Side, (usize, usize), &mut Channel) -> Result<Shape>;

    /// The result of a party with a factor of this size, whose peer claims any size of its own.
    fn met(agree: Agree, side: Side, own: (usize, usize), claimed: [u64; 2]) -> Result<Shape> {
        let (shape, heard) = run_two_parties(
            |channel| agree(side, own, channel),
            |channel| {
                channel.send(claimed.map(u64::to_le_bytes).as_flattened()).unwrap();
                channel.flush().unwrap();
                let mut heard = [0; 16];
                channel.recv(&mut heard).unwrap();
                heard
            },
        );
        assert_eq!(heard, *[own.0, own.1].map(|n| (n as u64).to_le_bytes()).as_flattened());
        shape
    }

    #[test]
    fn sizes_of_the_peer_are_bounded() {
        let met = |columns| met(Shape::agree, Side::Left, (2, 1), [1, columns]);
        let largest = LARGEST / 2;
        assert_eq!(met(largest).unwrap().columns() as u64, largest);
        for columns in [largest + 1, 1 << 63, u64::MAX] {
            assert!(matches!(met(columns), Err(Error::TooLarge { .. })), "{columns}");
        }
        assert!(matches!(met(0), Err(Error::Empty(_))));
        for (n, m, p) in [(0, 1, 1), (1, 0, 1), (1, 1, 0)] {
            assert!(matches!(Shape::new(n, m, p), Err(Error::Empty(_))));
        }
    }

    #[test]
    fn factors_that_do_not_fit_are_named_at_both_sides() {
        let sizes = [(Side::Left, (4, 3), [5, 2]), (Side::Right, (5, 2), [4, 3])];
        for (side, own, claimed) in sizes {
            let error = met(Shape::agree, side, own, claimed).unwrap_err();
            assert!(matches!(error, Error::Shape { left: (4, 3), right: (5, 2) }));
        }
    }

    #[test]
    fn a_vector_is_one_column() {
        let met = |side, own, claimed| met(Shape::agree_vector, side, own, claimed);
        let shape = Shape::new(4, 3, 1).unwrap();
        assert_eq!(met(Side::Left, (4, 3), [3, 1]).unwrap(), shape);
        assert_eq!(met(Side::Right, (3, 1), [4, 3]).unwrap(), shape);
        for columns in [2, 3, 4, 1 << 30] {
            let refused = met(Side::Left, (4, 3), [3, columns]);
            let named = matches!(refused, Err(Error::NotVector { columns: c }) if c == columns);
            assert!(named, "{columns} columns");
        }
        // The holder of the right factor: its own factor is not a vector.
        let own = met(Side::Right, (3, 2), [4, 3]);
        assert!(matches!(own, Err(Error::NotVector { columns: 2 })));
    }
}
