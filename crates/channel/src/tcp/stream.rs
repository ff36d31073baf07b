//! A connected transport; a writer thread sends the bytes that do not go out immediately.

use std::io;
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU16, Ordering};

use socket2::{Domain, Protocol, TcpKeepalive, Type};
use volery_os::net::Socket;
use volery_os::sync::{Arc, Mutex};
use volery_os::thread::{self, JoinHandle};
use volery_os::time::{Duration, Instant};

use super::allowance::Allowance;
use super::proxy::{Destination, hops};
use super::{Patience, system};
use crate::pipe::{CHUNK, Pipe, deadline_after, is_timeout, lock};
use crate::{Cancel, Error, Result, Transport};

/// Idle time before keep-alive probes start.
const IDLE: Duration = Duration::from_secs(30);

/// How long a write waits for the peer to read something, before rounding by the operating system:
/// some count in ticks of 4 to 10 ms.
const READ_WAIT: Duration = Duration::from_millis(1);

/// How long a write waits at most while the peer reads.
const MAX_WAIT: Duration = Duration::from_millis(10);

/// Set once the first byte from the peer is known.
const HEARD: u16 = 0x100;

/// The longest attempt to connect to one of several addresses.
const MAX_ATTEMPT: Duration = Duration::from_secs(10);

/// The remedy where a proxy never reached the peer.
const LATE: &str = "check that the peer is running, and that the proxy can reach its address; \
                    --wait TIME waits longer";

/// A connected TCP transport.
///
/// Dropping it sends the queued bytes, as long as the peer keeps reading, then closes the
/// connection. Dropping it while the thread panics closes at once.
pub struct Stream {
    socket: Arc<Socket>,
    queue: Arc<Pipe>,
    writer: Option<JoinHandle<()>>,
    /// The current read timeout of the socket.
    read_timeout: Mutex<Option<Duration>>,
    /// How long dropping waits without progress.
    patience: Duration,
    cancel: Cancel,
    allowance: Allowance,
    /// A call has timed out, so dropping need not wait for this peer again.
    is_peer_slow: AtomicBool,
    /// The first byte from the peer and [`HEARD`]; 0 before it.
    heard: Arc<AtomicU16>,
    /// The time that connecting took, on the connecting side.
    round_trip: Option<Duration>,
}

struct Wait {
    until: Instant,
    /// The peer read nothing.
    unread: bool,
}

impl Wait {
    fn until(until: Instant) -> Self {
        Self { until, unread: false }
    }
}

/// Closes a connection owned by another thread.
pub(crate) struct Breaker(Arc<Socket>);

