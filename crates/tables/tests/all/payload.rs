//! Payload: typed columns as bytes, and bytes of any kind.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date64Array, RecordBatch, StringArray};
use proptest::collection::vec;
use proptest::prelude::*;
use volery_tables::{Inputs, PayloadSchema, Reader, Reading, Rule, Table};

use crate::samples::sample;
use crate::{Folder, complaint, read_as};

/// The columns of a table that can be a payload.
fn reading(values: &[&str]) -> Reading {
    Reading {
        rules: vec![Rule::parse("id").unwrap()],
        values: values.iter().map(|&value| value.to_owned()).collect(),
        ..Reading::default()
    }
}

/// The payload of all rows, and its schema.
fn encoded(table: &Table, values: &[&str]) -> (PayloadSchema, Vec<Vec<u8>>) {
    let reader = Reader::new(table, &reading(values)).unwrap();
    let mut rows = Vec::new();
    let mut scan = table.scan(&reader.columns()).unwrap();
    while let Some(batch) = scan.next().unwrap() {
        for row in 0..batch.rows.num_rows() {
            let mut payload = Vec::new();
            reader.payload(&batch, row, &mut payload).unwrap();
            rows.push(payload);
        }
    }
    (reader.payload_schema().unwrap().clone(), rows)
}

/// The columns of rows that all can be read, or else the places of the values that cannot.
fn decoded(
    schema: &PayloadSchema,
    rows: Vec<Option<&[u8]>>,
) -> Result<Vec<ArrayRef>, Vec<(usize, usize)>> {
    let (mut refused, count) = (Vec::new(), rows.len());
    let columns = schema.decode(rows, &mut |row, column, _| refused.push((row, column)));
    assert!(columns.iter().all(|column| column.len() == count));
    for &(row, column) in &refused {
        assert!(columns[column].is_null(row), "a value that cannot be read is null");
    }
    if refused.is_empty() { Ok(columns) } else { Err(refused) }
}

fn types() -> Table {
    let paths = vec![sample("types.parquet")];
    Table::open(&Inputs { paths, ..Inputs::default() }).unwrap()
}

#[test]
fn dates_in_milliseconds_keep_their_time() {
    let days: ArrayRef = Arc::new(Date64Array::from(vec![Some(86_400_001), None, Some(-1)]));
    let ids: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let rows = RecordBatch::try_from_iter([("id", ids), ("d", Arc::clone(&days))]).unwrap();
    let table = Table::from_batches(rows.schema(), vec![rows]).unwrap();
    let (schema, rows) = encoded(&table, &["d"]);
    assert_eq!(schema.line(), "\"d\":date64");
    let columns = decoded(&schema, rows.iter().map(|row| Some(&row[..])).collect()).unwrap();
    assert_eq!(columns, [days]);
}

const VALUES: [&str; 24] = [
    "id",
    "large",
    "view",
    "dictionary",
    "large_binary",
    "fixed",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "uint32",
    "uint64",
    "boolean",
    "date",
    "half",
    "float",
    "double",
    "decimal",
    "wide",
    "millis",
    "zoned",
    "time_ms",
    "time_us",
    "time_ns",
];

#[test]
fn every_type_comes_back() {
    let table = types();
    let (schema, rows) = encoded(&table, &VALUES);
    let schema = PayloadSchema::parse(&schema.line()).unwrap();
    let rows: Vec<Option<&[u8]>> = rows.iter().map(|row| Some(&row[..])).collect();
    let columns = decoded(&schema, [&rows[..], &[None]].concat()).unwrap();
    let mut text = Vec::new();
    for (field, column) in schema.fields().iter().zip(&columns) {
        assert_eq!((field.data_type(), column.len()), (column.data_type(), 4));
        assert!(column.is_null(3), "{field}");
    }
    // As text they are what the table is.
    let batch = RecordBatch::try_new(
        Arc::new(arrow_schema::Schema::new(schema.fields())),
        columns.iter().map(|column| column.slice(0, 3)).collect(),
    );
    let batch = batch.unwrap();
    let decoded = Table::from_batches(batch.schema(), vec![batch]).unwrap();
    let mut scan = table.select(&|_| true).unwrap();
    let original = scan.next().unwrap().unwrap().rows;
    let places = VALUES.map(|name| original.schema().index_of(name).unwrap());
    let original = original.project(&places).unwrap();
    let original = Table::from_batches(original.schema(), vec![original]).unwrap();
    for table in [&original, &decoded] {
        let output = volery_tables::Output {
            format: volery_tables::Format::Csv,
            packing: volery_tables::Packing::None,
            like: None,
        };
        let mut sink = volery_tables::Sink::new(Vec::new(), output, table.schema()).unwrap();
        let mut scan = table.select(&|_| true).unwrap();
        sink.write(&scan.next().unwrap().unwrap().rows).unwrap();
        text.push(String::from_utf8(sink.finish().unwrap()).unwrap());
    }
    assert_eq!(text[0], text[1]);
    // Their types are the same, too, but for those that differ in memory only.
    for (field, name) in schema.fields().iter().zip(VALUES) {
        let original = original.schema().field_with_name(name).unwrap().data_type().clone();
        if !["large", "view", "dictionary", "large_binary"].contains(&name) {
            assert_eq!(*field.data_type(), original, "{name}");
        }
    }
}

