//! Everything that was measured, as one section behind the others.

use super::{Column, Section, Table, Value};
use crate::measurement::Measurement;
use crate::results::Results;

/// One table of all measurements: time, traffic, memory and parameters of each.
#[must_use]
pub fn measurements(results: &Results) -> Section {
    let columns = vec![
        Column::words("protocol"),
        Column::numbers("n", ""),
        Column::words("link"),
        Column::numbers("threads", "a party"),
        Column::numbers("runs", ""),
        Column::numbers("time", "s"),
        Column::numbers("traffic", "bytes"),
        Column::numbers("messages", ""),
        Column::numbers("peak memory", "MiB"),
        Column::numbers("security", "bits"),
        Column::words("parameters"),
    ];
    Section {
        name: "measurements".to_owned(),
        title: "All measurements".to_owned(),
        ours: vec![
            "Time is that of the slower party over all phases; traffic and messages are of both parties, a message is all that goes \
             one way before something comes back. Peak memory is that of the process with both parties, with what its allocator kept \
             from the runs before. The samples with their phases are in the file of results."
                .to_owned(),
        ],
        tables: vec![Table {
            caption: "Each cell once, whatever tables show it".to_owned(),
            columns,
            rows: results.measurements.iter().map(row).collect(),
            notes: Vec::new(),
        }],
        ..Section::default()
    }
}

fn row(measurement: &Measurement) -> Vec<Value> {
    let Measurement {
        key,
        plan,
        security_bits,
        samples,
        ..
    } = measurement;
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    vec![
        Value::text(&key.protocol),
        Value::text(key.n.to_string()),
        Value::text(key.link.to_string()),
        Value::text(key.threads.to_string()),
        Value::text(samples.len().to_string()),
        Value::of(Some(measurement), None, |sample| Some(sample.seconds())),
        Value::measured(
            measurement.spread(|sample| Some(sample.bytes() as f64)),
            None,
        ),
        Value::measured(
            measurement.spread(|sample| Some(sample.messages() as f64)),
            None,
        ),
        Value::measured(
            measurement.spread(|sample| sample.peak_bytes.map(mebibytes)),
            None,
        ),
        security_bits.map_or(Value::None, |bits| Value::text(bits.to_string())),
        plan.as_ref().map_or(Value::None, Value::text),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Link;
    use crate::measurement::{Key, Phase, Sample};

    #[test]
    fn every_measurement_has_a_row() {
        let mut results = Results::new("test");
        let measurement = |protocol: &str, samples, skipped_seconds| Measurement {
            key: Key {
                protocol: protocol.to_owned(),
                n: 1 << 20,
                link: Link::Loopback,
                threads: 2,
            },
            plan: Some("b11".to_owned()),
            security_bits: Some(128),
            skipped_seconds,
            samples,
        };
        let sample = Sample {
            phases: vec![Phase {
                name: "all".to_owned(),
                outputs: 5,
                seconds: 0.5,
                bytes: 77,
                messages: 3,
            }],
            peak_bytes: Some(3 << 20),
            ..Sample::default()
        };
        results.measurements = vec![
            measurement("cot", vec![sample.clone(), sample], None),
            measurement("vole", Vec::new(), Some(40.0)),
        ];
        let section = measurements(&results);
        let table = &section.tables[0];
        assert!(
            table
                .rows
                .iter()
                .all(|row| row.len() == table.columns.len())
        );
        let numbers: Vec<_> = table.rows[0].iter().map(Value::number).collect();
        assert_eq!(numbers[5..9], [Some(0.5), Some(77.0), Some(3.0), Some(3.0)]);
        assert_eq!(table.rows[1][5], Value::Skipped { seconds: 40.0 });
        assert_eq!(table.rows[1][6], Value::None);
    }
}
