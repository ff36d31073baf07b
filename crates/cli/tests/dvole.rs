//! `volery bench dvole`: every measurement is there, and the figures are those of the file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{run, text};

#[test]
fn all_figures_of_small_sizes() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("dvole.json");
    let finished = run(&[
        "bench",
        "dvole",
        "--sizes",
        "8,10",
        "--lengths",
        "500,2000",
        "--scaling-length",
        "3000",
        "--link",
        "loopback",
        "--link",
        "100Mbit,200us",
        "--runs",
        "1",
        "--json",
        text(&file),
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stderr.is_empty(), "{finished:?}");
    let report: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let result = &report["result"];
    assert_eq!(result["schema"], 1);

    // Figure 3: two rings, two links, two sizes, three protocols. Figure 4: six protocols, one of which z64 does not have.
    // Figure 5: two rings, two numbers of threads.
    let figures = result["figures"].as_array().unwrap();
    let rows = |figure: usize| figures[figure]["rows"].as_array().unwrap();
    let counts: Vec<_> = (0..3).map(|figure| rows(figure).len()).collect();
    assert_eq!(counts, [24, 44, 4]);
    let measured = result["measurements"].as_array().unwrap();
    assert_eq!(measured.len(), 72);
    for (figure, number) in figures.iter().zip([3, 4, 5]) {
        assert_eq!(figure["figure"], number);
        let heading = format!("Figure {number} (section 8.3.");
        assert!(finished.stdout.contains(&heading), "{}", finished.stdout);
    }
    for cell in measured {
        let sample = &cell["samples"][0];
        assert!(sample["seconds"].as_f64().unwrap() > 0.0, "{cell}");
        let bytes = sample["bytes"].as_u64().unwrap();
        let formula = cell["formula_bytes"].as_u64().unwrap();
        assert!(bytes >= formula, "{cell}");
        if cell["protocol"] == "gilboa" {
            // The base OTs, and no more than that.
            assert!(bytes - formula < 10_000, "{cell}");
        }
        let paper = ["vole-paper80", "whole-domain", "floram"];
        let set = paper.iter().any(|name| cell["protocol"] == *name);
        assert!(
            !set || cell["plan"].as_str().unwrap().contains("paper80-14"),
            "{cell}"
        );
    }

    // A known index takes one message each way and a message of 16 bytes and some for each level; a shared one takes h + 2
    // messages each way.
    for row in rows(0) {
        let h = row["n"].as_u64().unwrap().ilog2();
        let messages = row["messages"].as_u64().unwrap();
        let expected = if row["protocol"] == "dpf" {
            2 * (h + 2)
        } else {
            2
        };
        assert_eq!(messages, u64::from(expected), "{row}");
        if row["protocol"] == "spfss-half" {
            assert_eq!(row["ratio"], 1.0);
        }
    }

    // Three ways of ours in fp61, two in z64, over two links.
    let crossings = figures[1]["crossings"].as_array().unwrap();
    assert_eq!(crossings.len(), 10);
    let published = |ring: &str, link: &str| {
        let mut crossings = crossings.iter();
        let found = crossings.find(|crossing| crossing["ring"] == ring && crossing["link"] == link);
        found.unwrap()["published"].as_f64()
    };
    assert_eq!(published("fp61", "loopback"), Some(300_000.0));
    assert_eq!(published("z64", "100Mbit,0.2ms"), Some(400_000.0));
    for crossing in crossings {
        // Ours is a multiplication here too, with some more set up.
        assert!(crossing["bytes"]["kind"].is_string(), "{crossing}");
    }
    assert_eq!(rows(2)[0]["published"], 1.0);
}

#[test]
fn what_takes_too_long_is_skipped_and_marked() {
    let finished = run(&[
        "bench",
        "dvole",
        "--figure",
        "4",
        "--lengths",
        "16000",
        "--rings",
        "fp61",
        "--link",
        "20Mbit,1ms",
        "--limit",
        "1",
        "--runs",
        "1",
        "-v",
    ]);
    // 7.8 MB would take 3 s.
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("skipping gilboa"), "{finished:?}");
    assert!(finished.stdout.contains("skipped"), "{}", finished.stdout);
}

#[test]
fn what_there_is_not_is_refused() {
    for (arguments, fragments) in [
        (["--figure", "2"], ["--figure", "the figures are 3, 4, 5"]),
        (["--sizes", "29"], ["--sizes", "power of two"]),
        (["--lengths", "0"], ["--lengths", "at least one"]),
        (["--lengths", "-5"], ["--lengths", "digits"]),
        (["--lengths", "20000000"], ["--lengths", "2^24"]),
        (["--scaling", "0"], ["--scaling", "0"]),
        (["--rings", "z65"], ["--rings", "z65"]),
        (["--link", "fast"], ["--link", "RATE,RTT"]),
        (["--runs", "0"], ["--runs", "0"]),
        (["--limit", "0"], ["--limit", "0"]),
        (["--json", "/nowhere/at/all"], ["--json", "/nowhere"]),
    ] {
        let [option, value] = arguments;
        run(&["bench", "dvole", option, value]).assert_refused(2, &fragments);
    }
}
