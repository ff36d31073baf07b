//! Several channels over one connection, for protocols that run at the same time.
//!
//! [`split`] ends the use of a connection as one channel and gives its lanes: channels that know nothing of each other, each
//! for a thread of its own. A lane that waits keeps no other from moving.
//!
//! **Lane ids are unique by construction.** A connection is split once, as the channel is given away; each lane is made once,
//! and cannot be copied; its number is its place among those that `split` returns, and nobody can name another. From number
//! and session follows [`Lane::session`], so no two lanes of a connection, and no lane and what ran before, have a session in
//! common: the hashes of what runs on them are apart.
//!
//! ```text
//! both: "volery lanes", how many                  once
//! then frames, each of one lane:
//!     lane (2 bytes), kind (2), length (4), little endian
//!     data:   length bytes of what the lane sends
//!     room:   the peer may send as many bytes more on this lane
//!     end:    no more comes on this lane, and what is sent on it is not read; length 0
//! ```
//!
//! A lane queues up to [`QUEUE_BOUND`]`/(lanes + 1)` bytes that the peer has not read, then a write waits, as that of every
//! transport. No thread is started: whoever waits for bytes reads for all lanes, one thread at a time.
//!
//! Security: that of the connection; who can read one lane can read all. What a peer sends without room for it, or on a lane
//! that there is not, ends all lanes. Memory is bounded by what was granted.
//!
//! Cost: 16 bytes each way; then 8 bytes a frame of at most 64 KiB, and 8 for each quarter of a lane's queue that was read.

mod frame;

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use volery_primitives::ro::RandomOracle;

use crate::pipe::{deadline_after, is_timeout};
use crate::{Channel, Error, QUEUE_BOUND, Result, SessionId, Transport};
use frame::{Frame, HEADER, Reader};

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

    /// The session of what runs on this lane: no other lane has it.
    #[must_use]
    pub const fn session(&self) -> SessionId {
        self.session
    }

    /// The channel.
    pub const fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// Makes `N` lanes of a connection, on which both parties have just agreed on `session`. Both call it at the same point.
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
///                     let mut theirs = [0];
///                     lane.channel().send(&[ours + lane.number() as u8])?;
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
    let window = QUEUE_BOUND / (count + 1);
    let mut state = State {
        lanes: (0..count).map(|_| Traffic::new(window)).collect(),
        reader: None,
        failure: None,
    };
    let mut reader = Reader::default();
    reader.take(&unread, &mut state);
    state.reader = Some(reader);
    let shared = Arc::new(Shared {
        transport,
        writing: Mutex::new(Vec::with_capacity(HEADER + PIECE)),
        state: Mutex::new(state),
        changed: Condvar::new(),
        window,
    });
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

/// The connection, as all lanes have it.
struct Shared {
    transport: Box<dyn Transport>,
    /// Held while a frame is made and written.
    writing: Mutex<Vec<u8>>,
    state: Mutex<State>,
    /// Something came, or nobody reads.
    changed: Condvar,
    window: usize,
}

/// What came, and who may read.
struct State {
    lanes: Vec<Traffic>,
    /// Away while somebody reads.
    reader: Option<Reader>,
    /// Why nothing more comes on any lane.
    failure: Option<Failure>,
}

#[derive(Clone, Copy)]
enum Failure {
    Ended(io::ErrorKind),
    Misbehaved(&'static str),
}

impl From<Failure> for io::Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Ended(kind) => kind.into(),
            Failure::Misbehaved(what) => Self::other(Error::PeerMisbehaved(what)),
        }
    }
}

/// One lane's bytes.
struct Traffic {
    /// What came and was not read, as it came.
    chunks: VecDeque<Vec<u8>>,
    /// Bytes of the first chunk that were read.
    read: usize,
    /// Bytes that were read and for which the peer was not given room again.
    consumed: usize,
    /// Bytes that the peer may send.
    granted: usize,
    /// Bytes that we may send.
    room: usize,
    /// Bytes that either may send at first.
    window: usize,
    /// The peer sends no more, and reads no more.
    ended: bool,
    /// We read no more.
    dropped: bool,
}

impl Traffic {
    fn new(window: usize) -> Self {
        Self {
            chunks: VecDeque::new(),
            read: 0,
            consumed: 0,
            granted: window,
            room: window,
            window,
            ended: false,
            dropped: false,
        }
    }

