//! The header of an `.npy` file.

use std::io::{self, Read};

use npyz::{DType, NpyFile, NpyHeader, Order};

use super::invalid;

/// The longest header that is read; NumPy writes 118 bytes for such arrays.
const LIMIT: usize = 4096;

/// The type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Number {
    /// `|u1`.
    Byte,
    /// `<u8`.
    Word,
    /// `<f8`.
    Real,
    /// `<i8`.
    Signed,
}

impl Number {
    /// All types.
    const ALL: [Self; 4] = [Self::Byte, Self::Word, Self::Real, Self::Signed];

    /// NumPy's code for the type.
    const fn code(self) -> &'static str {
        match self {
            Self::Byte => "|u1",
            Self::Word => "<u8",
            Self::Real => "<f8",
            Self::Signed => "<i8",
        }
    }

    /// The type for error messages: the code, and the name in brackets.
    pub(super) const fn shown(self) -> &'static str {
        match self {
            Self::Byte => "'|u1' (uint8)",
            Self::Word => "'<u8' (uint64)",
            Self::Real => "'<f8' (float64)",
            Self::Signed => "'<i8' (int64)",
        }
    }

    /// The type as stored in a header.
    pub(super) fn dtype(self) -> DType {
        DType::Plain(self.code().parse().expect("the code is a valid NumPy type"))
    }

    const fn bytes(self) -> u64 {
        match self {
            Self::Byte => 1,
            Self::Word | Self::Real | Self::Signed => 8,
        }
    }
}

/// The contents of a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Array {
    pub(super) number: Number,
    pub(super) shape: Vec<u64>,
    /// C order: the last index runs fastest.
    pub(super) rows_first: bool,
    /// Bytes of the header.
    bytes: u64,
}

impl Array {
    /// Checks that a file of `length` bytes has the length that the header implies.
    pub(super) fn check_length(&self, length: u64) -> io::Result<()> {
        let expected = self
            .shape
            .iter()
            .try_fold(self.number.bytes(), |bytes, side| bytes.checked_mul(*side))
            .and_then(|bytes| bytes.checked_add(self.bytes))
            .ok_or_else(|| invalid("its shape is larger than any file"))?;
        if length == expected {
            return Ok(());
        }
        Err(invalid(format_args!(
            "it has {length} bytes, but its header implies {expected}"
        )))
    }
}

/// Reads and parses a header.
///
/// # Errors
/// `InvalidData` with the reason for anything that is not the header of an array of one of the
/// [`Number`]s.
pub(super) fn read(stream: &mut impl Read) -> io::Result<Array> {
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
    if length > LIMIT {
        return Err(invalid("its header is too long"));
    }
    bytes.resize(10 + length, 0);
    stream
        .read_exact(&mut bytes[10..])
        .map_err(|_| invalid("it ends inside its header"))?;
    if !is_plain(&bytes[10..]) {
        return Err(invalid("its header is not that of an array of numbers"));
    }
    // The parser multiplies the sides of the shape: with so few digits in the whole header the
    // product fits in 64 bits.
    if bytes[10..]
        .iter()
        .filter(|byte| byte.is_ascii_digit())
        .count()
        > 19
    {
        return Err(invalid("its shape is larger than any file"));
    }
    let parsed = NpyHeader::from_reader(&bytes[..])?;
    let parsed = NpyFile::with_header(parsed, io::empty());
    let dtype = parsed.dtype();
    let number = Number::ALL
        .into_iter()
        .find(|number| number.dtype() == dtype)
        .ok_or_else(|| {
            invalid(format_args!(
                "its dtype is {}, not '<u8' (uint64), '<i8' (int64), '<f8' (float64) or '|u1' \
                 (uint8)",
                dtype.descr()
            ))
        })?;
    Ok(Array {
        number,
        shape: parsed.shape().to_vec(),
        rows_first: parsed.order() == Order::C,
        bytes: bytes.len() as u64,
    })
}

/// Whether the header text has only the characters of headers of number arrays, and no nesting
/// except the shape inside the dictionary. The parser accepts all Python literals, and each nested
/// bracket doubles its running time.
fn is_plain(text: &[u8]) -> bool {
    let count = |bracket| text.iter().filter(|&&byte| byte == bracket).count();
    let known = |byte: &u8| byte.is_ascii_alphanumeric() || b" '\":,(){}<>|=_\n".contains(byte);
    text.iter().all(known) && count(b'{') <= 1 && count(b'(') <= 1
}
