//! Input and output files of every format.

use crate::common::pair::{Folder, assert_matched, iso, line, load, pair, store, string};
use crate::common::table::{required, strings};

/// One person in the files: number, address, name, day of birth.
fn person(i: i32) -> [String; 4] {
    let name = match i % 3 {
        0 => format!("Zoë {i}"),
        1 => format!("Weiß, \"Jo\" {i}"),
        _ => String::new(),
    };
    let mail = format!("p{i:05}@example.org");
    [(7 * i - 900).to_string(), mail, name, iso(31 * i)]
}

/// Writes people to a file of the format that its extension names.
fn write_people(folder: &Folder, name: &str, columns: [&str; 4], people: &[i32]) -> String {
    let rows = people.iter().map(|&i| person(i));
    if name.ends_with(".parquet") {
        let texts =
            |at: usize| strings("c", rows.clone().map(|row| row[at].clone())).named(columns[at]);
        let numbers: Vec<i32> = people.iter().map(|i| 7 * i - 900).collect();
        let days: Vec<i32> = people.iter().map(|i| 31 * i).collect();
        let columns = [
            required("int32 c", numbers).named(columns[0]),
            texts(1),
            texts(2),
            required("int32 c (DATE)", days).named(columns[3]),
        ];
        store(&folder.path(name), &columns);
        return folder.path(name);
    }
    let lines = rows.map(|row| line(&row, ','));
    folder.write(name, line(&columns, ',') + &lines.collect::<String>())
}

/// Fails unless an output holds these people, as read from a file of the format of `from`.
fn check_people(folder: &Folder, name: &str, from: &str, columns: [&str; 4], people: &[i32]) {
    let rows: Vec<Vec<String>> = people.iter().map(|&i| person(i).to_vec()).collect();
    if name.ends_with(".parquet") {
        let (found, found_rows) = load(&folder.path(name));
        let mut expected = columns.map(string);
        if from.ends_with(".parquet") {
            expected[0] = format!("REQUIRED INT32 {};", columns[0]);
            expected[3] = format!("REQUIRED INT32 {} (DATE);", columns[3]);
        }
        assert_eq!(found, expected);
        assert_eq!(found_rows, rows);
        return;
    }
    let delimiter = if name.ends_with(".tsv") { '\t' } else { ',' };
    let lines = rows.iter().map(|row| line(row, delimiter));
    let expected = line(&columns, delimiter) + &lines.collect::<String>();
    assert_eq!(folder.read(name), expected);
}

/// Both sides get their rows, in files of every format, from a `left` and a `right` file.
fn every_output(left: &str, right: &str) {
    let folder = Folder::new();
    let (left, right) = (format!("left.{left}"), format!("right.{right}"));
    // Neither in key order, nor in the same order on both sides.
    let ours: Vec<i32> = (0..1009).map(|i| i * 5 % 1009).collect();
    let theirs: Vec<i32> = (0..701).map(|i| 500 + i * 3 % 701).collect();
    let both = |people: &[i32]| -> Vec<i32> {
        let common = people.iter().filter(|&&i| (500..1009).contains(&i));
        common.copied().collect()
    };
    let (names, others) = (["no", "mail", "name", "born"], ["n r", "e", "na:me", "birth:day"]);
    let left_path = write_people(&folder, &left, names, &ours);
    let right_path = write_people(&folder, &right, others, &theirs);
    let key = |file: &str, parquet, text| {
        if file.ends_with(".csv") { text } else { parquet }
    };
    let left_key = key(&left, "mail,no,born", "mail,no:integer,born:date");
    let right_key = key(&right, "e,n r,birth:day", "e,n r:integer,birth:day:date");

    for left_out in ["ours.csv", "ours.tsv", "ours.parquet"] {
        for right_out in ["theirs.txt", "theirs.TSV", "theirs.parquet"] {
            let right_out = right_out.to_lowercase();
            let (a, b) = (folder.path(left_out), folder.path(&right_out));
            let call = |input, key, out| {
                ["--input", input, "--key", key, "--out", out, "--both", "--force"]
            };
            let ended =
                pair("psi", &call(&left_path, left_key, &a), &call(&right_path, right_key, &b));
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
