//! The driver of CUDA: the only file with `unsafe` code, but for what hands arrays to Python.
//!
//! The driver is a library of the system, loaded when the first device is opened; without it
//! [`Device::open`] says so. Kernels take pointers and lengths, which nothing checks: the functions
//! of `kernels` do, before they [launch](Device::launch) them.

#![allow(unsafe_code, reason = "calls of the driver, and kernels")]

use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, size_of};
use std::ops::{Deref, DerefMut, Range};
use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use bytemuck::{Pod, Zeroable};
use cudarc::driver::{
    DriverError,
    result::{self, ctx, device, event, function, module, occupancy, primary_ctx, stream},
    sys::{self, CUdevice_attribute_enum as Attribute, CUresult},
};
use zeroize::Zeroize;

use crate::{Error, Result};

/// The first version of CUDA whose driver runs the kernels: that of driver 525.
const VERSION: i32 = 12_000;

/// A card with the kernels. It is opened once, and stays.
struct Card {
    ordinal: usize,
    name: String,
    context: sys::CUcontext,
    module: sys::CUmodule,
    /// Multiprocessors.
    processors: u32,
    functions: Mutex<HashMap<String, Kernel>>,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl Send for Card {}
// SAFETY: as above.
unsafe impl Sync for Card {}

/// A kernel, and how many of its blocks a multiprocessor runs at once.
#[derive(Clone, Copy)]
struct Kernel {
    function: sys::CUfunction,
    blocks: u32,
}

/// A card, and an order of work on it: what is asked through one `Device` or its clones happens in
/// that order. Several of one card work side by side.
#[derive(Clone)]
pub struct Device(Arc<Queue>);

struct Queue {
    card: &'static Card,
    stream: sys::CUstream,
}

// SAFETY: as for `Card`.
unsafe impl Send for Queue {}
// SAFETY: as for `Card`.
unsafe impl Sync for Queue {}

impl Drop for Queue {
    fn drop(&mut self) {
        // The work that frees memory comes first; a lost card has no memory left.
        // SAFETY: the stream was made in `open`, and nothing has it any more.
        let _lost = self.card.bind().and_then(|_guard| unsafe {
            stream::synchronize(self.stream).and_then(|()| stream::destroy(self.stream))
        });
    }
}

/// The blocks of a kernel.
#[derive(Clone, Copy)]
pub(crate) enum Blocks {
    /// With at least so many threads together.
    ForThreads(usize),
    /// As many as the card runs at once.
    All,
}

/// The number of cards that the driver sees.
///
/// # Errors
/// [`Error::NoDriver`] without a driver, or one of CUDA 11 or older.
pub fn count() -> Result<usize> {
    // SAFETY: it loads a library of the system by its name.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::NoDriver("no driver of CUDA is installed"));
    }
    let mut version = 0;
    // SAFETY: the place is one for an integer.
    let known = unsafe { sys::cuDriverGetVersion(&raw mut version) };
    if known != CUresult::CUDA_SUCCESS || version < VERSION {
        return Err(Error::NoDriver("the driver is older than version 525, of CUDA 12.0"));
    }
    match result::init().and_then(|()| device::get_count()) {
        Ok(count) => Ok(count as usize),
        Err(DriverError(CUresult::CUDA_ERROR_NO_DEVICE)) => Ok(0),
        Err(error) => Err(failed("look for cards", error)),
    }
}

fn failed(what: &'static str, error: DriverError) -> Error {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Error::OutOfMemory,
        code => Error::Failed { what, error: format!("{code:?}") },
    }
}

