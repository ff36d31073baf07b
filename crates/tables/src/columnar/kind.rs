//! What a column of a Parquet file holds: as which key it is read, and its cells as text.

use std::fmt::Display;
use std::io::Write;

use chrono::{DateTime, NaiveTime};
use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;

use super::leaf::Value;
use crate::key::{Cell, KeyType, date_text};

/// The type of a column, by its physical type and what annotates it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Binary,
    /// An integer of so many bits.
    Integer {
        bits: u32,
        signed: bool,
    },
    Boolean,
    Date,
    Float,
    Double,
    HalfFloat,
    /// An integer divided by this power of ten.
    Decimal {
        scale: i32,
    },
    /// So many units a second since 1970-01-01, in UTC if `zoned`.
    Timestamp {
        units: i64,
        zoned: bool,
    },
    /// Nanoseconds of a Julian day.
    OldTimestamp,
    /// So many units a second since midnight.
    Time {
        units: i64,
    },
    Interval,
    /// Always null.
    Null,
    /// Of several cells a row.
    Nested(&'static str),
}

/// A cell that has no form as text: it is out of the range of its type.
pub(super) struct NoForm;

/// The most digits behind the point of a decimal: twice as many as 256 bits have digits, nearly.
const DIGITS: i32 = 127;

impl Kind {
    /// The type of a column of the file, which is a field of the root.
    pub(super) fn of(field: &Type) -> Self {
        use ConvertedType as C;
        use LogicalType as L;
        let info = field.get_basic_info();
        let (logical, converted) = (info.logical_type_ref(), info.converted_type());
        if field.is_group() {
            return Self::Nested(match (logical, converted) {
                (Some(L::List), _) | (_, C::LIST) => "list",
                (Some(L::Map), _) | (_, C::MAP | C::MAP_KEY_VALUE) => "map",
                _ => "struct",
            });
        }
        if info.has_repetition() && info.repetition() == Repetition::REPEATED {
            return Self::Nested("list");
        }
        if let Some(L::Unknown) = logical {
            return Self::Null;
        }
        let scale = match (field, logical) {
            (_, Some(L::Decimal(decimal))) => Some(decimal.scale),
            (Type::PrimitiveType { scale, .. }, None) if converted == C::DECIMAL => Some(*scale),
            _ => None,
        };
        let physical = field.get_physical_type();
        match (physical, scale) {
            (Physical::BOOLEAN, _) => Self::Boolean,
            (Physical::INT96, _) => Self::OldTimestamp,
            (Physical::FLOAT, _) => Self::Float,
            (Physical::DOUBLE, _) => Self::Double,
            (_, Some(scale)) => Self::Decimal { scale },
            (Physical::INT32, None) => Self::of_integer(32, logical, converted),
            (Physical::INT64, None) => Self::of_integer(64, logical, converted),
            (Physical::BYTE_ARRAY, None) => match (logical, converted) {
                (Some(L::String | L::Json), _) | (None, C::UTF8 | C::JSON) => Self::Text,
                _ => Self::Binary,
            },
            (Physical::FIXED_LEN_BYTE_ARRAY, None) => match (logical, converted) {
                (Some(L::Float16), _) => Self::HalfFloat,
                (None, C::INTERVAL) => Self::Interval,
                _ => Self::Binary,
            },
        }
    }

    fn of_integer(width: u32, logical: Option<&LogicalType>, converted: ConvertedType) -> Self {
        use ConvertedType as C;
        use LogicalType as L;
        let units = |unit: &TimeUnit| match unit {
            TimeUnit::MILLIS => 1_000,
            TimeUnit::MICROS => 1_000_000,
            TimeUnit::NANOS => 1_000_000_000,
        };
        let integer = |bits: u32, signed| Self::Integer {
            bits: bits.clamp(1, width),
            signed,
        };
        match (logical, converted) {
            (Some(L::Integer(int)), _) => {
                integer(u32::try_from(int.bit_width).unwrap_or(width), int.is_signed)
            }
            (Some(L::Date), _) | (None, C::DATE) => Self::Date,
            (Some(L::Time(time)), _) => Self::Time {
                units: units(&time.unit),
            },
            (Some(L::Timestamp(time)), _) => Self::Timestamp {
                units: units(&time.unit),
                zoned: time.is_adjusted_to_u_t_c,
            },
            (None, C::TIME_MILLIS) => Self::Time { units: 1_000 },
            (None, C::TIME_MICROS) => Self::Time { units: 1_000_000 },
            (None, C::TIMESTAMP_MILLIS) => Self::Timestamp {
                units: 1_000,
                zoned: true,
            },
            (None, C::TIMESTAMP_MICROS) => Self::Timestamp {
                units: 1_000_000,
                zoned: true,
            },
            (None, C::INT_8) => integer(8, true),
            (None, C::INT_16) => integer(16, true),
            (None, C::UINT_8) => integer(8, false),
            (None, C::UINT_16) => integer(16, false),
            (None, C::UINT_32) => integer(32, false),
            (None, C::UINT_64) => integer(64, false),
            _ => integer(width, true),
        }
    }

