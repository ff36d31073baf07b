//! Several channels over one connection, for protocols that run at the same time.
//!
//! [`split`] ends the use of a connection as one channel and gives its lanes: channels that know nothing of each other, each
//! for a thread of its own. A lane that waits keeps no other from moving.
//!
//! **Lane ids are unique by construction.** A connection is split once, as the channel is given away; each lane is made once,
//! and cannot be copied; its number is its place among those that `split` returns, and nobody can name another. From number
//! and session follows [`Lane::session`]. If the session is that of this connection's handshake, and so of no other, no two
//! lanes of any connections, and no lane and what ran before, have a session in common: the hashes of what runs on them are
//! apart. `split` takes the session that it is given: to give it one twice is to give lanes one twice.
//!
//! ```text
//! both: "volery lanes", how many                  once
//! then frames, each of one lane:
//!     lane (2 bytes), kind (2), length (4), little endian
//!     data:   length bytes of what the lane sends, not 0
//!     room:   the peer may send as many bytes more on this lane, not 0
//!     end:    no more comes on this lane, and what is sent on it is not read; length 0
//! ```
//!
//! A lane queues up to [`QUEUE_BOUND`](crate::QUEUE_BOUND)`/(lanes + 1)` bytes that the peer has not read, then a write waits, as that of every
//! transport. No thread is started: whoever waits for bytes reads for all lanes, one thread at a time.
//!
//! A timeout of a lane is a time in which no byte of any lane moves. After a write that failed, nothing more is written on any
//! lane, and what came before can be read. When the last lane is dropped, the peer has a few seconds to take what it has not
//! taken: what it then says about that would otherwise meet a closed connection, and cost it the rest.
//!
//! Security: that of the connection; who can read one lane can read all. What a peer sends without room for it, or on a lane
//! that there is not, ends all lanes, and so does a frame of no bytes. Memory is bounded by what was granted: at most twice
//! that, in frames of any size.
//!
//! Cost: 16 bytes each way; then 8 bytes a frame of at most 64 KiB, and 8 for each MiB that was read, or each quarter of a
//! lane's queue if that is less.

mod frame;
mod shared;
mod traffic;

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use volery_primitives::ro::RandomOracle;

use crate::{Channel, Error, Result, SessionId, Transport};
use frame::Frame;
use shared::{Shared, Waits};

/// What both parties say first.
const GREETING: &[u8; 12] = b"volery lanes";

/// The most lanes of a connection.
pub const MOST_LANES: usize = 256;

/// The most bytes of a lane that go out before another lane has its turn.
const PIECE: usize = 64 << 10;

/// One of the channels over a connection, from [`split`].
pub struct Lane {
    number: usize,
    session: SessionId,
    channel: Channel,
}

impl Lane {
    /// Its place among the lanes of the connection: the same at both parties.
    #[must_use]
    pub const fn number(&self) -> usize {
        self.number
    }

    /// The session of what runs on this lane: no other lane has it, if no other connection was split with the same session.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The channel.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// Makes `N` lanes of a connection, on which both parties have just agreed on `session`: that of its handshake. Both call it at
/// the same point.
///
/// Each lane's channel has the timeout and the description of the one given away, and counts its own traffic.
///
/// # Panics
/// If `N` is zero or above [`MOST_LANES`].
///
/// # Errors
/// [`Error::Mismatch`] if the peer wants another number of lanes, [`Error::PeerMisbehaved`] if it wants none; if the channel
/// fails.
///
/// # Examples
///
/// ```
/// use std::thread;
/// use volery_channel::{SessionId, lanes, run_two_channels, Channel, Error};
///
/// fn party(channel: Channel, ours: u8) -> Result<Vec<u8>, Error> {
///     let session = SessionId::from_bytes([1; 32]); // from the handshake in a program
///     let mut lanes = lanes::split::<3>(channel, session)?;
///     thread::scope(|scope| {
///         let protocols: Vec<_> = lanes
///             .iter_mut()
///             .map(|lane| {
///                 scope.spawn(move || {
///                     let (number, mut theirs) = (lane.number() as u8, [0]);
///                     lane.channel().send(&[ours + number])?;
///                     lane.channel().recv(&mut theirs)?;
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
pub fn split<const N: usize>(channel: Channel, session: SessionId) -> Result<[Lane; N]> {
    let lanes = split_into(channel, session, N)?;
    Ok(lanes
        .try_into()
        .ok()
        .expect("as many lanes as were asked for"))
}

/// As [`split`], for a number of lanes that is known when the program runs.
///
/// # Panics
/// As [`split`].
///
/// # Errors
/// As [`split`].
pub fn split_into(mut channel: Channel, session: SessionId, count: usize) -> Result<Vec<Lane>> {
    assert!((1..=MOST_LANES).contains(&count), "a number of lanes");
    greet(&mut channel, count)?;
    let (timeout, description) = (channel.timeout(), channel.description().to_owned());
    let (transport, unread) = channel.into_transport();
    let shared = Arc::new(Shared::new(transport, timeout, &unread, count));
    let lane = |number: usize| {
        let end = End {
            shared: Arc::clone(&shared),
            number,
            patience: Mutex::new(timeout),
        };
        Lane {
            number,
            session: session_of(session, number),
            channel: Channel::with_timeout(end, timeout).described(description.clone()),
        }
    };
    Ok((0..count).map(lane).collect())
}

/// Both parties want lanes, and as many.
fn greet(channel: &mut Channel, count: usize) -> Result<()> {
    let mut ours = [0; GREETING.len() + 4];
    ours[..GREETING.len()].copy_from_slice(GREETING);
    ours[GREETING.len()..].copy_from_slice(&(count as u32).to_le_bytes());
    channel.send(&ours)?;
    let mut theirs = ours;
    channel.recv(&mut theirs)?;
    let (greeting, number) = theirs.split_at(GREETING.len());
    if greeting != GREETING {
        return Err(Error::PeerMisbehaved("it does not split the connection"));
    }
    if theirs != ours {
        let theirs = number
            .iter()
            .rev()
            .fold(0, |sum, &byte| sum << 8 | u32::from(byte));
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
    oracle.absorb_u64(number as u64);
    SessionId::from_bytes(oracle.finish32())
}

/// One lane, as a transport.
struct End {
    shared: Arc<Shared>,
    number: usize,
    /// The timeout of the last call.
    patience: Mutex<Option<Duration>>,
}

impl End {
    fn note(&self, timeout: Option<Duration>) {
        *self.patience.lock().unwrap_or_else(PoisonError::into_inner) = timeout;
    }
}

impl Transport for End {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.note(timeout);
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = rest.len().min(PIECE);
            let now = self
                .shared
                .wait(self.number, Waits::ToWrite, timeout, |lane| {
                    if lane.has_ended() {
                        return Some(Err(io::ErrorKind::BrokenPipe.into()));
                    }
                    lane.leave(wanted).map(Ok)
                })?;
            let data;
            (data, rest) = rest.split_at(now);
            self.shared.send(Frame::Data(self.number, data), timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.note(timeout);
        let (count, room) = self
            .shared
            .wait(self.number, Waits::ToRead, timeout, |lane| {
                lane.take(bytes).map(Ok)
            })?;
        if room > 0 {
            // The peer may be done and gone, and these bytes were its last. Whoever reads on finds the end.
            let _ = self.shared.send(Frame::Room(self.number, room), timeout);
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
            let patience = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            // The peer may be gone.
            let _ = self.shared.send(Frame::End(self.number), patience);
        }
    }
}
