//! The channel type: buffering, counting, and refusing every call after an error.

use std::fmt;
use std::io;
use std::ops::{Range, Sub};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use volery_primitives::{Block, Wiped, ro::StreamHash};

use volery_os::time::Instant;

use crate::agree::Awaited;
use crate::link::Arrivals;
use crate::mux::Shared;
use crate::{Error, Result, Transport, memory};

/// Most bytes of the buffers for short messages. Longer ones bypass the buffers.
const BUFFER: usize = 64 << 10;

/// Most bytes of a buffer of a channel that is idle.
const IDLE_BUFFER: usize = 3 << 10;

/// A byte stream to and from the peer.
///
/// Sent bytes are buffered until [`flush`](Self::flush), or until [`recv`](Self::recv), which
/// flushes first. Dropping a channel does **not** send the buffered bytes: a forgotten flush shows
/// in a test, not as a rare hang.
///
/// After any error the channel is broken and every later call returns [`Error::Broken`], because
/// the two parties no longer agree on their position in the stream.
///
/// Under load its buffers are 128 KiB. They are at most 6 KiB while it is not used, and while it
/// waits for the answer to what it has flushed.
pub struct Channel {
    transport: Box<dyn Transport>,
    description: String,
    #[cfg(feature = "tls")]
    peer: Option<crate::tls::ShownIdentity>,
    timeout: Option<Duration>,
    outgoing: Vec<u8>,
    incoming: Incoming,
    stats: Stats,
    /// The bytes of the channel, for other threads.
    moved: Option<Arc<AtomicU64>>,
    direction: Option<Direction>,
    broken: bool,
    /// For tests; of a substream, also for the hashes of the channel it is a part of.
    transcript: Option<Box<Transcript>>,
    /// For challenges; the innermost binding is the last.
    #[expect(clippy::vec_box, reason = "a list that grows would leave copies of the hashers")]
    pub(crate) bound: Vec<Box<Transcript>>,
    /// A value of the peer to compare before the next byte.
    pub(crate) awaited: Option<Awaited>,
    round_trip: Option<Duration>,
    /// Of a substream beside others: the connection of all.
    beside: Option<Arc<Wiped<Shared>>>,
}

/// The traffic of a channel, as this party sees it.
///
/// A *message* is a longest run of bytes in one direction: it starts with the first byte of all or
/// the first byte after a byte of the other direction, and may span any number of calls of
/// [`Channel::send`] or [`Channel::recv`] and any pieces of the transport. Only the order of this
/// party's own calls counts, never timing, so the numbers are the same in every run. If both
/// parties send at the same time, they may count messages differently; the bytes always agree.
/// Empty calls are not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes sent, including the buffered ones.
    pub bytes_sent: u64,
    /// Bytes returned by [`Channel::recv`].
    pub bytes_received: u64,
    /// Messages sent.
    pub messages_sent: u64,
    /// Messages received.
    pub messages_received: u64,
    /// Changes between sending and receiving.
    pub turns: u64,
}

impl Sub for Stats {
    type Output = Self;

    /// The traffic since `earlier`, a value of the same channel.
    ///
    /// # Panics
    /// If `earlier` is not earlier.
    fn sub(self, earlier: Self) -> Self {
        let since = |now: u64, before: u64| {
            now.checked_sub(before).expect("the subtracted counts are the earlier ones")
        };
        Self {
            bytes_sent: since(self.bytes_sent, earlier.bytes_sent),
            bytes_received: since(self.bytes_received, earlier.bytes_received),
            messages_sent: since(self.messages_sent, earlier.messages_sent),
            messages_received: since(self.messages_received, earlier.messages_received),
            turns: since(self.turns, earlier.turns),
        }
    }
}

/// BLAKE3 hashes of the bytes of each direction, see [`Channel::bind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptHashes {
    /// Hash of all bytes sent.
    pub sent: [u8; 32],
    /// Hash of all bytes received.
    pub received: [u8; 32],
}

