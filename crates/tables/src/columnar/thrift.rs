//! A check of the footer and the page headers of a Parquet file before the library reads them.
//!
//! A group of columns states its number of members, and the library allocates memory for that
//! number; so this module refuses a number above that of all columns and groups. The library reads
//! a field that it knows with the type that it should have, whatever type the file states, takes no
//! byte for a boolean in a list that it skips, and goes on where a page header has ended; so this
//! module refuses all of these, or the two would read different fields. The structs are in the
//! compact protocol of Thrift:
//!
//! ```text
//! struct = field* | 0                     field = step of its number and type (1 byte) | its value
//! list   = length and type (1 byte) | element*          numbers are varints, signed ones in zigzag
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::varint::{varint, zigzag};

/// Bytes after the footer: its length, and the magic bytes.
const TAIL: u64 = 8;

/// The maximum nesting of unknown structs and lists; the format has 6.
const DEPTH: u8 = 32;

/// The type of a value that the format names.
enum Type {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List(&'static Self),
    /// The numbers and types of its known fields; a union is a struct with one field.
    Struct(&'static [(i16, Self)]),
    /// An [`I32`](Self::I32): the members of an element of a list, which are elements of it, too.
    Members,
}

/// The types of values, as stated.
mod code {
    pub(super) const TRUE: u8 = 1;
    pub(super) const FALSE: u8 = 2;
    pub(super) const I8: u8 = 3;
    pub(super) const I16: u8 = 4;
    pub(super) const I32: u8 = 5;
    pub(super) const I64: u8 = 6;
    pub(super) const DOUBLE: u8 = 7;
    pub(super) const BINARY: u8 = 8;
    pub(super) const LIST: u8 = 9;
    pub(super) const SET: u8 = 10;
    pub(super) const MAP: u8 = 11;
    pub(super) const STRUCT: u8 = 12;
}

use Type::{Binary, Bool, Double, I8, I16, I32, I64, List, Members, Struct};

impl Type {
    /// As stated in front of a value; the type of a truth in a field is its value.
    const fn code(&self) -> u8 {
        match self {
            Bool => code::TRUE,
            I8 => code::I8,
            I16 => code::I16,
            I32 | Members => code::I32,
            I64 => code::I64,
            Double => code::DOUBLE,
            Binary => code::BINARY,
            List(_) => code::LIST,
            Struct(_) => code::STRUCT,
        }
    }
}

// The structs of the format, by their names in its `parquet.thrift`; an enum is an `I32`.

const FILE_META_DATA: Type = Struct(&[
    (1, I32),
    (2, List(&SCHEMA_ELEMENT)),
    (3, I64),
    (4, List(&ROW_GROUP)),
    (5, List(&KEY_VALUE)),
    (6, Binary),
    (7, List(&Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))),
    (8, Struct(&[(1, AES_GCM), (2, AES_GCM)])),
    (9, Binary),
]);
const EMPTY: Type = Struct(&[]);
const KEY_VALUE: Type = Struct(&[(1, Binary), (2, Binary)]);
const AES_GCM: Type = Struct(&[(1, Binary), (2, Binary), (3, Bool)]);

const SCHEMA_ELEMENT: Type = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, Binary),
    (5, Members),
    (6, I32),
    (7, I32),
    (8, I32),
    (9, I32),
    (10, LOGICAL_TYPE),
    (11, I32),
]);
const LOGICAL_TYPE: Type = Struct(&[
    (1, EMPTY),
    (2, EMPTY),
    (3, EMPTY),
    (4, EMPTY),
    (5, Struct(&[(1, I32), (2, I32)])),
    (6, EMPTY),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, I8), (2, Bool)])),
    (11, EMPTY),
    (12, EMPTY),
    (13, EMPTY),
    (14, EMPTY),
    (15, EMPTY),
    (16, Struct(&[(1, I8)])),
    (17, Struct(&[(1, Binary)])),
    (18, Struct(&[(1, Binary), (2, I32)])),
    (19, EMPTY),
]);
const TIME: Type = Struct(&[(1, Bool), (2, Struct(&[(1, EMPTY), (2, EMPTY), (3, EMPTY)]))]);

