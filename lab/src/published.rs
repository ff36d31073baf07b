//! The published figures: a data file for each table or figure of a paper, with its source, and the
//! measurements that stand beside each figure. One form for all papers; `lab/published/README.md`
//! names those that only `lab/tables.py` reads too.

use serde::Deserialize;

/// The format version of the data files.
const SCHEMA: u32 = 3;

/// A table or figure of a paper.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Published {
    schema: u32,
    /// The paper in a word or two.
    pub(crate) short: String,
    /// `Table 3`, `Figure 4`.
    pub(crate) what: String,
    pub(crate) caption: String,
    pub(crate) tables: Vec<Table>,
}

/// A table beside the published one: each row at each column is a line.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Table {
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
    pub(crate) sides: Vec<Side>,
    pub(crate) rows: Vec<Row>,
}

/// A column of ours.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Side {
    /// Appended to the quantity of each row.
    #[serde(default)]
    pub(crate) suffix: String,
}

/// A row: published values, and our protocols beside them.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Row {
    pub(crate) quantity: String,
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
