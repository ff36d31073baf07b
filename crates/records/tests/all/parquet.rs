//! Parquet files in and out.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::{StringDictionaryBuilder, StringViewBuilder};
use arrow_array::types::{Int8Type, Int32Type};
use arrow_array::*;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, GzipLevel, ZstdLevel};
use parquet::file::properties::WriterProperties;
use volery_records::{EmptyKeys, Extra, Format, KeyType, Problem, Reading};

use crate::{Folder, by, complaint, matches, read, read_as, texts};

pub(super) type Columns = Vec<(&'static str, ArrayRef)>;

pub(super) fn table(columns: Columns) -> RecordBatch {
    let fields = columns
        .iter()
        .map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Schema::new(fields.collect::<Vec<_>>());
    RecordBatch::try_new(
        Arc::new(schema),
        columns.into_iter().map(|(_, c)| c).collect(),
    )
    .unwrap()
}

pub(super) fn store(
    folder: &Folder,
    name: &str,
    batch: &RecordBatch,
    compression: Compression,
) -> PathBuf {
    let path = folder.path(name);
    let properties = WriterProperties::builder()
        .set_compression(compression)
        .set_max_row_group_row_count(Some(1000))
        .build();
    let file = File::create(&path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties)).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
    path
}

fn load(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<_> = reader
        .build()
        .unwrap()
        .map(|batch| batch.unwrap())
        .collect();
    arrow_select::concat::concat_batches(&schema, &batches).unwrap()
}

pub(super) fn strings(values: &[&str]) -> ArrayRef {
    Arc::new(StringArray::from_iter_values(values))
}

#[test]
fn every_integer_type_is_the_same_integer() {
    let expected = read_as("rows.csv", "id\n+1\n0100\n", &by(&["id:integer"])).unwrap();
    let columns: Columns = vec![
        ("a", Arc::new(Int8Array::from(vec![1, 100]))),
        ("b", Arc::new(Int16Array::from(vec![1, 100]))),
        ("c", Arc::new(Int32Array::from(vec![1, 100]))),
        ("d", Arc::new(Int64Array::from(vec![1, 100]))),
        ("e", Arc::new(UInt8Array::from(vec![1, 100]))),
        ("f", Arc::new(UInt16Array::from(vec![1, 100]))),
        ("g", Arc::new(UInt32Array::from(vec![1, 100]))),
        ("h", Arc::new(UInt64Array::from(vec![1, 100]))),
    ];
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let folder = Folder::new();
    let path = store(
        &folder,
        "rows.parquet",
        &table(columns),
        Compression::SNAPPY,
    );
    for name in names {
        let records = read(&path, &by(&[name])).unwrap();
        assert_eq!(records.key_types(), [KeyType::Integer], "{name}");
        assert_eq!(records.keys(), expected.keys(), "{name}");
        let records = read(&path, &by(&[&format!("{name}:text")])).unwrap();
        assert_eq!(texts(&records), ["1", "100"], "{name}");
    }
    let extremes: Columns = vec![
        ("i", Arc::new(Int64Array::from(vec![i64::MIN, i64::MAX]))),
        ("u", Arc::new(UInt64Array::from(vec![u64::MIN, u64::MAX]))),
    ];
    let path = store(
        &folder,
        "extremes.parquet",
        &table(extremes),
        Compression::SNAPPY,
    );
    let written = |name| texts(&read(&path, &by(&[name])).unwrap());
    assert_eq!(
        written("i"),
        ["-9223372036854775808", "9223372036854775807"]
    );
    assert_eq!(written("u"), ["0", "18446744073709551615"]);
}