#[derive(Default)]
pub(crate) struct Transcript {
    sent: StreamHash,
    received: StreamHash,
}

impl Transcript {
    fn hashes(&self) -> TranscriptHashes {
        TranscriptHashes { sent: self.sent.finish32(), received: self.received.finish32() }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Sending,
    Receiving,
}

impl Channel {
    /// A channel over `transport`, without a timeout.
    pub fn new(transport: impl Transport + 'static) -> Self {
        Self::with_timeout(transport, None)
    }

    /// A channel over `transport`; `timeout` as in [`set_timeout`](Self::set_timeout).
    pub fn with_timeout(transport: impl Transport + 'static, timeout: Option<Duration>) -> Self {
        Self {
            round_trip: transport.round_trip(),
            transport: Box::new(transport),
            description: String::new(),
            #[cfg(feature = "tls")]
            peer: None,
            timeout,
            outgoing: Vec::new(),
            incoming: Incoming::default(),
            stats: Stats::default(),
            moved: None,
            direction: None,
            broken: false,
            transcript: None,
            bound: Vec::new(),
            awaited: None,
            beside: None,
        }
    }

    /// Two connected channels in memory, without a timeout. Dropping one makes the other fail with
    /// [`Error::Disconnected`].
    pub fn memory_pair() -> (Self, Self) {
        let (left, right) = memory::pair();
        (Self::new(left), Self::new(right))
    }

    /// The channel with a text for [`description`](Self::description).
    #[must_use]
    pub fn described(mut self, description: String) -> Self {
        self.description = description;
        self
    }

    /// The kind of connection, for reports: protocol version, cipher suite and key exchange for
    /// TLS. Empty unless set by the creator of the channel.
    pub fn description(&self) -> &str {
        &self.description
    }

    #[cfg(feature = "tls")]
    pub(crate) fn shown(mut self, peer: Option<crate::tls::ShownIdentity>) -> Self {
        self.peer = peer;
        self
    }

    /// The identity that the peer has shown, over TLS.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn peer(&self) -> Option<crate::tls::ShownIdentity> {
        self.peer
    }

