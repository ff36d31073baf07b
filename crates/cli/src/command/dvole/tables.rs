//! The measurements in tables, and where ours overtakes Gilboa's multiplication.

use std::io::Write;

use volery_pcg::Security;

use super::Cell;
use super::candidate::Candidate;
use super::measure::Sample;
use super::published::{Published, Quantity, stated};
use crate::command::options::RingName;
use crate::command::paper::Figure;
use crate::command::table::table;
use crate::link::Link;

/// A figure of the paper with our measurements.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Compared {
    pub(super) figure: u8,
    section: String,
    paper: String,
    caption: String,
    note: String,
    rows: Vec<Row>,
    /// Figure 4 alone.
    crossings: Vec<Crossing>,
    there: String,
    ours: Vec<String>,
    differences: Vec<String>,
}

/// One measurement.
#[derive(Clone, Debug, serde::Serialize)]
struct Row {
    protocol: String,
    ring: String,
    link: String,
    n: u64,
    threads: usize,
    /// Milliseconds; none where it was skipped.
    time: Option<Figure>,
    bytes: Option<u64>,
    messages: Option<u64>,
    /// This time over that of what is ours in the same place: of the half-tree, of the semi-honest vector OLE, and in Figure 5
    /// the time of the fewest threads over this one.
    ratio: Option<f64>,
    /// In Figure 5, what the paper states of the ratio.
    published: Option<f64>,
    plan: Option<String>,
}

/// From which length on ours is ahead.
#[derive(Clone, Debug, serde::Serialize)]
pub(super) struct Crossing {
    protocol: String,
    ring: String,
    link: String,
    /// By time.
    seconds: Ahead,
    /// By the bytes of both parties.
    bytes: Ahead,
    /// The paper's, by time.
    published: Option<f64>,
}

/// Where one curve falls below another.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind", content = "n")]
pub(super) enum Ahead {
    /// At all lengths measured; this is the least.
    Everywhere(f64),
    /// From about this length on, between two that were measured.
    From(f64),
    /// At none; this is the greatest.
    Nowhere(f64),
    /// Nothing to compare.
    Unknown,
}

impl Ahead {
    /// From lengths in ascending order, each with the other's value and ours.
    fn of(points: &[(f64, f64, f64)]) -> Self {
        let lead = |(_, other, ours): &(f64, f64, f64)| (other / ours).ln();
        let (Some(first), Some(last)) = (points.first(), points.last()) else {
            return Self::Unknown;
        };
        if lead(last) <= 0.0 {
            return Self::Nowhere(last.0);
        }
        let behind = points.iter().rposition(|point| lead(point) <= 0.0);
        let Some(behind) = behind else {
            return Self::Everywhere(first.0);
        };
        // Straight lines between logarithms.
        let [left, right] = [&points[behind], &points[behind + 1]];
        let part = -lead(left) / (lead(right) - lead(left));
        Self::From((left.0.ln() + part * (right.0.ln() - left.0.ln())).exp())
    }

    fn text(self) -> String {
        match self {
            Self::Everywhere(n) => format!("below {n}"),
            Self::From(n) => format!("{n:.0}"),
            Self::Nowhere(n) => format!("above {n}"),
            Self::Unknown => "-".to_owned(),
        }
    }
}

/// The median of something over the runs.
fn median(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> Option<f64> {
    Some(Figure::of(samples.iter().map(of).collect(), None)?.median)
}

/// The column of the paper that a link stands for.
fn column(link: &Link) -> Option<&'static str> {
    match link {
        Link::Loopback => Some("loopback"),
        Link::Shaped { rate, .. } if *rate == 100_000_000 => Some("100Mbit"),
        Link::Shaped { .. } | Link::Tls => None,
    }
}

/// What was measured for a figure, beside what the paper states.
pub(super) fn compare(published: &Published, cells: &[Cell]) -> Compared {
    let figure = published.table;
    let cells: Vec<_> = cells.iter().filter(|cell| cell.figure == figure).collect();
    let row = |cell: &&Cell| {
        let seconds = median(&cell.samples, |sample| sample.seconds);
        // Of what is ours in the same place; in Figure 5, of the fewest threads.
        let other = cells.iter().find(|other| match figure {
            3 => other.candidate == Candidate::Half && other.place() == cell.place(),
            4 => {
                other.candidate == Candidate::Vole(Security::SemiHonest)
                    && other.place() == cell.place()
            }
            _ => other.candidate == cell.candidate && other.ring == cell.ring,
        });
        let other = other.and_then(|other| median(&other.samples, |sample| sample.seconds));
        let ratio = seconds.zip(other).map(|(seconds, other)| match figure {
            5 => other / seconds,
            _ => seconds / other,
        });
        let published = (figure == 5)
            .then(|| stated(5, Quantity::SpeedUp, None, &cell.threads.to_string()))
            .flatten();
        let milliseconds = cell.samples.iter().map(|sample| 1e3 * sample.seconds);
        let sample = cell.samples.first();
        Row {
            protocol: cell.candidate.name(),
            ring: cell.ring.to_string(),
            link: cell.link.to_string(),
            n: cell.n,
            threads: cell.threads,
            time: Figure::of(milliseconds.collect(), None),
            bytes: sample.map(|sample| sample.bytes),
            messages: sample.map(|sample| sample.messages),
            ratio,
            published,
            plan: cell.describe(),
        }
    };
    Compared {
        figure,
        section: published.section.clone(),
        paper: published.paper.clone(),
        caption: published.caption.clone(),
        note: published.note.clone(),
        rows: cells.iter().map(row).collect(),
        crossings: crossings(&cells),
        there: published.there.clone(),
        ours: published.ours.clone(),
        differences: published.differences.clone(),
    }
}

