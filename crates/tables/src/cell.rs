//! Cells of Arrow columns, and their text.

use std::collections::HashMap;
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray};
use arrow_buffer::i256;
use arrow_schema::{DataType, Field, TimeUnit};
use chrono::{Datelike, NaiveDate, NaiveTime};

use crate::error::{Problem, Result};
use crate::key::{EPOCH, KeyType};

/// The entry of the metadata of a column that says what its bytes are.
const NOTE: &str = "volery";

/// The kinds of bytes that no type of Arrow is for.
const FIELD: &str = "field";
const INTERVAL: &str = "interval";
const UUID: &str = "uuid";

/// The entry of the metadata of a column that names a type beyond those of Arrow, and the one of
/// UUIDs.
const EXTENSION: [&str; 2] = ["ARROW:extension:name", "arrow.uuid"];

/// Whether this is a column of a text file: binary, and text if it is UTF-8.
pub fn is_field(column: &Field) -> bool {
    column.metadata().get(NOTE).is_some_and(|note| note == FIELD)
}

/// A column of a text file.
pub(crate) fn field(name: &str) -> Field {
    noted(Field::new(name, DataType::Binary, false), FIELD)
}

/// A column of intervals, each of 12 bytes: months, days and milliseconds.
#[cfg(feature = "columnar")]
pub(crate) fn interval(column: &Field) -> Field {
    noted(column.clone(), INTERVAL)
}

/// A column of UUIDs, each of 16 bytes.
pub(crate) fn uuid(column: &Field) -> Field {
    noted(column.clone(), UUID)
}

/// Whether this is a column of UUIDs, by the note of [`uuid`] or as Arrow names it.
pub(crate) fn is_uuid(column: &Field) -> bool {
    let has = |name, value| column.metadata().get(name).is_some_and(|found| found == value);
    *column.data_type() == DataType::FixedSizeBinary(16)
        && (has(NOTE, UUID) || has(EXTENSION[0], EXTENSION[1]))
}

/// A column of UUIDs as Arrow names it in a file.
pub(crate) fn as_extension(mut column: Field) -> Field {
    let [name, value] = EXTENSION.map(str::to_owned);
    column.metadata_mut().insert(name, value);
    column
}

fn noted(column: Field, note: &str) -> Field {
    let metadata = HashMap::from([(NOTE.to_owned(), note.to_owned())]);
    column.with_metadata(metadata)
}

/// The column without the note of [`field`], [`interval`] and [`uuid`].
pub(crate) fn without_note(column: &Field) -> Field {
    let mut metadata = column.metadata().clone();
    metadata.remove(NOTE);
    column.clone().with_metadata(metadata)
}

/// A cell that is not null.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    /// A string of characters, or bytes that are read as one.
    Bytes(&'a [u8]),
    /// 16 bytes.
    Uuid(&'a [u8]),
    Integer(i128),
    Boolean(bool),
    /// Days since 1970-01-01.
    Date(i64),
    /// Milliseconds since 1970-01-01: a date that may have a time of day.
    Date64(i64),
    /// Nanoseconds since 1970-01-01, in UTC if `zoned`.
    Moment {
        nanos: i128,
        zoned: bool,
    },
    /// Nanoseconds since midnight.
    Time(i64),
    /// An integer divided by a power of ten.
    Decimal(i256, i8),
    /// A float of 16 bits.
    Half(f32),
    Float(f32),
    Double(f64),
    /// Months, days and milliseconds, 4 bytes each.
    Interval(&'a [u8]),
}

/// A column without a dictionary; the same one if it has none.
pub(crate) fn plain(array: &ArrayRef) -> Result<ArrayRef, arrow_schema::ArrowError> {
    match array.as_any_dictionary_opt() {
        Some(dictionary) => arrow_select::take::take(dictionary.values(), dictionary.keys(), None),
        None => Ok(Arc::clone(array)),
    }
}

/// The type of a column without a dictionary.
pub(crate) fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, values) => values,
        other => other,
    }
}

