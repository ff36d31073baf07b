//! Keys: their types, and their canonical byte encoding, which is specified in the crate's
//! documentation.

use std::fmt;

use arrow_buffer::i256;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime};

use crate::cell::{Cell, append_text, day_of};
use crate::error::{Result, quoted, refuse};

/// The type as which a key column is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyType {
    /// A string of characters, compared byte by byte: case, spaces and leading zeros count.
    Text,
    /// A string of bytes.
    Binary,
    /// An integer of any size.
    Integer,
    /// True or false.
    Boolean,
    /// A calendar day.
    Date,
    /// A point in time, to the nanosecond.
    Timestamp,
    /// A day and a time of day without a time zone, to the nanosecond.
    Datetime,
    /// A decimal number of any size.
    Decimal,
    /// A UUID: 16 bytes, or its text.
    Uuid,
}

use KeyType as K;

/// Each type at the place that is its tag less 1: its name, as written after the colon of
/// `NAME:TYPE`, and what a field of it is.
const TYPES: [(KeyType, &str, &str); 9] = [
    (K::Text, "text", "a text is of any bytes"),
    (K::Binary, "binary", "binary is of any bytes"),
    (K::Integer, "integer", "an integer is decimal digits with or without a sign, and no space"),
    (K::Boolean, "boolean", "a boolean is true or false"),
    (K::Date, "date", "a date is written YYYY-MM-DD"),
    (
        K::Timestamp,
        "timestamp",
        "a timestamp is written YYYY-MM-DDTHH:MM:SSZ, or with an offset for Z",
    ),
    (K::Datetime, "datetime", "a datetime is written YYYY-MM-DDTHH:MM:SS"),
    (K::Decimal, "decimal", "a decimal number is digits with or without a point and a sign"),
    (K::Uuid, "uuid", "a UUID is 16 bytes, or 32 hexadecimal digits with or without hyphens"),
];

impl KeyType {
    /// The type of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        TYPES.into_iter().find(|(_, known, _)| *known == name).map(|(kind, ..)| kind)
    }

    /// The name of the type, as written after the colon of `NAME:TYPE`.
    pub fn name(self) -> &'static str {
        TYPES[self as usize].1
    }

    /// A sentence that says what a field of this type is.
    pub(crate) fn form(self) -> &'static str {
        TYPES[self as usize].2
    }

    pub(crate) fn with_article(self) -> &'static str {
        self.form().split(" is ").next().unwrap_or_default()
    }

    /// Whether a column of this type can be read as `wanted`: strings as every type, numbers as
    /// each other, UUIDs as binary, and every type as itself and as text.
    pub(crate) fn reads_as(self, wanted: Self) -> bool {
        let number = |kind| matches!(kind, Self::Integer | Self::Decimal);
        matches!(self, Self::Text | Self::Binary)
            || wanted == self
            || wanted == Self::Text
            || number(self) && number(wanted)
            || (self, wanted) == (Self::Uuid, Self::Binary)
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Checks that every name is unique.
pub(crate) fn check_names<'n>(columns: impl IntoIterator<Item = &'n str>) -> Result<()> {
    let mut seen = std::collections::HashMap::new();
    for (i, name) in columns.into_iter().enumerate() {
        if let Some(first) = seen.insert(name, i) {
            let (first, second, name) = (first + 1, i + 1, quoted(name));
            let what = format_args!("columns {first} and {second} have the same name, {name}");
            return Err(refuse(what, "rename one of them"));
        }
    }
    Ok(())
}

/// The cell cannot be read as the requested type.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnreadableCell;

