//! Payload: typed columns that one party sends to the other, row by row as bytes.
//!
//! ```text
//! row       = a bit for each column, the lowest first: whether there is a value | values
//! text      = length (7 bits a byte, the lowest first) | bytes          binary: the same
//! other     = 1 byte (boolean), 4 (date), 16 or 32 (decimal) or 8, little-endian;
//!             a binary of fixed length that length
//! ```

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, FixedSizeBinaryBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, ArrowPrimitiveType, BooleanArray, PrimitiveArray, make_array};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::cell::{self, Cell, is_field, nanos_of, plain_type, type_name};
use crate::error::{Problem, Result};

/// The maximum length in bytes of the payload of a row.
pub const LONGEST_PAYLOAD: usize = 1 << 20;

/// The maximum length of a line, and number of columns.
const LONGEST_LINE: usize = 64 << 10;
const MOST_COLUMNS: usize = 1024;

/// The longest values of a fixed length. Longer ones have a length each: null takes as much memory.
const LONGEST_FIXED: i32 = 32;

/// The decimals of each width: their name, and the most digits.
const DECIMALS: [(&str, u8); 4] =
    [("decimal32", 9), ("decimal64", 18), ("decimal", 38), ("decimal256", 76)];

/// The types without parameters, and their names.
const SIMPLE: [(&str, DataType); 16] = [
    ("boolean", DataType::Boolean),
    ("int8", DataType::Int8),
    ("int16", DataType::Int16),
    ("int32", DataType::Int32),
    ("int64", DataType::Int64),
    ("uint8", DataType::UInt8),
    ("uint16", DataType::UInt16),
    ("uint32", DataType::UInt32),
    ("uint64", DataType::UInt64),
    ("float16", DataType::Float16),
    ("float32", DataType::Float32),
    ("float64", DataType::Float64),
    ("date", DataType::Date32),
    ("date64", DataType::Date64),
    ("text", DataType::Utf8),
    ("binary", DataType::Binary),
];

/// The names and types of payload columns.
///
/// The types are boolean, integers, floats and decimals of each width, date, timestamp, time, text,
/// binary and UUID. Columns of text files are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadSchema {
    columns: Vec<(String, Kind)>,
}

/// The type of a column: one of [`SIMPLE`], or a decimal, a timestamp, a time, or binary of a fixed
/// length.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kind {
    data: DataType,
    is_uuid: bool,
}