/// The name of the type of a column in messages.
pub(crate) fn type_name(column: &Field) -> &'static str {
    use DataType as D;
    if column.metadata().get(NOTE).is_some_and(|note| note == INTERVAL) {
        return "interval";
    }
    match plain_type(column.data_type()) {
        D::Utf8 | D::LargeUtf8 | D::Utf8View => "string",
        D::Binary | D::LargeBinary | D::BinaryView | D::FixedSizeBinary(_) => "binary",
        D::Int8 | D::Int16 | D::Int32 | D::Int64 => "integer",
        D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => "integer",
        D::Boolean => "boolean",
        D::Date32 | D::Date64 => "date",
        D::Float16 => "float16",
        D::Float32 => "float",
        D::Float64 => "double",
        D::Decimal32(..) | D::Decimal64(..) | D::Decimal128(..) | D::Decimal256(..) => "decimal",
        D::Timestamp(..) => "timestamp",
        D::Time32(_) | D::Time64(_) => "time",
        D::Interval(_) => "interval",
        D::Duration(_) => "duration",
        D::Null => "null",
        D::Struct(_) => "struct",
        D::Map(..) => "map",
        D::Union(..) => "union",
        D::RunEndEncoded(..) => "run-end encoded",
        _ => "list",
    }
}

/// The type as which a key column is read where none is named; none if it cannot be a key so.
pub(crate) fn key_type(column: &Field) -> Option<KeyType> {
    use DataType as D;
    Some(match (type_name(column), plain_type(column.data_type())) {
        ("string", _) => KeyType::Text,
        ("binary", _) if is_field(column) => KeyType::Text,
        ("binary", _) if is_uuid(column) => KeyType::Uuid,
        ("binary", _) => KeyType::Binary,
        ("integer", _) => KeyType::Integer,
        ("boolean", _) => KeyType::Boolean,
        ("date", _) => KeyType::Date,
        (_, D::Timestamp(_, Some(_))) => KeyType::Timestamp,
        (_, D::Timestamp(_, None)) => KeyType::Datetime,
        (
            _,
            D::Decimal32(_, scale)
            | D::Decimal64(_, scale)
            | D::Decimal128(_, scale)
            | D::Decimal256(_, scale),
        ) => match scale {
            ..=0 => KeyType::Integer,
            _ => KeyType::Decimal,
        },
        _ => return None,
    })
}

