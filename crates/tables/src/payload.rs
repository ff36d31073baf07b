//! Payload: typed columns that one party sends to the other, row by row as bytes.
//!
//! ```text
//! row       = a bit for each column, the lowest first: whether there is a value | values
//! text      = length (7 bits a byte, the lowest first) | bytes          binary: the same
//! other     = 1 byte (boolean), 4 (date), 16 (decimal) or 8, little-endian
//! ```

use std::collections::HashSet;
use std::fmt::Write;
use std::sync::Arc;

use arrow_array::builder::{BinaryBuilder, BooleanBuilder, StringBuilder};
use arrow_array::types::*;
use arrow_array::{ArrayRef, ArrowPrimitiveType, Decimal128Array, PrimitiveArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use crate::cell::{Cell, is_field, nanos_of, plain_type, type_name};
use crate::error::Problem;

/// The maximum length in bytes of the payload of a row.
pub const LONGEST_PAYLOAD: usize = 1 << 20;

/// The maximum length of a line, and number of columns.
const LONGEST_LINE: usize = 64 << 10;
const MOST_COLUMNS: usize = 1024;

/// The most digits of a decimal.
const DIGITS: u8 = 38;

/// The names and types of payload columns.
///
/// The types are boolean, int64, uint64, float64, decimal, date, timestamp, time, text and binary;
/// narrower integers and floats widen, and columns of text files are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayloadSchema {
    columns: Vec<(String, Kind)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    Boolean,
    Int64,
    UInt64,
    Float64,
    Decimal(u8, i8),
    Date,
    Timestamp(TimeUnit, Option<Arc<str>>),
    Time(TimeUnit),
    Text,
    Binary,
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
    pub(crate) fn of<'f>(fields: impl Iterator<Item = &'f Field>) -> Result<Self, Problem> {
        let mut columns: Vec<(String, Kind)> = Vec::new();
        for field in fields {
            let name = field.name().clone();
            if columns.iter().any(|(earlier, _)| *earlier == name) {
                return Err(Problem::ValueTwice { name });
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
        let columns = self.columns.iter();
        columns.map(|(name, kind)| Field::new(name, kind.data_type(), true)).collect()
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
    /// payload. The bytes may come from the peer. The rows of one call should be bounded: their
    /// texts together may have at most 2^31 - 1 bytes a column.
    ///
    /// # Errors
    /// If a row is not a payload of this schema.
    pub fn decode<'b>(
        &self,
        rows: impl IntoIterator<Item = Option<&'b [u8]>>,
    ) -> Result<Vec<ArrayRef>, DamagedPayload> {
        let mut columns: Vec<Builder> =
            self.columns.iter().map(|(_, kind)| kind.builder()).collect();
        for row in rows {
            let Some(mut bytes) = row else {
                columns.iter_mut().for_each(Builder::null);
                continue;
            };
            if bytes.len() > LONGEST_PAYLOAD {
                return Err(DamagedPayload("a row is too long"));
            }
            let bits = take(&mut bytes, columns.len().div_ceil(8))?;
            let unused = (columns.len()..8 * bits.len()).any(|i| bits[i / 8] >> (i % 8) & 1 == 1);
            if unused {
                return Err(DamagedPayload("a row has more values than columns"));
            }
            for (i, (column, (_, kind))) in columns.iter_mut().zip(&self.columns).enumerate() {
                match bits[i / 8] >> (i % 8) & 1 {
                    0 => column.null(),
                    _ => column.decode(kind, &mut bytes)?,
                }
            }
            if !bytes.is_empty() {
                return Err(DamagedPayload("bytes follow a row"));
            }
        }
        let columns = columns.into_iter().zip(&self.columns);
        columns.map(|(column, (_, kind))| column.finish(kind)).collect()
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
        Some(match plain_type(field.data_type()) {
            D::Boolean => Self::Boolean,
            D::Int8 | D::Int16 | D::Int32 | D::Int64 => Self::Int64,
            D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => Self::UInt64,
            D::Float16 | D::Float32 | D::Float64 => Self::Float64,
            D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) if decimal(*p, *s) => {
                Self::Decimal(*p, *s)
            }
            D::Date32 | D::Date64 => Self::Date,
            D::Timestamp(unit, zone) => Self::Timestamp(*unit, zone.clone()),
            D::Time32(unit) | D::Time64(unit) => Self::Time(*unit),
            D::Utf8 | D::LargeUtf8 | D::Utf8View => Self::Text,
            D::Binary if is_field(field) => Self::Text,
            D::FixedSizeBinary(_) if type_name(field) == "interval" => return None,
            D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => Self::Binary,
            _ => return None,
        })
    }

    fn data_type(&self) -> DataType {
        match self {
            Self::Boolean => DataType::Boolean,
            Self::Int64 => DataType::Int64,
            Self::UInt64 => DataType::UInt64,
            Self::Float64 => DataType::Float64,
            Self::Decimal(precision, scale) => DataType::Decimal128(*precision, *scale),
            Self::Date => DataType::Date32,
            Self::Timestamp(unit, zone) => DataType::Timestamp(*unit, zone.clone()),
            Self::Time(unit @ (TimeUnit::Second | TimeUnit::Millisecond)) => {
                DataType::Time32(*unit)
            }
            Self::Time(unit) => DataType::Time64(*unit),
            Self::Text => DataType::Utf8,
            Self::Binary => DataType::Binary,
        }
    }

    fn write(&self, line: &mut String) {
        let unit = |unit: &TimeUnit| UNITS.iter().find(|(u, _)| u == unit).map_or("", |u| u.1);
        // Writing into memory does not fail.
        let _ = match self {
            Self::Boolean => write!(line, "boolean"),
            Self::Int64 => write!(line, "int64"),
            Self::UInt64 => write!(line, "uint64"),
            Self::Float64 => write!(line, "float64"),
            Self::Decimal(precision, scale) => write!(line, "decimal({precision},{scale})"),
            Self::Date => write!(line, "date"),
            Self::Timestamp(u, None) => write!(line, "timestamp[{}]", unit(u)),
            Self::Timestamp(u, Some(zone)) => {
                let _ = write!(line, "timestamp[{},", unit(u));
                write_quoted(zone, line);
                write!(line, "]")
            }
            Self::Time(u) => write!(line, "time[{}]", unit(u)),
            Self::Text => write!(line, "text"),
            Self::Binary => write!(line, "binary"),
        };
    }

    /// Reads a type from the front of `rest`.
    fn read(rest: &mut &str) -> Option<Self> {
        let simple = [
            ("boolean", Self::Boolean),
            ("int64", Self::Int64),
            ("uint64", Self::UInt64),
            ("float64", Self::Float64),
            ("date", Self::Date),
            ("text", Self::Text),
            ("binary", Self::Binary),
        ];
        for (name, kind) in simple {
            if let Some(behind) = rest.strip_prefix(name) {
                *rest = behind;
                return Some(kind);
            }
        }
        if let Some(behind) = rest.strip_prefix("decimal(") {
            let (digits, behind) = behind.split_once(')')?;
            *rest = behind;
            let (precision, scale) = digits.split_once(',')?;
            let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
            return decimal(precision, scale).then_some(Self::Decimal(precision, scale));
        }
        let (name, behind) = rest.split_once('[')?;
        let (unit, _) = behind.split_once([',', ']'])?;
        *rest = &behind[unit.len()..];
        let unit = UNITS.iter().find(|(_, name)| *name == unit)?.0;
        let zone = match rest.strip_prefix(',') {
            Some(behind) => {
                *rest = behind;
                Some(read_quoted(rest)?.into())
            }
            None => None,
        };
        *rest = rest.strip_prefix(']')?;
        match (name, zone) {
            ("timestamp", zone) => Some(Self::Timestamp(unit, zone)),
            ("time", None) => Some(Self::Time(unit)),
            _ => None,
        }
    }

    fn encode(&self, cell: Cell<'_>, out: &mut Vec<u8>) -> Result<(), &'static str> {
        const RANGE: &str = "is out of range";
        match (self, cell) {
            (Self::Boolean, Cell::Boolean(value)) => out.push(value.into()),
            (Self::Int64, Cell::Integer(value)) => {
                let value = i64::try_from(value).map_err(|_| RANGE)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            (Self::UInt64, Cell::Integer(value)) => {
                let value = u64::try_from(value).map_err(|_| RANGE)?;
                out.extend_from_slice(&value.to_le_bytes());
            }
            (Self::Float64, Cell::Half(value) | Cell::Float(value)) => {
                out.extend_from_slice(&f64::from(value).to_le_bytes());
            }
            (Self::Float64, Cell::Double(value)) => out.extend_from_slice(&value.to_le_bytes()),
            (Self::Decimal(precision, _), Cell::Decimal(value, _)) => {
                let value = i256::to_i128(value).filter(|value| has_digits(*value, *precision));
                out.extend_from_slice(&value.ok_or(RANGE)?.to_le_bytes());
            }
            (Self::Date, Cell::Date(days)) => {
                let days = i32::try_from(days).map_err(|_| RANGE)?;
                out.extend_from_slice(&days.to_le_bytes());
            }
            (Self::Timestamp(unit, _), Cell::Moment { nanos, .. }) => {
                let value = i64::try_from(nanos / i128::from(nanos_of(*unit)));
                out.extend_from_slice(&value.map_err(|_| RANGE)?.to_le_bytes());
            }
            (Self::Time(unit), Cell::Time(nanos)) => {
                let value = nanos / nanos_of(*unit);
                if !is_time(value, *unit) {
                    return Err(RANGE);
                }
                out.extend_from_slice(&value.to_le_bytes());
            }
            (Self::Text, Cell::Bytes(text)) => {
                std::str::from_utf8(text).map_err(|_| "is not UTF-8")?;
                write_bytes(text, out);
            }
            (Self::Binary, Cell::Bytes(bytes)) => write_bytes(bytes, out),
            _ => return Err("is of another type than its column"),
        }
        Ok(())
    }

    fn builder(&self) -> Builder {
        match self {
            Self::Boolean => Builder::Boolean(BooleanBuilder::new()),
            Self::Text => Builder::Text(StringBuilder::new()),
            Self::Binary => Builder::Binary(BinaryBuilder::new()),
            Self::Decimal(..) => Builder::Decimal(Vec::new()),
            _ => Builder::Number(Vec::new()),
        }
    }
}

fn decimal(precision: u8, scale: i8) -> bool {
    (1..=DIGITS).contains(&precision) && i16::from(scale).abs() <= i16::from(precision)
}

/// Whether a number has at most so many digits.
fn has_digits(value: i128, digits: u8) -> bool {
    value.unsigned_abs() < 10_u128.pow(digits.min(DIGITS).into())
}

/// Whether this is a time of day.
fn is_time(value: i64, unit: TimeUnit) -> bool {
    (0..86_400 * (1_000_000_000 / nanos_of(unit))).contains(&value)
}

/// A column of decoded values.
enum Builder {
    Boolean(BooleanBuilder),
    /// All types of 64 bits, and dates.
    Number(Vec<Option<i64>>),
    Decimal(Vec<Option<i128>>),
    Text(StringBuilder),
    Binary(BinaryBuilder),
}

impl Builder {
    fn null(&mut self) {
        match self {
            Self::Boolean(column) => column.append_null(),
            Self::Number(column) => column.push(None),
            Self::Decimal(column) => column.push(None),
            Self::Text(column) => column.append_null(),
            Self::Binary(column) => column.append_null(),
        }
    }

    /// Appends a value from the front of `bytes`.
    fn decode(&mut self, kind: &Kind, bytes: &mut &[u8]) -> Result<(), DamagedPayload> {
        const RANGE: DamagedPayload = DamagedPayload("a value is out of range");
        const FULL: DamagedPayload = DamagedPayload("a column has too many bytes");
        let fits = |so_far: usize, more: usize| so_far + more <= i32::MAX as usize;
        match self {
            Self::Boolean(column) => match take(bytes, 1)?[0] {
                value @ 0..=1 => column.append_value(value == 1),
                _ => return Err(RANGE),
            },
            Self::Number(column) => {
                let value = match kind {
                    Kind::Date => i32::from_le_bytes(array(bytes)?).into(),
                    _ => i64::from_le_bytes(array(bytes)?),
                };
                if let Kind::Time(unit) = kind
                    && !is_time(value, *unit)
                {
                    return Err(RANGE);
                }
                column.push(Some(value));
            }
            Self::Decimal(column) => {
                let value = i128::from_le_bytes(array(bytes)?);
                match kind {
                    Kind::Decimal(precision, _) if has_digits(value, *precision) => {}
                    _ => return Err(RANGE),
                }
                column.push(Some(value));
            }
            Self::Text(column) => {
                let text = std::str::from_utf8(read_bytes(bytes)?);
                let text = text.map_err(|_| DamagedPayload("a text is not UTF-8"))?;
                if !fits(column.values_slice().len(), text.len()) {
                    return Err(FULL);
                }
                column.append_value(text);
            }
            Self::Binary(column) => {
                let value = read_bytes(bytes)?;
                if !fits(column.values_slice().len(), value.len()) {
                    return Err(FULL);
                }
                column.append_value(value);
            }
        }
        Ok(())
    }

    fn finish(self, kind: &Kind) -> Result<ArrayRef, DamagedPayload> {
        let column = match self {
            Self::Boolean(mut column) => return Ok(Arc::new(column.finish())),
            Self::Text(mut column) => return Ok(Arc::new(column.finish())),
            Self::Binary(mut column) => return Ok(Arc::new(column.finish())),
            Self::Decimal(column) => {
                let column: Decimal128Array = column.into_iter().collect();
                return Ok(Arc::new(column.with_data_type(kind.data_type())));
            }
            Self::Number(column) => column,
        };
        use TimeUnit as U;
        Ok(match kind {
            Kind::UInt64 => numbers::<UInt64Type>(column, kind, |value| value as u64),
            Kind::Float64 => numbers::<Float64Type>(column, kind, |v| f64::from_bits(v as u64)),
            // Each of these was decoded from 32 bits, or is below 86,400,000.
            Kind::Date => numbers::<Date32Type>(column, kind, |value| value as i32),
            Kind::Time(U::Second) => numbers::<Time32SecondType>(column, kind, |v| v as i32),
            Kind::Time(U::Millisecond) => {
                numbers::<Time32MillisecondType>(column, kind, |value| value as i32)
            }
            Kind::Time(U::Microsecond) => numbers::<Time64MicrosecondType>(column, kind, |v| v),
            Kind::Time(U::Nanosecond) => numbers::<Time64NanosecondType>(column, kind, |v| v),
            Kind::Timestamp(U::Second, _) => numbers::<TimestampSecondType>(column, kind, |v| v),
            Kind::Timestamp(U::Millisecond, _) => {
                numbers::<TimestampMillisecondType>(column, kind, |value| value)
            }
            Kind::Timestamp(U::Microsecond, _) => {
                numbers::<TimestampMicrosecondType>(column, kind, |value| value)
            }
            Kind::Timestamp(U::Nanosecond, _) => {
                numbers::<TimestampNanosecondType>(column, kind, |value| value)
            }
            _ => numbers::<Int64Type>(column, kind, |value| value),
        })
    }
}

fn numbers<T: ArrowPrimitiveType>(
    column: Vec<Option<i64>>,
    kind: &Kind,
    convert: impl Fn(i64) -> T::Native,
) -> ArrayRef {
    let column = column.into_iter().map(|value| value.map(&convert));
    let column: PrimitiveArray<T> = column.collect::<Vec<_>>().into_iter().collect();
    Arc::new(column.with_data_type(kind.data_type()))
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8], DamagedPayload> {
    let (taken, rest) =
        bytes.split_at_checked(count).ok_or(DamagedPayload("a row is cut short"))?;
    *bytes = rest;
    Ok(taken)
}

fn array<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], DamagedPayload> {
    let mut array = [0; N];
    array.copy_from_slice(take(bytes, N)?);
    Ok(array)
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

fn read_bytes<'b>(bytes: &mut &'b [u8]) -> Result<&'b [u8], DamagedPayload> {
    let length = crate::varint::varint(bytes).and_then(|length| usize::try_from(length).ok());
    take(bytes, length.ok_or(DamagedPayload("a length cannot be read"))?)
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
