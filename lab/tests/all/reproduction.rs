//! REPRODUCTION.md equals the output of the commands of lab/README.md on the shipped results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{run, text};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// The lines of the tables in the file are those that the program has today.
#[test]
fn the_lines_of_the_tables_are_those_of_today() {
    let place = tempfile::tempdir().unwrap();
    let drawn = place.path().join("results.json");
    fs::copy(shipped("results.json"), &drawn).unwrap();
    let finished = run(&["paper", "--draw", "-q", "--json", text(&drawn)]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(
        fs::read(&drawn).unwrap() == fs::read(shipped("results.json")).unwrap(),
        "make it again: see lab/README.md"
    );
}

#[test]
#[expect(clippy::print_stderr, reason = "it says why it tests nothing")]
fn the_document_is_what_the_script_makes_of_the_results() {
    let place = tempfile::tempdir().unwrap();
    let document = place.path().join("REPRODUCTION.md");
    let made = Command::new("python3")
        .args([shipped("report.py"), shipped("results.json")])
        .arg("--markdown")
        .arg(&document)
        .output();
    let Ok(made) = made else {
        eprintln!("this machine has no python3: nothing was tested");
        return;
    };
    assert!(made.status.success(), "{made:?}");
    let document = fs::read_to_string(document).unwrap();
    let there = fs::read_to_string(shipped("../REPRODUCTION.md")).unwrap();
    assert!(document == there, "make it again: see lab/README.md");
    assert!(document.lines().count() <= 200);
    for row in [
        "| Distributed Vector-OLE | Figure 3 |",
        "| Distributed Vector-OLE | Figure 5 |",
        "| Ferret | Table 1 |",
        "| Ferret | Table 5 |",
        "| BaRK-OPRF | Table 1 |",
        "| BaRK-OPRF | Table 5 |",
    ] {
        assert!(document.contains(row), "{row}");
    }
}

/// Every experiment has five runs of each measurement.
#[test]
fn the_results_are_those_of_a_whole_run() {
    let text = fs::read(shipped("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let asked = results["asked"].as_str().unwrap();
    assert_eq!(asked, "bench paper, full, 1 thread a party");
    assert_eq!(results["more"]["experiments"].as_array().unwrap().len(), 12);
    let measurements = results["measurements"].as_array().unwrap();
    assert!(measurements.len() > 200);
    for one in measurements {
        let (samples, skipped) = (one["samples"].as_array().unwrap(), &one["skipped_seconds"]);
        assert!(
            samples.len() >= 5 || (samples.is_empty() && skipped.is_number()),
            "{}",
            one["key"]
        );
    }
}