/// Checks that the cells of a column have a form as text.
pub(crate) fn check_text(column: &Field) -> Result<()> {
    match type_name(column) {
        found @ ("list" | "struct" | "map" | "union" | "run-end encoded" | "duration") => {
            Err(no_text(column.name(), found))
        }
        "interval" if *column.data_type() != DataType::FixedSizeBinary(12) => {
            Err(no_text(column.name(), "interval"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn no_text(column: &str, found: &str) -> Problem {
    Problem::NoText { column: column.to_owned(), found: found.to_owned() }
}

/// Row `row` of a column that passed [`check_text`] and has no dictionary; none if it is null.
///
/// # Panics
/// If there is no row `row`.
pub(crate) fn cell<'a>(column: &Field, array: &'a dyn Array, row: usize) -> Option<Cell<'a>> {
    use DataType as D;
    if array.is_null(row) {
        return None;
    }
    macro_rules! value {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    Some(match array.data_type() {
        D::Utf8 => Cell::Bytes(array.as_string::<i32>().value(row).as_bytes()),
        D::LargeUtf8 => Cell::Bytes(array.as_string::<i64>().value(row).as_bytes()),
        D::Utf8View => Cell::Bytes(array.as_string_view().value(row).as_bytes()),
        D::Binary => Cell::Bytes(array.as_binary::<i32>().value(row)),
        D::LargeBinary => Cell::Bytes(array.as_binary::<i64>().value(row)),
        D::BinaryView => Cell::Bytes(array.as_binary_view().value(row)),
        D::FixedSizeBinary(_) => {
            let array: &FixedSizeBinaryArray = array.as_fixed_size_binary();
            match type_name(column) {
                "interval" => Cell::Interval(array.value(row)),
                _ if is_uuid(column) => Cell::Uuid(array.value(row)),
                _ => Cell::Bytes(array.value(row)),
            }
        }
        D::Int8 => Cell::Integer(value!(Int8Type).into()),
        D::Int16 => Cell::Integer(value!(Int16Type).into()),
        D::Int32 => Cell::Integer(value!(Int32Type).into()),
        D::Int64 => Cell::Integer(value!(Int64Type).into()),
        D::UInt8 => Cell::Integer(value!(UInt8Type).into()),
        D::UInt16 => Cell::Integer(value!(UInt16Type).into()),
        D::UInt32 => Cell::Integer(value!(UInt32Type).into()),
        D::UInt64 => Cell::Integer(value!(UInt64Type).into()),
        D::Boolean => Cell::Boolean(array.as_boolean().value(row)),
        D::Date32 => Cell::Date(value!(Date32Type).into()),
        D::Date64 => Cell::Date64(value!(Date64Type)),
        D::Float16 => Cell::Half(value!(Float16Type).to_f32()),
        D::Float32 => Cell::Float(value!(Float32Type)),
        D::Float64 => Cell::Double(value!(Float64Type)),
        D::Decimal32(_, scale) => decimal(value!(Decimal32Type), *scale),
        D::Decimal64(_, scale) => decimal(value!(Decimal64Type), *scale),
        D::Decimal128(_, scale) => decimal(value!(Decimal128Type), *scale),
        D::Decimal256(_, scale) => Cell::Decimal(value!(Decimal256Type), *scale),
        D::Timestamp(unit, zone) => {
            let value = match unit {
                TimeUnit::Second => value!(TimestampSecondType),
                TimeUnit::Millisecond => value!(TimestampMillisecondType),
                TimeUnit::Microsecond => value!(TimestampMicrosecondType),
                TimeUnit::Nanosecond => value!(TimestampNanosecondType),
            };
            Cell::Moment {
                nanos: i128::from(value) * i128::from(nanos_of(*unit)),
                zoned: zone.is_some(),
            }
        }
        D::Time32(TimeUnit::Second) => time(value!(Time32SecondType), TimeUnit::Second),
        D::Time32(_) => time(value!(Time32MillisecondType), TimeUnit::Millisecond),
        D::Time64(TimeUnit::Microsecond) => {
            time(value!(Time64MicrosecondType), TimeUnit::Microsecond)
        }
        D::Time64(_) => time(value!(Time64NanosecondType), TimeUnit::Nanosecond),
        // Null, and what `check_text` refuses.
        _ => return None,
    })
}

fn decimal(value: impl Into<i128>, scale: i8) -> Cell<'static> {
    Cell::Decimal(i256::from_i128(value.into()), scale)
}

/// Nanoseconds of a unit.
pub(crate) fn nanos_of(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Second => 1_000_000_000,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    }
}

/// A time of day; one that is out of range stays so.
fn time(value: impl Into<i64>, unit: TimeUnit) -> Cell<'static> {
    Cell::Time(value.into().saturating_mul(nanos_of(unit)))
}

/// The day of a number of milliseconds.
pub(crate) fn day_of(millis: i64) -> i64 {
    millis.div_euclid(86_400_000)
}

/// A cell that has no form as text: it is out of the range of its type.
pub(crate) struct NoForm;

/// Appends a cell as text: strings as they are, dates and times in ISO 8601, a UUID with hyphens.
pub(crate) fn append_text(cell: Cell<'_>, out: &mut Vec<u8>) -> Result<(), NoForm> {
    match cell {
        Cell::Bytes(text) => out.extend_from_slice(text),
        Cell::Uuid(bytes) => {
            for (i, byte) in bytes.iter().enumerate() {
                let hyphen = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
                write(out, format_args!("{hyphen}{byte:02x}"));
            }
        }
        Cell::Integer(value) => write(out, value),
        Cell::Boolean(value) => write(out, value),
        Cell::Date(days) => match infinity(days.into(), i32::MAX.into(), &[1]) {
            Some(infinity) => write(out, infinity),
            None => append_date(days, out),
        },
        Cell::Date64(millis) => append_text(Cell::Date(day_of(millis)), out)?,
        Cell::Moment { nanos, zoned } => {
            const UNITS: [i128; 3] = [1_000, 1_000_000, 1_000_000_000];
            if let Some(infinity) = infinity(nanos, i64::MAX.into(), &UNITS) {
                write(out, infinity);
                return Ok(());
            }
            const DAY: i128 = 86_400_000_000_000;
            append_date(i64::try_from(nanos.div_euclid(DAY)).map_err(|_| NoForm)?, out);
            out.push(b'T');
            append_time(nanos.rem_euclid(DAY) as i64, out)?;
            if zoned {
                out.push(b'Z');
            }
        }
        Cell::Time(nanos) => append_time(nanos, out)?,
        Cell::Decimal(value, scale) => append_decimal(value, scale, out),
        Cell::Half(value) => write(out, value),
        Cell::Float(value) => write(out, ryu::Buffer::new().format(value)),
        Cell::Double(value) => write(out, ryu::Buffer::new().format(value)),
        Cell::Interval(bytes) => append_interval(bytes, out)?,
    }
    Ok(())
}

/// Appends bytes in hexadecimal.
pub(crate) fn append_hex(bytes: &[u8], out: &mut Vec<u8>) {
    bytes.iter().for_each(|b| write(out, format_args!("{b:02x}")));
}

fn write(out: &mut Vec<u8>, value: impl Display) {
    // Writing into memory does not fail.
    let _ = write!(out, "{value}");
}

/// The word that databases write for the last and the first integer as a date or a time; the value
/// is one of these integers times one of `units`. For the first one PostgreSQL has the lowest
/// integer, DuckDB the one above.
fn infinity(value: i128, last: i128, units: &[i128]) -> Option<&'static str> {
    let is = |integer: i128| units.iter().any(|unit| value == integer * unit);
    match () {
        () if is(last) => Some("infinity"),
        () if is(-last) || is(-last - 1) => Some("-infinity"),
        () => None,
    }
}

