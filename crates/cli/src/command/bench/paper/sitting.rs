//! The beginning of a sitting.

use volery_bench::results::{Results, Sitting};
use volery_bench::runner::Cell;

use super::super::tell_remarks;
use crate::command::options::Voice;

/// Begins a sitting, and says in what it is unlike the last one. Sittings in which nothing was measured are forgotten.
pub(super) fn sit_down(results: &mut Results, cells: &[Cell], voice: Voice) {
    let samples = results.measurements.iter().flat_map(|one| &one.samples);
    let used = samples
        .map(|sample| sample.sitting.saturating_add(1))
        .max()
        .unwrap_or(0);
    results.sittings.truncate(used);
    let threads = cells.iter().map(|cell| cell.key.threads).max().unwrap_or(1);
    let mut sitting = Sitting::begin(env!("CARGO_PKG_VERSION"), threads);
    if let Some(before) = results.sittings.last() {
        let changes = changes(before, &sitting);
        sitting.remarks.extend(changes);
    }
    tell_remarks(voice, &sitting.remarks);
    results.sittings.push(sitting);
}

/// What keeps figures of the two sittings from being figures of one run.
fn changes(before: &Sitting, now: &Sitting) -> Vec<String> {
    let name = |sitting: &Sitting| {
        let processor = sitting.machine.processor.as_deref();
        processor.unwrap_or("an unnamed processor").to_owned()
    };
    let [there, here] = [name(before), name(now)];
    let mut changes = Vec::new();
    if there != here {
        changes.push(format!(
            "The runs before were made on another processor ({there}, now {here}): medians mix the two."
        ));
    }
    if before.program != now.program {
        changes.push(format!(
            "The runs before were made by another build of this program ({}, now {}): medians mix the two.",
            before.program, now.program
        ));
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_machine_and_another_build_are_told() {
        let before = Sitting::begin("1.0.0", 1);
        assert!(changes(&before, &before).is_empty());
        let mut now = before.clone();
        now.program = "1.0.1 0123".to_owned();
        assert!(changes(&before, &now)[0].contains("now 1.0.1 0123"));
        now.machine.processor = Some("Abacus 2000".to_owned());
        let changes = changes(&before, &now);
        assert!(changes.len() == 2 && changes[0].contains("now Abacus 2000"));
    }
}
