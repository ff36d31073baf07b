//! Two processes, one of which has values for the keys of the other.

use crate::common::pair::{Folder, assert_matched, iso, line, load, pair, store, string};
use crate::common::table::{required, strings};
use crate::common::{ProcessResult, run};
use parquet::data_type::ByteArray;

/// Looks up the column `v` by the column `k` of the left file for the keys in the column `k` of the
/// right file.
fn lookup(
    folder: &Folder,
    left: &str,
    right: &str,
    out: &str,
    more: [&[&str]; 2],
) -> [ProcessResult; 2] {
    let out = folder.path(out);
    let left = ["--input", left, "--key", "k", "--value", "v"];
    let right = ["--input", right, "--key", "k", "--out", &out];
    pair("lookup", &[&left[..], more[0]].concat(), &[&right[..], more[1]].concat())
}

#[test]
fn the_receivers_rows_get_the_senders_values() {
    let folder = Folder::new();
    let a = folder.write(
        "a.csv",
        "v,k,w\n\"1,5\",x,a\n\"say \"\"hi\"\"\",y,b\n\"two\nlines\",z,c\n,empty,d\n",
    );
    let b = folder.write("b.csv", "name,k\nEmma,empty\nZoë,z\nNo,no\nYu,y\nXi,x\n");
    assert_matched(&lookup(&folder, &a, &b, "out.csv", [&[], &[]]));
    assert_eq!(
        folder.read("out.csv"),
        "name,k,v\nEmma,empty,\nZoë,z,\"two\nlines\"\nYu,y,\"say \"\"hi\"\"\"\nXi,x,\"1,5\"\n"
    );
    // Another column name, and another file format.
    assert_matched(&lookup(&folder, &a, &b, "out.tsv", [&[], &["--value-name", "w"]]));
    assert_eq!(
        folder.read("out.tsv"),
        "name\tk\tw\nEmma\tempty\t\nZoë\tz\t\"two\nlines\"\nYu\ty\t\"say \"\"hi\"\"\"\nXi\tx\t1,5\n"
    );
}

/// Values of every length at which the encoding changes, with each protocol.
#[test]
fn values_from_0_bytes_to_the_longest() {
    let folder = Folder::new();
    let lengths = [0, 1, 2, 13, 14, 126, 127, 128, 255, 256, 257, 16379];
    let rows = lengths
        .map(|length| (format!("k{length}"), "é".repeat(length / 2) + &"x".repeat(length % 2)));
    let text = |pairs: &[(String, String)]| -> String {
        let lines = pairs.iter().map(|(key, value)| line(&[key, value], ','));
        lines.collect()
    };
    let a = folder.write("a.csv", "k,v\n".to_owned() + &text(&rows));
    // In reverse order, with keys that do not match in between.
    let backwards: Vec<_> = rows.iter().rev().cloned().collect();
    let keys = backwards.iter().map(|(key, _)| format!("{key}\n{key}?\n"));
    let b = folder.write("b.csv", "k\n".to_owned() + &keys.collect::<String>());
    for protocol in ["vole", "vole-low", "kkrt", "kkrt-paper", "dh"] {
        let (report, more) = (folder.path("report.json"), ["--protocol", protocol]);
        let right = [&more[..], &["--report", &report, "--force"]].concat();
        let ended = lookup(&folder, &a, &b, "out.csv", [&more, &right]);
        assert_matched(&ended);
        assert_eq!(folder.read("out.csv"), "k,v\n".to_owned() + &text(&backwards));
        let report = folder.json("report.json");
        assert_eq!(report["protocol"], "lookup");
        let assumption = report["assumption"].as_str().unwrap();
        let fragment = match protocol {
            "vole-low" => "dual LPN",
            _ => "no LPN; 128 bits",
        };
        assert!(assumption.contains(fragment), "{assumption}");
        let security = match protocol {
            "vole" | "dh" => "malicious",
            _ => "semi-honest",
        };
        assert_eq!(report["security"], security);
        let result = &report["result"];
        assert_eq!(result["protocol"], protocol);
        // With one byte that says which columns are null, and two for the length.
        assert_eq!(result["longest_value_bytes"], 16382);
        assert_eq!(result["matched"], 12);
        assert_eq!(result["items"], 24);
        let reveals = result["reveals"].to_string();
        assert!(
            reveals.contains("their values for these keys, and the length of the longest payload"),
            "{reveals}"
        );
    }
    // One byte more is refused, and the row is named.
    let long = folder.write("long.csv", format!("k,v\na,1\nzq7Planted,{}\n", "x".repeat(16380)));
    let refused = run(&[
        "lookup",
        "--role",
        "sender",
        "--listen",
        "127.0.0.1:0",
        "--input",
        &long,
        "--key",
        "k",
        "--value",
        "v",
        "-v",
    ]);
    refused.assert_refused(1, &["long.csv: the values of row 2 have more than 16382 bytes"]);
    assert!(!refused.stderr.contains("zq7Planted"), "{refused:?}");
}

#[test]
fn empty_files_and_no_values() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a.csv", "k,v\n"), folder.write("b.csv", "k\nx\n"));
    assert_matched(&lookup(&folder, &a, &b, "out.csv", [&[], &[]]));
    assert_eq!(folder.read("out.csv"), "k,v\n");
    assert_matched(&lookup(
        &folder,
        &folder.write("c.csv", "k,v\nx,\n"),
        &b,
        "all.csv",
        [&[], &[]],
    ));
    assert_eq!(folder.read("all.csv"), "k,v\nx,\n");
    assert_matched(&lookup(
        &folder,
        &folder.write("d.csv", "k,v\ny,1\n"),
        &b,
        "none.parquet",
        [&[], &[]],
    ));
    let (columns, rows) = load(&folder.path("none.parquet"));
    assert_eq!(columns.len(), 2);
    assert!(rows.is_empty());
}

