//! `volery lint`: what it counts, what it says, and that it shows no key.

use crate::common::pair::{Folder, PLANTED, store};
use crate::common::run;
use crate::common::table::required;
use parquet::data_type::ByteArray;
use serde_json::{Value, json};

#[test]
fn keys_are_counted_and_not_shown() {
    let folder = Folder::new();
    let content = format!(
        "email,day\n{PLANTED}@example.org,1.1.2000\n{PLANTED}@EXAMPLE.org,01.01.2000\n\
         {PLANTED},31.2.2000\n,\n"
    );
    let input = folder.write("people.csv", content);
    let report = folder.path("report.json");
    let rules = ["--key", "email:email", "--or", "day:date=%d.%m.%Y"];
    let call = [&["lint", &input][..], &rules, &["--report", &report]].concat();
    let finished = run(&call);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    for part in [
        "rows: 4\n",
        "--key email: text+email/v1\n",
        "--or day: date+date=%d.%m.%Y/v1\n",
        "duplicates:      1\n    one key in 2 rows: 1, 2\n",
        "malformed:       1\n    column \"email\", for email/v1, no @: 1 row: 3\n",
        "empty:           1\n    column \"day\": 1 row: 4\n",
    ] {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:?}");
    }
    let written = folder.read("report.json");
    for text in [&finished.stdout, &finished.stderr, &written] {
        assert!(!text.to_lowercase().contains(&PLANTED.to_lowercase()), "{text}");
    }
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&written["command"], &written["n"]), (&json!("lint"), &json!(4)));
    let email = &written["result"]["rules"][0];
    for (name, value) in [
        ("key", json!("text+email/v1")),
        ("keys", json!(2)),
        ("distinct", json!(1)),
        ("duplicates", json!(1)),
        ("empty", json!(1)),
        ("malformed", json!(1)),
        (
            "frequent",
            json!([{"count": 2, "rows": [{"file": input, "row": 1}, {"file": input, "row": 2}]}]),
        ),
    ] {
        assert_eq!(email[name], value, "{name}");
    }
    let malformed = &email["findings"][1];
    assert_eq!((&malformed["cause"], &malformed["count"]), (&json!("no @"), &json!(1)));
    assert_eq!(malformed["rows"], json!([{"file": input, "row": 3}]));
}

/// Only a text file has an encoding that can be named.
#[test]
fn keys_that_are_not_utf_8_have_a_remedy() {
    let folder = Folder::new();
    let parquet = folder.path("a.parquet");
    store(&parquet, &[required("binary k", vec![ByteArray::from(&b"zo\xe9"[..])])]);
    let text = folder.write("a.csv", b"k\nzo\xe9\n");
    for (file, remedy) in [(parquet, "read it as binary"), (text, "name the encoding")] {
        let said = run(&["lint", &file, "--key", "k:text"]).stderr;
        assert!(said.contains("1 key is not UTF-8") && said.contains(remedy), "{said}");
    }
}

#[test]
fn strict_is_about_empty_and_malformed_keys_only() {
    let folder = Folder::new();
    for (content, status) in [
        ("k\nada@example.org\nADA@example.org\n", 0),
        ("k\nada@example.org\nada\n", 1),
        ("k,v\nada@example.org,1\n,2\n", 1),
    ] {
        let input = folder.write("input.csv", content);
        let call = ["lint", &input, "--key", "k:email"];
        assert_eq!(run(&call).status, Some(0));
        let strict = run(&[&call[..], &["--strict"]].concat());
        assert_eq!(strict.status, Some(status), "{strict:?}");
        assert_eq!(strict.stderr.contains("malformed keys: 1"), status == 1, "{strict:?}");
    }
}