    /// Sets the longest time a call may wait without a byte moving; `None` means no limit.
    ///
    /// Over the connections of [`tcp`](crate::tcp) and `tls` a peer that computes gives signs of
    /// life, often enough for the timeout that the connection was made with. Over other transports
    /// its computing counts as waiting: the timeout must be longer than its longest step.
    pub fn set_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The round-trip time, if this side knew it without measuring when the channel was created:
    /// see [`Transport::round_trip`].
    #[must_use]
    pub fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }

    /// Starts recording the arrival times of the peer's bytes; [`watched`](Self::watched) returns
    /// them.
    pub(crate) fn watch(&mut self) {
        self.incoming.watched = Some(Arrivals::default());
    }

    /// Ends the recording of [`watch`](Self::watch).
    pub(crate) fn watched(&mut self) -> Arrivals {
        self.incoming.watched.take().unwrap_or_default()
    }

    /// The timeout set by [`set_timeout`](Self::set_timeout).
    #[must_use]
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Sends `bytes`, at the latest with the next [`flush`](Self::flush) or [`recv`](Self::recv).
    ///
    /// # Errors
    /// If the peer is gone, or [`QUEUE_BOUND`](crate::QUEUE_BOUND) bytes are queued and none moved
    /// within the timeout.
    pub fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.check()?;
        if bytes.is_empty() {
            return Ok(());
        }
        self.turn(Direction::Sending);
        self.stats.bytes_sent += bytes.len() as u64;
        self.count(bytes.len());
        // mutant(channel-bound-sent): `bytes` => `&[]`
        for transcript in self.transcript.iter_mut().chain(&mut self.bound) {
            transcript.sent.update(bytes);
        }
        let buffered = self.outgoing.len() + bytes.len();
        if buffered > BUFFER {
            self.write_out()?;
        }
        if bytes.len() >= BUFFER {
            return self.write(bytes);
        }
        if buffered > IDLE_BUFFER {
            // At once, as growing it step by step would copy it.
            self.outgoing.reserve_exact(BUFFER - self.outgoing.len());
        }
        self.outgoing.extend_from_slice(bytes);
        Ok(())
    }

    /// Hands everything sent so far to the transport.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        if self.outgoing.is_empty() {
            return Ok(());
        }
        let result = self.write_out();
        // A party that has flushed is about to wait, or done.
        if self.outgoing.capacity() > IDLE_BUFFER {
            self.outgoing = Vec::new();
        }
        self.incoming.fast = false;
        self.incoming.give_back();
        result
    }

    /// Hands the buffered bytes to the transport.
    fn write_out(&mut self) -> Result<()> {
        let mut outgoing = std::mem::take(&mut self.outgoing);
        let result = self.write(&outgoing);
        outgoing.clear();
        self.outgoing = outgoing;
        result
    }

    /// Flushes, then fills `bytes` with the next bytes from the peer.
    ///
    /// # Errors
    /// If the peer closed before it had sent that many bytes, or none came within the timeout.
    pub fn recv(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.recv_until(bytes, None)
    }

    /// Receives like [`recv`](Self::recv), completed by `deadline`, if there is one.
    pub(crate) fn recv_until(&mut self, bytes: &mut [u8], deadline: Option<Instant>) -> Result<()> {
        self.flush()?;
        self.recv_only(bytes, deadline)
    }

    /// Fills `bytes` with the next bytes from the peer, even if sending has failed: a peer that has
    /// closed may have sent the reason.
    pub(crate) fn recv_only(&mut self, bytes: &mut [u8], deadline: Option<Instant>) -> Result<()> {
        self.compare_awaited()?;
        let result = self.incoming.fill(bytes, &*self.transport, self.timeout, deadline);
        result.map_err(|error| self.fail(error))?;
        if !bytes.is_empty() {
            self.turn(Direction::Receiving);
            self.stats.bytes_received += bytes.len() as u64;
            self.count(bytes.len());
            for transcript in self.transcript.iter_mut().chain(&mut self.bound) {
                // mutant(channel-bound-received): `bytes` => `&[]`
                transcript.received.update(bytes);
            }
        }
        Ok(())
    }

    /// Sends `blocks`, 16 bytes each, little endian.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub fn send_blocks(&mut self, blocks: &[Block]) -> Result<()> {
        self.send(bytemuck::cast_slice(blocks))
    }

    /// Receives `blocks.len()` blocks, 16 bytes each, little endian.
    ///
    /// # Errors
    /// The errors of [`recv`](Self::recv).
    pub fn recv_blocks(&mut self, blocks: &mut [Block]) -> Result<()> {
        self.recv(bytemuck::cast_slice_mut(blocks))
    }

    /// Sends one block.
    ///
    /// # Errors
    /// The errors of [`send`](Self::send).
    pub fn send_block(&mut self, block: Block) -> Result<()> {
        self.send(&block.to_bytes())
    }

    /// Receives one block.
    ///
    /// # Errors
    /// The errors of [`recv`](Self::recv).
    pub fn recv_block(&mut self) -> Result<Block> {
        let mut bytes = [0; 16];
        self.recv(&mut bytes)?;
        Ok(Block::from_bytes(bytes))
    }

    /// The traffic of the channel so far.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Adds the bytes that this side sends and receives from now on to `moved`, for threads that
    /// show how far the run is.
    pub fn count_in(&mut self, moved: Arc<AtomicU64>) {
        self.moved = Some(moved);
    }

    fn count(&self, bytes: usize) {
        if let Some(moved) = &self.moved {
            moved.fetch_add(bytes as u64, Ordering::Relaxed);
        }
    }

    /// Begins to count anew, for the next of several protocols on one channel.
    pub fn restart_stats(&mut self) {
        self.stats = Stats::default();
        self.direction = None;
    }

    /// Number of buffered bytes that wait for a [`flush`](Self::flush).
    pub fn unflushed(&self) -> usize {
        self.outgoing.len()
    }

    /// Starts hashing all bytes sent and received; [`transcript`](Self::transcript) returns the
    /// hashes.
    ///
    /// With fixed seeds, this makes every change of a protocol's messages visible in a test.
    /// Compiled only with the Cargo feature `testing`, which only tests turn on.
    #[cfg(any(test, feature = "testing"))]
    pub fn record_transcript(&mut self) {
        self.transcript = Some(Box::default());
    }

    /// The hashes of the bytes sent and received since
    /// [`record_transcript`](Self::record_transcript); `None` without it.
    #[cfg(any(test, feature = "testing"))]
    #[must_use]
    pub fn transcript(&self) -> Option<TranscriptHashes> {
        self.transcript.as_deref().map(Transcript::hashes)
    }

    /// Starts hashing all bytes sent and received, for a challenge that depends on all of them:
    /// [`bound`](Self::bound) returns the hashes.
    ///
    /// Bindings nest: protocols bind their own messages, which an outer binding hashes as well. A
    /// caller that binds gives up its binding, and the channel, when a protocol on it fails.
    pub fn bind(&mut self) {
        self.bound.push(Box::default());
    }

    /// Ends the hashing of the innermost [`bind`](Self::bind), and returns the hashes: one party's
    /// `sent` is the other's `received`.
    ///
    /// # Panics
    /// If each `bind` has had its `bound`; a substream has its own.
    pub fn bound(&mut self) -> TranscriptHashes {
        let transcript = self.bound.pop().expect("`bind` was called before `bound`");
        transcript.hashes()
    }

    /// The transport, and the bytes received from it and not yet returned, until they are
    /// [taken back](Self::take_back). Until then the channel is unusable.
    pub(crate) fn lend_transport(&mut self) -> Result<(Box<dyn Transport>, Vec<u8>)> {
        self.settle()?;
        self.flush()?;
        self.broken = true;
        let Incoming { buffer, unread, .. } = &mut self.incoming;
        let unread = buffer[std::mem::take(unread)].to_vec();
        Ok((std::mem::replace(&mut self.transport, Box::new(Gone)), unread))
    }

    /// A channel over a part of the lent transport, which does for it what this one does.
    pub(crate) fn substream(
        &self,
        transport: impl Transport + 'static,
        shared: &Arc<Wiped<Shared>>,
    ) -> Self {
        // Once for all: an outer binding and an inner one get the same of a substream.
        let hashed = self.transcript.is_some() || !self.bound.is_empty();
        Self {
            description: self.description.clone(),
            #[cfg(feature = "tls")]
            peer: self.peer,
            moved: self.moved.clone(),
            transcript: hashed.then(Box::default),
            beside: Some(Arc::clone(shared)),
            ..Self::with_timeout(transport, self.timeout)
        }
    }

    /// Counts the traffic of [substreams](Self::substream), as of messages at the same time, and
    /// adds their transcripts, one after the other.
    pub(crate) fn join(&mut self, substreams: &mut [Wiped<Self>]) {
        let of = |count: fn(&Stats) -> u64| {
            substreams.iter().map(move |substream| count(&substream.stats))
        };
        let most = |count| of(count).max().unwrap_or(0);
        self.stats.bytes_sent += of(|stats| stats.bytes_sent).sum::<u64>();
        self.stats.bytes_received += of(|stats| stats.bytes_received).sum::<u64>();
        self.stats.messages_sent += most(|stats| stats.messages_sent);
        self.stats.messages_received += most(|stats| stats.messages_received);
        self.stats.turns += most(|stats| stats.turns);
        self.direction = None;
        for substream in substreams {
            let Some(hashes) = substream.transcript.as_deref().map(Transcript::hashes) else {
                continue;
            };
            for all in self.transcript.iter_mut().chain(&mut self.bound) {
                // mutant(beside-bound): drop
                all.sent.update(&hashes.sent);
                all.received.update(&hashes.received);
            }
        }
    }

    /// The result of a check of what the peer sent, of which the peer learns whether it `passed`.
    ///
    /// Of tasks [side by side](crate::mux::side_by_side) the first that fails ends all: no other
    /// passes after it, nor sends anything, though its own check would have passed. So a peer that
    /// guesses something in each of them learns no more than if they ran in turn, where the first
    /// wrong guess is its last.
    ///
    /// # Errors
    /// [`Error::PeerMisbehaved`] with `what` if it did not pass; that of the task that failed
    /// before.
    pub fn verdict(&mut self, passed: bool, what: &'static str) -> Result<()> {
        let all = match &self.beside {
            Some(shared) => shared.verdict(passed, what),
            None => Ok(()),
        };
        let all = all.map_err(|error| Error::from_io(error, "checking", self.timeout));
        // no mutant: the check is the caller's
        let one = if passed { Ok(()) } else { Err(Error::PeerMisbehaved(what)) };
        one.and(all).map_err(|error| self.fail(error))
    }

    /// Goes on with the transport, and with bytes that have been received from it.
    pub(crate) fn take_back(&mut self, (transport, unread): (Box<dyn Transport>, Vec<u8>)) {
        self.transport = transport;
        let buffer = &mut self.incoming.buffer;
        buffer.resize(buffer.len().max(unread.len()), 0);
        buffer[..unread.len()].copy_from_slice(&unread);
        self.incoming.unread = 0..unread.len();
        self.broken = false;
    }

    /// Makes the channel unusable because of `error`, and returns the error.
    pub(crate) fn fail(&mut self, error: Error) -> Error {
        // mutant(channel-fail): drop
        self.broken = true;
        error
    }

    fn check(&self) -> Result<()> {
        // mutant(channel-broken): false
        if self.broken { Err(Error::Broken) } else { Ok(()) }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.transport.write(bytes, self.timeout.map(positive)).map_err(|error| {
            self.broken = true;
            let error = Error::from_io(error, "sending: the peer does not read", self.timeout);
            // A peer that has found a difference closes. Its value can still be read.
            let value = if error == Error::Disconnected { self.compare_awaited() } else { Ok(()) };
            value.err().filter(|value| matches!(value, Error::Mismatch { .. })).unwrap_or(error)
        })
    }

    /// Counts a new message if `direction` has changed.
    fn turn(&mut self, direction: Direction) {
        if self.direction == Some(direction) {
            return;
        }
        self.stats.turns += u64::from(self.direction.is_some());
        self.direction = Some(direction);
        match direction {
            Direction::Sending => self.stats.messages_sent += 1,
            Direction::Receiving => self.stats.messages_received += 1,
        }
    }
}

