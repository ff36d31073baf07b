//! Properties of every file.

use proptest::collection::vec;
use proptest::prelude::*;
use volery_tables::{Duplicates, EmptyKeys, Format};

use crate::{Folder, Reading, by, matches, read};

/// Bytes with frequent special characters.
fn awkward() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        4 => proptest::sample::select(b"\",\n\r;a".to_vec()),
        1 => any::<u8>(),
    ];
    vec(byte, 0..60)
}

fn records_of(bytes: &[u8]) -> Vec<Vec<Vec<u8>>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(bytes);
    let rows = reader.byte_records().map(|row| row.unwrap());
    rows.map(|row| row.iter().map(<[u8]>::to_vec).collect()).collect()
}

fn quoted(field: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in field {
        out.extend(std::iter::repeat_n(byte, if byte == b'"' { 2 } else { 1 }));
    }
    out.push(b'"');
    out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_bytes_make_it_panic(
        header in proptest::sample::select(vec!["", "a\n", "a,b\r\n", "\u{feff}a;b\n", "\"a\"\n"]),
        body in awkward(),
        encoding in proptest::sample::select(vec![None, Some("utf-8"), Some("utf-16le"), Some("latin1"), Some("shift_jis")]),
        delimiter in proptest::sample::select(vec![None, Some(b';'), Some(b'a')]),
        key in proptest::sample::select(vec!["a", "a:integer", "a:date", "b:boolean"]),
        lenient: bool,
    ) {
        let reading = Reading {
            encoding: encoding.map(|label| label.parse().unwrap()),
            delimiter,
            duplicates: if lenient { Duplicates::Dedup } else { Duplicates::Error },
            empty_keys: if lenient { EmptyKeys::Skip } else { EmptyKeys::Error },
            ..by(&[key])
        };
        let folder = Folder::new();
        let bytes = [header.as_bytes(), &body].concat();
        let path = folder.write("rows.csv", &bytes);
        match read(&path, &reading) {
            Err(error) => prop_assert!(!error.to_string().is_empty()),
            Ok(records) => {
                let counts = records.counts();
                let rule = counts.rules[0];
                prop_assert_eq!(counts.rows, rule.keys + rule.empty);
                let kept = records.keys().len();
                prop_assert_eq!(kept as u64, rule.keys - records.duplicates(0));
                let items: Vec<u32> = (0..kept as u32).collect();
                let written = matches(&records, &items, Format::Csv).unwrap();
                let copy = folder.write("copy.csv", &written);
                let again = read(&copy, &Reading { encoding: None, ..reading }).unwrap();
                prop_assert_eq!(again.keys(), records.keys());
                if encoding.is_none() && delimiter.is_none() {
                    let read = records_of(&bytes);
                    prop_assert_eq!(counts.rows as usize, read.len() - 1);
                    let kept = items.iter().map(|&item| read[records.row_of(item) as usize].clone());
                    let expected: Vec<_> = std::iter::once(read[0].clone()).chain(kept).collect();
                    prop_assert_eq!(records_of(&written), expected);
                }
            }
        }
    }

    #[test]
    fn written_rows_equal_the_read_rows(
        fields in vec((awkward(), awkward()), 0..20),
        crlf: bool,
        last: bool,
        quote_all: bool,
    ) {
        let end: &[u8] = if crlf { b"\r\n" } else { b"\n" };
        let mut bytes = [b"n,a,b", end].concat();
        for (i, (a, b)) in fields.iter().enumerate() {
            let plain = |field: &Vec<u8>| field.iter().all(u8::is_ascii_alphanumeric);
            let field = |field: &Vec<u8>| if quote_all || !plain(field) { quoted(field) } else { field.clone() };
            bytes.extend([format!("{i}").as_bytes(), b",", &field(a), b",", &field(b), end].concat());
        }
        if !last {
            bytes.truncate(bytes.len() - end.len());
        }
        let folder = Folder::new();
        let path = folder.write("rows.csv", &bytes);
        let records = read(&path, &by(&["n"])).unwrap();
        prop_assert_eq!(records.keys().len(), fields.len());
        let items: Vec<u32> = (0..fields.len() as u32).collect();
        let written = matches(&records, &items, Format::Csv).unwrap();
        let mut expected = vec![vec![b"n".to_vec(), b"a".to_vec(), b"b".to_vec()]];
        expected.extend(fields.iter().enumerate().map(|(i, (a, b))| {
            vec![format!("{i}").into_bytes(), a.clone(), b.clone()]
        }));
        prop_assert_eq!(records_of(&written), expected);
    }
}
