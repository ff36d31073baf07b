//! Pointers from C: the only module with `unsafe` blocks.
//!
//! [`In`], [`Out`], [`Handle`] and [`NewObject`] are the pointers of the header. No other module
//! makes one: each is an argument of a C caller, who promises what the header asks for: that a
//! pointer that is not null leads to as many elements as it says, that nobody else uses them
//! meanwhile, and that a handle came from the function that makes it and has not been freed. Null,
//! lengths above the address space, alignment, and overlap with another argument are checked here.

use std::ffi::{c_int, c_void};
use std::io;
use std::ops::{Deref, DerefMut, Range};
use std::time::Duration;

use bytemuck::Pod;
use volery::channel::Transport;

use crate::object::{Object, remember};
use crate::status::{Failure, Result, guard};

/// A pointer to elements that the caller provides.
#[repr(transparent)]
pub(crate) struct In<T>(*const T);

/// A pointer to memory of the caller that gets results.
#[repr(transparent)]
pub(crate) struct Out<T>(*mut T);

/// A pointer to memory of the caller on a card that gets results.
#[repr(transparent)]
pub(crate) struct OnDevice<T>(*mut T);

/// A pointer to an object of this library.
#[repr(transparent)]
pub(crate) struct Handle<T>(*mut Object<T>);

/// A pointer to the caller's variable for a new object.
#[repr(transparent)]
pub(crate) struct NewObject<T>(*mut *mut Object<T>);

/// The addresses of `n` elements, which are checked: not null, aligned, and not too many.
fn addresses<T>(start: *const T, n: usize, name: &str) -> Result<Range<usize>> {
    if n == 0 {
        return Ok(0..0);
    }
    if start.is_null() {
        return Err(Failure::usage(format!("{name} is null")));
    }
    if !start.is_aligned() {
        let size = align_of::<T>();
        let message = format!("{name} is not at a multiple of {size} bytes");
        return Err(Failure::usage(message));
    }
    let bytes = n.checked_mul(size_of::<T>());
    let bytes = bytes.filter(|bytes| *bytes <= isize::MAX as usize);
    let end = bytes.and_then(|bytes| start.addr().checked_add(bytes));
    let end = end.ok_or_else(|| {
        Failure::usage(format!("{name}: {n} elements are more than the memory has"))
    })?;
    Ok(start.addr()..end)
}

fn apart(one: &Range<usize>, other: &Range<usize>, names: [&str; 2]) -> Result {
    if one.start < other.end && other.start < one.end {
        let [one, other] = names;
        return Err(Failure::usage(format!("{one} and {other} overlap")));
    }
    Ok(())
}

impl<T: Copy> In<T> {
    /// `n` elements.
    pub(crate) fn slice(&self, n: usize, name: &str) -> Result<&[T]> {
        if addresses(self.0, n, name)?.is_empty() {
            return Ok(&[]);
        }
        // SAFETY: not null, aligned, and within the address space; the caller promises `n` elements
        // that nobody changes during the call.
        Ok(unsafe { std::slice::from_raw_parts(self.0, n) })
    }

    /// The element, or `None` for a null pointer.
    pub(crate) fn optional(&self, name: &str) -> Result<Option<&T>> {
        if self.0.is_null() {
            return Ok(None);
        }
        Ok(self.slice(1, name)?.first())
    }

    /// `n` elements, or `None` for a null pointer.
    pub(crate) fn optional_slice(&self, n: usize, name: &str) -> Result<Option<&[T]>> {
        if self.0.is_null() {
            return Ok(None);
        }
        self.slice(n, name).map(Some)
    }
}

/// A struct whose first field is its size in bytes, so that later versions can append fields.
pub(crate) trait Sized32: Pod {
    /// The smallest size there ever was.
    const LEAST: usize;
}

