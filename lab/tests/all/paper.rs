//! `volery-bench paper`: the files in its folder, the continuation of a run, and refused calls.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{Finished, Running, names, run, text};
use serde_json::Value;

/// An experiment of which the figures follow from parameters, and another one.
const COMPUTED: [&str; 2] = ["kkrt-table-1", "kkrt-table-2"];

/// An experiment with few and short measurements.
const SHORT: &[&str] = &["paper", "dvole-figure-5", "--quick"];

fn paper(out: &Path, more: &[&str]) -> Finished {
    run(&[SHORT, &["--out", text(out)], more].concat())
}

fn results(out: &Path) -> Value {
    serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap()
}

/// The samples of all measurements.
fn samples(results: &Value) -> Vec<Vec<Value>> {
    let measurements = results["measurements"].as_array().unwrap();
    let of = |measurement: &Value| measurement["samples"].as_array().unwrap().clone();
    measurements.iter().map(of).collect()
}

fn assert_done(finished: &Finished) {
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(!finished.stderr.contains("error"), "{finished:?}");
}

#[test]
fn an_unknown_experiment_is_refused_with_the_known_ones() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let fragments = [
        "'ferret-table-2'",
        "dvole-figure-3",
        "ferret-table-3",
        "kkrt-table-5",
    ];
    run(&["paper", "kkrt", "ferret-table-2", "--out", text(&out)]).assert_refused(2, &fragments);
    assert!(names(place.path()).is_empty());
}

#[test]
fn the_list_has_all_experiments() {
    let list = run(&["list"]);
    assert_eq!(list.status, Some(0));
    for name in ["dvole-figure-4", "ferret-table-1", "kkrt-table-2"] {
        let line = list
            .stdout
            .lines()
            .find(|line| line.trim_start().starts_with(name));
        let words = line.unwrap().split_whitespace().count();
        assert!(words > 3, "{line:?}");
    }
}

/// The names of the sections that a file has.
fn sections(out: &Path) -> Vec<String> {
    let results = results(out);
    let sections = results["more"]["sections"].as_array().unwrap();
    let names = sections.iter().map(|one| one["name"].as_str().unwrap());
    names.map(str::to_owned).collect()
}

#[test]
fn a_computed_table_is_shown_and_is_in_the_file() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let call = |more: &[&str]| {
        let finished = run(&[&["paper"], &COMPUTED[..], &["--out", text(&out)], more].concat());
        assert_done(&finished);
        finished
    };
    let first = call(&[]);
    assert_eq!(names(&out), ["results.json"]);
    assert_eq!(sections(&out), COMPUTED);
    assert!(first.stdout.contains("Table 2"), "{first:?}");
    let widest = first.stdout.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(100), "{first:?}");
    assert_eq!(results(&out)["schema"], 1);

    let second = call(&["-q"]);
    assert!(
        second.stdout.is_empty() && second.stderr.is_empty(),
        "{second:?}"
    );
}

#[test]
fn more_runs_and_experiments_are_added_to_what_is_there() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let first = paper(&out, &["--runs", "1"]);
    assert_done(&first);
    assert!(
        first
            .stderr
            .contains("already there: 0; this takes less than a minute"),
        "{first:?}"
    );
    assert!(
        first.stderr.contains("Ctrl-C keeps finished runs"),
        "{first:?}"
    );
    let before = results(&out);
    assert!(before["sittings"][0]["machine"]["nanoseconds_aes_block"].is_number());
    let before = samples(&before);
    assert!(
        before.iter().any(|samples| samples.len() == 1),
        "{before:?}"
    );

    // Nothing is missing: not a byte of the results changes.
    let written = fs::read(out.join("results.json")).unwrap();
    let again = paper(&out, &["--runs", "1"]);
    assert_done(&again);
    assert!(again.stderr.contains("nothing is missing"), "{again:?}");
    assert_eq!(fs::read(out.join("results.json")).unwrap(), written);

    let report = place.path().join("report.json");
    let call = [
        "paper",
        "dvole-figure-5",
        "kkrt-table-2",
        "--quick",
        "--runs",
        "2",
    ];
    let more = run(&[&call[..], &["--out", text(&out), "--report", text(&report)]].concat());
    assert_done(&more);
    let after = results(&out);
    assert_eq!(after["sittings"].as_array().unwrap().len(), 2);
    let after = samples(&after);
    let mut made = 0;
    for (before, after) in before.iter().zip(&after) {
        assert_eq!(before[..], after[..before.len()]);
        assert_eq!(after.len(), 2 * before.len());
        made += after.len() - before.len();
    }
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["result"]["runs_made"], made);

    // The experiments requested first are still shown.
    let call = [
        "paper",
        "kkrt-table-2",
        "--quick",
        "-q",
        "--out",
        text(&out),
    ];
    assert_done(&run(&call));
    assert_eq!(sections(&out), ["dvole-figure-5", "kkrt-table-2"]);
}

