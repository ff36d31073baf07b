//! The published figures: a data file for each table or figure, with its source.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use volery_bench::page::Section;

/// The version of the form of the data files.
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
    /// Of the traffic; none where there is no such column.
    pub(crate) traffic_unit: Option<String>,
    /// How the figures were taken over: printed, or read off a plot.
    pub(crate) note: String,
    pub(crate) columns: Vec<C>,
    pub(crate) rows: Vec<R>,
    /// What the paper measured on.
    pub(crate) there: String,
    /// What we measure.
    pub(crate) ours: Vec<String>,
    /// What keeps the two from being the same.
    pub(crate) differences: Vec<String>,
    /// What was found, and why where it is not what was published.
    pub(crate) findings: Vec<String>,
}

impl<C: DeserializeOwned, R: DeserializeOwned> Published<C, R> {
    /// From the text of a data file of this crate.
    ///
    /// # Panics
    /// If it is none of this version: the data files are tested.
    pub(crate) fn read(text: &str) -> Self {
        let published: Self = serde_json::from_str(text).expect("the data files are tested");
        assert_eq!(published.schema, SCHEMA, "the data files are tested");
        published
    }

    /// A section that says what was published, without tables and plots.
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
