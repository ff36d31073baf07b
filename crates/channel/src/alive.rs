//! Frames and heartbeats: how a party knows that a silent peer is alive.
//!
//! ```text
//! greeting  = magic (8 bytes) | the sender's timeout in milliseconds (u32), 0 for none
//! stream    = greeting, then frames
//! data      = 0 | length (u24, from 1) | bytes
//! heartbeat = 1 | 0 (u24)
//! ```
//!
//! Numbers are little endian. A party that computes, and has nothing in flight, sends a heartbeat
//! four times in the peer's timeout, and at least every 15 seconds. So does a party to which data
//! come: the peer may have handed a long message to a slow link, and wait for the answer. A party
//! that waits and gets no data sends none: two parties that wait for each other still time out.
//! Heartbeats come from a thread of the process, so a stopped process sends none, although its
//! kernel answers keep-alive probes.
//!
//! The magic tells a listener a peer from a stranger before it takes the connection.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use volery_os::sync::{Arc, Mutex, mpsc};
use volery_os::thread::{self, JoinHandle};
use volery_os::time::Instant;

use crate::handshake::{NOT_VOLERY, TLS};
use crate::pipe::{deadline_after, is_timeout, left, lock};
use crate::{Channel, Error, Result, Transport};

/// The first bytes of each direction; the last one is the version of the frames. The first one is
/// not ASCII, so no text protocol begins with it.
const MAGIC: [u8; 8] = *b"\x89volery\x01";

const GREETING: usize = MAGIC.len() + 4;
const HEADER: usize = 4;
const DATA: u8 = 0;
const HEARTBEAT: u8 = 1;

/// Longest data frame.
const LONGEST: usize = (1 << 24) - 1;

/// Whether a thread can send heartbeats. Where there is none, as in a browser, whoever has the
/// connection may send them between two writes, each of which is whole frames there.
const HAS_THREADS: bool = !cfg!(target_family = "wasm");

/// Frames up to this length are copied behind their header, and go out in one call; a second call
/// would wake the peer twice.
const COPIED: usize = if HAS_THREADS { 128 << 10 } else { LONGEST };

/// Bytes of a longer frame that are copied: with the header, whole records of TLS.
const FIRST: usize = (64 << 10) - HEADER;

/// Bytes read at a time where a header is expected.
const BUFFER: usize = (128 << 10) + HEADER;

/// The longest and the shortest time between heartbeats.
const SELDOM: Duration = Duration::from_secs(15);
const OFTEN: Duration = Duration::from_millis(10);

const OTHER_VERSION: Error =
    Error::PeerMisbehaved("its version of volery is another: install the same on both sides");
const BAD_FRAME: Error = Error::PeerMisbehaved("it sent a malformed frame");
const FLOOD: Error = Error::PeerMisbehaved("it floods this party with heartbeats");

/// A transport with frames and heartbeats; the other end has the same.
pub(crate) struct Alive<T: Transport + 'static> {
    shared: Arc<Shared<T>>,
    /// Dropped to end the thread.
    stop: Option<mpsc::Sender<()>>,
    heart: Option<JoinHandle<()>>,
}

/// A channel over a byte stream to a party that is on [`tcp`](crate::tcp) without TLS: what is
/// between the two passes the bytes on. For a relay, and for a browser's WebSocket.
///
/// Both parties know by heartbeats that a silent peer is alive; `timeout` is the time without any
/// sign of life after which a call fails. On WebAssembly there is no thread that could send this
/// party's: each [`write`](Transport::write) of `inner` is whole frames then, and between two of
/// them, while this party does not read, `inner` may send the bytes 1, 0, 0, 0.
///
/// # Errors
/// If `inner` fails, or the system gives no thread.
pub fn framed(inner: impl Transport + 'static, timeout: Duration) -> Result<Channel> {
    let alive = Alive::new(inner, Some(timeout))?;
    Ok(Channel::with_timeout(alive, Some(timeout)))
}

