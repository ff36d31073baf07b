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
impl Preset {
    /// stub
    pub fn failure_bits(self, items: usize) -> f64 {
        match self {
            Self::Band10 => 0.259 * 256.0 - (items.max(1) as f64).log2() + 4.9,
            Self::Band5 => 0.126 * 512.0 - (items.max(1) as f64).log2() + 7.8,
        }
    }
}
/// stub
pub fn bin_capacity(items: u64, bins: u64, _bits: f64) -> usize {
    if bins == 1 {
        return items as usize;
    }
    let mean = items as f64 / bins as f64;
    ((mean + 8.0 * mean.sqrt() + 20.0) as u64).min(items) as usize
}
