//! A check of the footer of a Parquet file before the library reads it.
//!
//! A group of columns states its number of members, and the library allocates memory for that
//! number; so this module refuses a number above that of all columns and groups. The library reads
//! a field that it knows with the type that it should have, whatever type the footer states: up to
//! the end of the schema, another type is refused as well, or the two would read different fields.
//! The footer is in the compact protocol of Thrift:
//!
//! ```text
//! struct = field* | 0                     field = step of its number and type (1 byte) | its value
//! list   = length and type (1 byte) | element*          numbers are varints, signed ones in zigzag
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::varint::{varint, zigzag};

/// Bytes after the footer: its length, and the magic bytes.
const TAIL: u64 = 8;

/// The maximum nesting of structs and lists; the format has 6.
const DEPTH: u8 = 32;

/// The field of the footer that lists columns and groups, and the field of each of them with its
/// number of members.
const SCHEMA: i16 = 2;
const MEMBERS: i16 = 5;

/// The types of the known fields of the footer, and of a column or group: that of its logical type,
/// a union of structs, is the last one.
const FOOTER: &[(i16, u8)] = &[
    (1, I32),
    (SCHEMA, LIST),
    (3, I64),
    (4, LIST),
    (5, LIST),
    (6, BINARY),
    (7, LIST),
    (8, STRUCT),
    (9, BINARY),
];
const COLUMN: &[(i16, u8)] = &[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, BINARY),
    (MEMBERS, I32),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (LOGICAL, STRUCT),
];
const LOGICAL: i16 = 10;

/// The types of the fields of a logical type, by its number in the union; the second field of times
/// is a union, too.
const fn logical(member: i16) -> &'static [(i16, u8)] {
    match member {
        5 => &[(1, I32), (2, I32)],
        7 | 8 => &[(1, TRUE), (UNIT, STRUCT)],
        10 => &[(1, I8), (2, TRUE)],
        16 => &[(1, I8)],
        17 => &[(1, BINARY)],
        18 => &[(1, BINARY), (2, I32)],
        _ => &[],
    }
}
const UNIT: i16 = 2;

/// Whether the footer of `file`, which has `length` bytes and ends with the magic bytes, can be
/// passed to the library.
pub(super) fn is_credible(file: &mut File, length: u64) -> io::Result<bool> {
    let mut size = [0; 4];
    file.seek(SeekFrom::End(-(TAIL as i64)))?;
    file.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size);
    let Some(start) = length.checked_sub(TAIL + u64::from(size)) else {
        return Ok(false);
    };
    let mut description = vec![0; size as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut description)?;
    Ok(whole(&mut &description[..]).is_some())
}

/// Skips the footer; none if it is malformed or claims too much.
fn whole(bytes: &mut &[u8]) -> Option<()> {
    fields(bytes, |number, kind, bytes| {
        check(FOOTER, number, kind)?;
        if number != SCHEMA {
            return value(kind, DEPTH, bytes);
        }
        let (count, kind) = list(bytes)?;
        if kind != STRUCT {
            return None;
        }
        (0..count).try_for_each(|_| column(count, bytes))
    })
}

/// Skips one of `count` columns and groups.
fn column(count: usize, bytes: &mut &[u8]) -> Option<()> {
    fields(bytes, |number, kind, bytes| {
        check(COLUMN, number, kind)?;
        match number {
            MEMBERS => {
                // The library also takes the low half.
                let members = zigzag(varint(bytes)?)? as i32;
                (i64::from(members) <= count as i64).then_some(())
            }
            LOGICAL => union(bytes, |member, bytes| {
                fields(bytes, |number, kind, bytes| {
                    check(logical(member), number, kind)?;
                    match (member, number) {
                        (7 | 8, UNIT) => union(bytes, |_, bytes| value(STRUCT, DEPTH, bytes)),
                        _ => value(kind, DEPTH, bytes),
                    }
                })
            }),
            _ => value(kind, DEPTH, bytes),
        }
    })
}

/// Skips a union of structs: `each` gets the numbers of its members, and skips them.
fn union(bytes: &mut &[u8], mut each: impl FnMut(i16, &mut &[u8]) -> Option<()>) -> Option<()> {
    fields(bytes, |number, kind, bytes| match kind {
        STRUCT => each(number, bytes),
        _ => None,
    })
}

