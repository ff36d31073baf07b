//! Flags and error codes with different names on different operating systems.

use std::ffi::c_int;

/// The flag of a call that does not wait; without one the timeout of the socket bounds the wait.
#[cfg(unix)]
pub(crate) const AT_ONCE: c_int = libc::MSG_DONTWAIT;
#[cfg(not(unix))]
pub(crate) const AT_ONCE: c_int = 0;

/// The flag of a call that fails without a signal when the peer is gone; elsewhere there is no
/// signal, or `socket2` has switched it off.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) const NO_SIGNAL: c_int = libc::MSG_NOSIGNAL;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) const NO_SIGNAL: c_int = 0;

/// The peer's machine does not answer any more.
#[cfg(unix)]
pub(crate) const NO_ANSWER: c_int = libc::ETIMEDOUT;
/// `WSAETIMEDOUT`, which is also that of a socket's own timeout: it keeps its meaning.
#[cfg(not(unix))]
pub(crate) const NO_ANSWER: c_int = c_int::MIN;

/// Errors of `accept` that belong to the new connection and have no kind of their own.
#[cfg(unix)]
pub(crate) const OF_THE_CONNECTION: [c_int; 4] =
    [libc::EPROTO, libc::ENOPROTOOPT, libc::EOPNOTSUPP, libc::EHOSTDOWN];
#[cfg(not(unix))]
pub(crate) const OF_THE_CONNECTION: [c_int; 0] = [];

/// Errors of `accept` that go away when other connections end.
#[cfg(all(unix, feature = "tls"))]
pub(crate) const SHORTAGE: [c_int; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
/// `WSAEMFILE` and `WSAENOBUFS`.
#[cfg(all(not(unix), feature = "tls"))]
pub(crate) const SHORTAGE: [c_int; 2] = [10024, 10055];
