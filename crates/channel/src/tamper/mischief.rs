//! A party that spoils one of its messages.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::Transport;

/// What happens to one message; places beyond its end change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Act {
    /// The bits of `mask` of the byte number `at` are flipped.
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
    /// It is sent after the next one, or at the end if there is none.
    Swap,
    /// Its second half is sent before its first.
    Reorder,
    /// Only its first bytes are sent, so many, and all goes on.
    Shorten(usize),
    /// Only its first bytes are sent, so many, and then the connection is cut: this party's calls fail, and the peer's
    /// once this transport is dropped.
    Cut(usize),
    /// So many zero bytes follow it.
    Lengthen(usize),
    /// It is sent so much later.
    Delay(Duration),
}

/// One spoilt message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mischief {
    /// Which message of those that this party sends, counted from 0, as [`Stats`](crate::Stats) counts them.
    pub message: u64,
    /// What happens to it.
    pub act: Act,
}

/// A transport whose party spoils one message. What comes in is not touched.
///
/// The spoilt message is held back until it is whole: until the party waits for an answer, or drops the transport.
///
/// ```
/// use volery_channel::tamper::{Act, Mischief, Mischievous};
/// use volery_channel::{Channel, memory};
///
/// let (left, right) = memory::pair();
/// let mischief = Mischief { message: 0, act: Act::Reorder };
/// let (mut left, mut right) = (Channel::new(Mischievous::new(left, mischief)), Channel::new(right));
/// left.send(b"to")?;
/// left.send(b"day")?;
/// left.flush()?;
/// drop(left);
/// let mut word = [0; 5];
/// right.recv(&mut word)?;
/// assert_eq!(&word, b"dayto");
/// # Ok::<_, volery_channel::Error>(())
/// ```
pub struct Mischievous<T: Transport> {
    inner: T,
    mischief: Mischief,
    outgoing: Mutex<Outgoing>,
    incoming: Mutex<Incoming>,
    lengths: Lengths,
}

/// The bytes of each message that a party sent so far, before any mischief.
pub type Lengths = Arc<Mutex<Vec<usize>>>;

#[derive(Default)]
struct Outgoing {
    /// The number of the message that is being sent, and of the next one otherwise.
    message: u64,
    sending: bool,
    /// The spoilt message, as far as it is there.
    held: Vec<u8>,
    /// The spoilt message, to be sent after the one that comes now.
    late: Option<Vec<u8>>,
    cut: bool,
}

/// What was received from below and not handed on.
#[derive(Default)]
struct Incoming {
    buffer: Vec<u8>,
    unread: Range<usize>,
}

/// Bytes asked for from below at a time.
const AHEAD: usize = 64 << 10;

impl<T: Transport> Mischievous<T> {
    /// The transport `inner`, and the mischief that its party does.
    pub fn new(inner: T, mischief: Mischief) -> Self {
        Self {
            inner,
            mischief,
            outgoing: Mutex::default(),
            incoming: Mutex::default(),
            lengths: Lengths::default(),
        }
    }

    /// The transport `inner` of an honest party, and a view of the messages that it sends.
    pub fn watched(inner: T) -> (Self, Lengths) {
        let nothing = Mischief {
            message: u64::MAX,
            act: Act::Drop,
        };
        let this = Self::new(inner, nothing);
        let lengths = Arc::clone(&this.lengths);
        (this, lengths)
    }

    fn outgoing(&self) -> MutexGuard<'_, Outgoing> {
        self.outgoing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The party has finished a message, if it was sending one.
    fn turn(&self, timeout: Option<Duration>) -> io::Result<()> {
        let mut outgoing = self.outgoing();
        if !std::mem::take(&mut outgoing.sending) {
            return Ok(());
        }
        let ended = outgoing.message;
        outgoing.message += 1;
        if ended == self.mischief.message {
            let message = std::mem::take(&mut outgoing.held);
            self.spoil(message, &mut outgoing, timeout)
        } else {
            match outgoing.late.take() {
                Some(late) => self.inner.write(&late, timeout),
                None => Ok(()),
            }
        }
    }

