//! Statements in the text of the paper about its figures.

use serde::Deserialize;

use crate::published::Published;

/// The data file of a figure: the statements, for some links or numbers of threads.
pub(super) type Figure = Published<String, Row>;

/// A statement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(super) quantity: Quantity,
    /// The ring here that represents the paper's; `None` where the paper does not name one.
    pub(super) ring: Option<String>,
    /// One for each column; `None` where there is no statement.
    pub(super) values: Vec<Option<f64>>,
    /// The sentence, and its place in the paper.
    pub(super) source: String,
}

/// The quantity of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Quantity {
    /// The largest factor by which the known index is faster than the distributed one.
    LeadAtMost,
    /// The length of the vector from which on the paper's vector OLE takes less time than Gilboa's
    /// multiplication.
    Crossing,
    /// Of the paper's vector OLE of 2^20 entries.
    Seconds,
    /// Gilboa's time over that of the paper's vector OLE, for 2^20 entries.
    GilboaTime,
    /// Gilboa's bytes over those of the paper's vector OLE, for 2^20 entries.
    GilboaBytes,
    /// The factor by which it is faster than one thread.
    SpeedUp,
}

/// The statement of a figure about a ring in a column, if there is one.
pub(super) fn stated(figure: &Figure, quantity: Quantity, ring: &str, column: &str) -> Option<f64> {
    let place = figure.columns.iter().position(|have| have == column)?;
    let of_ring = |row: &&Row| row.ring.as_deref().is_none_or(|have| have == ring);
    let mut rows = figure.rows.iter().filter(|row| row.quantity == quantity);
    *rows.find(of_ring)?.values.get(place)?
}

/// Where a figure states these quantities: each sentence once.
pub(super) fn sources(figure: &Figure, quantities: &[Quantity]) -> Vec<String> {
    let rows = figure.rows.iter();
    let rows = rows.filter(|row| quantities.contains(&row.quantity));
    let mut sources: Vec<_> = rows.map(|row| row.source.clone()).collect();
    sources.dedup();
    sources
}
