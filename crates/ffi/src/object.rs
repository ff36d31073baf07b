//! Objects that refuse every call after a failure.

use std::sync::{Mutex, PoisonError, TryLockError};

use crate::status::{Failure, Result, Status};

/// An object of the interface.
pub(crate) struct Object<T>(Mutex<State<T>>);

enum State<T> {
    /// Boxed, so that taking it out moves no secret.
    Live(Box<T>),
    /// The first failure.
    Failed(Failure),
}

impl<T> Object<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(State::Live(Box::new(value))))
    }

    /// Runs `call` on the state. After a failure other than wrong usage, and after a panic, the
    /// state is deleted, and every later call fails as that one did.
    pub(crate) fn call<O>(&self, call: impl FnOnce(&mut T) -> Result<O>) -> Result<O> {
        let mut state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => PoisonError::into_inner(state),
            Err(TryLockError::WouldBlock) => {
                let message = "the object is in use by another call: one at a time";
                return Err(Failure::usage(message));
            }
        };
        if let State::Failed(first) = &*state {
            let message = format!("refused, as an earlier call failed: {}", first.message);
            return Err(Failure::new(first.status, message));
        }
        let panicked = Failure::new(Status::Other, "the library failed inside");
        let State::Live(mut live) = std::mem::replace(&mut *state, State::Failed(panicked)) else {
            unreachable!("a failed object was refused above");
        };
        let outcome = call(&mut live);
        *state = match &outcome {
            Err(failure) if failure.status != Status::Usage => State::Failed(failure.clone()),
            _ => State::Live(live),
        };
        outcome
    }
}
