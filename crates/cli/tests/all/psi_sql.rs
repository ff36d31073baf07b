//! Matching compared with SQL: an embedded SQL engine reads the same files and joins them, and both
//! sides' rows must equal its rows, in the same order, byte for byte.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::thread;

use crate::common::pair::{Folder, assert_matched, line, pair};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, vtab};

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
        (0..length)
            .map(|i| char::from_u32(letter(i)).unwrap())
            .collect()
    };
    let kind = match number % 7 {
        0 => word(1 + mixed % 12, 3),
        1 => format!("{}.{}@example.org", word(3, 5), mixed % 1_000_000),
        2 => format!(
            "{}-{:02}-{:02}",
            1900 + mixed % 200,
            1 + mixed % 12,
            1 + mixed % 28
        ),
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

/// Writes `rows` rows of the columns `id,kind,place,value`; some repeat the key of an earlier row,
/// and some have no key. The keys are those of the numbers from `first` on.
fn make(folder: &Folder, name: &str, first: u64, rows: u64) -> String {
    let mut file = BufWriter::new(File::create(folder.path(name)).unwrap());
    file.write_all(b"id,kind,place,value\n").unwrap();
    let mut id = String::new();
    for row in 0..rows {
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
        id.clear();
        write!(id, "{row:07}").unwrap();
        file.write_all(line(&[&id, &kind, &place, &value], ',').as_bytes())
            .unwrap();
    }
    file.flush().unwrap();
    folder.path(name)
}

/// The SQL engine with both files loaded: the first row of each key, with its number.
fn imported(files: [&str; 2]) -> Connection {
    let sql = Connection::open_in_memory().unwrap();
    vtab::csvtab::load_module(&sql).unwrap();
    for (table, file) in ["a", "b"].into_iter().zip(files) {
        assert!(!file.contains('\''), "the file name has no quotes");
        sql.execute_batch(&format!(
            "CREATE VIRTUAL TABLE {table}_file USING csv(filename='{file}', header=yes);
             CREATE TABLE {table}(n INTEGER PRIMARY KEY, id TEXT, kind TEXT, place TEXT, value TEXT, UNIQUE(kind, place));
             INSERT OR IGNORE INTO {table}(id, kind, place, value)
                 SELECT id, kind, place, value FROM {table}_file WHERE kind <> '' AND place <> '';"
        ))
        .unwrap();
    }
    sql
}

/// The rows of a query as a CSV file, under a header.
fn answer(sql: &Connection, header: &str, query: &str) -> String {
    let mut query = sql.prepare(query).unwrap();
    let columns = query.column_count();
    let mut rows = query.query(()).unwrap();
    let mut text = format!("{header}\n");
    while let Some(row) = rows.next().unwrap() {
        let fields: Vec<&str> = (0..columns)
            .map(|column| match row.get_ref(column).unwrap() {
                ValueRef::Text(text) => std::str::from_utf8(text).unwrap(),
                other => panic!("{other:?} is not text"),
            })
            .collect();
        text += &line(&fields, ',');
    }
    text
}

/// Fails unless a file equals `expected`; reports the first difference.
fn assert_file(folder: &Folder, name: &str, expected: &str, at_least: usize) {
    let found = folder.read(name);
    if found != expected {
        let lines = found.lines().zip(expected.lines());
        let same = lines
            .take_while(|(found, expected)| found == expected)
            .count();
        panic!(
            "{name}: line {} is {:?}, not {:?}",
            same + 1,
            found.lines().nth(same),
            expected.lines().nth(same)
        );
    }
    assert!(
        found.lines().count() > at_least,
        "the result has enough rows to test"
    );
}

const HEADER: &str = "id,kind,place,value";
const OPTIONS: [&str; 4] = ["--duplicates", "dedup", "--empty-keys", "skip"];

/// Two files of a million rows with keys of two columns; both sides get their rows.
#[test]
fn two_files_of_a_million_rows() {
    let folder = Folder::new();
    let (a, b) = thread::scope(|scope| {
        let a = scope.spawn(|| make(&folder, "a.csv", 0, 1_000_000));
        let b = make(&folder, "b.csv", 500_000, 1_000_000);
        (a.join().unwrap(), b)
    });
    let (ours, theirs) = (folder.path("ours.csv"), folder.path("theirs.csv"));
    let call = |input, out| {
        [
            "--input",
            input,
            "--key",
            "kind,place",
            "--both",
            "--out",
            out,
        ]
    };
    let (ended, (expected_ours, expected_theirs)) = thread::scope(|scope| {
        let sql = scope.spawn(|| {
            let sql = imported([&a, &b]);
            let rows = |mine, other| {
                let columns = format!("{mine}.id, kind, place, {mine}.value");
                let join = format!("{mine} JOIN {other} USING(kind, place)");
                answer(
                    &sql,
                    HEADER,
                    &format!("SELECT {columns} FROM {join} ORDER BY {mine}.n"),
                )
            };
            (rows("a", "b"), rows("b", "a"))
        });
        let ended = pair(
            "psi",
            &[&call(&a, &ours)[..], &OPTIONS].concat(),
            &[&call(&b, &theirs)[..], &OPTIONS].concat(),
        );
        (ended, sql.join().unwrap())
    });
    assert_matched(&ended);
    assert_file(&folder, "ours.csv", &expected_ours, 400_000);
    assert_file(&folder, "theirs.csv", &expected_theirs, 400_000);
    assert_ne!(expected_ours, expected_theirs);
}

#[test]
fn one_key_column_and_the_protocol_of_the_paper() {
    let folder = Folder::new();
    let a = make(&folder, "a.csv", 70_000, 100_003);
    let b = make(&folder, "b.csv", 0, 99_991);
    let out = folder.path("out.csv");
    let more = [&["--key", "kind", "--protocol", "kkrt-paper"][..], &OPTIONS].concat();
    assert_matched(&pair(
        "psi",
        &[&["--input", &a][..], &more].concat(),
        &[&["--input", &b, "--out", &out][..], &more].concat(),
    ));
    let sql = Connection::open_in_memory().unwrap();
    vtab::csvtab::load_module(&sql).unwrap();
    for (table, file) in [("a", &a), ("b", &b)] {
        sql.execute_batch(&format!(
            "CREATE VIRTUAL TABLE {table}_file USING csv(filename='{file}', header=yes);
             CREATE TABLE {table}(n INTEGER PRIMARY KEY, id TEXT, kind TEXT UNIQUE, place TEXT, value TEXT);
             INSERT OR IGNORE INTO {table}(id, kind, place, value) SELECT * FROM {table}_file WHERE kind <> '';"
        ))
        .unwrap();
    }
    let query = "SELECT b.id, kind, b.place, b.value FROM b JOIN a USING(kind) ORDER BY b.n";
    assert_file(&folder, "out.csv", &answer(&sql, HEADER, query), 20_000);
}

#[test]
fn lookup_is_a_join_with_a_column_more() {
    let folder = Folder::new();
    let a = make(&folder, "a.csv", 0, 100_003);
    let b = make(&folder, "b.csv", 50_000, 99_991);
    let (out, report) = (folder.path("out.csv"), folder.path("report.json"));
    let more = [&["--key", "kind,place"][..], &OPTIONS].concat();
    assert_matched(&pair(
        "lookup",
        &[&["--input", &a, "--value", "value"][..], &more].concat(),
        &[
            &[
                "--input",
                &b,
                "--out",
                &out,
                "--value-name",
                "theirs",
                "--report",
                &report,
            ][..],
            &more,
        ]
        .concat(),
    ));
    let query =
        "SELECT b.id, kind, place, b.value, a.value FROM b JOIN a USING(kind, place) ORDER BY b.n";
    let expected = answer(&imported([&a, &b]), &format!("{HEADER},theirs"), query);
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
    let list = |first: u64, rows: u64| -> String {
        let line = |i| {
            let (number, width) = (first + 3 * i, 1 + mix(i) as usize % 9);
            let sign = ["", "+", "-"][mix(first ^ i) as usize % 3];
            format!("{sign}{number:0>width$},{i}\n")
        };
        "n,m\n".to_owned() + &(0..rows).map(line).collect::<String>()
    };
    let (a, b) = (
        folder.write("a.csv", list(0, 50_000)),
        folder.write("b.csv", list(90_000, 30_011)),
    );
    let out = folder.path("out.csv");
    assert_matched(&pair(
        "psi",
        &["--input", &a, "--key", "n:integer"],
        &["--input", &b, "--key", "n:integer", "--out", &out],
    ));
    let sql = Connection::open_in_memory().unwrap();
    vtab::csvtab::load_module(&sql).unwrap();
    for (table, file) in [("a", &a), ("b", &b)] {
        sql.execute_batch(&format!(
            "CREATE VIRTUAL TABLE {table}_file USING csv(filename='{file}', header=yes);
             CREATE TABLE {table}(row INTEGER PRIMARY KEY, n TEXT, m TEXT, number INTEGER UNIQUE);
             INSERT INTO {table}(n, m, number) SELECT n, m, CAST(n AS INTEGER) FROM {table}_file;"
        ))
        .unwrap();
    }
    let query = "SELECT b.n, b.m FROM b JOIN a USING(number) ORDER BY b.row";
    assert_file(&folder, "out.csv", &answer(&sql, "n,m", query), 5_000);
}