impl Breaker {
    pub(crate) fn end(&self) {
        // The connection may already be closed.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Stream {
    /// Connects to `address`, retrying until a listener is there, for at most `patience.wait`.
    ///
    /// # Errors
    /// The errors of [`connect`](super::connect).
    pub fn connect(address: impl Destination, patience: impl Into<Patience>) -> Result<Self> {
        Self::meet(&address, &patience.into(), false, |stream, _| Ok(stream))
    }

    /// Connects to any address of `destination`, retrying whatever may come up: names are resolved
    /// anew each time. Without `is_secured` only loopback addresses are allowed. `shake`, given its
    /// time limit, hears the peer for the first time. A connection that ends before anything came
    /// is one to a proxy whose listener is not there yet, or to a peer that refuses this party, and
    /// is made again; so is one that a proxy cannot make yet.
    pub(crate) fn meet<T>(
        destination: &impl Destination,
        patience: &Patience,
        is_secured: bool,
        shake: impl Fn(Self, Duration) -> Result<T>,
    ) -> Result<T> {
        let (start, wait) = (Instant::now(), patience.wait);
        let mut pause = Duration::from_millis(1);
        let mut is_closed = false;
        let mut refused = None;
        loop {
            let hops = match hops(destination, is_secured) {
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::InvalidInput => {
                    return Err(Error::Io(error));
                }
                Err(error @ Error::NotLoopback(_)) => return Err(error),
                hops => hops,
            };
            let mut last = None;
            let mut is_hopeless = hops.is_ok();
            let count = hops.as_ref().map_or(1, Vec::len);
            for (tried, (address, asked)) in hops.iter().flatten().enumerate() {
                // One that is silent leaves time for the next one.
                let share = (count - tried).try_into().unwrap_or(u32::MAX);
                let most = if count > 1 { MAX_ATTEMPT } else { Duration::MAX };
                let left = (wait.saturating_sub(start.elapsed()) / share).min(most);
                let left = left.max(Duration::from_millis(1));
                let begin = Instant::now();
                let socket = match connect_within(*address, left, &patience.cancel) {
                    Ok(socket) if is_connected_to_itself(&socket) => {
                        is_hopeless = false;
                        continue;
                    }
                    Ok(socket) => socket,
                    // A name may resolve to an address family that this machine does not have.
                    Err(error) => {
                        is_hopeless &= !may_come_up(error.kind());
                        last = Some(error);
                        continue;
                    }
                };
                let round_trip = begin.elapsed();
                let mut stream = Self::new(socket, patience).map_err(Error::Io)?;
                match (destination.proxy(), asked) {
                    (Some((peer, proxy)), Some(asked)) => {
                        let left = left.saturating_sub(round_trip).max(Duration::from_millis(1));
                        if let Some((why, remedy)) = proxy.connect(&stream, asked, left) {
                            patience.cancel.check()?;
                            if let Some(remedy) = remedy {
                                // no mutant: the answer of a proxy, and no other address is tried
                                return Err(proxy.error(peer, &why, remedy));
                            }
                            is_hopeless = false;
                            // The end of the wait cuts the last attempt short.
                            if refused.is_none() || start.elapsed() < wait {
                                refused = Some(why);
                            }
                            continue;
                        }
                        refused = None;
                        // That was the proxy.
                        stream.heard.store(0, Ordering::Relaxed);
                    }
                    _ => stream.round_trip = Some(round_trip),
                }
                let heard = Arc::clone(&stream.heard);
                // A peer that is busy may be silent for long.
                match shake(stream, patience.timeout / share) {
                    Err(Error::Disconnected) if heard.load(Ordering::Relaxed) == 0 => {
                        (is_hopeless, is_closed) = (false, true);
                    }
                    Err(Error::TimedOut(_)) if share > 1 && heard.load(Ordering::Relaxed) == 0 => {
                        is_hopeless = false;
                    }
                    met => return met,
                }
            }
            patience.cancel.check()?;
            if is_hopeless && let Some(error) = last {
                return Err(Error::Io(error));
            }
            let Some(left) = wait.checked_sub(start.elapsed()) else {
                let list = hops.iter().flatten().map(|(at, _)| at.to_string());
                let list = list.collect::<Vec<_>>().join(" or ");
                let why = match (hops, refused) {
                    (Err(error), _) => format!("the name did not resolve within {wait:?}: {error}"),
                    (_, Some(why)) => format!("{why}, until {wait:?} had passed"),
                    _ if is_closed => format!(
                        "no peer answered on {list} within {wait:?}: connections were accepted and \
                         closed, as by a proxy in front of no listener, or by a peer that refuses \
                         this side"
                    ),
                    _ => format!("no peer started to listen on {list} within {wait:?}"),
                };
                // no mutant: time is up
                return Err(match destination.proxy() {
                    Some((peer, proxy)) => proxy.error(peer, &why, LATE),
                    None => Error::TimedOut(why),
                });
            };
            patience.cancel.sleep(pause.min(left))?;
            pause = (pause * 2).min(Duration::from_millis(500));
        }
    }

    /// Takes over a connected socket; `patience.timeout` is how long dropping waits without
    /// progress.
    pub(super) fn new(socket: Arc<Socket>, patience: &Patience) -> io::Result<Self> {
        patience.cancel.watch(&socket);
        socket.set_nonblocking(false)?;
        socket.set_tcp_nodelay(true)?;
        socket.set_write_timeout(Some(READ_WAIT))?;
        socket.set_tcp_keepalive(
            &TcpKeepalive::new().with_time(IDLE).with_interval(IDLE / 3).with_retries(3),
        )?;
        let queue = Arc::new(Pipe::with_bound(patience.queue));
        let writer = thread::Builder::new().name("volery tcp writer".into()).spawn({
            let (socket, queue) = (Arc::clone(&socket), Arc::clone(&queue));
            move || send_queued(&socket, &queue)
        })?;
        Ok(Self {
            socket,
            queue,
            writer: Some(writer),
            read_timeout: Mutex::new(None),
            patience: patience.timeout,
            cancel: patience.cancel.clone(),
            allowance: Allowance::default(),
            is_peer_slow: AtomicBool::new(false),
            heard: Arc::default(),
            round_trip: None,
        })
    }

    /// A test, for later, whether the peer began with a GET or HEAD of HTTP, as a load balancer
    /// does; no message of volery or TLS begins like this.
    #[cfg(feature = "tls")]
    pub(crate) fn is_http(&self) -> impl Fn() -> bool + use<> {
        let heard = Arc::clone(&self.heard);
        move || {
            [b'G', b'H']
                .map(|byte| HEARD | u16::from(byte))
                .contains(&heard.load(Ordering::Relaxed))
        }
    }

    /// Closes the connection from outside, whatever its owner waits for.
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker(Arc::clone(&self.socket))
    }

