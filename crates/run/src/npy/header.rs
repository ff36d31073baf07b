//! The header of an `.npy` file.

use std::io::{self, Read, Write};

use super::invalid;

/// The longest header that is read; NumPy writes 118 bytes for such arrays.
const LIMIT: usize = 4096;

/// The type of the numbers of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
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
    pub(crate) const fn shown(self) -> &'static str {
        match self {
            Self::Byte => "'|u1' (uint8)",
            Self::Word => "'<u8' (uint64)",
            Self::Real => "'<f8' (float64)",
            Self::Signed => "'<i8' (int64)",
        }
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
pub(crate) struct Array {
    pub(crate) number: Number,
    pub(crate) shape: Vec<u64>,
    /// C order: the last index runs fastest.
    pub(crate) rows_first: bool,
    /// Bytes of the header.
    bytes: u64,
}

impl Array {
    /// Checks that a file of `length` bytes has the length that the header implies.
    pub(crate) fn check_length(&self, length: u64) -> io::Result<()> {
        let expected = self
            .shape
            .iter()
            .try_fold(self.number.bytes(), |bytes, side| bytes.checked_mul(*side))
            .and_then(|bytes| bytes.checked_add(self.bytes))
            .ok_or_else(|| invalid("its shape is larger than any file"))?;
        if length == expected {
            return Ok(());
        }
        Err(invalid(format_args!("it has {length} bytes, but its header implies {expected}")))
    }
}

/// Reads and parses a header.
///
/// # Errors
/// `InvalidData` with the reason for anything that is not the header of an array of one of the
/// [`Number`]s.
pub(crate) fn read(stream: &mut impl Read) -> io::Result<Array> {
    let mut bytes = vec![0; 10];
    stream.read_exact(&mut bytes).map_err(|_| invalid("it is too short for an .npy file"))?;
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
    stream.read_exact(&mut bytes[10..]).map_err(|_| invalid("it ends inside its header"))?;
    let text = std::str::from_utf8(&bytes[10..]).ok();
    let fields = text.and_then(parse);
    let (descr, rows_first, shape) =
        fields.ok_or_else(|| invalid("its header is not that of an array of numbers"))?;
    let number = Number::ALL.into_iter().find(|number| number.code() == descr);
    let number = number.ok_or_else(|| {
        invalid(format_args!(
            "its dtype is '{descr}', not '<u8' (uint64), '<i8' (int64), '<f8' (float64) or '|u1' \
             (uint8)"
        ))
    })?;
    Ok(Array { number, shape, rows_first, bytes: bytes.len() as u64 })
}

/// Writes the header of an array in C order.
pub(crate) fn write(stream: &mut impl Write, number: Number, shape: &[u64]) -> io::Result<()> {
    let sides: Vec<_> = shape.iter().map(u64::to_string).collect();
    let comma = if shape.len() == 1 { "," } else { "" };
    let text = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{comma}), }}",
        number.code(),
        sides.join(", "),
    );
    // With the ten bytes before it and the line break, a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    stream.write_all(b"\x93NUMPY\x01\x00")?;
    stream.write_all(&(length as u16).to_le_bytes())?;
    stream.write_all(format!("{text:<0$}\n", length - 1).as_bytes())
}

/// Parses the dictionary of a header: type, whether it is in C order, and shape. It is a literal of
/// Python; NumPy's own form is read, with any spaces and any order of its three keys.
fn parse(text: &str) -> Option<(&str, bool, Vec<u64>)> {
    let (mut descr, mut rows_first, mut shape) = (None, None, None);
    let mut rest = text.trim().strip_prefix('{')?.strip_suffix('}')?.trim();
    while !rest.is_empty() {
        let (key, value) = quoted(rest)?;
        let value = value.trim_start().strip_prefix(':')?.trim_start();
        let after = match key {
            "descr" if descr.is_none() => {
                let (code, after) = quoted(value)?;
                descr = Some(code);
                after
            }
            "fortran_order" if rows_first.is_none() => {
                let (is_first, after) = match value.strip_prefix("False") {
                    Some(after) => (true, after),
                    None => (false, value.strip_prefix("True")?),
                };
                rows_first = Some(is_first);
                after
            }
            "shape" if shape.is_none() => {
                let (sides, after) = value.strip_prefix('(')?.split_once(')')?;
                shape = Some(tuple(sides)?);
                after
            }
            _ => return None,
        };
        let after = after.trim_start();
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if after.is_empty() => after,
            None => return None,
        };
    }
    Some((descr?, rows_first?, shape?))
}

/// A text in quotes, and the rest.
fn quoted(text: &str) -> Option<(&str, &str)> {
    let quote = text.chars().next().filter(|quote| "'\"".contains(*quote))?;
    let (inner, rest) = text[1..].split_once(quote)?;
    let known = |letter: char| letter.is_ascii_alphanumeric() || "<>|=_".contains(letter);
    inner.chars().all(known).then_some((inner, rest))
}

/// The numbers of a tuple without its brackets: of one number a comma follows.
fn tuple(text: &str) -> Option<Vec<u64>> {
    let text = text.trim();
    if text.is_empty() {
        return Some(Vec::new());
    }
    let (text, closed) = match text.strip_suffix(',') {
        Some(text) => (text, true),
        None => (text, false),
    };
    let numbers = text.split(',').map(str::trim);
    let numbers = numbers.map(|number| {
        let is_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| is_digits)
    });
    let numbers = numbers.collect::<Option<Vec<u64>>>()?;
    (closed || numbers.len() > 1).then_some(numbers)
}
