//! Several channels over one connection, for protocols that run at the same time.
//!
//! [`split`] turns a connection into substreams: independent channels, each for a thread of its
//! own. A waiting substream does not block the others.
//!
//! **Substream ids are unique by construction.** A connection is split once, as [`split`] consumes
//! the channel; each substream is created once and cannot be copied; its number is its index among
//! those that `split` returns, and callers cannot choose another. [`Substream::session`] is derived
//! from number and session. If the session is that of this connection's handshake, and so of no
//! other, no two substreams of any connections, and no substream and no earlier protocol, share a
//! session: the hashes of the protocols on them are separated. `split` trusts the session that it
//! is given: passing one session twice creates substreams with equal sessions.
//!
//! ```text
//! both: "volery lanes", number of substreams      once
//! then frames, each of one substream:
//!     substream (2 bytes), kind (2), length (4), little endian
//!     data:   length bytes of the substream, not 0
//!     window: the peer may send length more bytes on this substream, not 0
//!     end:    no more data comes or is read on this substream; length 0
//! ```
//!
//! A substream queues up to [`QUEUE_BOUND`](crate::QUEUE_BOUND)`/(substreams + 1)` bytes that the
//! peer has not read; then a write waits, as on every transport. No thread is started: the waiting
//! threads take turns reading for all substreams.
//!
//! A substream times out when no byte of any substream moves for its timeout. After a failed write,
//! nothing more is written on any substream, and bytes that arrived before can be read. When the
//! last substream is dropped, the peer has a few seconds to read the remaining bytes: otherwise its
//! replies would reach a closed connection, and it would lose the unread rest.
//!
//! Security: that of the connection; a party that can read one substream can read all. Data beyond
//! the window, an unknown substream or an empty frame ends all substreams. Memory is bounded by the
//! granted windows: at most twice that, in frames of any size.
//!
//! Cost: 16 bytes each way; then 8 bytes a frame of at most 64 KiB, and 8 for each MiB that was
//! read, or each quarter of a substream's queue if that is less.

mod beside;
mod frame;
mod queue;
mod shared;

use std::io;
use std::time::Duration;

use volery_os::sync::{Arc, Mutex};
use volery_primitives::{Wiped, ro::RandomOracle};

use crate::pipe::lock;
use crate::{Channel, Error, Result, SessionId, Transport};
pub use beside::side_by_side;
use frame::Frame;
pub(crate) use shared::Shared;
use shared::{Lasting, Waits};

/// The first bytes of both parties.
const GREETING: &[u8; 12] = b"volery lanes";

/// Maximum number of substreams of a connection.
pub const MAX_SUBSTREAMS: usize = 256;

/// Maximum bytes of a substream that are sent before another substream has its turn.
const PIECE: usize = 64 << 10;

/// One of the channels over a connection, from [`split`].
pub struct Substream {
    number: usize,
    session: SessionId,
    channel: Channel,
}

