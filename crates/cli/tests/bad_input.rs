//! Usage errors: each ends at once with its exit status and a message that names the option.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{names, run, text};

#[test]
fn wrong_calls_are_refused_by_name() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    let (out, full, file) = (path("out"), path("full"), path("file"));
    std::fs::create_dir(&full).unwrap();
    std::fs::write(full.join("thesis.tex"), "years of work").unwrap();
    std::fs::write(&file, "not a folder").unwrap();
    let (out, full, file) = (text(&out), text(&full), text(&file));
    let before = names(place.path());

    // `OUT` stands for a folder that could be created, `GOOD` for the rest of a valid call.
    let table: &[(&str, i32, &str)] = &[
        ("", 2, "USAGE"),
        ("nonsense", 2, "nonsense"),
        ("vole", 2, "--role"),
        (
            "vole --role sender --n 5 --out OUT",
            2,
            "--listen, --connect: one of them is required",
        ),
        (
            "vole --role sender --n 5 --out OUT --listen 127.0.0.1:0 --connect 127.0.0.1:1",
            2,
            "only one of them",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT",
            2,
            "--n",
        ),
        ("vole --role sender --listen 127.0.0.1:0 --n 5", 2, "--out"),
        (
            "vole --role both --n 5 --out OUT --listen 127.0.0.1:0",
            2,
            "--role",
        ),
        ("vole GOOD --ring fp62", 2, "--ring"),
        ("vole GOOD --ring FP61", 2, "--ring"),
        ("vole GOOD --noise gaussian", 2, "--noise"),
        ("vole GOOD --security none", 2, "--security"),
        (
            "vole GOOD --ring z64 --security malicious",
            2,
            "--security: vector OLE over z64",
        ),
        ("vole GOOD --parameters tiny", 2, "--parameters"),
        (
            "vole GOOD --parameters paper80 --noise regular",
            2,
            "--noise",
        ),
        (
            "vole GOOD --parameters paper80 --security malicious",
            2,
            "--security",
        ),
        ("vole GOOD --parameters ferret", 2, "--parameters"),
        ("vole GOOD --set b13", 2, "--set: b13 is made for f2"),
        ("vole GOOD --delta FILE", 2, "--delta"),
        ("cot --role sender", 2, "--n"),
        ("cot GOOD --ring fp61", 2, "--ring"),
        ("cot GOOD --set b99", 2, "--set: unknown LPN set 'b99'"),
        ("cot GOOD --set b12 --noise uniform", 2, "--set: b12"),
        ("cot GOOD --set u21 --noise regular", 2, "--set: u21"),
        ("cot GOOD --set ferret-reg-setup", 2, "--set"),
        ("cot GOOD --parameters paper80", 2, "--parameters"),
        ("cot GOOD --parameters ferret --set b10", 2, "--set"),
        ("cot GOOD --parameters ferret --link 1Gbit,1ms", 2, "--link"),
        ("cot GOOD --link fast", 2, "--link"),
        ("cot GOOD --delta FILE", 1, "not an .npy file"),
        ("cot GOOD --delta OUT", 1, "No such file"),
        (
            "cot --role receiver --n 5 --listen 127.0.0.1:0 --out OUT --delta FILE",
            2,
            "--delta: only the sender",
        ),
        (
            "cot --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627776",
            2,
            "--n: the output needs",
        ),
        (
            "cot --role sender --listen 127.0.0.1:0 --n 5 --out FULL --force",
            2,
            "did not write",
        ),
        ("vole GOOD --timeout 0", 2, "--timeout"),
        ("vole GOOD --threads 0", 2, "--threads"),
        ("vole GOOD -q -v", 2, "--quiet"),
        ("vole GOOD --n 6", 2, "--n"),
        ("vole GOOD --report /proc/volery-report", 2, "--report"),
        ("vole GOOD --identity x", 2, "--identity"),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT --n -1",
            2,
            "--n",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT --n 1e6",
            2,
            "--n",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT --n 18446744073709551616",
            2,
            "--n",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627777",
            2,
            "--n",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627776",
            2,
            "--n: the output needs",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 16777217 --parameters paper80 --out OUT",
            2,
            "--n",
        ),
        (
            "vole --role sender --listen 0.0.0.0:0 --n 5 --out OUT",
            2,
            "--listen: 0.0.0.0 is not on the loopback",
        ),
        (
            "vole --role sender --listen [::]:7000 --n 5 --out OUT",
            2,
            "--listen: :: is not on the loopback",
        ),
        (
            "vole --role sender --connect 192.0.2.1:7000 --n 5 --out OUT",
            2,
            "--connect: 192.0.2.1 is not",
        ),
        (
            "vole --role sender --connect 127.0.0.1 --n 5 --out OUT",
            2,
            "--connect: '127.0.0.1' is not HOST:PORT",
        ),
        (
            "vole --role sender --connect 127.0.0.1:http --n 5 --out OUT",
            2,
            "--connect",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out FULL",
            2,
            "--out",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out FULL --force",
            2,
            "did not write",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out FILE",
            2,
            "--out",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out FILE/out",
            2,
            "--out",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out OUT/deeper",
            2,
            "--out",
        ),
        (
            "vole --role sender --listen 127.0.0.1:0 --n 5 --out /proc/volery-out",
            2,
            "--out",
        ),
        ("demo --n 67108865", 2, "--n"),
        ("demo --n many", 2, "--n"),
        ("verify", 2, "SENDER"),
        ("verify OUT OUT", 1, "u.npy"),
        ("verify FULL FULL", 1, "u.npy"),
        ("params", 2, "USAGE"),
    ];
    for &(call, status, fragment) in table {
        let arguments: Vec<_> = call
            .split_whitespace()
            .flat_map(|word| match word {
                "GOOD" => "--role sender --n 5 --listen 127.0.0.1:0 --out OUT"
                    .split(' ')
                    .collect(),
                word => vec![word],
            })
            .map(|word| {
                word.replace("OUT", out)
                    .replace("FULL", full)
                    .replace("FILE", file)
            })
            .collect();
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let finished = run(&arguments);
        if fragment == "USAGE" {
            // Called without arguments: the answer is the help.
            assert_eq!(finished.status, Some(status), "{call}");
            assert!(finished.stderr.contains("Usage:"), "{call}: {finished:?}");
        } else {
            finished.assert_refused(status, &[fragment]);
        }
        assert_eq!(names(place.path()), before, "{call} left files behind");
    }
}

