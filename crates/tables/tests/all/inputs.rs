//! Tables of several files, of other formats, compressed, or in memory.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, DictionaryArray, Int32Array, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::basic::Compression;
use volery_tables::{
    Batch, Duplicates, EmptyKeys, Error, Format, Inputs, Packing, Problem, Records, Table,
};

use crate::parquet::{mixed, store};
use crate::table::strings;
use crate::{Folder, by, complaint, integers, item, matches, read, texts, write};

fn open(paths: &[PathBuf]) -> Result<Table, Error> {
    let paths = paths.to_vec();
    Table::open(&Inputs { paths, ..Inputs::default() })
}

fn records(table: &Table, keys: &[&str]) -> Result<Records, Error> {
    Records::read(table, &by(keys).reading(), &mut |_, _| {})
}

fn batches(table: &Table, columns: &[usize]) -> Vec<Batch> {
    let mut scan = table.scan(columns).unwrap();
    std::iter::from_fn(|| scan.next().unwrap()).collect()
}

#[test]
fn several_files_are_one_table() {
    let folder = Folder::new();
    let paths = [
        folder.write("b.csv", "id,a\n1,x\n\n2,y\n"),
        folder.write("empty.csv", "id,a\n"),
        folder.write("a.csv", "id,a\n3,z\n4,\n"),
    ];
    let table = open(&paths).unwrap();
    assert_eq!(table.paths(), paths);
    let found = records(&table, &["id"]).unwrap();
    assert_eq!(found.items(0), texts(["1", "2", "3", "4"]));
    assert_eq!(table.notices(), ["1 blank line left out"]);
    assert_eq!(table.place(1), (&*paths[0], 2));
    assert_eq!(table.place(2), (&*paths[2], 1));
    let written = write(&table, &|row| row % 2 == 1, Format::Csv, Packing::None).unwrap();
    assert_eq!(written, b"id,a\n2,y\n4,\n");
    // Errors count the rows of each file.
    let error = records(&table, &["a"]).unwrap_err();
    assert_eq!(error.file(), paths[2]);
    assert!(matches!(error.problem(), Problem::EmptyKey { row: 2, .. }));
    let more = folder.write("c.csv", "id,a\n7,x\n3,x\n");
    let table = open(&[paths[2].clone(), more.clone()]).unwrap();
    let (message, _) = complaint(records(&table, &["id"]));
    let first = paths[2].display();
    assert_eq!(message, format!("row 1 of {first} and row 2 have the same key"));
    let last = batches(&table, &[1]).pop().unwrap();
    assert_eq!(last.done_bytes, table.bytes());
}

#[test]
fn files_of_one_table_have_the_same_columns() {
    let folder = Folder::new();
    let first = folder.write("a.csv", "id,a\n1,x\n");
    for (text, found, expected) in [
        ("id,b\n", "column 2 is \"b\"", "it is \"a\""),
        ("id\n", "column 2 is missing", "it is \"a\""),
        ("id,a,b\n", "column 3 is \"b\"", "it is missing"),
    ] {
        let other = folder.write("b.csv", text);
        let (message, _) = complaint(open(&[first.clone(), other]));
        assert_eq!(message, format!("{found}; in {} {expected}", first.display()));
    }
    let table = store(&folder, "a.parquet", &mixed(3), Compression::SNAPPY);
    let (message, _) = complaint(open(&[first.clone(), table.clone()]));
    assert_eq!(message, format!("has another format than {}", first.display()));
    let other = store(&folder, "b.parquet", &[strings("id", ["a"])], Compression::SNAPPY);
    let (message, _) = complaint(open(&[table.clone(), other]));
    let expected = format!(
        "column 1 is \"id\" of type Utf8; in {} it is \"id\" of type Int32",
        table.display()
    );
    assert_eq!(message, expected);
    assert_eq!(complaint(open(&[first.clone(), first])).0, "is named twice");
    assert!(matches!(open(&[]).unwrap_err().problem(), Problem::NoInput));
}

