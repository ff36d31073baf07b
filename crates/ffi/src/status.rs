//! Statuses, messages, and panics.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use volery::channel;
use volery::psi;

/// The status of a call that failed, with the numbers of the program's exit statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    Other = 1,
    Usage = 2,
    Peer = 3,
    Network = 4,
    Settings = 5,
}

/// Why a call failed: `VOLERY_..` and the message. No secrets.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(status: Status, message: impl ToString) -> Self {
        let message = message.to_string();
        Self { status, message }
    }

    /// The caller's mistake: nothing was sent, and the objects are as before.
    pub(crate) fn usage(message: impl ToString) -> Self {
        Self::new(Status::Usage, message)
    }
}

pub(crate) type Result<T = ()> = std::result::Result<T, Failure>;

impl From<channel::Error> for Failure {
    fn from(error: channel::Error) -> Self {
        use channel::Error;
        let status = match error {
            Error::PeerMisbehaved(_) => Status::Peer,
            Error::Io(_) | Error::Disconnected | Error::TimedOut(_) => Status::Network,
            Error::Mismatch { .. } => Status::Settings,
            Error::Usage(_) => Status::Usage,
            _ => Status::Other,
        };
        Self::new(status, error)
    }
}

impl From<psi::Error> for Failure {
    fn from(error: psi::Error) -> Self {
        match error {
            psi::Error::Channel(error) => error.into(),
            psi::Error::Duplicate { .. } | psi::Error::TooMany { .. } => Self::usage(error),
            _ => Self::new(Status::Other, error),
        }
    }
}

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs one call of the interface: no panic leaves it.
pub(crate) fn guard(call: impl FnOnce() -> Result) -> i32 {
    let outcome = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|_| {
        let message = "the library failed inside: report it with what it printed";
        Err(Failure::new(Status::Other, message))
    });
    let Err(failure) = outcome else { return 0 };
    // Messages have no zero bytes: text of the peer is escaped.
    let message = CString::new(failure.message).unwrap_or_default();
    // A thread that is ending may have no message any more.
    let _ = LAST.try_with(|last| *last.borrow_mut() = message);
    failure.status as i32
}

#[unsafe(no_mangle)]
extern "C" fn volery_last_error() -> *const c_char {
    let last = LAST.try_with(|last| last.borrow().as_ptr());
    last.unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn volery_version() -> *const c_char {
    const VERSION: &[u8] = concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes();
    CStr::from_bytes_with_nul(VERSION).map_or(c"".as_ptr(), CStr::as_ptr)
}