#[test]
fn every_string_type_is_the_same_text() {
    let mut views = StringViewBuilder::new();
    let plain = ["ab", "a string that is longer than a view holds"];
    plain.iter().for_each(|s| views.append_value(s));
    let mut words = StringDictionaryBuilder::<Int8Type>::new();
    plain.iter().for_each(|s| words.append_value(s));
    let columns: Columns = vec![
        ("small", strings(&plain)),
        ("large", Arc::new(LargeStringArray::from_iter_values(plain))),
        ("view", Arc::new(views.finish())),
        ("dictionary", Arc::new(words.finish())),
        ("binary", Arc::new(BinaryArray::from_iter_values(plain))),
        ("days", Arc::new(Date32Array::from(vec![0, -1]))),
        ("flags", Arc::new(BooleanArray::from(vec![true, false]))),
    ];
    let folder = Folder::new();
    let path = store(
        &folder,
        "rows.parquet",
        &table(columns),
        Compression::UNCOMPRESSED,
    );
    let text =
        "t,d,b\nab,1970-01-01,TRUE\na string that is longer than a view holds,1969-12-31,false\n";
    let of_csv = |key: &str| read_as("rows.csv", text, &by(&[key])).unwrap();
    for name in ["small", "large", "view", "dictionary", "binary:text"] {
        let records = read(&path, &by(&[name])).unwrap();
        assert_eq!(records.key_types(), [KeyType::Text], "{name}");
        assert_eq!(records.keys(), of_csv("t").keys(), "{name}");
    }
    for (ours, theirs) in [
        ("binary", "t:binary"),
        ("small:binary", "t:binary"),
        ("days", "d:date"),
        ("flags", "b:boolean"),
        ("days:text", "d"),
    ] {
        assert_eq!(
            read(&path, &by(&[ours])).unwrap().keys(),
            of_csv(theirs).keys(),
            "{ours}"
        );
    }
    assert_eq!(
        texts(&read(&path, &by(&["flags:text"])).unwrap()),
        ["true", "false"]
    );
    let (message, hint) = complaint(read(&path, &by(&["days:integer"])));
    assert_eq!(
        message,
        r#"column "days" is date and cannot be read as integer"#
    );
    assert_eq!(
        hint,
        "days:text reads it as text; the other party must do the same"
    );
    let (message, _) = complaint(read(&path, &by(&["small:integer"])));
    assert_eq!(message, r#"column "small" of row 1 is not an integer"#);
}

#[test]
fn types_that_are_no_keys_are_refused() {
    let columns: Columns = vec![
        ("float", Arc::new(Float64Array::from(vec![1.5]))),
        ("decimal", Arc::new(Decimal128Array::from(vec![1]))),
        ("time", Arc::new(TimestampMillisecondArray::from(vec![1]))),
        (
            "list",
            Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>([Some([
                Some(1),
            ])])),
        ),
    ];
    let folder = Folder::new();
    let path = store(
        &folder,
        "rows.parquet",
        &table(columns),
        Compression::SNAPPY,
    );
    for name in ["float", "decimal", "time", "list", "float:text"] {
        let (message, hint) = complaint(read(&path, &by(&[name])));
        assert!(
            message.contains(name.trim_end_matches(":text")),
            "{message}"
        );
        assert!(message.ends_with("which cannot be a key"), "{message}");
        assert!(hint.contains("text, binary, integer, boolean or date"));
    }
}

#[test]
fn nulls_and_empty_strings_are_no_keys() {
    let columns: Columns = vec![
        (
            "id",
            Arc::new(StringArray::from(vec![
                Some("a"),
                None,
                Some(""),
                Some("b"),
            ])),
        ),
        (
            "n",
            Arc::new(Int32Array::from(vec![Some(1), Some(2), Some(3), None])),
        ),
    ];
    let folder = Folder::new();
    let path = store(
        &folder,
        "rows.parquet",
        &table(columns),
        Compression::SNAPPY,
    );
    let (message, _) = complaint(read(&path, &by(&["id"])));
    assert_eq!(message, r#"row 2 has no key: column "id" is empty"#);
    let (message, _) = complaint(read(&path, &by(&["n"])));
    assert_eq!(message, r#"row 4 has no key: column "n" is empty"#);
    let skip = Reading {
        empty_keys: EmptyKeys::Skip,
        value: Some("n".to_owned()),
        ..by(&["id"])
    };
    let records = read(&path, &skip).unwrap();
    assert_eq!((records.row_of(0), records.row_of(1)), (1, 4));
    assert_eq!(
        records.values().unwrap().iter().collect::<Vec<_>>(),
        [&b"1"[..], b""]
    );
}

/// Rows of several types and several row groups.
pub(super) fn mixed(n: i32) -> RecordBatch {
    let mut words = StringDictionaryBuilder::<Int32Type>::new();
    (0..n).for_each(|i| words.append_value(format!("word {}", i % 7)));
    let zoned =
        TimestampMicrosecondArray::from_iter_values((0..n).map(|i| i64::from(i) * 1_000_000));
    table(vec![
        ("id", Arc::new(Int32Array::from_iter_values(0..n))),
        (
            "name",
            Arc::new(StringArray::from_iter(
                (0..n).map(|i| (i % 3 > 0).then(|| format!("n\"{i}"))),
            )),
        ),
        ("word", Arc::new(words.finish())),
        (
            "score",
            Arc::new(Float64Array::from_iter_values(
                (0..n).map(|i| f64::from(i) / 4.0),
            )),
        ),
        ("at", Arc::new(zoned.with_timezone("Europe/Vienna"))),
        (
            "raw",
            Arc::new(BinaryArray::from_iter_values(
                (0..n).map(|i| [i as u8, 255]),
            )),
        ),
    ])
}

#[test]
fn matching_rows_keep_their_types() {
    let batch = mixed(2503);
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
        let path = store(&folder, "rows.parquet", &batch, compression);
        let records = read(&path, &by(&["id"])).unwrap();
        assert_eq!(records.counts().kept, 2503);
        let items: Vec<u32> = (0..2503).filter(|item| item % 5 == i as u32 % 5).collect();
        let written = matches(&records, &items, Format::Parquet, None).unwrap();
        let copy = load(&folder.write("copy.parquet", written));
        let expected =
            arrow_select::take::take_record_batch(&batch, &UInt32Array::from(items)).unwrap();
        assert_eq!(copy, expected, "{compression:?}");
        let nothing = matches(&records, &[], Format::Parquet, None).unwrap();
        assert_eq!(load(&folder.write("none.parquet", nothing)).num_rows(), 0);
    }
}

#[test]
fn parquet_becomes_text() {
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &mixed(9), Compression::SNAPPY);
    let records = read(&path, &by(&["id"])).unwrap();
    let value = |i: usize| if i == 0 { &b"v,0"[..] } else { b"v1" };
    let extra = Extra {
        name: "value",
        value: &value,
    };
    let written = matches(&records, &[0, 8], Format::Csv, Some(extra)).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "id,name,word,score,at,raw,value\n\
         0,,word 0,0.0,1970-01-01T00:00:00Z,00ff,\"v,0\"\n\
         8,\"n\"\"8\",word 1,2.0,1970-01-01T00:00:08Z,08ff,v1\n"
    );
    assert!(
        matches(&records, &[1], Format::Tsv, None)
            .unwrap()
            .starts_with(b"id\tname\t")
    );
    // A value is what the text would show, but strings of bytes are as they are.
    let values = |name: &str| {
        let reading = Reading {
            value: Some(name.to_owned()),
            ..by(&["id"])
        };
        read(&path, &reading)
            .unwrap()
            .values()
            .unwrap()
            .get(8)
            .to_vec()
    };
    assert_eq!(values("score"), b"2.0");
    assert_eq!(values("at"), b"1970-01-01T00:00:08Z");
    assert_eq!(values("word"), b"word 1");
    assert_eq!(values("raw"), b"\x08\xff");
}

