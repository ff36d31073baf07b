//! Parquet files in and out.

use std::path::PathBuf;

use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::file::properties::WriterProperties;
use parquet::record::Field;
use volery_tables::{EmptyKeys, Format, Problem};

use crate::table::{Column, lists, load, optional, required, strings, table};
use crate::{Folder, Reading, by, complaint, matches, read, read_as, texts};

pub(super) fn store(
    folder: &Folder,
    name: &str,
    columns: &[Column],
    compression: Compression,
) -> PathBuf {
    let properties = WriterProperties::builder().set_compression(compression);
    folder.write(name, table(columns, 1000, properties.build()))
}

#[test]
fn every_integer_type_is_the_same_integer() {
    let expected = read_as("rows.csv", "id\n+1\n0100\n", &by(&["id:integer"])).unwrap();
    let declared = [
        "int32 a (INTEGER(8,true))",
        "int32 b (INTEGER(16,true))",
        "int32 c",
        "int32 d (INTEGER(8,false))",
        "int32 e (INTEGER(16,false))",
        "int32 f (INTEGER(32,false))",
        "int32 g (UINT_16)",
        "int64 h",
        "int64 i (INTEGER(64,false))",
        "int64 j (UINT_64)",
    ];
    let columns = declared.map(|declared| match &declared[..5] {
        "int32" => required(declared, vec![1_i32, 100]),
        _ => required(declared, vec![1_i64, 100]),
    });
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::SNAPPY);
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];
    for name in names {
        let records = read(&path, &by(&[name])).unwrap();
        assert_eq!(records.key_description, "integer", "{name}");
        assert_eq!(records.keys(), expected.keys(), "{name}");
        let records = read(&path, &by(&[&format!("{name}:text")])).unwrap();
        assert_eq!(records.keys(), texts(["1", "100"]), "{name}");
    }
}