/// None if the field is a known one of another type. The type of a truth is its value.
fn check(known: &[(i16, u8)], number: i16, kind: u8) -> Option<()> {
    let kind = if kind == FALSE { TRUE } else { kind };
    let mut known = known.iter().filter(|known| known.0 == number);
    known.all(|known| known.1 == kind).then_some(())
}

/// The types of values.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I8: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;

/// Skips the fields of a struct: `each` gets their numbers and types, and skips their values.
fn fields(
    bytes: &mut &[u8],
    mut each: impl FnMut(i16, u8, &mut &[u8]) -> Option<()>,
) -> Option<()> {
    let mut number = 0_i16;
    loop {
        let head = take(bytes, 1)?[0];
        if head == 0 {
            return Some(());
        }
        number = match head >> 4 {
            // The library takes the low bits of a longer number.
            0 => i16::try_from(zigzag(varint(bytes)?)?).ok()?,
            step => number.checked_add(step.into())?,
        };
        each(number, head & 0xf, bytes)?;
    }
}

/// Skips a value in a field, at most `depth` structs and lists deep.
fn value(kind: u8, depth: u8, bytes: &mut &[u8]) -> Option<()> {
    let deeper = depth.checked_sub(1)?;
    match kind {
        TRUE | FALSE => Some(()),
        I8 => take(bytes, 1).map(drop),
        I16 | I32 | I64 => varint(bytes).map(drop),
        DOUBLE => take(bytes, 8).map(drop),
        BINARY => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            take(bytes, length).map(drop)
        }
        LIST | SET => {
            let (count, kind) = list(bytes)?;
            (0..count).try_for_each(|_| element(kind, deeper, bytes))
        }
        MAP => {
            let count = varint(bytes)?;
            let kinds = if count == 0 { 0 } else { take(bytes, 1)?[0] };
            (0..count).try_for_each(|_| {
                element(kinds >> 4, deeper, bytes)?;
                element(kinds & 0xf, deeper, bytes)
            })
        }
        STRUCT => fields(bytes, |_, kind, bytes| value(kind, deeper, bytes)),
        _ => None,
    }
}

/// Skips an element of a list: a boolean has a byte there.
fn element(kind: u8, depth: u8, bytes: &mut &[u8]) -> Option<()> {
    match kind {
        TRUE | FALSE => take(bytes, 1).map(drop),
        kind => value(kind, depth, bytes),
    }
}

/// The number of elements of a list, each of at least one byte, and their type.
fn list(bytes: &mut &[u8]) -> Option<(usize, u8)> {
    let head = take(bytes, 1)?[0];
    let count = match head >> 4 {
        15 => usize::try_from(varint(bytes)?).ok()?,
        short => short.into(),
    };
    (count <= bytes.len()).then_some((count, head & 0xf))
}

fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(taken)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_whole(bytes: &[u8]) -> bool {
        whole(&mut &bytes[..]).is_some()
    }

    /// A footer with a root with `members`, and two columns.
    fn description(members: &[u8]) -> Vec<u8> {
        let root = [&[0x48, 1, b'r', 0x15][..], members, &[0]].concat();
        let column = [0x15, 2, 0x25, 2, 0x18, 1, b'c', 0];
        [
            &[0x15, 4, 0x19, 0x3c],
            &root[..],
            &column,
            &column,
            &[0x16, 8, 0],
        ]
        .concat()
    }

    #[test]
    fn no_group_has_more_members_than_there_are() {
        for members in [0, 1, 2, 3] {
            assert!(is_whole(&description(&[2 * members])), "{members}");
        }
        assert!(
            is_whole(&description(&[1])),
            "below zero: the library reports the error"
        );
        for members in [
            &[8][..],
            &[0xfe, 0xff, 0xff, 0xff, 0x0f],
            // 2^30 in the low half, below zero as a whole.
            &[0xff, 0xff, 0xff, 0xff, 0x17],
        ] {
            assert!(!is_whole(&description(members)), "{members:?}");
        }
    }

    /// A footer with one column that has this field.
    fn with(field: &[u8]) -> Vec<u8> {
        let root = [&[0x48, 1, b'r'][..], field, &[0]].concat();
        [&[0x15, 4, 0x19, 0x1c], &root[..], &[0x16, 8, 0]].concat()
    }

    /// The library reads what it knows by their numbers alone, of 16 bits.
    #[test]
    fn known_fields_have_their_types() {
        // A value of nine zeros is whole with every type but those of bytes and lists.
        let zeros = |head: &[u8]| [head, &[0; 9]].concat();
        for (number, expected) in COLUMN {
            let long = |kind| zeros(&[kind, 2 * *number as u8]);
            for kind in (TRUE..=STRUCT).filter(|kind| kind != expected) {
                assert!(!is_whole(&with(&long(kind))), "{number} {kind}");
            }
        }
        for (number, expected) in FOOTER {
            for kind in (TRUE..=STRUCT).filter(|kind| kind != expected) {
                assert!(
                    !is_whole(&zeros(&[kind, 2 * *number as u8])),
                    "{number} {kind}"
                );
            }
        }
        // 5 + 2^16, in zigzag.
        assert!(!is_whole(&with(&[0x05, 0x8a, 0x80, 0x08, 4])));
        assert!(is_whole(&with(&[0x05, 0x8a, 0x80, 0x02, 4])));
    }

    #[test]
    fn logical_types_have_the_fields_of_the_format() {
        // Text; a decimal number; a time in milliseconds; a number of 8 bits, unsigned.
        let good: [&[u8]; 4] = [
            &[0x1c, 0, 0],
            &[0x5c, 0x15, 4, 0x15, 18, 0, 0],
            &[0x7c, 0x11, 0x1c, 0x1c, 0, 0, 0, 0],
            &[0xac, 0x13, 8, 0x12, 0, 0],
        ];
        for logical in good {
            assert!(is_whole(&with(&[&[0x6c], logical].concat())), "{logical:?}");
        }
        let bad: [&[u8]; 5] = [
            &[0x1b, 0, 0],
            &[0x5c, 0x13, 4, 0x15, 18, 0, 0],
            &[0x7c, 0x11, 0x1c, 0x15, 0, 0, 0, 0],
            &[0x7c, 0x11, 0x15, 0, 0, 0],
            &[0xac, 0x15, 8, 0x12, 0, 0],
        ];
        for logical in bad {
            assert!(
                !is_whole(&with(&[&[0x6c], logical].concat())),
                "{logical:?}"
            );
        }
    }

    #[test]
    fn a_truncated_footer_is_malformed() {
        let whole = description(&[4]);
        assert!(is_whole(&whole));
        for end in 0..whole.len() {
            assert!(!is_whole(&whole[..end]), "{end}");
        }
    }

    #[test]
    fn every_type_is_passed_by() {
        let fields: [&[u8]; 12] = [
            &[0x11],                         // true
            &[0x12],                         // false
            &[0x13, 9],                      // 8 bits
            &[0x14, 0x80, 1],                // 16 bits
            &[0x16, 0xff, 0xff, 0xff, 1],    // 64 bits
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0], // a number with a point
            &[0x18, 3, b'a', b'b', b'c'],    // bytes
            &[0x19, 0x21, 1, 2],             // a list of truths
            &[
                0x1a, 0xf3, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
            ], // a set of 16
            &[0x1b, 1, 0x85, 1, b'k', 7],    // a map of bytes to 32 bits
            &[0x1b, 0],                      // an empty map
            &[0x0c, 200, 1, 0x15, 1, 0],     // a struct, its number in full
        ];
        // From field 33 on, none of which is known.
        let all = [&[0x01, 64][..], &fields.concat(), &[0]].concat();
        assert!(is_whole(&all));
        assert!(!is_whole(&[0x3d, 0]), "an unknown type");
        assert!(
            !is_whole(&[0x09, 66, 0xf3, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]),
            "a list of nothing"
        );
        // A list in a list in a list ..
        let deep = |n: usize| [&[0x09, 66][..], &vec![0x19; n], &[0x03, 0]].concat();
        assert!(is_whole(&deep(10)) && !is_whole(&deep(100)));
    }
}
