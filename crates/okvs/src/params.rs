//! Sizes of the band matrix.

/// A choice of expansion and band width for which encoding fails with probability at most 2^-40.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Preset {
    /// 1.10 columns an item, rows of 256 bits.
    Band10,
    /// 1.05 columns an item, rows of 512 bits.
    Band5,
}

/// The size of a band matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shape {
    /// Largest number of items, the rows.
    pub items: usize,
    /// Number of columns: values of an encoding.
    pub columns: usize,
    /// Columns that a row covers.
    pub width: usize,
}

impl Shape {
    /// The shape for up to `items` items.
    #[must_use]
    pub fn new(preset: Preset, items: usize) -> Self {
        let (percent, width) = match preset {
            Preset::Band10 => (110, 256),
            Preset::Band5 => (105, 512),
        };
        let columns = (items * percent).div_ceil(100).max(items + width);
        Self {
            items,
            columns,
            width,
        }
    }
}