const ROW_GROUP: Type = Struct(&[
    (1, List(&COLUMN_CHUNK)),
    (2, I64),
    (3, I64),
    (4, List(&Struct(&[(1, I32), (2, Bool), (3, Bool)]))),
    (5, I64),
    (6, I64),
    (7, I16),
]);
const COLUMN_CHUNK: Type = Struct(&[
    (1, Binary),
    (2, I64),
    (3, COLUMN_META_DATA),
    (4, I64),
    (5, I32),
    (6, I64),
    (7, I32),
    (8, Struct(&[(1, EMPTY), (2, Struct(&[(1, List(&Binary)), (2, Binary)]))])),
    (9, Binary),
]);
const COLUMN_META_DATA: Type = Struct(&[
    (1, I32),
    (2, List(&I32)),
    (3, List(&Binary)),
    (4, I32),
    (5, I64),
    (6, I64),
    (7, I64),
    (8, List(&KEY_VALUE)),
    (9, I64),
    (10, I64),
    (11, I64),
    (12, STATISTICS),
    (13, List(&Struct(&[(1, I32), (2, I32), (3, I32)]))),
    (14, I64),
    (15, I32),
    (16, Struct(&[(1, I64), (2, List(&I64)), (3, List(&I64))])),
    (17, Struct(&[(1, BOUNDING_BOX), (2, List(&I32))])),
]);
const STATISTICS: Type = Struct(&[
    (1, Binary),
    (2, Binary),
    (3, I64),
    (4, I64),
    (5, Binary),
    (6, Binary),
    (7, Bool),
    (8, Bool),
    (9, I64),
]);
const BOUNDING_BOX: Type = Struct(&[
    (1, Double),
    (2, Double),
    (3, Double),
    (4, Double),
    (5, Double),
    (6, Double),
    (7, Double),
    (8, Double),
]);

const PAGE_HEADER: Type = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, Struct(&[(1, I32), (2, I32), (3, I32), (4, I32), (5, STATISTICS)])),
    (6, EMPTY),
    (7, Struct(&[(1, I32), (2, I32), (3, Bool)])),
    (8, DATA_PAGE_HEADER_V2),
]);
const DATA_PAGE_HEADER_V2: Type = Struct(&[
    (1, I32),
    (2, I32),
    (3, I32),
    (4, I32),
    (5, I32),
    (6, I32),
    (7, Bool),
    (8, STATISTICS),
]);

/// A footer that can be passed to the library.
pub(super) struct Footer {
    /// The encrypted columns, those in nested ones each, by their places in a row group.
    pub(super) encrypted: BTreeSet<usize>,
}

/// Checks the footer of `file`, which has `length` bytes and ends with the magic bytes; none if it
/// cannot be passed to the library.
pub(super) fn footer(file: &mut File, length: u64) -> io::Result<Option<Footer>> {
    let mut size = [0; 4];
    file.seek(SeekFrom::End(-(TAIL as i64)))?;
    file.read_exact(&mut size)?;
    let size = u32::from_le_bytes(size);
    let Some(start) = length.checked_sub(TAIL + u64::from(size)) else {
        return Ok(None);
    };
    let mut description = vec![0; size as usize];
    file.seek(SeekFrom::Start(start))?;
    file.read_exact(&mut description)?;
    let encrypted = whole(&mut &description[..]).and_then(|()| encrypted(&mut &description[..]));
    Ok(encrypted.map(|encrypted| Footer { encrypted }))
}

/// The columns whose chunk has a key to its encryption, in a footer that is not malformed.
fn encrypted(bytes: &mut &[u8]) -> Option<BTreeSet<usize>> {
    const ROW_GROUPS: i16 = 4;
    const COLUMNS: i16 = 1;
    const CRYPTO_METADATA: i16 = 8;
    let mut found = BTreeSet::new();
    elements(bytes, ROW_GROUPS, &mut |_, bytes| {
        elements(bytes, COLUMNS, &mut |column, bytes| {
            fields(bytes, |number, stated, bytes| {
                if number == CRYPTO_METADATA {
                    found.insert(column);
                }
                value(stated, DEPTH, bytes)
            })
        })
    })?;
    Some(found)
}

