//! Table 3.

use volery_bench::Result;
use volery_bench::page::Section;
use volery_bench::results::Results;
use volery_bench::runner::Cell;

use crate::experiment::{Experiment, Scope};

/// Table 3.
pub struct Table3;

impl Experiment for Table3 {
    fn name(&self) -> &'static str {
        "ferret-table-3"
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
