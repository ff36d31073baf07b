//! Two processes that match files on the loopback interface.

mod files;
mod report;

use std::collections::{BTreeSet, HashSet};
use std::path::Path;

use crate::common::pair::{Folder, assert_matched, pair, pair_of, store};
use crate::common::table::required;
use crate::common::{RunningProcess, run, text};

/// A Parquet column read as its text against the same text in a CSV file.
#[test]
fn numbers_as_text() {
    let folder = Folder::new();
    let column = required("int32 n", vec![7_i32, 10, -3]);
    store(&folder.path("a.parquet"), &[column]);
    let left = folder.path("a.parquet");
    let right = folder.write("b.csv", "n\n07\n7\n-3\n+10\n");
    let out = folder.path("out.csv");
    let ended = pair(
        "psi",
        &["--input", &left, "--key", "n:text"],
        &["--input", &right, "--key", "n", "--out", &out],
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "n\n7\n-3\n");
    // As numbers, leading zeros and signs do not count.
    let ended = pair(
        "psi",
        &["--input", &left, "--key", "n"],
        &[
            "--input",
            &right,
            "--key",
            "n:integer",
            "--out",
            &out,
            "--force",
            "--duplicates",
            "dedup",
        ],
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "n\n07\n-3\n+10\n");
}

/// Runs psi on lists of words with one key column; returns the receiver's result.
fn words(left: &str, right: &str, more: &[&str]) -> String {
    let folder = Folder::new();
    let (a, b) = (folder.write("a.csv", left), folder.write("b.csv", right));
    let out = folder.path("out.csv");
    let ended = pair(
        "psi",
        &[&["--input", &a][..], more].concat(),
        &[&["--input", &b, "--out", &out][..], more].concat(),
    );
    assert_matched(&ended);
    folder.read("out.csv")
}

/// Sizes of the two files, and the first key of the sender's in the order of the receiver's.
const SIZES: [(usize, usize, usize); 10] = [
    (0, 5, 0),
    (257, 255, 300),
    (6789, 7890, 1234),
    (3, 4099, 4096),
    (0, 0, 0),
    (5, 0, 0),
    (1, 1, 0),
    (1, 1, 1),
    (2, 1, 1),
    (127, 129, 64),
];

#[test]
fn awkward_sizes_by_each_protocol() {
    for (call, sizes) in [
        ("--protocol kkrt", &SIZES[..]),
        ("--protocol kkrt-paper", &SIZES),
        ("--protocol vole", &SIZES),
        ("--protocol vole --security semi-honest", &SIZES[..4]),
        ("--protocol vole-low", &SIZES[..4]),
        ("--protocol dh", &SIZES[..2]),
        ("--protocol dh", &SIZES[4..]),
        ("--protocol auto", &SIZES[..4]),
        ("--security semi-honest --link 100Mbit,20ms", &SIZES[..4]),
    ] {
        for &(a, b, shift) in sizes {
            let list = |from: usize, n: usize| -> String {
                let lines = (from..from + n).map(|i| format!("k{i}\n"));
                "k\n".to_owned() + &lines.collect::<String>()
            };
            let (left, right) = (list(shift, a), list(0, b));
            let left_set: HashSet<&str> = left.lines().collect();
            let common = right.lines().filter(|line| left_set.contains(line));
            let expected: String = common.map(|line| format!("{line}\n")).collect();
            let more: Vec<_> = ["--key", "k"].into_iter().chain(call.split(' ')).collect();
            let found = words(&left, &right, &more);
            assert!(found == expected, "{call} {a} {b} {shift}");
        }
    }
}