/// Skips a struct: `each` skips the elements of the list that is its field `wanted`.
fn elements(
    bytes: &mut &[u8],
    wanted: i16,
    each: &mut dyn FnMut(usize, &mut &[u8]) -> Option<()>,
) -> Option<()> {
    fields(bytes, |number, stated, bytes| match number == wanted {
        true => {
            let (count, _) = list(bytes)?;
            (0..count).try_for_each(|place| each(place, bytes))
        }
        false => value(stated, DEPTH, bytes),
    })
}

/// Skips the footer; none if it is malformed or claims too much.
fn whole(bytes: &mut &[u8]) -> Option<()> {
    known(&FILE_META_DATA, code::STRUCT, 0, bytes)
}

/// The length of the page header with which `bytes` begin; none if it is malformed, or longer.
pub(super) fn page_header(bytes: &[u8]) -> Option<usize> {
    let mut rest = bytes;
    known(&PAGE_HEADER, code::STRUCT, 0, &mut rest)?;
    Some(bytes.len() - rest.len())
}

/// Skips a value, which is to have the type `known`, of the type `stated`, in an element of a list
/// of `count`.
fn known(known: &Type, stated: u8, count: usize, bytes: &mut &[u8]) -> Option<()> {
    let truth = matches!(known, Bool) && stated == code::FALSE;
    if stated != known.code() && !truth {
        return None;
    }
    match known {
        Members => {
            // The library also takes the low half.
            let members = zigzag(varint(bytes)?)? as i32;
            (i64::from(members) <= count as i64).then_some(())
        }
        List(of) => {
            let (count, stated) = list(bytes)?;
            (0..count).try_for_each(|_| self::known(of, stated, count, bytes))
        }
        Struct(types) => fields(bytes, |number, stated, bytes| {
            match types.iter().find(|field| field.0 == number) {
                Some((_, of)) => self::known(of, stated, count, bytes),
                None => value(stated, DEPTH, bytes),
            }
        }),
        _ => value(stated, DEPTH, bytes),
    }
}

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

/// Skips a value of the type stated in a field, at most `depth` structs and lists deep.
fn value(kind: u8, depth: u8, bytes: &mut &[u8]) -> Option<()> {
    let deeper = depth.checked_sub(1)?;
    match kind {
        code::TRUE | code::FALSE => Some(()),
        code::I8 => take(bytes, 1).map(drop),
        code::I16 | code::I32 | code::I64 => varint(bytes).map(drop),
        code::DOUBLE => take(bytes, 8).map(drop),
        code::BINARY => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            take(bytes, length).map(drop)
        }
        code::LIST | code::SET => {
            let (count, kind) = list(bytes)?;
            (0..count).try_for_each(|_| element(kind, deeper, bytes))
        }
        code::MAP => {
            let count = varint(bytes)?;
            let kinds = if count == 0 { 0 } else { take(bytes, 1)?[0] };
            (0..count).try_for_each(|_| {
                element(kinds >> 4, deeper, bytes)?;
                element(kinds & 0xf, deeper, bytes)
            })
        }
        code::STRUCT => fields(bytes, |_, kind, bytes| value(kind, deeper, bytes)),
        _ => None,
    }
}