/// For each way of ours, ring and link: where it overtakes Gilboa's multiplication.
fn crossings(cells: &[&Cell]) -> Vec<Crossing> {
    let mut found: Vec<(Candidate, RingName, Link)> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.figure == 4) {
        let ours = matches!(cell.candidate, Candidate::Vole(_) | Candidate::Paper80);
        let key = (cell.candidate, cell.ring, cell.link.clone());
        if ours && !found.contains(&key) {
            found.push(key);
        }
    }
    let crossing = |(candidate, ring, link): (Candidate, RingName, Link)| {
        let points = |of: fn(&Sample) -> f64| {
            let mut points: Vec<_> = cells
                .iter()
                .filter(|cell| (cell.candidate, cell.ring, &cell.link) == (candidate, ring, &link))
                .filter_map(|cell| {
                    let other = cells.iter().find(|other| {
                        other.candidate == Candidate::Gilboa && other.place() == cell.place()
                    })?;
                    let values = [&other.samples, &cell.samples].map(|samples| median(samples, of));
                    Some((cell.n as f64, values[0]?, values[1]?))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            Ahead::of(&points)
        };
        Crossing {
            protocol: candidate.name(),
            ring: ring.to_string(),
            link: link.to_string(),
            seconds: points(|sample| sample.seconds),
            bytes: points(|sample| sample.bytes as f64),
            published: column(&link)
                .and_then(|column| stated(4, Quantity::Crossing, Some(&ring.to_string()), column)),
        }
    };
    found.into_iter().map(crossing).collect()
}

/// Prints a figure's measurements.
///
/// # Errors
/// Those of `out`.
pub(super) fn print(compared: &Compared, out: &mut impl Write) -> std::io::Result<()> {
    let Compared {
        figure,
        section,
        caption,
        rows,
        crossings,
        ..
    } = compared;
    writeln!(out, "Figure {figure} (section {section}): {caption}; ms")?;
    if rows.is_empty() {
        return writeln!(out, "nothing was measured\n");
    }
    let headings = [
        "link",
        "ring",
        ">n",
        ">threads",
        "protocol",
        ">ms",
        ">range",
        ">ratio",
        ">published",
        ">bytes",
        ">messages",
        "plan",
    ];
    let mut last = None;
    let lines = rows.iter().map(|row| {
        let group = (&row.link, &row.ring, row.n, row.threads);
        let first = last.replace(group) != Some(group);
        let once = |text: String| if first { text } else { String::new() };
        let number = |value: Option<u64>| value.map_or("-".to_owned(), |value| value.to_string());
        let [time, range, _] = Figure::texts(row.time.as_ref());
        [
            once(row.link.clone()),
            once(row.ring.clone()),
            once(row.n.to_string()),
            once(row.threads.to_string()),
            row.protocol.clone(),
            if row.time.is_some() {
                time
            } else {
                "skipped".to_owned()
            },
            range,
            row.ratio
                .map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            row.published
                .map_or("-".to_owned(), |ratio| ratio.to_string()),
            number(row.bytes),
            number(row.messages),
            row.plan.clone().unwrap_or_default(),
        ]
    });
    writeln!(out, "{}", table(headings, lines))?;
    if !crossings.is_empty() {
        writeln!(
            out,
            "\nthe length from which on ours takes less than gilboa"
        )?;
        let headings = ["link", "ring", "protocol", ">time", ">published", ">bytes"];
        let lines = crossings.iter().map(|crossing| {
            [
                crossing.link.clone(),
                crossing.ring.clone(),
                crossing.protocol.clone(),
                crossing.seconds.text(),
                crossing.published.map_or("-".to_owned(), |n| n.to_string()),
                crossing.bytes.text(),
            ]
        });
        writeln!(out, "{}", table(headings, lines))?;
    }
    writeln!(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_one_curve_falls_below_another() {
        // Gilboa takes n, ours 100 and nothing for each.
        let points =
            |lengths: &[f64]| -> Vec<_> { lengths.iter().map(|n| (*n, *n, 100.0)).collect() };
        let Ahead::From(n) = Ahead::of(&points(&[10.0, 50.0, 400.0, 1000.0])) else {
            panic!("they cross");
        };
        assert!((n - 100.0).abs() < 1e-6, "{n}");
        assert_eq!(
            Ahead::of(&points(&[200.0, 300.0])),
            Ahead::Everywhere(200.0)
        );
        assert_eq!(Ahead::of(&points(&[20.0, 30.0])), Ahead::Nowhere(30.0));
        assert_eq!(Ahead::of(&points(&[100.0])), Ahead::Nowhere(100.0));
        assert_eq!(Ahead::of(&[]), Ahead::Unknown);
        // A lead that is lost again does not count.
        let lost = [(1.0, 2.0, 1.0), (2.0, 1.0, 2.0), (4.0, 2.0, 1.0)];
        let Ahead::From(n) = Ahead::of(&lost) else {
            panic!("they cross");
        };
        assert!((n - 8.0_f64.sqrt()).abs() < 1e-9);
    }
}
