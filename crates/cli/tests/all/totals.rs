//! One number, or one for each group, about the keys that two files have in common.

use crate::common::pair::{Folder, PLANTED, assert_matched, load, pair};
use crate::common::{ProcessResult, run, words};

/// Writes the two files: 60 and 50 keys, of which 20 are common.
fn files(folder: &Folder) -> [String; 2] {
    let rows = |keys: std::ops::Range<i64>, factor: i64| -> String {
        let rows = keys.map(|key| {
            let cents = key * factor % 200 - 100;
            let sign = if cents < 0 { "-" } else { "" };
            let (whole, part) = (cents.abs() / 100, cents.abs() % 100);
            let group = ["red", "blue", "grey"][key as usize % 3];
            format!("k{key},{sign}{whole}.{part:02},{group}\n")
        });
        rows.collect()
    };
    [("a.csv", rows(0..60, 37)), ("b.csv", rows(40..90, 53))]
        .map(|(name, rows)| folder.write(name, "k,v,g\n".to_owned() + &rows))
}

/// The cents of a key at the sender and at the receiver.
fn cents(key: i64) -> [i64; 2] {
    [37, 53].map(|factor| key * factor % 200 - 100)
}

fn shown(units: i64, decimals: u32) -> String {
    let unit = 10_i64.pow(decimals);
    let sign = if units < 0 { "-" } else { "" };
    let (whole, part) = (units.abs() / unit, units.abs() % unit);
    format!("{sign}{whole}.{part:0width$}", width = decimals as usize)
}

/// Runs both sides on the files.
fn both(folder: &Folder, left: &str, right: &str) -> [ProcessResult; 2] {
    let [a, b] = files(folder);
    let side = |input: &str, more: &str| -> Vec<String> {
        let call = ["--input", input, "--key", "k", "--force"];
        call.into_iter()
            .chain(words(more))
            .map(|word| word.replace("DIR", &folder.path("")))
            .collect()
    };
    let (left, right) = (side(&a, left), side(&b, right));
    let slices = |words: &[String]| -> Vec<&'static str> {
        let leak = |word: &String| &*Box::leak(word.clone().into_boxed_str());
        words.iter().map(leak).collect()
    };
    pair("psi", &slices(&left), &slices(&right))
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
    for (to, gets) in [
        ("", [false, true]),
        (" --to receiver", [false, true]),
        (" --to sender", [true, false]),
        (" --to both", [true, true]),
        (" --both", [true, true]),
    ] {
        for protocol in ["auto", "dh", "circuit", "circuit-low"] {
            let call = format!("--result count --protocol {protocol}{to}");
            let numbers = gets.map(|gets| if gets { "count 20\n" } else { "" });
            assert_numbers(&both(&folder, &call, &call), numbers);
        }
    }
}

#[test]
fn sums_means_and_products() {
    let folder = Folder::new();
    let values = " --bound 1.00 --decimals 2 --minimum 20";
    for (holder, left, right) in [(0, "=v", ""), (1, "", "=v")] {
        let sum: i64 = (40..60).map(|key| cents(key)[holder]).sum();
        let left = format!("--result sum{left}{values} --to sender");
        let right = format!("--result sum{right}{values} --to sender");
        let numbers = format!("sum {}\n", shown(sum, 2));
        assert_numbers(&both(&folder, &left, &right), [&numbers, ""]);
        let [left, right] = [left, right].map(|call| call.replace("sum", "mean"));
        let mean = sum as f64 / 100.0 / 20.0;
        let numbers = format!("count 20\nsum {}\nmean {mean}\n", shown(sum, 2));
        assert_numbers(&both(&folder, &left, &right), [&numbers, ""]);
    }
    let product: i64 = (40..60).map(|key| cents(key)[0] * cents(key)[1]).sum();
    let call = format!("--result sum-product=v,v{values} --report DIRr.json");
    let numbers = format!("sum-product {}\n", shown(product, 4));
    assert_numbers(&both(&folder, &call, &call), ["", &numbers]);
}