    /// Sends what the operating system takes at once and, if this write may wait, what it takes as
    /// the peer reads until the time limit; returns the number of bytes.
    fn send_directly(&self, bytes: &[u8]) -> io::Result<usize> {
        let may_wait = self.allowance.earn(bytes.len());
        let at_once = match self.queue.is_idle() {
            true => self.send_now(bytes)?,
            false => 0,
        };
        if at_once == bytes.len() || !may_wait {
            return Ok(at_once);
        }
        let start = Instant::now();
        let mut wait = Wait::until(start + MAX_WAIT);
        let sent = self.send_waiting(&bytes[at_once..], &mut wait);
        self.allowance.charge(start.elapsed(), wait.unread);
        Ok(at_once + sent?)
    }

    /// Sends what the operating system takes at once. While the queue is idle the writer thread
    /// sends nothing, and only this thread can push to the queue.
    fn send_now(&self, bytes: &[u8]) -> io::Result<usize> {
        self.send_some(bytes, system::AT_ONCE)
    }

    /// Sends what the operating system takes as the peer reads.
    fn send_waiting(&self, bytes: &[u8], wait: &mut Wait) -> io::Result<usize> {
        if !self.queue.drains(wait.until, READ_WAIT) {
            wait.unread = Instant::now() < wait.until;
            return Ok(0);
        }
        let mut sent = 0;
        while sent < bytes.len() && Instant::now() < wait.until {
            // Stops early if the timeout of the operating system ends the wait, perhaps with a part
            // sent.
            match self.send_some(&bytes[sent..], 0)? {
                0 => {
                    wait.unread = true;
                    break;
                }
                count => sent += count,
            }
        }
        Ok(sent)
    }

