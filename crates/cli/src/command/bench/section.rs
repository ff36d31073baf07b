//! The rows of `bench run` as a section of a page.

use volery_bench::page::{Column, Section, Table, Value};

use super::row::Row;
use crate::command::parts::Parts;

/// The measurements, and the parts of each.
pub(super) fn section(rows: &[Row]) -> Section {
    let parts = rows.iter().filter_map(|row| {
        let parts = row.parts.as_ref()?;
        Some(parts_table(row, parts))
    });
    let tables = std::iter::once(table(rows)).chain(parts).collect();
    Section {
        name: "bench-run".to_owned(),
        title: "Correlations from nothing".to_owned(),
        ours: vec![
            "both parties in one process, each with its threads, TCP between them; times are the slower party's, of the median run"
                .to_owned(),
        ],
        tables,
        ..Section::default()
    }
}

fn table(rows: &[Row]) -> Table {
    let columns = vec![
        Column::words("name"),
        Column::numbers("n", ""),
        Column::words("link"),
        Column::numbers("threads", "a party"),
        Column::words("security"),
        Column::words("noise"),
        Column::words("parameters"),
        Column::numbers("setup", "ms"),
        Column::numbers("extend", "s"),
        Column::numbers("total", "s"),
        Column::numbers("time", "ns each"),
        Column::numbers("traffic", "bits each"),
        Column::numbers("time", "AES blocks each"),
        Column::numbers("time", "random reads each"),
    ];
    let line = |row: &Row| {
        let [setup, extend, total] = row.seconds();
        vec![
            Value::text(row.name),
            number(row.n as f64),
            Value::text(&row.link),
            number(row.threads as f64),
            Value::text(&row.security),
            Value::text(&row.noise),
            Value::text(&row.parameters),
            number(1e3 * setup),
            number(extend),
            number(total),
            number(row.nanoseconds_each),
            number(row.bits_each),
            number(row.ratios.aes_blocks),
            number(row.ratios.random_reads),
        ]
    };
    Table {
        caption: "Measurements".to_owned(),
        columns,
        rows: rows.iter().map(line).collect(),
        notes: Vec::new(),
    }
}

fn parts_table(row: &Row, parts: &Parts) -> Table {
    let columns = vec![
        Column::words("part"),
        Column::words("party"),
        Column::words("unit"),
        Column::numbers("time", "ns a unit"),
        Column::numbers("limit", "ns a unit"),
        Column::numbers("ratio", ""),
        Column::numbers("units", "an output"),
        Column::numbers("time", "ns an output"),
    ];
    let maybe = |value: Option<f64>| value.map_or(Value::None, number);
    let mut rows: Vec<_> = parts
        .kernels
        .iter()
        .map(|part| {
            vec![
                Value::text(part.name),
                Value::text(part.party),
                Value::text(part.unit),
                number(part.nanoseconds),
                maybe(part.limit_nanoseconds),
                maybe(part.ratio),
                number(part.units_each),
                number(part.nanoseconds_each),
            ]
        })
        .collect();
    let wholes = [("sender", parts.sender), ("receiver", parts.receiver)];
    rows.extend(wholes.map(|(party, whole)| {
        let mut line = vec![Value::text("sum"), Value::text(party)];
        line.extend([
            Value::None,
            Value::None,
            Value::None,
            Value::None,
            Value::None,
        ]);
        line.push(number(whole.nanoseconds_each_parts));
        line
    }));
    let run = wholes.map(|(party, whole)| {
        format!(
            "{party}: {:.2} ns an output in parts, {:.2} ns in the run without the setup, ratio {:.2}",
            whole.nanoseconds_each_parts, whole.nanoseconds_each_extend, whole.ratio
        )
    });
    let loops = "LPN is indices and gather as the one loop that they are, and no part of the sum"
        .to_owned();
    Table {
        caption: format!(
            "Where the time of {} goes ({}, {}, {}), each part alone on one thread",
            row.name, row.security, row.parameters, row.link
        ),
        columns,
        rows,
        notes: run.into_iter().chain([loops]).collect(),
    }
}

fn number(value: f64) -> Value {
    Value::Measured {
        spread: volery_bench::measurement::Spread::exactly(value),
        published: None,
        extrapolated: false,
    }
}
