//! REPRODUCTION.md and the files beside it are what the command draws from the results that are there.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{names, run, text};

const DOCUMENT: &str = "REPRODUCTION.md";
const FOLDER: &str = "docs/reproduction";

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_document_is_what_the_command_draws() {
    let (committed, place) = (repository(), tempfile::tempdir().unwrap());
    let (out, document) = (place.path().join(FOLDER), place.path().join(DOCUMENT));
    fs::create_dir_all(&out).unwrap();
    let results = out.join("results.json");
    fs::copy(committed.join(FOLDER).join("results.json"), &results).unwrap();
    let before = fs::read(&results).unwrap();
    let drawn = run(&[
        "bench",
        "paper",
        "--draw",
        "-q",
        "--out",
        text(&out),
        "--markdown",
        text(&document),
    ]);
    assert_eq!(drawn.status, Some(0), "{drawn:?}");
    assert!(fs::read(&results).unwrap() == before, "nothing is measured");

    let mut files = vec![DOCUMENT.to_owned()];
    files.extend(["results.csv", "index.html"].map(|name| format!("{FOLDER}/{name}")));
    let plots = format!("{FOLDER}/plots");
    assert_eq!(
        names(&place.path().join(&plots)),
        names(&committed.join(&plots))
    );
    let all = names(&committed.join(&plots));
    assert!(all.len() > 10, "{all:?}");
    files.extend(all.iter().map(|name| format!("{plots}/{name}")));
    for file in files {
        let [drawn, there] =
            [place.path(), &*committed].map(|root| fs::read(root.join(&file)).unwrap());
        assert!(
            drawn == there,
            "draw it again: volery bench paper --draw --out {FOLDER} --markdown {DOCUMENT} ({file})"
        );
    }
}

/// The document is of a whole run: of every experiment, five runs of each measurement that was made.
#[test]
fn the_results_are_those_of_a_whole_run() {
    let text = fs::read(repository().join(FOLDER).join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let asked = results["asked"].as_str().unwrap();
    assert_eq!(asked, "bench paper, full, 1 thread a party");
    let measurements = results["measurements"].as_array().unwrap();
    assert!(measurements.len() > 300);
    for one in measurements {
        let (samples, skipped) = (one["samples"].as_array().unwrap(), &one["skipped_seconds"]);
        assert!(
            samples.len() >= 5 || (samples.is_empty() && skipped.is_number()),
            "{}",
            one["key"]
        );
    }
    let document = fs::read_to_string(repository().join(DOCUMENT)).unwrap();
    for heading in [
        "Figure 3 of Distributed Vector-OLE",
        "Figure 5 of Distributed Vector-OLE",
        "Table 1 of Ferret",
        "Table 5 of Ferret",
        "Table 1 of BaRK-OPRF",
        "Table 5 of BaRK-OPRF",
    ] {
        assert!(document.contains(heading), "{heading}");
    }
}