/// Both sides get their rows, by each protocol that can do that.
#[test]
fn both_sides_get_their_rows_by_each_protocol() {
    let folder = Folder::new();
    let list = |from: usize, n: usize| -> String {
        let lines = (from..from + n).map(|i| format!("k{i}\n"));
        "k\n".to_owned() + &lines.collect::<String>()
    };
    let files = [("a.csv", list(0, 300)), ("b.csv", list(200, 2000))];
    let [a, b] = files.map(|(name, rows)| folder.write(name, rows));
    let [left_out, right_out] = ["left.csv", "right.csv"].map(|name| folder.path(name));
    for protocol in ["auto", "vole", "vole-low", "kkrt"] {
        // The roles in turn: either set may be the smaller one.
        for [left, right] in [[&a, &b], [&b, &a]] {
            let more = ["--key", "k", "--both", "--protocol", protocol, "--force"];
            let ended = pair(
                "psi",
                &[&["--input", left, "--out", &left_out][..], &more].concat(),
                &[&["--input", right, "--out", &right_out][..], &more].concat(),
            );
            assert_matched(&ended);
            for (side, name) in ended.iter().zip(["left.csv", "right.csv"]) {
                assert!(folder.read(name) == list(200, 100), "{protocol} {name}");
                let said = "secure against a semi-honest peer, as always with --both";
                assert!(side.stderr.contains(said), "{side:?}");
            }
        }
    }
}

#[test]
fn several_columns_are_one_key_and_their_ends_count() {
    let more = ["--key", "a,b"];
    let (left, right) = ("a,b\nab,c\nx,y\n", "b,a\nbc,a\ny,x\n\"\",abc\n");
    let skipping = [&more[..], &["--empty-keys", "skip"]].concat();
    assert_eq!(words(left, right, &skipping), "b,a\ny,x\n");
    assert_eq!(words("a,b\nab,c\n", "a,b\na,bc\n", &more), "a,b\n");
    // The order of the key columns matters, not their names or positions.
    let folder = Folder::new();
    let (a, b) = (folder.write("a.csv", left), folder.write("b.csv", "p,q,r\ny,1,x\nx,2,y\n"));
    let out = folder.path("out.csv");
    let right = ["--input", &b, "--out", &out, "--key", "r,p"];
    assert_matched(&pair("psi", &["--input", &a, "--key", "a,b"], &right));
    assert_eq!(folder.read("out.csv"), "p,q,r\ny,1,x\n");
}

#[test]
fn rows_left_out_are_counted() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\nx,1\ny,2\nx,3\n,4\n");
    let b = folder.write("b.csv", "k,v\n,1\nx,2\ny,3\ny,4\nx,5\n,6\nz,7\n");
    let (out, report) = (folder.path("out.csv"), folder.path("report.json"));
    let more = ["--key", "k", "--duplicates", "dedup", "--empty-keys", "skip"];
    let right = ["--input", &b, "--out", &out, "--report", &report];
    let ended = pair("psi", &[&["--input", &a][..], &more].concat(), &[&right[..], &more].concat());
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
    assert_eq!(result["rows"], 7);
    assert_eq!(result["items"], 3);
    assert_eq!(result["peer_items"], 2);
    assert_eq!(result["matched"], 2);
    assert_eq!(result["rows_written"], 2);
    assert_eq!(result["duplicates"], 2);
    assert_eq!(result["empty"], 2);
    assert_eq!(result["malformed"], 0);
    let rule = &result["rules"][0];
    for (field, number) in [
        ("rule", 1),
        ("rows_with_key", 5),
        ("empty", 2),
        ("malformed", 0),
        ("changed", 0),
        ("keys", 3),
        ("peer_keys", 2),
        ("duplicates", 2),
        ("matched_rows", 2),
    ] {
        assert_eq!(rule[field], number, "{field}");
    }
    assert_eq!(rule["columns"], "k");

    // By default all rows of a key match, or none.
    let right = ["--input", &b, "--out", &out, "--report", &report, "--force"];
    let ended = pair(
        "psi",
        &[&["--input", &a][..], &["--key", "k", "--empty-keys", "skip"]].concat(),
        &[&right[..], &["--key", "k", "--empty-keys", "skip"]].concat(),
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "k,v\nx,2\ny,3\ny,4\nx,5\n");
    let result = &folder.json("report.json")["result"];
    assert_eq!(result["matched"], 4);
    assert_eq!(result["items"], 3);
    assert_eq!(result["duplicates"], 2);
}