/// Appends one column of a key to `out`; bytes appended before an error are invalid.
pub(crate) fn append(
    cell: Cell<'_>,
    wanted: KeyType,
    out: &mut Vec<u8>,
) -> Result<(), UnreadableCell> {
    out.push(wanted as u8 + 1);
    let start = out.len() + 8;
    out.extend_from_slice(&[0; 8]);
    match (wanted, cell) {
        (KeyType::Text | KeyType::Binary, Cell::Bytes(bytes)) => out.extend_from_slice(bytes),
        (KeyType::Text, cell) => append_text(cell, out).map_err(|_| UnreadableCell)?,
        (KeyType::Integer, Cell::Bytes(bytes)) => append_integer(bytes, out)?,
        (KeyType::Integer, Cell::Integer(value)) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        (KeyType::Integer, Cell::Decimal(value, scale)) => {
            append_decimal(&decimal_text(value, scale), out)?;
            if out[start..].contains(&b'.') {
                return Err(UnreadableCell);
            }
        }
        (KeyType::Integer, Cell::Half(value)) => {
            out.extend_from_slice(whole(value, 1 << 11)?.to_string().as_bytes());
        }
        (KeyType::Integer, Cell::Float(value)) => {
            out.extend_from_slice(whole(value, 1 << 24)?.to_string().as_bytes());
        }
        (KeyType::Integer, Cell::Double(value)) => {
            out.extend_from_slice(whole(value, 1 << 53)?.to_string().as_bytes());
        }
        (KeyType::Decimal, Cell::Bytes(bytes)) => append_decimal(bytes, out)?,
        (KeyType::Decimal, Cell::Integer(value)) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        (KeyType::Decimal, Cell::Decimal(value, scale)) => {
            append_decimal(&decimal_text(value, scale), out)?;
        }
        (KeyType::Boolean, Cell::Bytes(bytes)) => out.push(parse_boolean(bytes)?.into()),
        (KeyType::Boolean, Cell::Boolean(value)) => out.push(value.into()),
        (KeyType::Date, Cell::Bytes(bytes)) => {
            out.extend_from_slice(&parse_date(bytes)?.to_le_bytes());
        }
        (KeyType::Date, Cell::Date64(millis)) => {
            out.extend_from_slice(&day_of(millis).to_le_bytes());
        }
        (KeyType::Date, Cell::Date(days)) => out.extend_from_slice(&days.to_le_bytes()),
        (KeyType::Timestamp, Cell::Bytes(bytes)) => {
            out.extend_from_slice(&parse_timestamp(bytes)?.to_le_bytes());
        }
        (KeyType::Timestamp, Cell::Moment { nanos, zoned: true })
        | (KeyType::Datetime, Cell::Moment { nanos, zoned: false }) => {
            out.extend_from_slice(&nanos.to_le_bytes());
        }
        (KeyType::Datetime, Cell::Bytes(bytes)) => {
            out.extend_from_slice(&parse_datetime(bytes)?.to_le_bytes());
        }
        (KeyType::Binary | KeyType::Uuid, Cell::Uuid(bytes)) => out.extend_from_slice(bytes),
        (KeyType::Uuid, Cell::Bytes(bytes)) => out.extend_from_slice(&parse_uuid(bytes)?),
        _ => return Err(UnreadableCell),
    }
    let length = (out.len() - start) as u64;
    out[start - 8..start].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Decimal digits, with or without a sign; appends them without `+` and leading zeros.
fn append_integer(field: &[u8], out: &mut Vec<u8>) -> Result<(), UnreadableCell> {
    match field.contains(&b'.') {
        true => Err(UnreadableCell),
        false => append_decimal(field, out),
    }
}

/// Decimal digits, at most one point with a digit on each side, with or without a sign; appends
/// them without `+`, leading zeros, and zeros and a point at the end.
fn append_decimal(field: &[u8], out: &mut Vec<u8>) -> Result<(), UnreadableCell> {
    let (negative, number) = match field {
        [b'-', number @ ..] => (true, number),
        [b'+', number @ ..] => (false, number),
        number => (false, number),
    };
    let is_digits = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let (units, fraction) = match number.iter().position(|&byte| byte == b'.') {
        Some(point) => (&number[..point], Some(&number[point + 1..])),
        None => (number, None),
    };
    if !is_digits(units) || !fraction.is_none_or(is_digits) {
        return Err(UnreadableCell);
    }
    let is_zero = |&digit: &u8| digit == b'0';
    let fraction = fraction.unwrap_or_default();
    let first = units.iter().position(|digit| !is_zero(digit));
    let last = fraction.iter().rposition(|digit| !is_zero(digit));
    let units = first.map_or(&b"0"[..], |first| &units[first..]);
    if negative && (first, last) != (None, None) {
        out.push(b'-');
    }
    out.extend_from_slice(units);
    if let Some(last) = last {
        out.push(b'.');
        out.extend_from_slice(&fraction[..=last]);
    }
    Ok(())
}

/// A decimal as text, which may have zeros at its end.
fn decimal_text(value: i256, scale: i8) -> Vec<u8> {
    let mut text = Vec::new();
    crate::cell::append_decimal(value, scale, &mut text);
    text
}

/// The integer that a float is, up to the largest `limit` below which each integer has a float.
fn whole(value: impl Into<f64>, limit: i64) -> Result<i64, UnreadableCell> {
    let value = value.into();
    match value.fract() == 0.0 && value.abs() <= limit as f64 {
        true => Ok(value as i64),
        false => Err(UnreadableCell),
    }
}

/// A time as RFC 3339 has it, with an offset or `Z`, in nanoseconds since 1970-01-01T00:00:00Z.
fn parse_timestamp(field: &[u8]) -> Result<i128, UnreadableCell> {
    let text = std::str::from_utf8(field).map_err(|_| UnreadableCell)?;
    let moment = DateTime::parse_from_rfc3339(text).map_err(|_| UnreadableCell)?;
    nanos(moment.naive_utc())
}

/// `YYYY-MM-DDTHH:MM:SS` with or without a fraction of a second, or with a space for the `T`.
fn parse_datetime(field: &[u8]) -> Result<i128, UnreadableCell> {
    let text = std::str::from_utf8(field).map_err(|_| UnreadableCell)?;
    if !matches!(field.get(10), Some(b'T' | b't' | b' ')) {
        return Err(UnreadableCell);
    }
    // The parser of the other type is the stricter one.
    nanos(
        DateTime::parse_from_rfc3339(&format!("{text}Z")).map_err(|_| UnreadableCell)?.naive_utc(),
    )
}

/// Nanoseconds since 1970-01-01; a leap second is none.
fn nanos(moment: NaiveDateTime) -> Result<i128, UnreadableCell> {
    let (seconds, nanos) =
        (moment.and_utc().timestamp(), moment.and_utc().timestamp_subsec_nanos());
    match nanos < 1_000_000_000 {
        true => Ok(i128::from(seconds) * 1_000_000_000 + i128::from(nanos)),
        false => Err(UnreadableCell),
    }
}

/// 16 bytes, or 32 hexadecimal digits without hyphens or with the usual four, in braces or not, or
/// behind `urn:uuid:`.
pub(crate) fn parse_uuid(field: &[u8]) -> Result<[u8; 16], UnreadableCell> {
    if let Ok(bytes) = field.try_into() {
        return Ok(bytes);
    }
    let text = std::str::from_utf8(field).map_err(|_| UnreadableCell)?;
    let braced = || text.strip_prefix('{')?.strip_suffix('}');
    let named = || text.get(..9).filter(|start| start.eq_ignore_ascii_case("urn:uuid:"));
    let text = braced().or_else(|| named().map(|_| &text[9..])).unwrap_or(text);
    let is_hyphen = |(i, c): (usize, char)| (c == '-') == matches!(i, 8 | 13 | 18 | 23);
    let digits = match text.len() {
        36 if text.char_indices().all(is_hyphen) => text.replace('-', ""),
        _ => text.to_owned(),
    };
    let is_hex = digits.len() == 32 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let number = is_hex.then(|| u128::from_str_radix(&digits, 16).ok()).flatten();
    number.map(u128::to_be_bytes).ok_or(UnreadableCell)
}

/// `true` or `false`, in any case of letters.
fn parse_boolean(field: &[u8]) -> Result<bool, UnreadableCell> {
    if field.eq_ignore_ascii_case(b"true") {
        Ok(true)
    } else if field.eq_ignore_ascii_case(b"false") {
        Ok(false)
    } else {
        Err(UnreadableCell)
    }
}

/// `YYYY-MM-DD`, a day that exists, as days since 1970-01-01.
fn parse_date(field: &[u8]) -> Result<i64, UnreadableCell> {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = field else {
        return Err(UnreadableCell);
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number: u32, digit| {
            digit
                .is_ascii_digit()
                .then(|| 10 * number + u32::from(digit - b'0'))
                .ok_or(UnreadableCell)
        })
    };
    let (year, month, day) = (number(&[y0, y1, y2, y3])?, number(&[m0, m1])?, number(&[d0, d1])?);
    let date = NaiveDate::from_ymd_opt(year as i32, month, day).ok_or(UnreadableCell)?;
    Ok(i64::from(date.num_days_from_ce() - EPOCH))
}

