//! NumPy `.npy` files as streams.
//!
//! An array of n ring elements is written and read one slice at a time, so that memory does not
//! grow with n. The data is a sequence of little-endian canonical values, as the header announces:
//!
//! | ring | dtype | shape |
//! |---|---|---|
//! | a bit (`f2`) | `|u1`, 0 or 1 | `(n,)` |
//! | 8 bytes an element (`fp61`, `z64`) | `<u8` | `(n,)` |
//! | 16 bytes an element (`gf128`) | `<u8` | `(n, 2)`, low word first |
//!
//! A reader accepts any bytes: input that is not such an array gives an error with the reason,
//! before any memory is allocated for it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::Path;

use volery_field::{NotCanonical, Ring, Z64};
use volery_os::fs::sync_all;

mod header;
mod table;

use header::Number;
pub use table::{Table, Values, write_reals};

/// The encoding of array elements in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A byte that is 0 or 1.
    Bit,
    /// A 64-bit word.
    Word,
    /// Two 64-bit words.
    Pair,
    /// A 64-bit word with a sign, of the numbers of rows.
    Signed,
}

impl Form {
    /// The form of the elements of `R`.
    ///
    /// # Panics
    /// If `R` is none of the rings above.
    pub const fn of<R: Ring>() -> Self {
        match (R::BITS, R::BYTES) {
            (1, _) => Self::Bit,
            (_, 8) => Self::Word,
            (_, 16) => Self::Pair,
            _ => panic!("the ring has no .npy form"),
        }
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bit => 1,
            Self::Word | Self::Signed => 8,
            Self::Pair => 16,
        }
    }

    /// NumPy's name for the type of the numbers.
    pub const fn dtype(self) -> &'static str {
        match self {
            Self::Bit => "uint8",
            Self::Word | Self::Pair => "uint64",
            Self::Signed => "int64",
        }
    }

    /// The shape of `n` elements.
    pub fn shape(self, n: u64) -> Vec<u64> {
        match self {
            Self::Bit | Self::Word | Self::Signed => vec![n],
            Self::Pair => vec![n, 2],
        }
    }

    const fn number(self) -> Number {
        match self {
            Self::Bit => Number::Byte,
            Self::Word | Self::Pair => Number::Word,
            Self::Signed => Number::Signed,
        }
    }
}

/// Appends the bytes of the elements as stored in a file.
fn encode<R: Ring>(elements: &[R], out: &mut Vec<u8>) {
    match Form::of::<R>() {
        Form::Bit => out.extend_from_slice(bytemuck::cast_slice(elements)),
        _ => R::write(elements, out),
    }
}

fn decode<R: Ring>(bytes: &[u8], elements: &mut [R]) -> Result<(), NotCanonical> {
    match Form::of::<R>() {
        Form::Bit => {
            for (element, &byte) in elements.iter_mut().zip(bytes) {
                if byte > 1 {
                    return Err(NotCanonical { ring: R::NAME });
                }
                *element = R::from_words(&[byte.into()]);
            }
            Ok(())
        }
        _ => R::read(bytes, elements),
    }
}

/// Writes one array of elements of `R`, whose length is known beforehand, to a file.
pub struct Writer<R> {
    file: File,
    left: u64,
    encoded: Vec<u8>,
    ring: PhantomData<R>,
}

impl<R: Ring> Writer<R> {
    /// Starts an array of `n` elements: writes the header.
    pub fn new(file: File, n: u64) -> io::Result<Self> {
        Self::with(Form::of::<R>(), file, n)
    }

    fn with(form: Form, mut file: File, n: u64) -> io::Result<Self> {
        header::write(&mut file, form.number(), &form.shape(n))?;
        Ok(Self { file, left: n, encoded: Vec::new(), ring: PhantomData })
    }

    /// Writes the next elements.
    ///
    /// # Panics
    /// If `elements` exceed the announced length.
    pub fn write(&mut self, elements: &[R]) -> io::Result<()> {
        let count = elements.len() as u64;
        assert!(count <= self.left, "more elements than announced");
        self.left -= count;
        self.encoded.clear();
        encode(elements, &mut self.encoded);
        self.file.write_all(&self.encoded)
    }