#[test]
fn parquet_on_either_side() {
    let folder = Folder::new();
    let keys = strings("k", (0..3001).map(|i| format!("k{i}")));
    let days = required("int32 v (DATE)", (0..3001).collect::<Vec<i32>>());
    store(&folder.path("a.parquet"), &[keys, days]);
    let a = folder.path("a.parquet");
    let rows = (0..100).map(|i| 97 * i % 5003);
    let texts: Vec<String> = rows.clone().map(|i| format!("k{i}")).collect();
    let b = folder.write("b.csv", "k\n".to_owned() + &texts.join("\n"));
    let expected: Vec<Vec<String>> =
        rows.filter(|&i| i < 3001).map(|i| vec![format!("k{i}"), iso(i)]).collect();
    // From Parquet to CSV: a date is written as text.
    assert_matched(&lookup(&folder, &a, &b, "out.csv", [&[], &[]]));
    let lines = expected.iter().map(|row| line(row, ','));
    assert_eq!(folder.read("out.csv"), "k,v\n".to_owned() + &lines.collect::<String>());
    // And to Parquet.
    assert_matched(&lookup(&folder, &a, &b, "out.parquet", [&[], &["--value-name", "day"]]));
    let (columns, rows) = load(&folder.path("out.parquet"));
    let day = "OPTIONAL INT32 day (DATE);".to_owned();
    assert_eq!(columns, [string("k"), day]);
    assert_eq!(rows, expected);

    // Bytes stay bytes.
    let bytes = [&b"\xff\xfe"[..], b"ok"].map(|value| ByteArray::from(value.to_vec()));
    let columns = [strings("k", ["k0", "k97"]), required("binary v", bytes.to_vec())];
    store(&folder.path("c.parquet"), &columns);
    let c = folder.path("c.parquet");
    assert_matched(&lookup(&folder, &c, &b, "bytes.parquet", [&[], &[]]));
    let (columns, rows) = load(&folder.path("bytes.parquet"));
    let bytes = "OPTIONAL BYTE_ARRAY v;".to_owned();
    assert_eq!(columns, [string("k"), bytes]);
    assert_eq!(rows[0], ["k0", "[255, 254]"]);
    assert_matched(&lookup(&folder, &c, &b, "bytes.csv", [&[], &[]]));
    assert_eq!(folder.read("bytes.csv"), "k,v\nk0,fffe\nk97,6f6b\n");

    // A text file has no bytes that are not text for the peer.
    let d = folder.write("d.csv", b"k,v\nk97,ok\nk0,\xff\xfe\n");
    let sender = ["lookup", "--role", "sender", "--listen", "127.0.0.1:0"];
    let more = ["--input", &d, "--key", "k", "--value", "v"];
    run(&[&sender[..], &more].concat())
        .assert_refused(1, &["d.csv: column \"v\" of row 2 is not UTF-8"]);
}

#[test]
fn the_sender_learns_what_was_found_if_both_say_so() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v\nx,1\ny,2\nz,3\n");
    let b = folder.write("b.csv", "k\nz\nw\nx\n");
    let ours = folder.path("ours.csv");
    let ended = lookup(&folder, &a, &b, "out.csv", [&["--both", "--out", &ours], &["--both"]]);
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv"), "k,v\nz,3\nx,1\n");
    assert_eq!(folder.read("ours.csv"), "k,v\nx,1\nz,3\n", "its own rows, with no column added");
}

#[test]
fn wrong_calls_are_refused_by_name() {
    let folder = Folder::new();
    let a = folder.write("a.csv", "k,v,value\nzq7Planted,1,2\n");
    let out = folder.path("out.csv");
    let common = ["--listen", "127.0.0.1:0", "--input", &a, "--key", "k", "-v"];
    for (more, status, fragment) in [
        (&["--role", "sender"][..], 2, "--value: required at the sender"),
        (
            &["--role", "sender", "--value", "x"],
            1,
            "there is no column \"x\"; the columns are \"k\", \"v\", \"value\"",
        ),
        (
            &["--role", "sender", "--value", "v", "--value-name", "w"],
            2,
            "--value-name: only the receiver",
        ),
        (&["--role", "sender", "--value", "v", "--out", &out], 2, "--out: the sender gets no rows"),
        (
            &["--role", "sender", "--value", "v", "--both"],
            2,
            "--out: with --both the sender needs an output file",
        ),
        (
            &["--role", "receiver", "--value", "v", "--out", &out],
            2,
            "--value: only the sender names columns",
        ),
        (
            &["--role", "receiver", "--value-name", "w"],
            2,
            "--out: the receiver needs an output file",
        ),
        (
            &["--role", "receiver", "--out", &out, "--value-name", "w,w"],
            2,
            "--value-name: there would be two columns named 'w'",
        ),
        (
            &["--role", "receiver", "--out", &out, "--rule-column", "v"],
            2,
            "--rule-column: there would be two columns named 'v'",
        ),
        (
            &["--role", "receiver", "--out", &out, "--value-name", "k"],
            2,
            "--value-name: there would be two columns named 'k'",
        ),
    ] {
        let refused = run(&[&["lookup"], &common[..], more].concat());
        refused.assert_refused(status, &[fragment]);
        assert!(!refused.stderr.contains("zq7Planted"), "{refused:?}");
        assert_eq!(folder.names(), ["a.csv"], "{more:?}");
    }
}