#[test]
fn every_string_type_is_the_same_text() {
    let plain = ["ab", "a string that is longer than a view holds"];
    let bytes = || plain.map(ByteArray::from).to_vec();
    let columns = [
        strings("plain", plain),
        optional("binary old (UTF8)", bytes().into_iter().map(Some)),
        required("binary json (JSON)", bytes()),
        required("binary binary", bytes()),
        required("binary enum (ENUM)", bytes()),
        required("int32 days (DATE)", vec![0_i32, -1]),
        required("boolean flags", vec![true, false]),
    ];
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::UNCOMPRESSED);
    let text =
        "t,d,b\nab,1970-01-01,TRUE\na string that is longer than a view holds,1969-12-31,false\n";
    let of_csv = |key: &str| read_as("rows.csv", text, &by(&[key])).unwrap();
    for name in ["plain", "old", "json", "binary:text", "enum:text"] {
        let records = read(&path, &by(&[name])).unwrap();
        assert_eq!(records.key_description, "text", "{name}");
        assert_eq!(records.keys(), of_csv("t").keys(), "{name}");
    }
    for (ours, theirs) in [
        ("binary", "t:binary"),
        ("enum", "t:binary"),
        ("plain:binary", "t:binary"),
        ("days", "d:date"),
        ("flags", "b:boolean"),
        ("days:text", "d"),
    ] {
        assert_eq!(read(&path, &by(&[ours])).unwrap().keys(), of_csv(theirs).keys(), "{ours}");
    }
    assert_eq!(read(&path, &by(&["flags:text"])).unwrap().keys(), texts(["true", "false"]));
    let (message, hint) = complaint(read(&path, &by(&["days:integer"])));
    assert_eq!(message, r#"column "days" is date and cannot be read as integer"#);
    assert_eq!(hint, r#""days":text reads it as text; the other party must do the same"#);
    let (message, _) = complaint(read(&path, &by(&["plain:integer"])));
    assert_eq!(message, r#"column "plain" of row 1 is not an integer"#);
}

#[test]
fn types_that_are_no_keys_are_refused() {
    let fixed: Vec<FixedLenByteArray> = vec![ByteArray::from(vec![1; 12]).into()];
    let columns = [
        required("double float", vec![1.5_f64]),
        required("int64 time (TIME(MICROS,true))", vec![1_i64]),
        required("fixed_len_byte_array(12) interval (INTERVAL)", fixed),
        lists("list", &[Some(&[Some(1)])]),
    ];
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::SNAPPY);
    for name in ["float", "time", "interval", "list", "float:text"] {
        let (message, hint) = complaint(read(&path, &by(&[name])));
        assert!(message.contains(name.trim_end_matches(":text")), "{message}");
        assert!(message.ends_with("which cannot be a key"), "{message}");
        assert!(hint.contains("text, binary, integer, decimal, boolean, date"));
    }
}

#[test]
fn nulls_and_empty_strings_are_no_keys() {
    let ids = [Some("a"), None, Some(""), Some("b")];
    let columns = [
        optional("binary id (STRING)", ids.map(|id| id.map(ByteArray::from))),
        optional("int32 n", [Some(1), Some(2), Some(3), None]),
    ];
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::SNAPPY);
    let (message, _) = complaint(read(&path, &by(&["id"])));
    assert_eq!(message, r#"row 2 has no key: column "id" is empty"#);
    let (message, _) = complaint(read(&path, &by(&["n"])));
    assert_eq!(message, r#"row 4 has no key: column "n" is empty"#);
    let skip = Reading { empty_keys: EmptyKeys::Skip, value: Some("n".to_owned()), ..by(&["id"]) };
    let records = read(&path, &skip).unwrap();
    assert_eq!((records.row_of(0), records.row_of(1)), (1, 4));
    assert_eq!(records.payload[0], [1, 1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(records.payload[3], [0]);
}

/// Rows of several types.
pub(super) fn mixed(n: i32) -> Vec<Column> {
    let text = |text: String| ByteArray::from(text.into_bytes());
    let names = (0..n).map(|i| (i % 3 > 0).then(|| text(format!("n\"{i}"))));
    let bytes = (0..n).map(|i| ByteArray::from(vec![i as u8, 255]));
    let times = (0..n).map(|i| i64::from(i) * 1_000_000);
    vec![
        required("int32 id", (0..n).collect::<Vec<_>>()),
        optional("binary name (STRING)", names),
        strings("word", (0..n).map(|i| format!("word {}", i % 7))),
        required("double score", (0..n).map(|i| f64::from(i) / 4.0).collect::<Vec<_>>()),
        required("int64 at (TIMESTAMP(MICROS,true))", times.collect::<Vec<_>>()),
        required("binary raw", bytes.collect::<Vec<_>>()),
        optional("boolean flag", (0..n).map(|i| (i % 5 > 0).then_some(i % 2 == 0))),
    ]
}

#[test]
fn matching_rows_keep_their_types() {
    let columns = mixed(2503);
    for (i, compression) in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::GZIP(GzipLevel::default()),
        Compression::ZSTD(ZstdLevel::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
    ]
    .into_iter()
    .enumerate()
    {
        let folder = Folder::new();
        let path = store(&folder, "rows.parquet", &columns, compression);
        let records = read(&path, &by(&["id"])).unwrap();
        assert_eq!(records.counts.rules[0].keys, 2503);
        let items: Vec<u32> = (0..2503).filter(|item| item % 5 == i as u32 % 5).collect();
        let written = matches(&records, &items, Format::Parquet).unwrap();
        let copy = load(&folder.write("copy.parquet", written));
        let (declared, rows) = load(&path);
        let expected = items.iter().map(|&item| rows[item as usize].clone());
        assert_eq!(copy, (declared.clone(), expected.collect()), "{compression:?}");
        let nothing = matches(&records, &[], Format::Parquet).unwrap();
        assert_eq!(load(&folder.write("none.parquet", nothing)), (declared, vec![]));
    }
}

#[test]
fn text_becomes_parquet() {
    let folder = Folder::new();
    let text: String = (0..20_011).map(|i| format!("{i},\"é,{}\"\n", i * 3)).collect();
    let path = folder.write("rows.csv", format!("id,a\n{text}"));
    let records = read(&path, &by(&["id"])).unwrap();
    let items: Vec<u32> = (0..20_011).filter(|item| item % 2 == 0).collect();
    let written = matches(&records, &items, Format::Parquet).unwrap();
    let (declared, rows) = load(&folder.write("copy.parquet", written));
    let string = |name: &str| format!("REQUIRED BYTE_ARRAY {name} (STRING);");
    assert_eq!(declared, ["id", "a"].map(string));
    assert_eq!(rows.len(), items.len());
    for (row, item) in rows.iter().zip(&items) {
        let fields = row.get_column_iter().map(|(_, field)| match field {
            Field::Str(text) => text.as_bytes(),
            other => panic!("{other}"),
        });
        let (id, field) = (item.to_string(), format!("é,{}", item * 3));
        let expected = [id.as_bytes(), field.as_bytes()];
        assert_eq!(fields.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn nested_columns_pass_but_not_into_text() {
    let elements: [&[Option<i32>]; 3] = [&[Some(1), None, Some(2)], &[], &[Some(3)]];
    let lists = lists("list", &[Some(elements[0]), None, Some(elements[1]), Some(elements[2])]);
    let columns = [strings("id", ["a", "b", "c", "d"]), lists];
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::SNAPPY);
    let records = read(&path, &by(&["id"])).unwrap();
    let (declared, rows) = load(&path);
    for items in [&[0, 1, 2, 3][..], &[1, 3], &[0, 2], &[2]] {
        let copy = matches(&records, items, Format::Parquet).unwrap();
        let expected = items.iter().map(|&item| rows[item as usize].clone());
        let copy = load(&folder.write("copy.parquet", copy));
        assert_eq!(copy, (declared.clone(), expected.collect()));
    }
    let error = matches(&records, &[0], Format::Csv).unwrap_err();
    assert!(matches!(error.problem(), Problem::NoText { .. }), "{error}");
    let value = Reading { value: Some("list".to_owned()), ..by(&["id"]) };
    let (message, _) = complaint(read(&path, &value));
    assert_eq!(message, r#"column "list" is of type list, which cannot be sent"#);
}

#[test]
fn few_rows_of_many() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &mixed(20_011), Compression::SNAPPY);
    let records = read(&path, &by(&["id"])).unwrap();
    let (declared, rows) = load(&path);
    let far: [&[u32]; 5] =
        [&[0], &[20_010], &[999, 1000], &[1024, 5000, 5001, 19_999], &[7, 17_000]];
    for items in far {
        let copy = matches(&records, items, Format::Parquet).unwrap();
        let expected = items.iter().map(|&item| rows[item as usize].clone());
        let copy = load(&folder.write("copy.parquet", copy));
        assert_eq!(copy, (declared.clone(), expected.collect()), "{items:?}");
    }
}

#[test]
fn text_is_utf_8() {
    let bytes = |bytes: &[&[u8]]| bytes.iter().map(|&b| b.into()).collect::<Vec<ByteArray>>();
    let columns = [
        required("int32 id", vec![1_i32, 2, 3]),
        required("binary raw (STRING)", bytes(&[b"a", b"\xff", b"c"])),
    ];
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &columns, Compression::SNAPPY);
    let error = read(&path, &by(&["raw"])).unwrap_err();
    assert!(matches!(error.problem(), Problem::Damaged { after: 0, .. }), "{error}");
    let records = read(&path, &by(&["id"])).unwrap();
    for format in [Format::Csv, Format::Parquet] {
        let error = matches(&records, &[1], format).unwrap_err();
        assert!(matches!(error.problem(), Problem::Damaged { .. }), "{error}");
    }
}
