//! Keys: their columns, their types, and their canonical byte encoding, which is specified in the
//! crate's documentation.

use std::fmt;

use chrono::{Datelike, NaiveDate};

use crate::error::Problem;

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
}

impl KeyType {
    const ALL: [Self; 5] = [
        Self::Text,
        Self::Binary,
        Self::Integer,
        Self::Boolean,
        Self::Date,
    ];

    /// The name of the type, as written after the colon of `NAME:TYPE`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Integer => "integer",
            Self::Boolean => "boolean",
            Self::Date => "date",
        }
    }

    pub(crate) fn with_article(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Binary => "binary",
            Self::Integer => "an integer",
            Self::Boolean => "a boolean",
            Self::Date => "a date",
        }
    }

    /// Whether a column of this type can be read as `wanted`: strings as every type, other types as
    /// themselves and as text.
    pub(crate) fn reads_as(self, wanted: Self) -> bool {
        matches!(self, Self::Text | Self::Binary) || wanted == self || wanted == Self::Text
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key column of a file: its index, and the requested type, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeyColumn {
    pub(crate) column: usize,
    pub(crate) wanted: Option<KeyType>,
}

/// Finds the key columns among the `columns` of a file: each argument is `NAME` or `NAME:TYPE`, and
/// a column whose name equals the whole argument takes precedence.
pub(crate) fn resolve(
    arguments: &[String],
    columns: &[Vec<u8>],
) -> Result<Vec<KeyColumn>, Problem> {
    if arguments.is_empty() {
        return Err(Problem::NoKey);
    }
    let mut keys: Vec<KeyColumn> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let key = resolve_one(argument, columns)?;
        if keys.iter().any(|earlier| earlier.column == key.column) {
            return Err(Problem::KeyTwice {
                name: lossy(&columns[key.column]),
            });
        }
        keys.push(key);
    }
    Ok(keys)
}

fn resolve_one(argument: &str, columns: &[Vec<u8>]) -> Result<KeyColumn, Problem> {
    if let Ok(column) = find(argument, columns) {
        return Ok(KeyColumn {
            column,
            wanted: None,
        });
    }
    let typed = argument.rsplit_once(':').and_then(|(name, wanted)| {
        let wanted = KeyType::ALL.into_iter().find(|t| t.name() == wanted)?;
        Some((name, wanted))
    });
    match typed {
        Some((name, wanted)) => Ok(KeyColumn {
            column: find(name, columns)?,
            wanted: Some(wanted),
        }),
        None => Err(missing(argument, columns)),
    }
}

/// The column called `name`, counted from 0.
pub(crate) fn find(name: &str, columns: &[Vec<u8>]) -> Result<usize, Problem> {
    let found = columns.iter().position(|column| column == name.as_bytes());
    found.ok_or_else(|| missing(name, columns))
}

fn missing(name: &str, columns: &[Vec<u8>]) -> Problem {
    Problem::MissingColumn {
        name: name.to_owned(),
        columns: columns.iter().map(|column| lossy(column)).collect(),
    }
}

/// A name as text.
pub(crate) fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Checks that every name is unique.
pub(crate) fn check_names(columns: &[Vec<u8>]) -> Result<(), Problem> {
    let mut seen = std::collections::HashMap::new();
    for (i, name) in columns.iter().enumerate() {
        if let Some(first) = seen.insert(name, i) {
            return Err(Problem::DuplicateHeader {
                name: lossy(name),
                first: first + 1,
                second: i + 1,
            });
        }
    }
    Ok(())
}

/// A field that is not null, as stored in its file.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cell<'a> {
    Bytes(&'a [u8]),
    Integer(i128),
    Boolean(bool),
    /// Days since 1970-01-01.
    Date(i64),
}

impl Cell<'_> {
    /// Whether this is the empty string, which is not a key.
    pub(crate) fn is_empty(self) -> bool {
        matches!(self, Self::Bytes(b""))
    }
}

/// The cell cannot be read as the requested type.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

/// The result of building the key of a row; columns are those of the key, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The key has been appended.
    Whole,
    /// This column is empty or null.
    Empty(usize),
    /// This column cannot be read as its type.
    Unreadable(usize),
}

