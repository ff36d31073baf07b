//! Table 5.

use volery_bench::Result;
use volery_bench::page::Section;
use volery_bench::results::Results;
use volery_bench::runner::Cell;

use crate::experiment::{Experiment, Scope};

/// Table 5.
pub struct Table5;

impl Experiment for Table5 {
    fn name(&self) -> &'static str {
        "ferret-table-5"
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
