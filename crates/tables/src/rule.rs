//! Rules: lists of key columns with types and normalisers.

use crate::error::Problem;

/// A rule of matching: key columns, each with a type and normalisers. Parsed, and not yet bound to a
/// table.
#[derive(Debug, Clone)]
pub struct Rule;

impl Rule {
    /// Parses key columns with commas in between, each `NAME` or `NAME:SPEC`. A name with a comma or
    /// a colon is written in double quotes, a quote in it twice. SPEC is a type (`text`, `binary`,
    /// `integer`, `decimal`, `boolean`, `date`, `timestamp`, `datetime`), or names of normalisers
    /// with `+` in between, with or without `text` first. A column whose name equals a whole
    /// argument without quotes takes precedence.
    ///
    /// # Errors
    /// If a quote does not close, a name is empty, or a quoted name has an unknown SPEC; an unknown
    /// SPEC behind a name without quotes is an error of [`Reader::new`](crate::Reader::new), unless
    /// there is a column of the whole name.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let _ = text;
        todo!()
    }
}