/// In place of a transport that is lent.
pub(crate) struct Gone;

impl Transport for Gone {
    fn write(&self, _bytes: &[u8], _timeout: Option<Duration>) -> io::Result<()> {
        // no mutant: it has lent its transport, and is broken
        Err(io::ErrorKind::NotConnected.into())
    }

    fn read(&self, _bytes: &mut [u8], _timeout: Option<Duration>) -> io::Result<usize> {
        // no mutant: it has lent its transport, and is broken
        Err(io::ErrorKind::NotConnected.into())
    }
}

/// The bytes received and not yet returned.
#[derive(Default)]
struct Incoming {
    buffer: Vec<u8>,
    unread: Range<usize>,
    /// The last read took as much as it could, at least a small buffer: more may have come.
    fast: bool,
    /// The last read took all that had come.
    dry: bool,
    watched: Option<Arrivals>,
}

impl Incoming {
    /// Gives the memory of a large buffer back, if it is empty.
    fn give_back(&mut self) {
        if self.unread.is_empty() && self.buffer.len() > IDLE_BUFFER {
            (self.buffer, self.unread) = (Vec::new(), 0..0);
        }
    }

    fn note(&mut self, count: usize) {
        if let Some(watched) = &mut self.watched {
            watched.note(Instant::now(), count);
        }
    }

