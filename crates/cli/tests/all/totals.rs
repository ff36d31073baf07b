//! One number, or one for each group, about the keys that two files have in common.

use crate::common::pair::{Folder, load, pair};
use crate::common::{ProcessResult, run, words};

/// Writes the two files: 60 and 50 keys, of which 20 are common.
fn files(folder: &Folder) -> [String; 2] {
    let rows = |keys: std::ops::Range<i64>, factor: i64| -> String {
        let row = |key: i64| {
            let group = ["red", "blue", "grey"][key as usize % 3];
            format!("k{key},{},{group}\n", hundredths(key * factor % 200 - 100))
        };
        keys.map(row).collect()
    };
    [("a.csv", rows(0..60, 37)), ("b.csv", rows(40..90, 53))]
        .map(|(name, rows)| folder.write(name, "k,v,g\n".to_owned() + &rows))
}

fn hundredths(number: i64) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}.{:02}", number.abs() / 100, number.abs() % 100)
}

/// The sum of the sender's values over the common keys of a remainder modulo three, or over all.
fn sum(rest: Option<i64>) -> (i64, i64) {
    let keys = (40..60).filter(|key| rest.is_none_or(|rest| key % 3 == rest));
    keys.fold((0, 0), |(count, sum), key| (count + 1, sum + key * 37 % 200 - 100))
}

/// Runs both sides on the files.
fn both(folder: &Folder, left: &str, right: &str) -> [ProcessResult; 2] {
    let [a, b] = files(folder);
    let side = |input: &str, more: &str| {
        format!("--input {input} --key k --force {}", more.replace("DIR", &folder.path("")))
    };
    pair("psi", &side(&a, left), &side(&b, right))
}

/// Fails unless both ended well, the sender and the receiver with these lines on standard output.
fn assert_numbers(ended: &[ProcessResult; 2], expected: [&str; 2]) {
    for (side, expected) in ended.iter().zip(expected) {
        assert_eq!(side.status, Some(0), "{side:?}");
        assert_eq!(side.stdout, expected, "{side:?}");
        assert!(side.stderr.contains("secure against a semi-honest peer"), "{side:?}");
    }
}

#[test]
fn numbers_go_to_whom_they_have_to() {
    let folder = Folder::new();
    let count = "count 20\n";
    for (more, numbers) in [
        ("", ["", count]),
        (" --to sender --protocol dh", [count, ""]),
        (" --both --protocol circuit", [count; 2]),
        (" --to both --protocol circuit-low", [count; 2]),
    ] {
        let call = format!("--result count{more}");
        assert_numbers(&both(&folder, &call, &call), numbers);
    }
    let values = "--bound 1.00 --decimals 2 --minimum 20 --to sender";
    let (_, sum) = sum(None);
    let ended =
        both(&folder, &format!("--result mean=v {values}"), &format!("--result mean {values}"));
    let mean = sum as f64 / 100.0 / 20.0;
    let numbers = format!("count 20\nsum {}\nmean {mean}\n", hundredths(sum));
    assert_numbers(&ended, [&numbers, ""]);
}

#[test]
fn groups_are_a_table() {
    let folder = Folder::new();
    let values = "--groups grey,red,none --minimum 7 --bound 1 --decimals 2";
    let left = format!("--result mean=v {values}");
    let right = format!("--result mean --group-by g {values} --report DIRr.json --html DIRr.html");
    let (count, grey) = sum(Some(2));
    assert_eq!((count, sum(Some(0)).0), (7, 6));
    let (mean, grey) = (grey as f64 / 100.0 / 7.0, hundredths(grey));
    let expected = format!("group,count,sum,mean\ngrey,7,{grey},{mean:?}\nred,,,\nnone,,,\n");
    for out in ["csv", "parquet", "arrow", "csv.gz"] {
        let ended = both(&folder, &left, &format!("{right} --out DIRout.{out}"));
        assert_numbers(&ended, ["", &expected]);
        for side in &ended {
            let below = "of 2 of 3 groups, the number of common keys is below 7";
            assert!(side.stderr.contains(below), "{side:?}");
        }
        let rows = "17 rows in none of the --groups";
        assert!(ended[1].stderr.contains(rows), "{ended:?}");
    }
    assert_eq!(folder.read("out.csv"), expected);
    let (columns, rows) = load(&folder.path("out.parquet"));
    assert_eq!(columns.len(), 4, "{columns:?}");
    assert!(columns[2].contains("DECIMAL(19,2)"), "{columns:?}");
    assert_eq!(rows[0][..3], ["grey", "7", &grey]);
    assert_eq!(rows[1], ["red", "null", "null", "null"]);
    let result = &folder.json("r.json")["result"];
    assert_eq!(result["kind"], "mean");
    assert_eq!(result["below_minimum"], true);
    assert_eq!(result["groups"][0]["group"], "grey");
    assert_eq!(result["groups"][0]["count"], 7);
    assert_eq!(result["groups"][0]["sum"], grey.as_str());
    assert_eq!(result["groups"][1]["below_minimum"], true);
    assert!(result["groups"][1]["count"].is_null());
    assert_eq!(result["column_at"], "sender");
    assert_eq!(result["groups_at"], "receiver");
    assert!(folder.read("r.html").contains("A mean over the common keys of 3 groups"));
}

