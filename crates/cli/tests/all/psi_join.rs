//! Matching compared with a plain join of the same rows: the rows of both sides must equal it, in
//! the same order, byte for byte.

use std::collections::{HashMap, HashSet};
use std::thread;

use crate::common::pair::{Folder, assert_matched, line, pair};

/// Scripts for generated words: the first letter and the number of letters.
const SCRIPTS: [(u32, u32); 8] = [
    (0x61, 26),     // Latin
    (0xe0, 23),     // with marks
    (0x3b1, 25),    // Greek
    (0x430, 32),    // Cyrillic
    (0x5d0, 27),    // Hebrew
    (0x905, 53),    // Devanagari
    (0x4e00, 2000), // Han
    (0x1f600, 64),  // outside the Basic Multilingual Plane
];

/// The key and value for a number, cycling through many kinds.
fn fields(number: u64) -> [String; 3] {
    let mixed = mix(number);
    let word = |length: u64, salt: u64| -> String {
        let (first, letters) = SCRIPTS[(mixed >> salt) as usize % SCRIPTS.len()];
        let letter = |i| first + mix(mixed ^ i ^ salt) as u32 % letters;
        (0..length).map(|i| char::from_u32(letter(i)).unwrap()).collect()
    };
    let kind = match number % 7 {
        0 => word(1 + mixed % 12, 3),
        1 => format!("{}.{}@example.org", word(3, 5), mixed % 1_000_000),
        2 => format!("{}-{:02}-{:02}", 1900 + mixed % 200, 1 + mixed % 12, 1 + mixed % 28),
        3 => {
            let other = mix(mixed);
            let (a, b, c) = (mixed >> 32, mixed >> 16 & 0xffff, mixed & 0xfff);
            format!(
                "{a:08x}-{b:04x}-4{c:03x}-{:04x}-{:012x}",
                other >> 48,
                other & 0xffff_ffff_ffff
            )
        }
        // Numbers with leading zeros.
        4 => format!("{:0>1$}", mixed % 10_000, 4 + (mixed >> 40) as usize % 5),
        5 => format!("say \"{}\", {}", word(2, 7), mixed % 100),
        _ => format!(" {} \r\n\t'{}'", word(4, 9), mixed % 50),
    };
    // One in ten thousand is longer than a page.
    let long = if number % 10_007 == 5 { 10_240 } else { 0 };
    let place = format!("{:05}{}", mixed >> 20 & 0x3fff, "x".repeat(long));
    [kind, place, format!("v{}", mixed % 1_000)]
}

