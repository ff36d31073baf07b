//! The paragraphs above all tables: machine, time and method of the measurements.

use crate::Machine;
use crate::page::short;
use crate::results::{BenchmarkSession, Results};

use super::session::mixed;

/// Time, machine and method of the measurements, and the meaning of the figures, in paragraphs.
fn intro(results: &Results) -> Vec<String> {
    let sittings = &results.sittings;
    if sittings.is_empty() {
        return vec!["Nothing was measured: all figures are computed from parameters.".to_owned()];
    }
    let mut lines = Vec::new();
    for (number, session) in sittings.iter().enumerate() {
        let before = number
            .checked_sub(1)
            .and_then(|before| sittings.get(before));
        let mut line = when(session);
        if before.is_none_or(|before| machine(&before.machine) != machine(&session.machine)) {
            line = format!("{line} Machine: {}.", machine(&session.machine));
        }
        lines.push(line);
        lines.push(calibration(&session.machine));
    }
    lines.push(figures(results));
    for remark in sittings.iter().flat_map(|session| &session.remarks) {
        if !lines.contains(remark) {
            lines.push(remark.clone());
        }
    }
    lines
}

/// The same for pages with sentences about findings.
pub(super) fn intro_of_papers(results: &Results) -> Vec<String> {
    let mut lines = intro(results);
    if results.sittings.is_empty() {
        return lines;
    }
    lines.push(
        "In sentences, faster and slower mean by more than 5 % and beyond the range of the runs."
            .to_owned(),
    );
    match mixed(results) {
        0 => {}
        1 => lines.push(
            "Of one measurement some runs were made by another build or on another machine than others: its medians mix them."
                .to_owned(),
        ),
        mixed => lines.push(format!(
            "Of {mixed} measurements some runs were made by another build or on another machine than others: their medians mix them."
        )),
    }
    lines
}

fn when(session: &BenchmarkSession) -> String {
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    format!(
        "Measured from {} on, {} s of runs, by volery {}; load average over a minute {} before and {} after.",
        date(session.began),
        short(session.seconds),
        session.program.trim(),
        load(session.load),
        load(session.load_after),
    )
}

fn machine(machine: &Machine) -> String {
    let plural = if machine.cores == 1 { "" } else { "s" };
    let memory = machine.memory_bytes.map(|bytes| {
        let gibibytes = bytes as f64 / f64::from(1 << 30);
        format!(", {} GiB of memory", short(gibibytes))
    });
    format!(
        "{}, {} core{plural} for both parties{}, {}, instructions {}",
        machine
            .processor
            .as_deref()
            .unwrap_or("an unnamed processor"),
        machine.cores,
        memory.unwrap_or_default(),
        machine.system,
        machine.cpu,
    )
}

fn calibration(machine: &Machine) -> String {
    let each = |nanoseconds: f64, what: &str| {
        let millions = short(1e3 / nanoseconds);
        format!(
            "{millions} million {what} a second ({} ns each)",
            short(nanoseconds)
        )
    };
    format!(
        "One thread of it, in the same sitting: {}, {}, {}, {}, {} GB copied a second ({} ns a byte).",
        each(machine.nanoseconds_aes_block, "AES blocks"),
        each(machine.nanoseconds_ot_hash, "OT hashes"),
        each(
            machine.nanoseconds_random_read,
            "random 16-byte reads from 2 MiB"
        ),
        each(machine.nanoseconds_random_read_9_mib, "from 9 MiB"),
        short(1.0 / machine.nanoseconds_copied_byte),
        short(machine.nanoseconds_copied_byte),
    )
}

fn figures(results: &Results) -> String {
    let runs = results.measurements.iter().map(|one| one.samples.len());
    let runs = runs.filter(|runs| *runs > 0);
    let times = match (runs.clone().min(), runs.max()) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} runs"),
        (Some(1), _) => "1 run".to_owned(),
        (Some(runs), _) => format!("{runs} runs"),
        (None, _) => "no run".to_owned(),
    };
    let seconds: f64 = results.sittings.iter().map(|session| session.seconds).sum();
    format!(
        "Figures are medians of {times}, with the least and the greatest beside them; a time is that of the slower party, traffic \
         is both ways. All runs took {} s.",
        short(seconds)
    )
}

/// The minute at this many seconds after the beginning of 1970, in UTC: `2026-11-22 14:03 UTC`. No
/// loop over the years, since a file can hold any number.
fn date(seconds: u64) -> String {
    const DAYS_OF_400_YEARS: u64 = 146_097;
    // Years counted from March have the leap day at their end.
    let days = seconds / 86_400 + 719_468;
    let (cycle, day) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    // From March on, five months have 153 days, repeatedly.
    let from_march = (5 * day + 2) / 153;
    let day = day - (153 * from_march + 2) / 5 + 1;
    let month = (from_march + 2) % 12 + 1;
    let year = 400 * cycle + year + u64::from(month <= 2);
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{year}-{month:02}-{day:02} {hours:02}:{minutes:02} UTC")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_078_012_800, "2004-02-29 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00 UTC"),
            (1_798_761_540, "2026-12-31 23:59 UTC"),
            (4_107_456_000, "2100-02-28 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
            (u64::MAX, "584554051223-11-09 07:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn the_paragraphs_describe_the_session() {
        let mut results = Results::new("test");
        assert_eq!(intro(&results).len(), 1);
        let mut session = BenchmarkSession::begin("1.2.3", 1);
        session.began = 0;
        session.load = Some(0.5);
        session.load_after = Some(1.25);
        session.machine.processor = Some("Abacus 2000".to_owned());
        session.machine.cores = 2;
        session.machine.nanoseconds_aes_block = 0.5;
        session.remarks = vec!["It was night.".to_owned()];
        results.sittings = vec![session.clone(), session];
        let lines = intro(&results);
        assert_eq!(lines.len(), 6, "{lines:?}");
        for (line, fragment) in [
            (0, "1970-01-01 00:00 UTC"),
            (0, "volery 1.2.3"),
            (0, "0.50 before and 1.25 after"),
            (0, "Abacus 2000, 2 cores for both"),
            (1, "2000 million AES blocks a second (0.500 ns each)"),
            (4, "no run"),
            (5, "It was night."),
        ] {
            assert!(lines[line].contains(fragment), "{fragment}: {lines:?}");
        }
        assert!(
            !lines[2].contains("Abacus"),
            "the machine is described once"
        );
        let papers = intro_of_papers(&results);
        assert_eq!(papers[..6], lines);
        assert!(papers[6].contains("more than 5 %") && papers.len() == 7);
        assert_eq!(intro_of_papers(&Results::new("test")).len(), 1);
    }
}