#[test]
fn folders_and_patterns() {
    let folder = Folder::new();
    let put = |name: &str, id: &str| {
        folder.write(name, "");
        store(&folder, name, &[strings("id", [id])], Compression::SNAPPY);
    };
    put("t/year=2024/zone=b%2Fc/2.parquet", "two");
    put("t/year=2023/zone=__HIVE_DEFAULT_PARTITION__/1.parquet", "one");
    put("t/year=2024/zone=b%2Fc/1.PARQUET", "three");
    put("t/_temporary/9.parquet", "no");
    folder.write("t/_SUCCESS", "");
    folder.write("t/year=2024/notes.txt", "no");
    let table = open(&[folder.path("t")]).unwrap();
    let names: Vec<&String> = table.schema().fields().iter().map(|f| f.name()).collect();
    assert_eq!(names, ["id", "year", "zone"]);
    let found = records(&table, &["id"]).unwrap();
    assert_eq!(found.items(0), texts(["one", "three", "two"]));
    let written = write(&table, &|_| true, Format::Csv, Packing::None).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "id,year,zone\none,2023,\nthree,2024,b/c\ntwo,2024,b/c\n"
    );
    // The columns of the folders are keys, also alone.
    let mut years = by(&["year"]).reading();
    years.duplicates = Duplicates::Keep;
    let years = Records::read(&table, &years, &mut |_, _| {}).unwrap();
    assert_eq!(years.items(0), integers(["2023", "2024"]));
    let pattern = folder.path("t/year=*");
    let by_pattern = open(std::slice::from_ref(&pattern)).unwrap();
    assert_eq!(by_pattern.schema(), table.schema());
    assert_eq!(by_pattern.paths(), table.paths());

    folder.write("x[1].csv", "id\n1\n");
    folder.write("x2.csv", "id\n2\n");
    assert_eq!(open(&[folder.path("x*.csv")]).unwrap().paths().len(), 2);
    assert_eq!(open(&[folder.path("x[1].csv")]).unwrap().paths().len(), 1);
    let (message, _) = complaint(open(&[folder.path("y*.csv")]));
    assert!(message.starts_with("no such file"), "{message}");
    std::fs::create_dir(folder.path("none")).unwrap();
    let (message, _) = complaint(open(&[folder.path("none")]));
    assert_eq!(message, "is a folder without .parquet files");
}

#[test]
fn text_is_compressed_as_a_whole() {
    let folder = Folder::new();
    let text: String = (0..20_000).map(|i| format!("{i},x{i}\n")).collect();
    let plain = folder.write("a.csv", format!("id,a\n{text}"));
    let plain = read(&plain, &by(&["id"])).unwrap();
    for (name, packing) in [("a.csv.gz", Packing::Gzip), ("a.csv.zst", Packing::Zstd)] {
        let packed = write(&plain.table, &|_| true, Format::Csv, packing).unwrap();
        assert!(packed.len() < text.len() / 2);
        let path = folder.write(name, &packed);
        let again = read(&path, &by(&["id"])).unwrap();
        assert_eq!(again.keys(), plain.keys());
        let written = write(&again.table, &|_| true, Format::Csv, Packing::None).unwrap();
        assert_eq!(written, format!("id,a\n{text}").as_bytes());
        // Two files that are put together are one; a part of one is an error.
        if packing == Packing::Gzip {
            let mut writer = File::options().append(true).open(&path).unwrap();
            let more = folder.write("b.csv", "z,y\nz2,\n");
            let more = write(&open(&[more]).unwrap(), &|_| true, Format::Csv, packing).unwrap();
            writer.write_all(&more).unwrap();
            let again = read(&path, &by(&["id"])).unwrap();
            assert_eq!(again.keys()[20_000..], texts(["z", "z2"]));
        }
        for end in [packed.len() / 2, packed.len() - 1] {
            let path = folder.write(&format!("cut-{name}"), &packed[..end]);
            let error = read(&path, &by(&["id"])).unwrap_err();
            assert!(matches!(error.problem(), Problem::Read(_)), "{error}");
        }
    }
    let (message, _) = complaint(open(&[folder.write("a.parquet.gz", "")]));
    assert_eq!(message, "is compressed as a whole, and is not text");
}

fn arrow_batches() -> Vec<RecordBatch> {
    let batch = |ids: Vec<i32>, words: Vec<Option<&str>>| {
        let words: DictionaryArray<Int32Type> = words.into_iter().collect();
        let columns: [(&str, ArrayRef); 2] =
            [("id", Arc::new(Int32Array::from(ids))), ("word", Arc::new(words))];
        RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).unwrap()
    };
    vec![
        batch(vec![1, 2, 3], vec![Some("x"), Some("y"), None]),
        batch(vec![], vec![]),
        batch(vec![4, 5], vec![Some("z"), Some("x")]),
    ]
}

