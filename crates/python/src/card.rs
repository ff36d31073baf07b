//! Arrays in the memory of a card, which PyTorch, CuPy and others take by DLPack.

#![allow(unsafe_code, reason = "capsules of Python")]

use std::ffi::CStr;
use std::ptr::NonNull;

use numpy::PyArray1;
use pyo3::exceptions::{PyBufferError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyTuple};
use pyo3::{Py, ffi};
use volery_run::embed::dlpack::{self, Array};

/// Of a capsule that no library has taken; the others rename theirs.
const NAME: &CStr = c"dltensor";

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
        let tensor = self.0.export();
        // SAFETY: the pointer is that of a tensor, which is there until `destroy` or the library
        // that takes it gives it back.
        let capsule =
            unsafe { PyCapsule::new_with_pointer_and_destructor(py, tensor, NAME, Some(destroy)) };
        // SAFETY: without a capsule nobody has it.
        capsule.inspect_err(|_| unsafe { dlpack::give_back(tensor) })
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

unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once with the capsule; under this name nobody has taken the tensor.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
            let tensor = ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr());
            NonNull::new(tensor).into_iter().for_each(|tensor| dlpack::give_back(tensor));
        }
    }
}
