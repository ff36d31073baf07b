//! NumPy `.npy` files as streams.
//!
//! An array of n ring elements is written as it comes, a slice at a time, and read the same way, so that memory does not
//! grow with n. `npyz` writes and parses the header; the data is little-endian canonical values one after the other, which
//! is byte for byte what the header announces:
//!
//! | ring | dtype | shape |
//! |---|---|---|
//! | a bit (`f2`) | `|u1`, 0 or 1 | `(n,)` |
//! | 8 bytes an element (`fp61`, `z64`) | `<u8` | `(n,)` |
//! | 16 bytes an element (`gf128`) | `<u8` | `(n, 2)`, low word first |
//!
//! A reader takes any bytes: what is not such an array is an error that says why, before any memory is taken for it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::path::Path;

use npyz::{DType, NpyHeader, Order, WriteOptions, WriterBuilder as _};
use volery_field::{NotCanonical, Ring};

/// The longest header that is read; those NumPy writes for such arrays have 118 bytes.
const HEADER_LIMIT: usize = 4096;

/// How the elements of an array stand in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A byte that is 0 or 1.
    Bit,
    /// A 64-bit word.
    Word,
    /// Two 64-bit words.
    Pair,
}

impl Form {
    /// That of the elements of `R`.
    ///
    /// # Panics
    /// If `R` is none of the rings above.
    pub const fn of<R: Ring>() -> Self {
        match (R::BITS, R::BYTES) {
            (1, _) => Self::Bit,
            (_, 8) => Self::Word,
            (_, 16) => Self::Pair,
            _ => panic!("a ring without a form"),
        }
    }

    /// Bytes of an element.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bit => 1,
            Self::Word => 8,
            Self::Pair => 16,
        }
    }

    /// NumPy's name for the type of the numbers.
    pub const fn dtype(self) -> &'static str {
        match self {
            Self::Bit => "uint8",
            Self::Word | Self::Pair => "uint64",
        }
    }

    /// The shape of `n` elements.
    pub fn shape(self, n: u64) -> Vec<u64> {
        match self {
            Self::Bit | Self::Word => vec![n],
            Self::Pair => vec![n, 2],
        }
    }

    fn type_in_header(self) -> DType {
        let descriptor = match self {
            Self::Bit => "|u1",
            Self::Word | Self::Pair => "<u8",
        };
        DType::Plain(descriptor.parse().expect("a type of NumPy"))
    }
}

/// Appends the bytes of the elements as they stand in a file.
fn encode<R: Ring>(elements: &[R], out: &mut Vec<u8>) {
    match Form::of::<R>() {
        Form::Bit => out.extend_from_slice(bytemuck::cast_slice(elements)),
        Form::Word | Form::Pair => R::write(elements, out),
    }
}

/// Reads as many elements as there is room for.
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
        Form::Word | Form::Pair => R::read(bytes, elements),
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
    ///
    /// # Errors
    /// Those of the file.
    pub fn new(file: File, n: u64) -> io::Result<Self> {
        let file = WriteOptions::new_header_only()
            .dtype(Form::of::<R>().type_in_header())
            .shape(&Form::of::<R>().shape(n))
            .writer(file)
            .write_header_only()?;
        Ok(Self {
            file,
            left: n,
            encoded: Vec::new(),
            ring: PhantomData,
        })
    }

    /// Writes the next elements.
    ///
    /// # Errors
    /// Those of the file.
    ///
    /// # Panics
    /// If that is more than the header announced.
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
    /// # Errors
    /// Those of the file.
    ///
    /// # Panics
    /// If fewer elements were written than the header announced.
    pub fn finish(self) -> io::Result<()> {
        assert_eq!(self.left, 0, "fewer elements than announced");
        self.file.sync_all()
    }
}

impl<R> Drop for Writer<R> {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.encoded);
    }
}

/// What the header of a file says, checked to be one of the forms, in C order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Elements of the array.
    pub n: u64,
    /// How they stand in the file.
    pub form: Form,
}

impl std::fmt::Display for Header {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.form {
            Form::Bit => write!(f, "({},) of uint8", self.n),
            Form::Word => write!(f, "({},)", self.n),
            Form::Pair => write!(f, "({}, 2)", self.n),
        }
    }
}

/// Reads one array from its start to its end.
///
/// Memory is as much as the slices that are asked for, whatever the header says.
pub struct Reader<S = File> {
    stream: S,
    header: Header,
    left: u64,
    encoded: Vec<u8>,
}

impl Reader {
    /// Opens a file; else as [`new`](Self::new).
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Self::new(file, length)
    }
}

