//! The messages of a run before it starts, its report, and its silence with `-q`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use crate::common::pair::{Folder, assert_matched, pair};
use crate::common::{RunningProcess, volery};

/// Names and types of an object's fields, `?` for `null`.
fn schema(value: &serde_json::Value) -> String {
    use serde_json::Value;
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

const KKRT: [&str; 2] = ["--protocol", "kkrt"];

#[test]
fn the_report_has_its_documented_fields() {
    let folder = Folder::new();
    let rows = |from: u32| -> String {
        let lines = (from..from + 100_000).map(|i| format!("{i:08}\n"));
        "k\n".to_owned() + &lines.collect::<String>()
    };
    let (a, b) = (folder.write("a.csv", rows(0)), folder.write("b.csv", rows(60_000)));
    let paths = ["s.json", "r.json", "out.csv"].map(|name| folder.path(name));
    let [s, r, out] = &paths;
    let ended = pair(
        "psi",
        &[&["--input", &a, "--key", "k", "--report", s][..], &KKRT].concat(),
        &[&["--input", &b, "--key", "k", "--report", r, "--out", out][..], &KKRT].concat(),
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv").lines().count(), 40_001);
    let (sent, received) = (folder.json("s.json"), folder.json("r.json"));
    let start = "assumption text, bytes_received int, bytes_sent int, date text, error ?, identity ?, messages int, \
                 n int, noise ?, parameters text, peak_rss_bytes int, peer ?, protocol text, result {";
    let result = "both bool, buckets ?, bytes_correlations float, bytes_encoding float, bytes_formula float, \
                  bytes_online int, bytes_setup int, bytes_tags float, bytes_values float, choice ?, \
                  connection {peer ?, protection text}, duplicates int, empty int, failure_log2 float, \
                  failures [3], false_positive_log2 float, input_digest text, inputs [1], items int, \
                  key_types text, longest_value_bytes ?, malformed int, matched ROWS, memory_bytes int, \
                  most_items ?, peer_items int, protocol text, reveals [4], rows int, rows_written ROWS, \
                  rules [1], session text, statistical_bits float}, revealed [5], ring ?, role text, \
               seconds {extend ?, online float, setup float, total float}, security text, status int, version text";
    let rule = "changed int, columns text, duplicates int, empty int, keys int, malformed int";
    // The commit is known to some builds only; the phases are those of the protocol.
    let schema = |report: &serde_json::Value| {
        let mut report = report.clone();
        let fields = report.as_object_mut().unwrap();
        fields.remove("commit").unwrap();
        let phases = fields.remove("phases").unwrap();
        let phases = phases.as_array().unwrap();
        let met = phases.iter().any(|phase| phase["name"] == "connecting");
        assert!(met && phases.len() > 3, "{phases:?}");
        schema(&report)
    };
    let expected = |rows: &str| [start, &result.replace("ROWS", rows)].concat();
    assert_eq!(schema(&sent), expected("?"));
    assert_eq!(schema(&received), expected("int"));
    let rules = [&sent, &received].map(|report| report["result"]["rules"][0].clone());
    let [sent_rule, received_rule] = rules.map(|rule| self::schema(&rule));
    let end = "peer_keys int, rows_with_key int, rule int";
    assert_eq!(sent_rule, format!("{rule}, {end}"));
    assert_eq!(received_rule, format!("{rule}, matched_rows int, {end}"));
    let names = |report: &serde_json::Value| -> Vec<String> {
        let phases = report["phases"].as_array().unwrap().iter();
        let names = phases.map(|phase| phase["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    for phase in ["reading keys", "oblivious evaluation", "matching"] {
        for report in [&sent, &received] {
            assert!(names(report).iter().any(|name| name == phase), "{report}");
        }
    }
    assert_eq!(names(&received).last().unwrap(), "writing rows");

    for (report, role) in [(&sent, "sender"), (&received, "receiver")] {
        assert_eq!(report["protocol"], "psi");
        assert_eq!(report["role"], role);
        assert_eq!(report["n"], 100_000);
        assert_eq!(report["security"], "semi-honest");
        let assumption = report["assumption"].as_str().unwrap();
        for fragment in ["semi-honest", "no LPN", "128 bits", "40 statistical"] {
            assert!(assumption.contains(fragment), "{assumption}");
        }
        let result = &report["result"];
        assert_eq!(result["protocol"], "kkrt");
        assert_eq!(result["key_types"], "text");
        assert_eq!(result["session"].as_str().unwrap().len(), 64);
        let number = |name: &str| result[name].as_f64().unwrap();
        let off = number("bytes_online") / number("bytes_formula") - 1.0;
        assert!((0.0..0.02).contains(&off), "{off}");
        let bytes =
            report["bytes_sent"].as_u64().unwrap() + report["bytes_received"].as_u64().unwrap();
        assert_eq!(number("bytes_online") + number("bytes_setup"), bytes as f64);
        assert!((-48.0..=-40.0).contains(&number("false_positive_log2")));
        // The report repeats the lines shown before the run.
        let ended = if role == "sender" { &ended[0] } else { &ended[1] };
        for line in result["reveals"].as_array().unwrap() {
            let line = format!("volery: {}\n", line.as_str().unwrap());
            assert!(ended.stderr.contains(&line), "{line:?}: {ended:?}");
        }
        let phases = report["phases"].as_array().unwrap().iter();
        let seconds = phases.map(|phase| phase["seconds"].as_f64().unwrap());
        let (sum, total) = (seconds.sum::<f64>(), &report["seconds"]["total"]);
        assert!(sum > 0.0 && sum < total.as_f64().unwrap() + 1.0, "{sum}");
    }
    assert_eq!(received["result"]["matched"], 40_000);
    assert_eq!(received["result"]["rows_written"], 40_000);
    assert_eq!(sent["bytes_sent"], received["bytes_received"]);
    assert_eq!(sent["bytes_received"], received["bytes_sent"]);
    assert_eq!(sent["result"]["session"], received["result"]["session"]);
    assert_eq!(sent["result"]["bytes_formula"], received["result"]["bytes_formula"]);
}

/// The report of the malicious protocol, and of a choice.
#[test]
fn the_report_of_a_malicious_run() {
    let folder = Folder::new();
    let rows = |from: u32| -> String {
        let lines = (from..from + 20_000).map(|i| format!("{i:08}\n"));
        "k\n".to_owned() + &lines.collect::<String>()
    };
    let (a, b) = (folder.write("a.csv", rows(0)), folder.write("b.csv", rows(15_000)));
    let paths = ["s.json", "r.json", "out.csv"].map(|name| folder.path(name));
    let [s, r, out] = &paths;
    let ended = pair(
        "psi",
        &["--input", &a, "--key", "k", "--report", s],
        &["--input", &b, "--key", "k", "--report", r, "--out", out],
    );
    assert_matched(&ended);
    for (report, side) in [("s.json", &ended[0]), ("r.json", &ended[1])] {
        let report = folder.json(report);
        assert_eq!(report["security"], "malicious");
        let assumption = report["assumption"].as_str().unwrap();
        assert!(assumption.starts_with("malicious: the peer may do anything"), "{assumption}");
        let parameters = report["parameters"].as_str().unwrap();
        assert!(parameters.contains("tags of 128 bits, vector OLE"), "{parameters}");
        let result = &report["result"];
        assert_eq!(result["protocol"], "vole");
        let number = |name: &str| result[name].as_f64().unwrap();
        assert!((1.5..3.0).contains(&result["most_items"]["2^80 hashes"].as_f64().unwrap()));
        assert!((5.0..12.0).contains(&result["most_items"]["2^128 hashes"].as_f64().unwrap()));
        assert_eq!(number("bytes_encoding") % 16.0, 0.0);
        let encoding = number("bytes_encoding") / 16.0 / 20_000.0;
        assert!((1.1..1.12).contains(&encoding), "{encoding} columns an item");
        let tags = number("bytes_tags") * 8.0 / 20_000.0;
        assert!((114.0..118.0).contains(&tags), "{tags} bits a tag");
        let off = number("bytes_online") / number("bytes_formula") - 1.0;
        assert!((-0.1..0.1).contains(&off), "{off}");
        assert!((400_000.0..10_000_000.0).contains(&number("memory_bytes")));
        assert!(number("failure_log2") <= -40.0 && number("statistical_bits") >= 40.0);
        let failures = result["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 5);
        for failure in failures {
            assert!(failure["log2"].is_null() || failure["log2"].as_f64().unwrap() < -40.0);
        }
        let said = "volery: secure against a malicious peer: a peer that does not follow";
        assert!(side.stderr.contains(said), "{side:?}");
        assert!(side.stderr.contains("by vole, secure against a malicious peer"), "{side:?}");
        let choice = &result["choice"];
        let why = choice["why"].as_str().unwrap();
        assert!(why.starts_with("malicious, 20000 and 20000 keys, fastest at "), "{why}");
        assert!(side.stderr.contains(why), "-v says it: {side:?}");
        assert_eq!(choice["predicted"][0]["protocol"], "vole");
        let bytes = choice["predicted"][0]["bytes"].as_f64().unwrap();
        assert!((0.95..1.05).contains(&(bytes / number("bytes_formula"))), "{bytes}");
    }
    let choices = ["s.json", "r.json"].map(|name| folder.json(name)["result"]["choice"].clone());
    assert_eq!(choices[0], choices[1]);
}

/// The bytes of each protocol are those of its formula, and each is chosen where it is the fastest.
#[test]
fn the_report_of_small_sets_and_of_both() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\na,1\nb,2\nc,3\n");
    let b = folder.write("b.csv", "k\nc\nd\n");
    let (out, report) = (folder.path("out.csv"), folder.path("r.json"));
    for (verb, protocol, more) in [
        ("psi", "dh", &["--security", "semi-honest"][..]),
        ("lookup", "dh", &[]),
        ("psi", "kkrt", &["--both", "--link", "10Mbit,20ms"]),
    ] {
        let both = more.contains(&"--both");
        let ours = folder.path("ours.csv");
        let mut left = vec!["--input", &a, "--key", "k", "--force"];
        if both {
            left.extend(["--out", &ours]);
        }
        if verb == "lookup" {
            left.extend(["--value", "v"]);
        }
        left.extend(more);
        let right = ["--input", &b, "--key", "k", "--out", &out, "--report", &report];
        assert_matched(&pair(verb, &left, &[&right, more, &["--force"]].concat()));
        let report = folder.json("r.json");
        let security = if more.is_empty() { "malicious" } else { "semi-honest" };
        assert_eq!(report["security"], security);
        let result = &report["result"];
        assert_eq!(result["protocol"], protocol);
        assert_eq!(result["matched"], 1);
        assert_eq!(result["both"], both);
        assert!(result["choice"]["predicted"].as_array().unwrap().len() > 1 || verb == "lookup");
        let number = |name: &str| result[name].as_f64().unwrap();
        // Besides the formula: the agreement, and the ends.
        let rest = number("bytes_online") - number("bytes_formula");
        assert!((208.0..=260.0).contains(&rest), "{protocol} {rest}");
        if protocol == "dh" {
            assert_eq!(number("bytes_encoding") + number("bytes_tags"), 2.0 * 32.0 + 3.0 * 16.0);
            assert_eq!(result["most_items"]["2^80 hashes"], 3.8);
            assert!(number("failure_log2") < -120.0);
        }
    }
}

/// The user sees what the run would reveal before there is a connection.
#[test]
fn what_is_revealed_is_said_before_anything_is() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\nx,1\n");
    let out = folder.path("out.csv");
    for (verb, role, both, said) in [
        (
            "psi",
            "sender",
            false,
            &[
                "the peer learns which of its own keys this side has",
                "this side learns nothing more",
            ][..],
        ),
        (
            "psi",
            "receiver",
            true,
            &[
                "this side learns which of its own keys the peer has",
                "the peer learns which of its own keys this side has (--both)",
            ],
        ),
        (
            "lookup",
            "receiver",
            false,
            &[
                "their values for these keys, and the length of the longest payload",
                "the peer learns nothing more",
            ],
        ),
    ] {
        let call = [
            verb,
            "--role",
            role,
            "--listen",
            "127.0.0.1:0",
            "--wait",
            "1",
            "--input",
            &a,
            "--key",
            "k",
        ];
        let mut call = call.to_vec();
        if role == "receiver" {
            call.extend(["--out", &out]);
        }
        if both {
            call.push("--both");
        }
        let ended = RunningProcess::start(&call).finish();
        ended.assert_refused(4, &["timed out"]);
        let (before, _) = ended.stderr.split_once("volery: listening on").unwrap();
        let always = [
            "volery: this side has 1 distinct key\n",
            "volery: each side learns how many distinct keys the other has, and the number and types of its key columns\n",
            if both {
                "volery: secure against a semi-honest peer, as always with --both"
            } else {
                "volery: secure against a malicious peer"
            },
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
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let more = ["--input", &a, "--key", "k", "--duplicates", "dedup", "--both", "-q"];
    let sender =
        [&["psi", "--role", "sender", "--listen", &address, "--out", other][..], &more].concat();
    let receiver =
        ["psi", "--role", "receiver", "--connect", &address, "--out", out, "--report", report];
    let receiver = [&receiver[..], &more].concat();
    let (left, right) = thread::scope(|scope| {
        let left = scope.spawn(|| volery(&sender).output().unwrap());
        (volery(&receiver).output().unwrap(), left.join().unwrap())
    });
    for output in [left, right] {
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
