//! Tables of several files, of other formats, compressed, or in memory.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::*;
use arrow_array::*;
use arrow_buffer::OffsetBuffer;
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{Field, Schema};
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Compression;
use parquet::file::reader::{FileReader, SerializedFileReader};
use volery_tables::{
    Batch, EmptyKeys, Error, Format, Inputs, Output, Packing, Problem, Quote, Reader, Records,
    Sink, Table, column_texts,
};

use crate::parquet::{mixed, store};
use crate::samples::sample;
use crate::table::strings;
use crate::{Folder, Reading, by, complaint, integers, matches, read, texts, write};

fn open(paths: &[PathBuf]) -> Result<Table, Error> {
    let paths = paths.to_vec();
    Table::open(&Inputs { paths, ..Inputs::default() })
}

fn records(table: &Table, keys: &[&str]) -> Result<Records, Error> {
    Records::read(table, &by(keys).reading())
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
    assert_eq!(found.items[0], texts(["1", "2", "3", "4"]));
    assert_eq!(table.notices(), ["1 blank line left out"]);
    assert_eq!(table.place(1), (&*paths[0], 2));
    assert_eq!(table.place(2), (&*paths[2], 1));
    let written = write(&table, &|row| row % 2 == 1, Format::Csv, Packing::None).unwrap();
    assert_eq!(written, b"id,a\n2,y\n4,\n");
    // Errors count the rows of each file.
    let error = records(&table, &["a"]).unwrap_err();
    assert_eq!(error.file(), paths[2]);
    assert!(matches!(error.problem(), Problem::EmptyKey { row: 2, .. }));
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
    assert_eq!(complaint(open(&[])).0, "no file is named");
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
    put("u/_year=a=b%zz%/1.parquet", "one");
    folder.write("t/_SUCCESS", "");
    folder.write("t/year=2024/notes.txt", "no");
    let table = open(&[folder.path("t")]).unwrap();
    let names: Vec<&String> = table.schema().fields().iter().map(|f| f.name()).collect();
    assert_eq!(names, ["id", "year", "zone"]);
    let found = records(&table, &["id"]).unwrap();
    assert_eq!(found.items[0], texts(["one", "three", "two"]));
    let written = write(&table, &|_| true, Format::Csv, Packing::None).unwrap();
    assert_eq!(
        String::from_utf8(written).unwrap(),
        "id,year,zone\none,2023,\nthree,2024,b/c\ntwo,2024,b/c\n"
    );
    // The columns of the folders are keys, also alone.
    let years = by(&["year"]).reading();
    let years = Records::read(&table, &years).unwrap();
    assert_eq!(years.items[0], integers(["2023", "2024"]));
    let found = open(&[folder.path("u")]).unwrap();
    let written = write(&found, &|_| true, Format::Csv, Packing::None).unwrap();
    assert_eq!(written, b"id,_year\none,a=b%zz%\n");
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
        assert_eq!(found.items[0], integers(["1", "2", "3", "4", "5"]));
        let mut words = by(&["word"]).reading();
        words.empty_keys = EmptyKeys::Skip;
        words.values = vec!["word".to_owned()];
        let words = Records::read(&table, &words).unwrap();
        assert_eq!(words.items[0], texts(["x", "y", "z"]));
        assert_eq!(words.rows[0], [Some(0), Some(1), None, Some(2), Some(0)]);
        assert_eq!(words.payload[3], b"\x01\x01z");
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
pub(super) fn write_memory(table: &Table, format: Format) -> Vec<u8> {
    let output = Output { format, packing: Packing::None, like: Some(table) };
    let mut sink = Sink::new(Vec::new(), output, table.schema()).unwrap();
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
    assert_eq!(said("a.arrow", b""), "is empty");
    assert_eq!(said("a.arrow", b"id\n1\n"), "is not an Arrow file");
    let cut = "is cut short: it begins as an Arrow file and does not end as one";
    for end in [8, 19, file.len() / 2, file.len() - 1] {
        assert_eq!(said("a.arrow", &file[..end]), cut);
    }
    assert_eq!(said("a.arrow", b"id,name\nsecret,more\n"), "is damaged: it ends too early");
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

#[test]
fn big_endian_files_and_streams_are_refused() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../cases");
    let stream = std::fs::read(cases.join("big_endian.arrow")).unwrap();
    let file = [b"ARROW1\0\0", &stream[..], b"ARROW1"].concat();
    for (name, bytes) in [("a.arrows", stream), ("a.arrow", file)] {
        let (message, _) = complaint(crate::read_as(name, bytes, &by(&["id"])));
        assert_eq!(message, "is a big-endian Arrow file, which cannot be read");
    }
}

#[test]
fn files_are_known_by_their_first_bytes() {
    let folder = Folder::new();
    let parquet = store(&folder, "a.parquet", &[strings("id", ["x"])], Compression::SNAPPY);
    let text = folder.write("a.csv", "id\nx\n");
    let text = open(&[text]).unwrap();
    let packed = |packing| write(&text, &|_| true, Format::Csv, packing).unwrap();
    for (name, bytes) in [
        ("parquet.csv", std::fs::read(&parquet).unwrap()),
        ("parquet", std::fs::read(&parquet).unwrap()),
        ("parquet.arrow", std::fs::read(&parquet).unwrap()),
        ("gzip.csv", packed(Packing::Gzip)),
        ("zstd.tsv", packed(Packing::Zstd)),
        ("text.parq", std::fs::read(&parquet).unwrap()),
        ("parquet.csv.gz", std::fs::read(&parquet).unwrap()),
        ("gzip.csv.zst", packed(Packing::Gzip)),
        ("plain.csv.gz", packed(Packing::None)),
    ] {
        let found = read(&folder.write(name, bytes), &by(&["id"])).unwrap();
        assert_eq!(found.keys(), texts(["x"]), "{name}");
    }
    for name in ["stream.parquet", "stream.csv"] {
        let found = read(&folder.write(name, stream(None)), &by(&["id"])).unwrap();
        assert_eq!(found.keys(), integers(["1", "2", "3", "4", "5"]), "{name}");
    }
    let (message, _) = complaint(open(&[folder.write("gzip.parquet", packed(Packing::Gzip))]));
    assert_eq!(message, "is compressed as a whole, and is not text");
    let text = folder.write("named.csv", "PAR1,id\n1,x\n");
    assert_eq!(read(&text, &by(&["id"])).unwrap().keys(), texts(["x"]));
    // Nothing else is guessed.
    let (message, _) = complaint(open(&[folder.write("text", "id\nx\n")]));
    assert_eq!(message, "the name does not say what kind of file this is");
    let (message, _) = complaint(open(&[folder.write("b.parquet", "id\nx\n")]));
    assert_eq!(message, "is not a Parquet file");
}

#[test]
fn a_table_that_was_read_has_a_length_without_compression() {
    let folder = Folder::new();
    let text = (0..1000).fold("id\n".to_owned(), |text, i| text + &format!("{i}\n"));
    let plain = open(&[folder.write("a.csv", &text)]).unwrap();
    for (name, packing) in [("b.csv.gz", Packing::Gzip), ("b.csv.zst", Packing::Zstd)] {
        let mut packed = write(&plain, &|_| true, Format::Csv, packing).unwrap();
        let found = read(&folder.write(name, &packed), &by(&["id"])).unwrap().table;
        assert_eq!((found.unpacked_bytes(), found.bytes() < 3000), (text.len() as u64, true));
        packed.truncate(1000);
        let (_, hint) = complaint(read(&folder.write(name, packed), &by(&["id"])));
        assert!(hint.contains("copy or write it again"), "{name}: {hint}");
    }
    let columns = [strings("id", ["x".repeat(5000)])];
    let table = open(&[store(&folder, "a.parquet", &columns, Compression::SNAPPY)]).unwrap();
    assert!(table.bytes() < 5000 && (5000..6000).contains(&table.unpacked_bytes()));
}

#[test]
fn quotes_are_ordinary_where_there_are_none() {
    let folder = Folder::new();
    let paths = vec![folder.write("a.csv", "id,a\n\"1,5\" tape\n2,\"\n\"3\",x\n")];
    let inputs = Inputs { paths, quote: Quote::None, ..Inputs::default() };
    let table = Table::open(&inputs).unwrap();
    assert_eq!(records(&table, &["id"]).unwrap().items[0], texts(["\"1", "2", "\"3\""]));
    let written = write(&table, &|_| true, Format::Csv, Packing::None).unwrap();
    assert_eq!(String::from_utf8(written).unwrap(), "id,a\n\"1,5\" tape\n2,\"\n\"3\",x\n");
    let written = write(&table, &|row| row == 0, Format::Tsv, Packing::None).unwrap();
    assert_eq!(written, b"id\ta\n\"\"\"1\"\t\"5\"\" tape\"\n");
    // Columns beside those of the table, where no quote can protect a delimiter.
    for (name, first) in [("a,b", "\"a,b\"\n"), ("ab", "ab\n")] {
        let column: ArrayRef = Arc::new(StringArray::from(vec!["x\"", "y,z", "y\nz"]));
        let rows = RecordBatch::try_from_iter([(name, column)]).unwrap();
        let output = Output { format: Format::Csv, packing: Packing::None, like: Some(&table) };
        let mut sink = Sink::new(Vec::new(), output, &rows.schema()).unwrap();
        assert_eq!(sink.write(&rows).unwrap(), [(1, 0), (2, 0)]);
        assert_eq!(sink.finish().unwrap(), [first.as_bytes(), b"x\"\n\"\"\n\"\"\n"].concat());
    }
}

#[test]
fn seconds_and_uuids_keep_a_type_wherever_they_are() {
    let seconds: ArrayRef = Arc::new(TimestampSecondArray::from(vec![5, i64::MAX / 7]));
    let whole = OffsetBuffer::from_lengths([1, 1]);
    let item = Arc::new(Field::new("item", seconds.data_type().clone(), true));
    let times: ArrayRef = Arc::new(Time32SecondArray::from(vec![5, 86_399]));
    let keys = Int32Array::from(vec![1, 0]);
    // The last one, which no row has, is no day.
    let days: ArrayRef = Arc::new(Date64Array::from(vec![86_400_000, 0, i64::MAX]));
    let uuids = FixedSizeBinaryArray::try_from_iter([[7_u8; 16], [9; 16]].iter()).unwrap();
    let columns: [(&str, ArrayRef); 5] = [
        ("id", Arc::new(uuids)),
        ("plain", Arc::clone(&seconds)),
        ("list", Arc::new(ListArray::new(item, whole, seconds, None))),
        (
            "struct",
            Arc::new(StructArray::from(vec![(
                Arc::new(Field::new("t", times.data_type().clone(), true)),
                times,
            )])),
        ),
        ("dictionary", Arc::new(DictionaryArray::new(keys, days))),
    ];
    let fields = columns.iter().map(|(n, c)| Field::new(*n, c.data_type().clone(), true));
    let mut fields: Vec<Field> = fields.collect();
    fields[0].metadata_mut().insert("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned());
    let schema = Arc::new(Schema::new(fields));
    let columns = columns.map(|(_, column)| column).to_vec();
    let rows = RecordBatch::try_new(Arc::clone(&schema), columns).unwrap();
    let output = Output { format: Format::Parquet, packing: Packing::None, like: None };
    let mut sink = Sink::new(Vec::new(), output, &schema).unwrap();
    // The second time is beyond milliseconds: it is left empty, and named.
    assert_eq!(sink.write(&rows).unwrap(), [(1, 1), (1, 2)]);
    let folder = Folder::new();
    let path = folder.write("a.parquet", sink.finish().unwrap());
    let table = open(&[path]).unwrap();
    let kinds = table.schema().fields().iter().map(|field| field.data_type().to_string());
    let kinds = kinds.collect::<Vec<_>>().join("; ");
    assert_eq!(
        kinds,
        "FixedSizeBinary(16); Timestamp(ms); List(Timestamp(ms)); \
         Struct(\"t\": Time32(ms)); Date32"
    );
    let rows = &batches(&table, &[0, 1, 2, 3, 4])[0].rows;
    let millis = |column: &ArrayRef| column.as_primitive::<TimestampMillisecondType>().value(0);
    assert_eq!(millis(rows.column(1)), 5000);
    assert_eq!(millis(&rows.column(2).as_list::<i32>().value(0)), 5000);
    assert!(rows.column(1).is_null(1) && rows.column(2).is_null(1));
    let times = rows.column(3).as_struct().column(0).as_primitive::<Time32MillisecondType>();
    assert_eq!(times.values()[..], [5000, 86_399_000]);
    assert_eq!(rows.column(4).as_primitive::<Date32Type>().values()[..], [0, 1]);

    // The type of UUIDs stays one in either format, and they meet their texts.
    let as_text = folder.write("b.csv", format!("id\n{{{}}}\n", "07".repeat(16)));
    let found = records(&open(&[as_text]).unwrap(), &["id:uuid"]).unwrap();
    let uuids = records(&table, &["id"]).unwrap();
    assert_eq!((&*uuids.key_description, uuids.items[0][0]), ("uuid", found.items[0][0]));
    let text = "07070707-0707-0707-0707-070707070707";
    assert_eq!(records(&table, &["id:text"]).unwrap().items[0][0], texts([text])[0]);
    assert_eq!(records(&table, &["id:binary"]).unwrap().key_description, "binary");
    let written = column_texts(table.schema().field(0), rows.column(0)).unwrap();
    assert_eq!(written[0].as_deref(), Some(text));
    for name in ["c.arrow", "c.parquet"] {
        let format = Format::of(Path::new(name)).unwrap().0;
        let copy = open(&[folder.write(name, write_memory(&table, format))]).unwrap();
        let reading = volery_tables::Reading { values: vec!["id".into()], ..by(&["id"]).reading() };
        let reader = Reader::new(&copy, &reading).unwrap();
        assert_eq!(reader.payload_schema().unwrap().line(), "\"id\":uuid", "{name}");
    }
}

/// Other programs find the types of Arrow in a note, also those of columns beside the table's own.
#[test]
fn the_types_of_arrow_are_noted_in_parquet() {
    let folder = Folder::new();
    let times = |zone: &str| -> ArrayRef {
        Arc::new(TimestampMillisecondArray::from(vec![5]).with_timezone(zone))
    };
    let ids: ArrayRef = Arc::new(LargeStringArray::from(vec!["a"]));
    let rows = [("id", ids), ("t", times("Europe/Berlin"))];
    let rows = RecordBatch::try_from_iter(rows).unwrap();
    let memory = Table::from_batches(rows.schema(), vec![rows]).unwrap();
    let parquet = folder.write("a.parquet", write_memory(&memory, Format::Parquet));
    let text = folder.write("a.csv", "id,t\na,5\n");
    let own = [
        (parquet, "LargeUtf8; Timestamp(ms, \"Europe/Berlin\")"),
        (text, "Utf8; Utf8"),
        // Timestamps of 96 bits are written in microseconds.
        (sample("int96.parquet"), "Int32; LargeUtf8; Timestamp(µs); Timestamp(µs)"),
    ];
    for (path, own) in own {
        let table = open(&[path]).unwrap();
        let mut fields = table.schema().fields().to_vec();
        let theirs = times("Asia/Tokyo");
        fields.push(Arc::new(Field::new("x", theirs.data_type().clone(), true)));
        let output = Output { format: Format::Parquet, packing: Packing::None, like: Some(&table) };
        let sink = Sink::new(Vec::new(), output, &Arc::new(Schema::new(fields))).unwrap();
        let path = folder.write("b.parquet", sink.finish().unwrap());
        let file = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        let about = file.metadata().file_metadata();
        let noted = parquet_to_arrow_schema(about.schema_descr(), about.key_value_metadata());
        let noted = noted.unwrap();
        let kinds = noted.fields().iter().map(|field| field.data_type().to_string());
        let kinds = kinds.collect::<Vec<_>>().join("; ");
        assert_eq!(kinds, format!("{own}; Timestamp(ms, \"Asia/Tokyo\")"));
        assert_eq!(about.key_value_metadata().unwrap().len(), 1);
    }
}

#[test]
fn text_of_excel() {
    let folder = Folder::new();
    let of = |text: &str| read(&folder.write("a.csv", text), &by(&["id"]));
    for first in ["sep=;\r\n", "sep=;\n", "SEP=;\n", "\"sep=;\"\r\n", "\"Sep=;\"\n"] {
        let found = of(&format!("{first}id;a\r\n1;x,y\r\n")).unwrap();
        assert_eq!(
            (found.columns(), found.keys()),
            (vec!["id".into(), "a".into()], &*texts(["1"]))
        );
        let written = matches(&found, &[0], Format::Csv).unwrap();
        assert_eq!(written, b"id;a\n1;x,y\n");
    }
    let named = Reading { delimiter: Some(b','), ..by(&["id"]) };
    let found = crate::read_as("a.csv", "sep=;\nid,a\n1,x\n", &named).unwrap();
    assert_eq!(found.columns(), ["id", "a"]);
    let (message, _) = complaint(of("sep=;\nid;a\n1;\"x\n"));
    assert_eq!(message, "a quoted field that starts in row 1, on line 3, is never closed");
    // It is not the first line of a table with a column of that name.
    assert!(complaint(of("sep=\n1\n")).0.starts_with("there is no column \"id\""));

    let found = of("id,a,,\n1,x,,\n2,y\n3,z,,\n").unwrap();
    assert_eq!(found.columns(), ["id", "a"]);
    assert_eq!(found.keys(), texts(["1", "2", "3"]));
    let (message, _) = complaint(of("id,a,,\n1,x,,\n2,y,,secret\n"));
    assert_eq!(message, "row 2 has a value in column 4, which has no name");
    let (message, _) = complaint(of("id,a,b,,\n1,x,,\n"));
    assert_eq!(message, "row 1 has 4 fields, the header has 5");
    let (message, _) = complaint(of("id,a,,\n1\n"));
    assert_eq!(message, "row 1 has 1 field, the header has 4");
    assert_eq!(of("id,\n1,x\n").unwrap().columns(), ["id", ""]);

    let japanese = Reading { encoding: Some("cp932".parse().unwrap()), ..by(&["id"]) };
    let found = crate::read_as("a.csv", b"id\n\x93\x8c\x8b\x9e\n", &japanese).unwrap();
    assert_eq!(found.keys(), texts(["\u{6771}\u{4eac}"]));
}
