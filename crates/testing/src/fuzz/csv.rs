//! Text files.

use volery_tables::{Duplicates, EmptyKeys, Encoding, Format, Reading, Records};

use super::Script;
use super::files::{assert_items, assert_same, columns, picked, read, stored, written};
use super::reference::{self, Question, Row};

const DELIMITERS: [u8; 8] = *b",\t;| a:\0";

/// The first, no encoding, is that of half of all files.
const ENCODINGS: [&str; 10] = [
    "utf-8",
    "utf-16le",
    "utf-16be",
    "windows-1252",
    "iso-8859-15",
    "shift_jis",
    "euc-jp",
    "gb18030",
    "big5",
    "iso-2022-jp",
];

const TYPES: [&str; 8] = [
    "text", "text", "binary", "text", "binary", "integer", "boolean", "date",
];

const OUTPUTS: [Format; 3] = [Format::Csv, Format::Tsv, Format::Parquet];

/// A text file: six bytes of options, then the file.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn csv(data: &[u8]) {
    let mut script = Script(data);
    let [delimiter, encoding, keys, types, flags, mask] = [(); 6].map(|()| script.byte());
    let bytes = script.rest();

    let tab_by_name = flags & 1 == 1;
    let name = if tab_by_name { "rows.tsv" } else { "rows.csv" };
    let output = OUTPUTS[usize::from(flags >> 1 & 3) % 3];
    let named = (delimiter & 0x80 == 0).then(|| DELIMITERS[usize::from(delimiter % 8)]);
    let mut reading = Reading {
        delimiter: named,
        encoding: (encoding & 0x80 != 0).then(|| label(encoding)),
        duplicates: [Duplicates::Error, Duplicates::Dedup][usize::from(flags >> 3 & 1)],
        empty_keys: [EmptyKeys::Error, EmptyKeys::Skip][usize::from(flags >> 4 & 1)],
        output: Some(output),
        ..Reading::default()
    };
    let path = stored(name, bytes);
    let columns = columns(&path, &reading);
    let count = columns.len().max(1);
    let column = |i: usize| columns.get(i % count).cloned().unwrap_or_default();
    let chosen: Vec<(usize, &str)> = (0..=usize::from(keys & 3))
        .map(|i| {
            let kind = TYPES[usize::from(types >> (2 * i)) % 8];
            ((usize::from(keys >> 2) + i) % count, kind)
        })
        .collect();
    reading.keys = chosen
        .iter()
        .map(|(i, kind)| format!("{}:{kind}", column(*i)))
        .collect();
    let value = (flags >> 5 & 1 == 1).then(|| usize::from(flags >> 6) % count);
    reading.value = value.map(column);

    let result = read(&path, &reading);
    let delimiter = named.unwrap_or(if tab_by_name { b'\t' } else { b',' });
    // A name that has the form of a key with its type, or that a command line cannot hold, is a
    // different query.
    let plain = reading.encoding.is_none()
        && chosen
            .iter()
            .all(|(_, kind)| matches!(*kind, "text" | "binary"))
        && !columns.iter().any(|c| c.contains([':', '\u{fffd}']))
        && delimiter != 0;
    let expected = plain.then(|| {
        let rows = reference::parse(bytes, delimiter)?;
        let mut keys: Vec<usize> = chosen.iter().map(|(i, _)| *i).collect();
        let question = Question {
            keys: keys.clone(),
            value,
            duplicates: reading.duplicates,
            empty_keys: reading.empty_keys,
            only_utf8: output == Format::Parquet,
        };
        keys.sort_unstable();
        keys.dedup();
        let items = reference::items(&rows, &question)?;
        (keys.len() == chosen.len()).then_some((rows, items, question))
    });
    if let Some(expected) = &expected {
        assert_eq!(
            result.is_ok(),
            expected.is_some(),
            "both parsers accept or both refuse"
        );
    }
    let Ok(records) = result else { return };
    assert_same(
        &records,
        &read(&path, &reading).expect("the same file was read before"),
    );
    if let Some(Some((rows, items, question))) = &expected {
        compare(&records, rows, items, question);
    }

    let items = picked(records.keys().len(), mask);
    let file = written(&records, &items, output).expect("the announced output can be written");
    let name = ["rows.csv", "rows.tsv", "rows.parquet"][usize::from(flags >> 1 & 3) % 3];
    let same = matches!(
        (tab_by_name, output),
        (false, Format::Csv) | (true, Format::Tsv)
    );
    let kept = if output == Format::Tsv { b'\t' } else { b',' };
    let kept = if same { delimiter } else { kept };
    let reading = Reading {
        delimiter: (output != Format::Parquet).then_some(kept),
        encoding: None,
        duplicates: Duplicates::Error,
        empty_keys: EmptyKeys::Error,
        ..reading
    };
    let again = read(&stored(name, &file), &reading).expect("a written file can be read");
    assert_items(&again, &records, &items);
    if output != Format::Parquet
        && let Some(Some((rows, numbers, _))) = &expected
    {
        let parsed = reference::parse(&file, kept).expect("a written file can be parsed");
        let wanted = items.iter().map(|&item| numbers[item as usize]);
        let wanted: Vec<&Row> = std::iter::once(0).chain(wanted).map(|i| &rows[i]).collect();
        assert!(
            parsed.iter().eq(wanted),
            "the written rows are the selected ones"
        );
    }
}

fn label(encoding: u8) -> Encoding {
    let label = ENCODINGS[usize::from(encoding) % ENCODINGS.len()];
    label
        .parse()
        .expect("the label is in the encoding standard")
}

/// Checks that the records equal the result of the plain parser.
fn compare(records: &Records, rows: &[Row], items: &[usize], question: &Question) {
    assert_eq!(records.counts().rows as usize, rows.len() - 1);
    assert_eq!(records.keys().len(), items.len());
    for (i, &number) in items.iter().enumerate() {
        assert_eq!(records.row_of(i), number as u64);
        let mut key = Vec::new();
        for (&column, kind) in question.keys.iter().zip(records.key_types()) {
            let field = &rows[number][column];
            key.push(if kind.name() == "text" { 1 } else { 2 });
            key.extend_from_slice(&(field.len() as u64).to_le_bytes());
            key.extend_from_slice(field);
        }
        assert!(
            records.keys().get(i) == key,
            "both parsers read the same key"
        );
        let value = question.value.map(|column| rows[number][column].as_slice());
        assert!(
            records.values().map(|values| values.get(i)) == value,
            "both parsers read the same value"
        );
    }
}
