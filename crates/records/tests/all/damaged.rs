//! Files that begin as Parquet and are something else, cut short, damaged, or of a kind that cannot be read.

use parquet::basic::Compression;
use volery_records::{EmptyKeys, Format, Reading};

use super::parquet::{mixed, store, strings, table};
use crate::{Folder, by, complaint, matches, read, read_as};

#[test]
fn files_that_are_not_whole() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &mixed(2503), Compression::SNAPPY);
    let whole = std::fs::read(&path).unwrap();
    let said = |bytes: &[u8]| complaint(read_as("rows.parquet", bytes, &by(&["id"]))).0;
    assert_eq!(said(b""), "is empty: there is no header");
    assert_eq!(said(b"PA"), "is not a Parquet file");
    assert_eq!(said(b"id,name\nsecret,x\n"), "is not a Parquet file");
    let cut = "is cut short: it begins as a Parquet file and does not end as one";
    for n in [4, 5, 8, 11, 12, 1000, whole.len() / 2, whole.len() - 1] {
        assert_eq!(said(&whole[..n]), cut, "{n}");
    }
    let mut encrypted = whole.clone();
    encrypted[..4].copy_from_slice(b"PARE");
    assert_eq!(said(&encrypted), "is an encrypted Parquet file");
    // The middle is missing, and then is full of nothing.
    let damaged =
        "is damaged, or uses a part of the Parquet format that is not supported, behind row 0";
    assert_eq!(
        said(&[&whole[..4], &whole[whole.len() - 30..]].concat()),
        damaged
    );
    let mut zeroed = whole.clone();
    zeroed[4..2000].fill(0);
    assert_eq!(said(&zeroed), damaged);
    for option in [
        Reading {
            delimiter: Some(b';'),
            ..by(&["id"])
        },
        Reading {
            encoding: Some("utf-8".parse().unwrap()),
            ..by(&["id"])
        },
    ] {
        let (message, hint) = complaint(read(&path, &option));
        assert!(message.starts_with("a Parquet file has no "), "{message}");
        assert!(hint.starts_with("leave out --"), "{hint}");
    }
}

#[test]
fn compressions_that_are_not_supported() {
    let folder = Folder::new();
    let path = store(
        &folder,
        "rows.parquet",
        &table(vec![("k", strings(&["a"]))]),
        Compression::SNAPPY,
    );
    let mut bytes = std::fs::read(&path).unwrap();
    // In the description of the column, its path is followed by its compression; 4 is Brotli, as zigzag 8.
    let place = bytes
        .windows(6)
        .position(|w| w == b"\x19\x18\x01k\x15\x02")
        .unwrap();
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

#[test]
fn damaged_bytes_never_make_it_panic() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &mixed(50), Compression::SNAPPY);
    let whole = std::fs::read(&path).unwrap();
    let mut reading = by(&["word", "id", "name"]);
    reading.empty_keys = EmptyKeys::Skip;
    reading.value = Some("score".to_owned());
    for i in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[i] ^= [1, 0x80, 0xff][i % 3];
        let path = folder.write("damaged.parquet", bytes);
        if let Ok(records) = read(&path, &reading) {
            let items: Vec<u32> = (0..records.keys().len() as u32).collect();
            let format = [Format::Csv, Format::Parquet][i / 3 % 2];
            let _ = matches(&records, &items, format, None);
        }
    }
}
