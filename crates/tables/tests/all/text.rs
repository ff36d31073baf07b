//! Valid text files: line ends, quoting, delimiters, and their output.

use std::fs;

use volery_tables::{Extra, Format, KeyType, Problem, Reading};

use crate::{Folder, by, matches, read, read_as, texts};

#[test]
fn lines_end_in_any_way() {
    for text in [
        "id,a\n1,x\n2,y\n",
        "id,a\r\n1,x\r\n2,y\r\n",
        "id,a\n1,x\n2,y",
        "id,a\r1,x\r2,y",
        "id,a\r\n1,x\n2,y",
    ] {
        let folder = Folder::new();
        let records = read(&folder.write("rows.csv", text), &by(&["id"])).unwrap();
        assert_eq!(texts(&records), ["1", "2"], "{text:?}");
        assert_eq!(
            matches(&records, &[1], Format::Csv, None).unwrap(),
            b"id,a\n2,y\n"
        );
        assert!(records.notices().is_empty());
    }
}

#[test]
fn blank_lines_are_no_rows() {
    let folder = Folder::new();
    let path = folder.write("rows.csv", "\nid\n\n1\n\n\n2\n\n");
    let records = read(&path, &by(&["id"])).unwrap();
    assert_eq!(
        (texts(&records), records.row_of(1)),
        (vec!["1".to_owned(), "2".to_owned()], 2)
    );
    assert_eq!(
        records.notices(),
        ["5 blank lines left out (an empty field is written \"\")"]
    );
    assert_eq!(
        matches(&records, &[0, 1], Format::Csv, None).unwrap(),
        b"id\n1\n2\n"
    );
    let records = read_as("rows.csv", "id,a\n1,2\n\n", &by(&["id"])).unwrap();
    assert_eq!(records.notices(), ["1 blank line left out"]);
}

#[test]
fn fields_are_bytes() {
    let long = "x".repeat(10 << 10);
    let text = format!(
        "id,a\n 1 ,\"x, \"\"y\"\"\r\nz\"\n01,\"\"\n1,q\"q\n\"{long}\",\0\nA,é\na,e\u{301}\n"
    );
    let folder = Folder::new();
    let path = folder.write("rows.csv", &text);
    let records = read(&path, &by(&["id"])).unwrap();
    assert_eq!(texts(&records), [" 1 ", "01", "1", &long, "A", "a"]);
    assert_eq!(records.key_types(), [KeyType::Text]);
    assert_eq!(records.columns().collect::<Vec<_>>(), ["id", "a"]);
    let written = matches(&records, &[0, 1, 2, 3, 4, 5], Format::Csv, None).unwrap();
    let copy = folder.write("copy.csv", &written);
    let again = read(&copy, &by(&["id", "a"]));
    // Row 2 has an empty field: with the second column as the key it has none.
    assert!(matches!(
        again.unwrap_err().problem(),
        Problem::EmptyKey { row: 2, .. }
    ));
    let fields = |bytes: &[u8]| -> Vec<Vec<Vec<u8>>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .from_reader(bytes);
        let rows = reader.byte_records().map(|row| row.unwrap());
        rows.map(|row| row.iter().map(<[u8]>::to_vec).collect())
            .collect()
    };
    assert_eq!(fields(&written), fields(text.as_bytes()));
}

#[test]
fn a_name_that_begins_like_a_mark_is_still_the_name() {
    for name in [
        &b"\xef\xbb\xbfid"[..],
        b"\xff\xfe",
        b"\xfe\xffid",
        b"\0\0\xfe\xff",
    ] {
        let file = [b"\"", name, b"\",a\n1,x\n"].concat();
        let folder = Folder::new();
        let records = read(&folder.write("rows.csv", &file), &by(&["a"])).unwrap();
        assert!(records.notices().is_empty());
        let written = matches(&records, &[0], Format::Csv, None).unwrap();
        assert!(
            written.starts_with(&[b"\"", name, b"\","].concat()),
            "{written:?}"
        );
        let again = read(&folder.write("again.csv", &written), &by(&["a"])).unwrap();
        assert_eq!(again.keys(), records.keys());
        assert!(again.columns().eq(records.columns()) && again.notices().is_empty());
        assert_eq!(matches(&again, &[0], Format::Csv, None).unwrap(), written);
    }
}

