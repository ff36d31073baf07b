//! Text files in memory, and the texts of columns.

use std::io::Write as _;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Date32Array, StringArray};
use arrow_schema::{DataType, Field};
use flate2::Compression;
use flate2::write::GzEncoder;
use volery_tables::{Error, Inputs, Problem, Reading, Records, Rule, Table, column_texts};

const CSV: &[u8] = b"id,a\n1,x\n\n2,\"y,z\"\n";

fn open(name: &str, bytes: &[u8]) -> Result<Table, Error> {
    Table::from_text(name, bytes.into(), &Inputs::default())
}

fn refused(name: &str, bytes: &[u8], is_expected: fn(&Problem) -> bool) {
    let error = open(name, bytes).unwrap_err();
    assert!(is_expected(error.problem()), "{error}");
}

#[test]
fn a_text_in_memory_is_as_a_file() {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(CSV).unwrap();
    let packed = packed.finish().unwrap();
    for (name, bytes) in [("t.csv", CSV), ("t.csv.gz", &packed[..]), ("t.txt", CSV)] {
        let table = open(name, bytes).unwrap();
        let reading = Reading { rules: vec![Rule::parse("id").unwrap()], ..Reading::default() };
        let records = Records::read(&table, &reading).unwrap();
        assert_eq!(records.items[0].len(), 2);
        assert_eq!(table.bytes(), bytes.len() as u64);
        assert_eq!(table.notices(), ["1 blank line left out"]);
        table.check_unchanged().unwrap();
        let wanted = |row| row == 1;
        let mut scan = table.select(&wanted).unwrap();
        let batch = scan.next().unwrap().unwrap();
        assert_eq!(batch.row_number(0), 1);
        let texts = column_texts(&table.schema().fields()[1], batch.rows.column(1)).unwrap();
        assert_eq!(texts, [Some("y,z".to_owned())]);
        assert!(scan.next().unwrap().is_none());
        // It shows no field.
        assert!(!format!("{table:?}").contains("y,z"));
    }
}

#[test]
fn other_formats_are_refused_in_memory() {
    refused("t.parquet", CSV, |problem| matches!(problem, Problem::NotBuilt("a Parquet file")));
    refused("t.arrow", CSV, |problem| matches!(problem, Problem::NotBuilt(_)));
    refused("t", CSV, |problem| problem.to_string().contains("kind of file"));
    refused("t.csv", b"", |problem| matches!(problem, Problem::Empty));
}

#[test]
fn columns_have_the_texts_of_an_output() {
    let texts = |kind, array: ArrayRef| column_texts(&Field::new("a", kind, true), &array).unwrap();
    let strings: ArrayRef = Arc::new(StringArray::from(vec![Some("é"), None, Some("")]));
    let [accent, empty] = ["é", ""].map(|text| Some(text.to_owned()));
    assert_eq!(texts(DataType::Utf8, strings), [accent, None, empty]);
    let days: ArrayRef = Arc::new(Date32Array::from(vec![Some(1)]));
    assert_eq!(texts(DataType::Date32, days), [Some("1970-01-02".to_owned())]);
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"\x0a\xff"[..]]));
    assert_eq!(texts(DataType::Binary, bytes), [Some("0aff".to_owned())]);
}
