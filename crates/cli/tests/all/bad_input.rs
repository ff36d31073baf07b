//! Usage errors: each ends at once with its exit status and a message that names the option.

use crate::common::{ProcessResult, names, run, text, volery, words};
use volery_primitives::cpu::Cpu;

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

    // The status, the call, and a part of the message. `OUT` stands for a folder that could be
    // created, `GOOD` for the rest of a valid call.
    let table = "\
2 |  | USAGE
2 | nonsense | nonsense
2 | vole | --role
2 | vole --role sender --n 5 --out OUT | --listen, --connect: one of them is required
2 | vole --role sender --n 5 --out OUT --listen 127.0.0.1:0 --connect 127.0.0.1:1 | only one of them
2 | vole --role sender --listen 127.0.0.1:0 --out OUT | --n
2 | vole --role sender --listen 127.0.0.1:0 --n 5 | --out
2 | vole --role both --n 5 --out OUT --listen 127.0.0.1:0 | --role
2 | vole GOOD --ring fp62 | --ring
2 | vole GOOD --ring FP61 | --ring
2 | vole GOOD --noise gaussian | --noise
2 | vole GOOD --security none | --security
2 | vole GOOD --ring z64 --security malicious | --security: vector OLE over z64
2 | vole GOOD --parameters tiny | --parameters
2 | vole GOOD --parameters paper80 --noise regular | --noise
2 | vole GOOD --parameters paper80 --security malicious | --security
2 | vole GOOD --parameters ferret | --parameters
2 | vole GOOD --set b13 | --set: b13 is made for f2
2 | vole GOOD --delta FILE | --delta
2 | cot --role sender | --n
2 | cot GOOD --ring fp61 | --ring
2 | cot GOOD --set b99 | --set: unknown LPN set 'b99'
2 | cot GOOD --set b12 --noise uniform | --set: b12
2 | cot GOOD --set u21 --noise regular | --set: u21
2 | cot GOOD --set ferret-reg-setup | --set
2 | cot GOOD --parameters paper80 | --parameters
2 | cot GOOD --parameters ferret --set b10 | --set
2 | cot GOOD --parameters ferret --link 1Gbit,1ms | --link
2 | cot GOOD --link fast | --link
1 | cot GOOD --delta FILE | not an .npy file
1 | cot GOOD --delta OUT | No such file
2 | cot --role receiver --n 5 --listen 127.0.0.1:0 --out OUT --delta FILE | --delta: only the sender
2 | cot --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627776 | --n: the output needs
2 | cot --role sender --listen 127.0.0.1:0 --n 5 --out FULL --force | did not write
2 | vole GOOD --timeout 0 | --timeout
2 | vole GOOD --threads 0 | --threads
2 | vole GOOD -q -v | --quiet
2 | vole GOOD --n 6 | --n
2 | vole GOOD --report /proc/volery-report | --report
2 | vole GOOD --identity x | --identity
2 | vole --role sender --listen 127.0.0.1:0 --out OUT --n -1 | --n
2 | vole --role sender --listen 127.0.0.1:0 --out OUT --n 1e-6 | --n
2 | vole --role sender --listen 127.0.0.1:0 --out OUT --n 18446744073709551616 | --n
2 | vole --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627777 | --n
2 | vole --role sender --listen 127.0.0.1:0 --out OUT --n 1099511627776 | --n: the output needs
2 | vole --role sender --listen 127.0.0.1:0 --n 16777217 --parameters paper80 --out OUT | --n
2 | vole --role sender --listen 0.0.0.0:0 --n 5 --out OUT | --listen: 0.0.0.0 is not on the loopback
2 | vole --role sender --listen [::]:7000 --n 5 --out OUT | --listen: :: is not on the loopback
2 | vole --role sender --connect 192.0.2.1:7000 --n 5 --out OUT | --connect: 192.0.2.1 is not
2 | vole --role sender --connect 127.0.0.1 --n 5 --out OUT | --connect: '127.0.0.1' is not HOST:PORT
2 | vole --role sender --connect 127.0.0.1:http --n 5 --out OUT | --connect
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out FULL | --out
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out FULL --force | did not write
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out FILE | --out
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out FILE/out | --out
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out OUT/deeper | --out
2 | vole --role sender --listen 127.0.0.1:0 --n 5 --out /proc/volery-out | --out
2 | demo --n 67108865 | --n
2 | demo --n many | --n
2 | verify | SENDER
1 | verify OUT OUT | u.npy
1 | verify FULL FULL | u.npy
2 | params | USAGE
";
    for row in table.lines() {
        let [status, call, fragment] = row.split(" | ").collect::<Vec<_>>()[..] else {
            panic!("{row}");
        };
        let status = status.parse().unwrap();
        let arguments: Vec<_> = call
            .split_whitespace()
            .flat_map(|word| match word {
                "GOOD" => "--role sender --n 5 --listen 127.0.0.1:0 --out OUT".split(' ').collect(),
                word => vec![word],
            })
            .map(|word| word.replace("OUT", out).replace("FULL", full).replace("FILE", file))
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
    for arguments in [&["--help"][..], &["--version"], &["vole", "--help"], &["cot", "--help"]] {
        let finished = run(arguments);
        assert_eq!(finished.status, Some(0));
        assert!(!finished.stdout.is_empty() && finished.stderr.is_empty(), "{finished:?}");
    }
}

