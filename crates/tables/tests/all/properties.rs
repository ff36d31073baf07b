//! Written rows are the read rows, whatever their bytes: `fuzz/csv` has other files.

use proptest::collection::vec;
use proptest::prelude::*;
use volery_tables::Format;

use crate::{Folder, by, matches, read};

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
