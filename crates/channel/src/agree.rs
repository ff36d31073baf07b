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
    /// The errors of [`agree`](Self::agree), in which the comparison's is [`Error::Mismatch`] about
    /// the number drawn.
    pub fn agree_drawn(&mut self, drawn: u64) -> Result<()> {
        self.agree(&drawn.to_le_bytes(), move |theirs| {
            let theirs = u64::from_le_bytes(*theirs.first_chunk().expect("8 bytes"));
            // mutant(agree-drawn): false
            if drawn != theirs {
                let field = DRAWN.to_owned();
                let (ours, theirs) = (drawn.to_string(), theirs.to_string());
                return Err(Error::Mismatch { field, ours, theirs });
            }
            Ok(())
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

#[cfg(test)]
mod tests {
    use std::io::{self, ErrorKind};
    use std::time::Duration;

    use crate::{Channel, Error, Result, Transport, run_two_unchecked};

    /// A transport on which writing fails, after the peer has sent bytes 1.
    struct Unwritable(ErrorKind);

    impl Transport for Unwritable {
        fn write(&self, _bytes: &[u8], _timeout: Option<Duration>) -> io::Result<()> {
            Err(self.0.into())
        }

        fn read(&self, bytes: &mut [u8], _timeout: Option<Duration>) -> io::Result<usize> {
            assert_eq!(self.0, ErrorKind::BrokenPipe, "this waits for a peer that does not read");
            bytes.fill(1);
            Ok(bytes.len())
        }
    }

    #[test]
    fn the_value_of_a_peer_that_has_closed_is_compared() {
        for (kind, text) in [(ErrorKind::BrokenPipe, "drawn"), (ErrorKind::TimedOut, "progress")] {
            let mut channel = Channel::new(Unwritable(kind));
            channel.agree_drawn(7).unwrap();
            assert!(channel.settle().unwrap_err().to_string().contains(text));
        }
    }

    /// One sends after it, the other only receives; and both learn of a difference.
    #[test]
    fn numbers_are_compared_before_the_next_byte() {
        fn sends(number: u64, channel: &mut Channel) -> Result<[u8; 32]> {
            channel.bind();
            channel.agree_drawn(number)?;
            channel.send(b"more")?;
            channel.settle()?;
            Ok(channel.bound().sent)
        }
        fn receives(number: u64, channel: &mut Channel) -> Result<[u8; 32]> {
            channel.bind();
            channel.agree_drawn(number)?;
            channel.recv(&mut [0; 4])?;
            Ok(channel.bound().received)
        }
        let (sent, received) = run_two_unchecked(|one| sends(7, one), |other| receives(7, other));
        // What they bind has the message alone.
        assert_eq!(sent.unwrap(), received.unwrap());
        let (sent, received) = run_two_unchecked(|one| sends(7, one), |other| receives(8, other));
        for (result, ours, theirs) in [(sent, "7", "8"), (received, "8", "7")] {
            let Err(error @ Error::Mismatch { .. }) = result else { panic!("{result:?}") };
            let text = format!("drawn so far: {ours} here, {theirs} at the peer; both must make");
            assert!(error.to_string().contains(&text), "{error}");
        }
    }
}
