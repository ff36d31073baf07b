//! What the streams of all correlations share: where they come from, and how many are left.

use volery_channel::{Error, Result};

/// Correlations that may still be drawn; none: without end.
pub(crate) struct Left(pub(crate) Option<u64>);

impl Left {
    /// # Panics
    /// If fewer than `n` are left.
    pub(crate) fn take(&mut self, n: usize) {
        if let Some(left) = &mut self.0 {
            *left = left
                .checked_sub(n as u64)
                .expect("no more correlations than the plan was made for");
        }
    }
}

/// Where the outputs come from.
pub(crate) enum Source<B, S, D> {
    /// A plan without LPN: from the base itself.
    Base(B),
    /// The rounds of a plan.
    Stream(S),
    /// The instances of a plan with dual LPN.
    Dual(D),
    /// An earlier call failed.
    Poisoned,
}

impl<B, S, D> Source<B, S, D> {
    /// # Errors
    /// [`Error::Broken`] if an earlier call failed.
    pub(crate) fn alive(&self) -> Result<()> {
        match self {
            Self::Poisoned => Err(Error::Broken),
            _ => Ok(()),
        }
    }

    /// Runs a call, and leaves the source poisoned if it fails on its way.
    pub(crate) fn guarded<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let mut source = std::mem::replace(self, Self::Poisoned);
        let result = call(&mut source)?;
        *self = source;
        Ok(result)
    }
}
