//! Table 1.

use volery_bench::Result;
use volery_bench::page::Section;
use volery_bench::results::Results;
use volery_bench::runner::Cell;

use crate::experiment::{Experiment, Scope};

/// Table 1.
pub struct Table1;

impl Experiment for Table1 {
    fn name(&self) -> &'static str {
        "ferret-table-1"
    }

    fn about(&self) -> String {
        String::new()
    }

    fn cells(&self, _scope: &Scope) -> Result<Vec<Cell>> {
        Ok(Vec::new())
    }

    fn section(&self, _scope: &Scope, _results: &Results) -> Result<Section> {
        Ok(Section::default())
    }
}