/// A channel as [`framed`] makes it, once the other end has greeted.
///
/// # Errors
/// The errors of [`framed`]; [`Error::PeerMisbehaved`] if the greeting is none of volery;
/// [`Error::TimedOut`] if it takes longer than `limit`; if the other end closes.
pub fn greeted(
    inner: impl Transport + 'static,
    timeout: Duration,
    limit: Duration,
) -> Result<Channel> {
    let alive = Alive::new(inner, Some(timeout))?;
    alive.greet(limit)?;
    Ok(Channel::with_timeout(alive, Some(timeout)))
}

struct Shared<T> {
    inner: T,
    /// Locked before the reader, where both are.
    writer: Mutex<Writer>,
    reader: Mutex<Reader>,
    /// Calls of `read` in progress.
    reading: AtomicUsize,
    /// Whether data have come since the last time for a heartbeat.
    came: AtomicBool,
    /// The peer's timeout, once it is known.
    peer_timeout: AtomicU32,
}

struct Writer {
    scratch: Vec<u8>,
    last: Instant,
}

struct Reader {
    buffer: Vec<u8>,
    unread: Range<usize>,
    /// Bytes of the current data frame still to come.
    left: usize,
    greeted: bool,
    /// Data that came while this party waited in a write.
    early: Vec<u8>,
    taken: usize,
    /// When something was last heard from the peer, and heartbeats since data came.
    heard: Instant,
    data: Instant,
    beats: u64,
    broken: Option<fn() -> Error>,
}

fn milliseconds(timeout: Option<Duration>) -> u32 {
    timeout.map_or(0, |timeout| {
        u32::try_from(timeout.as_millis()).map_or(u32::MAX, |long| long.max(1))
    })
}

fn refuse(error: Error) -> io::Error {
    io::Error::other(error)
}

impl<T: Transport + 'static> Alive<T> {
    /// Sends the greeting, with this party's timeout, over `inner`. The peer's is checked with the
    /// first bytes that are read.
    ///
    /// # Errors
    /// If `inner` fails, or the system gives no thread.
    pub(crate) fn new(inner: T, timeout: Option<Duration>) -> Result<Self> {
        let ours = milliseconds(timeout);
        let mut greeting = [0; GREETING];
        greeting[..MAGIC.len()].copy_from_slice(&MAGIC);
        greeting[MAGIC.len()..].copy_from_slice(&ours.to_le_bytes());
        match inner.write(&greeting, timeout) {
            // A peer that has closed may have said why.
            Err(error) if is_timeout(error.kind()) => return Err(error.into()),
            _ => {}
        }
        let now = Instant::now();
        let shared = Arc::new(Shared {
            inner,
            writer: Mutex::new(Writer { scratch: Vec::new(), last: now }),
            reader: Mutex::new(Reader {
                buffer: vec![0; BUFFER],
                unread: 0..0,
                left: 0,
                greeted: false,
                early: Vec::new(),
                taken: 0,
                heard: now,
                data: now,
                beats: 0,
                broken: None,
            }),
            reading: AtomicUsize::new(0),
            came: AtomicBool::new(false),
            // Usually the same on both sides.
            peer_timeout: AtomicU32::new(ours),
        });
        let mut alive = Self { shared, stop: None, heart: None };
        if HAS_THREADS {
            let (stop, stopped) = mpsc::channel();
            let shared = Arc::clone(&alive.shared);
            let beat = move || {
                let timeout = mpsc::RecvTimeoutError::Timeout;
                // no mutant: the clock of the heartbeats
                while stopped.recv_timeout(shared.interval()) == Err(timeout) {
                    shared.beat();
                }
            };
            let heart = thread::Builder::new().name("volery heart".into());
            alive.heart = Some(heart.spawn(beat).map_err(Error::Io)?);
            alive.stop = Some(stop);
        }
        Ok(alive)
    }

    /// Waits for the peer's greeting.
    fn greet(&self, timeout: Duration) -> Result<()> {
        let deadline = deadline_after(Some(timeout));
        let mut reader = lock(&self.shared.reader);
        while !reader.greeted {
            if !reader.greeting(&self.shared)?
                && !reader.fill(&self.shared.inner, left(deadline)?)?
            {
                // no mutant: the end of the stream
                return Err(Error::Disconnected);
            }
        }
        Ok(())
    }
}