impl Card {
    /// The card of that number, with the kernels.
    fn get(ordinal: usize) -> Result<&'static Self> {
        static CARDS: Mutex<Vec<&'static Card>> = Mutex::new(Vec::new());
        let mut cards = CARDS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(card) = cards.iter().find(|card| card.ordinal == ordinal) {
            return Ok(card);
        }
        let card = Box::leak(Box::new(Self::open(ordinal)?));
        cards.push(card);
        Ok(card)
    }

    fn open(ordinal: usize) -> Result<Self> {
        let count = count()?;
        if ordinal >= count {
            return Err(Error::NoCard { ordinal, count });
        }
        let open = |error| failed("open the card", error);
        let id = device::get(ordinal as i32).map_err(open)?;
        // SAFETY: the card exists.
        let attribute = |attribute| unsafe { device::get_attribute(id, attribute).map_err(open) };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        let minor = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?;
        if major < 8 {
            return Err(Error::OldCard(format!("{major}.{minor}")));
        }
        let processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        // SAFETY: the card exists; its context is never given back.
        let context = unsafe { primary_ctx::retain(id) }.map_err(open)?;
        let _guard = ContextGuard::new(context).map_err(open)?;
        let kernels = CString::new(include_str!("../kernels/volery.ptx")).expect("text");
        // SAFETY: the text ends with a zero.
        let module = unsafe { module::load_data(kernels.as_ptr().cast()) };
        let card = Self {
            ordinal,
            name: device::get_name(id).map_err(open)?,
            context,
            module: module.map_err(|error| failed("compile the kernels", error))?,
            processors: processors as u32,
            functions: Mutex::default(),
        };
        let kernel = card.kernel("make_table", 256, 0)?;
        // SAFETY: the kernel takes nothing, and writes its own table.
        unsafe {
            result::launch_kernel(
                kernel.function,
                (1, 1, 1),
                (256, 1, 1),
                0,
                ptr::null_mut(),
                &mut [],
            )
        }
        .and_then(|()| ctx::synchronize())
        .map_err(|error| failed("make the table of AES", error))?;
        Ok(card)
    }

    /// Makes the context of the card that of this thread, until the guard is dropped.
    fn bind(&self) -> std::result::Result<ContextGuard, DriverError> {
        ContextGuard::new(self.context)
    }

    /// The kernel of that name, for blocks of so many threads with so many bytes of shared memory:
    /// always the same of both for one name.
    fn kernel(&self, name: &str, threads: u32, shared: u32) -> Result<Kernel> {
        let mut functions = self.functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kernel) = functions.get(name) {
            return Ok(*kernel);
        }
        let load = |error| failed("load a kernel", error);
        let text = CString::new(name).expect("a name");
        // SAFETY: the module stays; the attribute is one of a kernel that exists.
        let (function, blocks) = unsafe {
            let function = module::get_function(self.module, text).map_err(load)?;
            let most =
                sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            function::set_function_attribute(function, most, shared as i32).map_err(load)?;
            let blocks = occupancy::max_active_block_per_multiprocessor(
                function,
                threads as i32,
                shared as usize,
            );
            (function, blocks.map_err(load)?)
        };
        let kernel = Kernel { function, blocks: blocks.max(1) as u32 };
        functions.insert(name.to_owned(), kernel);
        Ok(kernel)
    }
}

/// The context that a thread had before that of a card: that of its own program.
struct ContextGuard(Option<sys::CUcontext>);

impl ContextGuard {
    fn new(context: sys::CUcontext) -> std::result::Result<Self, DriverError> {
        let before = ctx::get_current()?;
        // SAFETY: the context is one of this process.
        unsafe { ctx::set_current(context) }?;
        Ok(Self(before))
    }
}

impl Drop for ContextGuard {
    fn drop(&mut self) {
        // SAFETY: the context was current, and its owner keeps it as long as this thread uses it.
        let _lost = unsafe { ctx::set_current(self.0.unwrap_or(ptr::null_mut())) };
    }
}

impl Device {
    /// The card of that number, from 0, with an order of work of its own.
    ///
    /// The first time in a process the driver compiles the kernels for the card, or finds them in
    /// its cache: up to some seconds, and some tenths.
    ///
    /// # Errors
    /// Without a driver, without that card, or if it cannot be used.
    pub fn open(ordinal: usize) -> Result<Self> {
        let card = Card::get(ordinal)?;
        let stream = card.bind().and_then(|_guard| stream::create(stream::StreamKind::NonBlocking));
        let stream = stream.map_err(|error| failed("open a stream of the card", error))?;
        Ok(Self(Arc::new(Queue { card, stream })))
    }

