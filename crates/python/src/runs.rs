//! The subcommands.

use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arrow_schema::SchemaRef;
use numpy::PyArray1;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use volery_options::Arity;
use volery_run::embed::{self, Cancel, Failure, Operation, Run, Status, StreamVerb};

use crate::arrays;
use crate::job::{Job, JobOutput, Named, Parts, Result};
use crate::table::{Source, Table};
use crate::transport::CallerStream;

/// An open connection, and whether it can be used.
enum State {
    Open(Box<embed::Connection>),
    Busy,
    Closed,
}

/// An open connection to the peer, on which runs follow each other.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct Connection {
    state: Arc<Mutex<State>>,
    cancel: Cancel,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    fn new(connection: embed::Connection, cancel: Cancel) -> Self {
        let state = Arc::new(Mutex::new(State::Open(Box::new(connection))));
        Self { state, cancel }
    }

    /// Lets go of the connection. The threads of a byte stream of the caller take the lock of the
    /// interpreter meanwhile.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| {
            // Dropped without the lock, which a thread may want that holds the interpreter.
            let before = mem::replace(&mut *lock(&self.state), State::Closed);
            drop(before);
        });
    }
}

#[pymethods]
impl Connection {
    /// Closes the connection; a run that uses it fails.
    fn close(&self, py: Python<'_>) {
        if matches!(*lock(&self.state), State::Busy) {
            self.cancel.cancel();
        }
        self.forget(py);
    }

    /// Whether a run can use the connection.
    #[getter]
    fn is_open(&self) -> bool {
        !matches!(*lock(&self.state), State::Closed)
    }
}

/// Connects to the peer.
#[pyfunction]
pub(crate) fn open(py: Python<'_>, named: Named, watch: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let cancel = Cancel::default();
    let own = cancel.clone();
    let job = Job::begin(cancel, move |run, _| {
        let connection = Connection::new(embed::open(&named, run)?, own);
        Ok(Box::new(|py| Ok(Py::new(py, connection)?.into_any())))
    })?;
    job.finish(py, watch)
}

/// A connection over a `ByteStream` of `volery._transport`.
#[pyfunction]
pub(crate) fn over(py: Python<'_>, object: Py<PyAny>, named: Named) -> PyResult<Connection> {
    let times = embed::times(&named).map_err(|failure| raised(py, &failure))?;
    let cancel = Cancel::default();
    let stream = CallerStream { object, cancel: cancel.clone(), timeout: times.1 };
    Ok(Connection::new(embed::over(stream, times, cancel.clone()), cancel))
}

/// The two ends of a connection within this process.
#[pyfunction]
pub(crate) fn pair(py: Python<'_>, timeout: f64) -> PyResult<(Connection, Connection)> {
    let timeout = Duration::try_from_secs_f64(timeout)
        .map_err(|error| pyo3::exceptions::PyValueError::new_err(error.to_string()))?;
    let cancels = [Cancel::default(), Cancel::default()];
    let ends = py.detach(|| embed::pair(timeout, cancels.clone()));
    let [left, right] = ends.map_err(|failure| raised(py, &failure))?;
    let [first, second] = cancels;
    Ok((Connection::new(left, first), Connection::new(right, second)))
}

pub(crate) fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    crate::job::error(py, failure).unwrap_or_else(|error| error)
}

/// A connection lent to a run, which gives it back. If it is closed by then, the peer sees that.
struct LentConnection(Option<(Arc<Mutex<State>>, Box<embed::Connection>)>);

impl LentConnection {
    fn of(py: Python<'_>, connection: Option<&Bound<'_, Connection>>) -> PyResult<(Self, Cancel)> {
        let Some(connection) = connection else {
            return Ok((Self(None), Cancel::default()));
        };
        let Connection { state, cancel } = connection.get();
        let mut place = lock(state);
        let message = match mem::replace(&mut *place, State::Busy) {
            State::Open(connection) => {
                let lent = Self(Some((Arc::clone(state), connection)));
                return Ok((lent, cancel.clone()));
            }
            State::Busy => "session: another call uses it; a session makes one call at a time",
            State::Closed => {
                *place = State::Closed;
                "session: it is closed, by close() or by a call that failed; open a new one"
            }
        };
        drop(place);
        Err(raised(py, &Failure::new(Status::Usage, message)))
    }

    /// Runs `work` on the connection, if there is one.
    fn with<T>(
        mut self,
        work: impl FnOnce(Option<&mut embed::Connection>) -> Result<T>,
    ) -> Result<T> {
        match &mut self.0 {
            Some((_, connection)) => connection.run(|connection| work(Some(connection))),
            None => work(None),
        }
    }
}