/// Appends the key made of `cells`, which may be null, to `out`; unless the outcome is `Whole`, the
/// appended bytes are invalid.
pub(crate) fn append_all<'a>(
    cells: impl Iterator<Item = Option<Cell<'a>>>,
    types: &[KeyType],
    out: &mut Vec<u8>,
) -> Outcome {
    for (i, (cell, &wanted)) in cells.zip(types).enumerate() {
        match cell {
            Some(cell) if !cell.is_empty() => {
                if append(cell, wanted, out).is_err() {
                    return Outcome::Unreadable(i);
                }
            }
            _ => return Outcome::Empty(i),
        }
    }
    Outcome::Whole
}

/// Appends one column of a key to `out`; bytes appended before an error are invalid.
fn append(cell: Cell<'_>, wanted: KeyType, out: &mut Vec<u8>) -> Result<(), Unreadable> {
    let tag = match wanted {
        KeyType::Text => 1,
        KeyType::Binary => 2,
        KeyType::Integer => 3,
        KeyType::Boolean => 4,
        KeyType::Date => 5,
    };
    out.push(tag);
    let start = out.len() + 8;
    out.extend_from_slice(&[0; 8]);
    match (cell, wanted) {
        (Cell::Bytes(bytes), KeyType::Text | KeyType::Binary) => out.extend_from_slice(bytes),
        (Cell::Bytes(bytes), KeyType::Integer) => append_integer(bytes, out)?,
        (Cell::Bytes(bytes), KeyType::Boolean) => out.push(parse_boolean(bytes)?.into()),
        (Cell::Bytes(bytes), KeyType::Date) => {
            out.extend_from_slice(&parse_date(bytes)?.to_le_bytes());
        }
        (Cell::Boolean(value), KeyType::Boolean) => out.push(value.into()),
        (Cell::Date(days), KeyType::Date) => out.extend_from_slice(&days.to_le_bytes()),
        (Cell::Integer(value), KeyType::Integer | KeyType::Text) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        (Cell::Boolean(value), KeyType::Text) => {
            out.extend_from_slice(value.to_string().as_bytes());
        }
        (Cell::Date(days), KeyType::Text) => {
            out.extend_from_slice(date_text(days).ok_or(Unreadable)?.as_bytes());
        }
        (Cell::Integer(_) | Cell::Boolean(_) | Cell::Date(_), _) => return Err(Unreadable),
    }
    let length = (out.len() - start) as u64;
    out[start - 8..start].copy_from_slice(&length.to_le_bytes());
    Ok(())
}

/// Decimal digits, with or without a sign; appends them without `+` and leading zeros.
fn append_integer(field: &[u8], out: &mut Vec<u8>) -> Result<(), Unreadable> {
    let (negative, digits) = match field {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Unreadable);
    }
    match digits.iter().position(|&digit| digit != b'0') {
        None => out.push(b'0'),
        Some(first) => {
            if negative {
                out.push(b'-');
            }
            out.extend_from_slice(&digits[first..]);
        }
    }
    Ok(())
}

/// `true` or `false`, in any case of letters.
fn parse_boolean(field: &[u8]) -> Result<bool, Unreadable> {
    if field.eq_ignore_ascii_case(b"true") {
        Ok(true)
    } else if field.eq_ignore_ascii_case(b"false") {
        Ok(false)
    } else {
        Err(Unreadable)
    }
}

/// `YYYY-MM-DD`, a day that exists, as days since 1970-01-01.
fn parse_date(field: &[u8]) -> Result<i64, Unreadable> {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = field else {
        return Err(Unreadable);
    };
    let number = |digits: &[u8]| {
        digits.iter().try_fold(0, |number: u32, digit| {
            digit
                .is_ascii_digit()
                .then(|| 10 * number + u32::from(digit - b'0'))
                .ok_or(Unreadable)
        })
    };
    let (year, month, day) = (
        number(&[y0, y1, y2, y3])?,
        number(&[m0, m1])?,
        number(&[d0, d1])?,
    );
    let date = NaiveDate::from_ymd_opt(year as i32, month, day).ok_or(Unreadable)?;
    Ok(i64::from(date.num_days_from_ce() - EPOCH))
}

/// The inverse; none for years beyond the range of the calendar library.
pub(crate) fn date_text(days: i64) -> Option<String> {
    let days = i32::try_from(days).ok()?.checked_add(EPOCH)?;
    NaiveDate::from_num_days_from_ce_opt(days).map(|date| date.to_string())
}

