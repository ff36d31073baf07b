//! `volery bench kkrt`: every row is there, and the figures are those of the file.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod common;

use common::{run, text};

/// Number of a table, rows that the paper has, rows of those that are of BaRK-OPRF.
const TABLES: [(u64, usize, usize); 5] = [(1, 10, 4), (2, 3, 3), (3, 5, 1), (4, 2, 2), (5, 5, 1)];

#[test]
fn all_rows_of_two_sizes_over_one_link() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("kkrt.json");
    let finished = run(&[
        "bench",
        "kkrt",
        "--sizes",
        "4,8",
        "--settings",
        "lan",
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
    assert_eq!(tables.len(), TABLES.len());
    for (table, (number, count, bark)) in tables.iter().zip(TABLES) {
        assert_eq!(table["table"], number);
        let rows = table["rows"].as_array().unwrap();
        assert_eq!(rows.len(), 2 * count, "table {number}");
        let ours = rows.iter().filter(|row| row["volery"].is_object());
        assert_eq!(ours.count(), 2 * bark, "table {number}");
        for row in rows {
            let here = &row["here"]["figure"];
            assert!(here["median"].as_f64().unwrap() >= 0.0, "{row}");
            // The paper has no sets of sixteen items.
            assert_eq!(row["published"].is_number(), row["log_items"] == 8, "{row}");
            if let (Some(published), Some(ratio)) =
                (row["published"].as_f64(), here["ratio"].as_f64())
            {
                let median = here["median"].as_f64().unwrap();
                assert!((ratio - median / published).abs() <= 1e-9 * ratio, "{row}");
            }
        }
        let heading = format!("Table {number} (section ");
        assert!(finished.stdout.contains(&heading), "{}", finished.stdout);
    }
    let measured = result["measurements"].as_array().unwrap();
    assert_eq!(measured.len(), 12, "six protocols, two sizes");
    for cell in measured {
        let sample = &cell["samples"][0];
        let sent = sample["online_bytes"].as_f64().unwrap();
        let formula = cell["formula_bytes"].as_f64().unwrap();
        // Rounding up to whole blocks of OTs, and what has a fixed length.
        assert!(sent >= formula && sent < formula + 40_000.0, "{cell}");
    }
    // Table 4 is Table 3 in parts.
    let value = |table: usize, quantity: &str| {
        let mut rows = tables[table]["rows"].as_array().unwrap().iter();
        let row = rows.find(|row| {
            row["protocol"] == "BaRK-OPRF" && row["quantity"] == quantity && row["log_items"] == 8
        });
        row.unwrap()["volery"]["figure"]["median"].as_f64().unwrap()
    };
    let parts = value(3, "offline") + value(3, "online");
    assert!((value(2, "total") - parts).abs() < 1e-6);
    assert!(finished.stdout.contains("hybrid, counting whole OTs"));
}

#[test]
fn what_takes_too_long_is_skipped_and_marked() {
    let finished = run(&[
        "bench",
        "kkrt",
        "--tables",
        "3",
        "--sizes",
        "24",
        "--lan",
        "1Mbit,1ms",
        "--settings",
        "lan",
        "--limit",
        "1",
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("skipped"), "{}", finished.stdout);
    // 176 units of 2^20 bytes at a megabit a second.
    assert!(finished.stdout.contains("> 1476 s"), "{}", finished.stdout);
}

#[test]
fn what_there_is_not_is_refused() {
    for (arguments, fragments) in [
        (
            ["--tables", "6"],
            ["--tables", "the tables are 1, 2, 3, 4, 5"],
        ),
        (["--sizes", "27"], ["--sizes", "power of two"]),
        (["--settings", "moon"], ["--settings", "moon"]),
        (["--lan", "fast"], ["--lan", "RATE,RTT"]),
        (["--runs", "0"], ["--runs", "0"]),
        (["--limit", "0"], ["--limit", "0"]),
        (["--json", "/nowhere/at/all"], ["--json", "/nowhere"]),
    ] {
        let [option, value] = arguments;
        run(&["bench", "kkrt", option, value]).assert_refused(2, &fragments);
    }
}