#[test]
fn text_becomes_parquet() {
    let folder = Folder::new();
    let text: String = (0..20_011)
        .map(|i| format!("{i},\"é,{}\"\n", i * 3))
        .collect();
    let path = folder.write("rows.csv", format!("id,a\n{text}"));
    let records = read(&path, &by(&["id"])).unwrap();
    let items: Vec<u32> = (0..20_011).filter(|item| item % 2 == 0).collect();
    let value = |i: usize| {
        if i.is_multiple_of(2) {
            &b"even"[..]
        } else {
            b"odd"
        }
    };
    let extra = Extra {
        name: "value",
        value: &value,
    };
    let written = matches(&records, &items, Format::Parquet, Some(extra)).unwrap();
    let copy = load(&folder.write("copy.parquet", written));
    let ids: Vec<String> = items.iter().map(u32::to_string).collect();
    let fields: Vec<String> = items.iter().map(|i| format!("é,{}", i * 3)).collect();
    assert_eq!(
        copy.column(0),
        &(Arc::new(StringArray::from(ids)) as ArrayRef)
    );
    assert_eq!(
        copy.column(1),
        &(Arc::new(StringArray::from(fields)) as ArrayRef)
    );
    assert_eq!(copy.column(2).data_type(), &DataType::Utf8);
    assert_eq!(copy.schema().field(2).name(), "value");
    // Values that are not text make a column of bytes.
    let value = |_| &b"\xff"[..];
    let extra = Extra {
        name: "value",
        value: &value,
    };
    let written = matches(&records, &items[..3], Format::Parquet, Some(extra)).unwrap();
    let copy = load(&folder.write("copy.parquet", written));
    assert_eq!(copy.column(2).data_type(), &DataType::Binary);
    assert_eq!(copy.num_rows(), 3);
}

#[test]
fn nested_columns_pass_but_not_into_text() {
    let lists = ListArray::from_iter_primitive::<Int32Type, _, _>([Some([Some(1)]), None]);
    let batch = table(vec![
        ("id", strings(&["a", "b"])),
        ("list", Arc::new(lists)),
    ]);
    let folder = Folder::new();
    let path = store(&folder, "rows.parquet", &batch, Compression::SNAPPY);
    let records = read(&path, &by(&["id"])).unwrap();
    let copy = matches(&records, &[0, 1], Format::Parquet, None).unwrap();
    assert_eq!(load(&folder.write("copy.parquet", copy)), batch);
    let error = matches(&records, &[0], Format::Csv, None).unwrap_err();
    assert!(matches!(error.problem(), Problem::NoText { .. }), "{error}");
    for reading in [
        Reading {
            output: Some(Format::Csv),
            ..by(&["id"])
        },
        Reading {
            value: Some("list".to_owned()),
            ..by(&["id"])
        },
    ] {
        let (message, _) = complaint(read(&path, &reading));
        assert!(
            message.starts_with(r#"column "list" is of type List"#),
            "{message}"
        );
    }
}

#[test]
fn columns_are_found_or_named() {
    let folder = Folder::new();
    let twice = table(vec![("id", strings(&["a"])), ("id", strings(&["b"]))]);
    let path = store(&folder, "rows.parquet", &twice, Compression::SNAPPY);
    assert_eq!(
        complaint(read(&path, &by(&["id"]))).0,
        r#"columns 1 and 2 have the same name, "id""#
    );
    let path = store(&folder, "mixed.parquet", &mixed(0), Compression::SNAPPY);
    let (message, _) = complaint(read(&path, &by(&["key"])));
    assert!(
        message.starts_with(r#"there is no column "key"; the columns are "id", "name""#),
        "{message}"
    );
    assert!(read(&path, &by(&["word", "id"])).unwrap().keys().is_empty());
}
