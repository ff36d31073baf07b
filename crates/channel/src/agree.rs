//! Values that both parties send and compare, without waiting for each other.
//!
//! ```text
//! both at once      ----  ours  ---->   <----  theirs  ----
//! each, before it receives the next byte: compares
//! ```
//!
//! A party that only sends after that, as in one step of a protocol, compares when it
//! [settles](Channel::settle). The values protect from mistakes, not from the peer: they are not a
//! part of what a channel [binds](Channel::bind).

use std::mem::take;

use crate::{Channel, Error, Result};

/// The number of which a [`Error::Mismatch`] says that the parties made other draws.
pub(crate) const DRAWN: &str = "the number drawn so far";

/// A value of the peer that has not been received yet.
pub(crate) struct Awaited {
    bytes: usize,
    compare: Comparison,
}

/// A comparison with the peer's value.
type Comparison = Box<dyn FnOnce(&[u8]) -> Result<()> + Send>;

impl Channel {
    /// Sends `ours`, where the peer sends as many bytes by the same call. This side calls `compare`
    /// with the peer's before it receives the next byte.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send), and those of [`settle`](Self::settle) for an earlier
    /// value.
    pub fn agree(
        &mut self,
        ours: &[u8],
        compare: impl FnOnce(&[u8]) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.settle()?;
        let bound = take(&mut self.bound);
        let sent = self.send(ours);
        self.bound = bound;
        self.awaited = Some(Awaited { bytes: ours.len(), compare: Box::new(compare) });
        sent
    }

    /// [Agrees](Self::agree) on a number.
    ///
    /// # Errors
    /// Those of [`agree`](Self::agree); the error of the comparison is [`Error::Mismatch`] about
    /// the number drawn.
    pub fn agree_drawn(&mut self, drawn: u64) -> Result<()> {
        self.agree(&drawn.to_le_bytes(), move |theirs| {
            let theirs = u64::from_le_bytes(*theirs.first_chunk().expect("8 bytes"));
            // mutant(agree-drawn): `drawn == theirs` => `true`
            if drawn == theirs {
                return Ok(());
            }
            Err(Error::Mismatch {
                field: DRAWN.to_owned(),
                ours: drawn.to_string(),
                theirs: theirs.to_string(),
            })
        })
    }

    /// Flushes, and compares a value of [`agree`](Self::agree) that has not been compared.
    ///
    /// # Errors
    /// The error of its comparison, and those of [`recv`](Self::recv). The channel is unusable
    /// then.
    pub fn settle(&mut self) -> Result<()> {
        if self.awaited.is_some() {
            self.flush()?;
            self.compare_awaited()?;
        }
        Ok(())
    }

    pub(crate) fn compare_awaited(&mut self) -> Result<()> {
        let Some(Awaited { bytes, compare }) = self.awaited.take() else { return Ok(()) };
        let mut theirs = vec![0; bytes];
        let bound = take(&mut self.bound);
        let received = self.recv_only(&mut theirs, None);
        self.bound = bound;
        received?;
        compare(&theirs).map_err(|error| self.fail(error))
    }
}
