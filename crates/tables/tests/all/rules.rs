//! Rules: alternatives, normalisers, malformed rows.

use volery_tables::{EmptyKeys, Error, Inputs, Malformed, Problem, Reading, Records, Rule, Table};

use crate::{Folder, complaint, integers, texts};

fn table(folder: &Folder, text: &str) -> Table {
    let paths = vec![folder.write("rows.csv", text)];
    Table::open(&Inputs { paths, ..Inputs::default() }).unwrap()
}

fn reading(rules: &[&str]) -> Reading {
    Reading {
        rules: rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect(),
        ..Reading::default()
    }
}

fn read(table: &Table, reading: &Reading) -> Result<Records, Error> {
    Records::read(table, reading)
}

#[test]
fn alternatives() {
    let folder = Folder::new();
    let text = "email,phone,v\nA@x,1,p\n,2,q\nb@x,,r\na@x,3,s\n,,t\n";
    let table = table(&folder, text);
    let mut rules = reading(&["email:lower", "phone:integer"]);
    rules.values = vec!["v".to_owned()];
    let records = read(&table, &rules).unwrap();
    assert_eq!(records.key_description, "text+lower/v1 or integer");
    assert_eq!(records.items[0], texts(["a@x", "b@x"]));
    assert_eq!(records.items[1], integers(["1", "2", "3"]));
    assert_eq!(records.rows[0], [Some(0), None, Some(1), Some(0), None]);
    assert_eq!(records.rows[1], [Some(0), Some(1), None, Some(2), None]);
    let counts = &records.counts;
    let rule = |i: usize| (counts.rules[i].keys, counts.rules[i].empty, counts.rules[i].changed);
    assert_eq!((counts.rows, rule(0), rule(1)), (5, (3, 2, 1), (3, 2, 0)));
    let values: Vec<_> = records.payload.iter().map(|value| value.get(2).copied()).collect();
    assert_eq!(values, [Some(b'p'), Some(b'q'), Some(b'r'), Some(b's'), None]);
    // One rule alone, and an empty key is an error again.
    let error = read(&table, &reading(&["email:lower"])).unwrap_err();
    assert!(matches!(error.problem(), Problem::EmptyKey { row: 2, .. }));
}

#[test]
fn malformed_rows() {
    let folder = Folder::new();
    let bytes = b"id,d\n1,2024-01-01\nsecret,2024-01-02\n3,\n4,secret\n5,\xff\n";
    let paths = vec![folder.write("rows.csv", bytes)];
    let table = Table::open(&Inputs { paths, ..Inputs::default() }).unwrap();
    let mut rule = reading(&["id:integer,d:date"]);
    rule.empty_keys = EmptyKeys::Skip;
    let (message, _) = complaint(read(&table, &rule));
    assert_eq!(message, r#"column "id" of row 2 is not an integer"#);
    rule.malformed = Malformed::Skip;
    let records = read(&table, &rule).unwrap();
    assert_eq!(records.rows[0], [Some(0), None, None, None, None]);
    let counts = records.counts.rules[0];
    assert_eq!((counts.keys, counts.empty, counts.malformed), (1, 1, 3));
    // A normaliser takes text.
    let mut lower = reading(&["d:lower"]);
    lower.empty_keys = EmptyKeys::Skip;
    let (message, hint) = complaint(read(&table, &lower));
    assert_eq!(message, r#"column "d" of row 5 is malformed for lower/v1: not UTF-8"#);
    assert_eq!(hint, "correct the row; --malformed skip leaves such rows out");
}
