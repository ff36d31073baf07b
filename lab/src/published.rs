//! The published figures: a data file for each table or figure of a paper, with its source, and the
//! measurements that stand beside each figure. One form for all papers.

use serde::Deserialize;

/// The format version of the data files.
const SCHEMA: u32 = 3;

/// A table or figure of a paper.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Published {
    schema: u32,
    pub(crate) paper: String,
    /// The paper in a word or two.
    pub(crate) short: String,
    /// `Table 3`, `Figure 4`.
    pub(crate) what: String,
    /// Where the paper discusses it.
    pub(crate) section: String,
    pub(crate) caption: String,
    /// The source of the figures: printed, or stated in the text.
    pub(crate) note: String,
    /// The machine of the paper.
    pub(crate) there: String,
    /// Our measurement.
    pub(crate) ours: Vec<String>,
    /// The differences between the two.
    pub(crate) differences: Vec<String>,
    /// The findings that do not depend on the figures of one run, with reasons.
    pub(crate) findings: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

/// A table beside the published one: each row at each column is a line.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) unit: String,
    /// The headings of a row's words.
    pub(crate) labels: Vec<String>,
    /// The quantity that differs between columns: `link`, `threads`, or a number of outputs, which
    /// has another name in each table. `None` if there is one column.
    #[serde(default)]
    pub(crate) pivot: Option<String>,
    /// Links, numbers of threads, or numbers of outputs such as `2^20`.
    pub(crate) columns: Vec<String>,
    /// The columns of a quick run; all if missing.
    #[serde(default)]
    pub(crate) quick: Option<Vec<String>>,
    /// Outputs, unless the columns have them.
    #[serde(default)]
    pub(crate) n: u64,
    /// The link, unless the columns have it.
    #[serde(default)]
    pub(crate) link: Option<String>,
    /// The links over which one figure is taken together.
    #[serde(default)]
    pub(crate) links: Vec<String>,
    /// A run that is predicted to take longer is left out: seconds, in full and in a quick run.
    #[serde(default)]
    pub(crate) longest: Option<[f64; 2]>,
    /// Our columns.
    pub(crate) sides: Vec<Side>,
    /// Columns with the ratio of the medians of two of our columns.
    #[serde(default)]
    pub(crate) ratios: Vec<(String, usize, usize)>,
    /// The scale of the first axis of its plot, if it has one.
    #[serde(default)]
    pub(crate) plot: Option<String>,
    /// Whether each first label has a plot of its own.
    #[serde(default)]
    pub(crate) facet: bool,
    #[serde(default)]
    pub(crate) notes: Vec<String>,
    pub(crate) rows: Vec<Row>,
}

/// A column of ours.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Side {
    pub(crate) heading: String,
    /// Appended to the quantity of each row.
    #[serde(default)]
    pub(crate) suffix: String,
    /// The most outputs that are measured.
    #[serde(default)]
    pub(crate) most: Option<u64>,
}

/// A row: published values, and our protocols beside them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    #[serde(default)]
    pub(crate) labels: Vec<String>,
    pub(crate) quantity: String,
    /// Values that the text states once, approximately: nothing is compared with them.
    #[serde(default)]
    pub(crate) about: bool,
    /// One for each column; empty if nothing is published.
    #[serde(default)]
    pub(crate) values: Vec<Option<f64>>,
    /// One for each of our columns.
    pub(crate) protocols: Vec<Option<String>>,
}

impl Published {
    /// Parses the text of a data file of this crate.
    pub(crate) fn read(text: &str) -> Self {
        let published: Self = serde_json::from_str(text).expect("the data files are tested");
        assert_eq!(published.schema, SCHEMA, "the data files are tested");
        published
    }
}
