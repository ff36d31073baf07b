//! `volery-bench paper`: its file, the continuation of a run, and refused calls.
//! One test measures; the others show what follows from parameters.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::{ProcessResult, names, program, run, text};

/// Experiments of which the figures follow from parameters.
const COMPUTED: [&str; 2] = ["kkrt-table-1", "kkrt-table-2"];

fn paper(names: &[&str], out: &Path, more: &[&str]) -> ProcessResult {
    run(&[&["paper"], names, &["--json", text(out)], more].concat())
}

fn results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out).unwrap()).unwrap()
}

/// The number of runs of each measurement.
fn runs(out: &Path) -> Vec<usize> {
    let results = results(out);
    let measurements = results["measurements"].as_array().unwrap().iter();
    measurements.map(|one| one["samples"].as_array().unwrap().len()).collect()
}

/// The experiments whose lines a file has.
fn experiments(out: &Path) -> Vec<String> {
    let more = &results(out)["more"];
    let names = more["experiments"].as_array().unwrap();
    assert_eq!(more["lines"].as_array().unwrap().len(), names.len());
    names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
}

/// A killed run keeps its runs and goes on; more runs and experiments are added to what is
/// there, and a run without anything missing changes nothing.
#[test]
fn a_run_that_is_interrupted_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out.json");
    let short = ["paper", "dvole-figure-5", "--quick", "--json", text(&out)];
    let mut running = program(&[&short[..], &["--runs", "1000"]].concat()).spawn().unwrap();
    let start = Instant::now();
    while !out.exists() || runs(&out).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(120), "nothing is kept");
        thread::sleep(Duration::from_millis(20));
    }
    running.kill().unwrap();
    running.wait().unwrap();

    let most = *runs(&out).iter().max().unwrap();
    let least = (most + 1).to_string();
    let more = ["kkrt-table-2", "--runs", &least];
    let finished = run(&[&short[..], &more].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("Ctrl-C keeps the runs"), "{finished:?}");
    assert!(runs(&out).iter().all(|runs| *runs == most + 1));
    assert_eq!(results(&out)["sittings"].as_array().unwrap().len(), 2);

    // Nothing is missing: not a byte of the results changes, nothing is measured.
    let written = fs::read(&out).unwrap();
    for more in [&["--runs", "1"][..], &["--draw"]] {
        let again = run(&[&short[..], more].concat());
        assert_eq!(again.status, Some(0), "{again:?}");
        assert_eq!(fs::read(&out).unwrap(), written);
    }
    assert_eq!(experiments(&out), ["dvole-figure-5", "kkrt-table-2"]);
}

#[test]
fn a_computed_table_is_in_the_file() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out.json");
    let first = paper(&COMPUTED, &out, &[]);
    assert_eq!(first.status, Some(0), "{first:?}");
    assert_eq!(
        (names(place.path()), experiments(&out)),
        (vec!["out.json".to_owned()], COMPUTED.map(str::to_owned).into())
    );
    let said = ["report.py", "out.json"].map(|name| first.stdout.contains(name));
    assert_eq!(said, [true; 2], "{first:?}");
    let stash = results(&out)["more"]["lines"][1][0].to_string();
    assert!(stash.contains("\"computed\":12.0"), "{stash}");
    let second = paper(&COMPUTED, &out, &["-q"]);
    assert!(second.stdout.is_empty() && second.stderr.is_empty(), "{second:?}");
    let list = run(&["list"]);
    for name in ["cot", "vole-gf128", "dvole-figure-4", "ferret-table-1", "kkrt-table-2"] {
        let line = list.stdout.lines().find(|line| line.trim_start().starts_with(name));
        assert!(line.unwrap().split_whitespace().count() > 3, "{line:?}");
    }
}

#[test]
fn results_that_cannot_be_continued_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out.json");
    assert_eq!(paper(&COMPUTED[..1], &out, &[]).status, Some(0));
    let good = fs::read_to_string(&out).unwrap();
    for (bad, fragment) in [
        (good[..good.len() / 2].to_owned(), "ends too early"),
        (good.replace("\"schema\":1", "\"schema\":7"), "version 7"),
    ] {
        fs::write(&out, &bad).unwrap();
        paper(&COMPUTED[..1], &out, &[]).assert_refused(1, &["out.json", fragment]);
        assert_eq!(fs::read_to_string(&out).unwrap(), bad, "it is left as it is");
    }
    fs::write(&out, &good).unwrap();
    for [more, value] in [["--quick", "-v"], ["--threads", "2"]] {
        let fragments = ["out.json", "measured with other settings", "full, 1 thread a party"];
        paper(&COMPUTED[..1], &out, &[more, value]).assert_refused(2, &fragments);
    }
    assert_eq!(fs::read_to_string(&out).unwrap(), good);
}

#[test]
fn refused_calls_leave_nothing() {
    let place = tempfile::tempdir().unwrap();
    let (out, nowhere) = (place.path().join("out.json"), place.path().join("no/where"));
    let unknown = ["'ferret-table-2'", "dvole-figure-3", "kkrt-table-5"];
    paper(&["kkrt", "ferret-table-2"], &out, &[]).assert_refused(2, &unknown);
    paper(&COMPUTED[..1], &out, &["--draw"]).assert_refused(2, &["--draw", "no measurements"]);
    paper(&COMPUTED[..1], &out, &["--draw", "--runs", "2"]).assert_refused(2, &["--draw"]);
    for option in ["--runs", "--limit"] {
        paper(&COMPUTED[..1], &out, &[option, "0"]).assert_refused(2, &[option]);
    }
    paper(&COMPUTED[..1], &nowhere, &[]).assert_refused(2, &["--json", "No such file"]);
    paper(&COMPUTED[..1], place.path(), &[]).assert_refused(2, &["--json", "not a file"]);
    assert!(names(place.path()).is_empty());
}