impl<S: Read> Reader<S> {
    /// Reads and checks the header of `stream`, and that the `length` bytes of it are exactly what the header makes them.
    ///
    /// # Errors
    /// `InvalidData` with what is wrong for anything that is not a little-endian `uint64` array of shape `(n,)` or
    /// `(n, 2)`, or a `uint8` array of shape `(n,)`.
    pub fn new(mut stream: S, length: u64) -> io::Result<Self> {
        let (header, bytes_of_header) = read_header(&mut stream)?;
        let expected = header
            .n
            .checked_mul(header.form.bytes() as u64)
            .and_then(|bytes| bytes.checked_add(bytes_of_header))
            .ok_or_else(|| invalid("its shape is past any file"))?;
        if length != expected {
            return Err(invalid(format_args!(
                "it has {length} bytes where its header makes it {expected}"
            )));
        }
        Ok(Self {
            left: header.n,
            stream,
            header,
            encoded: Vec::new(),
        })
    }

    /// What the header says.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Reads the next `elements.len()` elements.
    ///
    /// # Errors
    /// Those of the file; `InvalidData` with the element's number if a value is not canonical.
    ///
    /// # Panics
    /// If fewer are left, or the elements of `R` do not have the file's form.
    pub fn read<R: Ring>(&mut self, elements: &mut [R]) -> io::Result<()> {
        let form = Form::of::<R>();
        assert_eq!(form, self.header.form, "the ring is not the file's");
        let count = elements.len() as u64;
        assert!(count <= self.left, "fewer elements are left");
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
                Form::Word | Form::Pair => format!(
                    "element {} is not a canonical value of {}",
                    first + at,
                    R::NAME
                ),
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

/// Parses a header; gives it with its length in bytes.
fn read_header(stream: &mut impl Read) -> io::Result<(Header, u64)> {
    let mut bytes = vec![0; 10];
    stream
        .read_exact(&mut bytes)
        .map_err(|_| invalid("it is too short for an .npy file"))?;
    if &bytes[..6] != b"\x93NUMPY" {
        return Err(invalid("it is not an .npy file"));
    }
    if bytes[6..8] != [1, 0] {
        return Err(invalid("its .npy version is not 1.0"));
    }
    let length = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    if length > HEADER_LIMIT {
        return Err(invalid("its header is too long"));
    }
    bytes.resize(10 + length, 0);
    stream
        .read_exact(&mut bytes[10..])
        .map_err(|_| invalid("it ends inside its header"))?;
    let total = bytes.len() as u64;
    if !is_plain(&bytes[10..]) {
        return Err(invalid("its header is not that of an array of numbers"));
    }
    // The parser multiplies the shape out: with this few digits in the whole header the product fits in 64 bits.
    if bytes[10..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count()
        > 19
    {
        return Err(invalid("its shape is past any file"));
    }
    let parsed = NpyHeader::from_reader(&bytes[..])?;
    let parsed = npyz::NpyFile::with_header(parsed, io::empty());
    let bits = parsed.dtype() == Form::Bit.type_in_header();
    if !bits && parsed.dtype() != Form::Word.type_in_header() {
        return Err(invalid(format_args!(
            "its dtype is {}, not '<u8' (uint64) or '|u1' (uint8)",
            parsed.dtype().descr()
        )));
    }
    let form = match (bits, parsed.shape()) {
        (true, [_]) => Form::Bit,
        (false, [_]) => Form::Word,
        (false, [_, 2]) if parsed.order() == Order::C => Form::Pair,
        _ => {
            return Err(invalid(format_args!(
                "its shape is {:?}, not (n,) or (n, 2) in C order",
                parsed.shape()
            )));
        }
    };
    let header = Header {
        n: parsed.shape()[0],
        form,
    };
    Ok((header, total))
}

/// Whether the text of a header has the characters of those of arrays of numbers only, and nothing inside one another but
/// a shape in the whole. The parser takes all literals of Python, and for brackets in brackets a time that doubles with
/// each.
fn is_plain(text: &[u8]) -> bool {
    let count = |bracket| text.iter().filter(|&&byte| byte == bracket).count();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b" '\":,(){}<>|=_\n".contains(byte);
    text.iter().all(known) && count(b'{') <= 1 && count(b'(') <= 1
}

fn invalid(what: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.to_string())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use std::io::{Seek as _, SeekFrom};

    use volery_field::{F2, Fp61, Gf128, Z64};
    use volery_primitives::Block;
    use volery_primitives::prg::Prg;

    use super::*;

    fn written<R: Ring>(elements: &[R], slice: usize) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Writer::new(file.try_clone().unwrap(), elements.len() as u64).unwrap();
        for part in elements.chunks(slice) {
            writer.write(part).unwrap();
        }
        writer.finish().unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        file
    }

    fn reader(file: File) -> io::Result<Reader> {
        let length = file.metadata()?.len();
        Reader::new(file, length)
    }

    fn there_and_back<R: Ring + std::fmt::Debug>() {
        for n in [0, 1, 2, 127, 128, 1009] {
            let mut elements = vec![R::ZERO; n];
            R::random_slice(&mut Prg::new(Block::from_words(n as u64, 7)), &mut elements);
            let mut reader = reader(written(&elements, 100)).unwrap();
            assert_eq!(reader.header().n, n as u64);
            let mut back = vec![R::ZERO; n];
            for part in back.chunks_mut(33) {
                reader.read(part).unwrap();
            }
            assert_eq!(back, elements);
        }
    }

    #[test]
    fn every_ring_there_and_back() {
        there_and_back::<Fp61>();
        there_and_back::<Z64>();
        there_and_back::<Gf128>();
        there_and_back::<F2>();
    }

    #[test]
    fn bits_take_a_byte_each() {
        let mut bytes = Vec::new();
        let bits = [1, 0, 0, 1, 1, 0, 0, 0, 0, 1].map(|bit| F2::new(bit == 1));
        written(&bits, 3).read_to_end(&mut bytes).unwrap();
        let (header, data) = bytes.split_at(bytes.len() - 10);
        assert_eq!(data, [1, 0, 0, 1, 1, 0, 0, 0, 0, 1]);
        let header = String::from_utf8_lossy(header);
        assert!(header.contains("'descr': '|u1'"), "{header}");
        assert!(header.contains("(10, )"), "{header}");

        *bytes.last_mut().unwrap() = 2;
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        let mut reader = reader(file).unwrap();
        assert_eq!(reader.header().form, Form::Bit);
        let error = reader.read(&mut [F2::ZERO; 10]).unwrap_err();
        assert!(
            error.to_string().contains("element 9 is neither 0 nor 1"),
            "{error}"
        );
    }

    #[test]
    fn the_bytes_are_those_numpy_writes() {
        let elements = [Gf128::from_block(Block::from_words(0x0102, 0x0304))];
        let mut bytes = Vec::new();
        written(&elements, 1).read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes.len() % 16, 0);
        assert!(bytes.starts_with(b"\x93NUMPY\x01\x00"));
        let header = String::from_utf8_lossy(&bytes[10..bytes.len() - 16]).into_owned();
        assert!(header.contains("'descr': '<u8'"), "{header}");
        assert!(header.contains("'fortran_order': False"), "{header}");
        assert!(header.contains("(1, 2"), "{header}");
        assert_eq!(
            bytes[bytes.len() - 16..],
            [2, 1, 0, 0, 0, 0, 0, 0, 4, 3, 0, 0, 0, 0, 0, 0]
        );
    }