/// The batches as a stream, with this compression.
fn stream(compression: Option<CompressionType>) -> Vec<u8> {
    let batches = arrow_batches();
    let options = IpcWriteOptions::default().try_with_compression(compression).unwrap();
    let schema = batches[0].schema();
    let mut writer = StreamWriter::try_new_with_options(Vec::new(), &schema, options).unwrap();
    batches.iter().for_each(|batch| writer.write(batch).unwrap());
    writer.into_inner().unwrap()
}

#[test]
fn arrow_files_streams_and_batches() {
    let folder = Folder::new();
    let batches = arrow_batches();
    let schema = batches[0].schema();
    let mut paths = vec![folder.write("empty.arrow", {
        let mut writer = FileWriter::try_new(Vec::new(), &schema).unwrap();
        writer.finish().unwrap();
        writer.into_inner().unwrap()
    })];
    assert!(read(&paths.remove(0), &by(&["id"])).unwrap().keys().is_empty());
    let codecs = [None, Some(CompressionType::LZ4_FRAME), Some(CompressionType::ZSTD)];
    for (i, codec) in codecs.into_iter().enumerate() {
        paths.push(folder.write(&format!("{i}.arrows"), stream(codec)));
    }
    let tables = paths.iter().map(|path| open(std::slice::from_ref(path)).unwrap());
    let memory = Table::from_batches(schema, batches).unwrap();
    for table in tables.chain([memory]) {
        assert_eq!(table.format(), Format::Arrow);
        let found = records(&table, &["id"]).unwrap();
        assert_eq!(found.items(0), integers(["1", "2", "3", "4", "5"]));
        let mut words = by(&["word"]).reading();
        words.duplicates = Duplicates::Keep;
        words.empty_keys = EmptyKeys::Skip;
        words.values = vec!["word".to_owned()];
        let words = Records::read(&table, &words, &mut |_, _| {}).unwrap();
        assert_eq!(words.items(0), texts(["x", "y", "z"]));
        let of_rows: Vec<_> = (0..5).map(|row| words.item_of_row(0, row)).collect();
        assert_eq!(of_rows, [Some(0), Some(1), None, Some(2), Some(0)]);
        assert_eq!(words.payload(0, 2), b"\x01\x01z");
        table.check_unchanged().unwrap();
        // From one format into the others and back.
        let text = |table: &Table| {
            let mut scan = table.select(&|row| row != 1).unwrap();
            let mut lines = Vec::new();
            while let Some(batch) = scan.next().unwrap() {
                lines.extend(batch.row_numbers.unwrap());
            }
            assert_eq!(lines, [0, 2, 3, 4]);
            String::from_utf8(write_memory(table, Format::Csv)).unwrap()
        };
        let expected = "id,word\n1,x\n3,\n4,z\n5,x\n";
        assert_eq!(text(&table), expected);
        for (format, name) in [(Format::Arrow, "copy.arrow"), (Format::Parquet, "copy.parquet")] {
            let copy = folder.write(name, write_memory(&table, format));
            let copy = read(&copy, &by(&["id"])).unwrap();
            assert_eq!(copy.keys(), integers(["1", "3", "4", "5"]));
            let copied = write(&copy.table, &|_| true, Format::Csv, Packing::None).unwrap();
            assert_eq!(copied, expected.as_bytes());
        }
    }
}

/// All rows but row 1.
fn write_memory(table: &Table, format: Format) -> Vec<u8> {
    let output = volery_tables::Output { format, packing: Packing::None, like: Some(table) };
    let mut sink = volery_tables::Sink::new(Vec::new(), output, table.schema()).unwrap();
    let mut scan = table.select(&|row| row != 1).unwrap();
    while let Some(batch) = scan.next().unwrap() {
        sink.write(&batch.rows).unwrap();
    }
    sink.finish().unwrap()
}

#[test]
fn damaged_arrow_files() {
    let folder = Folder::new();
    let table = Table::from_batches(arrow_batches()[0].schema(), arrow_batches()).unwrap();
    let file = write_memory(&table, Format::Arrow);
    let said = |name: &str, bytes: &[u8]| {
        let error = crate::read_as(name, bytes, &by(&["id"])).unwrap_err();
        complaint(Err::<(), _>(error)).0
    };
    assert_eq!(said("a.arrow", b""), "is empty: there is no header");
    assert_eq!(said("a.arrow", b"id\n1\n"), "is not an Arrow file");
    let cut = "is cut short: it begins as an Arrow file and does not end as one";
    for end in [8, 19, file.len() / 2, file.len() - 1] {
        assert_eq!(said("a.arrow", &file[..end]), cut);
    }
    let damaged = "is damaged, or uses a part of the Arrow IPC format that is not supported, after";
    assert!(said("a.arrow", b"id,name\nsecret,more\n").starts_with(damaged));
    for whole in [file, stream(None), stream(Some(CompressionType::LZ4_FRAME))] {
        for i in (0..whole.len()).step_by(5) {
            let mut bytes = whole.clone();
            bytes[i] ^= [1, 0x80, 0xff][i % 3];
            if let Ok(read) = read(&folder.write("damaged.arrow", bytes), &by(&["id"])) {
                let items: Vec<u32> = (0..read.keys().len() as u32).collect();
                let format = [Format::Csv, Format::Arrow, Format::Parquet][i / 3 % 3];
                let _ = matches(&read, &items, format);
            }
        }
    }
}