#[test]
fn lines_are_parsed_as_they_are_written() {
    let line = r#""id":int64,"a\"\\b\u{a}":text,"d":decimal(38,-3),"t":timestamp[us,"Europe/Berlin"],"u":timestamp[ns],"v":time[ms],"":binary,"a":int8,"b":float16,"c":decimal256(76,2),"e":uuid,"f":binary[32]"#;
    assert_eq!(PayloadSchema::parse(line).unwrap().line(), line);
    for wrong in [
        "",
        "id:int64",
        r#""id""#,
        r#""id":"#,
        r#""id":int24"#,
        r#""id":int64,"#,
        r#""id":int64 "#,
        r#""id":int64,"id":text"#,
        r#""d":decimal(39,0)"#,
        r#""d":decimal(0,0)"#,
        r#""d":decimal32(10,0)"#,
        r#""d":decimal256(77,0)"#,
        r#""b":binary[33]"#,
        r#""b":text(1,0)"#,
        r#""d":decimal(3,-4)"#,
        r#""t":timestamp[us,Z]"#,
        r#""t":time[us,"Z"]"#,
        r#""t":date[us]"#,
        r#""a\":text"#,
        r#""\u{110000}":text"#,
    ] {
        assert!(PayloadSchema::parse(wrong).is_err(), "{wrong}");
    }
    let many: Vec<String> = (0..1025).map(|i| format!("\"{i}\":text")).collect();
    assert!(PayloadSchema::parse(&many[..1024].join(",")).is_ok());
    assert!(PayloadSchema::parse(&many.join(",")).is_err());
    assert!(PayloadSchema::parse(&format!("\"{}\":text", "x".repeat(1 << 16))).is_err());
}

#[test]
fn values_that_cannot_be_sent() {
    let mut reading = crate::by(&["id"]);
    reading.value = Some("v".to_owned());
    let (message, _) = complaint(read_as("a.csv", b"id,v\n1,x\n2,secret\xff\n", &reading));
    assert_eq!(message, r#"column "v" of row 2 is not UTF-8"#);
    let long = format!("id,v\n1,{}\n", "x".repeat(1 << 20));
    let (message, _) = complaint(read_as("a.csv", long, &reading));
    assert_eq!(message, "the values of row 1 have more than 1048576 bytes");
    let folder = Folder::new();
    let paths = vec![folder.write("a.csv", "id,v\n1,2\n")];
    let table = Table::open(&Inputs { paths, ..Inputs::default() }).unwrap();
    let said = |values: &[&str]| Reader::new(&table, &self::reading(values)).map(|_| ());
    assert_eq!(complaint(said(&["v", "v"])).0, r#"column "v" is named twice in the payload"#);
    assert!(complaint(said(&["w"])).0.starts_with(r#"there is no column "w""#));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_bytes_make_it_panic(row in vec(any::<u8>(), 0..80), line in ".{0,60}") {
        let (schema, _) = encoded(&types(), &VALUES);
        let _ = decoded(&schema, vec![Some(&row[..])]);
        let _ = PayloadSchema::parse(&line);
    }

    #[test]
    fn damaged_rows_and_lines(at in any::<proptest::sample::Index>(), xor in 1..=255_u8, cut: bool) {
        let (schema, rows) = encoded(&types(), &VALUES);
        let mut row = rows[0].clone();
        let place = at.index(row.len());
        match cut {
            true => {
                prop_assert!(decoded(&schema, vec![Some(&row[..place])]).is_err());
                row.push(0);
                prop_assert!(decoded(&schema, vec![Some(&row[..])]).is_err());
            }
            false => {
                row[place] ^= xor;
                let _ = decoded(&schema, vec![Some(&row[..])]);
            }
        }
        let mut line = schema.line().into_bytes();
        let place = at.index(line.len());
        line[place] ^= xor;
        let _ = PayloadSchema::parse(&String::from_utf8_lossy(&line));
    }
}
