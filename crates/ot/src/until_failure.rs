//! State that does not outlive a failed call.

use crate::{Error, Result};

/// What a party holds until one of its calls fails: then it is dropped, and with that wiped.
///
/// A peer that made a call fail may have learnt something from that. So nothing is left to try again with, and a caller
/// who ignores the error cannot go on.
///
/// Boxed, so that taking it out moves no secret.
pub(crate) struct UntilFailure<T>(Option<Box<T>>);

impl<T> UntilFailure<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self(Some(Box::new(inner)))
    }

    /// What `call` says. If that is an error, or a panic, every later call is refused.
    ///
    /// # Errors
    /// Those of `call`; [`Error::Broken`] if an earlier one failed.
    pub(crate) fn call<O>(&mut self, call: impl FnOnce(&mut T) -> Result<O>) -> Result<O> {
        let mut inner = self.0.take().ok_or(Error::Broken)?;
        let output = call(&mut inner)?;
        self.0 = Some(inner);
        Ok(output)
    }

    /// What is held, to be changed by no call that can fail.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed.
    pub(crate) fn get_mut(&mut self) -> Result<&mut T> {
        self.0.as_deref_mut().ok_or(Error::Broken)
    }

    /// What is held.
    ///
    /// # Panics
    /// If a call failed.
    pub(crate) fn get(&self) -> &T {
        self.0
            .as_ref()
            .expect("nothing is left of a source of OTs after a failed call")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Counts its drops.
    struct Counted<'a>(&'a Cell<u32>);

    impl Drop for Counted<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn the_first_error_drops_what_is_held() {
        let drops = Cell::new(0);
        let mut held = UntilFailure::new(Counted(&drops));
        for _ in 0..3 {
            assert_eq!(held.call(|_| Ok(5)).unwrap(), 5);
            assert_eq!(held.get().0.get(), 0);
        }
        assert!(matches!(
            held.call(|_| Err::<(), _>(Error::Disconnected)),
            Err(Error::Disconnected)
        ));
        assert_eq!(drops.get(), 1, "at the failure, not at the end");
        for _ in 0..2 {
            assert!(matches!(
                held.call(|_| -> Result<()> { unreachable!("nothing to call with") }),
                Err(Error::Broken)
            ));
        }
        assert!(catch_unwind(AssertUnwindSafe(|| held.get().0.get())).is_err());
    }

    #[test]
    fn a_panic_is_a_failure() {
        let drops = Cell::new(0);
        let mut held = UntilFailure::new(Counted(&drops));
        let call = AssertUnwindSafe(|| held.call(|_| -> Result<()> { panic!("on purpose") }));
        assert!(catch_unwind(call).is_err());
        assert_eq!(drops.get(), 1);
        assert!(matches!(held.call(|_| Ok(())), Err(Error::Broken)));
    }
}
