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
        json!({ "command": "psi" }),
        json!({ "command": 7, "result": [], "error": 5, "inputs": {}, "phases": [{}, 3] }),
        json!({ "command": "psi", "error": "the disk is full" }),
        json!({ "command": "psi", "bytes_sent": u64::MAX, "bytes_received": u64::MAX,
                "seconds": { "total": -1.0 }, "phases": [{ "name": "p", "seconds": -1.0 }],
                "result": { "items": 0, "peer_items": u64::MAX, "rows": 0, "matched": 9,
                            "rules": [{ "matched_rows": 9 }], "failure_log2": 3.5 } }),
    ];
    for report in strange.into_iter().chain((0..SAMPLES.len()).map(sample)) {
        let page = render(&report);
        text(&page);
        for load in ["http:", "https:", "<script", "src=", "@import", "url(", "NaN", "inf%", "{{"] {
            assert!(!page.contains(load), "{load}: {page}");
        }
    }
}

/// A report of a total, with the fields of `more`.
fn total(more: Value) -> Value {
    let mut report = json!({
        "command": "psi",
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

fn of_rows(verb: &str, result: Value) -> Value {
    json!({ "command": verb, "role": "receiver", "n": 5, "result": result })
}

#[test]
fn pages_have_the_words_and_numbers_of_their_reports() {
    let rows: [(Value, &[&str]); 10] = [
        (
            sample(0),
            &[
                "4,000 of your 5,000 rows matched",
                "This side had 4,873 distinct keys, the peer 20,000 by the first rule.",
                "1. email:email3,105––",
                "2. phone:e164=DE70281217",
                "3,180 rows64 %",
                "making correlations871 ms",
                "7,225,644 bytes (7.23 MB)",
                "at most 1 in 1.26 trillion (2−40.2)",
                "1.9 times the keys that it states, with 280 evaluations",
                "loyalty <script>alert(1)</script> & \"friends\".csv",
                "a1c3e5f7",
                "Fingerprint of the peerm7qd-2v9x",
                "4 buckets of at most 5,400 keys",
                "2026-11-20 09:30 UTC",
                "result.most_items.2^80 hashes",
                "Encoded keys1.60 MB",
            ],
        ),
        (
            sample(1),
            &[
                "The matching did not finish",
                "nothing arrived from the peer for 60 s",
                "exit status 4",
                "What to do: Compare this message",
                "this one may have ended before",
            ],
        ),
        (
            of_rows("psi", json!({ "items": 1, "peer_items": 4000 })),
            &["Your key was compared with the peer’s 4,000The result went to the peer"],
        ),
        (
            of_rows("psi", json!({ "items": 9, "peer_items": 4, "rows": 5000, "matched": 0 })),
            &["0 of your 5,000 rows matchedNo key is in both sets. A usual cause"],
        ),
        (
            of_rows("lookup", json!({ "items": 2, "peer_items": 4, "rows": 3, "matched": 2 })),
            &["2 of your 3 rows were foundThis side had 2 distinct keys"],
        ),
        (of_rows("cot", json!({})), &["5 correlated oblivious transfers were made"]),
        (
            total(json!({
                "below_minimum": false, "count": 400, "sum": "-64.79", "mean": -0.161975,
            })),
            &[
                "-0.1620 is the mean over the common keys",
                "the peer 1,000. The result went to this side alone.",
                "all common keys400-64.79-0.161975no",
                "The minimum was 50 common keys. A key’s value was at most 99.50",
            ],
        ),
        (
            total(json!({
                "kind": "shares", "shares": { "places": 1234 }, "to": null, "minimum": null,
            })),
            &["Each side has shares of 1,234 places", "Neither side learned which keys"],
        ),
        (
            total(json!({
                "kind": "count", "epsilon": 0.5, "delta": 1e-9, "to": "both", "count": -3,
                "noise": { "count": { "mechanism": "discrete <noise>", "sensitivity": "1" } },
            })),
            &[
                "About -3 keys on both sides",
                "The result went to both sides.",
                "A count has discrete <noise>, for a change of 1 by a common key.",
                "epsilon 0.5 and delta 0.000000001",
            ],
        ),
        (
            total(json!({
                "kind": "sum", "to": "sender", "below_minimum": true,
                "groups": [
                    { "group": "<a>", "below_minimum": true, "count": null, "sum": null },
                    { "group": "b", "below_minimum": false, "count": null, "sum": "12" },
                ],
            })),
            &[
                "A sum over the common keys of 2 groups",
                "The result went to the peer; this side gets none.",
                "<a>–yes: nothing was opened",
            ],
        ),
    ];
    for (report, fragments) in rows {
        let page = text(&render(&report));
        for fragment in fragments {
            assert!(page.contains(fragment), "{fragment:?}: {page}");
        }
    }
    let below = text(&render(&total(json!({ "below_minimum": true }))));
    assert!(below.contains("There are fewer common keys than the minimum"), "{below}");
}

/// A report is the user's own file, but the names in it may come from anyone.
#[test]
fn no_field_can_bring_its_own_markup() {
    const EVIL: &str = "</title></style><script src=x>\"'><img onerror=\u{61c}\u{7}{{style}}";
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
        assert!(text(&page).contains("<script src=x>\"'><img onerror=\\u{61c}\\u{7}{{style}}"));
        assert!(!page.contains("<script") && !page.contains("<img") && !page.contains('\u{61c}'));
    }
}
