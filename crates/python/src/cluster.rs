//! The functions that the driver and the tasks of a cluster call.

use std::borrow::Cow;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use arrow_pyarrow::FromPyArrow as _;
use arrow_schema::Schema;
use numpy::PyArray1;
use pyo3::exceptions::{PyUserWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use volery_run::embed::{self, Failure};

use crate::job::Named;
use crate::runs::{raised, text};
use crate::table::{Source, Table};

fn of(rows: RecordBatch) -> Table {
    Table { schema: rows.schema(), batches: vec![rows] }
}

/// The items of the rows of a table that comes in pieces.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct Items(Mutex<embed::cluster::Items>);

#[pymethods]
impl Items {
    /// Types and normalisers of the keys.
    #[getter]
    fn description(&self) -> String {
        self.lock().description().to_owned()
    }

    /// The columns of the payload in a line, or None.
    #[getter]
    fn payload(&self) -> Option<String> {
        self.lock().payload().map(str::to_owned)
    }

    /// For each row `item_0`, .., `payload` where there is one, `digest`.
    fn batch(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<Table> {
        let source = Source::of(Some(data))?;
        let rows = py.detach(|| {
            let source = source.ok_or_else(|| Failure::usage("data", "required"))?;
            let table = source.read()?;
            self.lock().batch(&table).map_err(Failure::from)
        });
        rows.map(of).map_err(|failure| raised(py, &failure))
    }

    /// The findings in the rows so far.
    fn counts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        let counts = self.lock().counts().cloned().unwrap_or_default();
        all.set_item("rows", counts.rows)?;
        let rules = counts.rules.iter().map(|rule| {
            let counts = PyDict::new(py);
            counts.set_item("keys", rule.keys)?;
            counts.set_item("empty", rule.empty)?;
            counts.set_item("malformed", rule.malformed)?;
            counts.set_item("changed", rule.changed)?;
            Ok(counts)
        });
        all.set_item("rules", rules.collect::<PyResult<Vec<_>>>()?)?;
        Ok(all)
    }
}

impl Items {
    fn lock(&self) -> std::sync::MutexGuard<'_, embed::cluster::Items> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The items of tables with this schema: a schema or anything with a stream of records.
#[pyfunction]
pub(crate) fn items(py: Python<'_>, schema: &Bound<'_, PyAny>, named: Named) -> PyResult<Items> {
    let schema = Arc::new(Schema::from_pyarrow_bound(schema)?);
    let items = embed::cluster::items(schema, &named);
    let items = items.map_err(|failure| raised(py, &failure))?;
    Ok(Items(Mutex::new(items)))
}

/// Number, hash and rows of a slice.
type SliceParts = (u8, Cow<'static, [u8]>, u64);

/// Whole slices of a table's digest, from the column `digest` of its rows in ascending order.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct Slices(Mutex<Option<embed::cluster::Slices>>);

#[pymethods]
impl Slices {
    #[new]
    fn new() -> Self {
        Self(Mutex::new(Some(embed::cluster::Slices::default())))
    }

    /// Adds rows.
    fn add(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let wrong = || PyValueError::new_err("a column 'digest' of 32 bytes, ascending, is needed");
        let batches = Source::of(Some(data))?.ok_or_else(wrong)?.into_batches(py)?;
        let added = py.detach(|| {
            let mut slices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // One that is wrong leaves none.
            let mut all = slices.take()?;
            for batch in &batches {
                if !all.add(batch.column_by_name("digest")?) {
                    return None;
                }
            }
            *slices = Some(all);
            Some(())
        });
        added.ok_or_else(wrong)
    }

    /// Number, hash and rows of each slice; the object is of no use any more.
    fn finish(&self) -> PyResult<Vec<SliceParts>> {
        let mut slices = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all = slices.take();
        let all =
            all.ok_or_else(|| PyValueError::new_err("rows were wrong, or it has finished"))?;
        let of = |slice: embed::cluster::Slice| {
            (slice.number, Cow::Owned(slice.hash.to_vec()), slice.rows)
        };
        Ok(all.finish().into_iter().map(of).collect())
    }
}

/// The digest of a table and its number of rows, from all slices.
#[pyfunction]
pub(crate) fn digest(slices: Vec<(u8, [u8; 32], u64)>) -> PyResult<(String, u64)> {
    let of = |(number, hash, rows)| embed::cluster::Slice { number, hash, rows };
    let slices: Vec<_> = slices.into_iter().map(of).collect();
    embed::cluster::digest(&slices)
        .ok_or_else(|| PyValueError::new_err("rows of one slice were not together"))
}

/// The shards of the column `item`, under the key of a manifest.
#[pyfunction]
pub(crate) fn shards<'py>(
    py: Python<'py>,
    key: [u8; 32],
    count: u32,
    data: &Bound<'_, PyAny>,
) -> PyResult<Bound<'py, PyArray1<u32>>> {
    let none = || PyValueError::new_err("a column 'item' with values of 16 bytes is needed");
    let batches = Source::of(Some(data))?.ok_or_else(none)?.into_batches(py)?;
    let found = py.detach(|| {
        let mut all = Vec::new();
        for batch in &batches {
            let items = batch.column_by_name("item")?;
            all.extend(embed::cluster::shards(&key, count, items)?);
        }
        Some(all)
    });
    Ok(PyArray1::from_vec(py, found.ok_or_else(none)?))
}

/// The secrets of a driver, to be kept before it agrees with the peer's: those of an earlier start
/// if they fit, or new ones.
#[pyfunction]
pub(crate) fn secrets(
    py: Python<'_>,
    named: Named,
    facts: &str,
    earlier: Option<&str>,
) -> PyResult<String> {
    let secrets = py.detach(|| embed::cluster::secrets(&named, facts, earlier));
    let secrets = secrets.map_err(|failure| raised(py, &failure))?;
    Ok(secrets.to_string())
}

/// Agrees with the peer's driver: the manifest. `secret` is what `secrets` returned.
/// `watch.keep(manifest)` puts it into storage before the peer goes on.
#[pyfunction]
pub(crate) fn agree(
    py: Python<'_>,
    named: Named,
    facts: String,
    secret: String,
    earlier: Option<String>,
    begun: bool,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    text(py, watch, move |run, parts| {
        let earlier = (earlier.as_deref(), begun);
        let keep = &mut |manifest: &str| parts.keep(manifest);
        embed::cluster::agree(&named, (&facts, &secret), earlier, keep, run)
    })
}

/// Opens the totals of a run with the peer's driver: the report. `agreed` is the manifest, and the
/// secrets with which this side agreed on it; `found` is what the workers kept of each shard.
/// `watch.keep(text)` gets the totals, then an empty text when the other side has them, too;
/// `opened` is the former of an earlier start, and whether it got the latter.
#[pyfunction]
pub(crate) fn open_totals(
    py: Python<'_>,
    named: Named,
    agreed: (String, String),
    found: Vec<Vec<u8>>,
    opened: Option<(String, bool)>,
    no_group: Option<u64>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let opening = embed::cluster::Opening { found, opened, no_group };
    text(py, watch, move |run, parts| {
        let keep = &mut |totals: &str| parts.keep(totals);
        embed::cluster::open(&named, (&agreed.0, &agreed.1), opening, keep, run)
    })
}

/// The consequences of the words of a result for sets of these sizes, that of this side first, as
/// JSON; None for rows.
#[pyfunction]
pub(crate) fn totals(py: Python<'_>, named: Named, sizes: [u64; 2]) -> PyResult<Option<String>> {
    let about = embed::cluster::totals(&named, sizes);
    about.map_err(|failure| raised(py, &failure))
}

/// The run certificates of all workers.
#[pyfunction]
pub(crate) fn tickets(py: Python<'_>, manifest: &str, named: Named) -> PyResult<Vec<String>> {
    let tickets = py.detach(|| embed::cluster::tickets(manifest, &named));
    tickets.map_err(|failure| raised(py, &failure))
}

/// The matches in an object of a worker: `item`, and the columns of the payload.
#[pyfunction]
#[pyo3(signature = (data, payload=None))]
pub(crate) fn found(py: Python<'_>, data: &[u8], payload: Option<&str>) -> PyResult<Table> {
    let found = py.detach(|| embed::cluster::found(data, payload).map_err(Failure::from));
    let (rows, refused) = found.map_err(|failure| raised(py, &failure))?;
    if refused > 0 {
        let what =
            format!("values of the sender that are none of their columns, and null: {refused}");
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(what)?, 1)?;
    }
    Ok(of(rows))
}
