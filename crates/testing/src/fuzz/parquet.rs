//! Parquet files.

use volery_tables::{EmptyKeys, Format, Inputs, Malformed, Reading};

use super::Script;
use super::files::{assert_items, assert_same, columns, open, picked, read, rule, stored, written};

const TYPES: [&str; 6] = ["", "text", "binary", "integer", "boolean", "date"];

/// A Parquet file: four bytes of options, then the file.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn parquet(data: &[u8]) {
    let mut script = Script(data);
    let [keys, types, flags, mask] = [(); 4].map(|()| script.byte());
    let Ok(table) = open(&file("rows.parquet", script.rest())) else {
        return;
    };

    let columns = columns(&table);
    let count = columns.len();
    if count == 0 {
        return;
    }
    let kinds = (0..).step_by(2).map(|i| TYPES[usize::from(types >> i) % TYPES.len()]);
    let chosen: Vec<(usize, &str)> = (0..=usize::from(keys & 3))
        .map(|i| (usize::from(keys >> 2) + i) % count)
        .zip(kinds)
        .collect();
    let named = |(column, kind): &(usize, &'static str)| (columns[*column].as_str(), *kind);
    let Ok(first) = rule(&chosen.iter().map(named).collect::<Vec<_>>()) else {
        return;
    };
    let value = (flags >> 4 & 1 == 1).then(|| columns[usize::from(flags >> 5) % count].clone());
    let reading = Reading {
        rules: vec![first],
        values: value.into_iter().collect(),
        empty_keys: [EmptyKeys::Error, EmptyKeys::Skip][usize::from(flags >> 1 & 1)],
        malformed: [Malformed::Error, Malformed::Skip][usize::from(flags >> 3 & 1)],
        ..Reading::default()
    };
    let Ok(records) = read(&table, &reading) else {
        return;
    };
    assert_same(&records, &read(&table, &reading).expect("the same file was read before"));

    let items = picked(records.items[0].len(), mask);
    let again = Reading { empty_keys: EmptyKeys::Error, malformed: Malformed::Error, ..reading };
    let check = |name, bytes: &[u8], reading: &Reading| {
        let table = open(&file(name, bytes)).expect("a written file can be opened");
        let again = read(&table, reading).expect("a written file can be read");
        assert_items(&again, &records, &items);
    };
    // Parts of the file that were not needed to read the keys may be damaged.
    if let Ok(bytes) = written(&table, &records, &items, Format::Parquet) {
        check("out.parquet", &bytes, &again);
    }
    let kinds: Vec<_> = records.key_description.split(',').collect();
    let has_one_form = |((column, _), kind): (&(usize, &str), &&str)| {
        // Bytes are hexadecimal as text, and other numbers may have a point.
        let stored = table.schema().field(*column).data_type().to_string();
        matches!(*kind, "text" | "integer" | "boolean")
            && !["Binary", "Float", "Decimal"].iter().any(|name| stored.contains(name))
    };
    if chosen.iter().zip(&kinds).all(has_one_form)
        && let Ok(bytes) = written(&table, &records, &items, Format::Csv)
    {
        let keys = chosen.iter().zip(&kinds);
        let keys: Vec<_> =
            keys.map(|((column, _), kind)| (columns[*column].as_str(), *kind)).collect();
        let again = Reading {
            rules: vec![rule(&keys).expect("the same columns were a rule before")],
            values: Vec::new(),
            ..again
        };
        check("out.csv", &bytes, &again);
    }
}

/// A Parquet file, or a text file by that name, of these bytes.
fn file(name: &str, bytes: &[u8]) -> Inputs {
    Inputs { paths: vec![stored(name, bytes)], ..Inputs::default() }
}