impl<T: Sized32> In<T> {
    /// The struct, with zeros for the fields that the caller's version does not have; `None` for a
    /// null pointer.
    pub(crate) fn versioned(&self, name: &str) -> Result<Option<T>> {
        let first = In::<u32>(self.0.cast());
        let Some(size) = first.optional(name)? else {
            return Ok(None);
        };
        let size = *size as usize;
        // Beyond that no later version goes, and a size that was never set does not lead far.
        if !(T::LEAST..=4096).contains(&size) {
            let message = format!("{name}: its size is {size}: begin with its _INIT");
            return Err(Failure::usage(message));
        }
        let bytes = In::<u8>(self.0.cast());
        let bytes = bytes.slice(size, name)?;
        let (known, unknown) = bytes.split_at(size.min(size_of::<T>()));
        if unknown.iter().any(|byte| *byte != 0) {
            let message = format!("{name}: it asks for something that this version does not have");
            return Err(Failure::usage(message));
        }
        let mut value = T::zeroed();
        bytemuck::bytes_of_mut(&mut value)[..known.len()].copy_from_slice(known);
        Ok(Some(value))
    }
}

/// Memory of the caller. All zero when the call fails, whatever was written.
pub(crate) struct Output<'a, T: Pod>(&'a mut [T]);

impl<T: Pod> Output<'_, T> {
    /// The call succeeded.
    pub(crate) fn keep(mut self) {
        self.0 = &mut [];
    }
}

impl<T: Pod> Deref for Output<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.0
    }
}

impl<T: Pod> DerefMut for Output<'_, T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.0
    }
}

impl<T: Pod> Drop for Output<'_, T> {
    fn drop(&mut self) {
        self.0.fill(T::zeroed());
    }
}

impl<T: Pod> Out<T> {
    /// Checks what [`slice`](Self::slice) checks, and touches nothing.
    pub(crate) fn check(&self, n: usize, name: &str) -> Result {
        addresses(self.0, n, name).map(|_| ())
    }

    /// `n` elements, all zero.
    pub(crate) fn slice(&mut self, n: usize, name: &str) -> Result<Output<'_, T>> {
        if addresses(self.0, n, name)?.is_empty() {
            return Ok(Output(&mut []));
        }
        // SAFETY: not null, aligned, and within the address space; the caller promises memory for
        // `n` elements that nobody else uses during the call. It need not be initialised.
        unsafe { self.0.write_bytes(0, n) };
        // SAFETY: as above, and now initialised.
        Ok(Output(unsafe { std::slice::from_raw_parts_mut(self.0, n) }))
    }

    /// This and another output, of `n` and `other_n` elements.
    pub(crate) fn with<'a, S: Pod>(
        &'a mut self,
        n: usize,
        (other, other_n): (&'a mut Out<S>, usize),
        names: [&str; 2],
    ) -> Result<(Output<'a, T>, Output<'a, S>)> {
        let one = addresses(self.0, n, names[0])?;
        apart(&one, &addresses(other.0, other_n, names[1])?, names)?;
        Ok((self.slice(n, names[0])?, other.slice(other_n, names[1])?))
    }

    /// This output of `n` elements and an input of `input_n`.
    pub(crate) fn from<'a, S: Pod>(
        &'a mut self,
        n: usize,
        (input, input_n): (&'a In<S>, usize),
        names: [&str; 2],
    ) -> Result<(Output<'a, T>, &'a [S])> {
        let one = addresses(self.0, n, names[0])?;
        apart(&one, &addresses(input.0, input_n, names[1])?, names)?;
        Ok((self.slice(n, names[0])?, input.slice(input_n, names[1])?))
    }
}

#[cfg(feature = "gpu")]
impl<T> OnDevice<T> {
    /// `n` elements, which are not touched here.
    pub(crate) fn part(
        &mut self,
        card: &volery::card::Card,
        n: usize,
        name: &str,
    ) -> Result<volery::card::Part<'_, T>> {
        addresses(self.0.cast_const(), n, name)?;
        // SAFETY: not null, and aligned; the caller promises memory of the card for `n` elements
        // that nobody else uses during the call.
        Ok(unsafe { volery::card::Part::at_address(card, self.0.addr() as u64, n) })
    }
}

impl<T> Handle<T> {
    pub(crate) fn get(&self) -> Result<&Object<T>> {
        let missing = || Failure::usage("the object is null: was its _new successful?");
        // SAFETY: null, or from `NewObject::put` and not freed, as the caller promises, or at least
        // remembered. Shared access only, so calls from several threads, or from a callback, do no
        // harm.
        unsafe { self.0.as_ref() }.ok_or_else(missing)
    }

