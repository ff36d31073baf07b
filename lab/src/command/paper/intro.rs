//! The paragraphs above all tables: machine, time and method of the measurements.

use chrono::DateTime;

use crate::Machine;
use crate::page::short;
use crate::results::{BenchmarkSession, Results};

/// Time, machine and method of the measurements, and the meaning of the figures, in paragraphs.
pub(super) fn intro(results: &Results) -> Vec<String> {
    let sittings = &results.sittings;
    if sittings.is_empty() {
        return vec!["Nothing was measured: all figures are computed from parameters.".to_owned()];
    }
    let mut lines = Vec::new();
    let mut described = None;
    for session in sittings {
        let machine = machine(&session.machine);
        let mut line = when(session);
        if described.as_ref() != Some(&machine) {
            line += &format!(" Machine: {machine}.");
            described = Some(machine);
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
    match mixed(results) {
        0 => {}
        mixed => lines.push(format!(
            "Measurements with runs by another build or on another machine than their others: \
             {mixed}; their medians mix them."
        )),
    }
    lines
}

fn when(session: &BenchmarkSession) -> String {
    let date = i64::try_from(session.began).ok().and_then(|s| DateTime::from_timestamp(s, 0));
    let date = date.map_or_else(
        || "an unknown time".to_owned(),
        |date| date.format("%Y-%m-%d %H:%M UTC").to_string(),
    );
    let load = |load: Option<f64>| load.map_or("unknown".to_owned(), |load| format!("{load:.2}"));
    format!(
        "Measured from {date} on, {} s of runs, by volery {}; load average over a minute {} before \
         and {} after.",
        short(session.seconds),
        session.program.trim(),
        load(session.load),
        load(session.load_after),
    )
}

fn machine(machine: &Machine) -> String {
    let plural = if machine.cores == 1 { "" } else { "s" };
    let memory = machine
        .memory_bytes
        .map(|bytes| format!(", {} GiB of memory", short(bytes as f64 / f64::from(1 << 30))));
    format!(
        "{}, {} core{plural} for both parties{}, {}, instructions {}",
        machine.processor.as_deref().unwrap_or("an unnamed processor"),
        machine.cores,
        memory.unwrap_or_default(),
        machine.system,
        machine.cpu,
    )
}

fn calibration(machine: &Machine) -> String {
    let each = |nanoseconds: f64, what: &str| {
        let millions = short(1e3 / nanoseconds);
        format!("{millions} million {what} a second ({} ns each)", short(nanoseconds))
    };
    format!(
        "One thread of it, in the same session: {}, {}, {}, {}, {} GB copied a second ({} ns a \
         byte).",
        each(machine.nanoseconds_aes_block, "AES blocks"),
        each(machine.nanoseconds_ot_hash, "OT hashes"),
        each(machine.nanoseconds_random_read, "random 16-byte reads from 2 MiB"),
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
    format!(
        "Figures are medians of {times}, with the least and the greatest beside them; a time is \
         that of the slower party, traffic is both ways."
    )
}

/// The number of measurements with runs of sessions that differ.
fn mixed(results: &Results) -> usize {
    let measurements = results.measurements.iter();
    let mixes = measurements.filter(|one| {
        let mut sessions = one.samples.iter().filter_map(|run| results.sittings.get(run.sitting));
        let first = sessions.next();
        first.is_some_and(|first| sessions.any(|other| !other.changes_from(first).is_empty()))
    });
    mixes.count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use crate::measurement::{Key, Measurement, Sample};

    #[test]
    fn the_paragraphs_describe_the_sessions() {
        let mut results = Results::new("test");
        assert_eq!(intro(&results).len(), 1);
        let mut session = BenchmarkSession::example();
        session.began = 951_868_799;
        session.machine.processor = Some("Abacus 2000".to_owned());
        session.remarks = vec!["It was night.".to_owned()];
        let mut other = session.clone();
        other.machine.cores = 77;
        results.sittings = vec![session.clone(), session, other];
        for (n, sittings) in (1..).zip([[0, 0], [0, 1], [2, 2], [1, 2]]) {
            let sample = |sitting| Sample { sitting, ..Sample::default() };
            results.measurements.push(Measurement {
                key: Key { protocol: "cot".to_owned(), n, link: Link::Loopback, threads: 1 },
                plan: None,
                security_bits: None,
                skipped_seconds: None,
                samples: sittings.map(sample).to_vec(),
            });
        }
        let text = intro(&results).join("\n");
        for fragment in [
            "2000-02-29 23:59 UTC",
            "Abacus 2000, 2 cores for both parties",
            "77 cores",
            "2000 million AES blocks a second (0.500 ns each)",
            "medians of 2 runs",
            "than their others: 1;",
        ] {
            assert!(text.contains(fragment), "{fragment}: {text}");
        }
        // A remark and a machine are told once.
        assert_eq!(text.matches("It was night.").count(), 1);
        assert_eq!(text.matches("Abacus").count(), 2);
    }
}
