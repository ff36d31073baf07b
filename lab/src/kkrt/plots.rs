//! The tables as plots: the number of items along the first axis, time or traffic along the second.

use crate::page::{Axis, Plot, Scale, Series};

use super::published::{Protocol, Published, Quantity, Row, Setting, sizes};
use super::tables::{Figures, Ours, rows};

/// All that was published over one link, and BaRK-OPRF of ours.
pub(super) fn beside_published(
    published: &Published,
    setting: Option<Setting>,
    figures: Figures<'_>,
) -> Plot {
    let mut series: Vec<_> = rows(published, setting)
        .map(|row| theirs(published, row))
        .collect();
    let bark = rows(published, setting).filter(|row| row.protocol == Protocol::Bark);
    series.extend(bark.flat_map(|row| ours(row, figures)));
    let what = match setting {
        Some(setting) => format!("{}, {setting}", published.caption),
        None => published.caption.clone(),
    };
    plot(published, what, series)
}

/// All protocols of ours over one link, on the same machine; `None` where nothing was measured.
pub(super) fn all_of_ours(
    published: &Published,
    setting: Setting,
    figures: Figures<'_>,
) -> Option<Plot> {
    let series: Vec<_> = rows(published, Some(setting))
        .flat_map(|row| ours(row, figures))
        .collect();
    let what = format!("{}, all on one machine, {setting}", published.caption);
    (!series.is_empty()).then(|| plot(published, what, series))
}

fn plot(published: &Published, title: String, series: Vec<Series>) -> Plot {
    let traffic = |row: &Row| row.quantity == Quantity::Traffic;
    let label = if published.rows.iter().all(traffic) {
        "bytes both ways"
    } else {
        "time"
    };
    Plot {
        title,
        x: Axis {
            label: "items of each party".to_owned(),
            unit: String::new(),
            scale: Scale::Log2,
        },
        y: Axis {
            label: label.to_owned(),
            unit: published.unit.clone(),
            scale: Scale::Log,
        },
        series,
        marks: Vec::new(),
    }
}

/// A row as published: all sizes, whichever are measured.
fn theirs(published: &Published, row: &Row) -> Series {
    let points = published.columns.iter().zip(&row.values);
    Series::published(
        &name(row, &row.protocol.to_string()),
        points.map(|(&log_items, &value)| (place(log_items), value)),
    )
}

/// The measurements for a row, where there are any.
fn ours(row: &Row, figures: Figures<'_>) -> Vec<Series> {
    let series = |ours: Ours| {
        let protocol = match ours {
            Ours::Here => row.protocol.to_string(),
            Ours::Volery => ours.beside(row)?.name(),
        };
        let sizes = sizes(figures.scope).into_iter();
        let series = Series::measured(
            &format!("{}, {}", name(row, &protocol), ours.name()),
            sizes.map(|log_items| (place(log_items), figures.spread(ours, row, log_items))),
        );
        (!series.points.is_empty()).then_some(series)
    };
    Ours::BOTH.into_iter().filter_map(series).collect()
}

/// A protocol, with the length of the items or the phase to distinguish its line from others.
fn name(row: &Row, protocol: &str) -> String {
    match (row.protocol, row.quantity) {
        (Protocol::Pssz, _) => format!("{protocol} {}", row.bits_text()),
        (_, Quantity::Offline | Quantity::Online) => format!("{protocol} {}", row.quantity),
        _ => protocol.to_owned(),
    }
}

/// Where a size is along the first axis.
fn place(log_items: u32) -> f64 {
    f64::from(log_items).exp2()
}