#[test]
fn delimiters_encodings_marks_and_line_ends() {
    let folder = Folder::new();
    let expected = "name;x\nZoë;1\nWeiß;4\n";
    let windows = b"id\tname\r\n1\tZo\xeb\r\n2\tWei\xdf\r\n3\tAsh\r\n";
    let a = folder.write("a.txt", windows);
    // A byte-order mark, other line ends, and unnecessary quotes.
    let b = folder.write("b.csv", "\u{feff}name;x\r\n\"Zoë\";1\r\nweiß;2\rZoe;3\nWeiß;4");
    let out = folder.path("out.csv");
    let ended = pair(
        "psi",
        &["--input", &a, "--key", "name", "--delimiter", "tab", "--encoding", "windows-1252"],
        &["--input", &b, "--key", "name", "--delimiter", ";", "--out", &out],
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), expected);
    assert!(ended[1].stderr.contains("a byte-order mark was removed"), "{ended:?}");

    // With the roles of the files exchanged, the matching rows are UTF-8.
    let ended = pair(
        "psi",
        &["--input", &b, "--key", "name", "--delimiter", ";"],
        &[
            "--input",
            &a,
            "--key",
            "name",
            "--delimiter",
            "tab",
            "--encoding",
            "cp1252",
            "--out",
            &out,
            "--force",
        ],
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "id\tname\n1\tZoë\n2\tWeiß\n");

    // Without an encoding, keys are bytes.
    let (a, b) = (
        folder.write("a.csv", b"k\n\xff\x00\n\xfe\n"),
        folder.write("b.csv", b"k\n\xff\x00\n\xff\n"),
    );
    let ended = pair(
        "psi",
        &["--input", &a, "--key", "k"],
        &["--input", &b, "--key", "k", "--out", &out, "--force"],
    );
    assert_matched(&ended);
    assert_eq!(std::fs::read(&out).unwrap(), b"k\n\xff\x00\n");
}

#[test]
fn a_header_and_nothing_else() {
    assert_eq!(words("k,v\n", "v,k\n1,a\n", &["--key", "k"]), "v,k\n");
    assert_eq!(words("k\na\n", "\u{feff}k,v\r\n", &["--key", "k"]), "k,v\n");
    assert_eq!(words("k", "k", &["--key", "k"]), "k\n");
}

#[test]
fn settings_that_differ_end_both_sides_and_are_named() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v,n,d\nplanted,1,5,2020-02-29\n");
    let (out, other) = (folder.path("out.csv"), folder.path("other.csv"));
    let both = ["--both", "--out", &other];
    for (left, right, fragment, hint) in [
        (
            &["--key", "k"][..],
            &["--key", "k,v"][..],
            "the key columns: text here, text,text at",
            "the same number of columns",
        ),
        (
            &["--key", "n"],
            &["--key", "n:integer"],
            "the key columns: text here, integer",
            "the same types and normalisers",
        ),
        (
            &["--key", "k,d:date"],
            &["--key", "d:date,k"],
            "text,date here, date,text at",
            "in the same order",
        ),
        (
            &["--key", "k", "--protocol", "kkrt-paper"],
            &["--key", "k"],
            "--protocol: kkrt-paper here, auto at",
            "same",
        ),
        (
            &["--key", "k", "--security", "semi-honest"],
            &["--key", "k"],
            "security: semi-honest here, malicious at",
            "same",
        ),
        (
            &["--key", "k", "--link", "1Gbit,1ms"],
            &["--key", "k"],
            "--link: 1000000000 bit/s, 0.001 s here, measured at",
            "same",
        ),
        (
            &[&["--key", "k"], &both[..]].concat(),
            &["--key", "k"],
            "--both: yes here, no",
            "only if both sides set --both",
        ),
        (
            &["--key", "k"],
            &["--key", "k", "--both"],
            "--both: no here, yes",
            "only if both sides set --both",
        ),
    ] {
        let ended = pair(
            "psi",
            &[&["--input", &a][..], left].concat(),
            &[&["--input", &a, "--out", &out][..], right].concat(),
        );
        ended[0].assert_refused(5, &[fragment]);
        for side in &ended {
            side.assert_refused(5, &["the two sides differ in"]);
            let hints = side.stderr.lines().filter(|line| line.starts_with("hint: "));
            assert!(hints.collect::<String>().contains(hint), "{side:?}");
            assert!(!side.stderr.contains("planted"), "{side:?}");
        }
        assert_eq!(folder.names(), ["a.csv"]);
    }
    let ended = pair_of(
        ["psi", "lookup"],
        &["--input", &a, "--key", "k"],
        &["--input", &a, "--key", "k", "--out", &out],
    );
    for side in ended {
        side.assert_refused(5, &["protocol"]);
    }
    let receiver = ["psi", "--role", "receiver", "--listen", "127.0.0.1:0"];
    let more = ["--input", &a, "--key", "k", "--out"];
    let one = RunningProcess::start(&[&receiver[..], &more, &[&out]].concat());
    let address = format!("127.0.0.1:{}", one.port());
    let two = ["psi", "--role", "receiver", "--connect", &address];
    let two = RunningProcess::start(&[&two[..], &more, &[&other]].concat());
    for side in [one.finish(), two.finish()] {
        side.assert_refused(5, &["role"]);
    }
    assert_eq!(folder.names(), ["a.csv"]);
}