impl<T: Transport> Shared<T> {
    /// The time between heartbeats.
    fn interval(&self) -> Duration {
        match self.peer_timeout.load(Ordering::Relaxed) {
            0 => SELDOM,
            // mutant(world-heartbeat): `/ 4` => `* if $ON { 5 } else { 1 } / 4`
            timeout => (Duration::from_millis(timeout.into()) / 4).clamp(OFTEN, SELDOM),
        }
    }

    /// Sends a heartbeat if nothing else tells the peer that this party is alive.
    fn beat(&self) {
        let came = self.came.swap(false, Ordering::Relaxed);
        if self.reading.load(Ordering::Relaxed) > 0 && !came {
            return;
        }
        // Whoever holds the lock is sending.
        let Ok(mut writer) = self.writer.try_lock() else {
            return;
        };
        if writer.last.elapsed() < self.interval() / 2 || !self.inner.is_idle() {
            return;
        }
        // A failure shows at the next call of the party.
        let _ = self.inner.write(&[HEARTBEAT, 0, 0, 0], Some(SELDOM));
        writer.last = Instant::now();
    }

    /// Whether the peer has been heard within `timeout`; takes what has arrived, so that heartbeats
    /// behind data are heard.
    fn hears(&self, timeout: Duration) -> bool {
        let Ok(mut reader) = self.reader.try_lock() else {
            // A thread that reads notices by itself.
            return true;
        };
        let mut bytes = vec![0; 64 << 10];
        while reader.early.len() < self.inner.queue_bound() {
            match reader.next(self, &mut bytes, Some(Duration::from_millis(1))) {
                Ok(count) if count > 0 => reader.early.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The end, or an error, comes again at the next read.
                _ => break,
            }
        }
        reader.heard.elapsed() < timeout
    }
}

impl Reader {
    /// Takes the greeting if it is there whole.
    fn greeting<T>(&mut self, shared: &Shared<T>) -> io::Result<bool> {
        let come = &self.buffer[self.unread.clone()];
        let known = come.len().min(MAGIC.len());
        // mutant(alive-magic): false
        if come[..known] != MAGIC[..known] {
            let why: fn() -> Error = match come {
                [0x15 | 0x16, 3, ..] | [0x15 | 0x16] => || TLS,
                _ if known == MAGIC.len() && come[..7] == MAGIC[..7] => || OTHER_VERSION,
                _ => || NOT_VOLERY,
            };
            return Err(self.fail(why));
        }
        let Some(number) = come.get(MAGIC.len()..GREETING) else {
            return Ok(false);
        };
        let timeout = number.try_into().map_or(0, u32::from_le_bytes);
        shared.peer_timeout.store(timeout, Ordering::Relaxed);
        self.unread.start += GREETING;
        self.greeted = true;
        self.heard = Instant::now();
        Ok(true)
    }

    fn fail(&mut self, why: fn() -> Error) -> io::Error {
        self.broken = Some(why);
        refuse(why())
    }