/// Skips an element of an unknown list or map; a boolean is none.
fn element(kind: u8, depth: u8, bytes: &mut &[u8]) -> Option<()> {
    match kind {
        code::TRUE | code::FALSE => None,
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
        [&[0x15, 4, 0x19, 0x3c], &root[..], &column, &column, &[0x16, 8, 0]].concat()
    }

    #[test]
    fn no_group_has_more_members_than_there_are() {
        for members in [0, 1, 2, 3] {
            assert!(is_whole(&description(&[2 * members])), "{members}");
        }
        assert!(is_whole(&description(&[1])), "below zero: the library reports the error");
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

    /// The fields of all structs in a type.
    fn structs(of: &'static Type) -> Vec<&'static [(i16, Type)]> {
        match of {
            List(of) => structs(of),
            Struct(types) => {
                let inner = types.iter().flat_map(|(_, of)| structs(of));
                inner.chain([*types]).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The library reads what it knows by their numbers alone, of 16 bits.
    #[test]
    fn known_fields_have_their_types() {
        let structs = [structs(&FILE_META_DATA), structs(&PAGE_HEADER)].concat();
        assert!(structs.len() > 30);
        for types in structs {
            for (number, of) in types {
                // With zeros, a value of each type is whole.
                for stated in code::TRUE..=code::STRUCT {
                    let field = [&[stated, 2 * *number as u8][..], &[0; 9]].concat();
                    let read = known(&Struct(types), code::STRUCT, 0, &mut &field[..]);
                    let truth = [of.code(), stated] == [code::TRUE, code::FALSE];
                    assert_eq!(read.is_some(), stated == of.code() || truth, "{number} {stated}");
                }
            }
        }
        // 5 + 2^16, in zigzag.
        assert!(!is_whole(&with(&[0x05, 0x8a, 0x80, 0x08, 4])));
        assert!(is_whole(&with(&[0x05, 0x8a, 0x80, 0x02, 4])));
    }

    /// A footer with the statistics of a column of a row group.
    #[test]
    fn row_groups_have_the_types_of_the_format() {
        let statistics = |field: &[u8]| {
            let path: [&[u8]; 4] = [&[0x49, 0x1c], &[0x19, 0x1c], &[0x3c], &[0xcc]];
            is_whole(&[&path.concat(), field, &[0; 5]].concat())
        };
        assert!(statistics(&[0x18, 1, b'm']));
        // A number that the library reads as bytes, which hide another schema.
        assert!(!statistics(&[0x16, 1, b'm']));
        // Field 33, which nobody knows.
        assert!(statistics(&[0x06, 66, 1]));
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
            assert!(!is_whole(&with(&[&[0x6c], logical].concat())), "{logical:?}");
        }
    }

    #[test]
    fn a_page_header_has_a_length() {
        // A page of one value with the largest one.
        let header = [
            &[0x15, 0, 0x15, 8, 0x15, 8][..],
            &[0x2c, 0x15, 2, 0x15, 0, 0x15, 6, 0x15, 6],
            &[0x1c, 0x18, 1, b'm', 0, 0, 0],
        ]
        .concat();
        assert_eq!(page_header(&header), Some(header.len()));
        assert_eq!(page_header(&[&header[..], b"page"].concat()), Some(header.len()));
        for end in 0..header.len() {
            assert_eq!(page_header(&header[..end]), None, "{end}");
        }
        // Field 33: a list of 2^31 - 1 numbers with a point.
        let list = [0x09, 66, 0xf7, 0xff, 0xff, 0xff, 0xff, 0x07];
        let endless = [&header[..header.len() - 1], &list].concat();
        assert_eq!(page_header(&[&endless[..], &[0; 1000]].concat()), None);
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
        let fields: [&[u8]; 11] = [
            &[0x11],                                                           // true
            &[0x12],                                                           // false
            &[0x13, 9],                                                        // 8 bits
            &[0x14, 0x80, 1],                                                  // 16 bits
            &[0x16, 0xff, 0xff, 0xff, 1],                                      // 64 bits
            &[0x17, 0, 0, 0, 0, 0, 0, 0, 0], // a number with a point
            &[0x18, 3, b'a', b'b', b'c'],    // bytes
            &[0x1a, 0xf3, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], // a set of 16
            &[0x1b, 1, 0x85, 1, b'k', 7],    // a map of bytes to 32 bits
            &[0x1b, 0],                      // an empty map
            &[0x0c, 200, 1, 0x15, 1, 0],     // a struct, its number in full
        ];
        // From field 33 on, none of which is known.
        let all = [&[0x01, 64][..], &fields.concat(), &[0]].concat();
        assert!(is_whole(&all));
        assert!(!is_whole(&[0x3d, 0]), "an unknown type");
        assert!(!is_whole(&[0x09, 66, 0xf3, 0xff, 0xff, 0xff, 0xff, 0x0f, 0]), "a list of nothing");
        for truths in [&[0x19, 0x21, 1, 2][..], &[0x1b, 1, 0x15, 1, 7]] {
            let field = [&[0x01, 64], truths, &[0]].concat();
            assert!(!is_whole(&field), "booleans in a list or map");
        }
        // A list in a list in a list ..
        let deep = |n: usize| [&[0x09, 66][..], &vec![0x19; n], &[0x03, 0]].concat();
        assert!(is_whole(&deep(10)) && !is_whole(&deep(100)));
    }
}