#[test]
fn delimiters() {
    let folder = Folder::new();
    let semicolons = Reading {
        delimiter: Some(b';'),
        ..by(&["id"])
    };
    let csv = read(&folder.write("a.csv", "id;a\n1;x,y\n"), &semicolons).unwrap();
    assert_eq!(
        matches(&csv, &[0], Format::Csv, None).unwrap(),
        b"id;a\n1;x,y\n"
    );
    assert_eq!(
        matches(&csv, &[0], Format::Tsv, None).unwrap(),
        b"id\ta\n1\tx,y\n"
    );
    let tsv = read(&folder.write("a.tsv", "id\ta\n1\tx,y\n"), &by(&["id"])).unwrap();
    assert_eq!(
        matches(&tsv, &[0], Format::Tsv, None).unwrap(),
        b"id\ta\n1\tx,y\n"
    );
    assert_eq!(
        matches(&tsv, &[0], Format::Csv, None).unwrap(),
        b"id,a\n1,\"x,y\"\n"
    );
}

#[test]
fn compound_keys_keep_their_columns_apart() {
    let reading = by(&["a", "b"]);
    let one = read_as("rows.csv", "a,b\nab,c\n", &reading).unwrap();
    let other = read_as("rows.csv", "b,a\nbc,a\n", &reading).unwrap();
    assert_ne!(one.keys().get(0), other.keys().get(0));
    let same = read_as("rows.csv", "b,x,a\nc,,ab\n", &reading).unwrap();
    assert_eq!(one.keys(), same.keys());
    assert_ne!(
        one.keys(),
        read_as("rows.csv", "a,b\nab,c\n", &by(&["b", "a"]))
            .unwrap()
            .keys()
    );
}

#[test]
fn a_column_called_like_the_whole_argument() {
    let records = read_as("rows.csv", "id,id:integer\n007,x\n", &by(&["id:integer"])).unwrap();
    assert_eq!(texts(&records), ["x"]);
    let records = read_as("rows.csv", "id\n007\n", &by(&["id:integer"])).unwrap();
    assert_eq!(
        (texts(&records), records.key_types()),
        (vec!["7".to_owned()], &[KeyType::Integer][..])
    );
}

#[test]
fn a_column_is_appended() {
    let folder = Folder::new();
    let path = folder.write("rows.csv", "id,a\n1,x\n2,y\n3,z\n");
    let records = read(&path, &by(&["id"])).unwrap();
    let values: [&[u8]; 2] = [b"p,q", b""];
    let value = |i: usize| values[i];
    let extra = |name| {
        Some(Extra {
            name,
            value: &value,
        })
    };
    let written = matches(&records, &[0, 2], Format::Csv, extra("looked up")).unwrap();
    assert_eq!(written, b"id,a,looked up\n1,x,\"p,q\"\n3,z,\n");
    for format in [Format::Csv, Format::Parquet] {
        let error = matches(&records, &[0, 2], format, extra("a")).unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with(r#"there is a column "a" already"#)
        );
    }
}

#[test]
fn progress_ends_at_the_length_of_the_file() {
    let folder = Folder::new();
    let text: String = (0..50_000).map(|i| format!("{i},some text\n")).collect();
    let path = folder.write("rows.csv", format!("id,a\n{text}"));
    let length = fs::metadata(&path).unwrap().len();
    let mut told = Vec::new();
    volery_tables::read(&path, &by(&["id"]), &mut |done, of| told.push((done, of))).unwrap();
    assert!(told.len() > 1 && told.is_sorted());
    assert_eq!(told.last(), Some(&(length, length)));
}

#[test]
#[should_panic(expected = "ascending")]
fn items_out_of_order_are_the_callers_mistake() {
    let folder = Folder::new();
    let records = read(&folder.write("rows.csv", "id\n1\n2\n"), &by(&["id"])).unwrap();
    let _ = matches(&records, &[1, 0], Format::Csv, None);
}

#[test]
fn an_output_that_is_full_is_an_error() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let folder = Folder::new();
    let records = read(&folder.write("rows.csv", "id\n1\n2\n"), &by(&["id"])).unwrap();
    for format in [Format::Csv, Format::Parquet] {
        let output = volery_tables::Output {
            file: Full,
            format,
            extra: None,
        };
        let error = records
            .write_matches(&[0], output, &mut |_, _| {})
            .unwrap_err();
        match error.problem() {
            Problem::Output(error) => assert_eq!(error.kind(), std::io::ErrorKind::StorageFull),
            other => panic!("{other:?}"),
        }
    }
}