/// A placeholder has the numbers of its rows, and a match leaves out what stands in too many.
#[test]
fn placeholders_are_named_and_left_out() {
    let folder = Folder::new();
    let content = "k\nNULL\nunknown@a.example\nnull\nada@a.example\nnull\nada@a.example\n";
    let input = folder.write("input.csv", content);
    let found = run(&["lint", "--input", &input, "--key", "k"]);
    for part in ["placeholder:     4\n", ", null: 3 rows: 1, 3, 5\n", ", unknown@: 1 row: 2\n"] {
        assert!(found.stdout.contains(part), "{part}: {found:?}");
    }
    let call = ["psi", "--role", "sender", "--dry-run", "--input", &input, "--key", "k:lower"];
    for (most, keys) in [("2", 2), ("3", 3), ("1", 1)] {
        let found = run(&[&call[..], &["--drop-repeated", most]].concat());
        assert!(found.stdout.contains(&format!("this side: 6 rows, {keys} distinct")), "{found:?}");
        let left_out = "left out because too many rows have their key";
        assert_eq!(found.stderr.contains(left_out), keys < 3, "{found:?}");
        let lint = ["lint", &input, "--key", "k:lower", "--drop-repeated", most];
        let lint = run(&lint).stdout;
        assert!(lint.contains(&format!("distinct keys:   {keys}\n")), "{lint}");
        assert_eq!(lint.contains("  left out:        "), keys < 3, "{lint}");
    }
    let duplicates = ["lint", &input, "--key", "k", "--duplicates", "error"];
    let found = run(&duplicates);
    assert_eq!(found.status, Some(1), "{found:?}");
    assert!(found.stderr.contains("rows with the same key as an earlier row: 2"), "{found:?}");
}

/// The values are those of a run: of rows with a key, for each key, in all columns.
#[test]
fn values_of_totals_are_checked_with_the_numbers_of_their_rows() {
    let folder = Folder::new();
    let content = "k,v,w\na,1,\nb,-2,1\nc,,1\nd,x,1\ne,1001,1\nf,0.5,1\ng,1e3,1\n,x,\n\
                   h,600,1\ni,5,1\nh,401,1\n";
    let input = folder.write("input.csv", content);
    let v = [
        "column \"v\" has more than 0 decimal places: 1 row: 6\n",
        "column \"v\" has no value: 1 row: 3\n",
        "column \"v\" is beyond --bound: 1 row: 5\n",
        "column \"v\" is negative: 1 row: 2\n",
        "column \"v\" is not a decimal number: 2 rows: 4, 7\n",
    ];
    let w = "column \"w\" has no value: 1 row: 1\n";
    let sum = "column \"v\" has keys whose sum is beyond --bound, counted by their first row: \
               1 row: 9\n";
    let lint = |result, more: &[&str]| {
        let call = ["lint", &input, "--key", "k", "--result", result];
        run(&[&call[..], more].concat())
    };
    for (result, more, last) in [
        ("sum=v", None, vec![sum]),
        ("mean=v", Some("dedup"), vec![]),
        ("sum-product=theirs,v", None, vec![sum]),
        ("sum-product=w,v", None, vec![w, sum]),
        ("shares=v,w", None, vec![w, sum]),
    ] {
        let more = more.map_or(vec![], |policy| vec!["--duplicates", policy]);
        let found = lint(result, &[&["--bound", "1e3"], &more[..]].concat()).stdout;
        let (_, values) = found.split_once("\ncolumn ").expect("values");
        let lines = values.lines().count();
        assert_eq!(lines, v.len() + last.len(), "{result}: {found}");
        for part in v.iter().chain(&last) {
            assert!(found.contains(part), "{result}: {part}: {found}");
        }
    }
    lint("sum=x", &[]).assert_refused(1, &["no column \"x\""]);
    // The peer has the values.
    assert_eq!(lint("sum", &[]).status, Some(0));
    let missing = ["lint", "missing.csv", "--key", "k", "--result", "sum=v", "--bound", "x"];
    run(&missing).assert_refused(2, &["--bound", "is not a bound"]);
}
