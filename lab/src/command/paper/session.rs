//! The beginning of a benchmark session.

use crate::measurement::Sample;
use crate::results::{BenchmarkSession, Results};
use crate::runner::Cell;

use super::super::tell_remarks;
use crate::command::options::Reporter;

/// Begins a session, and reports how it differs from the last one. Sessions without measurements
/// are dropped.
pub(super) fn sit_down(results: &mut Results, cells: &[Cell], reporter: Reporter) {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let used = samples
        .map(|sample| sample.sitting.saturating_add(1))
        .max()
        .unwrap_or(0);
    results.sittings.truncate(used);
    let threads = cells.iter().map(|cell| cell.key.threads).max().unwrap_or(1);
    let mut sitting = BenchmarkSession::begin(env!("CARGO_PKG_VERSION"), threads);
    if let Some(before) = results.sittings.last() {
        let changes = changes(before, &sitting);
        sitting.remarks.extend(changes);
    }
    tell_remarks(reporter, &sitting.remarks);
    results.sittings.push(sitting);
}

/// The differences between two sessions.
fn changes(before: &BenchmarkSession, now: &BenchmarkSession) -> Vec<String> {
    let name = |sitting: &BenchmarkSession| {
        let processor = sitting.machine.processor.as_deref();
        processor.unwrap_or("an unnamed processor").to_owned()
    };
    let mut changes = Vec::new();
    for (what, [there, here]) in [
        ("on another processor", [before, now].map(name)),
        (
            "on another number of cores",
            [before, now].map(|sitting| sitting.machine.cores.to_string()),
        ),
        (
            "with another set of instructions",
            [before, now].map(|sitting| sitting.machine.cpu.clone()),
        ),
        (
            "by another build of this program",
            [before, now].map(|sitting| sitting.program.clone()),
        ),
    ] {
        if there != here {
            changes.push(format!(
                "Runs of the previous session were made {what} ({}, now {}).",
                there.trim(),
                here.trim()
            ));
        }
    }
    changes
}

/// The number of measurements with runs of sessions that differ.
pub(super) fn mixed(results: &Results) -> usize {
    let mixes = |samples: &[Sample]| {
        let mut sittings = samples
            .iter()
            .filter_map(|sample| results.sittings.get(sample.sitting));
        let first = sittings.next();
        first.is_some_and(|first| sittings.any(|other| !changes(first, other).is_empty()))
    };
    let measurements = results.measurements.iter();
    measurements.filter(|one| mixes(&one.samples)).count()
}

#[cfg(test)]
mod tests {
    use crate::Link;
    use crate::measurement::{Key, Measurement};

    use super::*;

    #[test]
    fn another_machine_and_another_build_are_told() {
        let before = BenchmarkSession::begin("1.0.0", 1);
        assert!(changes(&before, &before).is_empty());
        let mut now = before.clone();
        now.program = "1.0.1 0123".to_owned();
        assert!(changes(&before, &now)[0].contains("now 1.0.1 0123"));
        now.machine.processor = Some("Abacus 2000".to_owned());
        now.machine.cores += 1;
        now.machine.cpu = "beads".to_owned();
        let changes = changes(&before, &now);
        assert_eq!(changes.len(), 4, "{changes:?}");
        assert!(changes[0].contains("now Abacus 2000"));
        assert!(changes[1].contains("cores") && changes[2].contains("now beads"));
    }

    #[test]
    fn medians_of_both_are_counted() {
        let mut results = Results::new("test");
        let before = BenchmarkSession::begin("1.0.0", 1);
        let mut now = before.clone();
        now.machine.cores += 1;
        results.sittings = vec![before.clone(), before, now];
        for (n, sittings) in (1..).zip([[0, 0], [0, 1], [2, 2], [1, 2]]) {
            results.measurements.push(Measurement {
                key: Key {
                    protocol: "cot".to_owned(),
                    n,
                    link: Link::Loopback,
                    threads: 1,
                },
                plan: None,
                security_bits: None,
                skipped_seconds: None,
                samples: sittings
                    .map(|sitting| Sample {
                        sitting,
                        ..Sample::default()
                    })
                    .to_vec(),
            });
        }
        assert_eq!(mixed(&results), 1);
    }
}
