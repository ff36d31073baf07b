//! `volery psi --result shares`: shares of the matching rows, for what the two sides compute next.

pub(crate) mod description;
mod text;

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use volery_channel::{Channel, Role};
use volery_field::{F2, Ring, Z64};
use volery_matching::Partitioning;
use volery_matching::shares::{
    Layout, Outcome, Piece, PreparedTable, Settings, ShareExecution, revealed,
};
use volery_tables::{Format, Output, Packing, Reading, Sink, Table};
use zeroize::Zeroizing;

use self::description::Description;
use crate::cluster::Workers;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Status};
use crate::files::file_name;
use crate::matching::arguments::MatchingArguments;
use crate::matching::files::ResultFile;
use crate::matching::job::{Job, MatchInputs, RunState};
use crate::matching::summary::TableFacts;
use crate::matching::text::object;
use crate::npy::{SignedWriter, Writer};
use crate::output::Folder;
use crate::progress::PhaseProgress;
use crate::report::Report;
use crate::reporter::{Reporter, many};
use crate::results::{MatchResult, Shares};
use crate::totals::{check_resume, no_shares};

/// The name of the [`Description`] in the metadata of a Parquet file.
pub(crate) const NOTE: &str = "volery.shares";

/// Where the shares go.
enum Place {
    Folder(Folder),
    Parquet(ResultFile),
    Caller,
}

impl Place {
    /// Checks, before any work, that the output can be written.
    fn prepare(arguments: &MatchingArguments, is_required: bool) -> Result<Self, Failure> {
        let refuse = |what: String, hint: &str| Err(Failure::usage("--out", what).with_hint(hint));
        let Some(path) = &arguments.out else {
            if is_required {
                let what = "each side needs a place for its shares".to_owned();
                return refuse(what, "name a folder, or a file that ends in .parquet");
            }
            return Ok(Self::Caller);
        };
        if path == Path::new("-") {
            let what = "shares do not go to standard output".to_owned();
            return refuse(what, "name a folder, or a file that ends in .parquet");
        }
        match Format::of(path) {
            Ok((Format::Parquet, Packing::None)) => {}
            Ok(_) => {
                let what = format!("{} is a file of another format", path.display());
                return refuse(what, "name a folder, or a file that ends in .parquet");
            }
            Err(_) => {
                return Ok(Self::Folder(Folder::prepare("--out", path, arguments.force)?));
            }
        }
        ResultFile::prepare(arguments, path).map(Self::Parquet)
    }
}

/// A run, and what it tells.
struct ShareRun<'a, 'b> {
    running: ShareExecution,
    channel: &'a mut Channel,
    pool: &'a rayon::ThreadPool,
    told: &'a mut PhaseProgress<'b>,
}

impl ShareRun<'_, '_> {
    /// Hands all pieces to `put`, and ends the run.
    fn each(
        mut self,
        mut put: impl FnMut(&Piece) -> Result<(), Failure>,
    ) -> Result<Outcome, Failure> {
        loop {
            let (running, channel, told) = (&mut self.running, &mut *self.channel, &mut *self.told);
            match self.pool.install(|| running.next(channel, told))? {
                Some(piece) => put(&piece)?,
                None => break,
            }
        }
        self.told.end();
        Ok(self.running.finish(self.channel))
    }
}

/// An array of a folder, with its path for error messages.
struct Array<W> {
    path: PathBuf,
    writer: W,
}

impl<W> Array<W> {
    fn create(
        folder: &Folder,
        name: &str,
        begin: impl FnOnce(File) -> std::io::Result<W>,
    ) -> Result<Self, Failure> {
        let name = file_name(name);
        // Error messages name the final path, not the temporary one.
        let path = folder.target().join(&name);
        let writer = begin(folder.create(&name)?).map_err(|error| Failure::file(&path, error))?;
        Ok(Self { path, writer })
    }

    fn with(&mut self, write: impl FnOnce(&mut W) -> std::io::Result<()>) -> Result<(), Failure> {
        write(&mut self.writer).map_err(|error| Failure::file(&self.path, error))
    }

    fn end(self, finish: impl FnOnce(W) -> std::io::Result<()>) -> Result<(), Failure> {
        finish(self.writer).map_err(|error| Failure::file(&self.path, error))
    }
}

/// The numbers as elements of a ring, for its writer.
fn elements<T: Copy, R: Ring>(numbers: &[T], element: impl Fn(T) -> R) -> Zeroizing<Vec<R>> {
    Zeroizing::new(numbers.iter().map(|number| element(*number)).collect())
}

