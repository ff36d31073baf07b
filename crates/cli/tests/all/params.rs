//! `volery params`: estimates, searches and refusals; the documentation page must show the
//! estimator's numbers.

use std::path::{Path, PathBuf};

use crate::common::{run, text, words};
use serde_json::Value;
use volery_pcg::lpn::estimate::{Estimate, Field, estimate, security_bits};
use volery_pcg::lpn::{set_named, sets};

/// Runs an estimate; returns its output and the `result` of its report.
fn estimated(arguments: &[&str]) -> (String, Value) {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("report.json");
    let finished = run(&[&["params", "estimate", "--report", text(&file)], arguments].concat());
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(report["command"], "params");
    // One line if there is a search, and nothing else.
    let bits = &report["result"]["wanted_bits"];
    let said = match report["result"]["search"].as_str().unwrap() {
        "none" => String::new(),
        search => format!("volery: searching the {search} for {bits} bits\n"),
    };
    assert_eq!(finished.stderr, said);
    (finished.stdout, report["result"].clone())
}

/// The decimal digits of a report are read back exactly but for the last bit.
fn close(found: &Value, bits: f64) -> bool {
    found.as_f64().is_some_and(|found| (found - bits).abs() < 1e-9)
}

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

#[test]
fn a_set_is_estimated_in_each_of_its_rings() {
    let (stdout, result) = estimated(&["--set", "b12"]);
    let instances = result["instances"].as_array().unwrap();
    assert_eq!(result["set"], "b12");
    assert_eq!(result["search"], "none");
    assert_eq!(result["wanted_bits"], 128);
    let set = set_named("b12").unwrap();
    assert_eq!(instances.len(), set.fields.len());
    for (found, field) in instances.iter().zip(set.fields) {
        let Estimate { attack, bits } = security_bits(&set.instance(*field));
        assert_eq!(found["field"], field.to_string());
        assert!(close(&found["bits"], bits), "{found}");
        assert_eq!(found["attack"], attack);
        assert_eq!(found["holds"], true);
        assert_eq!((&found["block"], &found["left_over"]), (&2048.into(), &0.into()));
        assert_eq!(found["round"]["trees"], set.t);
        let attacks = found["attacks"].as_array().unwrap();
        let all = estimate(&set.instance(*field));
        assert_eq!(attacks.len(), all.len());
        for Estimate { attack, bits } in all {
            let named = attacks.iter().find(|found| found["attack"] == attack);
            assert!(close(&named.unwrap()["bits"], bits), "{found}");
            assert!(stdout.contains(&format!("{bits:.1}")), "{stdout}");
        }
        assert!(stdout.contains(&format!("holds 128 bits: {bits:.1} bits, by {attack}")));
    }
}

/// Instances that fall short, one of them by the attack of linear algebra, and one without any
/// information for an attack, as every sample is noisy.
#[test]
fn what_an_instance_holds_is_said() {
    for (call, said, holds) in [
        (
            "--n 16_384 --k 3482 --t 192 --field z64-uniform --noise regular --bits 80",
            ["blocks of 85 samples; the 64 left over", "falls short of 80 bits: 41."],
            false,
        ),
        (
            "--set b12 --field gf128-binary",
            ["gf128-binary", "falls short of 128 bits: 50.4 bits, by interleaved Gauss"],
            false,
        ),
        (
            "--n 100 --k 50 --t 100 --field gf128 --noise uniform",
            ["does not work", "holds 128 bits: no attack works"],
            true,
        ),
    ] {
        let (stdout, result) = estimated(&words(call));
        assert!(said.iter().all(|said| stdout.contains(said)), "{stdout}");
        let found = &result["instances"][0];
        assert_eq!((&found["holds"], found["attack"].is_null()), (&holds.into(), holds));
    }
}