#[test]
fn an_address_in_use_is_said_to_be() {
    let place = tempfile::tempdir().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let out = place.path().join("out");
    run(&words(&format!("vole --role sender --n 5 --listen {address} --out {}", text(&out))))
        .assert_refused(1, &["--listen", &address, "in use"]);
    assert!(names(place.path()).is_empty());
}

#[test]
fn lists_go_to_standard_output() {
    let sets = run(&["params", "list"]);
    assert_eq!(sets.status, Some(0));
    assert!(sets.stdout.contains("128 bits") && sets.stdout.contains("paper80"), "{sets:?}");
    let line = |name| sets.stdout.lines().find(|line| line.trim_start().starts_with(name));
    let [own, paper] = ["b13 ", "ferret-uni "].map(|name| line(name).unwrap());
    assert!(own.contains("f2") && !own.contains("fp61") && own.contains("own"));
    assert!(paper.contains("f2") && paper.contains("paper"));
}

/// Every subcommand, before it does anything.
#[test]
fn an_unknown_level_of_the_processor_is_refused_with_those_it_has() {
    for name in ["avx1024", "PORTABLE"] {
        let mut command = volery(&["demo", "--n", "10"]);
        let output = command.env("VOLERY_CPU", name).output().unwrap();
        let levels = Cpu::available().into_iter().map(Cpu::name);
        let fragments: Vec<_> = std::iter::once("VOLERY_CPU").chain(levels).collect();
        ProcessResult::from(output).assert_refused(2, &fragments);
    }
}

#[test]
fn an_empty_name_of_a_level_is_none() {
    let mut command = volery(&["demo", "--n", "10"]);
    let output = command.env("VOLERY_CPU", "").output().unwrap();
    let demo = ProcessResult::from(output);
    assert_eq!(demo.status, Some(0), "{demo:?}");
}

#[test]
fn the_demo_runs_on_every_level_of_the_processor() {
    for level in Cpu::available() {
        let mut command = volery(&["demo", "--n", "5000"]);
        let output = command.env("VOLERY_CPU", level.name()).output().unwrap();
        let demo = ProcessResult::from(output);
        assert_eq!(demo.status, Some(0), "{level}: {demo:?}");
        assert!(demo.stdout.contains("all hold"), "{level}: {demo:?}");
    }
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
    for call in [&["bench"][..], &["bench", "paper", "--quick", "--out", "x"], &["bench", "--help"]]
    {
        let refused = run(call);
        refused.assert_refused(2, &["bench", "volery-bench", "lab"]);
        assert_eq!(refused.stderr.lines().count(), 1, "{refused:?}");
    }
}
