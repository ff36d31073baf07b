//! Findings about the keys of a table, against counts made by hand.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::path::PathBuf;

use volery_tables::{EmptyKeys, Finding, Inputs, KeyType, Lint, Malformed, Reading, Rule, Table};

fn open(folder: &tempfile::TempDir, files: &[(&str, &str)]) -> Table {
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|(name, content)| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        })
        .collect();
    let inputs = Inputs { paths, ..Inputs::default() };
    Table::open(&inputs).unwrap()
}

fn lint(table: &Table, rules: &[&str]) -> Lint {
    Lint::of(table, &by(rules), &mut |_| {}).unwrap()
}

fn by(rules: &[&str]) -> Reading {
    let rules = rules.iter().map(|rule| Rule::parse(rule).unwrap()).collect();
    let (empty_keys, malformed) = (EmptyKeys::Skip, Malformed::Skip);
    Reading { rules, empty_keys, malformed, ..Reading::default() }
}

#[test]
fn every_row_is_counted_once_by_each_rule() {
    let folder = tempfile::tempdir().unwrap();
    let people = "email,phone,born,id\n\
                  ada@example.org,030 23125000,10.12.1815,1\n\
                  \" ADA@example.org\",+49 30 23125000,10.12.1815,1\n\
                  kurt@example.org,,28.4.1906,2\n\
                  nobody,110,31.2.1906,x\n\
                  ,+493023125000,,\n\
                  \" \",0000,28.04.1906,3\n";
    let table = open(&folder, &[("people.csv", people)]);
    let found =
        lint(&table, &["email:trim+email", "phone:e164=DE,born:date=%d.%m.%Y", "id:integer"]);
    assert_eq!(found.rows, 6);
    for rule in &found.rules {
        let counts = &rule.counts;
        assert_eq!(counts.keys + counts.empty + counts.malformed, 6);
    }

    let email = &found.rules[0];
    assert_eq!(email.description, "text+trim/v1+email/v1");
    assert_eq!((email.counts.keys, email.counts.empty, email.counts.malformed), (3, 2, 1));
    assert_eq!((email.distinct, email.repeated, email.repeated_rows), (2, 1, 2));
    assert_eq!(email.frequent, [(2, vec![0, 1])]);
    assert_eq!(email.counts.changed, 1);
    let [column] = &email.columns[..] else { panic!("{email:?}") };
    assert_eq!((column.name.as_str(), column.kind), ("email", KeyType::Text));
    assert_eq!(column.changed, [("trim/v1".to_owned(), 1), ("email/v1".to_owned(), 1)]);
    let findings = |rule: usize| -> Vec<String> {
        let told = |finding: &Finding| {
            let Finding { kind, column, by, cause, rows, count } = finding;
            assert_eq!(rows.len() as u64, *count);
            let (by, cause) = (by.as_deref().unwrap_or_default(), cause.unwrap_or_default());
            format!("{kind} {column} {by} {cause} {rows:?}")
        };
        found.rules[rule].findings.iter().map(told).collect()
    };
    assert_eq!(findings(0), ["empty email   [4, 5]", "malformed email email/v1 no @ [3]"]);

    let both = &found.rules[1];
    assert_eq!(both.columns[1].kind, KeyType::Date);
    assert_eq!((both.distinct, both.repeated_rows), (1, 2));
    let expected = [
        "empty phone   [2]",
        "empty born   [4]",
        "malformed phone e164=DE/v1 no area code [3]",
        "malformed phone e164=DE/v1 no such prefix [5]",
    ];
    assert_eq!(findings(1), expected);

    let id = &found.rules[2];
    assert_eq!(findings(2), ["empty id   [4]", "malformed id integer  [3]"]);
    assert_eq!((id.counts.changed, id.distinct), (0, 3));
}

#[test]
fn rows_are_those_of_their_files_and_only_the_first_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let of = |rows: usize, field: &str| format!("k,v\n{}", format!("{field},1\n").repeat(rows));
    let files = [("a.csv", of(3_000, "a")), ("b.csv", of(2_500, "")), ("c.csv", of(1, "b"))];
    let files: Vec<_> = files.iter().map(|(name, content)| (*name, content.as_str())).collect();
    let table = open(&folder, &files);
    let found = lint(&table, &["k:email", "k"]);
    assert_eq!(found.rows, 5_501);
    let [email, text] = &found.rules[..] else { panic!("{found:?}") };
    assert_eq!((email.counts.malformed, email.counts.empty), (3_001, 2_500));
    let [empty, malformed] = &email.findings[..] else { panic!("{email:?}") };
    assert_eq!((malformed.count, &malformed.rows[..]), (3_001, &[0, 1, 2, 3, 4][..]));
    assert_eq!((empty.count, &empty.rows[..]), (2_500, &[3_000, 3_001, 3_002, 3_003, 3_004][..]));
    let (file, row) = table.place(3_004);
    assert_eq!((file.file_name().unwrap().to_str(), row), (Some("b.csv"), 5));
    assert_eq!((email.distinct, email.frequent.len()), (0, 0));
    assert_eq!((text.distinct, text.repeated, text.repeated_rows), (2, 1, 3_000));
}