    /// One system call; zero if it would have to wait, or wait longer.
    fn send_some(&self, bytes: &[u8], flags: std::ffi::c_int) -> io::Result<usize> {
        loop {
            match self.socket.send_with_flags(bytes, flags | system::NO_SIGNAL) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
                result => return result.map_err(dead),
            }
        }
    }

    /// Queues at most [`CHUNK`] bytes, all or none of them.
    fn push(
        &self,
        piece: &[u8],
        timeout: Option<Duration>,
        alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut progress = (self.queue.released(), Instant::now());
        loop {
            let pushed = self.queue.push(piece, timeout.map(|timeout| timeout / 4));
            match (&pushed, timeout) {
                (Err(error), Some(timeout)) if is_timeout(error.kind()) => {
                    let released = self.queue.released();
                    if released != progress.0 {
                        progress = (released, Instant::now());
                    }
                    if !alive() && progress.1.elapsed() >= timeout {
                        return pushed;
                    }
                }
                _ => return pushed,
            }
        }
    }

    /// Fails once this party has cancelled.
    fn check(&self) -> io::Result<()> {
        self.cancel.check().map_err(io::Error::other)
    }

    fn note_timeout<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let timed_out = result.as_ref().is_err_and(|error| is_timeout(error.kind()));
        self.is_peer_slow.store(timed_out, Ordering::Relaxed);
        result
    }

    /// Receives and drops the bytes that have arrived, without waiting. Unread bytes at closing
    /// time would make the operating system reset the connection, and the peer could lose bytes
    /// that it has not read yet.
    ///
    /// Bounded, so that a peer that never stops sending cannot block this party.
    fn drain(&self) {
        let mut bytes = [MaybeUninit::uninit(); 16 << 10];
        if system::AT_ONCE == 0 && self.socket.set_read_timeout(Some(READ_WAIT)).is_err() {
            return;
        }
        for _ in 0..256 {
            match self.socket.recv_with_flags(&mut bytes, system::AT_ONCE) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }
}

/// Maps the operating system's own timeout, which means that the peer's machine no longer answers;
/// the call's timeout is another error.
fn dead(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(system::NO_ANSWER) => io::ErrorKind::ConnectionAborted.into(),
        _ => error,
    }
}

/// While no listener is on an ephemeral port, connecting to it can succeed by connecting to itself.
fn is_connected_to_itself(socket: &Socket) -> bool {
    matches!((socket.local_addr(), socket.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

/// One attempt to connect.
fn connect_within(
    address: SocketAddr,
    timeout: Duration,
    cancel: &Cancel,
) -> io::Result<Arc<Socket>> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    let socket = Arc::new(socket);
    cancel.watch(&socket);
    socket.connect_timeout(&address.into(), timeout)?;
    Ok(socket)
}

/// Whether an error of `connect` can go away when the listener, its machine or the network starts.
fn may_come_up(kind: io::ErrorKind) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        kind,
        Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::TimedOut
            | Kind::WouldBlock
            | Kind::Interrupted
            | Kind::AddrInUse
            | Kind::AddrNotAvailable
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            // A firewall.
            | Kind::PermissionDenied
    )
}