    /// Ends the array and waits until it is on the disk.
    ///
    /// # Panics
    /// If fewer elements were written than the header announced.
    pub fn finish(self) -> io::Result<()> {
        assert_eq!(self.left, 0, "fewer elements than announced");
        sync_all(&self.file)
    }
}

impl Writer<Z64> {
    /// Starts an array of `n` numbers with a sign, as in two's complement.
    pub(crate) fn signed(file: File, n: u64) -> io::Result<Self> {
        Self::with(Form::Signed, file, n)
    }
}

impl<R> Drop for Writer<R> {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.encoded);
    }
}

/// The header of a file, checked to be one of the forms, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of elements.
    pub n: u64,
    /// Their encoding in the file.
    pub form: Form,
}

impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.form {
            Form::Bit => write!(f, "({},) of uint8", self.n),
            Form::Word => write!(f, "({},)", self.n),
            Form::Pair => write!(f, "({}, 2)", self.n),
            Form::Signed => write!(f, "({},) of int64", self.n),
        }
    }
}

/// Reads one array from its start to its end.
///
/// Memory is proportional to the slices requested, whatever the header says.
pub struct Reader<S = File> {
    stream: S,
    header: Header,
    left: u64,
    encoded: Vec<u8>,
}

impl Reader {
    /// Opens a file; otherwise as [`new`](Self::new).
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::new(file, length)
    }
}

impl<S: Read> Reader<S> {
    /// Reads and checks the header of `stream`, and that the `length` bytes are exactly the number
    /// the header implies.
    ///
    /// # Errors
    /// `InvalidData` with the reason for anything that is not a little-endian `uint64` array of
    /// shape `(n,)` or `(n, 2)`, or a `uint8` or `int64` array of shape `(n,)`.
    pub fn new(mut stream: S, length: u64) -> io::Result<Self> {
        let array = header::read(&mut stream)?;
        let header = form_of(&array)?;
        array.check_length(length)?;
        Ok(Self { left: header.n, stream, header, encoded: Vec::new() })
    }

    /// The checked header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the next `elements.len()` elements.
    ///
    /// # Errors
    /// Errors of the file; `InvalidData` with the element's number if a value is not canonical.
    ///
    /// # Panics
    /// If fewer are left, or the elements of `R` do not have the file's form.
    pub fn read<R: Ring>(&mut self, elements: &mut [R]) -> io::Result<()> {
        let form = Form::of::<R>();
        assert_eq!(form.bytes(), self.header.form.bytes(), "the ring must match the file's form");
        let count = elements.len() as u64;
        assert!(count <= self.left, "more elements requested than are left");
        self.encoded.resize(elements.len() * form.bytes(), 0);
        self.stream.read_exact(&mut self.encoded)?;
        if decode(&self.encoded, elements).is_err() {
            let first = self.header.n - self.left;
            let at = self
                .encoded
                .chunks_exact(form.bytes())
                .zip(elements)
                .position(|(bytes, element)| decode(bytes, std::slice::from_mut(element)).is_err())
                .unwrap_or_default() as u64;
            return Err(invalid(match form {
                Form::Bit => format!("element {} is neither 0 nor 1", first + at),
                _ => {
                    format!("element {} is not a canonical value of {}", first + at, R::NAME)
                }
            }));
        }
        self.left -= count;
        Ok(())
    }
}

impl<S> Drop for Reader<S> {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.encoded);
    }
}

fn form_of(array: &header::Array) -> io::Result<Header> {
    let form = match (array.number, &array.shape[..]) {
        (Number::Byte, [_]) => Form::Bit,
        (Number::Word, [_]) => Form::Word,
        (Number::Word, [_, 2]) if array.rows_first => Form::Pair,
        (Number::Signed, [_]) => Form::Signed,
        (Number::Real, _) => {
            return Err(invalid(format_args!(
                "its dtype is {}, not '<u8' (uint64) or '|u1' (uint8)",
                array.number.shown()
            )));
        }
        _ => {
            return Err(invalid(format_args!(
                "its shape is {:?}, not (n,) or (n, 2) in C order",
                array.shape
            )));
        }
    };
    Ok(Header { n: array.shape[0], form })
}

fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

#[cfg(test)]
mod tests;
