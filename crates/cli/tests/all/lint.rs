//! `volery lint`: what it counts, what it says, and that it shows no key.

use crate::common::pair::{Folder, PLANTED};
use crate::common::run;
use serde_json::{Value, json};

fn file(folder: &Folder, name: &str, content: &str) -> String {
    let path = folder.path(name);
    std::fs::write(&path, content).unwrap();
    path
}

#[test]
fn keys_are_counted_and_not_shown() {
    let folder = Folder::new();
    let content = format!(
        "email,day\n{PLANTED}@example.org,1.1.2000\n{PLANTED}@EXAMPLE.org,01.01.2000\n\
         {PLANTED},31.2.2000\n,\n"
    );
    let input = file(&folder, "people.csv", &content);
    let report = folder.path("report.json");
    let rules = ["--key", "email:email", "--or", "day:date=%d.%m.%Y"];
    let call = [&["lint", &input][..], &rules, &["--report", &report]].concat();
    let finished = run(&call);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    for part in [
        "rows: 4\n",
        "--key email: text+email/v1\n",
        "--or day: date+date=%d.%m.%Y/v1\n",
        "duplicate keys:  1, in 2 rows; the most frequent one in 2\n",
        "    row 3, column \"email\", for email/v1\n",
        "    row 4, column \"day\"\n",
    ] {
        assert!(finished.stdout.contains(part), "{part:?} is not in {finished:?}");
    }
    let written = std::fs::read_to_string(&report).unwrap();
    for text in [&finished.stdout, &finished.stderr, &written] {
        assert!(!text.to_lowercase().contains(&PLANTED.to_lowercase()), "{text}");
    }
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!((&written["protocol"], &written["n"]), (&json!("lint"), &json!(4)));
    let email = &written["result"]["rules"][0];
    for (name, value) in [
        ("key", json!("text+email/v1")),
        ("keys", json!(2)),
        ("distinct", json!(1)),
        ("duplicate_keys", json!(1)),
        ("duplicate_rows", json!(2)),
        ("most_rows_of_a_key", json!(2)),
        ("empty", json!(1)),
        ("malformed", json!(1)),
        ("first_empty", json!([{"file": input, "row": 4, "column": "email", "by": null}])),
        (
            "first_malformed",
            json!([{"file": input, "row": 3, "column": "email", "by": "email/v1"}]),
        ),
    ] {
        assert_eq!(email[name], value, "{name}");
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
        let input = file(&folder, "input.csv", content);
        let call = ["lint", &input, "--key", "k:email"];
        assert_eq!(run(&call).status, Some(0));
        let strict = run(&[&call[..], &["--strict"]].concat());
        assert_eq!(strict.status, Some(status), "{strict:?}");
        assert_eq!(strict.stderr.contains("malformed keys: 1"), status == 1, "{strict:?}");
    }
}

#[test]
fn the_help_lists_the_normalisers() {
    let finished = run(&["lint", "--help"]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    for name in ["  email ", "  e164=REGION ", "  date=FORMAT ", "  nfkc "] {
        assert!(finished.stdout.contains(name), "{name:?} is not in {finished:?}");
    }
}

#[test]
fn mistakes_are_refused() {
    let folder = Folder::new();
    let input = file(&folder, "input.csv", "k\nada\n");
    let missing = folder.path("missing.csv");
    for (call, status, part) in [
        (&["lint", &input][..], 2, "--key"),
        (&["lint", &input, "--key", ""], 2, "--key"),
        (&["lint", &input, "--key", "k", "--or", "\"k"], 2, "--or"),
        (&["lint", &input, "--key", "x"], 1, "there is no column \"x\""),
        (&["lint", &input, "--key", "k:e164=XX"], 1, "'XX' is no region"),
        (&["lint", &missing, "--key", "k"], 1, "missing.csv"),
        (&["lint", &input, "--key", "k", "--report", &input], 2, "--report"),
    ] {
        run(call).assert_refused(status, &[part]);
    }
    assert_eq!(std::fs::read_to_string(&input).unwrap(), "k\nada\n");
}
