//! Whole arrays of one or two dimensions: matrices, vectors, coefficients, points.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use volery_field::Ring;
use zeroize::{Zeroize, Zeroizing};

use super::header::{self, Number};
use super::invalid;

/// An array in memory, in C order.
#[derive(Clone, PartialEq)]
pub struct Table {
    /// `(n,)` or `(n, m)`.
    shape: Vec<usize>,
    values: Values,
}

/// The numbers of a [`Table`]; wiped when dropped.
#[derive(Clone, PartialEq)]
pub enum Values {
    /// `uint64`.
    Words(Zeroizing<Vec<u64>>),
    /// `float64`.
    Reals(Zeroizing<Vec<f64>>),
}

impl Table {
    /// An array of this shape.
    ///
    /// # Errors
    /// `InvalidData` if the shape is not `(n,)` or `(n, m)`, or there is another number of values.
    pub fn new(shape: Vec<usize>, values: Values) -> io::Result<Self> {
        let count = match &values {
            Values::Words(words) => words.len(),
            Values::Reals(reals) => reals.len(),
        };
        let size = shape.iter().try_fold(1_usize, |size, side| size.checked_mul(*side));
        if !matches!(shape[..], [_] | [_, _]) || size != Some(count) {
            return Err(invalid(format_args!(
                "its shape is {shape:?}, not (n,) or (n, m), or it does not have as many values"
            )));
        }
        Ok(Self { shape, values })
    }

    /// Reads a file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::read(&mut file, length)
    }

    /// Reads `stream`, which has `length` bytes. Memory use is proportional to `length`, whatever
    /// the header says.
    ///
    /// # Errors
    /// Errors of the stream; `InvalidData` with the reason for anything that is not a little-endian
    /// `uint64` or `float64` array of shape `(n,)` or `(n, m)` in C order.
    pub fn read(stream: &mut impl Read, length: u64) -> io::Result<Self> {
        let array = header::read(stream)?;
        array.check_length(length)?;
        if !matches!(array.shape[..], [_] | [_, _]) {
            return Err(invalid(format_args!(
                "its shape is {:?}, not (n,) or (n, m)",
                array.shape
            )));
        }
        if !array.rows_first && array.shape.len() > 1 {
            return Err(invalid(
                "it is in Fortran order; convert it to C order with numpy.ascontiguousarray",
            ));
        }
        // The length check bounds the product.
        let side = |side: &u64| {
            usize::try_from(*side).map_err(|_| invalid("its shape is larger than any file"))
        };
        let shape = array.shape.iter().map(side).collect::<io::Result<Vec<_>>>()?;
        let count = shape.iter().product::<usize>();
        let mut bytes = Zeroizing::new(Vec::new());
        bytes
            .try_reserve_exact(count.saturating_mul(8))
            .map_err(|_| invalid("it does not fit into memory"))?;
        bytes.resize(count * 8, 0);
        let values = match array.number {
            Number::Byte | Number::Signed => {
                return Err(invalid(format_args!(
                    "its dtype is {}, not '<u8' (uint64) or '<f8' (float64)",
                    array.number.shown()
                )));
            }
            Number::Word => {
                stream.read_exact(&mut bytes)?;
                let words = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
                Values::Words(Zeroizing::new(words.collect()))
            }
            Number::Real => {
                stream.read_exact(&mut bytes)?;
                let reals = bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes));
                Values::Reals(Zeroizing::new(reals.collect()))
            }
        };
        Ok(Self { shape, values })
    }

    /// `(n,)` or `(n, m)`.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The numbers, the last index running fastest.
    pub fn values(&self) -> &Values {
        &self.values
    }

    /// The numbers as canonical values of a ring of 64 bits or fewer.
    ///
    /// # Errors
    /// `InvalidData` if they are `float64`, or with the index of the first that is not canonical.
    ///
    /// # Panics
    /// If elements of `R` do not have 8 bytes.
    pub fn elements<R: Ring>(&self) -> io::Result<Zeroizing<Vec<R>>> {
        assert_eq!(R::BYTES, 8, "the ring must have 64 bits");
        let Values::Words(words) = &self.values else {
            return Err(invalid(format_args!(
                "its dtype is float64; values of {} are uint64",
                R::NAME
            )));
        };
        let mut elements = Zeroizing::new(vec![R::ZERO; words.len()]);
        for (i, (element, word)) in elements.iter_mut().zip(words.iter()).enumerate() {
            R::read(&word.to_le_bytes(), std::slice::from_mut(element)).map_err(|_| {
                invalid(format_args!(
                    "element {} is not a canonical value of {}",
                    self.place(i),
                    R::NAME
                ))
            })?;
        }
        Ok(elements)
    }

    /// The index of number `i`, as NumPy writes it.
    pub fn place(&self, i: usize) -> String {
        match self.shape[..] {
            [_, columns] => format!("[{}, {}]", i / columns, i % columns),
            _ => format!("[{i}]"),
        }
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        self.shape.zeroize();
    }
}

/// Writes a `float64` array of shape `(n,)`.
pub fn write_reals(file: &mut File, values: &[f64]) -> io::Result<()> {
    header::write(file, Number::Real, &[values.len() as u64])?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(8 * values.len()));
    for value in values {
        bytes.extend_from_slice(&value.to_le_bytes());
    }
    file.write_all(&bytes)
}

#[cfg(test)]
mod tests {
    use volery_field::Fp61;

    use super::*;

    /// A file in the form NumPy writes.
    fn file(code: &str, order: bool, shape: &str, data: &[u8]) -> Vec<u8> {
        let order = if order { "True" } else { "False" };
        let mut text =
            format!("{{'descr': '{code}', 'fortran_order': {order}, 'shape': {shape}, }}");
        text.push_str(&" ".repeat(117 - text.len()));
        text.push('\n');
        [b"\x93NUMPY\x01\0\x76\0", text.as_bytes(), data].concat()
    }

    fn read(bytes: &[u8]) -> io::Result<Table> {
        Table::read(&mut &*bytes, bytes.len() as u64)
    }

    fn words(values: &[u64]) -> Vec<u8> {
        values.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn other_arrays_are_refused() {
        let eight = [0; 8];
        for (bytes, complaint) in [
            (file("<u8", true, "(2, 2)", &[0; 32]), "Fortran order"),
            (file("|u1", false, "(8,)", &eight), "uint8"),
            (file("<i8", false, "(1,)", &eight), "int64"),
            (file("<f4", false, "(2,)", &eight), "dtype"),
            (file(">u8", false, "(1,)", &eight), "dtype"),
            (file("<u8", false, "()", &eight), "not (n,) or (n, m)"),
            (file("<u8", false, "(1, 1, 1)", &eight), "not (n,) or (n, m)"),
            (file("<u8", false, "(2,)", &eight), "bytes, but its header"),
            (file("<u8", false, "(4294967296, 4294967296)", &eight), "larger than any file"),
        ] {
            let error = read(&bytes).err().unwrap().to_string();
            assert!(error.contains(complaint), "{error}");
        }
        let table = read(&file("<u8", false, "(2, 2)", &words(&[0, 1, u64::MAX, 0]))).unwrap();
        let error = table.elements::<Fp61>().unwrap_err().to_string();
        assert!(error.contains("element [1, 0] is not a canonical value of fp61"), "{error}");
        let reals = read(&file("<f8", false, "(1,)", &eight)).unwrap();
        assert!(reals.elements::<Fp61>().unwrap_err().to_string().contains("float64"));
    }
}