/// Writes the arrays of a folder, and what they are.
fn into_folder(
    folder: Folder,
    description: &Description,
    going: ShareRun<'_, '_>,
) -> Result<Outcome, Failure> {
    let n = description.places;
    // The arrays, and a page for each header.
    let arrays = 2 + description.columns.len() as u64;
    folder.check_space("--out", n.saturating_mul(8 * arrays) + 4096 * arrays)?;
    let mut matches = Array::create(&folder, "match", |file| Writer::<F2>::new(file, n))?;
    let mut columns = Vec::new();
    for column in &description.columns {
        let new = |file| Writer::<Z64>::new(file, n);
        columns.push(Array::create(&folder, &column.array, new)?);
    }
    let mut rows = match description.role.as_str() {
        "receiver" => Some(Array::create(&folder, "row", |file| SignedWriter::new(file, n))?),
        _ => None,
    };
    let outcome = going.each(|piece| {
        let bits = elements(&piece.matches, |bit| F2::new(bit == 1));
        matches.with(|writer| writer.write(&bits))?;
        for (array, shares) in columns.iter_mut().zip(&piece.columns) {
            let shares = elements(shares, Z64::new);
            array.with(|writer| writer.write(&shares))?;
        }
        if let (Some(array), Some(numbers)) = (&mut rows, &piece.rows) {
            array.with(|writer| writer.write(numbers))?;
        }
        Ok(())
    })?;
    matches.end(Writer::finish)?;
    for array in columns {
        array.end(Writer::finish)?;
    }
    if let Some(array) = rows {
        array.end(SignedWriter::finish)?;
    }
    let mut file = folder.create("shares.json")?;
    let written = file.write_all(description.to_json().as_bytes());
    let written = written.and_then(|()| file.sync_all());
    written.map_err(|error| Failure::file(&folder.target().join("shares.json"), error))?;
    folder.commit()?;
    Ok(outcome)
}

/// The columns of a table of shares.
fn schema(description: &Description) -> SchemaRef {
    let mut fields = vec![Field::new("match", DataType::UInt8, false)];
    let columns = description.columns.iter();
    fields.extend(columns.map(|column| Field::new(&column.array, DataType::UInt64, false)));
    if description.role == Role::Receiver.name() {
        fields.push(Field::new("row", DataType::Int64, false));
    }
    Arc::new(Schema::new(fields))
}

fn batch(schema: &SchemaRef, piece: &Piece) -> RecordBatch {
    let mut arrays: Vec<ArrayRef> = vec![Arc::new(UInt8Array::from(piece.matches.to_vec()))];
    for column in &piece.columns {
        arrays.push(Arc::new(UInt64Array::from(column.to_vec())));
    }
    if let Some(rows) = &piece.rows {
        arrays.push(Arc::new(Int64Array::from(rows.to_vec())));
    }
    RecordBatch::try_new(Arc::clone(schema), arrays).expect("the columns of the schema")
}

/// Writes a table.
fn into_parquet(
    file: ResultFile,
    description: &Description,
    going: ShareRun<'_, '_>,
) -> Result<Outcome, Failure> {
    let schema = schema(description);
    let output = Output { format: Format::Parquet, packing: Packing::None, like: None };
    let path = file.path.clone();
    let refused = |problem| {
        let why = format_args!("{}: {problem}", path.display());
        Failure::new(Status::Other, why)
    };
    let mut outcome = None;
    file.write(|file| {
        let mut sink = Sink::new(file, output, &schema).map_err(refused)?;
        sink.note(NOTE, &description.to_json());
        outcome = Some(going.each(|piece| sink.write(&batch(&schema, piece)).map_err(refused))?);
        sink.finish().map_err(refused)?;
        Ok(())
    })?;
    Ok(outcome.expect("the run has ended"))
}

