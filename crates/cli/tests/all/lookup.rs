//! Two processes, one of which has values for the keys of the other.

use crate::common::pair::{Folder, PLANTED, assert_matched, pair, store};
use crate::common::table::{required, strings};
use crate::common::{ProcessResult, RunningProcess, run, words};

/// Looks up the column `v` by the column `k` of the left file for the keys in the column `k` of the
/// right file.
fn lookup(
    folder: &Folder,
    [left, right]: [&str; 2],
    out: &str,
    more: [&str; 2],
) -> [ProcessResult; 2] {
    let out = folder.path(out);
    let left = format!("--input {left} --key k --value v {}", more[0]);
    pair("lookup", &left, &format!("--input {right} --key k --out {out} {}", more[1]))
}

#[test]
fn the_receivers_rows_get_the_senders_values() {
    let folder = Folder::new();
    let a = folder.write(
        "a.csv",
        "v,k,w\n\"1,5\",x,a\n\"say \"\"hi\"\"\",y,b\n\"two\nlines\",z,c\n,empty,d\n",
    );
    let b = folder.write("b.csv", "name,k\nEmma,empty\nZoë,z\nNo,no\nYu,y\nXi,x\n");
    let more = ["", "--value-name w"];
    assert_matched(&lookup(&folder, [&a, &b], "out.tsv", more));
    assert_eq!(
        folder.read("out.tsv"),
        "name\tk\tw\nEmma\tempty\t\nZoë\tz\t\"two\nlines\"\nYu\ty\t\"say \"\"hi\"\"\"\nXi\tx\t1,5\n"
    );
    let [_, receiver] = lookup(&folder, [&a, &b], "two.csv", ["", "--value-name w,x"]);
    receiver.assert_refused(5, &["the number of value columns (--value-name): 2 here, 1 at"]);
    assert!(receiver.stderr.contains("leave --value-name out"), "{receiver:?}");
    // The sender learns what was found if both say so: its own rows, with no column added.
    let ours = format!("--both --out {}", folder.path("ours.csv"));
    assert_matched(&lookup(&folder, [&a, &b], "out.csv", [&ours, "--both --left"]));
    assert_eq!(
        folder.read("out.csv"),
        "name,k,v\nEmma,empty,\nZoë,z,\"two\nlines\"\nNo,no,\nYu,y,\"say \"\"hi\"\"\"\nXi,x,\"1,5\"\n"
    );
    assert_eq!(folder.read("ours.csv"), folder.read("a.csv"));
}

/// The longest payload has 16,382 bytes: with one that says which columns are null, and two for the
/// length.
#[test]
fn a_longer_value_is_refused_and_its_row_named() {
    let folder = Folder::new();
    let b = folder.write("b.csv", "k\na\n");
    let value = "x".repeat(16_379);
    let a = folder.write("a.csv", format!("k,v\na,{value}\n"));
    let report = format!("--report {}", folder.path("report.json"));
    assert_matched(&lookup(&folder, [&a, &b], "out.csv", ["", &report]));
    assert_eq!(folder.read("out.csv"), format!("k,v\na,{value}\n"));
    assert_eq!(folder.json("report.json")["result"]["longest_value_bytes"], 16_382);
    let long = folder.write("long.csv", format!("k,v\na,1\n{PLANTED},{value}x\n"));
    let call = "lookup --role sender --listen 127.0.0.1:0 --key k --value v -v --input";
    let refused = run(&words(&format!("{call} {long}")));
    refused.assert_refused(1, &["long.csv: the values of row 2 have more than 16382 bytes"]);
    assert!(!refused.stderr.contains(PLANTED), "{refused:?}");
}

/// A value that the file cannot have is left empty, which `-q` does not hide.
#[test]
fn a_value_without_a_form_is_an_event() {
    let folder = Folder::new();
    let (a, b) = (folder.write("a.csv", "k,v\nx,1\ny,2\n"), folder.path("b.parquet"));
    let times = required("int64 t (TIME(MICROS,true))", vec![0, 90_000_000_000_i64]);
    store(&b, &[strings("k", ["x", "y"].map(str::to_owned)), times]);
    let call = format!("lookup --role sender --listen 127.0.0.1:0 --input {a} --key k --value v");
    let sender = RunningProcess::start(&words(&call));
    let (port, out) = (sender.port(), folder.path("out.csv"));
    let call = format!("lookup --role receiver --connect 127.0.0.1:{port} --input {b} --key k");
    let receiver = run(&words(&format!("{call} --out {out} -q --log json")));
    assert_eq!((sender.finish().status, receiver.status), (Some(0), Some(0)), "{receiver:?}");
    assert_eq!(folder.read("out.csv"), "k,t,v\nx,00:00:00,1\ny,,2\n");
    let line = receiver.stderr.lines().next().expect("a warning");
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((&line["level"], &line["event"]), (&"warning".into(), &"left_empty".into()));
    assert_eq!((&line["values"], line["first"].as_array().map(Vec::len)), (&1.into(), Some(1)));
}