fn send_queued(socket: &Socket, queue: &Pipe) {
    // Short enough that progress is visible with a slow peer.
    const PIECE: usize = 128 << 10;
    while let Ok(Some(chunk)) = queue.take(None) {
        let mut rest = &chunk.bytes[..];
        while !rest.is_empty() {
            match socket.send_with_flags(&rest[..rest.len().min(PIECE)], system::NO_SIGNAL) {
                Ok(count) => {
                    queue.release(count);
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket's timeout is meant for the other thread.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return queue.fail(dead(error).kind()),
            }
        }
    }
}

impl Transport for Stream {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.write_while(bytes, timeout, &|| false)
    }

    fn write_while(
        &self,
        bytes: &[u8],
        timeout: Option<Duration>,
        alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        self.check()?;
        if let Some(kind) = self.queue.failure() {
            return Err(kind.into());
        }
        let written = self.send_directly(bytes).and_then(|sent| {
            let mut pieces = bytes[sent..].chunks(CHUNK);
            self.note_timeout(pieces.try_for_each(|piece| self.push(piece, timeout, alive)))
        });
        if written.is_err() {
            self.check()?;
        }
        written
    }

    fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    fn queue_bound(&self) -> usize {
        self.queue.bound()
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.check()?;
        // The operating system counts in microseconds, and zero means no timeout.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        let mut current = lock(&self.read_timeout);
        if *current != timeout {
            self.socket.set_read_timeout(timeout)?;
            *current = timeout;
        }
        drop(current);
        let read = self.note_timeout(
            self.queue.read_patiently(|| io::Read::read(&mut &*self.socket, bytes).map_err(dead)),
        );
        match read {
            Ok(1..) if self.heard.load(Ordering::Relaxed) == 0 => {
                self.heard.store(HEARD | u16::from(bytes[0]), Ordering::Relaxed);
            }
            Ok(1..) => {}
            // The end may be that of this party's own making.
            _ => self.check()?,
        }
        read
    }

    fn round_trip(&self) -> Option<Duration> {
        self.round_trip
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.queue.close();
        let mut last = (self.queue.released(), Instant::now());
        let give_up = deadline_after(Some(self.patience.saturating_mul(10)));
        let hurry = thread::panicking()
            || self.cancel.is_cancelled()
            || self.is_peer_slow.load(Ordering::Relaxed);
        while !hurry && !self.queue.is_idle() && self.queue.failure().is_none() {
            // Both parties may be here: if neither read, neither could empty its queue.
            self.drain();
            thread::sleep(Duration::from_millis(1));
            let released = self.queue.released();
            if released != last.0 {
                last = (released, Instant::now());
            }
            if last.1.elapsed() > self.patience || give_up.is_some_and(|end| Instant::now() > end) {
                break;
            }
        }
        if self.queue.is_idle() {
            // The end of the stream follows the last byte. If the peer is gone, the call fails
            // harmlessly.
            let _ = self.socket.shutdown(Shutdown::Write);
            self.drain();
        } else {
            // Wakes the writer thread.
            let _ = self.socket.shutdown(Shutdown::Both);
            self.queue.fail(io::ErrorKind::BrokenPipe);
        }
        if let Some(writer) = self.writer.take() {
            // The writer thread does not panic.
            let _ = writer.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::allowance::ALLOWED;
    use super::super::pair;
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(50);

    fn allowance(stream: &Stream) -> i64 {
        stream.allowance.left()
    }

    /// A connection whose left end cannot send much before the right one reads.
    fn narrow() -> (Stream, Stream) {
        let (left, right) = pair(PATIENCE).unwrap();
        left.socket.set_send_buffer_size(1 << 16).unwrap();
        right.socket.set_recv_buffer_size(1 << 16).unwrap();
        (left, right)
    }

    /// Writes that do not go out wait until the budget is used up, whether they find the queue idle
    /// or not; then they do not wait.
    #[test]
    fn a_peer_that_does_not_read_is_waited_for_a_few_times() {
        let (left, right) = narrow();
        left.write(&vec![0; 4 << 20], None).unwrap();
        let mut waits = 0;
        while allowance(&left) > 0 {
            let before = allowance(&left);
            left.write(&[0], None).unwrap();
            assert!(allowance(&left) < before);
            waits += 1;
        }
        // Each wait took a millisecond at least, and counts sixteen times.
        assert!(waits <= 2, "{waits}");
        // A wait in which this machine slept may have used up the budget exactly.
        let before = allowance(&left).min(-1000);
        left.allowance.set(before);
        left.write(&[0; 100], None).unwrap();
        assert_eq!(allowance(&left), before + 100);
        drop((right, left));
    }

    /// Queued bytes go first, then those that a write waiting for them sends itself.
    #[test]
    fn nothing_overtakes_what_is_queued() {
        let (left, right) = narrow();
        let total = 8 << 20;
        let sent: Vec<u8> = (0..total).map(|i| (i % 251) as u8).collect();
        let (queued, waited_for) = sent.split_at(total / 2);
        left.allowance.set(-i64::MAX / 2);
        left.write(queued, None).unwrap();
        assert!(!left.queue.is_idle(), "no write waited");
        let received = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut bytes = vec![0; total];
                let mut rest = &mut bytes[..];
                while !rest.is_empty() {
                    let count = right.read(rest, None).unwrap();
                    rest = &mut rest[count..];
                }
                bytes
            });
            // On a busy machine the reader may sleep through a wait, and the rest is queued as
            // well.
            for piece in waited_for.chunks(1 << 16) {
                left.allowance.set(ALLOWED);
                left.write(piece, None).unwrap();
            }
            reader.join().unwrap()
        });
        assert!(received == sent);
    }
}
