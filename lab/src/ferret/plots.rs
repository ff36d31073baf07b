//! The tables as plots: time over the bandwidth of the link, one plot for each security.

use crate::page::{Axis, Plot, Scale, Series};
use volery_pcg::Security;

use super::published::{Published, Rate};
use super::tables::Line;

/// The plots of a table, `label` along the second axis; lines without points are left out.
pub(super) fn plots(published: &Published, label: &str, lines: &[Line]) -> Vec<Plot> {
    let of = |security: Security| {
        let lines = lines.iter().filter(|line| line.row.security() == security);
        let series: Vec<_> = lines.flat_map(|line| all_series(published, line)).collect();
        (!series.is_empty()).then(|| Plot {
            title: format!("{}, {security}", published.what),
            x: Axis {
                label: "bandwidth".to_owned(),
                unit: "Mbit/s".to_owned(),
                scale: Scale::Log,
            },
            y: Axis {
                label: label.to_owned(),
                unit: published.unit.clone(),
                scale: Scale::Log,
            },
            series,
            marks: Vec::new(),
        })
    };
    [Security::SemiHonest, Security::Malicious]
        .into_iter()
        .filter_map(of)
        .collect()
}

/// The published series, whole, and ours.
fn all_series(published: &Published, line: &Line) -> Vec<Series> {
    let x = |rate: Rate| f64::from(rate.megabits());
    let mut all = Vec::new();
    if !line.row.about {
        let columns = published.columns.iter().zip(&line.row.values);
        let printed = columns.map(|(rate, value)| (x(*rate), *value));
        all.push(Series::published(line.row.protocol.name(), printed));
    }
    for (place, candidate) in line.beside.iter().enumerate() {
        let Some(candidate) = candidate else { continue };
        let points = line
            .times
            .iter()
            .map(|times| (x(times.rate), times.ours[place].plotted()));
        let series = Series::measured(candidate.title(), points);
        if !series.points.is_empty() {
            all.push(series);
        }
    }
    all
}
