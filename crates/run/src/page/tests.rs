#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use serde_json::{Value, json};

use super::render;

const SAMPLES: [&str; 3] = [
    include_str!("../../tests/page/psi.json"),
    include_str!("../../tests/page/failed.json"),
    include_str!("../../tests/page/vole.json"),
];

fn sample(index: usize) -> Value {
    serde_json::from_str(SAMPLES[index]).unwrap()
}

/// The text of a page, without its head; fails unless every element is closed in its order and
/// every attribute quoted.
fn text(page: &str) -> String {
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap();
    let (mut open, mut out) = (Vec::new(), String::new());
    let mut rest = body;
    while let Some((before, tag)) = rest.split_once('<') {
        assert!(!before.contains('>'), "{before}");
        if open.contains(&"body") {
            out.push_str(before);
            out.push(' ');
        }
        let (tag, after) = tag.split_once('>').unwrap();
        rest = after;
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        assert_eq!(attributes.matches('"').count() % 2, 0, "{tag}");
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{before}"),
            None if name == "style" => {
                let (sheet, after) = rest.split_once("</style>").unwrap();
                assert!(!sheet.contains("url(") && !sheet.contains("@import"));
                rest = after;
            }
            None if ["meta", "link"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(rest, "\n");
    assert!(open.is_empty(), "{open:?}");
    let plain = [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#39;", "'"), ("&amp;", "&")];
    plain.iter().fold(out, |out, (escaped, character)| out.replace(escaped, character))
}

#[test]
fn pages_are_well_formed_and_load_nothing() {
    let strange = [
        json!(null),
        json!([]),
        json!({}),
        json!({ "protocol": "psi" }),
        json!({ "protocol": 7, "result": [], "error": 5, "inputs": {}, "phases": [{}, 3] }),
        json!({ "protocol": "psi", "error": "the disk is full", "hint": "free some space" }),
        json!({ "protocol": "psi", "bytes_sent": u64::MAX, "bytes_received": u64::MAX, "seconds": { "total": -1.0 },
                "result": { "items": 0, "peer_items": u64::MAX, "common": u64::MAX, "rows": 0, "matched": 9,
                            "rules": [{ "matched_rows": 9 }], "failure_log2": 3.5 } }),
    ];
    for report in strange.into_iter().chain((0..SAMPLES.len()).map(sample)) {
        let page = render(&report);
        text(&page);
        for load in ["http:", "https:", "<script", "src=", "@import", "url(", "NaN", "inf%"] {
            assert!(!page.contains(load), "{load}: {page}");
        }
    }
}

#[test]
fn the_numbers_of_a_run_are_there() {
    let page = text(&render(&sample(0)));
    for expected in [
        "4,000 of your 5,000 rows matched",
        "This side had 4,873 distinct keys, the peer 20,000; 3,921 keys are on both sides.",
        "1. email:email (3,105 distinct keys)",
        "3,180 rows",
        "64 %",
        "making correlations",
        "871 ms",
        "7,225,644 bytes (7.23 MB)",
        "at most 1 in 1.26 trillion (",
        "1.9 times the keys that it states",
        "Rows with an empty key",
        "loyalty <script>alert(1)</script> & \"friends\".csv",
        "blake3:a1c3e5f7",
        "m7qd-2v9x",
        "4 buckets of at most 5,400 keys",
        "2026-11-20 09:30 UTC",
        "result.most_items.2^80 hashes",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
}

#[test]
fn headlines_say_who_has_what() {
    let with = |verb: &str, result: Value| {
        let report = json!({ "protocol": verb, "role": "receiver", "n": 5, "result": result });
        let page = render(&report);
        let (_, after) = page.split_once("<h1>").unwrap();
        let (headline, lead) = after.split_once("</h1>").unwrap();
        let lead = lead.split_once("</p>").unwrap().0;
        format!("{headline}. {}", lead.split_once('>').unwrap().1)
    };
    let sets = json!({ "items": 1, "peer_items": 4000 });
    assert_eq!(
        with("psi", sets),
        "Your key was compared with the peer’s 4,000. The result went to the peer; this side gets none."
    );
    let none = json!({ "items": 5000, "peer_items": 4, "common": 0 });
    assert!(
        with("psi", none)
            .starts_with("0 of your 5,000 keys matched. No key is in both sets. A usual cause")
    );
    let one = json!({ "items": 2, "peer_items": 4, "common": 1, "rows": 3, "matched": 2 });
    assert!(
        with("lookup", one)
            .starts_with("2 of your 3 rows were found. This side had 2 distinct keys")
    );
    assert!(with("cot", json!({})).starts_with("5 correlated oblivious transfers were made."));
}

#[test]
fn a_failed_run_says_why_and_what_to_do() {
    let page = text(&render(&sample(1)));
    for expected in [
        "The matching did not finish",
        "nothing arrived from the peer for 60 s",
        "exit status 4",
        "What to do:  check that the peer is running",
        "this one may have ended before",
    ] {
        assert!(page.contains(expected), "{expected}: {page}");
    }
    assert!(!page.contains("Your 20,000 keys"), "{page}");
}

/// A report is the user's own file, but the names in it may come from anyone.
#[test]
fn no_field_can_bring_its_own_markup() {
    const EVIL: &str = "</title></style><script src=x>\"'><img onerror=\u{202e}";
    fn taint(value: &mut Value) {
        match value {
            Value::String(text) => *text = EVIL.to_owned(),
            Value::Array(entries) => entries.iter_mut().for_each(taint),
            Value::Object(fields) => {
                for (name, mut value) in std::mem::take(fields) {
                    taint(&mut value);
                    fields.insert(format!("{name}{EVIL}"), value.clone());
                    fields.insert(name, value);
                }
            }
            _ => {}
        }
    }
    for index in 0..SAMPLES.len() {
        let mut report = sample(index);
        taint(&mut report);
        let page = render(&report);
        assert!(text(&page).contains("<script src=x>"));
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{202e}'));
    }
}

/// A report of a total, with the fields of `more`.
fn total(more: Value) -> Value {
    let mut report = json!({
        "protocol": "psi",
        "role": "receiver",
        "security": "semi-honest",
        "result": {
            "kind": "mean", "to": "receiver", "minimum": 50, "bound": "99.50", "noise": null,
            "items": 900, "peer_items": 1000, "rows": 905,
        },
    });
    let fields = more.as_object().unwrap().clone();
    report["result"].as_object_mut().unwrap().extend(fields);
    report
}

#[test]
fn totals_have_their_numbers() {
    let page = text(&render(&total(json!({
        "below_minimum": false, "count": 400, "sum": "-64.79", "mean": -0.161975,
    }))));
    for fragment in [
        "-0.1620 is the mean over the common keys",
        "This side had 900 distinct keys, the peer 1,000. The result went to this side alone.",
        "-64.79",
        "The minimum was 50 common keys. A key’s value was at most 99.50",
    ] {
        assert!(page.contains(fragment), "{fragment:?}: {page}");
    }
    let page = text(&render(&total(json!({
        "kind": "shares", "shares": { "places": 1234 }, "to": null, "minimum": null,
    }))));
    for fragment in [
        "Each side has shares of 1,234 places",
        "the peer 1,000. Neither side learned which keys are common.",
    ] {
        assert!(page.contains(fragment), "{fragment:?}: {page}");
    }
    assert!(!page.contains("minimum"), "{page}");
    let page = text(&render(&total(json!({ "below_minimum": true }))));
    for fragment in ["There are fewer common keys than the minimum", "yes: nothing was opened"] {
        assert!(page.contains(fragment), "{fragment:?}: {page}");
    }
    let page = text(&render(&total(json!({
        "kind": "count", "epsilon": 0.5, "delta": 1e-9, "to": "both", "count": -3,
        "noise": { "count": { "mechanism": "discrete <noise>", "sensitivity": "1" } },
    }))));
    for fragment in [
        "About -3 keys on both sides",
        "The result went to both sides.",
        "A count has discrete <noise>, for a change of 1 by a common key.",
        "epsilon 0.5 and delta 0.000000001",
    ] {
        assert!(page.contains(fragment), "{fragment:?}: {page}");
    }
    let page = text(&render(&total(json!({
        "kind": "sum", "to": "sender", "below_minimum": true,
        "groups": [
            { "group": "<a>", "below_minimum": true, "count": null, "sum": null },
            { "group": "b", "below_minimum": false, "count": null, "sum": "12" },
        ],
    }))));
    for fragment in [
        "A sum over the common keys of 2 groups",
        "The result went to the peer; this side gets none.",
        "<a>",
    ] {
        assert!(page.contains(fragment), "{fragment:?}: {page}");
    }
}
