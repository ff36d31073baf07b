//! Files with the start of Parquet that are something else, truncated, damaged, or unsupported.

use std::error::Error as _;

use parquet::basic::{Compression, Encoding};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use volery_tables::{EmptyKeys, Problem};

use super::parquet::{mixed, store};
use super::table::{required, strings, table};
use crate::{Folder, Reading, by, complaint, read, read_as};

#[test]
fn files_that_are_not_whole() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &mixed(2503), Compression::SNAPPY);
    let whole = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| complaint(read_as("rows.parquet", bytes, &by(&["id"]))).0;
    assert_eq!(said(b""), "is empty");
    assert_eq!(said(b"PA"), "is not a Parquet file");
    assert_eq!(said(b"id,name\nsecret,x\n"), "is not a Parquet file");
    let cut = "is cut short: it begins as a Parquet file and does not end as one";
    for n in [4, 5, 8, 11, 12, 1000, whole.len() / 2, whole.len() - 1] {
        assert_eq!(said(&whole[..n]), cut, "{n}");
    }
    let mut encrypted = whole.clone();
    encrypted[..4].copy_from_slice(b"PARE");
    assert_eq!(said(&encrypted), "is an encrypted Parquet file");
    // The middle is missing, and then is all zeros.
    let middle = said(&[&whole[..4], &whole[whole.len() - 30..]].concat());
    assert_eq!(middle, "is damaged: its footer is malformed");
    let mut zeroed = whole.clone();
    zeroed[4..2000].fill(0);
    let page = r#"is damaged in column "id" of row group 1: a page header of it is malformed"#;
    assert_eq!(said(&zeroed), page);
    // A page of a payload column is found where the keys are read: before there is a peer.
    let payload = Reading { value: Some("id".to_owned()), ..by(&["name"]) };
    let skip = Reading { empty_keys: EmptyKeys::Skip, ..payload };
    assert_eq!(complaint(read_as("rows.parquet", &zeroed, &skip)).0, page);
    for option in [
        Reading { delimiter: Some(b';'), ..by(&["id"]) },
        Reading { encoding: Some("utf-8".parse().unwrap()), ..by(&["id"]) },
    ] {
        let (message, hint) = complaint(read(&path, &option));
        assert!(message.starts_with("a Parquet file has no "), "{message}");
        assert!(hint.starts_with("leave out --"), "{hint}");
    }
}

#[test]
fn compressions_that_are_not_supported() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &[strings("k", ["a"])], Compression::SNAPPY);
    let mut bytes = std::fs::read(&path).unwrap();
    // In the metadata of the column, its compression follows its path; 4 is Brotli, as zigzag 8.
    let place = bytes.windows(6).position(|w| w == b"\x19\x18\x01k\x15\x02").unwrap();
    for (code, name) in [(8, "brotli"), (6, "lzo")] {
        bytes[place + 5] = code;
        let (message, hint) = complaint(read_as("rows.parquet", &bytes, &by(&["k"])));
        assert_eq!(
            message,
            format!(r#"column "k" is compressed with {name}, which is not supported"#)
        );
        assert!(hint.contains("snappy, zstd, gzip or lz4"));
    }
}

/// A file of one column of distinct values, whose pages have headers without statistics.
fn one_column(text: bool, encoding: Option<Encoding>, compression: Compression) -> Vec<u8> {
    let properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_dictionary_enabled(encoding.is_none())
        .set_encoding(encoding.unwrap_or(Encoding::PLAIN))
        .set_compression(compression);
    let column = match text {
        true => strings("k", (0..50).map(|i| format!("key {i}"))),
        false => required("int64 k", (0..50).collect::<Vec<i64>>()),
    };
    table(&[column], 1000, properties.build())
}

/// The largest 32-bit number.
const HUGE: [u8; 5] = [0xfe, 0xff, 0xff, 0xff, 0x0f];

/// Replaces the number of `width` bytes at `at` by [`HUGE`], and removes bytes after `until`, so
/// that nothing else moves.
fn inflate(file: &mut Vec<u8>, at: usize, width: usize, until: usize) {
    file.splice(at..at + width, HUGE);
    file.drain(until..until + HUGE.len() - width);
}

