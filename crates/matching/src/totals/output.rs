//! Totals as a table.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Decimal128Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use volery_tables::{Format, Output, Packing, Problem, Sink};

use super::compute::Total;
use super::run::Outcome;
use super::settings::{Kind, Settings};

/// Digits of a sum: those of 64 bits.
const DIGITS: u8 = 19;

impl Total {
    /// The sum divided by the count: nothing for other results than a mean, or if the count, with
    /// its noise, is not above zero.
    #[must_use]
    pub fn mean(&self, settings: &Settings) -> Option<f64> {
        let (count, sum) = (self.count?, self.sum?);
        let unit = 10_f64.powi(settings.sum_decimals() as i32);
        (count > 0).then(|| sum as f64 / unit / count as f64)
    }
}

impl Outcome {
    /// A row for each group, or one: the columns `group`, `count`, `sum` and `mean`, as far as the
    /// result has them. The numbers of a group below the minimum are null.
    ///
    /// # Panics
    /// If these are not the settings of the run.
    pub fn table(&self, settings: &Settings) -> RecordBatch {
        let totals = &self.totals;
        let mut fields = Vec::new();
        let mut columns: Vec<ArrayRef> = Vec::new();
        if settings.grouped.is_some() {
            fields.push(Field::new("group", DataType::Utf8, false));
            let groups = settings.groups.iter().map(Some);
            columns.push(Arc::new(groups.collect::<StringArray>()));
        }
        if settings.kind.has_count() {
            fields.push(Field::new("count", DataType::Int64, true));
            let counts = totals.iter().map(|total| total.count);
            columns.push(Arc::new(counts.collect::<Int64Array>()));
        }
        if settings.kind.has_sum() {
            let sums = totals.iter().map(|total| total.sum);
            let (data_type, sums): (_, ArrayRef) = match settings.sum_decimals() {
                0 => (DataType::Int64, Arc::new(sums.collect::<Int64Array>())),
                decimals => {
                    let scale = decimals as i8;
                    let sums: Decimal128Array = sums.map(|sum| sum.map(i128::from)).collect();
                    let sums = sums.with_precision_and_scale(DIGITS, scale);
                    let sums = sums.expect("a scale within the digits");
                    (DataType::Decimal128(DIGITS, scale), Arc::new(sums))
                }
            };
            fields.push(Field::new("sum", data_type, true));
            columns.push(sums);
        }
        if settings.kind == Kind::Mean {
            fields.push(Field::new("mean", DataType::Float64, true));
            let means = totals.iter().map(|total| total.mean(settings));
            columns.push(Arc::new(means.collect::<Float64Array>()));
        }
        RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
            .expect("the columns have a row for each total")
    }

    /// Writes the [table](Self::table).
    ///
    /// # Panics
    /// See [`table`](Self::table).
    pub fn write(
        &self,
        settings: &Settings,
        out: impl Write + Send,
        (format, packing): (Format, Packing),
    ) -> Result<(), Problem> {
        let rows = self.table(settings);
        let output = Output { format, packing, like: None };
        let mut sink = Sink::new(out, output, &rows.schema())?;
        sink.write(&rows)?;
        sink.finish().map(drop)
    }
}