#[test]
fn groups_are_a_table() {
    let folder = Folder::new();
    let values = "--groups grey,red,none --minimum 7 --bound 1 --decimals 2";
    let left = format!("--result mean=v {values}");
    let right = format!("--result mean --group-by g {values} --report DIRr.json --html DIRr.html");
    let of = |rest: i64| {
        let all = (40..60).filter(move |key| key % 3 == rest);
        let (count, sum) = all.fold((0, 0), |(count, sum), key| (count + 1, sum + cents(key)[0]));
        let mean = sum as f64 / 100.0 / f64::from(count);
        [count.to_string(), shown(sum, 2), format!("{mean:?}")]
    };
    let grey = of(2).join(",");
    assert!(grey.starts_with("7,") && of(0)[0] == "6");
    let expected = format!("group,count,sum,mean\ngrey,{grey}\nred,,,\nnone,,,\n");
    for out in ["csv", "parquet", "arrow", "csv.gz"] {
        let right = format!("{right} --out DIRout.{out}");
        let ended = both(&folder, &left, &right);
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
    assert_eq!(rows[0][..3], ["grey".to_owned(), "7".to_owned(), of(2)[1].clone()]);
    assert_eq!(rows[1], ["red", "null", "null", "null"]);
    let result = &folder.json("r.json")["result"];
    assert_eq!(result["kind"], "mean");
    assert_eq!(result["below_minimum"], true);
    assert_eq!(result["groups"][0]["group"], "grey");
    assert_eq!(result["groups"][0]["count"], 7);
    assert_eq!(result["groups"][0]["sum"], of(2)[1].as_str());
    assert_eq!(result["groups"][1]["below_minimum"], true);
    assert!(result["groups"][1]["count"].is_null());
    assert_eq!(result["column_at"], "sender");
    assert_eq!(result["groups_at"], "receiver");
    assert!(folder.read("r.html").contains("A mean over the common keys of 3 groups"));
}

#[test]
fn fewer_common_keys_than_the_minimum() {
    let folder = Folder::new();
    for (minimum, below) in [(20, false), (21, true)] {
        let call = format!("--result count --minimum {minimum} --report DIR");
        let ended = both(&folder, &format!("{call}s.json"), &format!("{call}r.json"));
        let numbers = if below { "below_minimum 21\n" } else { "count 20\n" };
        assert_numbers(&ended, ["", numbers]);
        for (side, report) in ended.iter().zip(["s.json", "r.json"]) {
            let report = folder.json(report);
            assert_eq!(report["status"], 0);
            assert_eq!(report["result"]["below_minimum"], below);
            let told = "the number of common keys is below 21; nothing was opened";
            assert_eq!(side.stderr.contains(told), below, "{side:?}");
            let revealed = report["revealed"].to_string();
            assert!(revealed.contains(&format!("is below {minimum}")), "{revealed}");
        }
        let count = &folder.json("r.json")["result"]["count"];
        assert_eq!(count.is_null(), below, "{count}");
    }
    // Of a sum the minimum is 50 if nobody names another one.
    let values = "--bound 1 --decimals 2";
    let left = format!("--result sum=v {values}");
    let ended = both(&folder, &left, &format!("--result sum {values}"));
    assert_numbers(&ended, ["", "below_minimum 50\n"]);
}

#[test]
fn the_report_says_what_the_noise_is() {
    let folder = Folder::new();
    let values = "--bound 1.5 --decimals 1 --minimum 0 --epsilon 0.25 --to both";
    for (delta, mechanism, scale) in [
        ("", "discrete Laplace noise of scale 120.000", 120.0),
        (" --delta 1e-9", "discrete Gaussian noise", 0.0),
    ] {
        let left = format!("--result sum=w {values}{delta}");
        let right = format!("--result sum {values}{delta} --report DIRr.json");
        let a = folder.write("w.csv", "k,w\nk41,1.5\nk42,-1.5\n");
        let [_, b] = files(&folder);
        let report = folder.path("");
        let right = right.replace("DIR", &report);
        let call = |input: &str| ["--input".to_owned(), input.to_owned()];
        let (a, b) = (call(&a), call(&b));
        let ended = pair(
            "psi",
            &[&[&*a[0], &*a[1], "--key", "k"][..], &words(&left)].concat(),
            &[&[&*b[0], &*b[1], "--key", "k"][..], &words(&right)].concat(),
        );
        for side in &ended {
            assert_eq!(side.status, Some(0), "{side:?}");
        }
        // Both get the same number.
        assert_eq!(ended[0].stdout, ended[1].stdout);
        let report = folder.json("r.json");
        let result = &report["result"];
        assert_eq!(result["epsilon"], 0.25);
        assert_eq!(result["bound"], "1.5");
        assert_eq!(result["decimals"], 1);
        let noise = &result["noise"]["sum"];
        assert!(noise["mechanism"].as_str().unwrap().starts_with(&mechanism[..20]));
        assert_eq!(noise["sensitivity"], "1.5");
        assert_eq!(noise["added_by"].as_array().unwrap().len(), 2);
        assert!(result["noise"]["count"].is_null());
        if delta.is_empty() {
            // 15 units, divided by a quarter.
            assert_eq!(noise["scale"], scale / 2.0);
        }
        let revealed = report["revealed"].to_string();
        assert!(revealed.contains("epsilon 1/4"), "{revealed}");
    }
}

/// Each option that both sides have to give alike.
#[test]
fn settings_that_differ_name_the_option() {
    let folder = Folder::new();
    let sum = "--bound 1 --decimals 2 --groups red,blue --epsilon 1 --delta 1e-9";
    for (left, right, field) in [
        ("--result count", "--out DIRo.csv", "--result"),
        ("--both --out DIRo.csv", "--result count --both", "--result"),
        ("--result count", "--result sum=v --bound 1 --decimals 2", "--result"),
        ("--result count --to sender", "--result count", "--to"),
        ("--result count", "--result count --protocol dh", "--protocol"),
        ("--result count --minimum 2", "--result count --minimum 3", "--minimum"),
        ("--result count", "--result count --link 1Gbit,1ms", "--link"),
        (
            "--result sum=v --bound 1 --decimals 2",
            "--result sum=v --bound 1 --decimals 2",
            "the side with the column of --result",
        ),
        ("--result sum=v --bound 1 --decimals 2", "--result sum --bound 2 --decimals 2", "--bound"),
        ("--result sum=v --bound 1 --decimals 2", "--result sum --bound 1", "--decimals"),
        (
            &format!("--result sum=v --group-by g {sum}"),
            &format!("--result sum --group-by g {sum}"),
            "the side with --group-by",
        ),
        (
            &format!("--result sum=v --group-by g {sum}"),
            &format!("--result sum {}", sum.replace("red,blue", "blue,red")),
            "--groups",
        ),
        (
            &format!("--result sum=v --group-by g {sum}"),
            &format!("--result sum {}", sum.replace("--epsilon 1", "--epsilon 1.0001")),
            "--epsilon",
        ),
        (
            &format!("--result sum=v --group-by g {sum}"),
            &format!("--result sum {}", sum.replace("1e-9", "1e-8")),
            "--delta",
        ),
    ] {
        for side in both(&folder, left, right) {
            side.assert_refused(5, &[&format!("differ in {field}:")]);
            assert!(side.stderr.contains("hint: "), "{side:?}");
        }
        assert!(!folder.names().contains(&"o.csv".to_owned()));
    }
    // The normalisers of the key, as for rows.
    let [a, b] = files(&folder);
    let ended = pair(
        "psi",
        &["--input", &a, "--key", "k", "--result", "count"],
        &["--input", &b, "--key", "k:lower", "--result", "count"],
    );
    for side in ended {
        side.assert_refused(5, &["the key columns"]);
    }
}

/// Options that do not go together end the run before anything is read or sent.
#[test]
fn refusals() {
    let folder = Folder::new();
    let input = folder.write("a.csv", format!("k,v,g\n{PLANTED},1,x\n"));
    // The options, and parts of the message and of its hint.
    let table = r#"
--result total | --result | choose rows, count, sum=COL | -
--result count=v | --result | count has no column | -
--result sum=v,w | --result | sum has one column | -
--result sum-product=v | --result | sum-product has two columns | -
--to both | --to | only with --result count | --both
--bound 3 | --bound | only with --result count | -
--decimals 1 | --decimals | only with --result | -
--minimum 3 | --minimum | only with --result | -
--epsilon 1 | --epsilon | only with --result | -
--delta 1 | --delta | only with --result | -
--group-by g | --group-by | only with --result | -
--groups x | --groups | only with --result | -
--protocol circuit | --protocol | circuit gives no rows | --result count
--result count --security malicious | --security | no practical malicious form is known | --result rows
--result count --protocol vole | --protocol | vole gives rows, not a count | circuit-low
--result count --protocol kkrt-paper | --protocol | kkrt-paper gives rows | dh
--result count --both --to both | --both | --to says who gets the result | remove
--result count --protocol circuit --link 1Gbit,1ms | --link | the same on every link | only auto
--result count --protocol dh --minimum 1 | --protocol | without groups, minimum or noise | circuit
--result count --protocol dh --epsilon 1 | --protocol | without groups, minimum or noise | circuit
--result sum=v --protocol dh --bound 1 | --protocol | dh gives the number of all common keys | circuit
--result count --bound 3 | --bound | a count has no values | choose a sum
--result count --decimals 3 | --decimals | a count has no values | choose a sum
--result sum=v | --bound | required with --result sum | a low one is better
--result mean | --bound | required with --result mean | -
--result sum-product=v,w | --bound | required with --result sum-product | -
--result sum=v --bound 0 | --bound | is not a bound | above zero
--result sum=v --bound 1e3 | --bound | is not a bound | decimal number
--result sum=v --bound 1.25 --decimals 1 | --bound | has more than 1 decimal places | --decimals
--result sum=v --bound 10 --decimals 18 | --bound | does not fit into 64 bits | lower bound
--result sum=v --bound 10 --decimals 19 | --decimals | from 0 to 18 | -
--result sum-product=v,v --bound 1 --decimals 10 | --decimals | at most 9 decimal places | round
--result count --minimum 4294967297 | --minimum | is more than 4294967296 | fewest
--result count --epsilon 0 | --epsilon | not a number above zero | 0.5
--result count --epsilon=-1 | --epsilon | not a number above zero | 0.5
--result count --delta 0.1 | --delta | only with --epsilon | Gaussian
--result count --epsilon 1 --delta 1 | --delta | delta must be 0.5 at most | 1e-9
--result sum=v --bound 9000000000000000000 --epsilon 0.1 | --epsilon | too large for 64 bits | lower --bound
--result count --group-by g | --groups | required with --group-by | both sides
--result count --groups x,x | --groups | "x" is named twice | -
--result count --groups MANY | --groups | 61 groups; a run has at most 60 | -
--result count --or v | --or | of the keys of one --key | --result rows
--result count --resume DIR | --resume | computed in memory | --dry-run
--result count --memory 1GiB | --memory | computed in memory | --dry-run
--result count --buckets 2 | --buckets | computed in memory | --dry-run
--result count --rule-column r | --rule-column | a count has no rows | --result rows
--result count --to receiver --out DIRo.csv | --out | this side does not get the count | --to says
--result count --to sender --out - | --out | on standard output already | name a file
--result count --to sender --out DIRo.txt.zip | --out | does not say what kind | -
--result count --to sender --out DIRa.csv | --out | is the input file | never overwritten
--result count --to sender --out DIRreport.json --report DIRreport.json | - | report.json is the output file | -
"#;
    let many: Vec<_> = (0..61).map(|i| format!("g{i}")).collect();
    let before = folder.names();
    for line in table.trim().lines() {
        let [call, option, message, hint] = *line.split(" | ").collect::<Vec<_>>() else {
            panic!("{line}");
        };
        let call = call.replace("DIR", &folder.path("")).replace("MANY", &many.join(","));
        let start = "psi --role sender --listen 127.0.0.1:0 --key k --input";
        let call = [&words(start)[..], &[&input], &words(&call)].concat();
        let finished = run(&call);
        let wanted: Vec<_> = [option, message].into_iter().filter(|part| *part != "-").collect();
        finished.assert_refused(2, &wanted);
        let hints = finished.stderr.lines().filter(|line| line.starts_with("hint: "));
        assert!(
            hint == "-" || hints.collect::<String>().contains(hint),
            "{hint:?} is not in {finished:?}"
        );
        assert_eq!(folder.names(), before, "{line}");
    }
    let folder = folder.path("");
    let call = format!(
        "run-local psi --workers 2 --run r --gateway 127.0.0.1:1 --identity {folder} --peer x \
         --resume {folder}w --role sender --input {input} --key k --result count"
    );
    let call = call.replace("--peer x", "--peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8");
    let by_dh = format!("{call} --protocol dh");
    run(&words(&by_dh)).assert_refused(2, &["--protocol", "circuit or circuit-low"]);
    let out = format!("{folder}manifests");
    let call = format!(
        "k8s --image i --work-claim w --identity-secret s --out {out} -- psi --workers 2 --run r \
         --gateway g:1 --peer qm80-9zyq-gffc-rcgg-eaad-0d9e-rnre-8t3c-bvb8 --role sender \
         --input a.csv --key k --result shares=k"
    );
    run(&words(&call)).assert_refused(2, &["--result", "not by workers"]);
}

/// Values and keys that do not fit name the row, not the value.
#[test]
fn wrong_values_name_their_row() {
    let folder = Folder::new();
    let table = r#"
k,v\na,1\nb,{p}\n | --bound 9 | column "v" of row 2 is not a decimal number | digits
k,v\na,1\nb,\n | --bound 9 | column "v" of row 2 has no value | leave such rows out
k,v\na,1\nb,10\n | --bound 9 | column "v" of row 2 is beyond --bound | raise --bound
k,v\na,1\nb,1.25\n | --bound 9 --decimals 1 | column "v" of row 2 has more than 1 decimal places | --decimals
k,v\n{p},5\nb,1\n{p},5\n | --bound 9 | the rows with the key of row 1 have values whose sum is beyond --bound | dedup
k,v\na,1\n | --bound 9 --group-by v --groups 1 --key k --duplicates error --result sum=w | there is no column "w" | -
k,v\n{p},5\nb,1\n{p},4\n | --bound 9 --group-by v --groups 5,4 | with the key of row 1 are in different groups | one group
"#;
    for line in table.trim().lines() {
        let [text, call, message, hint] = *line.split(" | ").collect::<Vec<_>>() else {
            panic!("{line}");
        };
        let text = text.replace("\\n", "\n").replace("{p}", PLANTED);
        let input = folder.write("in.csv", text);
        let call = match call.contains("--result") {
            true => call.replace("--key k ", ""),
            false => format!("{call} --result sum=v"),
        };
        let start = "psi --role sender --listen 127.0.0.1:0 --key k --input";
        let finished = run(&[&words(start)[..], &[&input], &words(&call)].concat());
        finished.assert_refused(1, &["in.csv", message]);
        assert!(!finished.stderr.contains(PLANTED), "{finished:?}");
        assert!(hint == "-" || finished.stderr.contains(hint), "{finished:?}");
    }
}

#[test]
fn totals_that_could_leave_64_bits() {
    let folder = Folder::new();
    let values = "--bound 4611686018427387.9 --decimals 2";
    let left = format!("--result sum=v {values}");
    for side in both(&folder, &left, &format!("--result sum {values}")) {
        let what = "50 common keys could have a total that does not fit into 64 bits";
        side.assert_refused(2, &["--bound", what]);
    }
}

#[test]
fn a_plan_says_what_it_costs_and_reveals() {
    let folder = Folder::new();
    let [a, _] = files(&folder);
    let report = folder.path("r.json");
    let call = "psi --role sender --listen 127.0.0.1:0 --key k --dry-run";
    for (more, protocol, fragment) in [
        (
            "--result count --peer-rows 100 --link 100Mbit,20ms",
            "dh",
            "the peer learns the number of common keys",
        ),
        (
            "--result count --peer-rows 1_000_000 --link 100Mbit,20ms",
            "circuit",
            "the peer learns the number of common keys",
        ),
        (
            "--result sum=v --bound 1 --decimals 2 --link 100Mbit,20ms",
            "circuit",
            "the sum of the sender's column over the common keys",
        ),
        (
            "--result count --protocol circuit-low --groups red,blue --group-by g",
            "circuit-low",
            "is below 50",
        ),
    ] {
        let call = [&words(call)[..], &words(more), &["--input", &a, "--report", &report]];
        let finished = run(&call.concat());
        assert_eq!(finished.status, Some(0), "{finished:?}");
        for fragment in [fragment, "MB in both directions", "this side: 60 rows"] {
            assert!(finished.stdout.contains(fragment), "{fragment} {finished:?}");
        }
        let result = &folder.json("r.json")["result"];
        assert_eq!(result["protocol"], protocol);
        assert_eq!(result["dry_run"], true);
        assert!(result["bytes"].as_u64().unwrap() > 5_000);
    }
}

/// The predicted bytes of a run are those that it sends.
#[test]
fn bytes_are_as_planned() {
    let folder = Folder::new();
    let rows = |from: usize| -> String {
        let rows = (from..from + 20_000).map(|i| format!("k{i},{},x\n", i % 90));
        "k,v,g\n".to_owned() + &rows.collect::<String>()
    };
    let (a, b) = (folder.write("a.csv", rows(0)), folder.write("b.csv", rows(5_000)));
    let (plan, report) = (folder.path("plan.json"), folder.path("r.json"));
    for (left, right) in [
        ("--result count --protocol circuit", "--result count --protocol circuit"),
        ("--result count --protocol dh", "--result count --protocol dh"),
        ("--result mean=v --bound 90", "--result mean --bound 90"),
        (
            "--result sum=v --bound 90 --groups x,y",
            "--result sum --bound 90 --groups x,y --group-by g",
        ),
        (
            "--result sum-product=v,v --bound 90 --minimum 0",
            "--result sum-product=v,v --bound 90 --minimum 0",
        ),
    ] {
        let own = ["--input", &a, "--key", "k"];
        let call = [
            &words("psi --role sender --listen 127.0.0.1:0 --dry-run --report")[..],
            &[&plan],
            &own,
            &words(left),
        ];
        assert_eq!(run(&call.concat()).status, Some(0));
        let ended = pair(
            "psi",
            &[&own[..], &words(left)].concat(),
            &[&["--input", &b, "--key", "k", "--report", &report][..], &words(right)].concat(),
        );
        for side in &ended {
            assert_eq!(side.status, Some(0), "{side:?}");
        }
        let planned = folder.json("plan.json")["result"]["bytes"].as_f64().unwrap();
        let report = folder.json("r.json");
        let sent =
            report["bytes_sent"].as_f64().unwrap() + report["bytes_received"].as_f64().unwrap();
        assert!((sent / planned - 1.0).abs() < 0.06, "{left}: {planned} {sent}");
    }
}

#[test]
fn rows_stay_as_they_are() {
    let folder = Folder::new();
    let ended = both(&folder, "--result rows", "--out DIRout.csv");
    assert_matched(&ended);
    assert_eq!(folder.read("out.csv").lines().count(), 21);
}
