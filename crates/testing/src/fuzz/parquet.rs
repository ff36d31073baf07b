//! Parquet files.

use volery_tables::{Duplicates, EmptyKeys, Format, Reading};

use super::Script;
use super::files::{assert_items, assert_same, columns, picked, read, stored, written};

const TYPES: [&str; 6] = ["", ":text", ":binary", ":integer", ":boolean", ":date"];

/// A Parquet file: four bytes of options, then the file.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn parquet(data: &[u8]) {
    let mut script = Script(data);
    let [keys, types, flags, mask] = [(); 4].map(|()| script.byte());
    let path = stored("rows.parquet", script.rest());

    let mut reading = Reading {
        duplicates: [Duplicates::Error, Duplicates::Dedup][usize::from(flags & 1)],
        empty_keys: [EmptyKeys::Error, EmptyKeys::Skip][usize::from(flags >> 1 & 1)],
        output: [None, Some(Format::Csv), Some(Format::Parquet), None][usize::from(flags >> 2 & 3)],
        ..Reading::default()
    };
    let columns = columns(&path, &reading);
    if columns.is_empty() {
        return;
    }
    let column = |i: usize| columns[i % columns.len()].as_str();
    let chosen: Vec<&str> = (0..=usize::from(keys & 3))
        .map(|i| column(usize::from(keys >> 2) + i))
        .collect();
    let kinds = (0..)
        .step_by(2)
        .map(|i| TYPES[usize::from(types >> i) % TYPES.len()]);
    let keys = chosen.iter().zip(kinds);
    reading.keys = keys.map(|(name, kind)| format!("{name}{kind}")).collect();
    reading.value = (flags >> 4 & 1 == 1).then(|| column(usize::from(flags >> 5)).to_owned());
    let Ok(records) = read(&path, &reading) else {
        return;
    };
    assert_same(
        &records,
        &read(&path, &reading).expect("the same file was read before"),
    );

    let items = picked(records.keys().len(), mask);
    let again = Reading {
        duplicates: Duplicates::Error,
        empty_keys: EmptyKeys::Error,
        output: None,
        ..reading.clone()
    };
    // Parts of the file that were not needed to read the keys may be damaged.
    if let Ok(file) = written(&records, &items, Format::Parquet) {
        let again =
            read(&stored("out.parquet", &file), &again).expect("a written file can be read");
        assert_items(&again, &records, &items);
    }
    let kinds: Vec<_> = records.key_types().iter().map(|kind| kind.name()).collect();
    let has_one_form = |kind: &&str| matches!(*kind, "text" | "integer" | "boolean");
    if let Ok(file) = written(&records, &items, Format::Csv)
        && kinds.iter().all(has_one_form)
        && !columns.iter().any(|column| column.contains(':'))
    {
        let keys = chosen.iter().zip(kinds);
        let again = Reading {
            keys: keys.map(|(name, kind)| format!("{name}:{kind}")).collect(),
            ..again
        };
        let again = read(&stored("out.csv", &file), &again).expect("a written file can be read");
        assert_items(&again, &records, &items);
    }
}
