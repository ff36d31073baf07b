//! The contents of measurements; durations are not checked.

use std::path::Path;

use serde_json::Value;

use crate::common::{run, text};

/// Every kind of benchmark in one call, which measures the machine once, with every combination of
/// options.
#[test]
fn every_combination_is_measured() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("bench.json");
    let finished = run(&[
        "run",
        "cot",
        "vole-fp61",
        "vole-z64",
        "vole-gf128",
        "--n",
        "100000",
        "--runs",
        "1",
        "--protocol",
        "primal,auto",
        "--security",
        "semi-honest",
        "--json",
        text(&file),
    ]);
    assert_eq!(finished.status, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("Times are the slower party"), "{finished:?}");
    let measurements = measurements(&file);
    let mut expected = Vec::new();
    for name in ["cot", "vole-fp61", "vole-z64", "vole-gf128"] {
        for protocol in ["-primal", ""] {
            expected.push(format!("{name}-semi-honest-regular{protocol}"));
        }
    }
    let names: Vec<_> =
        measurements.iter().map(|one| one["key"]["protocol"].as_str().unwrap()).collect();
    assert_eq!(names, expected);
    for one in &measurements {
        let phases = one["samples"][0]["phases"].as_array().unwrap();
        let of = |place: usize| (&phases[place]["name"], &phases[place]["outputs"]);
        assert_eq!([of(0).0, of(1).0], ["setup", "stream"]);
        assert_eq!(of(1).1, 100_000);
    }
}

fn measurements(file: &Path) -> Vec<Value> {
    let mut results: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    serde_json::from_value(results["measurements"].take()).unwrap()
}

#[test]
fn wrong_calls_are_refused_by_name() {
    for (call, fragment) in [
        ("run", "NAME"),
        ("run nothing", "vole-fp61"),
        ("run vole-fp61 --link wet-string", "--link"),
        ("run vole-z64 --security malicious", "--security"),
        ("run cot --set b10 --protocol low-communication", "--set"),
        ("run cot --set b10,u99 --n 10", "u99"),
        ("run cot --runs 0", "--runs"),
        ("run vole-fp61 --json /proc/volery-json", "--json"),
    ] {
        let arguments: Vec<_> = call.split(' ').collect();
        run(&arguments).assert_refused(2, &[fragment]);
    }
    let help = run(&["run", "--help"]);
    assert!(help.status == Some(0) && !help.stdout.is_empty() && help.stderr.is_empty());
}

/// The program restarts itself once with an allocator that keeps memory, unless told not to.
#[test]
#[cfg(target_os = "linux")]
fn the_program_keeps_its_memory_unless_told_not_to() {
    let keeps = |allocator: Option<&str>| {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("run.json");
        let mut command =
            crate::common::program(&["run", "cot", "--n", "1000", "--runs", "1", "-q", "--json"]);
        command.arg(&file);
        for name in ["MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"] {
            command.env_remove(name);
        }
        if let Some(allocator) = allocator {
            command.env("VOLERY_BENCH_ALLOCATOR", allocator);
        }
        assert!(command.status().unwrap().success());
        let results = std::fs::read(&file).unwrap();
        let results: Value = serde_json::from_slice(&results).unwrap();
        results["sittings"][0]["machine"]["keeps_memory"] == true
    };
    assert!(keeps(None) && !keeps(Some("system")));
}
