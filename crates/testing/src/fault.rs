//! Fault injection: a transport that tampers with one message of its party.
//!
//! It turns an honest implementation into a malicious peer, so that every check of a protocol can
//! be tested. [`Tampered`], which counts bytes and not messages, does the same for tests of a
//! single crate.

use std::io;
use std::ops::Range;

use volery_channel::Transport;
pub use volery_channel::tamper::Tampered;
use volery_os::sync::{Arc, Mutex, MutexGuard, PoisonError};
use volery_os::thread;
use volery_os::time::Duration;

/// The fault of one message; positions beyond its end change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The bits of `mask` of byte number `at` are flipped.
    Flip {
        /// The byte, counted from 0.
        at: usize,
        /// The bits.
        mask: u8,
    },
    /// It is not sent.
    Drop,
    /// It is sent twice.
    Repeat,
    /// It is sent after the next one, or at the end if there is no next one.
    Swap,
    /// Its second half is sent before its first.
    Reorder,
    /// Only its first bytes are sent, this many, and the run continues.
    Shorten(usize),
    /// Only its first bytes are sent, this many, and then the connection is cut: this party's calls
    /// fail, and the peer's once this transport is dropped.
    Cut(usize),
    /// This many zero bytes follow it.
    Lengthen(usize),
    /// It is sent this much later.
    Delay(Duration),
}

/// One tampered message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fault {
    /// The number of the message among those this party sends, counted from 0, as
    /// [`Stats`](volery_channel::Stats) counts them.
    pub message: u64,
    /// The fault.
    pub kind: FaultKind,
}

/// A transport whose party tampers with one message. Incoming bytes are unchanged.
///
/// The tampered message is held back until it is complete: until the party waits for an answer, or
/// drops the transport.
///
/// ```
/// use volery_channel::{Channel, memory};
/// use volery_testing::fault::{Fault, FaultKind, FaultyTransport};
///
/// let (left, right) = memory::pair();
/// let fault = Fault { message: 0, kind: FaultKind::Reorder };
/// let mut left = Channel::new(FaultyTransport::new(left, fault));
/// let mut right = Channel::new(right);
/// left.send(b"to")?;
/// left.send(b"day")?;
/// left.flush()?;
/// drop(left);
/// let mut word = [0; 5];
/// right.recv(&mut word)?;
/// assert_eq!(&word, b"dayto");
/// # Ok::<_, volery_channel::Error>(())
/// ```
pub struct FaultyTransport<T: Transport> {
    inner: T,
    fault: Fault,
    edit: Option<Edit>,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
    lengths: Lengths,
}

/// A change of a whole message.
pub type Edit = Arc<dyn Fn(&mut Vec<u8>) + Send + Sync>;

/// The bytes of each message that a party sent so far, before any tampering.
pub type Lengths = Arc<Mutex<Vec<usize>>>;

#[derive(Default)]
struct Outgoing {
    /// The number of the message being sent, or else of the next one.
    message: u64,
    sending: bool,
    /// The tampered message, as far as it was written.
    held: Vec<u8>,
    /// The tampered message, to be sent after the current one.
    late: Option<Vec<u8>>,
    cut: bool,
}

/// Bytes received from below and not yet delivered.
#[derive(Default)]
struct Incoming {
    buffer: Vec<u8>,
    unread: Range<usize>,
}

/// Bytes requested from below at a time.
const AHEAD: usize = 64 << 10;

impl<T: Transport> FaultyTransport<T> {
    /// The transport `inner`, and the fault of its party.
    pub fn new(inner: T, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            edit: None,
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            lengths: Lengths::default(),
        }
    }

    /// The transport `inner` of an honest party, and a view of the lengths of its messages.
    pub fn watched(inner: T) -> (Self, Lengths) {
        let nothing = Fault { message: u64::MAX, kind: FaultKind::Drop };
        let this = Self::new(inner, nothing);
        let lengths = Arc::clone(&this.lengths);
        (this, lengths)
    }

    /// The transport `inner` of a party whose message of this number is edited.
    pub fn edited(inner: T, message: u64, edit: Edit) -> Self {
        let kind = FaultKind::Lengthen(0);
        let mut this = Self::new(inner, Fault { message, kind });
        this.edit = Some(edit);
        this
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the current message, if there is one.
    fn turn(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut outgoing = self.outgoing();
        if !std::mem::take(&mut outgoing.sending) {
            return Ok(());
        }
        let ended = outgoing.message;
        outgoing.message += 1;
        if ended == self.fault.message {
            let message = std::mem::take(&mut outgoing.held);
            self.tamper(message, &mut outgoing, timeout)
        } else {
            match outgoing.late.take() {
                Some(late) => self.inner.write(&late, timeout),
                None => Ok(()),
            }
        }
    }

    fn tamper(
        &self,
        mut message: Vec<u8>,
        outgoing: &mut Outgoing,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        if let Some(edit) = &self.edit {
            edit(&mut message);
        }
        match self.fault.kind {
            FaultKind::Flip { at, mask } => {
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= mask;
                }
            }
            FaultKind::Drop => message.clear(),
            FaultKind::Repeat => message.extend_from_within(..),
            FaultKind::Swap => outgoing.late = Some(std::mem::take(&mut message)),
            FaultKind::Reorder => {
                let half = message.len() / 2;
                message.rotate_left(half);
            }
            FaultKind::Shorten(keep) => message.truncate(keep),
            FaultKind::Cut(keep) => {
                message.truncate(keep);
                outgoing.cut = true;
            }
            FaultKind::Lengthen(by) => message.resize(message.len() + by, 0),
            FaultKind::Delay(time) => thread::sleep(time),
        }
        if message.is_empty() {
            return Ok(());
        }
        self.inner.write(&message, timeout)
    }

    fn alive(&self) -> io::Result<()> {
        if self.outgoing().cut {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        Ok(())
    }
}

