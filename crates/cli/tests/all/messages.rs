//! Wrong invocations: each ends with its status, one line that says what is wrong, and the hint
//! that helps. One line a case; add yours to `messages.txt`.

use std::os::unix::fs::PermissionsExt as _;

use crate::common::pair::PLANTED;
use crate::common::{names, run, text};

/// Status, arguments, parts of the error with ` .. ` between them, and a part of the hint (`-` for
/// no hint, nothing for any). In the arguments `@VOLE`, `@COT`, `@OPE` and `@MAT` stand for the
/// rest of a valid call of a sender that listens, `@SENDS` and `@GETS` for the begin of one of a
/// sender and of a receiver of rows, `@KEYS` for that of a sender whose key, in the file `@IN`, no
/// message may show; `@OUT` for a place for output, `@FULL` for a folder with a stranger's file,
/// `@WEB` for the begin of one of a gateway for browsers, `@FILE` for a file of text, `@PEM` for
/// one that its owner alone reads, `@XLSX` for one of a kind that is not known, `@DEVICE` for none,
/// `@ID` for an identity, `@PRINT` for its fingerprint, `@SLIP` for one with a typing error,
/// `@TAKEN` for an address in use, `@NPY` and `@CSV` for numbers, `@TWO` for two columns of one
/// name, `@QUOTE` for a quote without end, `@MANY` for 61 groups.
const CASES: &str = include_str!("messages.txt");