/// The sample files, with the commands given beside them.
#[test]
fn the_sample_files_match_as_their_readme_says() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let (customers, loyalty) = (data.join("customers.csv"), data.join("loyalty.csv"));
    let whole = std::fs::read_to_string(&loyalty).unwrap();
    let folder = Folder::new();
    for (verb, key, more, out, rows) in [
        ("psi", "email", &[][..], "matches.csv", 1800),
        ("psi", "email,postcode", &[], "moved.csv", 1650),
        ("lookup", "email", &["--value", "city"], "cities.csv", 1800),
    ] {
        let path = folder.path(out);
        let left = ["--input", text(&customers), "--key", key];
        let right = ["--input", text(&loyalty), "--key", key, "--out", &path];
        assert_matched(&pair(verb, &[&left[..], more].concat(), &right));
        let found = folder.read(out);
        assert_eq!(found.lines().count(), 1 + rows, "{verb} {key}");
        // The rows of the file, unchanged and in order.
        let mut lines = whole.lines();
        for row in found.lines() {
            let there = |line: &str| match verb {
                "psi" => line == row,
                _ => row.strip_prefix(line).is_some_and(|value| value.starts_with(',')),
            };
            assert!(lines.any(there), "{verb} {key}");
        }
    }
}

/// The files that the documentation names exist.
#[test]
fn the_documentation_names_files_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut named = 0;
    for page in ["README.md", "docs/cli.md", "crates/cli/data/README.md"] {
        let page = std::fs::read_to_string(root.join(page)).unwrap();
        for word in page.split_whitespace() {
            let word = word.trim_matches(['`', ',', '.']);
            if word.starts_with("crates/cli/data/") {
                assert!(root.join(word).is_file(), "{word}");
                named += 1;
            }
        }
    }
    assert!(named >= 8, "{named}");
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
    let commands = commands
        .split_once("Commands:")
        .and_then(|(_, rest)| rest.split_once("Options:"))
        .unwrap()
        .0;
    let commands = commands
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next());
    let mut all = BTreeSet::new();
    for command in commands {
        all.extend(options(&help(command)));
    }
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

/// More columns than the handshake can carry, and the most it can.
#[test]
fn many_key_columns() {
    let folder = Folder::new();
    let names: Vec<String> = (0..257).map(|i| format!("c{i}")).collect();
    let row: Vec<String> = (0..257).map(|i| i.to_string()).collect();
    let a = folder.write("a.csv", format!("{}\n{}\n", names.join(","), row.join(",")));
    let out = folder.path("out.csv");
    let typed: Vec<String> = names[..256].iter().map(|name| format!("{name}:integer")).collect();
    let key = typed.join(",");
    let ended = pair(
        "psi",
        &["--input", &a, "--key", &key],
        &["--input", &a, "--key", &key, "--out", &out],
    );
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), folder.read("a.csv"));
    let call = ["psi", "--role", "sender", "--listen", "127.0.0.1:0", "--input", &a];
    let normal: Vec<String> = names.iter().map(|name| format!("{name}:trim")).collect();
    run(&[&call[..], &["--key", &normal.join(",")]].concat())
        .assert_refused(2, &["--key: the keys have more columns, or more normalisers, than"]);
}

#[test]
fn both_verbs_have_help_that_says_what_security_there_is() {
    for verb in ["psi", "lookup"] {
        let help = run(&[verb, "--help"]);
        assert_eq!(help.status, Some(0));
        for fragment in [
            "semi-honest",
            "malicious",
            "--key",
            "--duplicates",
            "--both",
            "vole-low",
            "kkrt-paper",
            "dh",
        ] {
            assert!(help.stdout.contains(fragment), "{help:?}");
        }
    }
}
