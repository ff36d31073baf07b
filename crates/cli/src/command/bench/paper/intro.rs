//! What stands above all tables: on what, when and how it was measured.

use volery_bench::Machine;
use volery_bench::page::short;
use volery_bench::results::{Results, Sitting};

/// When, on what and how often it was measured, and what figures mean, in paragraphs.
pub(in crate::command::bench) fn intro(results: &Results) -> Vec<String> {
    let sittings = &results.sittings;
    if sittings.is_empty() {
        return vec!["Nothing was measured: all figures follow from parameters.".to_owned()];
    }
    let mut lines = Vec::new();
    for (number, sitting) in sittings.iter().enumerate() {
        let before = number
            .checked_sub(1)
            .and_then(|before| sittings.get(before));
        let mut line = when(sitting);
        if before.is_none_or(|before| machine(&before.machine) != machine(&sitting.machine)) {
            line = format!("{line} Machine: {}.", machine(&sitting.machine));
        }
        lines.push(line);
        lines.push(calibration(&sitting.machine));
    }
    lines.push(figures(results));
    for remark in sittings.iter().flat_map(|sitting| &sitting.remarks) {
        if !lines.contains(remark) {
            lines.push(remark.clone());
        }
    }
    lines
}

fn when(sitting: &Sitting) -> String {
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    format!(
        "Measured from {} on, {} s of runs, by volery {}; load average over a minute {} before and {} after.",
        date(sitting.began),
        short(sitting.seconds),
        sitting.program.trim(),
        load(sitting.load),
        load(sitting.load_after),
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
    let seconds: f64 = results.sittings.iter().map(|sitting| sitting.seconds).sum();
    format!(
        "Figures are medians of {times}, with the least and the greatest beside them; a time is that of the slower party, traffic \
         is both ways. All runs took {} s.",
        short(seconds)
    )
}

/// The minute that many seconds after the beginning of 1970, in UTC: `2026-11-22 14:03 UTC`.
fn date(seconds: u64) -> String {
    let (mut days, rest) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| {
        (year.is_multiple_of(4) && !year.is_multiple_of(100)) || year.is_multiple_of(400)
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    let (hours, minutes) = (rest / 3600, rest / 60 % 60);
    format!(
        "{year}-{month:02}-{:02} {hours:02}:{minutes:02} UTC",
        days + 1
    )
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
            (1_798_761_540, "2026-12-31 23:59 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(date(seconds), text);
        }
    }

    #[test]
    fn all_of_a_sitting_is_said() {
        let mut results = Results::new("test");
        assert_eq!(intro(&results).len(), 1);
        let mut sitting = Sitting::begin("1.2.3", 1);
        sitting.began = 0;
        sitting.load = Some(0.5);
        sitting.load_after = Some(1.25);
        sitting.machine.processor = Some("Abacus 2000".to_owned());
        sitting.machine.cores = 2;
        sitting.machine.nanoseconds_aes_block = 0.5;
        sitting.remarks = vec!["It was night.".to_owned()];
        results.sittings = vec![sitting.clone(), sitting];
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
        assert!(!lines[2].contains("Abacus"), "the machine is said once");
    }
}
