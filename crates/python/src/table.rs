//! Tables from Python and to Python.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::builder::{
    BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder, Int64Builder,
    LargeBinaryBuilder, LargeStringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchReader};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_pyarrow::FromPyArrow;
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyCapsule, PyFloat, PyInt, PyString};
use volery_run::embed::{Failure, Status};

/// Rows in memory, for anything that reads Arrow.
#[derive(PartialEq)]
#[pyclass(frozen, eq, module = "volery._volery")]
pub(crate) struct Table {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// The rows as a capsule with an Arrow stream. The types are those of the table, whatever
    /// `requested_schema` is.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok::<_, ArrowError>);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        let stream = FFI_ArrowArrayStream::new(Box::new(reader));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// The names and types as a capsule with an Arrow schema.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The rows as an Arrow stream in bytes.
    fn to_bytes(&self) -> PyResult<Vec<u8>> {
        let write = || -> Result<_, ArrowError> {
            let mut out = StreamWriter::try_new(Vec::new(), &self.schema)?;
            self.batches.iter().try_for_each(|batch| out.write(batch))?;
            out.into_inner()
        };
        write().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The rows of an Arrow stream in bytes.
    #[staticmethod]
    fn of_bytes(bytes: &[u8]) -> PyResult<Self> {
        let read = || -> Result<_, ArrowError> {
            let stream = StreamReader::try_new(bytes, None)?;
            let schema = stream.schema();
            Ok(Self { schema, batches: stream.collect::<Result<_, _>>()? })
        };
        read().map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Names and types of the columns.
    fn columns(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields.map(|field| (field.name().clone(), field.data_type().to_string())).collect()
    }
}

/// A stream of records of a caller, whose types are known. A run takes it.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct Batches(Mutex<Option<RecordBatchStreamReader>>);

#[pymethods]
impl Batches {
    /// Takes the stream of an object with `__arrow_c_stream__`.
    #[new]
    fn new(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        RecordBatchStreamReader::from_pyarrow_bound(data)
            .map(|stream| Self(Mutex::new(Some(stream))))
    }
}

/// A table from a caller, to be read by the run.
pub(crate) enum Source {
    Stream(RecordBatchStreamReader),
    Batches(SchemaRef, Vec<RecordBatch>),
}

impl Source {
    /// The table of an object with `__arrow_c_stream__`; `None` of `None`.
    pub(crate) fn of(data: Option<&Bound<'_, PyAny>>) -> PyResult<Option<Self>> {
        let Some(data) = data else { return Ok(None) };
        if let Ok(table) = data.cast::<Table>() {
            let table = table.get();
            let (schema, batches) = (Arc::clone(&table.schema), table.batches.clone());
            return Ok(Some(Self::Batches(schema, batches)));
        }
        if let Ok(batches) = data.cast::<Batches>() {
            let stream = batches.get().0.lock().unwrap_or_else(PoisonError::into_inner).take();
            let taken = || PyValueError::new_err("the stream was read already");
            return stream.map(|stream| Some(Self::Stream(stream))).ok_or_else(taken);
        }
        RecordBatchStreamReader::from_pyarrow_bound(data).map(|stream| Some(Self::Stream(stream)))
    }

    /// Reads all rows.
    pub(crate) fn read(self) -> Result<volery_tables::Table, Failure> {
        let (schema, batches) = self.collect()?;
        volery_tables::Table::from_batches(schema, batches).map_err(Failure::from)
    }

    /// All rows.
    pub(crate) fn into_batches(self, py: Python<'_>) -> PyResult<Vec<RecordBatch>> {
        let collected = py.detach(|| self.collect());
        let (_, batches) = collected.map_err(|failure| crate::runs::raised(py, &failure))?;
        Ok(batches)
    }

    fn collect(self) -> Result<(SchemaRef, Vec<RecordBatch>), Failure> {
        match self {
            Self::Batches(schema, batches) => Ok((schema, batches)),
            Self::Stream(stream) => {
                let schema = stream.schema();
                let batches: Result<_, _> = stream.collect();
                let failed = |error| Failure::new(Status::Other, format_args!("data: {error}"));
                Ok((schema, batches.map_err(failed)?))
            }
        }
    }
}

/// The meaning of the whole numbers of a list: `date` (days since 1970), `datetime` or, with a time
/// zone, `timestamp` (microseconds since then), `decimal` with its decimal places.
type Kind = Option<(String, i8)>;

/// A table of lists. A list has strings, bytes, integers, numbers, or truth values, all of one
/// kind, and `None`.
#[pyfunction]
pub(crate) fn columns(lists: Vec<(String, Bound<'_, PyAny>, Kind)>) -> PyResult<Table> {
    let mut fields = Vec::new();
    let mut arrays: Vec<ArrayRef> = Vec::new();
    for (name, list, kind) in lists {
        let array = column(&name, &list, &kind)?;
        if let Some(first) = arrays.first()
            && first.len() != array.len()
        {
            let (expected, found) = (first.len(), array.len());
            return Err(PyValueError::new_err(format!(
                "column {name:?} has {found} values where the first column has {expected}"
            )));
        }
        fields.push(Field::new(name, array.data_type().clone(), true));
        arrays.push(array);
    }
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays);
    let batch = batch.map_err(|error| PyValueError::new_err(error.to_string()))?;
    let batches = vec![batch];
    Ok(Table { schema, batches })
}

fn column(name: &str, list: &Bound<'_, PyAny>, kind: &Kind) -> PyResult<ArrayRef> {
    let mut first = None;
    for value in list.try_iter()? {
        let value = value?;
        if !value.is_none() {
            first = Some(value);
            break;
        }
    }
    /// Appends all values of the list with the builder.
    macro_rules! build {
        ($builder:ident, $value:ident: $kind:ty => $append:expr) => {{
            let mut $builder = $builder;
            for (row, value) in list.try_iter()?.enumerate() {
                let value = value?;
                if value.is_none() {
                    $builder.append_null();
                    continue;
                }
                let $value = value.extract::<$kind>().map_err(|_| {
                    let kind = value.get_type().name().map(|name| name.to_string());
                    PyTypeError::new_err(format!(
                        "column {name:?}: {} in row {} does not fit the values before it",
                        kind.unwrap_or_default(),
                        row + 1
                    ))
                })?;
                $append;
            }
            Arc::new($builder.finish()) as ArrayRef
        }};
    }
    match kind.as_ref().map(|(kind, places)| (kind.as_str(), *places)) {
        Some(("date", _)) => {
            let builder = Date32Builder::new();
            return Ok(build!(builder, value: i32 => builder.append_value(value)));
        }
        Some(("decimal", places)) => {
            let builder = Decimal128Builder::new().with_precision_and_scale(38, places);
            let builder = builder.map_err(|error| PyValueError::new_err(error.to_string()))?;
            return Ok(build!(builder, value: i128 => builder.append_value(value)));
        }
        Some((kind, _)) => {
            let zone = (kind == "timestamp").then_some("UTC");
            let builder = TimestampMicrosecondBuilder::new().with_timezone_opt(zone);
            return Ok(build!(builder, value: i64 => builder.append_value(value)));
        }
        None => {}
    }
    let Some(first) = first else {
        let builder = LargeStringBuilder::new();
        return Ok(build!(builder, value: String => builder.append_value(value)));
    };
    Ok(if first.is_instance_of::<PyString>() {
        let builder = LargeStringBuilder::new();
        build!(builder, value: pyo3::pybacked::PyBackedStr => builder.append_value(value))
    } else if first.is_instance_of::<PyBytes>() {
        let builder = LargeBinaryBuilder::new();
        build!(builder, value: pyo3::pybacked::PyBackedBytes => builder.append_value(value))
    } else if first.is_instance_of::<PyBool>() {
        let builder = BooleanBuilder::new();
        build!(builder, value: bool => builder.append_value(value))
    } else if first.is_instance_of::<PyFloat>() {
        let builder = Float64Builder::new();
        build!(builder, value: f64 => builder.append_value(value))
    } else if first.is_instance_of::<PyInt>() || first.hasattr("__index__")? {
        let fits = |value: PyResult<Bound<'_, PyAny>>| value?.extract::<Option<i64>>();
        if list.try_iter()?.all(|value| fits(value).is_ok()) {
            let builder = Int64Builder::new();
            build!(builder, value: i64 => builder.append_value(value))
        } else {
            let builder = UInt64Builder::new();
            build!(builder, value: u64 => builder.append_value(value))
        }
    } else {
        let kind = first.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "column {name:?} has values of type {kind}; give str, bytes, int, float, bool, Decimal, date, datetime or UUID, or a table of polars, pyarrow or pandas"
        )));
    })
}
