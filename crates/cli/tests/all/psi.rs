//! Two processes that match files on the loopback interface.

mod report;

use std::collections::BTreeSet;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::pair::{Folder, PLANTED, assert_matched, pair, pair_of};
use crate::common::{RunningProcess, begun, names, run, words};

fn list(from: usize, n: usize) -> String {
    let lines = (from..from + n).map(|i| format!("k{i}\n"));
    "k\n".to_owned() + &lines.collect::<String>()
}

#[test]
fn rows_left_out_are_counted() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\nx,1\ny,2\nx,3\n,4\n");
    let b = folder.write("b.csv", "k,v\n,1\nx,2\ny,3\ny,4\nx,5\n,6\nz,7\n");
    let (out, report) = (folder.path("out.csv"), folder.path("report.json"));
    let left = format!("--input {a} --key k --empty-keys skip");
    let right = format!("--input {b} --out {out} --report {report} --key k --empty-keys skip");
    let dedup = "--duplicates dedup";
    let ended = pair("psi", &format!("{left} {dedup}"), &format!("{right} {dedup}"));
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "k,v\nx,2\ny,3\n", "the first row of each key");
    for said in [
        "2 rows with the same key as an earlier row",
        "2 rows left out because a key column is empty or null",
        "this side has 3 distinct keys",
        "2 of 7 rows match; wrote 2 rows to",
        "the peer has 2",
    ] {
        assert!(ended[1].stderr.contains(said), "{said:?}: {ended:?}");
    }
    let result = &folder.json("report.json")["result"];
    for (field, number) in [
        ("rows", 7),
        ("items", 3),
        ("peer_items", 2),
        ("matched", 2),
        ("rows_written", 2),
        ("duplicates", 2),
        ("empty", 2),
        ("malformed", 0),
    ] {
        assert_eq!(result[field], number, "{field}");
    }
    let rule = &result["rules"][0];
    for (field, number) in
        [("rule", 1), ("rows_with_key", 5), ("keys", 3), ("peer_keys", 2), ("matched_rows", 2)]
    {
        assert_eq!(rule[field], number, "{field}");
    }
    assert_eq!(rule["columns"], "k");

    // By default all rows of a key match, or none.
    assert_matched(&pair("psi", &left, &format!("{right} --force")));
    assert_eq!(folder.read("out.csv"), "k,v\nx,2\ny,3\ny,4\nx,5\n");
    let result = &folder.json("report.json")["result"];
    assert_eq!((&result["matched"], &result["items"]), (&4.into(), &3.into()));
}

/// Files of two programs: other encodings, delimiters, ends of lines and quotes.
#[test]
fn delimiters_and_encodings() {
    let folder = Folder::new();
    let a = folder.write("a.txt", b"id\tname\r\n1\tZo\xeb\r\n2\tWei\xdf\r\n3\tAsh\r\n");
    let b = folder.write("b.csv", "\u{feff}name;x\r\n\"Zoë\";1\r\nweiß;2\rZoe;3\nWeiß;4");
    let left = format!("--input {a} --key name --delimiter tab --encoding windows-1252");
    let out = folder.path("out.csv");
    let right = format!("--input {b} --key name --delimiter ; --out {out}");
    let ended = pair("psi", &left, &right);
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "name;x\nZoë;1\nWeiß;4\n");
    assert!(ended[1].stderr.contains("a byte-order mark was removed"), "{ended:?}");
}

#[test]
fn settings_that_differ_end_both_sides_and_are_named() {
    let folder = Folder::new();
    let a = folder.write("a.csv", format!("k,v,n,d\n{PLANTED},1,5,2020-02-29\n"));
    let [out, other] = ["out.csv", "other.csv"].map(|name| folder.path(name));
    // The options of both sides, and parts of the sender's message and of the hint.
    let table = "\
--key k | --key k,v | the key columns: text here, text,text at | the same number of columns
--key n | --key n:integer | the key columns: text here, integer | the same types and normalisers
--key k,d:date | --key d:date,k | text,date here, date,text at | in the same order
--key k --protocol kkrt-paper | --key k | --protocol: kkrt-paper here, auto at | same
--key k --security semi-honest | --key k | security: semi-honest here, malicious at | same
--key k --link 1Gbit,1ms | --key k | --link: 1000000000 bit/s, 0.001 s here, measured at | same
--key k --both --out OTHER | --key k | --both: yes here, no | only if both sides set --both
--key k | --key k --both | --both: no here, yes | only if both sides set --both
";
    for line in table.lines() {
        let [left, right, fragment, hint] = line.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let left = format!("--input {a} {}", left.replace("OTHER", &other));
        let ended = pair("psi", &left, &format!("--input {a} --out {out} {right}"));
        ended[0].assert_refused(5, &[fragment]);
        for side in &ended {
            side.assert_refused(5, &["the two sides differ in"]);
            let hints = side.stderr.lines().filter(|line| line.starts_with("hint: "));
            assert!(hints.collect::<String>().contains(hint), "{side:?}");
            assert!(!side.stderr.contains(PLANTED), "{side:?}");
        }
    }
    let line = format!("--input {a} --key k");
    for side in pair_of(["psi", "lookup"], &line, &format!("{line} --out {out}")) {
        side.assert_refused(5, &["protocol"]);
    }
    let start = |end: &str, out: &str| {
        RunningProcess::start(&words(&format!("psi --role receiver {end} {line} --out {out}")))
    };
    let one = start("--listen 127.0.0.1:0", &out);
    let two = start(&format!("--connect 127.0.0.1:{}", one.port()), &other);
    for side in [one.finish(), two.finish()] {
        side.assert_refused(5, &["role"]);
    }
    assert_eq!(folder.names(), ["a.csv"]);
}

