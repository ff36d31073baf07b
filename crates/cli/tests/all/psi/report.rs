//! The messages of a run before it starts, its report, and its silence with `-q`.

use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use serde_json::Value;

use crate::common::pair::{Folder, assert_matched, pair};
use crate::common::{ProcessResult, RunningProcess, free_port, volery, words};

/// Names and types of an object's fields, `?` for `null`.
fn schema(value: &Value) -> String {
    let kind = |value: &Value| match value {
        Value::Null => "?".to_owned(),
        Value::Bool(_) => "bool".to_owned(),
        Value::Number(number) if number.is_f64() => "float".to_owned(),
        Value::Number(_) => "int".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(items) => format!("[{}]", items.len()),
        Value::Object(_) => format!("{{{}}}", schema(value)),
    };
    let fields = value.as_object().unwrap().iter();
    let fields: Vec<_> = fields.map(|(name, value)| format!("{name} {}", kind(value))).collect();
    fields.join(", ")
}

/// Runs both sides on 20,000 keys each, of which 8,000 are common: the results and the reports.
fn reported(more: &str) -> ([ProcessResult; 2], [Value; 2]) {
    let folder = Folder::new();
    let rows = |from: u32| -> String {
        let lines = (from..from + 20_000).map(|i| format!("{i:08}\n"));
        "k\n".to_owned() + &lines.collect::<String>()
    };
    let (a, b) = (folder.write("a.csv", rows(0)), folder.write("b.csv", rows(12_000)));
    let [s, r, out] = ["s.json", "r.json", "out.csv"].map(|name| folder.path(name));
    let left = format!("--input {a} --key k --report {s} {more}");
    let ended = pair("psi", &left, &format!("--input {b} --key k --report {r} --out {out} {more}"));
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv").lines().count(), 8001);
    (ended, ["s.json", "r.json"].map(|name| folder.json(name)))
}

#[test]
fn the_report_has_its_documented_fields() {
    let (ended, reports) = reported("--protocol kkrt");
    let start = "assumption text, bytes_received int, bytes_sent int, command text, date text, error ?, identity ?, messages int, \
                 n int, noise ?, parameters text, peak_rss_bytes int, peer ?, result {";
    let result = "both bool, buckets ?, bytes_correlations float, bytes_encoding float, bytes_formula float, \
                  bytes_online int, bytes_setup int, bytes_tags float, bytes_values float, choice ?, \
                  connection {peer ?, protection text}, duplicates int, empty int, failure_log2 float, \
                  failures [3], false_positive_log2 float, input_digest text, inputs [1], items int, \
                  key_types text, longest_value_bytes ?, malformed int, matched ROWS, memory_bytes int, \
                  most_items ?, peer_items int, protocol text, reveals [4], rows int, rows_written ROWS, \
                  rules [1], session text, statistical_bits float, values_unwritten ROWS}, revealed [5], ring ?, role text, \
                  seconds {extend ?, online float, setup float, total float}, security text, status int, version text";
    let rule = "changed int, columns text, duplicates int, empty int, keys int, malformed int";
    let end = "not_utf8 int, peer_keys int, repeated int, rows_with_key int, rule int";
    let names = |report: &Value| -> Vec<String> {
        let phases = report["phases"].as_array().unwrap().iter();
        phases.map(|phase| phase["name"].as_str().unwrap().to_owned()).collect()
    };
    for (report, ended, role, rows, of_rule) in [
        (&reports[0], &ended[0], "sender", "?", format!("{rule}, {end}")),
        (&reports[1], &ended[1], "receiver", "int", format!("{rule}, matched_rows int, {end}")),
    ] {
        // The commit is known to some builds only; the phases are those of the protocol.
        let mut fields = report.clone();
        for name in ["commit", "phases"] {
            fields.as_object_mut().unwrap().remove(name).unwrap();
        }
        assert_eq!(schema(&fields), [start, &result.replace("ROWS", rows)].concat());
        assert_eq!(schema(&report["result"]["rules"][0]), of_rule);
        for phase in ["connecting", "reading keys", "oblivious evaluation", "matching"] {
            assert!(names(report).iter().any(|name| name == phase), "{report}");
        }
        assert_eq!((&report["command"], &report["n"]), (&"psi".into(), &20_000.into()));
        assert_eq!((&report["role"], &report["security"]), (&role.into(), &"semi-honest".into()));
        let assumption = report["assumption"].as_str().unwrap();
        for fragment in ["semi-honest", "no LPN", "128 bits", "40 statistical"] {
            assert!(assumption.contains(fragment), "{assumption}");
        }
        let result = &report["result"];
        assert_eq!((&result["protocol"], &result["key_types"]), (&"kkrt".into(), &"text".into()));
        assert_eq!(result["session"].as_str().unwrap().len(), 64);
        let number = |name: &str| result[name].as_f64().unwrap();
        let off = number("bytes_online") / number("bytes_formula") - 1.0;
        assert!((0.0..0.02).contains(&off), "{off}");
        let bytes = ["bytes_sent", "bytes_received"].map(|name| report[name].as_f64().unwrap());
        assert_eq!(number("bytes_online") + number("bytes_setup"), bytes[0] + bytes[1]);
        assert!((-48.0..=-40.0).contains(&number("false_positive_log2")));
        // The report repeats the lines shown before the run.
        for line in result["reveals"].as_array().unwrap() {
            let line = format!("volery: {}\n", line.as_str().unwrap());
            assert!(ended.stderr.contains(&line), "{line:?}: {ended:?}");
        }
        let phases = report["phases"].as_array().unwrap().iter();
        let sum: f64 = phases.map(|phase| phase["seconds"].as_f64().unwrap()).sum();
        let total = report["seconds"]["total"].as_f64().unwrap();
        assert!(sum > 0.0 && sum < total + 1.0, "{sum}");
    }
    let [sent, received] = &reports;
    assert_eq!(names(received).last().unwrap(), "writing rows");
    assert_eq!(received["result"]["matched"], 8000);
    assert_eq!(received["result"]["rows_written"], 8000);
    assert_eq!(sent["bytes_sent"], received["bytes_received"]);
    assert_eq!(sent["bytes_received"], received["bytes_sent"]);
    assert_eq!(sent["result"]["session"], received["result"]["session"]);
}

