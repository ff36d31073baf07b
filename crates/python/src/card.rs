//! Arrays in the memory of a card, which PyTorch, CuPy and others take by DLPack.

use numpy::PyArray1;
use pyo3::Py;
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use volery_run::embed::dlpack::{self, Array};

/// An array of unsigned integers in the memory of a CUDA card, for `from_dlpack`.
#[pyclass(frozen, module = "volery._volery")]
pub(crate) struct CardArray(pub(crate) Array);

#[pymethods]
impl CardArray {
    /// The capsule; the array shares its memory with every tensor made of it. All values are there
    /// for any `stream`.
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<Py<PyAny>>,
        max_version: Option<Py<PyAny>>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _any = (stream, max_version);
        if copy == Some(true) || dl_device.is_some_and(|device| device != self.__dlpack_device__())
        {
            return Err(PyBufferError::new_err(
                "the array stays on its card: call numpy() for a copy",
            ));
        }
        dlpack::python::capsule(&self.0, py)
    }

    fn __dlpack_device__(&self) -> (i32, i32) {
        (dlpack::CUDA, self.0.device().ordinal() as i32)
    }

    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.0.shape())
    }

    #[getter]
    fn dtype(&self) -> String {
        format!("uint{}", self.0.bits())
    }

    fn __len__(&self) -> usize {
        self.0.shape()[0] as usize
    }

    /// A copy in memory of the processor.
    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = py.detach(|| self.0.read());
        let bytes = bytes.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        let words =
            PyArray1::from_vec(py, bytes).into_any().call_method1("view", (self.dtype(),))?;
        words.call_method1("reshape", (self.shape(py)?,))
    }
}
