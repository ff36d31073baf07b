//! Writing the matching rows: the table is read again, and only the wanted rows are kept.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use volery_tables::{
    Batch, Format, NAMED_ROWS, Output, Packing, Problem, Sink, Table, text_rows, text_schema,
};

use crate::agreement::check_names;
use crate::error::{Error, Result};
use crate::matches::Matches;
use crate::progress::Progress;

/// The parts of the output beside the matching rows.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Keeps the rows that do not match too.
    pub left: bool,
    /// Names for the columns of the payload, in their order, in place of the sender's.
    pub names: Vec<String>,
    /// The name of a column with the number of the rule by which a row matched, from 1.
    pub rule: Option<String>,
}

/// The rows that were written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WrittenRows {
    /// Rows of the output.
    pub rows: u64,
    /// The values that could not be written, and are empty in the output.
    pub unwritten: u64,
    /// The side, the row and the column of the first of them, and the reasons.
    pub first_unwritten: Vec<String>,
}

impl WrittenRows {
    /// Notes a value of row `i` of a batch that is left empty.
    fn leave_out(&mut self, (table, batch, i): (&Table, &Batch, usize), column: &str, why: &str) {
        self.unwritten += 1;
        if self.first_unwritten.len() < NAMED_ROWS {
            let (path, row) = table.place(batch.row_number(i));
            let file = match table.paths() {
                [_, _, ..] => format!("{}: ", path.display()),
                _ => String::new(),
            };
            self.first_unwritten.push(format!("{file}row {row}: {column} {why}"));
        }
    }
}

/// Why no output was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Of the run or of the table.
    #[error(transparent)]
    Run(#[from] Error),

    /// Of the output.
    #[error(transparent)]
    Output(Problem),

    /// The names of the appended columns.
    #[error("{0}")]
    Names(String),
}

impl From<volery_tables::Error> for WriteError {
    fn from(error: volery_tables::Error) -> Self {
        Self::Run(error.into())
    }
}

impl Columns {
    /// Checks, before a run, that the names differ from those of the table and from each other.
    pub fn check(&self, table: &Table) -> Result<(), String> {
        let mut names: Vec<&str> =
            table.schema().fields().iter().map(|field| field.name().as_str()).collect();
        for name in self.names.iter().chain(&self.rule) {
            if names.contains(&name.as_str()) {
                return Err(format!("there would be two columns named '{name}'"));
            }
            names.push(name);
        }
        Ok(())
    }
}

impl Matches {
    /// The columns of the output.
    ///
    /// # Errors
    /// If two columns would have the same name, or the number of names is wrong.
    pub fn schema(&self, table: &Table, columns: &Columns) -> Result<SchemaRef, WriteError> {
        columns.check(table).map_err(WriteError::Names)?;
        let mut fields: Vec<_> = table.schema().fields().iter().cloned().collect();
        if let Some(payload) = &self.payload {
            let all = payload.fields();
            check_names(columns.names.len(), payload)?;
            for (i, field) in all.iter().enumerate() {
                let mut name = columns.names.get(i).unwrap_or(field.name()).clone();
                // Both tables may well have a column of that name.
                let is_taken = |name: &String| {
                    fields.iter().any(|other| other.name() == name)
                        || columns.rule.as_ref() == Some(name)
                };
                while columns.names.is_empty() && is_taken(&name) {
                    name += "_sender";
                }
                fields.push(Arc::new(field.as_ref().clone().with_name(name)));
            }
        }
        if let Some(rule) = &columns.rule {
            fields.push(Arc::new(Field::new(rule, DataType::UInt32, true)));
        }
        let metadata = table.schema().metadata().clone();
        Ok(Arc::new(Schema::new_with_metadata(fields, metadata)))
    }

    /// Writes the rows with the columns that `columns` names. A value that the format does not
    /// have, or that is none of the sender's column, is left empty and noted.
    ///
    /// # Errors
    /// Errors of the table and of the output, and those of [`schema`](Self::schema).
    pub fn write<W: Write + Send>(
        &self,
        table: &Table,
        columns: &Columns,
        out: W,
        (format, packing): (Format, Packing),
        progress: &mut dyn Progress,
    ) -> Result<WrittenRows, WriteError> {
        let schema = self.schema(table, columns)?;
        let output = Output { format, packing, like: Some(table) };
        let mut sink = Sink::new(out, output, &schema).map_err(WriteError::Output)?;
        let written =
            self.each_batch(table, columns, &schema, progress, |rows| sink.write(rows))?;
        sink.finish().map_err(WriteError::Output)?;
        Ok(written)
    }

