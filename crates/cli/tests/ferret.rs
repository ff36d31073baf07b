//! `volery bench ferret`: every row is there, and the figures are those of the file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{run, text};

/// Protocols of the table, security and name, in order; and how many figures each has over one link.
const ROWS: [(u64, usize, &[&str]); 4] = [
    (1, 2, &["KOS15", "BCG+19a", "Ferret-Reg", "Ferret-Uni"]),
    (
        3,
        2,
        &[
            "ALSZ13",
            "BCG+19a",
            "Ferret-Uni",
            "Ferret-Reg",
            "KOS15",
            "BCG+19a",
            "Ferret-Uni",
            "Ferret-Reg",
        ],
    ),
    (
        4,
        2,
        &[
            "ALSZ13",
            "Ferret-Uni",
            "Ferret-Reg",
            "KOS15",
            "Ferret-Uni",
            "Ferret-Reg",
        ],
    ),
    (
        5,
        1,
        &["Ferret-Reg", "Ferret-Reg", "Ferret-Reg", "Ferret-Uni"],
    ),
];

#[test]
fn all_rows_over_one_link() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ferret.json");
    let finished = run(&[
        "bench",
        "ferret",
        "--n",
        "1000",
        "--links",
        "100Mbit",
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

    let tables = result["tables"].as_array().unwrap();
    assert_eq!(tables.len(), ROWS.len());
    for (table, (number, figures, protocols)) in tables.iter().zip(ROWS) {
        assert_eq!(table["table"], number);
        let rows = table["rows"].as_array().unwrap();
        let expected: Vec<_> = protocols
            .iter()
            .flat_map(|protocol| vec![*protocol; figures])
            .collect();
        let found: Vec<_> = rows
            .iter()
            .map(|row| row["protocol"].as_str().unwrap())
            .collect();
        assert_eq!(found, expected, "table {number}");
        for row in rows {
            let [here, volery] = ["here", "volery"].map(|column| row[column].is_object());
            let protocol = row["protocol"].as_str().unwrap();
            assert_eq!(here, protocol != "BCG+19a", "{row}");
            assert_eq!(volery, protocol.starts_with("Ferret"), "{row}");
            if let (Some(published), Some(ratio)) =
                (row["published"].as_f64(), row["here"]["ratio"].as_f64())
            {
                let median = row["here"]["median"].as_f64().unwrap();
                assert!((ratio - median / published).abs() <= 1e-9 * ratio, "{row}");
            }
        }
        let heading = format!("Table {number} (section ");
        assert!(finished.stdout.contains(&heading), "{}", finished.stdout);
    }

    // The paper's own bits, which do not depend on the machine: an OT has 257 bits, of which 1 goes the other way.
    let bits = |row: usize| tables[0]["rows"][row]["here"]["median"].as_f64().unwrap();
    assert!((bits(4) - 0.44).abs() < 0.02 && (bits(6) - 0.73).abs() < 0.08);
    let measured = result["measurements"].as_array().unwrap();
    assert_eq!(measured.len(), 10, "two baselines, two columns of four");
    let weakest = measured
        .iter()
        .filter_map(|one| one["security_bits"].as_u64())
        .min();
    assert_eq!(weakest, Some(122), "the paper's setup set, and labelled so");
    assert!(finished.stdout.contains("122 bits"), "{}", finished.stdout);
}

#[test]
fn what_there_is_not_is_refused() {
    for (arguments, fragments) in [
        (["--tables", "2"], ["--tables", "the tables are 1, 3, 4, 5"]),
        (["--links", "20Mbit"], ["--links", "20Mbit"]),
        (["--runs", "0"], ["--runs", "0"]),
        (["--n", "0"], ["--n", "at least one"]),
        (["--n", "-5"], ["--n", "digits"]),
        (["--limit", "0"], ["--limit", "0"]),
        (["--json", "/nowhere/at/all"], ["--json", "/nowhere"]),
    ] {
        let [option, value] = arguments;
        run(&["bench", "ferret", option, value]).assert_refused(2, &fragments);
    }
}