impl Drop for LentConnection {
    fn drop(&mut self) {
        let Some((state, connection)) = self.0.take() else { return };
        let mut place = lock(&state);
        if matches!(*place, State::Busy) {
            *place = match connection.is_open() {
                true => State::Open(connection),
                false => State::Closed,
            };
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A run that goes on keeps its connection.
        if matches!(*lock(&self.state), State::Open(_)) {
            let _ = Python::try_attach(|py| self.forget(py));
        }
    }
}

type MaybeConnection<'a, 'py> = Option<&'a Bound<'py, Connection>>;

fn verb_of(name: &str) -> PyResult<Operation> {
    match name {
        "psi" => Ok(Operation::Psi),
        "lookup" => Ok(Operation::Lookup),
        _ => Err(PyRuntimeError::new_err("the verb is psi or lookup")),
    }
}

/// The options of a call, each a dictionary.
#[pyfunction]
pub(crate) fn options<'py>(py: Python<'py>, verb: &str) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let all = embed::options(verb)
        .ok_or_else(|| PyRuntimeError::new_err(format!("{verb} is not a call with options")))?;
    let described = all.into_iter().map(|option| {
        let told = PyDict::new(py);
        told.set_item("name", option.name)?;
        told.set_item("switch", option.arity == Arity::Switch)?;
        told.set_item("heading", option.heading)?;
        told.set_item("default", option.default)?;
        told.set_item("values", option.values)?;
        told.set_item("help", option.help)?;
        Ok(told)
    });
    described.collect()
}

/// `psi` and `lookup`: a dictionary with `report` (JSON), and where they exist `count`, `indices`,
/// `rules`, `rows`.
#[pyfunction]
pub(crate) fn matching(
    py: Python<'_>,
    verb: &str,
    named: Named,
    data: Option<&Bound<'_, PyAny>>,
    rows: bool,
    connection: MaybeConnection<'_, '_>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let verb = verb_of(verb)?;
    let source = Source::of(data)?;
    let (lent, cancel) = LentConnection::of(py, connection)?;
    let job = Job::begin(cancel, move |run, _| {
        let table = source.map(Source::read).transpose()?;
        let matched =
            lent.with(|connection| embed::matching(verb, &named, table, rows, connection, run))?;
        Ok(Box::new(move |py| {
            let all = PyDict::new(py);
            all.set_item("report", matched.report)?;
            all.set_item("count", matched.count)?;
            let indices = matched.indices.map(|all| PyArray1::from_vec(py, all));
            all.set_item("indices", indices)?;
            let rules = matched.rules.map(|all| PyArray1::from_vec(py, all));
            all.set_item("rules", rules)?;
            let table = |(schema, batches): (SchemaRef, Vec<_>)| Table { schema, batches };
            let rows = matched.rows.map(table);
            all.set_item("rows", rows.map(|rows| Py::new(py, rows)).transpose()?)?;
            let shares = matched.shares.map(|shares| arrays::shares(py, shares));
            all.set_item("shares", shares.transpose()?)?;
            Ok(all.into_any().unbind())
        }))
    })?;
    job.finish(py, watch)
}

/// `lint`: its report.
#[pyfunction]
pub(crate) fn lint(
    py: Python<'_>,
    files: Vec<PathBuf>,
    named: Named,
    data: Option<&Bound<'_, PyAny>>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let source = Source::of(data)?;
    text(py, watch, move |run, _| {
        let table = source.map(Source::read).transpose()?;
        embed::lint(files, &named, table, run)
    })
}

/// `keygen`: the fingerprint.
#[pyfunction]
pub(crate) fn keygen(
    py: Python<'_>,
    named: Named,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    text(py, watch, move |run, _| embed::keygen(&named, run))
}

/// `verify`: its report.
#[pyfunction]
pub(crate) fn verify(
    py: Python<'_>,
    folders: [PathBuf; 2],
    named: Named,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    text(py, watch, move |run, _| embed::verify(folders, &named, run))
}

pub(crate) fn text(
    py: Python<'_>,
    watch: &Bound<'_, PyAny>,
    work: impl FnOnce(&Run, Parts) -> Result<String> + Send + 'static,
) -> PyResult<Py<PyAny>> {
    let job = Job::begin(Cancel::default(), move |run, parts| {
        let text = work(run, parts)?;
        Ok(Box::new(|py| Ok(text.into_pyobject(py)?.into_any().unbind())))
    })?;
    job.finish(py, watch)
}

