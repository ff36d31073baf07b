//! `volery psi --result shares`: shares of the matching rows, for what the two sides compute next.

pub(crate) mod description;

use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, UInt8Array, UInt64Array};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde_json::{Value, json};
use volery_channel::{Channel, Role};
use volery_field::{F2, Ring, Z64};
use volery_matching::Partitioning;
use volery_matching::shares::{
    Layout, Outcome, Piece, PreparedTable, Settings, ShareExecution, revealed,
};
use volery_matching::totals::decimal;
use volery_os::fs::sync_all;
use volery_tables::{Format, Output, Packing, Reading, Sink, Table};
use zeroize::Zeroizing;

use self::description::Description;
use crate::cluster::Workers;
use crate::endpoint::Endpoint;
use crate::failure::{Failure, Result, Status};
use crate::files::Array;
use crate::matching::arguments::MatchingArguments;
use crate::matching::cost::{Prediction, add_cost, failures};
use crate::matching::job::{Job, MatchInputs, RunState};
use crate::matching::text::TableFacts;
use crate::output::Folder;
use crate::paths::ResultFile;
use crate::progress::PhaseProgress;
use crate::randomness::hex;
use crate::report::Report;
use crate::reporter::{LineKind, Reporter, many, object};
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
    fn prepare(arguments: &MatchingArguments, is_required: bool) -> Result<Self> {
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
        ResultFile::prepare(path, &arguments.input, arguments.force).map(Self::Parquet)
    }
}

/// A run, and what it tells.
struct ShareRun<'a, 'b> {
    running: ShareExecution,
    channel: &'a mut Channel,
    pool: &'a crate::options::Pool,
    told: &'a mut PhaseProgress<'b>,
}