#[test]
fn a_scan_has_the_columns_in_the_order_named() {
    let folder = Folder::new();
    for path in [
        store(&folder, "a.parquet", &mixed(20_011), Compression::SNAPPY),
        folder.write("a.csv", "id,name,word\n1,a,x\n2,b,y\n"),
    ] {
        let table = open(&[path]).unwrap();
        let mut next = 0;
        for batch in batches(&table, &[2, 0]) {
            assert_eq!((batch.first_row, &*batch.columns), (next, &[2, 0][..]));
            assert_eq!(batch.rows.schema().field(0).name(), "word");
            assert_eq!(batch.row_number(0), next);
            next += batch.rows.num_rows() as u64;
        }
        assert!(next == 20_011 || next == 2);
    }
}

#[test]
fn timestamps_and_decimals_are_keys() {
    use crate::table::required;
    let folder = Folder::new();
    let columns = [
        required("int64 at (TIMESTAMP(MILLIS,true))", vec![1_614_834_367_891_i64]),
        required("int64 local (TIMESTAMP(MICROS,false))", vec![1_i64]),
        required("int32 price (DECIMAL(9,2))", vec![1250]),
        required("int64 whole (DECIMAL(12,0))", vec![-7_i64]),
        required("double float", vec![3.0_f64]),
    ];
    let path = store(&folder, "a.parquet", &columns, Compression::SNAPPY);
    let text = "at,local,price,whole,float\n\
        2021-03-04T06:06:07.891+01:00,1970-01-01 00:00:00.000001,+12.5,-007,3\n";
    let text = folder.write("a.csv", text);
    for (ours, theirs, tag, content) in [
        ("at", "at:timestamp", 6, &1_614_834_367_891_000_000_i128.to_le_bytes()[..]),
        ("local", "local:datetime", 7, &1000_i128.to_le_bytes()),
        ("price", "price:decimal", 8, b"12.5"),
        ("whole", "whole:integer", 3, b"-7"),
        ("whole:decimal", "whole:decimal", 8, b"-7"),
        ("float:integer", "float:integer", 3, b"3"),
    ] {
        for (path, key) in [(&path, ours), (&text, theirs)] {
            let read = read(path, &by(&[key])).unwrap();
            assert_eq!(read.keys(), [item(tag, content)], "{key}");
        }
    }
    let path: &Path = &path;
    let (message, _) = complaint(read(path, &by(&["price:integer"])));
    assert_eq!(message, r#"column "price" of row 1 is not an integer"#);
}

#[test]
fn fields_are_utf8_where_that_is_required() {
    let folder = Folder::new();
    // Row 3 splits a character over two fields.
    let bytes = b"a,b\nx,y\n\xff,z\n\xc3,\xab\n";
    let path = folder.write("table.csv", bytes);
    let scan_all = |table: &Table| -> Result<u64, Error> {
        let mut scan = table.scan(&[1])?;
        let mut rows = 0;
        while let Some(batch) = scan.next()? {
            rows += batch.rows.num_rows() as u64;
        }
        Ok(rows)
    };
    let mut table = open(std::slice::from_ref(&path)).unwrap();
    assert_eq!(scan_all(&table).unwrap(), 3);
    table.require_utf8(Format::Parquet);
    let error = scan_all(&table).unwrap_err();
    let expected = "column 1 of row 2 is not UTF-8 and cannot be written to a Parquet file";
    assert!(error.to_string().ends_with(expected), "{error}");
    let path = folder.write("split.csv", b"a,b\nx,\xc3\xab\n\xc3,\xab\n");
    let mut table = open(std::slice::from_ref(&path)).unwrap();
    table.require_utf8(Format::Arrow);
    let error = scan_all(&table).unwrap_err();
    assert!(error.to_string().contains("column 1 of row 2"), "{error}");
}
