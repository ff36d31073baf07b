//! Columns read as text, beside the output of the same rows as a text file.

use volery_tables::{Format, Inputs, Output, Packing, Reader, Reading, Rule, Sink, Table};

use crate::Folder;
use crate::samples::sample;

fn open(path: std::path::PathBuf) -> Table {
    let paths = vec![path];
    let inputs = Inputs { paths, ..Inputs::default() };
    Table::open(&inputs).unwrap()
}

fn reading(key: &str, texts: &[&str]) -> Reading {
    Reading {
        rules: vec![Rule::parse(key).unwrap()],
        texts: texts.iter().map(|&name| name.to_owned()).collect(),
        ..Reading::default()
    }
}

/// The fields of a column; none where it is null.
fn texts(table: &Table, key: &str, name: &str) -> Vec<Option<Vec<u8>>> {
    let reader = Reader::new(table, &reading(key, &[name])).unwrap();
    let mut scan = table.scan(&reader.columns()).unwrap();
    let (mut all, mut out) = (Vec::new(), Vec::new());
    while let Some(batch) = scan.next().unwrap() {
        let texts = reader.texts(&batch, 0).unwrap();
        assert_eq!(texts.name(), name);
        for row in 0..batch.rows.num_rows() {
            all.push(texts.read(row, &mut out).then(|| out.clone()));
        }
    }
    all
}

#[test]
fn fields_are_those_of_a_text_file() {
    let folder = Folder::new();
    let table = open(folder.write("a.csv", b"k,v\na,1.50\nb,\nc,\xff\n"));
    let fields = [&b"1.50"[..], b"", b"\xff"].map(|field| Some(field.to_vec()));
    assert_eq!(texts(&table, "k", "v"), fields);
    // Each type of Parquet, one column beside the same column in a text file.
    let table = open(sample("types.parquet"));
    for name in ["id", "int8", "uint64", "boolean", "date", "float", "double", "dictionary"] {
        let output = Output { format: Format::Csv, packing: Packing::None, like: Some(&table) };
        let mut sink = Sink::new(Vec::new(), output, table.schema()).unwrap();
        let mut scan = table.select(&|_| true).unwrap();
        while let Some(batch) = scan.next().unwrap() {
            sink.write(&batch.rows).unwrap();
        }
        let copy = open(folder.write("copy.csv", sink.finish().unwrap()));
        let null_is_empty = texts(&table, "id", name).into_iter();
        let null_is_empty: Vec<_> =
            null_is_empty.map(|field| Some(field.unwrap_or_default())).collect();
        assert_eq!(null_is_empty, texts(&copy, "id", name), "{name}");
    }
}