#[test]
fn fewer_common_keys_than_the_minimum() {
    let folder = Folder::new();
    let call = "--result count --minimum 21 --report DIR";
    let ended = both(&folder, &format!("{call}s.json"), &format!("{call}r.json"));
    assert_numbers(&ended, ["", "below_minimum 21\n"]);
    for (side, report) in ended.iter().zip(["s.json", "r.json"]) {
        let report = folder.json(report);
        assert_eq!(report["status"], 0);
        assert_eq!(report["result"]["below_minimum"], true);
        let told = "the number of common keys is below 21; nothing was opened";
        assert!(side.stderr.contains(told), "{side:?}");
        let revealed = report["revealed"].to_string();
        assert!(revealed.contains("is below 21"), "{revealed}");
    }
    assert!(folder.json("r.json")["result"]["count"].is_null());
    // Of a sum the minimum is 50 if nobody names another one.
    let values = "--bound 1 --decimals 2";
    let left = format!("--result sum=v {values}");
    let ended = both(&folder, &left, &format!("--result sum {values}"));
    assert_numbers(&ended, ["", "below_minimum 50\n"]);
}

/// Kinds of results that differ, and settings of which one stands for all.
#[test]
fn settings_that_differ_name_the_option() {
    let folder = Folder::new();
    let sum = "--bound 1 --decimals 2";
    for (left, right, field) in [
        ("--result count", "--out DIRo.csv", "--result"),
        ("--both --out DIRo.csv", "--result count --both", "--result"),
        ("--result count", &format!("--result sum=v {sum}"), "--result"),
        ("--result count --to sender", "--result count", "--to"),
        ("--result count", "--result count --link 1Gbit,1ms", "--link"),
        (&format!("--result sum=v {sum}"), "--result sum --bound 1", "--decimals"),
    ] {
        for side in both(&folder, left, right) {
            side.assert_refused(5, &[&format!("differ in {field}:")]);
            assert!(side.stderr.contains("hint: "), "{side:?}");
        }
        assert!(!folder.names().contains(&"o.csv".to_owned()));
    }
}

/// A plan says what a run costs and reveals; the run sends so many bytes.
#[test]
fn bytes_are_as_planned() {
    let folder = Folder::new();
    let rows = |from: usize| -> String {
        let rows = (from..from + 20_000).map(|i| format!("k{i},{},x\n", i % 90));
        "k,v,g\n".to_owned() + &rows.collect::<String>()
    };
    let (a, b) = (folder.write("a.csv", rows(0)), folder.write("b.csv", rows(5_000)));
    let (plan, report) = (folder.path("plan.json"), folder.path("r.json"));
    for (left, right, reveals) in [
        (
            "--result count --protocol dh",
            "--result count --protocol dh",
            "the peer learns the number of common keys",
        ),
        (
            "--result sum=v --bound 90 --groups x,y",
            "--result sum --bound 90 --groups x,y --group-by g",
            "is below 50",
        ),
    ] {
        let own = format!("--input {a} --key k {left}");
        let call = format!(
            "psi --role sender --listen 127.0.0.1:0 --dry-run --report {plan} {own} \
             --peer-rows 20_000"
        );
        let planned = run(&words(&call));
        assert_eq!(planned.status, Some(0), "{planned:?}");
        for fragment in [reveals, "MB in both directions", "this side: 20000 rows"] {
            assert!(planned.stdout.contains(fragment), "{fragment} {planned:?}");
        }
        let other = format!("--input {b} --key k --report {report} {right}");
        for side in pair("psi", &own, &other) {
            assert_eq!(side.status, Some(0), "{side:?}");
        }
        let planned = folder.json("plan.json")["result"]["bytes"].as_f64().unwrap();
        let report = folder.json("r.json");
        let sent = ["bytes_sent", "bytes_received"].map(|name| report[name].as_f64().unwrap());
        let sent = sent[0] + sent[1];
        assert!((sent / planned - 1.0).abs() < 0.06, "{left}: {planned} {sent}");
    }
}