    /// Hands out what came; none if nothing is there.
    fn take(&mut self, bytes: &mut [u8]) -> Option<usize> {
        let mut filled = 0;
        while filled < bytes.len()
            && let Some(chunk) = self.chunks.front()
        {
            let count = (bytes.len() - filled).min(chunk.len() - self.read);
            bytes[filled..][..count].copy_from_slice(&chunk[self.read..][..count]);
            filled += count;
            self.read += count;
            if self.read == chunk.len() {
                self.chunks.pop_front();
                self.read = 0;
            }
        }
        self.consumed += filled;
        (filled > 0 || self.ended).then_some(filled)
    }
}

impl Shared {
    /// The state; a panic elsewhere cannot leave it inconsistent, so poisoning is ignored.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends one frame.
    fn send(&self, frame: Frame<'_>, timeout: Option<Duration>) -> io::Result<()> {
        let mut bytes = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        bytes.clear();
        frame.write(&mut bytes);
        let result = self.transport.write(&bytes, timeout);
        if let Err(error) = &result {
            // Perhaps half a frame is out.
            let kind = error.kind();
            self.lock().failure.get_or_insert(Failure::Ended(kind));
            self.changed.notify_all();
        }
        result
    }

    /// Waits until `ready` has something of lane `number`; reads for all lanes as long as nobody else does.
    fn wait<T>(
        &self,
        number: usize,
        timeout: Option<Duration>,
        mut ready: impl FnMut(&mut Traffic) -> Option<io::Result<T>>,
    ) -> io::Result<T> {
        let deadline = deadline_after(timeout);
        let mut state = self.lock();
        loop {
            if let Some(result) = ready(&mut state.lanes[number]) {
                return result;
            }
            if let Some(failure) = state.failure {
                return Err(failure.into());
            }
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Err(io::ErrorKind::TimedOut.into());
            }
            state = match state.reader.take() {
                Some(reader) => {
                    drop(state);
                    self.read_some(reader, left)?
                }
                None => match left {
                    None => self
                        .changed
                        .wait(state)
                        .unwrap_or_else(PoisonError::into_inner),
                    Some(left) => {
                        let woken = self.changed.wait_timeout(state, left);
                        woken.unwrap_or_else(PoisonError::into_inner).0
                    }
                },
            };
        }
    }

    /// Reads once, for all lanes.
    fn read_some(
        &self,
        mut reader: Reader,
        timeout: Option<Duration>,
    ) -> io::Result<MutexGuard<'_, State>> {
        let came = reader.read(&*self.transport, timeout);
        let mut state = self.lock();
        let result = match came {
            Ok(0) => {
                state.failure = Some(Failure::Ended(io::ErrorKind::UnexpectedEof));
                Ok(())
            }
            Ok(count) => {
                reader.deliver(count, &mut state);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => {
                if !is_timeout(error.kind()) {
                    state.failure = Some(Failure::Ended(error.kind()));
                }
                Err(error)
            }
        };
        state.reader = Some(reader);
        self.changed.notify_all();
        result.map(|()| state)
    }
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
            let now = self.shared.wait(self.number, timeout, |lane| {
                if lane.ended {
                    return Some(Err(io::ErrorKind::BrokenPipe.into()));
                }
                let now = wanted.min(lane.room);
                lane.room -= now;
                (now > 0).then_some(Ok(now))
            })?;
            let data;
            (data, rest) = rest.split_at(now);
            self.shared.send(Frame::Data(self.number, data), timeout)?;
        }
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.note(timeout);
        let quarter = self.shared.window / 4;
        let (count, room) = self.shared.wait(self.number, timeout, |lane| {
            let count = lane.take(bytes)?;
            let due = lane.consumed >= quarter && !lane.ended;
            let room = if due {
                std::mem::take(&mut lane.consumed)
            } else {
                0
            };
            lane.granted += room;
            Some(Ok((count, room)))
        })?;
        if room > 0 {
            self.shared.send(Frame::Room(self.number, room), timeout)?;
        }
        Ok(count)
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let lane = &mut state.lanes[self.number];
        lane.dropped = true;
        lane.chunks.clear();
        let gone = lane.ended || state.failure.is_some();
        drop(state);
        if !gone {
            let patience = *self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            // The peer may be gone.
            let _ = self.shared.send(Frame::End(self.number), patience);
        }
    }
}