/// 1970-01-01, counted in days from 0001-01-01, which is day 1.
const EPOCH: i32 = 719_163;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;

    fn key(cells: &[(Cell<'_>, KeyType)]) -> Result<Vec<u8>, Unreadable> {
        let mut out = Vec::new();
        for &(cell, wanted) in cells {
            append(cell, wanted, &mut out)?;
        }
        Ok(out)
    }

    fn one(field: &str, wanted: KeyType) -> Result<Vec<u8>, Unreadable> {
        key(&[(Cell::Bytes(field.as_bytes()), wanted)])
    }

    #[test]
    fn a_key_is_tag_length_and_content() {
        assert_eq!(
            one("ab", KeyType::Text).unwrap(),
            b"\x01\x02\0\0\0\0\0\0\0ab"
        );
        assert_eq!(
            one("-007", KeyType::Integer).unwrap(),
            b"\x03\x02\0\0\0\0\0\0\0-7"
        );
        assert_eq!(
            one("True", KeyType::Boolean).unwrap(),
            b"\x04\x01\0\0\0\0\0\0\0\x01"
        );
        let day = one("1969-12-31", KeyType::Date).unwrap();
        assert_eq!(
            day,
            b"\x05\x08\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
        );
    }

    #[test]
    fn the_border_between_columns_counts() {
        let pair = |a: &'static str, b: &'static str| {
            let text = |s: &'static str| (Cell::Bytes(s.as_bytes()), KeyType::Text);
            key(&[text(a), text(b)]).unwrap()
        };
        assert_ne!(pair("ab", "c"), pair("a", "bc"));
        assert_ne!(pair("", "a"), pair("a", ""));
        assert_ne!(one("1", KeyType::Text), one("1", KeyType::Integer));
        assert_ne!(one("1", KeyType::Text), one("1", KeyType::Binary));
    }

    #[test]
    fn integers_have_one_form() {
        for (a, b) in [("7", "+007"), ("-0", "000"), ("-12", "-0012")] {
            assert_eq!(
                one(a, KeyType::Integer).unwrap(),
                one(b, KeyType::Integer).unwrap()
            );
        }
        let wide = "170141183460469231731687303715884105727";
        let parsed = key(&[(Cell::Integer(i128::MAX), KeyType::Integer)]);
        assert_eq!(one(wide, KeyType::Integer), parsed);
        assert_ne!(one(&format!("{wide}0"), KeyType::Integer), parsed);
        for field in ["", "-", "+", " 1", "1 ", "1.0", "1e3", "--1", "0x1", "١"] {
            assert_eq!(one(field, KeyType::Integer), Err(Unreadable), "{field}");
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
            assert_eq!(date_text(days).as_deref(), Some(field));
        }
        for field in [
            "",
            "1900-02-29",
            "2024-1-1",
            "2024-13-01",
            "20240101",
            "2024-01-01 ",
            "+024-01-01",
        ] {
            assert_eq!(parse_date(field.as_bytes()), Err(Unreadable), "{field}");
        }
        assert_eq!(date_text(i64::MAX), None);
        assert_eq!(date_text(i32::MAX.into()), None);
    }

    #[test]
    fn columns_are_found_by_the_whole_argument_first() {
        let columns: Vec<Vec<u8>> = ["id", "id:integer", "a:b", "day"]
            .map(|name| name.as_bytes().to_vec())
            .to_vec();
        let found = |arguments: &[&str]| {
            let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
            resolve(&arguments, &columns)
        };
        let at = |column, wanted| KeyColumn { column, wanted };
        assert_eq!(found(&["id:integer"]).unwrap(), [at(1, None)]);
        assert_eq!(
            found(&["a:b:text", "id", "day:date"]).unwrap(),
            [
                at(2, Some(KeyType::Text)),
                at(0, None),
                at(3, Some(KeyType::Date))
            ]
        );
        assert!(matches!(
            found(&["day", "day:date"]),
            Err(Problem::KeyTwice { .. })
        ));
        assert!(matches!(
            found(&["day:time"]),
            Err(Problem::MissingColumn { .. })
        ));
        assert!(matches!(
            found(&["nowhere"]),
            Err(Problem::MissingColumn { .. })
        ));
        assert!(matches!(found(&[]), Err(Problem::NoKey)));
    }
}