#[test]
fn help_and_version_are_answers_not_errors() {
    for arguments in [
        &["--help"][..],
        &["--version"],
        &["vole", "--help"],
        &["cot", "--help"],
    ] {
        let finished = run(arguments);
        assert_eq!(finished.status, Some(0));
        assert!(
            !finished.stdout.is_empty() && finished.stderr.is_empty(),
            "{finished:?}"
        );
    }
}

#[test]
fn an_address_in_use_is_said_to_be() {
    let place = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let out = place.path().join("out");
    run(&[
        "vole",
        "--role",
        "sender",
        "--n",
        "5",
        "--listen",
        &address,
        "--out",
        text(&out),
    ])
    .assert_refused(1, &["--listen", &address, "in use"]);
    assert!(names(place.path()).is_empty());
}

#[test]
fn lists_go_to_standard_output() {
    let sets = run(&["params", "list"]);
    assert_eq!(sets.status, Some(0));
    assert!(
        sets.stdout.contains("128 bits") && sets.stdout.contains("paper80"),
        "{sets:?}"
    );
    let line = |name| {
        sets.stdout
            .lines()
            .find(|line| line.trim_start().starts_with(name))
    };
    let [own, paper] = ["b13 ", "ferret-uni "].map(|name| line(name).unwrap());
    assert!(own.contains("f2") && !own.contains("fp61") && own.contains("own"));
    assert!(paper.contains("f2") && paper.contains("paper"));
}

#[test]
fn the_demo_prints_what_it_checked() {
    let demo = run(&["demo", "--n", "5000"]);
    assert_eq!(demo.status, Some(0), "{demo:?}");
    for fragment in [
        "fp61",
        "z64",
        "f2",
        "5000",
        "malicious, 128 bits",
        "semi-honest, 128 bits",
        "all hold",
        "1800",
        "as a set",
    ] {
        assert!(demo.stdout.contains(fragment), "{demo:?}");
    }
    assert!(demo.stderr.is_empty(), "{demo:?}");
}

/// The commands and options of the separate program volery-bench.
#[test]
fn bench_says_where_it_went() {
    for call in [
        &["bench"][..],
        &["bench", "paper", "--quick", "--out", "x"],
        &["bench", "--help"],
    ] {
        let refused = run(call);
        refused.assert_refused(2, &["bench", "volery-bench", "lab"]);
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    }
}