    /// Its name in messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Binary => "binary",
            Self::Integer { .. } => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
            Self::Float => "float",
            Self::Double => "double",
            Self::HalfFloat => "float16",
            Self::Decimal { .. } => "decimal",
            Self::Timestamp { .. } | Self::OldTimestamp => "timestamp",
            Self::Time { .. } => "time",
            Self::Interval => "interval",
            Self::Null => "null",
            Self::Nested(name) => name,
        }
    }

    /// The type it is read as where nothing else is asked for; none if it cannot be a key.
    pub(super) fn native(self) -> Option<KeyType> {
        match self {
            Self::Text => Some(KeyType::Text),
            Self::Binary => Some(KeyType::Binary),
            Self::Integer { .. } => Some(KeyType::Integer),
            Self::Boolean => Some(KeyType::Boolean),
            Self::Date => Some(KeyType::Date),
            _ => None,
        }
    }

    /// The cell of a key column, whose type has a [`native`](Self::native) one.
    pub(super) fn cell(self, value: Value<'_>) -> Cell<'_> {
        match (self, value) {
            (_, Value::Bytes(bytes)) => Cell::Bytes(bytes),
            (_, Value::Boolean(value)) => Cell::Boolean(value),
            (Self::Date, Value::Integer(days)) => Cell::Date(days),
            (Self::Integer { bits, signed }, Value::Integer(value)) => {
                Cell::Integer(in_width(value, bits, signed))
            }
            (_, Value::Integer(value)) => Cell::Integer(value.into()),
            (_, Value::Float(_) | Value::Double(_) | Value::Old(_)) => Cell::Bytes(b""),
        }
    }

    /// Appends a cell as text: binary in hexadecimal, dates and times in ISO 8601.
    pub(super) fn append_text(self, value: Value<'_>, out: &mut Vec<u8>) -> Result<(), NoForm> {
        match (self, value) {
            (Self::Null, _) => {}
            (Self::Text, Value::Bytes(text)) => out.extend_from_slice(text),
            (Self::HalfFloat, Value::Bytes(&[low, high])) => {
                append(out, half(u16::from_le_bytes([low, high])));
            }
            (Self::Interval, Value::Bytes(bytes)) => append_interval(bytes, out)?,
            (Self::Decimal { scale }, Value::Bytes(number)) => {
                append_decimal(number, scale, out)?;
            }
            (Self::Decimal { scale }, Value::Integer(number)) => {
                append_decimal(&number.to_be_bytes(), scale, out)?;
            }
            (_, Value::Bytes(bytes)) => {
                bytes
                    .iter()
                    .for_each(|b| append(out, format_args!("{b:02x}")));
            }
            (_, Value::Boolean(value)) => append(out, value),
            (_, Value::Float(value)) => append(out, ryu::Buffer::new().format(value)),
            (_, Value::Double(value)) => append(out, ryu::Buffer::new().format(value)),
            (_, Value::Old(time)) => {
                let nanos = i64::from(time.data()[1]) << 32 | i64::from(time.data()[0]);
                let seconds = i64::from(time.data()[2] as i32 - JULIAN_EPOCH) * 86_400;
                append_moment(seconds, nanos, 1_000_000_000, false, out)?;
            }
            (Self::Timestamp { units, zoned }, Value::Integer(value)) => {
                append_moment(0, value, units, zoned, out)?;
            }
            (Self::Time { units }, Value::Integer(value)) => {
                let (seconds, nanos) = split(value, units);
                let seconds = u32::try_from(seconds).map_err(|_| NoForm)?;
                let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanos);
                append(out, format_args!("{:?}", time.ok_or(NoForm)?));
            }
            (Self::Date, Value::Integer(days)) => {
                out.extend_from_slice(date_text(days).ok_or(NoForm)?.as_bytes());
            }
            (Self::Integer { bits, signed }, Value::Integer(value)) => {
                append(out, in_width(value, bits, signed));
            }
            (_, Value::Integer(value)) => append(out, value),
        }
        Ok(())
    }
}