    /// The rows that [`write`](Self::write) writes, in memory. Columns of text files are strings.
    ///
    /// # Errors
    /// Errors of the table, also a field that is not UTF-8, and those of [`schema`](Self::schema).
    pub fn to_batches(
        &self,
        table: &Table,
        columns: &Columns,
        progress: &mut dyn Progress,
    ) -> Result<(SchemaRef, Vec<RecordBatch>, WrittenRows), WriteError> {
        let schema = self.schema(table, columns)?;
        let text = text_schema(&schema);
        let mut batches = Vec::new();
        let written = self.each_batch(table, columns, &schema, progress, |rows| {
            let (rows, empty) = text_rows(rows, &text)?;
            batches.push(rows);
            Ok(empty)
        })?;
        Ok((text, batches, written))
    }

    /// The numbers of the matching rows, counted from 0 and ascending, and the rule by which each
    /// matched, counted from 1.
    pub fn rows_and_rules(&self) -> Result<(Vec<u64>, Vec<u32>)> {
        let rows: Vec<u64> = self.collected.set.rows().collect();
        if self.by_rule().len() == 1 {
            let rules = vec![1; rows.len()];
            return Ok((rows, rules));
        }
        let mut cursor = self.collected.cursor();
        let rule = |row: &u64| {
            let found = cursor.find(*row)?;
            Ok(found.map_or(0, |(one, _)| u32::from(one.rule) + 1))
        };
        let rules = rows.iter().map(rule).collect::<Result<_>>()?;
        Ok((rows, rules))
    }

    /// Reads the table again and gives `take` the rows of the output, which returns the row and the
    /// column of each value that it leaves empty.
    fn each_batch(
        &self,
        table: &Table,
        columns: &Columns,
        schema: &SchemaRef,
        progress: &mut dyn Progress,
        mut take: impl FnMut(&RecordBatch) -> Result<Vec<(usize, usize)>, Problem>,
    ) -> Result<WrittenRows, WriteError> {
        progress.begin("writing rows", table.bytes());
        let wanted = |row| columns.left || self.collected.set.contains(row);
        let mut cursor = self.collected.cursor();
        let mut written = WrittenRows::default();
        let own = table.schema().fields().len();
        let name = |column: usize| format!("column {:?}", schema.field(column).name());
        let mut scan = table.select(&wanted)?;
        while let Some(batch) = scan.next()? {
            let mut appended: Vec<ArrayRef> = Vec::new();
            let rows = batch.rows.num_rows();
            if self.payload.is_some() || columns.rule.is_some() {
                let mut rules = Vec::with_capacity(rows);
                let (mut bytes, mut ranges) = (Vec::new(), Vec::with_capacity(rows));
                for i in 0..rows {
                    let found = cursor.find(batch.row_number(i))?;
                    rules.push(found.map(|(one, _)| u32::from(one.rule) + 1));
                    ranges.push(found.map(|(_, payload)| {
                        let start = bytes.len();
                        bytes.extend_from_slice(payload);
                        start..bytes.len()
                    }));
                }
                if let Some(payload) = &self.payload {
                    let values =
                        ranges.iter().cloned().map(|range| range.map(|range| &bytes[range]));
                    appended.extend(payload.decode(values, &mut |i, column, why| {
                        let column = format!("the sender's {}", name(own + column));
                        written.leave_out((table, &batch, i), &column, why);
                    }));
                }
                if columns.rule.is_some() {
                    appended.push(Arc::new(UInt32Array::from(rules)));
                }
            }
            let all = batch.rows.columns().iter().cloned().chain(appended);
            let batch_rows = RecordBatch::try_new(Arc::clone(schema), all.collect());
            let batch_rows = batch_rows.expect("the columns are those of the schema");
            let result = take(&batch_rows);
            let empty = result.map_err(|problem| match problem {
                Problem::Output(_) => WriteError::Output(problem),
                other => WriteError::from(table.error(&batch, other)),
            })?;
            for (i, column) in empty {
                let whose = if column < own { "" } else { "the sender's " };
                let column = format!("{whose}{}", name(column));
                written.leave_out((table, &batch, i), &column, "has no form in this format");
            }
            written.rows += rows as u64;
            progress.done(batch.done_bytes);
        }
        table.check_unchanged()?;
        Ok(written)
    }
}