/// Appends the day so many days after 1970-01-01. Years beyond 9999 have a sign.
fn append_date(days: i64, out: &mut Vec<u8>) {
    // The calendar repeats after this, and the library's ends after 262,000 years.
    const DAYS: i64 = 146_097;
    let day = i32::try_from(days.rem_euclid(DAYS)).unwrap_or(0) + EPOCH;
    let Some(day) = NaiveDate::from_num_days_from_ce_opt(day) else {
        return;
    };
    let year = i64::from(day.year()) + 400 * days.div_euclid(DAYS);
    match year {
        0..=9999 => write(out, format_args!("{year:04}{}", day.format("-%m-%d"))),
        _ => write(out, format_args!("{year:+05}{}", day.format("-%m-%d"))),
    }
}

/// Appends a time of day, which may be the end of the day.
fn append_time(nanos: i64, out: &mut Vec<u8>) -> Result<(), NoForm> {
    if nanos == 86_400_000_000_000 {
        write(out, "24:00:00");
        return Ok(());
    }
    let seconds = u32::try_from(nanos.div_euclid(1_000_000_000)).map_err(|_| NoForm)?;
    let nanos = nanos.rem_euclid(1_000_000_000) as u32;
    let time = NaiveTime::from_num_seconds_from_midnight_opt(seconds, nanos);
    write(out, format_args!("{:?}", time.ok_or(NoForm)?));
    Ok(())
}

/// Appends an integer divided by a power of ten, with as many digits behind the point.
pub(crate) fn append_decimal(value: i256, scale: i8, out: &mut Vec<u8>) {
    let digits = value.to_string();
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits.as_str()),
    };
    out.extend_from_slice(sign.as_bytes());
    match usize::try_from(scale) {
        Ok(0) => out.extend_from_slice(digits.as_bytes()),
        Ok(scale) => {
            let digits = format!("{digits:0>width$}", width = scale + 1);
            let (units, fraction) = digits.split_at(digits.len() - scale);
            write(out, format_args!("{units}.{fraction}"));
        }
        Err(_) => {
            let zeros = match digits {
                "0" => 0,
                _ => usize::from(scale.unsigned_abs()),
            };
            write(out, format_args!("{digits}{:0<zeros$}", ""));
        }
    }
}