impl ShareRun<'_, '_> {
    /// Hands all pieces to `put`, and ends the run.
    fn each(mut self, mut put: impl FnMut(&Piece) -> Result<()>) -> Result<Outcome> {
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

/// The numbers as elements of a ring, for its writer.
fn elements<T: Copy, R: Ring>(numbers: &[T], element: impl Fn(T) -> R) -> Zeroizing<Vec<R>> {
    Zeroizing::new(numbers.iter().map(|number| element(*number)).collect())
}

/// Writes the arrays of a folder, and what they are.
fn into_folder(
    folder: Folder,
    description: &Description,
    going: ShareRun<'_, '_>,
) -> Result<Outcome> {
    let n = description.places;
    // The arrays, and a page for each header.
    let arrays = 2 + description.columns.len() as u64;
    folder.check_space("--out", n.saturating_mul(8 * arrays) + 4096 * arrays)?;
    let mut matches = Array::<F2>::create(&folder, "match", n)?;
    let columns = description.columns.iter();
    let columns = columns.map(|column| Array::<Z64>::create(&folder, &column.array, n));
    let mut columns = columns.collect::<Result<Vec<_>, _>>()?;
    let is_receiver = description.role == Role::Receiver.name();
    let mut rows = is_receiver.then(|| Array::signed(&folder, "row", n)).transpose()?;
    let outcome = going.each(|piece| {
        matches.write(&elements(&piece.matches, |bit| F2::new(bit == 1)))?;
        for (array, shares) in columns.iter_mut().zip(&piece.columns) {
            array.write(&elements(shares, Z64::new))?;
        }
        if let (Some(array), Some(numbers)) = (&mut rows, &piece.rows) {
            array.write(&elements(numbers, |row| Z64::new(row as u64)))?;
        }
        Ok(())
    })?;
    matches.finish()?;
    columns.into_iter().chain(rows).try_for_each(Array::finish)?;
    let mut file = folder.create("shares.json")?;
    let written = file.write_all(description.to_json().as_bytes());
    let written = written.and_then(|()| sync_all(&file));
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
) -> Result<Outcome> {
    let schema = schema(description);
    let output = Output { format: Format::Parquet, packing: Packing::None, like: None };
    let path = file.path().to_owned();
    let refused = |problem| {
        let why = format_args!("{}: {problem}", path.display());
        Failure::new(Status::Other, why)
    };
    let mut outcome = None;
    file.write(|file| {
        let mut sink = Sink::new(file, output, &schema).map_err(refused)?;
        sink.note(NOTE, &description.to_json());
        outcome = Some(
            going.each(|piece| sink.write(&batch(&schema, piece)).map(|_| ()).map_err(refused))?,
        );
        sink.finish().map_err(refused)?;
        Ok(())
    })?;
    Ok(outcome.expect("the run has ended"))
}

/// Keeps the shares in memory.
fn into_memory(description: &Description, going: ShareRun<'_, '_>) -> Result<(Outcome, Shares)> {
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

/// Adds the shape of the shares, what the run cost, and how sure it is.
pub(crate) fn add_outcome(
    report: &mut Report,
    settings: &Settings,
    description: &Description,
    outcome: &Outcome,
) {
    let layout = &outcome.layout;
    let [items, peer_items] = settings.role.sides(layout.sizes);
    add_cost(report, [outcome.traffic, outcome.setup_traffic], [outcome.setup, outcome.online]);
    let parameters = &outcome.parameters;
    report.parameters = Some(parameters.to_string());
    report.assumption = Some(format!(
        "{}; {:.0} statistical",
        parameters.assumption(),
        parameters.failure_bits().floor()
    ));
    let causes = parameters.failures().into_iter().map(|cause| (cause.what, cause.bits));
    report.result.extend(object(json!({
        "session": hex(layout.session.as_bytes()),
        "protocol": protocol(settings),
        "shares": description,
        "items": items,
        "peer_items": peer_items,
        "failures": failures(causes, 0.0),
        "failure_log2": -parameters.failure_bits(),
        "statistical_bits": parameters.failure_bits(),
    })));
    let rules = report.result.get_mut("rules");
    if let Some(Value::Object(rule)) = rules.and_then(|rules| rules.get_mut(0)) {
        rule.insert("peer_keys".to_owned(), peer_items.into());
    }
}

fn protocol(settings: &Settings) -> &'static str {
    match settings.name {
        volery_matching::ProtocolChoice::CircuitLow => "circuit-low",
        _ => "circuit",
    }
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
    pub(crate) fn new(arguments: &'a MatchingArguments, inputs: &MatchInputs<'_>) -> Result<Self> {
        if inputs.workers.is_some() {
            return Err(no_shares());
        }
        check_resume(arguments, "share")?;
        Ok(Self {
            arguments,
            settings: arguments.options.shares()?,
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
    fn prepare_output(&mut self) -> Result<()> {
        self.place = Place::prepare(self.arguments, self.is_required)?;
        Ok(())
    }

    fn read(
        &mut self,
        table: &Table,
        reading: &Reading,
        told: &mut PhaseProgress<'_>,
    ) -> Result<()> {
        self.side = Some(PreparedTable::read(table, reading, &self.settings, told)?);
        Ok(())
    }

    fn facts(&self) -> TableFacts<'_> {
        self.side().summary().into()
    }

    fn revealed(&self, _: Partitioning) -> Vec<String> {
        revealed(&self.settings)
    }

    fn plan(&self, revealed: &[String], reporter: &Reporter) -> Result<(String, Report)> {
        let (arguments, side) = (self.arguments, self.side());
        let own = side.summary().keys;
        let peer = arguments.peer_rows.unwrap_or(own);
        let columns = self.settings.columns.len() as u64;
        let prediction = Prediction {
            arguments,
            rows: side.summary().rows,
            keys: [own, peer],
            security: "semi-honest".to_owned(),
            plan: side.plan(peer, arguments.link.unwrap_or_default())?,
            own: format!("{}, {}", many(own, "distinct key"), many(columns, "column")),
            has_columns: true,
            without: "reading files",
        };
        let fields = json!({ "kind": "shares", "row_order": self.settings.row_order });
        Ok(prediction.tell(revealed, object(fields), reporter))
    }

    fn report(&self, table: &Table, revealed: &[String], reporter: &Reporter) -> Report {
        let facts = TableFacts::from(self.side().summary());
        let Settings { row_order, bound, decimals, columns, .. } = &self.settings;
        let has_columns = !columns.is_empty();
        let fields = object(json!({
            "kind": "shares",
            "row_order": row_order,
            "bound": has_columns.then(|| decimal(*bound as i64, *decimals)),
            "decimals": has_columns.then_some(decimals),
        }));
        let table = (table, "semi-honest".to_owned());
        facts.report(self.arguments, table, fields, revealed, reporter)
    }

    fn meet(&mut self, endpoint: Endpoint<'_>, run: &mut RunState<'_, '_>) -> Result<()> {
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
        add_outcome(run.report, &self.settings, &description, &outcome);
        self.outcome = Some(outcome);
        Ok(())
    }

    fn work(&mut self, _: &dyn Workers, _: &mut RunState<'_, '_>) -> Result<bool> {
        Err(no_shares())
    }

    fn write(
        &mut self,
        _: &Table,
        _: &mut Report,
        _: &mut PhaseProgress<'_>,
    ) -> Result<MatchResult> {
        Ok(MatchResult { shares: self.shares.take(), ..MatchResult::default() })
    }

    fn end(&mut self, report: &Report, reporter: &Reporter) -> Result<()> {
        let outcome = self.outcome.as_ref().expect("the run has ended");
        let layout = &outcome.layout;
        let own = usize::from(self.settings.role == Role::Receiver);
        let columns = layout.columns.iter().map(|side| side.count as u64).sum();
        let text = format!(
            "{}: shares of {} and {} for {} here and {} at the peer, using {}, semi-honest, in {:.3} \
             s, {} bytes sent, {} received",
            self.settings.role.name(),
            many(layout.places, "place"),
            many(columns, "column"),
            many(layout.sizes[own], "key"),
            layout.sizes[1 - own],
            protocol(&self.settings),
            report.seconds.total.unwrap_or_default(),
            outcome.traffic.bytes_sent,
            outcome.traffic.bytes_received,
        );
        reporter.line(LineKind::Result, text, report.done());
        Ok(())
    }
}
