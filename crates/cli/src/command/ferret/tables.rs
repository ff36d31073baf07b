//! The published figures and ours, side by side.

use std::io::Write;

use volery_pcg::Security;

use super::Cell;
use super::candidate::Candidate;
use super::measure::Sample;
use super::published::{Part, Protocol, Published, PublishedRow, Rate};
use crate::command::paper::{self, Figure};
use crate::command::table::table;

/// A table of the paper with our figures.
pub(super) type Compared = paper::Compared<Row>;

/// One figure of the paper with ours.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Row {
    security: String,
    protocol: Protocol,
    part: Part,
    /// None where the figure is of the traffic, in its own unit.
    link: Option<Rate>,
    published: Option<f64>,
    /// The paper's protocol and parameters, or the baseline that stands in for one.
    here: Option<Figure>,
    /// What this program does by default.
    volery: Option<Figure>,
}

/// Puts our figures beside those of a table, for the links asked for.
pub(super) fn compare(published: &Published, links: &[Rate], cells: &[Cell]) -> Compared {
    let columns = || {
        published
            .columns
            .iter()
            .enumerate()
            .filter(|(_, rate)| links.contains(rate))
    };
    let mut rows = Vec::new();
    for row in &published.rows {
        let figures = |rates: &[Rate], what: What, published| {
            beside(row).map(|candidate| figure(candidate?, row.part, rates, what, published, cells))
        };
        let mut push = |link, published, [here, volery]: [Option<Figure>; 2]| {
            rows.push(Row {
                security: row.security.clone(),
                protocol: row.protocol,
                part: row.part,
                link,
                published,
                here,
                volery,
            });
        };
        if published.traffic_unit.is_some() {
            let what = What::Traffic {
                setup: published.table == 4,
            };
            let rates: Vec<_> = columns().map(|(_, rate)| *rate).collect();
            push(None, row.traffic, figures(&rates, what, row.traffic));
        }
        for (column, rate) in columns() {
            let value = row.values.get(column).copied();
            let what = match published.table {
                3 => What::Milliseconds,
                4 => What::Setup,
                _ => What::Nanoseconds,
            };
            push(Some(*rate), value, figures(&[*rate], what, value));
        }
    }
    Compared::new(published, rows)
}

fn beside(row: &PublishedRow) -> [Option<Candidate>; 2] {
    let security: Security = row.security.parse().expect("the data files are tested");
    Candidate::beside(row.protocol, security)
}

/// What a figure is of.
#[derive(Clone, Copy)]
enum What {
    /// Time of one correlated OT.
    Nanoseconds,
    /// Time of ten million.
    Milliseconds,
    /// Time of the one-time setup.
    Setup,
    /// Megabytes of the setup, or bits of one correlated OT.
    Traffic { setup: bool },
}

/// One figure, of the runs over all the given links; none where nothing was measured.
fn figure(
    candidate: Candidate,
    part: Part,
    rates: &[Rate],
    what: What,
    published: Option<f64>,
    cells: &[Cell],
) -> Option<Figure> {
    let find = |candidate, rate| {
        cells
            .iter()
            .find(move |cell| (cell.candidate, cell.rate) == (candidate, rate))
    };
    let mut values = Vec::new();
    let mut extrapolated = false;
    for rate in rates {
        let cell = find(candidate, *rate)?;
        extrapolated |= cell.extrapolated;
        let less = match part {
            Part::Extra => Some(find(candidate.with_regular_noise(), *rate)?),
            _ => None,
        };
        for (run, sample) in cell.samples.iter().enumerate() {
            let less = less.map_or(Some(0.0), |less| {
                value(less.samples.get(run)?, Part::Total, what)
            })?;
            values.push(value(sample, part, what)? - less);
        }
    }
    let mut figure = Figure::of(values, published)?;
    figure.extrapolated = extrapolated && matches!(what, What::Nanoseconds | What::Milliseconds);
    Some(figure)
}

fn value(sample: &Sample, part: Part, what: What) -> Option<f64> {
    let (seconds, cots) = match part {
        Part::Trees => (sample.round?.trees_seconds, sample.round?.cots),
        Part::Lpn => (sample.round?.lpn_seconds, sample.round?.cots),
        Part::Total | Part::Extra => (sample.seconds, sample.cots),
    };
    let cots = cots as f64;
    Some(match what {
        What::Nanoseconds => seconds * 1e9 / cots,
        What::Milliseconds => seconds * 1e3 * 1e7 / cots,
        What::Setup => sample.setup_seconds * 1e3,
        What::Traffic { setup: true } => sample.setup_bytes as f64 / 1e6,
        What::Traffic { setup: false } => sample.bytes as f64 * 8.0 / cots,
    })
}

/// What was measured, each protocol once with its plans.
pub(super) fn plans(cells: &[Cell]) -> Vec<String> {
    let mut lines: Vec<(String, Vec<Rate>)> = Vec::new();
    for cell in cells {
        let Some(plan) = &cell.plan else {
            continue;
        };
        let (name, plan, bits) = (cell.candidate.name(), plan.describe(), plan.claimed_bits());
        let line = format!("{name}: {plan}, {bits} bits");
        match lines.iter_mut().find(|(have, _)| *have == line) {
            Some((_, rates)) => rates.push(cell.rate),
            None => lines.push((line, vec![cell.rate])),
        }
    }
    lines.sort();
    let text = |(line, mut rates): (String, Vec<Rate>)| {
        rates.sort();
        let rates: Vec<_> = rates.into_iter().map(Rate::name).collect();
        format!("{line} ({})", rates.join(" "))
    };
    lines.into_iter().map(text).collect()
}

/// Prints a table and what has to be known to read it.
///
/// # Errors
/// Those of `out`.
pub(super) fn print(compared: &Compared, out: &mut impl Write) -> std::io::Result<()> {
    compared.print_title(out)?;
    if compared.rows.is_empty() {
        return writeln!(out, "no column of this table is among the links\n");
    }
    let headings = [
        "security",
        "protocol",
        "link",
        ">published",
        ">here",
        ">range",
        ">ratio",
        ">volery",
        ">range",
        ">ratio",
    ];
    let mut last = None;
    let cells = compared.rows.iter().map(|row| {
        let group = (row.security.clone(), row.protocol, row.part);
        let first = last.replace(group.clone()).as_ref() != Some(&group);
        let link = row.link.map(Rate::name);
        let [here, here_spread, here_ratio] = Figure::texts(row.here.as_ref());
        let [volery, volery_spread, volery_ratio] = Figure::texts(row.volery.as_ref());
        [
            if first {
                row.security.clone()
            } else {
                String::new()
            },
            if first {
                format!("{}{}", row.protocol.name(), row.part.suffix())
            } else {
                String::new()
            },
            link.or(compared.traffic_unit.as_deref())
                .unwrap_or("-")
                .to_owned(),
            row.published
                .map_or("-".to_owned(), |value| value.to_string()),
            here,
            here_spread,
            here_ratio,
            volery,
            volery_spread,
            volery_ratio,
        ]
    });
    writeln!(out, "{}", table(headings, cells))?;
    if compared.rows.iter().any(|row| {
        [&row.here, &row.volery]
            .into_iter()
            .flatten()
            .any(|figure| figure.extrapolated)
    }) {
        writeln!(out, "~ fewer were made and the time scaled")?;
    }
    writeln!(out)
}