    /// The name of the card.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.card.name
    }

    /// The number of the card.
    #[must_use]
    pub fn ordinal(&self) -> usize {
        self.0.card.ordinal
    }

    /// Waits until all that was asked for has happened.
    ///
    /// # Errors
    /// If some of it failed.
    pub fn wait(&self) -> Result<()> {
        // SAFETY: the stream is that of this object.
        self.call("finish the work", |stream| unsafe { stream::synchronize(stream) })
    }

    /// Waits until all work on the card has happened that this process asked for, by any library.
    ///
    /// # Errors
    /// If some of it failed.
    pub fn wait_for_all(&self) -> Result<()> {
        self.call("finish all work", |_| ctx::synchronize())
    }

    /// Calls the driver with the context of the card.
    fn call<T>(
        &self,
        what: &'static str,
        call: impl FnOnce(sys::CUstream) -> std::result::Result<T, DriverError>,
    ) -> Result<T> {
        let done = self.0.card.bind().and_then(|_guard| call(self.0.stream));
        done.map_err(|error| failed(what, error))
    }

    /// Starts a kernel. The caller has checked that what the arguments point to is large enough.
    pub(crate) fn launch(
        &self,
        name: &str,
        blocks: Blocks,
        threads: u32,
        shared: u32,
        arguments: &[&[u8]],
    ) -> Result<()> {
        let _guard = self.0.card.bind().map_err(|error| failed("use the card", error))?;
        let kernel = self.0.card.kernel(name, threads, shared)?;
        let grid = match blocks {
            Blocks::ForThreads(count) => count.div_ceil(threads as usize) as u32,
            Blocks::All => self.0.card.processors * kernel.blocks,
        };
        if grid == 0 {
            return Ok(());
        }
        let mut arguments: Vec<_> =
            arguments.iter().map(|bytes| bytes.as_ptr().cast_mut().cast::<c_void>()).collect();
        self.call("start a kernel", |stream| {
            // SAFETY: the kernel is of this card, and the driver copies the arguments, of which
            // each is of the size that the kernel declares.
            unsafe {
                result::launch_kernel(
                    kernel.function,
                    (grid, 1, 1),
                    (threads, 1, 1),
                    shared,
                    stream,
                    &mut arguments,
                )
            }
        })
    }
}

/// The bytes of so many values, and one at least.
fn bytes<T>(len: usize) -> Result<usize> {
    let bytes = len.checked_mul(size_of::<T>()).filter(|bytes| *bytes <= isize::MAX as usize);
    bytes.map(|bytes| bytes.max(1)).ok_or(Error::OutOfMemory)
}

/// Memory of a card: zero at first, and wiped when it is dropped.
///
/// Only the card's owner can look at it, or whom that one trusts: other processes on the card have
/// memory of their own, but there is no way to keep it from the card's owner.
pub struct Memory<T> {
    device: Device,
    pointer: u64,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Memory<T> {
    /// Zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], if so much is not free; if the card fails.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self> {
        let mut memory = Self::as_it_was(device, len)?;
        memory.clear()?;
        // Work on it may be asked for in another order.
        device.wait()?;
        Ok(memory)
    }

    /// Memory with what was left in it: for the test that nothing is.
    ///
    /// # Errors
    /// The errors of [`zeroed`](Self::zeroed).
    #[doc(hidden)]
    pub fn as_it_was(device: &Device, len: usize) -> Result<Self> {
        let bytes = bytes::<T>(len)?;
        // SAFETY: it asks for memory only; any bytes are values.
        let pointer = device
            .call("reserve memory", |stream| unsafe { result::malloc_async(stream, bytes) })?;
        Ok(Self { device: device.clone(), pointer, len, of: PhantomData })
    }

    /// A copy of these values.
    ///
    /// # Errors
    /// The errors of [`zeroed`](Self::zeroed).
    pub fn of(device: &Device, values: &[T]) -> Result<Self> {
        let mut memory = Self::zeroed(device, values.len())?;
        memory.write(0, values)?;
        Ok(memory)
    }

    /// Copies values to the places from `at` on.
    ///
    /// # Panics
    /// If the memory does not have these places.
    ///
    /// # Errors
    /// If the card fails.
    pub fn write(&mut self, at: usize, values: &[T]) -> Result<()> {
        self.assert_has(at, values.len());
        let to = self.pointer + (at * size_of::<T>()) as u64;
        // SAFETY: the places exist, and the values are read before this function returns.
        self.device.call("copy to the card", |stream| unsafe {
            result::memcpy_htod_async(to, values, stream)?;
            stream::synchronize(stream)
        })
    }

    /// Copies the values from place `at` on, and waits for all work before.
    ///
    /// # Panics
    /// If the memory does not have these places.
    ///
    /// # Errors
    /// If the card fails, or some work before did.
    pub fn read(&self, at: usize, out: &mut [T]) -> Result<()> {
        self.assert_has(at, out.len());
        let from = self.pointer + (at * size_of::<T>()) as u64;
        // SAFETY: the places exist, and the values are written before this function returns.
        self.device.call("copy from the card", |stream| unsafe {
            result::memcpy_dtoh_async(out, from, stream)?;
            stream::synchronize(stream)
        })
    }

    fn assert_has(&self, at: usize, count: usize) {
        assert!(at <= self.len && count <= self.len - at, "places of the memory");
    }