    fn spoil(
        &self,
        mut message: Vec<u8>,
        outgoing: &mut Outgoing,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        match self.mischief.act {
            Act::Flip { at, mask } => {
                if let Some(byte) = message.get_mut(at) {
                    *byte ^= mask;
                }
            }
            Act::Drop => message.clear(),
            Act::Repeat => message.extend_from_within(..),
            Act::Swap => outgoing.late = Some(std::mem::take(&mut message)),
            Act::Reorder => {
                let half = message.len() / 2;
                message.rotate_left(half);
            }
            Act::Shorten(keep) => message.truncate(keep),
            Act::Cut(keep) => {
                message.truncate(keep);
                outgoing.cut = true;
            }
            Act::Lengthen(by) => message.resize(message.len() + by, 0),
            Act::Delay(time) => thread::sleep(time),
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

impl<T: Transport> Transport for Mischievous<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.alive()?;
        let mut outgoing = self.outgoing();
        let mut lengths = self.lengths.lock().unwrap_or_else(PoisonError::into_inner);
        if !outgoing.sending {
            outgoing.sending = true;
            lengths.push(0);
        }
        *lengths.last_mut().expect("one was pushed") += bytes.len();
        drop(lengths);
        if outgoing.message == self.mischief.message {
            outgoing.held.extend_from_slice(bytes);
            return Ok(());
        }
        self.inner.write(bytes, timeout)
    }

    /// Hands out one byte at a time: a channel that reads ahead would otherwise answer without waiting, and where one
    /// message ends and the next begins would depend on how fast the peer is.
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

impl<T: Transport> Drop for Mischievous<T> {
    fn drop(&mut self) {
        // Nobody is there to be told that the peer has gone.
        let _ = self.turn(None);
        if let Some(late) = self.outgoing().late.take() {
            let _ = self.inner.write(&late, None);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

    use super::*;
    use crate::{Channel, Error, Result, memory, run_two_channels};

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
        let (left, lengths) = Mischievous::watched(left);
        let mut left = Channel::new(left);
        right.write(b"12", None).unwrap();
        party(&mut left).unwrap();
        assert_eq!(left.stats().messages_sent, 3);
        drop(left);
        assert_eq!(*lengths.lock().unwrap(), [2, 4, 1]);
    }

    /// What the peer gets of it, which has answered both times before it listens.
    fn heard(message: u64, act: Act) -> (String, Result<()>) {
        let (left, right) = memory::pair();
        let left = Channel::new(Mischievous::new(left, Mischief { message, act }));
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
        let flip = |at| Act::Flip { at, mask: 1 };
        for (message, act, expected) in [
            (0, flip(0), "`bcdefg"),
            (1, flip(3), "abcdegg"),
            (2, flip(0), "abcdeff"),
            (2, flip(1), "abcdefg"),
            (3, Act::Drop, "abcdefg"),
            (0, Act::Drop, "cdefg"),
            (1, Act::Drop, "abg"),
            (1, Act::Repeat, "abcdefcdefg"),
            (0, Act::Swap, "cdefabg"),
            (1, Act::Swap, "abgcdef"),
            (2, Act::Swap, "abcdefg"),
            (1, Act::Reorder, "abefcdg"),
            (2, Act::Reorder, "abcdefg"),
            (1, Act::Shorten(1), "abcg"),
            (1, Act::Shorten(0), "abg"),
            (1, Act::Shorten(9), "abcdefg"),
            (1, Act::Lengthen(2), "abcdef\0\0g"),
            (2, Act::Lengthen(1), "abcdefg\0"),
            (1, Act::Delay(Duration::from_millis(1)), "abcdefg"),
        ] {
            let (all, sent) = heard(message, act);
            assert_eq!(all, expected, "{message} {act:?}");
            assert!(sent.is_ok());
        }
        for (message, keep, expected) in [(0, 1, "a"), (1, 0, "ab"), (1, 3, "abcde")] {
            let (all, sent) = heard(message, Act::Cut(keep));
            assert_eq!(all, expected);
            assert!(matches!(sent, Err(Error::Disconnected)), "{sent:?}");
        }
        // The last message is cut when the party has ended.
        assert_eq!(heard(2, Act::Cut(0)).0, "abcdef");
    }
}
