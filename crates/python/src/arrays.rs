//! Arrays of numbers from Python and to Python, as NumPy arrays.

use numpy::{
    PyArray1, PyArrayDyn, PyArrayMethods as _, PyReadonlyArrayDyn, PyUntypedArrayMethods as _,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use volery_run::embed::npy::{self, Values as Numbers};
use volery_run::embed::{Failure, Part, Shares, Values};

use crate::runs::raised;

/// The numbers of an array of `uint64` or `float64`, row by row.
pub(crate) fn read(array: &Bound<'_, PyAny>) -> PyResult<npy::Table> {
    if let Ok(words) = array.extract::<PyReadonlyArrayDyn<'_, u64>>() {
        let all: Vec<_> = words.as_array().iter().copied().collect();
        return table(array.py(), words.shape().to_vec(), Numbers::Words(all.into()));
    }
    if let Ok(reals) = array.extract::<PyReadonlyArrayDyn<'_, f64>>() {
        let all: Vec<_> = reals.as_array().iter().copied().collect();
        return table(array.py(), reals.shape().to_vec(), Numbers::Reals(all.into()));
    }
    Err(PyTypeError::new_err("an array of uint64 or float64 is needed"))
}

fn table(py: Python<'_>, shape: Vec<usize>, numbers: Numbers) -> PyResult<npy::Table> {
    let table = npy::Table::new(shape, numbers);
    table.map_err(|error| raised(py, &Failure::usage("the array", error)))
}

/// The array of these numbers, of one dimension.
pub(crate) fn write(py: Python<'_>, numbers: Numbers) -> Bound<'_, PyAny> {
    match numbers {
        Numbers::Words(mut words) => PyArray1::from_vec(py, std::mem::take(&mut *words)).into_any(),
        Numbers::Reals(mut reals) => PyArray1::from_vec(py, std::mem::take(&mut *reals)).into_any(),
    }
}

fn shaped<'py>(py: Python<'py>, words: Vec<u64>, shape: &[usize]) -> PyResult<Bound<'py, PyAny>> {
    let array: Bound<'py, PyArrayDyn<u64>> =
        PyArray1::from_vec(py, words).reshape(shape.to_vec())?;
    Ok(array.into_any())
}

/// The arrays of a part of a stream, by their letters and without a copy: `uint64` of shape `(n,)`,
/// or `(n, 2)` where a value has two words; bits as `uint8` of shape `(n,)`.
pub(crate) fn part<'py>(
    py: Python<'py>,
    part: Part,
    letters: [&str; 3],
    words: usize,
) -> PyResult<Bound<'py, PyDict>> {
    let shape = |count: usize| match words {
        1 => vec![count],
        words => vec![count, words],
    };
    let [key, values, column] = letters;
    let arrays = PyDict::new(py);
    arrays.set_item("first", part.first)?;
    if let Some(one) = part.key {
        arrays.set_item(key, shaped(py, one, &shape(1))?)?;
    }
    #[cfg(feature = "gpu")]
    if !part.on_card.is_empty() {
        for (letter, array) in part.on_card {
            arrays.set_item(letter, crate::card::CardArray(array))?;
        }
        return Ok(arrays);
    }
    match part.values {
        Some(Values::Bits(bits)) => arrays.set_item(values, PyArray1::from_vec(py, bits))?,
        Some(Values::Words(all)) => {
            arrays.set_item(values, shaped(py, all, &shape(part.count))?)?;
        }
        None => {}
    }
    arrays.set_item(column, shaped(py, part.column, &shape(part.count))?)?;
    Ok(arrays)
}

/// The arrays of shares by their names, without a copy, and what they are.
pub(crate) fn shares<'py>(py: Python<'py>, shares: Shares) -> PyResult<Bound<'py, PyDict>> {
    let (all, columns) = (PyDict::new(py), PyDict::new(py));
    for (name, column) in shares.columns {
        columns.set_item(name, PyArray1::from_vec(py, column))?;
    }
    all.set_item("match", PyArray1::from_vec(py, shares.matches))?;
    all.set_item("columns", columns)?;
    let rows = shares.rows.map(|rows| PyArray1::from_vec(py, rows));
    all.set_item("rows", rows)?;
    all.set_item("description", shares.description)?;
    Ok(all)
}