    /// Sets all to zero, before what is asked for next on the same device, and after what was asked
    /// for before.
    pub(crate) fn clear(&mut self) -> Result<()> {
        let all = self.len * size_of::<T>();
        // SAFETY: all of it is the memory of this object, for which zero is a value.
        self.device.call("wipe memory", |stream| unsafe {
            result::memset_d8_async(self.pointer, 0, all, stream)
        })
    }

    /// The same memory as other values.
    ///
    /// # Panics
    /// If it is no whole number of them.
    #[must_use]
    pub fn of_values<U: Pod>(self) -> Memory<U> {
        let bytes = self.len * size_of::<T>();
        assert!(bytes.is_multiple_of(size_of::<U>()), "whole values");
        let this = ManuallyDrop::new(self);
        // SAFETY: the device is moved out once, as `this` is never dropped.
        let device = unsafe { ptr::read(&raw const this.device) };
        Memory { device, pointer: this.pointer, len: bytes / size_of::<U>(), of: PhantomData }
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the card.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// The card.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// A part of it, to write to.
    ///
    /// # Panics
    /// If it is not one.
    #[must_use]
    pub fn part(&mut self, part: Range<usize>) -> Part<'_, T> {
        assert!(part.start <= part.end && part.end <= self.len, "a part of the memory");
        let pointer = self.pointer + (part.start * size_of::<T>()) as u64;
        Part { pointer, len: part.len(), card: Some(self.device.ordinal()), of: PhantomData }
    }

    /// All of it.
    #[must_use]
    pub fn all(&mut self) -> Part<'_, T> {
        self.part(0..self.len)
    }
}

impl<T> Drop for Memory<T> {
    fn drop(&mut self) {
        let bytes = (self.len * size_of::<T>()).max(1);
        // SAFETY: the memory is of this object, and nothing has it any more; what was asked for
        // before happens before. A lost card has no memory left.
        let _lost = self.device.call("free memory", |stream| unsafe {
            let wiped = result::memset_d8_async(self.pointer, 0, bytes, stream);
            result::free_async(self.pointer, stream).and(wiped)
        });
    }
}

/// A part of the memory of a card, to write to.
pub struct Part<'a, T> {
    pointer: u64,
    len: usize,
    /// The number of its card; `None` of no memory.
    card: Option<usize>,
    of: PhantomData<&'a mut [T]>,
}

impl<'a, T> Part<'a, T> {
    /// No memory.
    #[must_use]
    pub fn none() -> Self {
        Self { pointer: 0, len: 0, card: None, of: PhantomData }
    }

    /// `len` values from an address on, of memory that somebody else owns.
    ///
    /// # Safety
    /// The memory is one of that card, and nobody uses it or gives it back as long as the part is
    /// there; work on it that was asked for before is done.
    #[must_use]
    pub unsafe fn at_address(card: &Device, pointer: u64, len: usize) -> Self {
        Self { pointer, len, card: Some(card.ordinal()), of: PhantomData }
    }

    /// Panics unless the part is memory of that card, aligned to so many bytes, or none.
    pub(crate) fn assert_on(&self, device: &Device, alignment: u64) {
        let there = self.card.is_none_or(|card| card == device.ordinal());
        assert!(there, "memory of card {}", device.ordinal());
        assert!(self.pointer.is_multiple_of(alignment), "memory aligned to {alignment} bytes");
    }

    /// The number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The address on the card.
    #[must_use]
    pub fn address(&self) -> u64 {
        self.pointer
    }

    /// The part again, for a shorter time.
    pub fn again(&mut self) -> Part<'_, T> {
        Part { pointer: self.pointer, len: self.len, card: self.card, of: PhantomData }
    }

    /// The same memory as words.
    ///
    /// # Panics
    /// If a value is not a number of words.
    #[must_use]
    pub fn of_words(self) -> Part<'a, u64> {
        const { assert!(size_of::<T>().is_multiple_of(8), "whole words") };
        Part {
            pointer: self.pointer,
            len: self.len * (size_of::<T>() / 8),
            card: self.card,
            of: PhantomData,
        }
    }

    /// The first `at` values, and the others.
    ///
    /// # Panics
    /// If there are fewer.
    #[must_use]
    pub fn split_at(self, at: usize) -> (Self, Self) {
        assert!(at <= self.len, "a place of the part");
        let rest = self.pointer + (at * size_of::<T>()) as u64;
        let part = |pointer, len| Self { pointer, len, card: self.card, of: PhantomData };
        (part(self.pointer, at), part(rest, self.len - at))
    }

    /// Sets all to zero, and waits for it.
    ///
    /// # Errors
    /// If the card fails.
    pub fn wipe(&mut self, device: &Device) -> Result<()> {
        let bytes = self.len * size_of::<T>();
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: the part is memory to write to.
        device.call("wipe memory", |stream| unsafe {
            result::memset_d8_async(self.pointer, 0, bytes, stream)?;
            stream::synchronize(stream)
        })
    }
}