    /// Deletes what the object has, and the object itself when others have been freed; null is no
    /// object. One that is in use or was freed stays as it is.
    pub(crate) fn free(self)
    where
        T: Send + 'static,
    {
        guard(|| {
            if !self.0.is_null() {
                self.get()?.free()?;
                // SAFETY: from `NewObject::put`, and freed for the first time. Calls that come
                // later, against the promise, find it as long as it is remembered.
                remember(unsafe { Box::from_raw(self.0) });
            }
            Ok(())
        });
    }
}

impl<T> NewObject<T> {
    /// Sets the variable to null, its value if the call fails.
    pub(crate) fn clear(&mut self) -> Result<&mut Self> {
        self.set(std::ptr::null_mut())?;
        Ok(self)
    }

    /// Sets the variable to a new object, which any thread may use.
    pub(crate) fn put(&mut self, value: T) -> Result
    where
        T: Send,
    {
        self.set(Box::into_raw(Box::new(Object::new(value))))
    }

    fn set(&mut self, object: *mut Object<T>) -> Result {
        addresses(self.0, 1, "the pointer for the new object")?;
        // SAFETY: not null and aligned; the caller promises a variable that nobody else uses.
        unsafe { self.0.write(object) };
        Ok(())
    }
}

/// `volery_bytes`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Bytes {
    data: *const u8,
    length: usize,
}

impl In<Bytes> {
    /// The strings of `n` items.
    pub(crate) fn strings(&self, n: usize) -> Result<Vec<&[u8]>> {
        let strings = self.slice(n, "items")?.iter().enumerate();
        strings
            .map(|(i, one)| {
                let name = format!("item {i}");
                addresses(one.data, one.length, &name)?;
                if one.length == 0 {
                    return Ok(&[][..]);
                }
                // SAFETY: not null, and within the address space; the caller promises `length`
                // bytes that nobody changes during the call.
                Ok(unsafe { std::slice::from_raw_parts(one.data, one.length) })
            })
            .collect()
    }
}

/// `volery_transport`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Callbacks {
    context: *mut c_void,
    // An exception of C++ that leaves a callback ends the process, which `C` would not promise.
    send: Option<unsafe extern "C-unwind" fn(*mut c_void, *const u8, usize) -> c_int>,
    receive: Option<unsafe extern "C-unwind" fn(*mut c_void, *mut u8, usize) -> c_int>,
}

impl In<Callbacks> {
    pub(crate) fn connected(&self) -> Result<CallbackTransport> {
        let callbacks = self.slice(1, "transport")?[0];
        if callbacks.send.is_none() || callbacks.receive.is_none() {
            let message = "transport: send or receive is null";
            return Err(Failure::usage(message));
        }
        Ok(CallbackTransport(callbacks))
    }
}

/// The caller's two functions.
#[derive(Clone, Copy)]
pub(crate) struct CallbackTransport(Callbacks);

// SAFETY: the callbacks run only on a thread that called a function of this library, one at a time,
// and the caller promises that they may on each of those.
unsafe impl Send for CallbackTransport {}
// SAFETY: as above.
unsafe impl Sync for CallbackTransport {}

/// The outcome of a callback.
fn outcome(name: &str, code: c_int) -> io::Result<()> {
    match code {
        0 => Ok(()),
        _ => Err(io::Error::other(format!("the callback {name} returned {code}"))),
    }
}

impl Transport for CallbackTransport {
    fn write(&self, bytes: &[u8], _timeout: Option<Duration>) -> io::Result<()> {
        let Some(send) = self.0.send else {
            return outcome("send", -1);
        };
        // SAFETY: the caller promises a function that takes these arguments.
        outcome("send", unsafe { send(self.0.context, bytes.as_ptr(), bytes.len()) })
    }

    fn read(&self, bytes: &mut [u8], _timeout: Option<Duration>) -> io::Result<usize> {
        let Some(receive) = self.0.receive else {
            return outcome("receive", -1).map(|()| 0);
        };
        // SAFETY: as above; the memory is initialised.
        outcome("receive", unsafe { receive(self.0.context, bytes.as_mut_ptr(), bytes.len()) })?;
        Ok(bytes.len())
    }

    /// The stream is the caller's: bytes behind those of a call are not the library's.
    fn reads_ahead(&self) -> bool {
        false
    }
}