impl Substream {
    /// Its index among the substreams of the connection: the same at both parties.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The session of this substream: unique, if no other connection was split with the same
    /// session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The channel.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// Splits a connection into `N` substreams, after both parties have agreed on `session`: that of
/// its handshake. Both call it at the same point.
///
/// Each substream's channel inherits the timeout and the description of the connection, and counts
/// its own traffic.
///
/// # Panics
/// If `N` is zero or above [`MAX_SUBSTREAMS`].
///
/// # Errors
/// [`Error::Mismatch`] if the peer splits into another number of substreams,
/// [`Error::PeerMisbehaved`] if it does not split; if the channel fails.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use volery_channel::{SessionId, mux, run_two_channels, Channel, Error};
///
/// fn party(channel: Channel, ours: u8) -> Result<Vec<u8>, Error> {
///     let session = SessionId::from_bytes([1; 32]); // from the handshake in a program
///     let mut substreams = mux::split::<3>(channel, session)?;
///     thread::scope(|scope| {
///         let protocols: Vec<_> = substreams
///             .iter_mut()
///             .map(|substream| {
///                 scope.spawn(move || {
///                     let (number, mut theirs) = (substream.number() as u8, [0]);
///                     substream.channel().send(&[ours + number])?;
///                     substream.channel().recv(&mut theirs)?;
///                     Ok(theirs[0])
///                 })
///             })
///             .collect();
///         protocols.into_iter().map(|protocol| protocol.join().expect("no panic")).collect()
///     })
/// }
///
/// let (left, right) = Channel::memory_pair();
/// let peer = thread::spawn(|| party(right, 20));
/// assert_eq!(party(left, 10)?, [20, 21, 22]);
/// assert_eq!(peer.join().expect("no panic")?, [10, 11, 12]);
/// # Ok::<_, Error>(())
/// ```
pub fn split<const N: usize>(channel: Channel, session: SessionId) -> Result<[Substream; N]> {
    let substreams = split_into(channel, session, N)?;
    Ok(substreams.try_into().ok().expect("split_into returns N substreams"))
}

/// Splits like [`split`], into a number of substreams given at run time.
///
/// # Panics
/// The panics of [`split`].
///
/// # Errors
/// The errors of [`split`].
pub fn split_into(
    mut channel: Channel,
    session: SessionId,
    count: usize,
) -> Result<Vec<Substream>> {
    assert!(
        (1..=MAX_SUBSTREAMS).contains(&count),
        "the number of substreams is from 1 to MAX_SUBSTREAMS"
    );
    greet(&mut channel, count)?;
    let (timeout, description) = (channel.timeout(), channel.description().to_owned());
    let (transport, unread) = channel.into_transport();
    let shared = Shared::new(transport, timeout, &unread, count, Lasting::ToTheEnd);
    let shared = Arc::new(Wiped::new(shared));
    let substream = |number: usize| {
        let end = End { shared: Arc::clone(&shared), number, patience: Mutex::new(timeout) };
        Substream {
            number,
            session: session_of(session, number),
            channel: Channel::with_timeout(end, timeout).described(description.clone()),
        }
    };
    Ok((0..count).map(substream).collect())
}

/// Checks that both parties split into the same number of substreams.
fn greet(channel: &mut Channel, count: usize) -> Result<()> {
    let mut ours = [0; GREETING.len() + 4];
    ours[..GREETING.len()].copy_from_slice(GREETING);
    ours[GREETING.len()..].copy_from_slice(&(count as u32).to_le_bytes());
    channel.send(&ours)?;
    let mut theirs = ours;
    channel.recv(&mut theirs)?;
    let (greeting, number) = theirs.split_at(GREETING.len());
    // mutant(mux-greeting): false
    if greeting != GREETING {
        return Err(Error::PeerMisbehaved("it did not split the connection into substreams"));
    }
    // mutant(mux-count): false
    if theirs != ours {
        let theirs = number.iter().rev().fold(0, |sum, &byte| sum << 8 | u32::from(byte));
        return Err(Error::Mismatch {
            field: "lanes".into(),
            ours: count.to_string(),
            theirs: theirs.to_string(),
        });
    }
    Ok(())
}

fn session_of(session: SessionId, number: usize) -> SessionId {
    let mut oracle = RandomOracle::new("volery session of a lane");
    oracle.absorb(session.as_bytes());
    // mutant(mux-session): drop
    oracle.absorb_u64(number as u64);
    SessionId::from_bytes(oracle.finish32())
}

/// One substream, as a transport.
struct End {
    shared: Arc<Wiped<Shared>>,
    number: usize,
    /// The timeout of the last call.
    patience: Mutex<Option<Duration>>,
}

impl End {
    fn note(&self, timeout: Option<Duration>) {
        *lock(&self.patience) = timeout;
    }
}

impl Transport for End {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.note(timeout);
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = rest.len().min(PIECE);
            let now = self.shared.wait(self.number, Waits::ToWrite, timeout, |substream| {
                if substream.has_ended() {
                    // no mutant: the peer has ended the substream
                    return Some(Err(io::ErrorKind::BrokenPipe.into()));
                }
                substream.take_window(wanted).map(Ok)
            })?;
            let data;
            (data, rest) = rest.split_at(now);
            self.shared.send(Frame::Data(self.number, data), timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.note(timeout);
        let (count, read) = self
            .shared
            .wait(self.number, Waits::ToRead, timeout, |substream| substream.take(bytes).map(Ok))?;
        if read > 0 {
            // The peer may have sent its last bytes and closed. A later read finds the end.
            let _ = self.shared.send(Frame::Window(self.number, read), timeout);
        }
        Ok(count)
    }

    fn round_trip(&self) -> Option<Duration> {
        self.shared.round_trip()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if self.shared.drop_queue(self.number) {
            let patience = *lock(&self.patience);
            // The peer may be gone.
            let _ = self.shared.send(Frame::End(self.number), patience);
        }
    }
}