/// The reason why a row cannot be sent, and the column, counted from 0.
pub(crate) enum PayloadError {
    Value(usize, &'static str),
    TooLong,
}

impl PayloadError {
    pub(crate) fn problem(self, row: u64, name: impl Fn(usize) -> String) -> Problem {
        match self {
            Self::Value(value, reason) => Problem::Value { row, column: name(value), reason },
            Self::TooLong => Problem::ValueTooLong { row, limit: LONGEST_PAYLOAD as u64 },
        }
    }
}

impl PayloadSchema {
    /// The schema of these columns of a table.
    pub(crate) fn of<'f>(fields: impl Iterator<Item = &'f Field>) -> Result<Self> {
        let mut columns: Vec<(String, Kind)> = Vec::new();
        for field in fields {
            let name = field.name().clone();
            if columns.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Problem::NamedTwice { name, place: "payload" });
            }
            let kind = Kind::of(field).ok_or_else(|| Problem::UnsupportedValue {
                column: name.clone(),
                found: type_name(field).to_owned(),
            })?;
            columns.push((name, kind));
        }
        let schema = Self { columns };
        match schema.columns.len() <= MOST_COLUMNS && schema.line().len() <= LONGEST_LINE {
            true => Ok(schema),
            false => Err(Problem::TooManyValues),
        }
    }

    /// Names and types as one line of text, for the handshake.
    pub fn line(&self) -> String {
        let mut line = String::new();
        for (i, (name, kind)) in self.columns.iter().enumerate() {
            if i > 0 {
                line.push(',');
            }
            write_quoted(name, &mut line);
            line.push(':');
            kind.write(&mut line);
        }
        line
    }

    /// The schema of a line, which may come from the peer: at most 64 KiB and 1024 columns.
    ///
    /// # Errors
    /// If it is not such a line.
    pub fn parse(line: &str) -> Result<Self, DamagedPayload> {
        let wrong = DamagedPayload("its description cannot be read");
        if line.len() > LONGEST_LINE {
            return Err(DamagedPayload("its description is too long"));
        }
        let mut rest = line;
        let mut columns = Vec::new();
        let mut names = HashSet::new();
        loop {
            let name = read_quoted(&mut rest).ok_or(wrong)?;
            rest = rest.strip_prefix(':').ok_or(wrong)?;
            let kind = Kind::read(&mut rest).ok_or(wrong)?;
            if !names.insert(name.clone()) {
                return Err(DamagedPayload("two of its columns have the same name"));
            }
            columns.push((name, kind));
            match rest.strip_prefix(',') {
                Some(more) if columns.len() < MOST_COLUMNS => rest = more,
                None if rest.is_empty() => return Ok(Self { columns }),
                _ => return Err(wrong),
            }
        }
    }

    /// The columns, all nullable.
    pub fn fields(&self) -> Fields {
        let columns = self.columns.iter().map(|(name, kind)| {
            let field = Field::new(name, kind.data.clone(), true);
            if kind.is_uuid { cell::uuid(&field) } else { field }
        });
        columns.collect()
    }

    /// Appends a row to `out`; after an error, the appended bytes are invalid.
    pub(crate) fn encode<'c>(
        &self,
        cells: impl Iterator<Item = Option<Cell<'c>>>,
        out: &mut Vec<u8>,
    ) -> Result<(), PayloadError> {
        let start = out.len();
        out.resize(start + self.columns.len().div_ceil(8), 0);
        for (i, (cell, (_, kind))) in cells.zip(&self.columns).enumerate() {
            if let Some(cell) = cell {
                out[start + i / 8] |= 1 << (i % 8);
                kind.encode(cell, out).map_err(|reason| PayloadError::Value(i, reason))?;
            }
        }
        match out.len() - start <= LONGEST_PAYLOAD {
            true => Ok(()),
            false => Err(PayloadError::TooLong),
        }
    }

    /// The columns of these rows, in the order of [`fields`](Self::fields): null where there is no
    /// payload. The bytes may come from the peer: a value that is none of its column is null, and
    /// `refuse` gets its row and its column, counted from 0, and the reason. The rows of one call
    /// should be bounded: their texts together may have at most 2^31 - 1 bytes a column.
    pub fn decode<'b>(
        &self,
        rows: impl IntoIterator<Item = Option<&'b [u8]>>,
        refuse: &mut dyn FnMut(usize, usize, &'static str),
    ) -> Vec<ArrayRef> {
        let mut columns = vec![Vec::new(); self.columns.len()];
        for (i, row) in rows.into_iter().enumerate() {
            if let Some(row) = row
                && let Err((column, reason)) = self.split(row, &mut columns)
            {
                refuse(i, column, reason);
                // Where one value ends in the wrong place, none of them can be believed.
                columns.iter_mut().for_each(|column| column.truncate(i));
            }
            columns.iter_mut().for_each(|column| column.resize(i + 1, None));
        }
        let columns = columns.iter().zip(&self.columns).enumerate();
        let columns = columns.map(|(column, (values, (_, kind)))| {
            kind.column(values, &mut |row, reason| refuse(row, column, reason))
        });
        columns.collect()
    }

    /// Appends the bytes of each value of a row to its column.
    fn split<'b>(
        &self,
        mut row: &'b [u8],
        columns: &mut [Vec<Option<&'b [u8]>>],
    ) -> Result<(), (usize, &'static str)> {
        const SHORT: &str = "is cut short";
        let last = columns.len() - 1;
        let bits = take(&mut row, columns.len().div_ceil(8)).ok_or((0, SHORT))?;
        if (columns.len()..8 * bits.len()).any(|i| bits[i / 8] >> (i % 8) & 1 == 1) {
            return Err((last, "is followed by more values than there are columns"));
        }
        for (i, (column, (_, kind))) in columns.iter_mut().zip(&self.columns).enumerate() {
            column.push(match bits[i / 8] >> (i % 8) & 1 {
                0 => None,
                _ => Some(kind.take(&mut row).ok_or((i, SHORT))?),
            });
        }
        match row {
            [] => Ok(()),
            _ => Err((last, "is followed by other bytes")),
        }
    }
}

