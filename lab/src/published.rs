//! The published figures: a data file for each table or figure, with its source.

use crate::page::Section;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The format version of the data files.
const SCHEMA: u32 = 2;

/// One table or figure of a paper, from its data file: columns `C`, rows `R`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published<C, R> {
    schema: u32,
    pub(crate) paper: String,
    /// The paper in a word or two.
    pub(crate) short: String,
    /// `Table 3`, `Figure 4`.
    pub(crate) what: String,
    /// Where the paper discusses it.
    pub(crate) section: String,
    pub(crate) caption: String,
    /// Of the values.
    pub(crate) unit: String,
    /// Unit of the traffic; `None` if there is no such column.
    pub(crate) traffic_unit: Option<String>,
    /// The source of the figures: printed, or read off a plot.
    pub(crate) note: String,
    pub(crate) columns: Vec<C>,
    pub(crate) rows: Vec<R>,
    /// The machine of the paper.
    pub(crate) there: String,
    /// Our measurement.
    pub(crate) ours: Vec<String>,
    /// The differences between the two.
    pub(crate) differences: Vec<String>,
    /// The findings, with reasons for deviations from the published figures.
    pub(crate) findings: Vec<String>,
}

impl<C: DeserializeOwned, R: DeserializeOwned> Published<C, R> {
    /// Parses the text of a data file of this crate.
    ///
    /// # Panics
    /// If it is not a valid file of this version: tests check the data files.
    pub(crate) fn read(text: &str) -> Self {
        let published: Self = serde_json::from_str(text).expect("the data files are tested");
        assert_eq!(published.schema, SCHEMA, "the data files are tested");
        published
    }

    /// A section with the published information, without tables and plots.
    pub(crate) fn section(&self, name: &str) -> Section {
        Section {
            name: name.to_owned(),
            title: format!("{} of {}: {}", self.what, self.short, self.caption),
            source: format!("{}, {}, section {}", self.paper, self.what, self.section),
            note: self.note.clone(),
            there: self.there.clone(),
            ours: self.ours.clone(),
            differences: self.differences.clone(),
            findings: self.findings.clone(),
            ..Section::default()
        }
    }
}
