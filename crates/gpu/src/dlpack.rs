//! Arrays in the memory of a card that other libraries take without a copy, by DLPack: the
//! structures of its header `dlpack.h`, in the form without a version.

use std::sync::Arc;

use bytemuck::Pod;
use zeroize::Zeroizing;

use crate::{Device, Memory, Result};

/// `kDLCUDA`.
pub const CUDA: i32 = 2;

/// An array of unsigned integers. Its memory is wiped when the last array and the last tensor of it
/// are dropped, and all work on the card is done that began before.
#[derive(Clone)]
pub struct Array {
    memory: Arc<Shared>,
    /// Bytes before the first element.
    offset: usize,
    bits: u8,
    shape: Vec<i64>,
    /// In elements.
    strides: Vec<i64>,
}

struct Shared(Memory<u8>);

impl Drop for Shared {
    fn drop(&mut self) {
        // Kernels of others may use the memory still. A lost card has no memory left.
        let _lost = self.0.device().wait_for_all();
    }
}

impl Array {
    /// All of a memory, row by row.
    ///
    /// # Panics
    /// If the memory has another size.
    #[must_use]
    pub fn new<T: Pod>(memory: Memory<T>, bits: u8, shape: &[usize]) -> Self {
        let memory: Memory<u8> = memory.of_values();
        let elements: usize = shape.iter().product();
        assert_eq!(elements * usize::from(bits / 8), memory.len(), "the shape of the memory");
        let shape: Vec<_> = shape.iter().map(|len| *len as i64).collect();
        let strides = (1..=shape.len()).map(|next| shape[next..].iter().product()).collect();
        Self { memory: Arc::new(Shared(memory)), offset: 0, bits, shape, strides }
    }

    /// The elements whose second index is `at`, in the same memory.
    ///
    /// # Panics
    /// If there is no such index.
    #[must_use]
    pub fn second(&self, at: usize) -> Self {
        assert!(self.shape.len() > 1 && (at as i64) < self.shape[1], "an index of the array");
        let mut part = self.clone();
        part.shape.remove(1);
        let stride = part.strides.remove(1) as usize;
        part.offset += at * stride * usize::from(self.bits / 8);
        part
    }

    /// The lengths of its dimensions.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    /// The bits of an element.
    #[must_use]
    pub fn bits(&self) -> u8 {
        self.bits
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.memory.0.device()
    }

    /// A copy of the bytes of its elements, row by row.
    ///
    /// # Errors
    /// If the card fails.
    pub fn read(&self) -> Result<Vec<u8>> {
        let bytes = usize::from(self.bits / 8);
        let row = self.shape[1..].iter().product::<i64>() as usize * bytes;
        let (rows, step) = (self.shape[0] as usize, self.strides[0] as usize * bytes);
        let mut all = Zeroizing::new(vec![0; self.memory.0.len()]);
        self.memory.0.read(0, &mut all)?;
        if row == step {
            return Ok(std::mem::take(&mut *all));
        }
        let at = |number| self.offset + number * step;
        Ok((0..rows).flat_map(|number| all[at(number)..][..row].iter().copied()).collect())
    }
}

/// Arrays as capsules for `__dlpack__` of Python.
#[cfg(feature = "python")]
pub mod python {
    #![allow(unsafe_code, reason = "structures that C code reads and gives back")]

    use std::ffi::{CStr, c_void};
    use std::mem::offset_of;
    use std::ptr::NonNull;

    use pyo3::{Bound, PyResult, Python, ffi, types::PyCapsule};

    use super::{Array, CUDA};

    /// The name of a capsule that no library has taken; one that takes it renames it.
    const NAME: &CStr = c"dltensor";
    /// `kDLUInt`.
    const UNSIGNED: u8 = 1;

    /// A capsule that shares the memory of the array.
    ///
    /// # Errors
    /// If Python has no memory for it.
    pub fn capsule<'py>(array: &Array, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let exported = exported(array.clone());
        let destroy = Some(destroy as unsafe extern "C" fn(*mut ffi::PyObject));
        // SAFETY: the pointer is that of a tensor, which is there until `destroy` or the library
        // that takes it deletes it.
        let capsule =
            unsafe { PyCapsule::new_with_pointer_and_destructor(py, exported, NAME, destroy) };
        // SAFETY: without a capsule nobody has it.
        capsule.inspect_err(|_| unsafe { delete(exported.as_ptr()) })
    }

    /// A tensor of the array, which somebody deletes.
    fn exported(array: Array) -> NonNull<c_void> {
        let tensor = Tensor {
            data: array.memory.0.address() as *mut c_void,
            device: [CUDA, array.device().ordinal() as i32],
            dimensions: array.shape.len() as i32,
            kind: Kind { code: UNSIGNED, bits: array.bits, lanes: 1 },
            // The vectors stay where they are when the array moves; consumers read them only.
            shape: array.shape.as_ptr().cast_mut(),
            strides: array.strides.as_ptr().cast_mut(),
            offset: array.offset as u64,
        };
        let deleter = Some(delete as unsafe extern "C" fn(*mut c_void));
        let managed = Managed { tensor, context: std::ptr::null_mut(), deleter, _array: array };
        NonNull::from(Box::leak(Box::new(managed))).cast()
    }

    /// `DLTensor`.
    #[repr(C)]
    struct Tensor {
        data: *mut c_void,
        device: [i32; 2],
        dimensions: i32,
        kind: Kind,
        shape: *mut i64,
        strides: *mut i64,
        offset: u64,
    }

    /// `DLDataType`.
    #[repr(C)]
    struct Kind {
        code: u8,
        bits: u8,
        lanes: u16,
    }

    /// `DLManagedTensor`, and what it needs.
    #[repr(C)]
    struct Managed {
        tensor: Tensor,
        context: *mut c_void,
        deleter: Option<unsafe extern "C" fn(*mut c_void)>,
        _array: Array,
    }

    // The layout of the header, on machines of 64 bits.
    const _: () = assert!(offset_of!(Managed, context) == 48 && offset_of!(Managed, deleter) == 56);

    unsafe extern "C" fn delete(exported: *mut c_void) {
        // SAFETY: it comes from `exported`, and its holder calls this once.
        drop(unsafe { Box::from_raw(exported.cast::<Managed>()) });
    }

    unsafe extern "C" fn destroy(capsule: *mut ffi::PyObject) {
        // SAFETY: Python calls this once with the capsule; under this name nobody has taken the
        // tensor.
        unsafe {
            if ffi::PyCapsule_IsValid(capsule, NAME.as_ptr()) == 1 {
                delete(ffi::PyCapsule_GetPointer(capsule, NAME.as_ptr()));
            }
        }
    }
}
