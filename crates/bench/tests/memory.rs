//! Times without the system's search for memory: in a process of its own, whose memory nothing else
//! takes.
#![cfg(target_os = "linux")]

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use volery_bench::measurement::{Key, Phase, Sample};
use volery_bench::results::{Results, Sitting};
use volery_bench::runner::{self, Cell, Forecast, Observer, Settings};
use volery_bench::{Link, Result};

struct Silent;

impl Observer for Silent {
    fn begin(&mut self, _: &Cell, _: [usize; 2]) {}
    fn done(&mut self, _: &Cell, _: &Sample) {}
    fn skipped(&mut self, _: &Cell, _: f64) {}
    fn keep(&mut self, _: &Results) -> Result<()> {
        Ok(())
    }
}

/// A run that holds so many bytes, and says in its outputs how many runs there were before it.
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

/// The first run that takes much more memory than was touched before does not count, and none after
/// it is made again; what was held is told of each run by itself.
#[test]
fn a_run_that_fetches_memory_does_not_count() {
    const MUCH: u64 = 500 << 20;
    let runs = Arc::default();
    let cells = [
        holding("much", usize::try_from(MUCH).expect("it fits"), &runs),
        holding("little", 1 << 20, &runs),
    ];
    let mut results = Results::new("test");
    results.sittings.push(Sitting::begin("test", 1));
    let settings = Settings {
        runs: 3,
        limit: 1e9,
    };
    runner::run(&cells, &mut results, settings, &mut Silent).expect("nothing fails");
    let samples = |cell: usize| &results.find(&cells[cell].key).expect("it was run").samples;
    let numbers = |cell| samples(cell).iter().map(|sample| sample.phases[0].outputs);
    assert!(numbers(0).eq([1, 3, 5]), "{results:?}");
    assert!(numbers(1).eq([2, 4, 6]), "{results:?}");
    for (cell, is_much) in [(0, true), (1, false)] {
        for sample in samples(cell) {
            let peak = sample.peak_bytes.expect("Linux tells");
            assert_eq!(peak > MUCH, is_much, "{sample:?}");
        }
    }
}