/// `ope`: report and values.
#[pyfunction]
pub(crate) fn ope(
    py: Python<'_>,
    named: Named,
    data: Option<&Bound<'_, PyAny>>,
    connection: MaybeConnection<'_, '_>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let input = data.map(arrays::read).transpose()?;
    let (lent, cancel) = LentConnection::of(py, connection)?;
    let job = Job::begin(cancel, move |run, _| {
        let (report, values) =
            lent.with(|connection| embed::ope(&named, input, connection, run))?;
        Ok(Box::new(move |py| {
            let values = values.map(|values| PyArray1::from_vec(py, values));
            Ok((report, values).into_pyobject(py)?.into_any().unbind())
        }))
    })?;
    job.finish(py, watch)
}

/// `matvec`: report and result.
#[pyfunction]
pub(crate) fn matvec(
    py: Python<'_>,
    named: Named,
    data: &Bound<'_, PyAny>,
    connection: MaybeConnection<'_, '_>,
    watch: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let input = Some(arrays::read(data)?);
    let (lent, cancel) = LentConnection::of(py, connection)?;
    let job = Job::begin(cancel, move |run, _| {
        let (report, result) =
            lent.with(|connection| embed::matvec(&named, input, connection, run))?;
        Ok(Box::new(move |py| {
            let result = result.map(|result| arrays::write(py, result));
            Ok((report, result).into_pyobject(py)?.into_any().unbind())
        }))
    })?;
    job.finish(py, watch)
}

/// The parts of a stream of correlations, as dictionaries of arrays; after the last one, `report`
/// has the report.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct Stream {
    job: Mutex<Option<Job>>,
    letters: [&'static str; 3],
    words: usize,
    report: Mutex<Option<Py<PyAny>>>,
}

#[pymethods]
impl Stream {
    /// The next part; `None` after the last one.
    fn next<'py>(
        &self,
        py: Python<'py>,
        watch: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Out of its place meanwhile, so that a second thread does not wait for a lock.
        let taken = self.job.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(mut job) = taken else {
            return Ok(None);
        };
        match job.next(py, watch)? {
            JobOutput::Part(part) => {
                *self.job.lock().unwrap_or_else(PoisonError::into_inner) = Some(job);
                arrays::part(py, part, self.letters, self.words).map(Some)
            }
            JobOutput::Finished(finished) => {
                let report = finished(py)?;
                *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
                Ok(None)
            }
        }
    }

    /// The report, after the last part.
    #[getter]
    fn report(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        report.as_ref().map(|report| report.clone_ref(py))
    }

    /// Ends the stream before its end; the peer then fails.
    fn close(&self) {
        drop(self.job.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// `cot` and `vole` in parts of `chunk` correlations, or all in one. `width`: words of a value.
#[pyfunction]
pub(crate) fn stream(
    py: Python<'_>,
    verb: &str,
    named: Named,
    delta: Option<[u64; 2]>,
    width: usize,
    chunk: Option<usize>,
    connection: MaybeConnection<'_, '_>,
) -> PyResult<Stream> {
    let is_sender = named.iter().any(|(name, value)| name == "role" && value == "sender");
    let (verb, letters) = match (verb, is_sender) {
        ("cot", true) => (StreamVerb::Cot, ["delta", "u", "v"]),
        ("cot", false) => (StreamVerb::Cot, ["delta", "u", "w"]),
        ("random", true) => (StreamVerb::RandomOt, ["delta", "m0", "m1"]),
        ("random", false) => (StreamVerb::RandomOt, ["delta", "u", "m"]),
        ("vole", true) => (StreamVerb::Vole, ["x", "u", "v"]),
        ("vole", false) => (StreamVerb::Vole, ["x", "u", "w"]),
        _ => return Err(PyRuntimeError::new_err("the verb is cot, random or vole")),
    };
    let (lent, cancel) = LentConnection::of(py, connection)?;
    let job = Job::begin(cancel, move |run, parts: Parts| {
        let report = lent.with(|connection| {
            let put = &mut |part| parts.put(part);
            embed::stream(verb, &named, delta, chunk, connection, run, put)
        })?;
        Ok(Box::new(|py| Ok(report.into_pyobject(py)?.into_any().unbind())))
    })?;
    Ok(Stream { job: Mutex::new(Some(job)), letters, words: width, report: Mutex::new(None) })
}
