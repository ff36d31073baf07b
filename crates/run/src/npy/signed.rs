//! Arrays of `int64`, of one dimension.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::Path;

use super::header::{self, Number};
use super::invalid;

/// Writes an array whose length is known beforehand.
pub(crate) struct SignedWriter {
    file: File,
    left: u64,
}

impl SignedWriter {
    /// Writes the header of an array of `n` numbers.
    ///
    /// # Errors
    /// Errors of the file.
    pub(crate) fn new(mut file: File, n: u64) -> io::Result<Self> {
        header::write(&mut file, Number::Signed, &[n])?;
        Ok(Self { file, left: n })
    }

    /// Writes the next numbers.
    ///
    /// # Errors
    /// Errors of the file.
    ///
    /// # Panics
    /// If there are more than announced.
    pub(crate) fn write(&mut self, numbers: &[i64]) -> io::Result<()> {
        let left = self.left.checked_sub(numbers.len() as u64);
        self.left = left.expect("no more numbers than announced");
        let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
        self.file.write_all(&bytes)
    }

    /// Ends the array and waits until it is on the disk.
    ///
    /// # Errors
    /// Errors of the file.
    ///
    /// # Panics
    /// If there are fewer than announced.
    pub(crate) fn finish(self) -> io::Result<()> {
        assert_eq!(self.left, 0, "as many numbers as announced");
        self.file.sync_all()
    }
}

/// Reads a whole array.
///
/// # Errors
/// Errors of the file; `InvalidData` with the reason for anything else than such an array.
pub(crate) fn read_signed(path: &Path) -> io::Result<Vec<i64>> {
    let mut file = File::open(path)?;
    let array = header::read(&mut file)?;
    if array.number != Number::Signed || array.shape.len() != 1 {
        return Err(invalid("it is not an array of int64 of one dimension"));
    }
    // Memory is bounded by the length of the file.
    array.check_length(file.metadata()?.len())?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (numbers, rest) = bytes.as_chunks();
    match rest {
        [] => Ok(numbers.iter().map(|number| i64::from_le_bytes(*number)).collect()),
        _ => Err(invalid("it changed while it was read")),
    }
}
