//! Objects that refuse every call after a failure, and for some time after they were freed.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use crate::status::{Failure, Result, Status};

/// An object of the interface.
pub(crate) struct Object<T>(Mutex<State<T>>);

enum State<T> {
    /// Boxed, so that taking it out moves no secret.
    Live(Box<T>),
    /// The first failure.
    Failed(Failure),
    /// Freed, and not forgotten yet.
    Freed,
}

/// The objects that were freed last, without their contents: a call on one of them finds an object,
/// and not memory that something else may use by then.
static FREED: Mutex<VecDeque<Box<dyn Send>>> = Mutex::new(VecDeque::new());

/// The number of objects that are remembered.
const REMEMBERED: usize = 64;

/// Keeps a freed object until as many others have been freed.
pub(crate) fn remember<T: Send + 'static>(object: Box<Object<T>>) {
    let mut freed = FREED.lock().unwrap_or_else(PoisonError::into_inner);
    if freed.len() == REMEMBERED {
        freed.pop_front();
    }
    freed.push_back(object);
}

impl<T> Object<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Mutex::new(State::Live(Box::new(value))))
    }

    /// Runs `call` on the state. After a failure other than wrong usage, and after a panic, the
    /// state is deleted, and every later call fails as that one did.
    pub(crate) fn call<O>(&self, call: impl FnOnce(&mut T) -> Result<O>) -> Result<O> {
        let mut state = self.lock()?;
        if let State::Failed(first) = &*state {
            let message = format!("refused, as an earlier call failed: {}", first.message);
            return Err(Failure::new(first.status, message));
        }
        let panicked = Failure::new(Status::Other, "the library failed inside");
        let State::Live(mut live) = std::mem::replace(&mut *state, State::Failed(panicked)) else {
            unreachable!("a failed or freed object was refused above");
        };
        let outcome = call(&mut live);
        *state = match &outcome {
            Err(failure) if failure.status != Status::Usage => State::Failed(failure.clone()),
            _ => State::Live(live),
        };
        outcome
    }

    /// Deletes what the object has.
    pub(crate) fn free(&self) -> Result {
        *self.lock()? = State::Freed;
        Ok(())
    }

    /// The state, unless another call has it or the object was freed.
    fn lock(&self) -> Result<MutexGuard<'_, State<T>>> {
        let state = match self.0.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(state)) => PoisonError::into_inner(state),
            Err(TryLockError::WouldBlock) => {
                let message = "the object is in use by another call: one at a time";
                return Err(Failure::usage(message));
            }
        };
        if matches!(*state, State::Freed) {
            return Err(Failure::usage("the object was freed before this call"));
        }
        Ok(state)
    }
}