/// Memory of this machine that a card reads and writes without the processor's help, at twice the
/// speed or more: zero at first, and wiped when it is dropped.
pub struct Pinned<T> {
    card: &'static Card,
    pointer: *mut T,
    len: usize,
}

// SAFETY: it owns the memory, as a box would.
unsafe impl<T: Send> Send for Pinned<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Sync for Pinned<T> {}

impl<T: Pod + Zeroable> Pinned<T> {
    /// Zeros.
    ///
    /// # Errors
    /// [`Error::OutOfMemory`], if the system does not give so much.
    pub fn zeroed(device: &Device, len: usize) -> Result<Self> {
        let bytes = bytes::<T>(len)?;
        // SAFETY: the memory is as long as what is set to zero.
        let pointer = device.call("reserve pinned memory", |_| unsafe {
            let pointer = result::malloc_host(bytes, sys::CU_MEMHOSTALLOC_PORTABLE)?;
            ptr::write_bytes(pointer.cast::<u8>(), 0, bytes);
            Ok(pointer.cast())
        })?;
        Ok(Self { card: device.0.card, pointer, len })
    }
}

impl<T> Deref for Pinned<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the memory has so many values, and all functions that make a card write to it
        // wait for that.
        unsafe { std::slice::from_raw_parts(self.pointer, self.len) }
    }
}

impl<T> DerefMut for Pinned<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: the memory is of this object, and any bytes may be written to it before it goes.
        unsafe {
            let bytes = (self.len * size_of::<T>()).max(1);
            std::slice::from_raw_parts_mut(self.pointer.cast::<u8>(), bytes).zeroize();
            let _lost = self.card.bind().and_then(|_guard| result::free_host(self.pointer.cast()));
        }
    }
}

/// Memory of a card with pinned memory from which the card copies what goes there.
pub(crate) struct Upload<T> {
    memory: Memory<T>,
    host: Pinned<T>,
    /// When all copies are done, which read values before place `busy`.
    copied: sys::CUevent,
    busy: usize,
}

// SAFETY: the driver's handles may be used from any thread.
unsafe impl<T: Send> Send for Upload<T> {}
// SAFETY: as above; a shared `Upload` only has an address.
unsafe impl<T: Sync> Sync for Upload<T> {}

impl<T: Pod> Upload<T> {
    /// Zeros.
    pub(crate) fn zeroed(device: &Device, len: usize) -> Result<Self> {
        let (memory, host) = (Memory::zeroed(device, len)?, Pinned::zeroed(device, len)?);
        let flags = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING;
        let copied = device.call("make an event", |_| event::create(flags))?;
        Ok(Self { memory, host, copied, busy: 0 })
    }

    /// Has `len` values from place `at` on written, and copied to the card. Waits until no copy
    /// before needs their place, and not for this one.
    pub(crate) fn send(
        &mut self,
        at: usize,
        len: usize,
        write: impl FnOnce(&mut [T]),
    ) -> Result<()> {
        if at < self.busy {
            self.wait()?;
            self.busy = 0;
        }
        let values = &mut self.host[at..at + len];
        write(values);
        self.busy = at + len;
        let to = self.memory.pointer + (at * size_of::<T>()) as u64;
        // SAFETY: both memories have these values; nobody writes to those before `busy`, or frees
        // the pinned memory, before `wait` returns.
        self.memory.device.call("copy to the card", |stream| unsafe {
            result::memcpy_htod_async(to, values, stream)?;
            event::record(self.copied, stream)
        })
    }
}

impl<T> Upload<T> {
    fn wait(&self) -> Result<()> {
        // SAFETY: the event is of this object.
        self.memory.device.call("copy to the card", |_| unsafe { event::synchronize(self.copied) })
    }

    /// The address on the card.
    pub(crate) fn address(&self) -> u64 {
        self.memory.pointer
    }
}

impl<T> Drop for Upload<T> {
    fn drop(&mut self) {
        // A lost card copies nothing.
        let _lost = self.wait();
        let device = &self.memory.device;
        // SAFETY: the event is of this object, and nothing has it any more.
        let _lost = device.call("free an event", |_| unsafe { event::destroy(self.copied) });
    }
}
