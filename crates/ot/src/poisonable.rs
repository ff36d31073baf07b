//! State that is wiped when a call fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, Result};

/// The state of a party until one of its calls fails: then it is dropped, and thus wiped.
///
/// A peer that made a call fail may have learnt something from the failure. Therefore no state is
/// left for a retry, and a caller that ignores the error cannot go on.
///
/// Boxed, so that taking it out moves no secret.
pub(crate) struct Poisonable<T> {
    inner: Option<Box<T>>,
    /// Whether a call on this object, or on one that shares secrets with it, failed.
    failed: Arc<AtomicBool>,
}

impl<T> Poisonable<T> {
    pub(crate) fn new(inner: T) -> Self {
        Self { inner: Some(Box::new(inner)), failed: Arc::default() }
    }

    /// An object that fails together with this one: a failed call on either ends both. The failed
    /// one drops its state at once, the other at its next call, if it is not dropped before; until
    /// then it returns nothing.
    pub(crate) fn sibling<S>(&self, inner: S) -> Poisonable<S> {
        Poisonable { inner: Some(Box::new(inner)), failed: Arc::clone(&self.failed) }
    }

    /// Runs `call` on the state. After an error or a panic, every later call is refused.
    ///
    /// # Errors
    /// The errors of `call`; [`Error::Broken`] if an earlier one failed, or a sibling's on another
    /// thread in the meantime.
    pub(crate) fn call<O>(&mut self, call: impl FnOnce(&mut T) -> Result<O>) -> Result<O> {
        let mut inner = self.take().ok_or(Error::Broken)?;
        let guard = FailOnDrop(&self.failed);
        // mutant(poisonable-error): `call(&mut inner)?` => `match call(&mut inner) { Err(error) if
        //     $ON => { std::mem::forget(guard); self.inner = Some(inner); return Err(error); }
        //     result => result? }`
        let output = call(&mut inner)?;
        std::mem::forget(guard);
        // mutant(poisonable-meanwhile): false
        if self.failed.load(Ordering::SeqCst) {
            return Err(Error::Broken);
        }
        self.inner = Some(inner);
        Ok(output)
    }

    /// The state, for changes that cannot fail.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed, here or at a sibling.
    pub(crate) fn get_mut(&mut self) -> Result<&mut T> {
        let inner = self.take().ok_or(Error::Broken)?;
        Ok(self.inner.insert(inner))
    }

    /// The state.
    ///
    /// # Panics
    /// If a call failed, here or at a sibling.
    pub(crate) fn get(&self) -> &T {
        self.try_get().expect("no earlier call on this source of OTs failed")
    }

    /// The state.
    ///
    /// # Errors
    /// [`Error::Broken`] if a call failed, here or at a sibling.
    pub(crate) fn try_get(&self) -> Result<&T> {
        // mutant(poisonable-get): `!self.failed.load(Ordering::SeqCst)` => `true`
        let live = self.inner.as_ref().filter(|_| !self.failed.load(Ordering::SeqCst));
        live.map(|inner| &**inner).ok_or(Error::Broken)
    }

    /// Takes the state out; `None`, and it is dropped, if a call failed here or at a sibling.
    fn take(&mut self) -> Option<Box<T>> {
        let inner = self.inner.take();
        // mutant(poisonable-sibling): `!self.failed.load(Ordering::SeqCst)` => `true`
        inner.filter(|_| !self.failed.load(Ordering::SeqCst))
    }
}

/// Sets the flag when it is dropped by an error or a panic.
struct FailOnDrop<'a>(&'a AtomicBool);

impl Drop for FailOnDrop<'_> {
    fn drop(&mut self) {
        // mutant(poisonable-panic): drop
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Counts its drops.
    struct DropCounter<'a>(&'a Cell<u32>);

    impl Drop for DropCounter<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    #[test]
    fn the_first_error_drops_what_is_held() {
        let drops = Cell::new(0);
        let mut held = Poisonable::new(DropCounter(&drops));
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
        let mut held = Poisonable::new(DropCounter(&drops));
        let call = AssertUnwindSafe(|| held.call(|_| -> Result<()> { panic!("on purpose") }));
        assert!(catch_unwind(call).is_err());
        assert_eq!(drops.get(), 1);
        assert!(matches!(held.call(|_| Ok(())), Err(Error::Broken)));
    }

    #[test]
    fn siblings_fail_together() {
        let drops = Cell::new(0);
        let mut parent = Poisonable::new(DropCounter(&drops));
        let mut child = parent.sibling(DropCounter(&drops));
        let mut grandchild = child.sibling(DropCounter(&drops));
        assert!(child.call(|_| Ok(())).is_ok() && parent.get_mut().is_ok());
        assert!(child.call(|_| Err::<(), _>(Error::Disconnected)).is_err());
        assert_eq!(drops.get(), 1, "of the one that failed, at once");
        for one in [&parent, &grandchild] {
            assert!(catch_unwind(AssertUnwindSafe(|| one.get().0.get())).is_err());
        }
        assert!(matches!(parent.get_mut().map(|_| ()), Err(Error::Broken)));
        assert!(matches!(grandchild.call(|_| Ok(())), Err(Error::Broken)));
        assert_eq!(drops.get(), 3, "each at its next call");
    }

    #[test]
    fn a_sibling_that_fails_meanwhile_ends_the_call() {
        let drops = Cell::new(0);
        let mut parent = Poisonable::new(DropCounter(&drops));
        let mut child = parent.sibling(DropCounter(&drops));
        let result = parent.call(|_| {
            assert!(child.call(|_| Err::<(), _>(Error::Disconnected)).is_err());
            Ok(5)
        });
        assert!(matches!(result, Err(Error::Broken)));
        assert_eq!(drops.get(), 2);
        assert!(matches!(parent.call(|_| Ok(())), Err(Error::Broken)));
    }
}