impl<T: Transport> Transport for FaultyTransport<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.alive()?;
        let mut outgoing = self.outgoing();
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if !outgoing.sending {
            outgoing.sending = true;
            lengths.push(0);
        }
        *lengths.last_mut().expect("a message length was pushed before") += bytes.len();
        drop(lengths);
        if outgoing.message == self.fault.message {
            outgoing.held.extend_from_slice(bytes);
            return Ok(());
        }
        self.inner.write(bytes, timeout)
    }

    /// Delivers one byte at a time: a channel that reads ahead would otherwise answer without
    /// waiting, and the boundary between messages would depend on the speed of the peer.
    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.turn(timeout)?;
        self.alive()?;
        let mut incoming = self.incoming.lock().unwrap_or_else(PoisonError::into_inner);
        let incoming = &mut *incoming;
        if incoming.unread.is_empty() {
            incoming.buffer.resize(AHEAD, 0);
            incoming.unread = 0..self.inner.read(&mut incoming.buffer, timeout)?;
        }
        let (Some(place), Some(first)) = (incoming.unread.next(), bytes.first_mut()) else {
            return Ok(0);
        };
        *first = incoming.buffer[place];
        Ok(1)
    }
}

impl<T: Transport> Drop for FaultyTransport<T> {
    fn drop(&mut self) {
        // No caller is left to be told that the peer has disconnected.
        let _ = self.turn(None);
        if let Some(late) = self.outgoing().late.take() {
            let _ = self.inner.write(&late, None);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use volery_channel::{Channel, Error, Result, memory, run_two_channels};

    use super::*;

    /// A party that sends `ab`, waits for a byte, sends `cd`, `ef`, waits, sends `g`.
    fn party(channel: &mut Channel) -> Result<()> {
        let mut answer = [0];
        channel.send(b"ab")?;
        channel.recv(&mut answer)?;
        channel.send(b"cd")?;
        channel.flush()?;
        channel.send(b"ef")?;
        channel.recv(&mut answer)?;
        channel.send(b"g")?;
        channel.flush()
    }

    #[test]
    fn messages_are_those_of_the_statistics() {
        let (left, right) = memory::pair();
        let (left, lengths) = FaultyTransport::watched(left);
        let mut left = Channel::new(left);
        right.write(b"12", None).unwrap();
        party(&mut left).unwrap();
        assert_eq!(left.stats().messages_sent, 3);
        drop(left);
        assert_eq!(*lengths.lock().unwrap(), [2, 4, 1]);
    }

    /// The bytes that the peer receives; it has sent both answers before it reads.
    fn heard(message: u64, kind: FaultKind) -> (String, Result<()>) {
        let (left, right) = memory::pair();
        let left = Channel::new(FaultyTransport::new(left, Fault { message, kind }));
        let mut right = Channel::new(right);
        right.send(b"12").unwrap();
        right.flush().unwrap();
        let ((sent, _), (received, _)) = run_two_channels(left, right, party, |channel| {
            let (mut all, mut byte) = (Vec::new(), [0]);
            loop {
                match channel.recv(&mut byte) {
                    Ok(()) => all.extend(byte),
                    Err(Error::Disconnected) => return Ok(all),
                    Err(error) => return Err(error),
                }
            }
        });
        (String::from_utf8(received.unwrap()).unwrap(), sent)
    }

    #[test]
    fn every_act_on_every_message() {
        let flip = |at| FaultKind::Flip { at, mask: 1 };
        for (message, kind, expected) in [
            (0, flip(0), "`bcdefg"),
            (1, flip(3), "abcdegg"),
            (2, flip(0), "abcdeff"),
            (2, flip(1), "abcdefg"),
            (3, FaultKind::Drop, "abcdefg"),
            (0, FaultKind::Drop, "cdefg"),
            (1, FaultKind::Drop, "abg"),
            (1, FaultKind::Repeat, "abcdefcdefg"),
            (0, FaultKind::Swap, "cdefabg"),
            (1, FaultKind::Swap, "abgcdef"),
            (2, FaultKind::Swap, "abcdefg"),
            (1, FaultKind::Reorder, "abefcdg"),
            (2, FaultKind::Reorder, "abcdefg"),
            (1, FaultKind::Shorten(1), "abcg"),
            (1, FaultKind::Shorten(0), "abg"),
            (1, FaultKind::Shorten(9), "abcdefg"),
            (1, FaultKind::Lengthen(2), "abcdef\0\0g"),
            (2, FaultKind::Lengthen(1), "abcdefg\0"),
            (1, FaultKind::Delay(Duration::from_millis(1)), "abcdefg"),
        ] {
            let (all, sent) = heard(message, kind);
            assert_eq!(all, expected, "{message} {kind:?}");
            assert!(sent.is_ok());
        }
        for (message, keep, expected) in [(0, 1, "a"), (1, 0, "ab"), (1, 3, "abcde")] {
            let (all, sent) = heard(message, FaultKind::Cut(keep));
            assert_eq!(all, expected);
            assert!(matches!(sent, Err(Error::Disconnected)), "{sent:?}");
        }
        // The last message is truncated when the party has ended.
        assert_eq!(heard(2, FaultKind::Cut(0)).0, "abcdef");
    }
}
