//! The tables as plots: time over the bandwidth of the link, one plot for each security.

use volery_bench::measurement::Spread;
use volery_bench::page::{Axis, Plot, Point, Scale, Series, Value};
use volery_pcg::Security;

use super::published::Published;
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
    let columns = published.columns.iter().zip(&line.row.values);
    let printed = columns.map(|(rate, value)| point(rate.megabits(), Spread::exactly(*value)));
    let mut all = vec![Series {
        name: line.row.protocol.name().to_owned(),
        published: true,
        points: printed.collect(),
    }];
    for (place, candidate) in line.beside.iter().enumerate() {
        let Some(candidate) = candidate else { continue };
        let measured = line.times.iter().filter_map(|(rate, _, values)| {
            let Value::Measured { spread, .. } = &values[place] else {
                return None;
            };
            // A setup that is lost in the noise of a round has no place on a logarithmic axis.
            (spread.least > 0.0).then(|| point(rate.megabits(), *spread))
        });
        let points: Vec<_> = measured.collect();
        if !points.is_empty() {
            all.push(Series {
                name: candidate.title().to_owned(),
                published: false,
                points,
            });
        }
    }
    all
}

fn point(megabits: u32, y: Spread) -> Point {
    Point {
        x: f64::from(megabits),
        y,
        from_plot: false,
    }
}