#[test]
fn a_run_that_is_interrupted_goes_on() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let runs = ["--runs", "1000", "--out", text(&out)];
    let there = || -> usize {
        let file = out.join("results.json");
        let all = file.exists().then(|| samples(&results(&out)));
        all.unwrap_or_default().iter().map(Vec::len).sum()
    };
    for signal in ["INT", "TERM"] {
        let before = there();
        let running = Running::start(&[SHORT, &runs].concat());
        let start = Instant::now();
        while there() <= before {
            assert!(
                start.elapsed() < Duration::from_secs(120),
                "nothing is kept"
            );
            thread::sleep(Duration::from_millis(20));
        }
        running.signal(signal);
        let finished = running.finish_within(Duration::from_secs(180));
        finished.assert_refused(1, &["interrupted", "are kept", "results.json"]);
        assert!(
            finished.stderr.contains("hint: the same command continues"),
            "{finished:?}"
        );
        // It shows exactly the existing results.
        let kept = format!("results.json: {}\n", there());
        assert!(finished.stderr.contains(&kept), "{kept}: {finished:?}");
        assert_eq!(names(&out), ["results.json"]);
    }
    let sittings = results(&out)["sittings"].as_array().unwrap().len();
    assert_eq!(sittings, 2);
}

#[test]
fn results_that_cannot_be_gone_on_from_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let call = ["paper", COMPUTED[0], "--out", text(&out)];
    let finished = run(&call);
    assert_done(&finished);
    let file = out.join("results.json");
    let good = fs::read_to_string(&file).unwrap();
    for (bad, fragment) in [
        (good[..good.len() / 2].to_owned(), "ends too early"),
        (good.replace("\"schema\":1", "\"schema\":7"), "version 7"),
        (good.replace("volery measurements", "recipes"), "'recipes'"),
    ] {
        assert_ne!(bad, good);
        fs::write(&file, &bad).unwrap();
        run(&call).assert_refused(1, &["results.json", fragment]);
        assert_eq!(
            fs::read_to_string(&file).unwrap(),
            bad,
            "it is left as it is"
        );
    }
    fs::write(&file, &good).unwrap();
    for [more, value] in [["--quick", "-v"], ["--threads", "2"]] {
        run(&[&call[..], &[more, value]].concat()).assert_refused(
            2,
            &[
                "results.json",
                "measured with other settings",
                "full, 1 thread a party",
            ],
        );
    }
    assert_done(&run(
        &[&call[..], &["--runs", "9", "--limit", "99"]].concat()
    ));
}

#[test]
fn options_and_places_that_cannot_be_are_refused() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("thesis.tex"), "years of work").unwrap();
    let (out, here) = (place.path().join("out"), text(place.path()));
    let nowhere = place.path().join("no/where");
    for (arguments, fragments) in [
        (["--out", here], ["--out", "not empty"]),
        (["--out", text(&nowhere)], ["--out", "No such file"]),
        (["--report", here], ["--report", "not a file"]),
        (["--report", text(&nowhere)], ["--report", "No such file"]),
        (["--runs", "0"], ["--runs", "0"]),
        (["--limit", "0"], ["--limit", "0"]),
        (["--threads", "0"], ["--threads", "0"]),
    ] {
        let mut call = vec!["paper", COMPUTED[0]];
        if arguments[0] != "--out" {
            call.extend(["--out", text(&out)]);
        }
        call.extend(arguments);
        run(&call).assert_refused(2, &fragments);
    }
    assert!(!out.exists(), "what is refused leaves nothing");
}

#[test]
fn the_results_are_not_overwritten_and_a_report_can_be_beside_them() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let call = |more: &[&str]| run(&[&["paper", COMPUTED[0], "--out", text(&out)], more].concat());
    // As a run leaves it that was killed while it wrote the first results.
    fs::create_dir(&out).unwrap();
    fs::write(out.join(".volery-unfinished-a1B2c3"), "{").unwrap();
    let report = out.join("report.json");
    assert_done(&call(&["--report", text(&report)]));
    assert_eq!(names(&out), ["report.json", "results.json"]);
    let file = out.join("results.json");
    let written = fs::read(&file).unwrap();
    call(&["--report", text(&file)]).assert_refused(2, &["--report", "file of results"]);
    assert_eq!(fs::read(&file).unwrap(), written);
}

/// The first core that this process may use.
fn first_core() -> Option<String> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    let digits = list.trim().split(|c: char| !c.is_ascii_digit());
    digits.into_iter().next().map(str::to_owned)
}

#[test]
#[expect(clippy::print_stderr, reason = "it says why it tests nothing")]
fn one_core_is_said() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    let Some(core) = first_core() else {
        eprintln!("the system does not tell which cores this process may use: nothing was tested");
        return;
    };
    let volery = env!("CARGO_BIN_EXE_volery-bench");
    let output = Command::new("taskset")
        .args(["-c", &core, volery])
        .args(SHORT)
        .args(["--runs", "1", "--out", text(&out)])
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => {
            eprintln!("taskset: {error}: nothing was tested");
            return;
        }
    };
    let finished = Finished::from(output);
    assert_done(&finished);
    assert!(
        finished
            .stderr
            .contains("volery-bench: This process may use one core"),
        "{finished:?}"
    );
    assert!(finished.stdout.contains("This process may use one core"));
    let remarks = &results(&out)["sittings"][0]["remarks"];
    assert!(
        remarks[0].as_str().unwrap().contains("one core"),
        "{remarks}"
    );
}

#[test]
fn drawing_alone_measures_nothing() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    paper(&out, &["--draw"]).assert_refused(2, &["--draw", "no measurements"]);
    assert!(names(place.path()).is_empty());
    assert_done(&paper(&out, &["--runs", "1", "-q"]));
    let before = fs::read(out.join("results.json")).unwrap();
    assert_done(&paper(&out, &["--draw", "-q"]));
    assert!(fs::read(out.join("results.json")).unwrap() == before);
    paper(&out, &["--draw", "--runs", "2"]).assert_refused(2, &["--draw", "--runs"]);
}