    /// Fills `bytes`; long ones directly from the transport, and all where it must not read ahead.
    fn fill(
        &mut self,
        bytes: &mut [u8],
        transport: &dyn Transport,
        timeout: Option<Duration>,
        deadline: Option<Instant>,
    ) -> Result<()> {
        let mut filled = 0;
        while filled < bytes.len() {
            let rest = &mut bytes[filled..];
            let size = if self.fast { BUFFER } else { IDLE_BUFFER };
            let direct = rest.len() >= size || !transport.reads_ahead();
            if self.unread.is_empty() && direct {
                let count = read(transport, rest, timeout, deadline)?;
                self.note(count);
                self.fast = count == rest.len() && count >= IDLE_BUFFER;
                filled += count;
                continue;
            }
            if self.unread.is_empty() {
                if self.buffer.len() < size {
                    self.buffer = vec![0; size];
                }
                let count = read(transport, &mut self.buffer, timeout, deadline)?;
                self.note(count);
                self.unread = 0..count;
                self.fast = count >= IDLE_BUFFER;
                self.dry = count < self.buffer.len();
            }
            let count = rest.len().min(self.unread.len());
            let start = self.unread.start;
            rest[..count].copy_from_slice(&self.buffer[start..start + count]);
            self.unread.start += count;
            filled += count;
        }
        if self.dry {
            self.give_back();
        }
        Ok(())
    }
}