/// The report of the malicious protocol, and of a choice.
#[test]
fn the_report_of_a_malicious_run() {
    let (ended, reports) = reported("");
    for (report, side) in reports.iter().zip(&ended) {
        assert_eq!(report["security"], "malicious");
        let assumption = report["assumption"].as_str().unwrap();
        assert!(assumption.starts_with("malicious: the peer may do anything"), "{assumption}");
        let parameters = report["parameters"].as_str().unwrap();
        assert!(parameters.contains("tags of 128 bits, vector OLE"), "{parameters}");
        let result = &report["result"];
        assert_eq!(result["protocol"], "vole");
        let number = |name: &str| result[name].as_f64().unwrap();
        assert!((1.5..3.0).contains(&result["most_items"]["2^80 hashes"].as_f64().unwrap()));
        let off = number("bytes_online") / number("bytes_formula") - 1.0;
        assert!((-0.1..0.1).contains(&off), "{off}");
        assert!(number("failure_log2") <= -40.0 && number("statistical_bits") >= 40.0);
        assert_eq!(result["failures"].as_array().unwrap().len(), 5);
        let said = "volery: secure against a malicious peer: a peer that does not follow";
        assert!(side.stderr.contains(said), "{side:?}");
        let choice = &result["choice"];
        let why = choice["why"].as_str().unwrap();
        assert!(why.starts_with("malicious, 20000 and 20000 keys, fastest at "), "{why}");
        assert!(side.stderr.contains(why), "-v says it: {side:?}");
        assert_eq!(choice["predicted"][0]["protocol"], "vole");
        let bytes = choice["predicted"][0]["bytes"].as_f64().unwrap();
        assert!((0.95..1.05).contains(&(bytes / number("bytes_formula"))), "{bytes}");
    }
    assert_eq!(reports[0]["result"]["choice"], reports[1]["result"]["choice"]);
}

/// The user sees what the run would reveal before there is a connection.
#[test]
fn what_is_revealed_is_said_before_anything_is() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\nx,1\n");
    let out = folder.path("out.csv");
    let malicious = "volery: secure against a malicious peer";
    for (call, security, said) in [
        (
            "psi --role sender".to_owned(),
            malicious,
            [
                "the peer learns which of its own keys this side has",
                "this side learns nothing more",
            ],
        ),
        (
            format!("psi --role receiver --both --out {out}"),
            "volery: secure against a semi-honest peer, as always with --both",
            [
                "this side learns which of its own keys the peer has",
                "the peer learns which of its own keys this side has (--both)",
            ],
        ),
        (
            format!("lookup --role receiver --out {out}"),
            malicious,
            [
                "their values for these keys, and the length of the longest payload",
                "the peer learns nothing more",
            ],
        ),
    ] {
        let line = format!("{call} --listen 127.0.0.1:0 --wait 1 --input {a} --key k");
        let ended = RunningProcess::start(&words(&line)).finish();
        ended.assert_refused(4, &["timed out"]);
        let (before, _) = ended.stderr.split_once("volery: listening on").unwrap();
        let always = [
            "volery: this side has 1 distinct key\n",
            "volery: each side learns how many distinct keys the other has, and the number and types of its key columns\n",
            security,
        ];
        for said in said.iter().chain(&always) {
            assert!(before.contains(said), "{said:?}: {ended:?}");
        }
        assert_eq!(folder.names(), ["a.csv"]);
    }
}

#[test]
fn quiet_runs_say_nothing_and_outputs_are_their_owners() {
    let folder = Folder::new();
    // Inputs that cause notes: a byte-order mark, a blank line, a duplicate.
    let a = folder.write("a.csv", "\u{feff}k,v\nx,1\n\nx,2\n");
    let paths = ["out.csv", "other.csv", "report.json"].map(|name| folder.path(name));
    let [out, other, report] = &paths;
    let address = format!("127.0.0.1:{}", free_port());
    let more = format!("--input {a} --key k --duplicates dedup --both -q");
    let quiet = |line: String| volery(&words(&line)).output().unwrap();
    let sender = format!("psi --role sender --listen {address} --out {other} {more}");
    let receiver =
        format!("psi --role receiver --connect {address} --out {out} --report {report} {more}");
    let both = thread::scope(|scope| {
        let left = scope.spawn(|| quiet(sender));
        [quiet(receiver), left.join().unwrap()]
    });
    for output in both {
        assert!(output.status.success(), "{output:?}");
        assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
    for path in &paths {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{path}");
    }
    assert_eq!(folder.names().len(), 4);
    assert_eq!(folder.read("out.csv"), "k,v\nx,1\n");
}