/// The number of months, days and milliseconds, each 4 bytes.
fn append_interval(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), NoForm> {
    let &[a, b, c, d, e, f, g, h, i, j, k, l] = bytes else {
        return Err(NoForm);
    };
    let [months, days, millis] = [[a, b, c, d], [e, f, g, h], [i, j, k, l]].map(u32::from_le_bytes);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    write(out, format_args!("P{months}M{days}DT{seconds}.{millis:03}S"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cell: Cell<'_>) -> Option<String> {
        let mut out = Vec::new();
        append_text(cell, &mut out).ok()?;
        Some(String::from_utf8_lossy(&out).into_owned())
    }

    #[test]
    fn floats_have_their_shortest_digits() {
        for (value, shown) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
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
            assert_eq!(text(Cell::Double(value)).as_deref(), Some(shown));
        }
        for (value, shown) in [(0.1, "0.1"), (1e12, "1000000000000.0"), (1e-7, "1e-7")] {
            assert_eq!(text(Cell::Float(value)).as_deref(), Some(shown));
        }
        assert_eq!(text(Cell::Half(-2.5)).as_deref(), Some("-2.5"));
        assert_eq!(text(Cell::Half(1.0)).as_deref(), Some("1"));
    }

    #[test]
    fn decimals_have_their_point() {
        let shown = |number, scale| text(Cell::Decimal(i256::from_i128(number), scale));
        assert_eq!(shown(12_345, 2).as_deref(), Some("123.45"));
        assert_eq!(shown(-5, 2).as_deref(), Some("-0.05"));
        assert_eq!(shown(0, 0).as_deref(), Some("0"));
        assert_eq!(shown(0, 1).as_deref(), Some("0.0"));
        assert_eq!(shown(-7, -2).as_deref(), Some("-700"));
        assert_eq!(shown(0, -2).as_deref(), Some("0"));
        let digits = "-1701411834604692317316873037158841057.28";
        assert_eq!(shown(i128::MIN, 2).as_deref(), Some(digits));
    }

    #[test]
    fn times_are_iso_8601() {
        let moment = |nanos, zoned| text(Cell::Moment { nanos, zoned });
        assert_eq!(moment(-1_000_000, true).as_deref(), Some("1969-12-31T23:59:59.999Z"));
        assert_eq!(moment(60_000_000_000, false).as_deref(), Some("1970-01-01T00:01:00"));
        for unit in [1_000, 1_000_000, 1_000_000_000] {
            let last = i128::from(i64::MAX) * unit;
            assert_eq!(moment(last, false).as_deref(), Some("infinity"));
            assert_eq!(moment(-last, true).as_deref(), Some("-infinity"));
            assert_eq!(moment(i128::from(i64::MIN) * unit, true).as_deref(), Some("-infinity"));
        }
        // Nanoseconds in 64 bits end in 2262.
        let last = moment(i64::MAX.into(), true);
        assert_eq!(last.as_deref(), Some("2262-04-11T23:47:16.854775807Z"));
        let late = moment(i128::from(i64::MAX - 1) * 1_000, false);
        assert_eq!(late.as_deref(), Some("+294247-01-10T04:00:54.775806"));
        let time = |nanos| text(Cell::Time(nanos));
        assert_eq!(time(1).as_deref(), Some("00:00:00.000000001"));
        assert_eq!(time(86_399_000_000_000).as_deref(), Some("23:59:59"));
        assert_eq!(time(86_400_000_000_000).as_deref(), Some("24:00:00"));
        assert_eq!(time(86_400_000_000_001), None);
        assert_eq!(time(-1), None);
        assert_eq!(text(Cell::Date(19_000)).as_deref(), Some("2022-01-08"));
        for (days, shown) in [
            (i32::MAX.into(), "infinity"),
            (i32::MIN.into(), "-infinity"),
            ((i32::MIN + 1).into(), "-infinity"),
            ((i32::MAX - 1).into(), "+5881580-07-10"),
            (-719_529, "-0001-12-31"),
            (-719_528, "0000-01-01"),
            (2_932_896, "9999-12-31"),
            (2_932_897, "+10000-01-01"),
        ] {
            assert_eq!(text(Cell::Date(days)).as_deref(), Some(shown));
        }
        let interval = [1, 0, 0, 0, 2, 0, 0, 0, 0xe8, 3, 0, 0];
        assert_eq!(text(Cell::Interval(&interval)).as_deref(), Some("P1M2DT1.000S"));
        assert_eq!(text(Cell::Interval(&interval[1..])), None);
    }
}
