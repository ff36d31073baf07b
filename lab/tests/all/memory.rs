//! Times without the system's search for memory: in a process of its own, which keeps its memory.
#![cfg(target_os = "linux")]

use std::env;
use std::hint::black_box;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volery_bench::measurement::{Key, Phase, Sample};
use volery_bench::memory::{self, KEPT};
use volery_bench::results::{BenchmarkSession, Results};
use volery_bench::runner::{self, Cell, Forecast, Observer, Settings};
use volery_bench::{Link, Result};

use crate::common::program;

struct Silent;

impl Observer for Silent {
    fn begin(&mut self, _: &Cell, _: [usize; 2]) {}
    fn done(&mut self, _: &Cell, _: &Sample) {}
    fn skipped(&mut self, _: &Cell, _: f64) {}
    fn keep(&mut self, _: &Results) -> Result<()> {
        Ok(())
    }
}

/// A run that holds this many bytes, and reports in its outputs the number of runs before it.
fn holding(name: &str, bytes: usize, runs: &Arc<AtomicU64>) -> Cell {
    let runs = Arc::clone(runs);
    Cell {
        key: Key {
            protocol: name.to_owned(),
            n: 1,
            link: Link::Loopback,
            threads: 1,
        },
        plan: None,
        security_bits: None,
        forecast: Forecast {
            seconds: 0.0,
            bytes: 0.0,
            round_trips: 0.0,
            work: 1.0,
        },
        run: Box::new(move || {
            drop(black_box(vec![1_u8; bytes]));
            Ok(Sample {
                phases: vec![Phase {
                    name: "all".to_owned(),
                    outputs: runs.fetch_add(1, Ordering::Relaxed),
                    seconds: 0.0,
                    bytes: 0,
                    messages: 0,
                }],
                ..Sample::default()
            })
        }),
    }
}

/// The first run that takes fresh memory does not count, and no later run is repeated.
#[test]
fn a_run_that_fetches_memory_does_not_count() {
    if !memory::is_kept() {
        let name = "memory::a_run_that_fetches_memory_does_not_count";
        let again = Command::new(env::current_exe().unwrap())
            .args([name, "--exact"])
            .envs(KEPT)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&again.stdout);
        assert!(
            again.status.success() && said.contains("1 passed"),
            "{said}"
        );
        return;
    }
    let runs = Arc::default();
    let cells = [
        holding("much", 500 << 20, &runs),
        holding("little", 1 << 20, &runs),
    ];
    let mut results = Results::new("test");
    results.sittings.push(BenchmarkSession::begin("test", 1));
    assert!(results.sittings[0].machine.keeps_memory);
    let settings = Settings {
        runs: 3,
        limit: 1e9,
    };
    runner::run(&cells, &mut results, settings, &mut Silent).expect("nothing fails");
    let samples = |cell: usize| &results.find(&cells[cell].key).expect("it was run").samples;
    let numbers = |cell| samples(cell).iter().map(|sample| sample.phases[0].outputs);
    assert!(numbers(0).eq([1, 3, 5]), "{results:?}");
    assert!(numbers(1).eq([2, 4, 6]), "{results:?}");
    let peaks = samples(0).iter().map(|sample| sample.peak_bytes);
    assert!(
        peaks.into_iter().all(|peak| peak > Some(500 << 20)),
        "{results:?}"
    );
}

/// The program restarts itself once with these settings, unless told not to.
#[test]
fn the_program_keeps_its_memory_unless_told_not_to() {
    let keeps = |allocator: Option<&str>| {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("run.json");
        let mut command = program(&["run", "cot", "--n", "1000", "--runs", "1", "-q", "--json"]);
        command.arg(&file);
        for (name, _) in KEPT {
            command.env_remove(name);
        }
        if let Some(allocator) = allocator {
            command.env(memory::ALLOCATOR, allocator);
        }
        assert!(command.status().unwrap().success());
        Results::load(&file).unwrap().sittings[0]
            .machine
            .keeps_memory
    };
    assert!(keeps(None) && keeps(Some("kept")) && !keeps(Some("system")));
}