/// The Julian day that 1970-01-01 is.
const JULIAN_EPOCH: i32 = 2_440_588;

fn append(out: &mut Vec<u8>, value: impl Display) {
    // Writing into memory does not fail.
    let _ = write!(out, "{value}");
}

/// The integer that the low `bits` of `value` stand for.
fn in_width(value: i64, bits: u32, signed: bool) -> i128 {
    let unused = 64 - bits;
    match signed {
        true => (value << unused >> unused).into(),
        false => (value as u64 & u64::MAX >> unused).into(),
    }
}

/// Seconds and nanoseconds out of so many units a second.
fn split(value: i64, units: i64) -> (i64, u32) {
    let nanos = value.rem_euclid(units) * (1_000_000_000 / units);
    (value.div_euclid(units), nanos as u32)
}

fn append_moment(
    base: i64,
    value: i64,
    units: i64,
    zoned: bool,
    out: &mut Vec<u8>,
) -> Result<(), NoForm> {
    let (seconds, nanos) = split(value, units);
    let seconds = seconds.checked_add(base).ok_or(NoForm)?;
    let moment = DateTime::from_timestamp(seconds, nanos).ok_or(NoForm)?;
    let zone = if zoned { "Z" } else { "" };
    append(out, format_args!("{:?}{zone}", moment.naive_utc()));
    Ok(())
}

/// The number that a float of 16 bits is.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    sign * match (exponent, bits & 0x3ff) {
        (31, 0) => f32::INFINITY,
        (31, _) => f32::NAN,
        (0, _) => fraction * 2f32.powi(-24),
        _ => (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}

/// The number of months, days and milliseconds, each 4 bytes.
fn append_interval(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), NoForm> {
    let &[a, b, c, d, e, f, g, h, i, j, k, l] = bytes else {
        return Err(NoForm);
    };
    let [months, days, millis] = [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_le_bytes);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    append(
        out,
        format_args!("P{months}M{days}DT{seconds}.{millis:03}S"),
    );
    Ok(())
}

/// An integer in two's complement, the highest byte first, divided by a power of ten.
fn append_decimal(number: &[u8], scale: i32, out: &mut Vec<u8>) -> Result<(), NoForm> {
    if number.len() > 32 || !(0..=DIGITS).contains(&scale) {
        return Err(NoForm);
    }
    let negative = number.first().is_some_and(|&byte| byte >= 0x80);
    let mut rest = number.to_vec();
    if negative {
        let mut carry = true;
        for byte in rest.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(carry.into());
        }
    }
    // The lowest digit first.
    let mut digits = Vec::new();
    while digits.len() <= scale as usize || rest.iter().any(|&byte| byte != 0) {
        let mut over = 0;
        for byte in &mut rest {
            over = over << 8 | u16::from(*byte);
            *byte = (over / 10) as u8;
            over %= 10;
        }
        digits.push(b'0' + over as u8);
    }
    if negative {
        out.push(b'-');
    }
    for (place, &digit) in digits.iter().enumerate().rev() {
        out.push(digit);
        if place == scale as usize && place > 0 {
            out.push(b'.');
        }
    }
    Ok(())
}

/// Whether the bytes of a leaf must be UTF-8.
pub(super) fn is_text(leaf: &Type) -> bool {
    let info = leaf.get_basic_info();
    matches!(
        (info.logical_type_ref(), info.converted_type()),
        (Some(LogicalType::String | LogicalType::Json), _)
            | (None, ConvertedType::UTF8 | ConvertedType::JSON)
    )
}

#[cfg(test)]
mod tests {
    use parquet::data_type::Int96;

    use super::*;