/// docs/cli.md names every option of a match, and no option that no command has.
#[test]
fn the_documentation_names_the_options() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/cli.md")).unwrap();
    let is_part = |c: char| c.is_ascii_lowercase() || c == '-';
    let options = |text: &str| -> BTreeSet<String> {
        text.split(|c| !is_part(c))
            .filter(|word| {
                let name = word.strip_prefix("--");
                name.is_some_and(|name| name.starts_with(|c| c != '-'))
            })
            .map(str::to_owned)
            .collect()
    };
    let help = |verb: &str| run(&[verb, "--help"]).stdout;
    let commands = run(&["--help"]).stdout;
    let (_, commands) = commands.split_once("Commands:").unwrap();
    let (commands, _) = commands.split_once("Options:").unwrap();
    let commands = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let all: BTreeSet<_> = commands.flat_map(|command| options(&help(command))).collect();
    let named = options(&page);
    assert_eq!(named.difference(&all).next(), None);
    for verb in ["psi", "lookup"] {
        // The lines of options, without what their sentences mention.
        let help = help(verb);
        let defined = help.lines().filter(|line| {
            let line = line.trim_start();
            line.starts_with('-') && !line.starts_with("- ")
        });
        let own: BTreeSet<_> = defined.flat_map(options).collect();
        assert!(own.len() > 30, "{own:?}");
        let mut missing = own.difference(&named).filter(|one| *one != "--help");
        assert_eq!(missing.next(), None, "{verb}");
    }
}

/// More key columns than the handshake can carry.
#[test]
fn too_many_key_columns() {
    let folder = Folder::new();
    let names: Vec<String> = (0..257).map(|i| format!("c{i}")).collect();
    let names = names.join(",");
    let a = folder.write("a.csv", format!("{names}\n{names}\n"));
    let key = names.replace(',', ":trim,") + ":trim";
    run(&words(&format!("psi --role sender --listen 127.0.0.1:0 --input {a} --key {key}")))
        .assert_refused(2, &["--key: the keys have more columns, or more normalisers, than"]);
}

/// A side that is killed leaves no output; the same commands then finish the run.
#[test]
fn a_run_that_was_killed_goes_on() {
    let folder = Folder::new();
    let [a, b] = [("a.csv", list(0, 20_000)), ("b.csv", list(15_000, 20_000))]
        .map(|(name, rows)| folder.write(name, rows));
    let [left, right, out] = ["work-a", "work-b", "out.csv"].map(|name| folder.path(name));
    let start = || {
        let same = "--key k --buckets 64 --protocol vole --wait 20s";
        let line =
            format!("psi --role sender --listen 127.0.0.1:0 --input {a} --resume {left} {same}");
        let sender = RunningProcess::start(&words(&line));
        let line = format!(
            "psi --role receiver --connect 127.0.0.1:{} --input {b} --resume {right} --out {out} \
             {same}",
            sender.port()
        );
        [sender, RunningProcess::start(&words(&line))]
    };
    let [sender, receiver] = start();
    let started = Instant::now();
    while begun(right.as_ref()).len() < 3 {
        assert!(started.elapsed() < Duration::from_secs(60), "no progress");
        thread::sleep(Duration::from_millis(1));
    }
    receiver.signal("KILL");
    let ended = [sender.finish(), receiver.finish()];
    assert!(ended.iter().all(|side| side.status != Some(0)), "{ended:?}");
    assert!(!folder.names().contains(&"out.csv".to_owned()));
    assert_matched(&start().map(RunningProcess::finish));
    assert!(folder.read("out.csv") == list(15_000, 5000));
    for work in [left, right] {
        assert_eq!(names(work.as_ref()), ["complete"]);
    }
}

/// The log of a small match for programs: few events, numbers in fields, and each phase once.
#[test]
fn a_log_of_json_has_numbers_as_fields() {
    let folder = Folder::new();
    let (input, out) = (folder.write("a.csv", list(0, 3)), folder.path("out.csv"));
    let keys = format!("--input {input} --key k");
    let log = format!("{keys} --out {out} --force --log json");
    let [_, receiver] = pair("psi", &keys, &log);
    let lines: Vec<serde_json::Value> =
        receiver.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let info: Vec<_> = lines.iter().filter(|line| line["level"] == "info").collect();
    assert!(info.len() <= 8, "{receiver:?}");
    for line in &info {
        assert_eq!(line["message"], line["event"]);
        assert!(line["time"].as_str().unwrap().ends_with('Z'));
    }
    let named = |name: &str| info.iter().find(|line| line["event"] == name).unwrap();
    assert_eq!(named("table")["rules"][0]["keys"], 3);
    let done = named("done");
    assert_eq!((&done["matched"], &done["peer_items"]), (&3.into(), &3.into()));
    assert!(done["bytes_sent"].as_u64().unwrap() > 100 && done["seconds"].is_f64());
    let agreed = lines.iter().filter(|line| line["ended"] == "agreeing on settings and sizes");
    assert_eq!(agreed.count(), 1, "{receiver:?}");
}