/// 1970-01-01, counted in days from 0001-01-01, which is day 1.
pub(crate) const EPOCH: i32 = 719_163;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(cells: &[(Cell<'_>, KeyType)]) -> Result<Vec<u8>, UnreadableCell> {
        let mut out = Vec::new();
        for &(cell, wanted) in cells {
            append(cell, wanted, &mut out)?;
        }
        Ok(out)
    }

    fn one(field: &str, wanted: KeyType) -> Result<Vec<u8>, UnreadableCell> {
        key(&[(Cell::Bytes(field.as_bytes()), wanted)])
    }

    #[test]
    fn a_key_is_tag_length_and_content() {
        assert!(TYPES.iter().map(|(kind, ..)| *kind as usize).eq(0..TYPES.len()));
        assert_eq!(one("ab", KeyType::Text).unwrap(), b"\x01\x02\0\0\0\0\0\0\0ab");
        assert_eq!(one("-007", KeyType::Integer).unwrap(), b"\x03\x02\0\0\0\0\0\0\0-7");
        assert_eq!(one("True", KeyType::Boolean).unwrap(), b"\x04\x01\0\0\0\0\0\0\0\x01");
        let day = one("1969-12-31", KeyType::Date).unwrap();
        assert_eq!(day, b"\x05\x08\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
    }

    #[test]
    fn integers_have_one_form() {
        for (a, b) in [("7", "+007"), ("-0", "000"), ("-12", "-0012")] {
            assert_eq!(one(a, KeyType::Integer).unwrap(), one(b, KeyType::Integer).unwrap());
        }
        let wide = "170141183460469231731687303715884105727";
        let parsed = key(&[(Cell::Integer(i128::MAX), KeyType::Integer)]);
        assert_eq!(one(wide, KeyType::Integer), parsed);
        assert_ne!(one(&format!("{wide}0"), KeyType::Integer), parsed);
        for field in ["", "-", "+", " 1", "1 ", "1.0", "1e3", "--1", "0x1", "١"] {
            assert_eq!(one(field, KeyType::Integer), Err(UnreadableCell), "{field}");
        }
    }

    #[test]
    fn dates_exist() {
        for (field, days) in [
            ("1970-01-01", 0),
            ("2000-02-29", 11_016),
            ("0001-01-01", -719_162),
            ("9999-12-31", 2_932_896),
        ] {
            assert_eq!(parse_date(field.as_bytes()), Ok(days), "{field}");
        }
        for field in
            ["", "1900-02-29", "2024-1-1", "2024-13-01", "20240101", "2024-01-01 ", "+024-01-01"]
        {
            assert_eq!(parse_date(field.as_bytes()), Err(UnreadableCell), "{field}");
        }
    }

    #[test]
    fn decimals_have_one_form() {
        for (a, b) in [("1.50", "+01.5"), ("-0.00", "0"), ("12.0", "12"), ("-0.10", "-00.1")] {
            assert_eq!(one(a, KeyType::Decimal).unwrap(), one(b, KeyType::Decimal).unwrap());
        }
        let decimal = |value, scale| Cell::Decimal(i256::from_i128(value), scale);
        let read = |value, scale, kind| key(&[(decimal(value, scale), kind)]);
        for (value, scale, text) in [
            (1250, 2, "12.5"),
            (-5, 3, "-0.005"),
            (1200, 2, "12"),
            (0, 5, "0"),
            (12, -2, "1200"),
            (i128::MIN, 0, "-170141183460469231731687303715884105728"),
        ] {
            assert_eq!(read(value, scale, KeyType::Decimal), one(text, KeyType::Decimal), "{text}");
            let whole = read(value, scale, KeyType::Integer);
            assert_eq!(whole, one(text, KeyType::Integer), "{text}");
        }
        for field in ["", ".", "1.", ".5", "1.2.3", "1,5", "1e3", " 1"] {
            assert_eq!(one(field, KeyType::Decimal), Err(UnreadableCell), "{field}");
        }
    }

    #[test]
    fn uuids_have_one_form() {
        let bytes: Vec<u8> = (0..16).map(|i| 17 * i).collect();
        let raw = key(&[(Cell::Bytes(&bytes), KeyType::Uuid)]).unwrap();
        assert_eq!(raw[..9], *b"\x09\x10\0\0\0\0\0\0\0");
        assert_eq!(raw[9..], bytes);
        let hyphens = "00112233-4455-6677-8899-aabbccddeeff";
        let (upper, hex) = (hyphens.to_ascii_uppercase(), hyphens.replace('-', ""));
        let (braces, urn) = (format!("{{{hyphens}}}"), format!("URN:uuid:{hyphens}"));
        for text in [hyphens, &upper, &hex, &braces, &urn] {
            assert_eq!(one(text, KeyType::Uuid).unwrap(), raw, "{text}");
        }
        for field in [
            "",
            "00112233-4455-6677-8899-aabbccddeef",
            "0011-22334455-6677-8899-aabbccddeeff",
            "+0112233445566778899aabbccddeeff",
            "{00112233-4455-6677-8899-aabbccddeeff",
            "é0112233445566778899aabbccddeeff",
        ] {
            assert_eq!(one(field, KeyType::Uuid), Err(UnreadableCell), "{field}");
        }
    }

    #[test]
    fn floats_are_keys_if_they_are_integers() {
        let of = |cell| key(&[(cell, KeyType::Integer)]);
        assert_eq!(of(Cell::Double(-0.0)), one("0", KeyType::Integer));
        assert_eq!(
            of(Cell::Double(9_007_199_254_740_992.0)),
            one("9007199254740992", KeyType::Integer)
        );
        assert_eq!(of(Cell::Float(-7.0)), one("-7", KeyType::Integer));
        for cell in [
            Cell::Double(0.5),
            Cell::Double(f64::NAN),
            Cell::Double(f64::INFINITY),
            Cell::Double(9_007_199_254_740_994.0),
            Cell::Float(16_777_218.0),
            Cell::Half(4096.0),
        ] {
            assert_eq!(of(cell), Err(UnreadableCell), "{cell:?}");
        }
    }

    #[test]
    fn times_have_one_form() {
        let moment = |nanos, zoned| Cell::Moment { nanos, zoned };
        let nanos = 1_614_834_367_891_000_000;
        for text in [
            "2021-03-04T05:06:07.891Z",
            "2021-03-04T06:06:07.891000+01:00",
            "2021-03-03t20:06:07.8910-09:00",
            "2021-03-04 05:06:07.891Z",
        ] {
            let expected = key(&[(moment(nanos, true), KeyType::Timestamp)]);
            assert_eq!(one(text, KeyType::Timestamp), expected, "{text}");
            assert_eq!(one(text, KeyType::Datetime), Err(UnreadableCell), "{text}");
        }
        for text in ["2021-03-04T05:06:07.891", "2021-03-04 05:06:07.891000"] {
            let expected = key(&[(moment(nanos, false), KeyType::Datetime)]);
            assert_eq!(one(text, KeyType::Datetime), expected, "{text}");
            assert_eq!(one(text, KeyType::Timestamp), Err(UnreadableCell), "{text}");
        }
        assert_ne!(
            one("2021-03-04T05:06:07Z", KeyType::Timestamp).unwrap()[9..],
            one("2021-03-04T05:06:08", KeyType::Datetime).unwrap()[9..]
        );
        for text in ["", "2021-03-04", "2021-02-30T00:00:00", "2016-12-31T23:59:60", "é"] {
            assert_eq!(one(text, KeyType::Datetime), Err(UnreadableCell), "{text}");
        }
        assert_eq!(key(&[(moment(0, true), KeyType::Datetime)]), Err(UnreadableCell));
    }
}
