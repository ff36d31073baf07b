//! Files of every kind, in and out.

use std::sync::Arc;

use arrow_array::{ArrayRef, Date32Array, Int32Array, StringArray};
use arrow_schema::DataType;

use crate::common::pair::{Folder, assert_matched, iso, line, load, pair, store};

/// One of the people in the files: number, address, name, day of birth.
fn person(i: i32) -> [String; 4] {
    let name = match i % 3 {
        0 => format!("Zoë {i}"),
        1 => format!("Weiß, \"Jo\" {i}"),
        _ => String::new(),
    };
    let mail = format!("p{i:05}@example.org");
    [(7 * i - 900).to_string(), mail, name, iso(31 * i)]
}

/// Writes people as a file of the kind that the extension says.
fn write_people(folder: &Folder, name: &str, columns: [&str; 4], people: &[i32]) -> String {
    let rows = people.iter().map(|&i| person(i));
    if name.ends_with(".parquet") {
        let texts = |column: usize| -> ArrayRef {
            let texts = rows.clone().map(|row| row[column].clone());
            Arc::new(StringArray::from_iter_values(texts))
        };
        let numbers = people.iter().map(|i| 7 * i - 900);
        let days = people.iter().map(|i| 31 * i);
        let arrays: [ArrayRef; 4] = [
            Arc::new(Int32Array::from_iter_values(numbers)),
            texts(1),
            texts(2),
            Arc::new(Date32Array::from_iter_values(days)),
        ];
        store(
            &folder.path(name),
            columns.into_iter().zip(arrays).collect(),
        );
        return folder.path(name);
    }
    let lines = rows.map(|row| line(&row, ','));
    folder.write(name, line(&columns, ',') + &lines.collect::<String>())
}

/// Fails unless an output holds these people, in the form that a file of the kind of `from` has in it.
fn check_people(folder: &Folder, name: &str, from: &str, columns: [&str; 4], people: &[i32]) {
    let rows: Vec<Vec<String>> = people.iter().map(|&i| person(i).to_vec()).collect();
    if name.ends_with(".parquet") {
        let (found, found_rows) = load(&folder.path(name));
        let types = if from.ends_with(".parquet") {
            let text = DataType::Utf8;
            [DataType::Int32, text.clone(), text, DataType::Date32]
        } else {
            [const { DataType::Utf8 }; 4]
        };
        let expected = columns.map(str::to_owned).into_iter().zip(types);
        assert_eq!(found, expected.collect::<Vec<_>>());
        assert_eq!(found_rows, rows);
        return;
    }
    let delimiter = if name.ends_with(".tsv") { '\t' } else { ',' };
    let lines = rows.iter().map(|row| line(row, delimiter));
    let expected = line(&columns, delimiter) + &lines.collect::<String>();
    assert_eq!(folder.read(name), expected);
}

/// Both sides get their rows, in files of every kind, from a `left` and a `right` file.
fn every_output(left: &str, right: &str) {
    let folder = Folder::new();
    let (left, right) = (format!("left.{left}"), format!("right.{right}"));
    // Not in the order of the keys, nor in the same order on both sides.
    let ours: Vec<i32> = (0..1009).map(|i| i * 5 % 1009).collect();
    let theirs: Vec<i32> = (0..701).map(|i| 500 + i * 3 % 701).collect();
    let both = |people: &[i32]| -> Vec<i32> {
        let common = people.iter().filter(|&&i| (500..1009).contains(&i));
        common.copied().collect()
    };
    let (names, others) = (
        ["no", "mail", "name", "born"],
        ["n r", "e", "na:me", "birth:day"],
    );
    let left_path = write_people(&folder, &left, names, &ours);
    let right_path = write_people(&folder, &right, others, &theirs);
    let key = |file: &str, parquet, text| {
        if file.ends_with(".csv") {
            text
        } else {
            parquet
        }
    };
    let left_key = key(&left, "mail,no,born", "mail,no:integer,born:date");
    let right_key = key(&right, "e,n r,birth:day", "e,n r:integer,birth:day:date");

    for left_out in ["ours.csv", "ours.tsv", "ours.parquet"] {
        for right_out in ["theirs.txt", "theirs.TSV", "theirs.parquet"] {
            let right_out = right_out.to_lowercase();
            let (a, b) = (folder.path(left_out), folder.path(&right_out));
            let call = |input, key, out| {
                [
                    "--input", input, "--key", key, "--out", out, "--both", "--force",
                ]
            };
            let ended = pair(
                "psi",
                &call(&left_path, left_key, &a),
                &call(&right_path, right_key, &b),
            );
            assert_matched(&ended);
            check_people(&folder, left_out, &left, names, &both(&ours));
            check_people(&folder, &right_out, &right, others, &both(&theirs));
        }
    }
    assert_eq!(folder.names().len(), 8, "{:?}", folder.names());
}

#[test]
fn csv_and_csv() {
    every_output("csv", "csv");
}

#[test]
fn csv_and_parquet() {
    every_output("csv", "parquet");
}

#[test]
fn parquet_and_csv() {
    every_output("parquet", "csv");
}

#[test]
fn parquet_and_parquet() {
    every_output("parquet", "parquet");
}