    /// Reads more bytes into the buffer; false at the end of the stream.
    fn fill(&mut self, inner: &impl Transport, left: Option<Duration>) -> io::Result<bool> {
        self.buffer.copy_within(self.unread.clone(), 0);
        self.unread = 0..self.unread.len();
        let count = inner.read(&mut self.buffer[self.unread.end..], left)?;
        self.unread.end += count;
        if count == 0 && !self.unread.is_empty() {
            // no mutant: the end of the stream
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(count > 0)
    }

    /// The next bytes of data. After a heartbeat it is interrupted, so that the caller waits anew,
    /// or no longer where the peer has no reason to compute.
    fn next<T: Transport>(
        &mut self,
        shared: &Shared<T>,
        bytes: &mut [u8],
        timeout: Option<Duration>,
    ) -> io::Result<usize> {
        if let Some(why) = self.broken {
            // no mutant: repeats an error
            return Err(refuse(why()));
        }
        let deadline = deadline_after(timeout);
        // The first wait is for the timeout itself, which the transport may have set already.
        let mut first = Some(timeout);
        let mut patience = || first.take().map_or_else(|| left(deadline), Ok);
        loop {
            if self.left > 0 {
                let most = bytes.len().min(self.left);
                let count = if self.unread.is_empty() {
                    shared.inner.read(&mut bytes[..most], patience()?)?
                } else {
                    let count = most.min(self.unread.len());
                    let start = self.unread.start;
                    bytes[..count].copy_from_slice(&self.buffer[start..start + count]);
                    self.unread.start += count;
                    count
                };
                self.left -= count;
                shared.came.store(count > 0, Ordering::Relaxed);
                self.heard = Instant::now();
                self.data = self.heard;
                self.beats = 0;
                return Ok(count);
            }
            if !self.greeted {
                if !self.greeting(shared)? && !self.fill(&shared.inner, patience()?)? {
                    return Ok(0);
                }
                continue;
            }
            let Some((kind, length)) = self.header() else {
                if !self.fill(&shared.inner, patience()?)? {
                    return Ok(0);
                }
                continue;
            };
            match (kind, length) {
                (DATA, 1..) => self.left = length,
                (HEARTBEAT, 0) => {
                    self.beats += 1;
                    let time = u64::try_from(self.data.elapsed().as_millis()).unwrap_or(u64::MAX);
                    // Twice the most that an honest party sends, and some that were under way.
                    // mutant(alive-flood): false
                    if self.beats > 100 + time / (OFTEN.as_millis() as u64 / 2) {
                        return Err(self.fail(|| FLOOD));
                    }
                    self.heard = Instant::now();
                    // no mutant: a sign of life, no check
                    return Err(io::ErrorKind::Interrupted.into());
                }
                // mutant(alive-kind): `return Err(self.fail(|| BAD_FRAME))` => `if !$ON { $0; }`
                _ => return Err(self.fail(|| BAD_FRAME)),
            }
        }
    }

    /// Takes the next header if it is there whole: its type and length.
    fn header(&mut self) -> Option<(u8, usize)> {
        let come = &self.buffer[self.unread.clone()];
        let &[kind, a, b, c, ..] = come else {
            return None;
        };
        self.unread.start += HEADER;
        Some((kind, u32::from_le_bytes([a, b, c, 0]) as usize))
    }
}

impl<T: Transport + 'static> Transport for Alive<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let shared = &*self.shared;
        let hears = || timeout.is_none_or(|timeout| shared.hears(timeout));
        let mut writer = lock(&shared.writer);
        for piece in bytes.chunks(LONGEST) {
            let [a, b, c, _] = (piece.len() as u32).to_le_bytes();
            let (first, rest) = match piece.len() {
                0..=COPIED => (piece, &[][..]),
                _ => piece.split_at(FIRST),
            };
            writer.scratch.clear();
            writer.scratch.extend_from_slice(&[DATA, a, b, c]);
            writer.scratch.extend_from_slice(first);
            shared.inner.write_while(&writer.scratch, timeout, &hears)?;
            if !rest.is_empty() {
                shared.inner.write_while(rest, timeout, &hears)?;
            }
        }
        writer.last = Instant::now();
        Ok(())
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let shared = &*self.shared;
        let mut reader = lock(&shared.reader);
        if reader.taken < reader.early.len() {
            let early = &reader.early[reader.taken..];
            let count = bytes.len().min(early.len());
            bytes[..count].copy_from_slice(&early[..count]);
            reader.taken += count;
            if reader.taken == reader.early.len() {
                (reader.early, reader.taken) = (Vec::new(), 0);
            }
            return Ok(count);
        }
        shared.reading.fetch_add(1, Ordering::Relaxed);
        let read = reader.next(shared, bytes, timeout);
        shared.reading.fetch_sub(1, Ordering::Relaxed);
        read
    }

    fn round_trip(&self) -> Option<Duration> {
        self.shared.inner.round_trip()
    }
}

impl<T: Transport + 'static> Drop for Alive<T> {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(heart) = self.heart.take() {
            // The thread does not panic, and ends within one write.
            let _ = heart.join();
        }
    }
}
