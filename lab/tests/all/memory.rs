//! The program restarts itself once with an allocator that keeps memory, unless told not to.
#![cfg(target_os = "linux")]

use std::fs;

use serde_json::Value;

use crate::common::program;

#[test]
fn the_program_keeps_its_memory_unless_told_not_to() {
    let keeps = |allocator: Option<&str>| {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("run.json");
        let mut command = program(&["run", "cot", "--n", "1000", "--runs", "1", "-q", "--json"]);
        command.arg(&file);
        for name in ["MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_ARENA_MAX"] {
            command.env_remove(name);
        }
        if let Some(allocator) = allocator {
            command.env("VOLERY_BENCH_ALLOCATOR", allocator);
        }
        assert!(command.status().unwrap().success());
        let results: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        results["sittings"][0]["machine"]["keeps_memory"] == true
    };
    assert!(keeps(None) && !keeps(Some("system")));
}