#[test]
fn the_smallest_weight_and_the_least_traffic_are_searched() {
    let ring = ["--field", "f2", "--noise", "uniform"];
    let (stdout, result) = estimated(&[&["--n", "16384", "--k", "4096"], &ring[..]].concat());
    assert_eq!(result["search"], "smallest t");
    assert!(stdout.contains("(smallest t for 128 bits)"), "{stdout}");
    let found = &result["instances"][0];
    let t = found["t"].as_u64().unwrap();
    assert!((417..=421).contains(&t) && found["holds"] == true, "{found}");
    let lighter = (t - 1).to_string();
    let numbers = ["--n", "16384", "--k", "4096", "--t", &lighter];
    let (_, result) = estimated(&[&numbers[..], &ring].concat());
    assert_eq!(result["instances"][0]["holds"], false);

    let ring = ["--field", "f2", "--noise", "regular", "--bits", "100"];
    let (_, result) = estimated(&[&["--n", "262144"], &ring[..]].concat());
    assert_eq!(result["search"], "least traffic");
    assert!(result["instances"][0]["bits"].as_f64().unwrap() >= 100.0);
}

#[test]
fn what_the_list_says_is_what_the_sets_hold() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("report.json");
    let finished = run(&["params", "list", "--report", text(&file)]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    let report: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let listed = report["result"]["sets"].as_array().unwrap();
    assert_eq!(listed.len(), sets().len());
    for (found, set) in listed.iter().zip(sets()) {
        assert_eq!(found["name"], set.name);
        assert_eq!(found["claimed_bits"], set.claim);
        assert_eq!(found["computed_bits"], set.weakest().bits);
        assert_eq!(found["attack"], set.weakest().attack);
        assert_eq!(found["levels"].as_array().unwrap().len(), set.fields.len());
        let binary = set.with_binary_code().map(|level| level.bits);
        assert_eq!(found["gf128_with_binary_code"]["bits"].as_f64(), binary);
        let mut rows = finished.stdout.lines().map(str::split_whitespace);
        let row = rows.find(|row| row.clone().next() == Some(set.name));
        let shown = binary.map_or("-".to_owned(), |bits| format!("{bits:.1}"));
        let row: Vec<_> = row.unwrap().collect();
        let numbers = [set.n, set.k, set.t].map(|number| number.to_string());
        let bits = format!("{:.1}", set.weakest().bits);
        for word in numbers.iter().chain([&bits, &shown]).map(String::as_str) {
            assert!(row.contains(&word), "{word}: {row:?}");
        }
        assert!(row.join(" ").contains(set.weakest().attack), "{row:?}");
        assert_eq!(row.contains(&"paper"), set.paper, "{row:?}");
    }
}

/// The cells of the rows of a page's table whose header starts with `first`.
fn rows<'a>(page: &'a str, first: &str) -> Vec<Vec<&'a str>> {
    let header = format!("| {first} |");
    let lines = page.lines().skip_while(|line| !line.starts_with(&header));
    lines
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect()
}

#[test]
fn the_page_says_what_the_estimator_says() {
    let page = std::fs::read_to_string(docs("security-levels.md")).unwrap();
    let bits = |name: &str, field| {
        let set = set_named(name).unwrap();
        format!("{:.1}", security_bits(&set.instance(field)).bits)
    };

    let table = rows(&page, "set | n");
    assert_eq!(table.len(), sets().len());
    for (cells, set) in table.iter().zip(sets()) {
        let numbers = [set.n, set.k, set.t].map(|number| number.to_string());
        assert_eq!(cells[0], set.name);
        assert_eq!(cells[1..4], numbers);
        assert_eq!(cells[4], set.noise.to_string());
        assert_eq!(cells[5], bits(set.name, Field::F2));
        if set.holds_over(Field::Fp61) {
            assert_eq!(cells[6], bits(set.name, Field::Fp61));
            assert_eq!(cells[6], bits(set.name, Field::Gf128));
            assert_eq!(cells[7], bits(set.name, Field::Gf128Binary));
        } else {
            assert_eq!(cells[6..], ["-", "-"], "{}", set.name);
        }
    }

    let table = rows(&page, "attack");
    let all = estimate(&set_named("b12").unwrap().instance(Field::F2));
    assert_eq!(table.len(), all.len());
    for cells in &table {
        let found = all.iter().find(|found| found.attack == cells[0]).unwrap();
        assert_eq!(cells[1], format!("{:.1}", found.bits), "{}", cells[0]);
    }
    let least = format!("cheapest of these attacks: {} bits", table[0][1]);
    assert!(page.contains(&least));

    let table = rows(&page, "set | odd changes");
    assert_eq!(table.len(), 2);
    for cells in table {
        assert_eq!(cells[1], bits(cells[0], Field::Z64Odd));
        assert_eq!(cells[2], bits(cells[0], Field::Z64Uniform));
    }
}