/// The error for a file that claims more than it can hold.
fn claim(file: &[u8]) -> String {
    let error = read_as("rows.parquet", file, &by(&["k"])).unwrap_err();
    assert!(matches!(error.problem(), Problem::Damaged { after: 0, .. }), "{error}");
    error.source().unwrap().to_string()
}

#[test]
fn claims_are_refused_before_memory_is_taken() {
    // The first page follows the four letters: its type, its size, and its size in the file, in two
    // bytes each.
    let header = |file: &[u8]| {
        assert_eq!((file[4], file[6], file[9]), (0x15, 0x15, 0x15));
        let size = |at: usize| (usize::from(file[at] & 0x7f) | usize::from(file[at + 1]) << 7) / 2;
        (size(7), size(10))
    };

    let plain = one_column(false, Some(Encoding::PLAIN), Compression::SNAPPY);
    let (size, stored) = header(&plain);
    assert_eq!(size, 400);
    let mut file = plain.clone();
    inflate(&mut file, 7, 2, 40);
    // The next field follows in place of the size, and shortens the page by the growth of its
    // header.
    let shorter = 2 * (stored - 3);
    file[13..15].copy_from_slice(&[shorter as u8 | 0x80, (shorter >> 7) as u8]);
    assert!(claim(&file).contains("claims far more bytes"), "{}", claim(&file));

    // In the header of a dictionary its own number of values follows: here 50 of 8 bytes.
    let mut file = one_column(false, None, Compression::UNCOMPRESSED);
    assert_eq!(header(&file), (400, 400));
    assert_eq!(file[12..15], [0x4c, 0x15, 100]);
    inflate(&mut file, 14, 1, 100);
    let shorter = [((2 * 396) & 0x7f) as u8 | 0x80, ((2 * 396) >> 7) as u8];
    file[7..9].copy_from_slice(&shorter);
    file[10..12].copy_from_slice(&shorter);
    assert!(claim(&file).contains("more values than it has"), "{}", claim(&file));

    for encoding in [Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY] {
        let whole = one_column(true, Some(encoding), Compression::UNCOMPRESSED);
        let lists: Vec<usize> = whole
            .windows(4)
            .enumerate()
            .filter_map(|(i, list)| (list == b"\x80\x01\x04\x32").then_some(i))
            .collect();
        let expected = if encoding == Encoding::DELTA_BYTE_ARRAY { 2 } else { 1 };
        assert_eq!(lists.len(), expected, "{encoding}");
        for list in lists {
            let mut file = whole.clone();
            let (size, _) = header(&file);
            // The strings themselves are at the end of the page.
            inflate(&mut file, list + 3, 1, size);
            assert!(claim(&file).contains("more strings than it has"), "{}", claim(&file));
        }
    }
}

#[test]
fn a_group_that_claims_members_beyond_all_columns() {
    let whole = one_column(false, None, Compression::SNAPPY);
    let root = whole.windows(8).position(|w| w == b"schema\x15\x02");
    let members = root.unwrap() + 7;
    let mut file = whole.clone();
    file.splice(members..members + 1, HUGE);
    let tail = file.len() - 8;
    let length = u32::from_le_bytes(file[tail..tail + 4].try_into().unwrap()) + 4;
    file[tail..tail + 4].copy_from_slice(&length.to_le_bytes());
    assert_eq!(claim(&file), "its footer is malformed");
}

#[test]
fn every_encoding_of_strings_can_be_read() {
    let expected =
        read_as("rows.parquet", one_column(true, None, Compression::SNAPPY), &by(&["k"]));
    let expected = expected.unwrap();
    for encoding in [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY]
    {
        let file = one_column(true, Some(encoding), Compression::SNAPPY);
        let records = read_as("rows.parquet", file, &by(&["k"])).unwrap();
        assert_eq!(records.keys(), expected.keys(), "{encoding}");
    }
}