#[test]
fn wrong_invocations_are_answered_with_what_is_wrong_and_a_hint() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| text(&place.path().join(name)).to_owned();
    for name in ["full", "full.csv"] {
        std::fs::create_dir(path(name)).unwrap();
    }
    std::fs::write(path("full/thesis.tex"), "years of work").unwrap();
    std::fs::write(path("file"), "not a folder").unwrap();
    std::fs::write(path("two.csv"), "id,id\n1,2\n").unwrap();
    std::fs::write(path("quote.csv"), "id,name\n1,\"Ada\n").unwrap();
    std::fs::write(path("polynomial.csv"), "coefficient,point\n5,1\n7,2\n").unwrap();
    for name in ["keys.csv", "keys.xlsx"] {
        std::fs::write(path(name), format!("k,v\n{PLANTED},1\n")).unwrap();
    }
    std::os::unix::fs::symlink("/dev/null", path("device.csv")).unwrap();
    std::fs::write(path("web.pem"), "x").unwrap();
    std::fs::set_permissions(path("web.pem"), std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::set_permissions(path("file"), std::fs::Permissions::from_mode(0o644)).unwrap();
    let header = "{'descr': '<u8', 'fortran_order': False, 'shape': (1, 2), }";
    let array = format!("\u{93}NUMPY\u{1}\0\u{76}\0{header:117}\n");
    let array: Vec<u8> = array.chars().map(|byte| byte as u8).collect();
    std::fs::write(path("a.npy"), [array, vec![1; 16]].concat()).unwrap();
    let made = run(&["keygen", "--out", &path("id"), "--quiet"]);
    let print = made.stdout.trim().to_owned();
    let slip = print.replacen(&print[..1], if print.starts_with('7') { "8" } else { "7" }, 1);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let before = names(place.path());

    let (sender, listen) = ("--role sender --listen 127.0.0.1:0", "--listen 127.0.0.1:0");
    let names_of = [
        ("@VOLE", format!("{sender} --n 5 --out @OUT")),
        ("@COT", format!("{sender} --n 5 --out @OUT")),
        ("@OPE", format!("{sender} --input @CSV")),
        ("@MAT", format!("{sender} --input @NPY")),
        ("@SENDS", format!("{sender} --input @CSV")),
        ("@GETS", format!("--role receiver {listen} --input @CSV")),
        ("@KEYS", format!("{sender} --input {}", path("keys.csv"))),
        ("@IN", path("keys.csv")),
        ("@MANY", (1..61).fold("g0".to_owned(), |all, i| format!("{all},g{i}"))),
        ("@OUT", path("out")),
        ("@FULL", path("full")),
        ("@FILE", path("file")),
        ("@XLSX", path("keys.xlsx")),
        ("@DEVICE", path("device.csv")),
        ("@WEB", "--web 127.0.0.1:0 --to 127.0.0.1:9".to_owned()),
        ("@PEM", path("web.pem")),
        ("@PRINT", print),
        ("@SLIP", slip),
        ("@TAKEN", taken.local_addr().unwrap().to_string()),
        ("@ID", path("id")),
        ("@NPY", path("a.npy")),
        ("@CSV", path("polynomial.csv")),
        ("@TWO", path("two.csv")),
        ("@QUOTE", path("quote.csv")),
    ];
    let mut wrong = Vec::new();
    for case in CASES.lines() {
        let parts: Vec<_> = case.split('|').map(str::trim).collect();
        let [status, call, error, hint] = parts[..] else {
            panic!("{case}");
        };
        let call =
            names_of.iter().fold(call.to_owned(), |call, (name, value)| call.replace(name, value));
        let ended = run(&call.split_whitespace().collect::<Vec<_>>());
        let line = |start| ended.stderr.lines().find_map(|line| line.strip_prefix(start));
        let errors = ended.stderr.lines().filter(|line| line.starts_with("error: ")).count();
        let hint_is_right = match (hint, line("hint: ")) {
            ("", _) | ("-", None) => true,
            (_, said) => said.is_some_and(|said| said.contains(hint)),
        };
        let error_is_right =
            line("error: ").is_some_and(|said| error.split(" .. ").all(|part| said.contains(part)));
        let is_right = ended.status == Some(status.parse().unwrap())
            && errors == 1
            && error_is_right
            && hint_is_right
            && ended.stdout.is_empty()
            && !ended.stderr.contains(PLANTED);
        if !is_right {
            wrong.push(format!("{case}\n  {:?}\n{}", ended.status, ended.stderr));
        }
        assert_eq!(names(place.path()), before, "{case}: left files behind");
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_run_that_fails_has_a_log_of_json_and_a_report() {
    let place = tempfile::tempdir().unwrap();
    let out = text(&place.path().join("out")).to_owned();
    let call =
        "ope --role receiver --point 3 --listen 127.0.0.1:0 --wait 1s --log json -v --report -";
    let ended = run(&call.split(' ').collect::<Vec<_>>());
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let lines: Vec<serde_json::Value> =
        ended.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{line}");
        assert!(line["level"].is_string() && line["message"].is_string());
        assert!(line.as_object().unwrap().contains_key("phase"));
    }
    let last = lines.last().unwrap();
    assert_eq!((&last["level"], &last["status"]), (&"error".into(), &4.into()));
    assert_eq!(last["phase"], "connecting");
    assert!(last["hint"].as_str().unwrap().contains("--wait"));
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((&report["command"], &report["role"]), (&"ope".into(), &"receiver".into()));
    assert_eq!((&report["status"], &report["error"]), (&4.into(), &last["message"]));
    assert_eq!(report["phases"][0]["name"], "connecting");
    assert!(report["phases"][0]["seconds"].as_f64().unwrap() >= 0.9);
    assert_eq!(report["revealed"].as_array().unwrap().len(), 0);
    assert!(report["date"].as_str().unwrap().starts_with("20"));

    // Text: the phases are lines also without a terminal, and -vv says when.
    let call = format!("vole --role sender --n 1 --out {out} --listen 127.0.0.1:0 --wait 1");
    for (more, wanted) in
        [("-v", "volery: connecting begins\n"), ("-vv", " s: connecting begins\n")]
    {
        let ended = run(&call.split(' ').chain([more]).collect::<Vec<_>>());
        assert!(ended.stderr.contains(wanted), "{ended:?}");
        assert!(ended.stderr.contains("waiting for the peer to connect, for at most 1s"));
    }
}