    fn complaint(bytes: &[u8]) -> String {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        reader(file).err().unwrap().to_string()
    }

    #[test]
    fn files_that_are_not_ours_are_refused() {
        let mut good = Vec::new();
        written(&[Z64::ONE; 3], 3).read_to_end(&mut good).unwrap();
        assert!(complaint(b"").contains("too short"));
        assert!(complaint(b"a,b,c\n1,2,3\n").contains("not an .npy file"));
        assert!(complaint(&good[..good.len() - 1]).contains("bytes where its header"));
        assert!(complaint(&good[..40]).contains("inside its header"));
        let mut other = good.clone();
        other[6] = 9;
        assert!(complaint(&other).contains("version"));
        let text = String::from_utf8_lossy(&good[10..good.len() - 24]).into_owned();
        let replace = |from: &str, to: &str| {
            let changed = text.replace(from, to);
            assert_ne!(changed, text);
            assert_eq!(changed.len(), text.len());
            [&good[..10], changed.as_bytes(), &good[good.len() - 24..]].concat()
        };
        assert!(complaint(&replace("<u8", "<f8")).contains("dtype"));
        assert!(complaint(&replace("(3", "(9")).contains("bytes where its header"));
    }

    #[test]
    fn a_header_of_brackets_in_brackets_ends_at_once() {
        let header = |text: &str| {
            let length = (text.len() as u16).to_le_bytes();
            complaint(&[b"\x93NUMPY\x01\0", &length[..], text.as_bytes()].concat())
        };
        for text in [
            "{".repeat(4000),
            "(".repeat(4000),
            "[".repeat(4000),
            format!("{{'shape': {}}}", "+".repeat(4000)),
            "{'descr': [('a', '<u8')], 'fortran_order': False, 'shape': (3,), }\n".to_owned(),
        ] {
            assert!(header(&text).contains("array of numbers"), "{text:.50}");
        }
        // What is plain and wrong is the parser's to refuse.
        let quotes = "'".repeat(4000);
        for text in [
            "",
            "{",
            "}{",
            "{(",
            "'",
            "{'shape': (3,",
            &quotes,
            &"a".repeat(4000),
        ] {
            header(text);
        }
    }

    #[test]
    fn a_value_out_of_range_is_named() {
        let mut elements = vec![Z64::ZERO; 11];
        elements[7] = -Z64::ONE; // 2^64 - 1 is no residue modulo 2^61 - 1
        let mut reader = reader(written(&elements, 4)).unwrap();
        let mut out = vec![Fp61::ZERO; 5];
        reader.read(&mut out).unwrap();
        let error = reader.read(&mut out).unwrap_err();
        assert!(error.to_string().contains("element 7 is not"), "{error}");
    }
}