/// A pseudorandom permutation of all numbers.
fn mix(mut word: u64) -> u64 {
    word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    for _ in 0..2 {
        word = (word ^ word >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    }
    word ^ word >> 32
}

/// A row of the columns `id,kind,place,value`.
type Row = [String; 4];

/// Writes `rows` rows; some repeat the key of an earlier row, and some have no key. The keys are
/// those of the numbers from `first` on.
fn make(folder: &Folder, name: &str, first: u64, rows: u64) -> (String, Vec<Row>) {
    let row = |row| {
        let random = mix(first ^ row ^ 1 << 40);
        let number = match random % 50 {
            0 => first + mix(random) % (row + 1), // again, as it may be
            _ => first + row,
        };
        let [mut kind, mut place, value] = fields(number);
        match random >> 32 & 0xfff {
            0 => kind.clear(),
            1 => place.clear(),
            2 => kind.push(' '), // another key, nearly the same
            3 => kind = kind.to_uppercase(),
            _ => {}
        }
        [format!("{row:07}"), kind, place, value]
    };
    let rows: Vec<Row> = (0..rows).map(row).collect();
    let lines = rows.iter().map(|row| line(row, ','));
    let text = format!("{HEADER}\n{}", lines.collect::<String>());
    (folder.write(name, text), rows)
}

/// The first row of each key, in the order of the rows, and by its key.
fn distinct(rows: &[Row], key: Key) -> (Vec<&Row>, HashMap<Vec<&str>, &Row>) {
    let (mut order, mut of) = (Vec::new(), HashMap::new());
    for row in rows {
        let parts: Vec<&str> = row[key.0..key.1].iter().map(String::as_str).collect();
        if parts.iter().all(|part| !part.is_empty()) && !of.contains_key(&parts) {
            of.insert(parts, row);
            order.push(row);
        }
    }
    (order, of)
}

/// The first column of the key, and the one behind its last.
type Key = (usize, usize);

const KIND: Key = (1, 2);
const KIND_AND_PLACE: Key = (1, 3);

/// The rows of `mine` with a key of `other`, as a file; with the value of `other` if `values`.
fn join(mine: &[Row], other: &[Row], key: Key, values: bool) -> String {
    let (rows, _) = distinct(mine, key);
    let (_, other) = distinct(other, key);
    let mut text = format!("{HEADER}{}\n", if values { ",theirs" } else { "" });
    for row in rows {
        let parts: Vec<&str> = row[key.0..key.1].iter().map(String::as_str).collect();
        if let Some(found) = other.get(&parts) {
            let value = values.then_some(&found[3]);
            text += &line(&row.iter().chain(value).collect::<Vec<_>>(), ',');
        }
    }
    text
}

/// Fails unless a file equals `expected`; reports the first difference.
fn assert_file(folder: &Folder, name: &str, expected: &str, at_least: usize) {
    let found = folder.read(name);
    if found != expected {
        let lines = found.lines().zip(expected.lines());
        let same = lines.take_while(|(found, expected)| found == expected).count();
        panic!(
            "{name}: line {} is {:?}, not {:?}",
            same + 1,
            found.lines().nth(same),
            expected.lines().nth(same)
        );
    }
    assert!(found.lines().count() > at_least, "the result has enough rows to test");
}

const HEADER: &str = "id,kind,place,value";
const OPTIONS: [&str; 4] = ["--duplicates", "dedup", "--empty-keys", "skip"];

/// Two files of 300,000 rows with keys of two columns; both sides get their rows.
#[test]
fn two_large_files() {
    const ROWS: u64 = 300_000;
    let folder = Folder::new();
    let ((a, ours), (b, theirs)) = thread::scope(|scope| {
        let a = scope.spawn(|| make(&folder, "a.csv", 0, ROWS));
        let b = make(&folder, "b.csv", ROWS / 2, ROWS);
        (a.join().unwrap(), b)
    });
    let (out_a, out_b) = (folder.path("ours.csv"), folder.path("theirs.csv"));
    let key = ["--key", "kind,place", "--both"];
    let call = |input, out| [&["--input", input, "--out", out], &key[..], &OPTIONS].concat();
    assert_matched(&pair("psi", &call(&a, &out_a), &call(&b, &out_b)));
    let expected = join(&ours, &theirs, KIND_AND_PLACE, false);
    assert_file(&folder, "ours.csv", &expected, 120_000);
    let expected = join(&theirs, &ours, KIND_AND_PLACE, false);
    assert_file(&folder, "theirs.csv", &expected, 120_000);
}

#[test]
fn one_key_column_and_the_protocol_of_the_paper() {
    let folder = Folder::new();
    let (a, ours) = make(&folder, "a.csv", 70_000, 100_003);
    let (b, theirs) = make(&folder, "b.csv", 0, 99_991);
    let out = folder.path("out.csv");
    let more = [&["--key", "kind", "--protocol", "kkrt-paper"][..], &OPTIONS].concat();
    assert_matched(&pair(
        "psi",
        &[&["--input", &a][..], &more].concat(),
        &[&["--input", &b, "--out", &out][..], &more].concat(),
    ));
    let expected = join(&theirs, &ours, KIND, false);
    assert_file(&folder, "out.csv", &expected, 20_000);
}

#[test]
fn lookup_is_a_join_with_a_column_more() {
    let folder = Folder::new();
    let (a, ours) = make(&folder, "a.csv", 0, 100_003);
    let (b, theirs) = make(&folder, "b.csv", 50_000, 99_991);
    let (out, report) = (folder.path("out.csv"), folder.path("report.json"));
    let more = [&["--key", "kind,place"][..], &OPTIONS].concat();
    let named = ["--value-name", "theirs", "--report", &report];
    assert_matched(&pair(
        "lookup",
        &[&["--input", &a, "--value", "value"][..], &more].concat(),
        &[&["--input", &b, "--out", &out], &named[..], &more].concat(),
    ));
    let expected = join(&theirs, &ours, KIND_AND_PLACE, true);
    assert_file(&folder, "out.csv", &expected, 40_000);

    let result = &folder.json("report.json")["result"];
    // With one byte that says which columns are null, and one for the length.
    assert_eq!(result["longest_value_bytes"], 6);
    let bytes = |name: &str| result[name].as_f64().unwrap();
    let off = bytes("bytes_online") / bytes("bytes_formula") - 1.0;
    assert!((0.0..0.02).contains(&off), "{off}");
}

/// Numeric keys, whose leading zeros do not count.
#[test]
fn numbers_are_joined_as_numbers() {
    let folder = Folder::new();
    let list = |first: u64, rows: u64| -> Vec<(i64, String)> {
        let line = |i| {
            let (number, width) = (first + 3 * i, 1 + mix(i) as usize % 9);
            let sign = ["", "+", "-"][mix(first ^ i) as usize % 3];
            let value = number as i64 * if sign == "-" { -1 } else { 1 };
            (value, format!("{sign}{number:0>width$},{i}\n"))
        };
        (0..rows).map(line).collect()
    };
    let file = |name, rows: &[(i64, String)]| {
        let lines = rows.iter().map(|(_, line)| line.as_str());
        folder.write(name, "n,m\n".to_owned() + &lines.collect::<String>())
    };
    let (ours, theirs) = (list(0, 50_000), list(90_000, 30_011));
    let (a, b) = (file("a.csv", &ours), file("b.csv", &theirs));
    let out = folder.path("out.csv");
    assert_matched(&pair(
        "psi",
        &["--input", &a, "--key", "n:integer"],
        &["--input", &b, "--key", "n:integer", "--out", &out],
    ));
    let known: HashSet<i64> = ours.iter().map(|(number, _)| *number).collect();
    let common = theirs.iter().filter(|(number, _)| known.contains(number));
    let expected = common.map(|(_, line)| line.as_str()).collect::<String>();
    assert_file(&folder, "out.csv", &format!("n,m\n{expected}"), 5_000);
}