    fn text(kind: Kind, value: Value<'_>) -> Option<String> {
        let mut out = Vec::new();
        kind.append_text(value, &mut out).ok()?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn floats_have_their_shortest_digits() {
        for (value, shown) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (2.0, "2.0"),
            (0.1, "0.1"),
            (-12.5, "-12.5"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e16"),
            (1.25e-5, "0.0000125"),
            (1.25e-6, "1.25e-6"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e308"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(
                text(Kind::Double, Value::Double(value)).as_deref(),
                Some(shown)
            );
        }
        for (value, shown) in [
            (0.1, "0.1"),
            (1e12, "1000000000000.0"),
            (1e13, "1e13"),
            (1e-6, "0.000001"),
            (1e-7, "1e-7"),
        ] {
            assert_eq!(
                text(Kind::Float, Value::Float(value)).as_deref(),
                Some(shown)
            );
        }
        for (bits, shown) in [
            (0x3c00_u16, "1"),
            (0xc100, "-2.5"),
            (0x0001, "0.000000059604645"),
            (0x7bff, "65504"),
            (0x7c00, "inf"),
        ] {
            let bytes = bits.to_le_bytes();
            assert_eq!(
                text(Kind::HalfFloat, Value::Bytes(&bytes)).as_deref(),
                Some(shown)
            );
        }
    }

    #[test]
    fn decimals_have_their_point() {
        let shown = |number: i64, scale| text(Kind::Decimal { scale }, Value::Integer(number));
        assert_eq!(shown(12_345, 2).as_deref(), Some("123.45"));
        assert_eq!(shown(-5, 2).as_deref(), Some("-0.05"));
        assert_eq!(shown(0, 0).as_deref(), Some("0"));
        assert_eq!(shown(i64::MIN, 0).as_deref(), Some("-9223372036854775808"));
        assert_eq!(shown(7, 128), None);
        assert_eq!(shown(7, -1), None);
        let bytes = |number: &[u8], scale| text(Kind::Decimal { scale }, Value::Bytes(number));
        let wide = i128::MIN.to_be_bytes();
        let digits = "-1701411834604692317316873037158841057.28";
        assert_eq!(bytes(&wide, 2).as_deref(), Some(digits));
        assert_eq!(bytes(&[], 1).as_deref(), Some("0.0"));
        assert_eq!(bytes(&[0xff], 0).as_deref(), Some("-1"));
        assert_eq!(bytes(&[0x7f; 33], 0), None);
    }

    #[test]
    fn times_are_iso_8601() {
        let millis = |zoned| Kind::Timestamp { units: 1000, zoned };
        let shown = |kind, value| text(kind, Value::Integer(value));
        assert_eq!(
            shown(millis(true), -1).as_deref(),
            Some("1969-12-31T23:59:59.999Z")
        );
        assert_eq!(
            shown(millis(false), 60_000).as_deref(),
            Some("1970-01-01T00:01:00")
        );
        assert_eq!(shown(millis(false), i64::MAX), None);
        let nanos = Kind::Time {
            units: 1_000_000_000,
        };
        assert_eq!(shown(nanos, 1).as_deref(), Some("00:00:00.000000001"));
        assert_eq!(
            shown(nanos, 86_399_000_000_000).as_deref(),
            Some("23:59:59")
        );
        assert_eq!(shown(nanos, 86_400_000_000_000), None);
        assert_eq!(shown(nanos, -1), None);
        assert_eq!(shown(Kind::Date, 19_000).as_deref(), Some("2022-01-08"));
        assert_eq!(shown(Kind::Date, i32::MAX.into()), None);
        let old = |a, b, c| {
            let mut time = Int96::new();
            time.set_data(a, b, c);
            text(Kind::OldTimestamp, Value::Old(time))
        };
        let day = JULIAN_EPOCH as u32;
        assert_eq!(
            old(1, 0, day).as_deref(),
            Some("1970-01-01T00:00:00.000000001")
        );
        // 12 hours.
        assert_eq!(
            old(0x48a7_8000, 0x274a, day - 1).as_deref(),
            Some("1969-12-31T12:00:00")
        );
        assert_eq!(old(0, 0, i32::MAX as u32), None);
        let interval = [1, 0, 0, 0, 2, 0, 0, 0, 0xe8, 3, 0, 0];
        let shown = text(Kind::Interval, Value::Bytes(&interval));
        assert_eq!(shown.as_deref(), Some("P1M2DT1.000S"));
    }

    #[test]
    fn integers_have_their_width() {
        let shown =
            |bits, signed, value| text(Kind::Integer { bits, signed }, Value::Integer(value));
        assert_eq!(shown(32, false, -1).as_deref(), Some("4294967295"));
        assert_eq!(
            shown(64, false, -1).as_deref(),
            Some("18446744073709551615")
        );
        assert_eq!(
            shown(64, true, i64::MIN).as_deref(),
            Some("-9223372036854775808")
        );
        assert_eq!(shown(8, true, -128).as_deref(), Some("-128"));
    }
}