/// Bytes or a line that are not a payload or its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the payload is damaged: {0}")]
pub struct DamagedPayload(&'static str);

const UNITS: [(TimeUnit, &str); 4] = [
    (TimeUnit::Second, "s"),
    (TimeUnit::Millisecond, "ms"),
    (TimeUnit::Microsecond, "us"),
    (TimeUnit::Nanosecond, "ns"),
];

impl Kind {
    fn of(field: &Field) -> Option<Self> {
        use DataType as D;
        let data = match plain_type(field.data_type()) {
            D::LargeUtf8 | D::Utf8View => D::Utf8,
            D::Binary if is_field(field) => D::Utf8,
            D::FixedSizeBinary(_) if type_name(field) == "interval" => return None,
            D::LargeBinary | D::BinaryView => D::Binary,
            D::FixedSizeBinary(length) if !is_fixed(*length) => D::Binary,
            other => other.clone(),
        };
        let is_sent = match &data {
            D::Timestamp(..) | D::Time32(_) | D::Time64(_) | D::FixedSizeBinary(_) => true,
            _ if data.is_decimal() => is_decimal(&data),
            _ => SIMPLE.iter().any(|(_, simple)| *simple == data),
        };
        is_sent.then(|| Self { data, is_uuid: cell::is_uuid(field) })
    }

    fn write(&self, line: &mut String) {
        use DataType as D;
        let unit = |unit: &TimeUnit| UNITS.iter().find(|(u, _)| u == unit).map_or("", |u| u.1);
        // Writing into memory does not fail.
        let _ = match &self.data {
            D::Timestamp(u, None) => write!(line, "timestamp[{}]", unit(u)),
            D::Timestamp(u, Some(zone)) => {
                let _ = write!(line, "timestamp[{},", unit(u));
                write_quoted(zone, line);
                write!(line, "]")
            }
            D::Time32(u) | D::Time64(u) => write!(line, "time[{}]", unit(u)),
            D::FixedSizeBinary(_) if self.is_uuid => write!(line, "uuid"),
            D::FixedSizeBinary(length) => write!(line, "binary[{length}]"),
            simple => match (decimal(simple), SIMPLE.iter().find(|(_, kind)| kind == simple)) {
                (Some((place, digits, scale)), _) => {
                    write!(line, "{}({digits},{scale})", DECIMALS[place].0)
                }
                (None, found) => write!(line, "{}", found.map_or("", |(name, _)| name)),
            },
        };
    }

    /// Reads a type from the front of `rest`.
    fn read(rest: &mut &str) -> Option<Self> {
        use DataType as D;
        let plain = |data| Some(Self { data, is_uuid: false });
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        *rest = behind;
        if let Some(behind) = rest.strip_prefix('(') {
            let (digits, behind) = behind.split_once(')')?;
            *rest = behind;
            let (digits, scale) = digits.split_once(',')?;
            let (digits, scale) = (digits.parse().ok()?, scale.parse().ok()?);
            let data = match DECIMALS.iter().position(|(known, _)| *known == name)? {
                0 => D::Decimal32(digits, scale),
                1 => D::Decimal64(digits, scale),
                2 => D::Decimal128(digits, scale),
                _ => D::Decimal256(digits, scale),
            };
            return is_decimal(&data).then(|| plain(data)).flatten();
        }
        let Some(behind) = rest.strip_prefix('[') else {
            if name == "uuid" {
                return Some(Self { data: D::FixedSizeBinary(16), is_uuid: true });
            }
            let found = SIMPLE.into_iter().find(|(known, _)| *known == name);
            return found.and_then(|(_, data)| plain(data));
        };
        let (parameter, _) = behind.split_once([',', ']'])?;
        *rest = &behind[parameter.len()..];
        let zone = match rest.strip_prefix(',') {
            Some(behind) => {
                *rest = behind;
                Some(read_quoted(rest)?.into())
            }
            None => None,
        };
        *rest = rest.strip_prefix(']')?;
        let unit = UNITS.iter().find(|(_, name)| *name == parameter).map(|(unit, _)| *unit);
        match (name, unit, zone) {
            ("timestamp", Some(unit), zone) => plain(D::Timestamp(unit, zone)),
            ("time", Some(unit @ (TimeUnit::Second | TimeUnit::Millisecond)), None) => {
                plain(D::Time32(unit))
            }
            ("time", Some(unit), None) => plain(D::Time64(unit)),
            ("binary", None, None) => {
                let length = parameter.parse().ok().filter(|length| is_fixed(*length))?;
                plain(D::FixedSizeBinary(length))
            }
            _ => None,
        }
    }

    fn encode(&self, cell: Cell<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
        use DataType as D;
        match (&self.data, cell) {
            (D::Boolean, Cell::Boolean(value)) => out.push(value.into()),
            (data, Cell::Integer(value)) if data.is_signed_integer() => {
                let value = i64::try_from(value).map_err(|_| RANGE)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            (data, Cell::Integer(value)) if data.is_unsigned_integer() => {
                let value = u64::try_from(value).map_err(|_| RANGE)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            (data, Cell::Half(value) | Cell::Float(value)) if data.is_floating() => {
                out.extend_from_slice(&f64::from(value).to_le_bytes());
            }
            (D::Float64, Cell::Double(value)) => out.extend_from_slice(&value.to_le_bytes()),
            (data, Cell::Decimal(value, _)) if has_digits(value, data) => {
                // The lowest bytes: the others are those of the sign.
                out.extend_from_slice(&value.to_le_bytes()[..self.width().unwrap_or(32)]);
            }
            (D::Date32, Cell::Date(days)) => {
                let days = i32::try_from(days).map_err(|_| RANGE)?;
                out.extend_from_slice(&days.to_le_bytes());
            }
            (D::Date64, Cell::Date64(millis)) => out.extend_from_slice(&millis.to_le_bytes()),
            (D::Timestamp(unit, _), Cell::Moment { nanos, .. }) => {
                let value = i64::try_from(nanos / i128::from(nanos_of(*unit)));
                out.extend_from_slice(&value.map_err(|_| RANGE)?.to_le_bytes());
            }
            (D::Time32(unit) | D::Time64(unit), Cell::Time(nanos)) => {
                let value = nanos / nanos_of(*unit);
                if !is_time(value, *unit) {
                    return Err(RANGE);
                }
                out.extend_from_slice(&value.to_le_bytes());
            }
            (D::Utf8, Cell::Bytes(text)) => {
                std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
                write_bytes(text, out);
            }
            (D::Binary, Cell::Bytes(bytes)) => write_bytes(bytes, out),
            (D::FixedSizeBinary(_), Cell::Bytes(bytes) | Cell::Uuid(bytes)) => {
                out.extend_from_slice(bytes)
            }
            (_, Cell::Decimal(..)) => return Err(RANGE),
            _ => return Err("is of another type than its column"),
        }
        Ok(())
    }

    /// The bytes of a value; none of a text, which has its length before it.
    fn width(&self) -> Option<usize> {
        use DataType as D;
        Some(match &self.data {
            D::Boolean => 1,
            D::Date32 => 4,
            D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) => 16,
            D::Decimal256(..) => 32,
            D::FixedSizeBinary(length) => usize::try_from(*length).unwrap_or(0),
            D::Utf8 | D::Binary => return None,
            _ => 8,
        })
    }

    /// The bytes of a value at the front of a row.
    fn take<'b>(&self, row: &mut &'b [u8]) -> Option<&'b [u8]> {
        let width = match self.width() {
            Some(width) => width,
            None => usize::try_from(crate::varint::varint(row)?).ok()?,
        };
        take(row, width)
    }

    /// The column of these values; `refuse` gets the row of each that is none, and why.
    fn column(
        &self,
        values: &[Option<&[u8]>],
        refuse: &mut dyn FnMut(usize, &'static str),
    ) -> ArrayRef {
        use DataType as D;
        let int = |bytes: &[u8]| Some(i64::from_le_bytes(bytes.try_into().ok()?));
        let float = |bytes: &[u8]| Some(f64::from_le_bytes(bytes.try_into().ok()?));
        let time = |bytes: &[u8], unit| int(bytes).filter(|value| is_time(*value, unit));
        let decimal = |bytes: &[u8]| {
            let sign = bytes.last().map_or(0, |last| if last >> 7 == 1 { 0xff } else { 0 });
            let mut whole = [sign; 32];
            whole[..bytes.len()].copy_from_slice(bytes);
            Some(i256::from_le_bytes(whole)).filter(|value| has_digits(*value, &self.data))
        };
        macro_rules! numbers {
            ($kind:ty, $read:expr) => {
                numbers::<$kind>(values, &self.data, refuse, $read)
            };
        }
        match &self.data {
            D::Boolean => {
                let read = |(row, value): (usize, &Option<&[u8]>)| match value {
                    Some([value @ 0..=1]) => Some(*value == 1),
                    Some(_) => {
                        refuse(row, RANGE);
                        None
                    }
                    None => None,
                };
                Arc::new(values.iter().enumerate().map(read).collect::<BooleanArray>())
            }
            D::Int8 => numbers!(Int8Type, |b| int(b)?.try_into().ok()),
            D::Int16 => numbers!(Int16Type, |b| int(b)?.try_into().ok()),
            D::Int32 => numbers!(Int32Type, |b| int(b)?.try_into().ok()),
            D::UInt8 => numbers!(UInt8Type, |b| int(b)?.try_into().ok()),
            D::UInt16 => numbers!(UInt16Type, |b| int(b)?.try_into().ok()),
            D::UInt32 => numbers!(UInt32Type, |b| int(b)?.try_into().ok()),
            D::Float16 => numbers!(Float16Type, |b| float(b).map(NativeHalf::from_f64)),
            D::Float32 => numbers!(Float32Type, |b| float(b).map(|value| value as f32)),
            D::Float64 => numbers!(Float64Type, float),
            D::Decimal32(..) => numbers!(Int32Type, |b| decimal(b)?.to_i128()?.try_into().ok()),
            D::Decimal64(..) => numbers!(Int64Type, |b| decimal(b)?.to_i128()?.try_into().ok()),
            D::Decimal128(..) => numbers!(Decimal128Type, |b| decimal(b)?.to_i128()),
            D::Decimal256(..) => numbers!(Decimal256Type, decimal),
            D::Date32 => numbers!(Int32Type, |b| Some(i32::from_le_bytes(b.try_into().ok()?))),
            // Below 2^31: a day has 86,400,000 milliseconds.
            D::Time32(unit) => numbers!(Int32Type, |b| time(b, *unit).map(|value| value as i32)),
            D::Time64(unit) => numbers!(Int64Type, |b| time(b, *unit)),
            D::Utf8 => {
                let mut column = StringBuilder::new();
                for (row, value) in values.iter().enumerate() {
                    let text = value.and_then(|value| std::str::from_utf8(value).ok());
                    if value.is_some() && text.is_none() {
                        refuse(row, "is not UTF-8");
                    }
                    column.append_option(text);
                }
                Arc::new(column.finish())
            }
            D::FixedSizeBinary(length) => {
                let mut column = FixedSizeBinaryBuilder::new(*length);
                for value in values {
                    match value.map(|value| column.append_value(value)) {
                        Some(Ok(())) => {}
                        _ => column.append_null(),
                    }
                }
                Arc::new(column.finish())
            }
            D::Binary => {
                let mut column = BinaryBuilder::new();
                values.iter().for_each(|value| column.append_option(*value));
                Arc::new(column.finish())
            }
            // Also 64 bits without a sign, timestamps, and dates in milliseconds.
            _ => numbers!(Int64Type, int),
        }
    }
}

type NativeHalf = <Float16Type as ArrowPrimitiveType>::Native;

/// The reason for a number that its column cannot have.
const RANGE: &str = "is out of range";

/// Whether values of so many bytes are in a column of fixed length.
fn is_fixed(length: i32) -> bool {
    (1..=LONGEST_FIXED).contains(&length)
}

/// The place in [`DECIMALS`], the digits and the scale of a type of decimals.
fn decimal(data: &DataType) -> Option<(usize, u8, i8)> {
    Some(match *data {
        DataType::Decimal32(digits, scale) => (0, digits, scale),
        DataType::Decimal64(digits, scale) => (1, digits, scale),
        DataType::Decimal128(digits, scale) => (2, digits, scale),
        DataType::Decimal256(digits, scale) => (3, digits, scale),
        _ => return None,
    })
}

/// Whether this is a type of decimals with as many digits as its width holds.
fn is_decimal(data: &DataType) -> bool {
    decimal(data).is_some_and(|(place, digits, scale)| {
        let scale_fits = i16::from(scale).abs() <= i16::from(digits);
        (1..=DECIMALS[place].1).contains(&digits) && scale_fits
    })
}

/// Whether a number has at most as many digits as this type of decimals.
fn has_digits(value: i256, data: &DataType) -> bool {
    let digits = decimal(data).map_or(0, |(_, digits, _)| digits);
    let limit = i256::from_i128(10).wrapping_pow(digits.into());
    -limit < value && value < limit
}

/// Whether this is a time of day, the end of the day included.
fn is_time(value: i64, unit: TimeUnit) -> bool {
    (0..=86_400 * (1_000_000_000 / nanos_of(unit))).contains(&value)
}

/// A column of `data`, which has the width of `T`.
fn numbers<T: ArrowPrimitiveType>(
    values: &[Option<&[u8]>],
    data: &DataType,
    refuse: &mut dyn FnMut(usize, &'static str),
    read: impl Fn(&[u8]) -> Option<T::Native>,
) -> ArrayRef {
    let numbers = values.iter().enumerate().map(|(row, value)| {
        let bytes = (*value)?;
        let number = read(bytes);
        if number.is_none() {
            refuse(row, RANGE);
        }
        number
    });
    let numbers = numbers.collect::<PrimitiveArray<T>>().into_data();
    make_array(
        numbers.into_builder().data_type(data.clone()).build().expect("the width is that of T"),
    )
}

/// The first bytes of `bytes`, which are then behind them.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

fn write_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut length = bytes.len();
    while length >= 0x80 {
        out.push(length as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(bytes);
}

/// Appends a text in double quotes, on one line.
fn write_quoted(text: &str, line: &mut String) {
    line.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => line.extend(['\\', c]),
            c if c.is_control() => line.extend(c.escape_unicode()),
            c => line.push(c),
        }
    }
    line.push('"');
}

/// Reads such a text from the front of `rest`.
fn read_quoted(rest: &mut &str) -> Option<String> {
    let mut text = String::new();
    let mut chars = rest.strip_prefix('"')?.chars();
    loop {
        match chars.next()? {
            '"' => break,
            '\\' => match chars.next()? {
                c @ ('"' | '\\') => text.push(c),
                'u' => {
                    let (digits, behind) = chars.as_str().strip_prefix('{')?.split_once('}')?;
                    text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                    chars = behind.chars();
                }
                _ => return None,
            },
            c => text.push(c),
        }
    }
    *rest = chars.as_str();
    Some(text)
}
