//! Text files.

use arrow_array::cast::AsArray as _;
use volery_tables::{EmptyKeys, Encoding, Format, Inputs, Reading, Records};

use super::Script;
use super::files::{
    assert_items, assert_same, columns, first_rows, open, picked, read, rule, stored, written,
};
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

const TYPES: [&str; 8] = ["text", "text", "binary", "text", "binary", "integer", "boolean", "date"];

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
    let inputs = |name: &str, bytes: &[u8], delimiter, encoding| Inputs {
        paths: vec![stored(name, bytes)],
        delimiter,
        encoding,
        ..Inputs::default()
    };
    let coded = (encoding & 0x80 != 0).then(|| label(encoding));
    let opened = open(&inputs(name, bytes, named, coded));
    let columns = opened.as_ref().map(columns).unwrap_or_default();
    let count = columns.len().max(1);
    let column = |i: usize| columns.get(i % count).cloned().unwrap_or_default();
    let chosen: Vec<(usize, &str)> = (0..=usize::from(keys & 3))
        .map(|i| {
            let kind = TYPES[usize::from(types >> (2 * i)) % 8];
            ((usize::from(keys >> 2) + i) % count, kind)
        })
        .collect();
    let names: Vec<String> = chosen.iter().map(|(i, _)| column(*i)).collect();
    let keys: Vec<(&str, &str)> =
        names.iter().zip(&chosen).map(|(name, (_, kind))| (name.as_str(), *kind)).collect();
    let value = (flags >> 5 & 1 == 1).then(|| usize::from(flags >> 6) % count);
    let empty_keys = [EmptyKeys::Error, EmptyKeys::Skip][usize::from(flags >> 4 & 1)];
    let rules = rule(&keys).map(|rule| vec![rule]);
    let reading = Reading {
        rules: rules.unwrap_or_default(),
        values: value.map(column).into_iter().collect(),
        empty_keys,
        ..Reading::default()
    };

    let result = opened.and_then(|table| Ok((read(&table, &reading)?, table)));
    let delimiter = named.unwrap_or(if tab_by_name { b'\t' } else { b',' });
    // A column without a name cannot be a key.
    let plain = coded.is_none()
        && chosen.iter().all(|(_, kind)| matches!(*kind, "text" | "binary"))
        && !names.iter().any(String::is_empty)
        && delimiter != 0;
    let expected = plain.then(|| {
        let rows = reference::parse(bytes, delimiter)?;
        let mut keys: Vec<usize> = chosen.iter().map(|(i, _)| *i).collect();
        let question = Question { keys: keys.clone(), value, empty_keys };
        keys.sort_unstable();
        keys.dedup();
        let items = reference::items(&rows, &question)?;
        (keys.len() == chosen.len()).then_some((rows, items, question))
    });
    if let Some(expected) = &expected {
        assert_eq!(result.is_ok(), expected.is_some(), "both parsers accept or both refuse");
    }
    let Ok((records, table)) = result else { return };
    assert_same(&records, &read(&table, &reading).expect("the same file was read before"));
    if let Some(Some((rows, items, question))) = &expected {
        compare(&records, rows, items, question, &chosen);
    }

    let items = picked(records.items[0].len(), mask);
    let file = written(&table, &records, &items, output);
    if let Some(Some((rows, numbers, _))) = &expected {
        let mut wanted = items.iter().map(|&item| &rows[numbers[item as usize]]);
        let is_text = |field: &Vec<u8>| std::str::from_utf8(field).is_ok();
        let has_form = output != Format::Parquet || wanted.all(|row| row.iter().all(is_text));
        assert_eq!(file.is_ok(), has_form, "only text can be written as text");
    }
    let Ok(file) = file else { return };
    let name = ["rows.csv", "rows.tsv", "rows.parquet"][usize::from(flags >> 1 & 3) % 3];
    let same = matches!((tab_by_name, output), (false, Format::Csv) | (true, Format::Tsv));
    let kept = if output == Format::Tsv { b'\t' } else { b',' };
    let kept = if same { delimiter } else { kept };
    let kept_by_name = (output != Format::Parquet).then_some(kept);
    let reading = Reading { empty_keys: EmptyKeys::Error, ..reading };
    let again = open(&inputs(name, &file, kept_by_name, None));
    let again = again.and_then(|table| read(&table, &reading));
    let again = again.expect("a written file can be read");
    assert_items(&again, &records, &items);
    if output != Format::Parquet
        && let Some(Some((rows, numbers, _))) = &expected
    {
        let parsed = reference::parse(&file, kept).expect("a written file can be parsed");
        let wanted = items.iter().map(|&item| numbers[item as usize]);
        let wanted: Vec<&Row> = std::iter::once(0).chain(wanted).map(|i| &rows[i]).collect();
        assert!(parsed.iter().eq(wanted), "the written rows are the selected ones");
    }
}

fn label(encoding: u8) -> Encoding {
    let label = ENCODINGS[usize::from(encoding) % ENCODINGS.len()];
    label.parse().expect("the label is in the encoding standard")
}

/// Checks that the records equal the result of the plain parser.
fn compare(
    records: &Records,
    rows: &[Row],
    items: &[usize],
    question: &Question,
    chosen: &[(usize, &str)],
) {
    assert_eq!(records.rows[0].len(), rows.len() - 1);
    let firsts = items.iter().map(|&number| number as u64 - 1);
    assert!(first_rows(records).into_iter().eq(firsts));
    for (i, &number) in items.iter().enumerate() {
        let mut key = Vec::new();
        for (column, kind) in chosen {
            let field = &rows[number][*column];
            key.push(if *kind == "text" { 1 } else { 2 });
            key.extend_from_slice(&(field.len() as u64).to_le_bytes());
            key.extend_from_slice(field);
        }
        let item = blake3::derive_key("volery 2026 item", &key);
        assert!(records.items[0][i] == item[..16], "both parsers read the same key");
        let Some(column) = question.value else {
            continue;
        };
        let schema = records.payload_schema.as_ref().expect("a payload was named");
        let value = Some(&records.payload[number - 1][..]);
        let columns = schema.decode([value], &mut |_, _, why| panic!("a payload {why}"));
        assert!(
            columns[0].as_string::<i32>().value(0).as_bytes() == rows[number][column],
            "both parsers read the same value"
        );
    }
}