/// Keeps the shares in memory.
fn into_memory(
    description: &Description,
    going: ShareRun<'_, '_>,
) -> Result<(Outcome, Shares), Failure> {
    // In full at once: an array that grows leaves copies behind.
    let places = description.places as usize;
    let names = description.columns.iter().map(|column| column.array.clone());
    let mut shares = Shares {
        matches: Vec::with_capacity(places),
        columns: names.map(|name| (name, Vec::with_capacity(places))).collect(),
        rows: None,
        description: description.to_json(),
    };
    if description.role == Role::Receiver.name() {
        shares.rows = Some(Vec::with_capacity(places));
    }
    let outcome = going.each(|piece| {
        shares.matches.extend_from_slice(&piece.matches);
        for ((_, column), new) in shares.columns.iter_mut().zip(&piece.columns) {
            column.extend_from_slice(new);
        }
        if let (Some(rows), Some(new)) = (&mut shares.rows, &piece.rows) {
            rows.extend_from_slice(new);
        }
        Ok(())
    })?;
    Ok((outcome, shares))
}

/// A run for shares. What it does not have yet, or no longer, is `None`.
pub(crate) struct SharesJob<'a> {
    arguments: &'a MatchingArguments,
    settings: Settings,
    place: Place,
    /// Whether an output is required: the caller does not want the shares in memory.
    is_required: bool,
    side: Option<PreparedTable>,
    shares: Option<Shares>,
    outcome: Option<Outcome>,
}

impl<'a> SharesJob<'a> {
    /// Checks the options.
    ///
    /// # Errors
    /// The option at fault.
    pub(crate) fn new(
        arguments: &'a MatchingArguments,
        columns: &[String],
        inputs: &MatchInputs<'_>,
    ) -> Result<Self, Failure> {
        if inputs.workers.is_some() {
            return Err(no_shares());
        }
        check_resume(arguments, "share")?;
        Ok(Self {
            arguments,
            settings: arguments.shares(columns)?,
            place: Place::Caller,
            is_required: !inputs.rows,
            side: None,
            shares: None,
            outcome: None,
        })
    }

    fn side(&self) -> &PreparedTable {
        self.side.as_ref().expect("the table has been read")
    }
}

impl Job for SharesJob<'_> {
    fn prepare_output(&mut self) -> Result<(), Failure> {
        self.place = Place::prepare(self.arguments, self.is_required)?;
        Ok(())
    }

    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        told: &mut PhaseProgress<'_>,
    ) -> Result<(), Failure> {
        self.side = Some(PreparedTable::read(table, reading, &self.settings, told)?);
        Ok(())
    }

    fn tell_counts(&self, table: &Table, reporter: &Reporter) -> String {
        TableFacts::from(self.side().summary()).tell(table, &[], reporter);
        many(self.side().summary().keys, "distinct key")
    }

    fn revealed(&self, _: Partitioning) -> Vec<String> {
        revealed(&self.settings)
    }

    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report), Failure> {
        text::plan(self.arguments, self.side(), revealed, reporter)
    }

    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report {
        let facts = TableFacts::from(self.side().summary());
        let fields = object(text::settings_of(&self.settings));
        let table = (table, "semi-honest".to_owned());
        facts.report(self.arguments, table, fields, revealed, reporter)
    }

    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<(), Failure> {
        let side = self.side.take().expect("the table has been read");
        let reporter = run.told.reporter;
        let mut channel = endpoint.open(self.arguments.common.timeout, reporter)?;
        run.reveal();
        let running = run.pool.install(|| side.start(&mut channel, run.told))?;
        let layout: Layout = *running.layout();
        let description = Description::new(&self.settings, &layout);
        let going =
            ShareRun { running, channel: &mut channel, pool: run.pool, told: &mut *run.told };
        let outcome = match std::mem::replace(&mut self.place, Place::Caller) {
            Place::Folder(folder) => into_folder(folder, &description, going)?,
            Place::Parquet(file) => into_parquet(file, &description, going)?,
            Place::Caller => {
                let (outcome, shares) = into_memory(&description, going)?;
                self.shares = Some(shares);
                outcome
            }
        };
        run.end_connection(channel);
        text::add_outcome(run.report, &self.settings, &description, &outcome);
        self.outcome = Some(outcome);
        Ok(())
    }

    fn work(&mut self, _: &dyn Workers, _: &mut RunState<'_, '_>) -> Result<bool, Failure> {
        Err(no_shares())
    }

    fn write(
        &mut self,
        _: &Table,
        _: &mut Report,
        _: &mut PhaseProgress<'_>,
    ) -> Result<MatchResult, Failure> {
        Ok(MatchResult { shares: self.shares.take(), ..MatchResult::default() })
    }

    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<(), Failure> {
        let outcome = self.outcome.as_ref().expect("the run has ended");
        reporter.say(text::summary(&self.settings, report, outcome));
        Ok(())
    }
}