/// Reads at least one byte within `timeout` and before `deadline`.
fn read(
    transport: &dyn Transport,
    bytes: &mut [u8],
    timeout: Option<Duration>,
    deadline: Option<Instant>,
) -> Result<usize> {
    let failed = |error| Error::from_io(error, "waiting for the peer's next message", timeout);
    loop {
        // Without a deadline the transport gets the same timeout each time, which it may have set
        // already.
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(failed(io::ErrorKind::TimedOut.into()));
        }
        let patience = left.into_iter().chain(timeout).min().map(positive);
        match transport.read(bytes, patience) {
            // mutant(channel-end-of-stream): insert `Ok(0) if $ON => return Ok(bytes.len()),`
            Ok(0) => return Err(Error::Disconnected),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // no mutant: time is up, or the operating system refuses something
            Err(error) => return Err(failed(error)),
        }
    }
}

/// Operating systems take a timeout of zero as none, or reject it.
fn positive(timeout: Duration) -> Duration {
    timeout.max(Duration::from_nanos(1))
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel")
            .field("stats", &self.stats)
            .field("broken", &self.broken)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_channel_has_small_buffers() {
        let (mut left, mut right) = Channel::memory_pair();
        let mut small = [0; 16];
        for length in [0, 10, 5_000, 5_000, BUFFER - 1, BUFFER, 3 * BUFFER + 5] {
            let mut bytes = vec![0; length];
            left.send(&bytes).unwrap();
            left.send(&small).unwrap();
            left.flush().unwrap();
            right.recv(&mut bytes).unwrap();
            right.recv(&mut small).unwrap();
            right.send(&small).unwrap();
            right.flush().unwrap();
            left.recv(&mut small).unwrap();
            for channel in [&mut left, &mut right] {
                let held = channel.outgoing.capacity() + channel.incoming.buffer.len();
                assert!(held <= 2 * IDLE_BUFFER, "{length}: {held}");
                let lent = channel.lend_transport().unwrap();
                channel.take_back(lent);
            }
        }
    }
}
