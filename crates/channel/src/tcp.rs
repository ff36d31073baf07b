//! TCP between two processes of one machine.
//!
//! Only loopback addresses are accepted: the bytes are neither encrypted nor authenticated, which the protocols above
//! assume of their channel. Everything else is refused with [`Error::NotLoopback`]; [`tls`](crate::tls) goes there.
//!
//! Connections are kept alive: a peer whose machine is gone is noticed, and routers between the two do not forget a
//! connection on which nothing moves while a party computes.
//!
//! A write never waits long for the peer to read, up to [`QUEUE_BOUND`](crate::QUEUE_BOUND) queued bytes. The calling thread
//! hands to the operating system what that takes, and waits a moment for a peer that reads: so messages go out without a copy
//! and a change of threads. What does not go out in that moment a writer thread sends, so that both parties may send large
//! messages at the same time, and compute while a slow link carries them. Waits that do not help are few: four when the connection is
//! new, and one more for each 128 MiB that are sent over it.

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use socket2::{Socket, TcpKeepalive};

use crate::pipe::{Pipe, deadline_after, is_timeout};
use crate::{Channel, Error, Result, Transport};

/// How long nothing moves before the systems ask each other whether they are still there.
const QUIET: Duration = Duration::from_secs(30);

/// How long a write waits for the peer to read something, before what the system makes of it: some count in ticks of 4 to 10 ms.
const READER: Duration = Duration::from_millis(1);

/// After how long a write waits no more, though the peer reads.
const MOMENT: Duration = Duration::from_millis(10);

/// How often a write may wait in vain: a peer that reads does it sooner, one that sends first itself is only held up so often, and a
/// slow link is left to carry what it is given.
const VAIN_WAITS: u32 = 4;

/// After how many bytes that went into the connection a wait more may be in vain. A peer may be asleep on a busy machine for as long as
/// a wait lasts, and over a fast connection it would be a loss never to wait again.
const FORGIVEN: u64 = 128 << 20;

/// Waits for one peer on `address` and gives the channel to it.
///
/// `timeout` bounds the wait for the peer, and is then the channel's timeout ([`Channel::set_timeout`]).
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name stands for, is not on the loopback interface;
/// [`Error::TimedOut`] if nobody connects; [`Error::Io`] if the address is not usable.
pub fn listen(address: impl ToSocketAddrs, timeout: Duration) -> Result<Channel> {
    let stream = Listener::bind(address)?.accept(timeout)?;
    Ok(Channel::with_timeout(stream, Some(timeout)))
}

/// Connects to a listening peer, which may start later, and gives the channel to it.
///
/// `timeout` bounds the wait for the listener, and is then the channel's timeout ([`Channel::set_timeout`]).
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name stands for, is not on the loopback interface;
/// [`Error::TimedOut`] if nobody listens; [`Error::Io`] if the address is not usable.
pub fn connect(address: impl ToSocketAddrs, timeout: Duration) -> Result<Channel> {
    let stream = Stream::connect(address, timeout)?;
    Ok(Channel::with_timeout(stream, Some(timeout)))
}

/// A listening socket on a loopback address.
#[derive(Debug)]
pub struct Listener(TcpListener);

impl Listener {
    /// Listens on `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// As [`listen`], except for the time.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self> {
        Self::bind_to(&loopback_only(resolve(address)?)?)
    }

    /// Listens on any address, for connections that are then authenticated.
    #[cfg(feature = "tls")]
    pub(crate) fn bind_anywhere(address: impl ToSocketAddrs) -> Result<Self> {
        Self::bind_to(&resolve(address)?)
    }

    fn bind_to(addresses: &[SocketAddr]) -> Result<Self> {
        let listener = TcpListener::bind(addresses).map_err(Error::Io)?;
        // `accept` has no timeout that works everywhere, so it asks again and again.
        listener.set_nonblocking(true).map_err(Error::Io)?;
        Ok(Self(listener))
    }

    /// The address listened on.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr().map_err(Error::Io)
    }

    /// Waits for a peer, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if nobody connects.
    pub fn accept(&self, timeout: Duration) -> Result<Stream> {
        let start = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some((stream, _)) = self.poll(timeout)? {
                return Ok(stream);
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                return Err(Error::TimedOut(format!(
                    "no peer connected to {} within {timeout:?}",
                    self.address()
                )));
            };
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// A connection that is there already, and where it came from; `patience` as in [`Stream::new`].
    pub(crate) fn poll(&self, patience: Duration) -> Result<Option<(Stream, SocketAddr)>> {
        match self.0.accept() {
            // What cannot be set up is a connection that has gone again.
            Ok((stream, from)) => Ok(Stream::new(stream, patience)
                .ok()
                .map(|stream| (stream, from))),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(Error::Io(error)),
        }
    }

    /// The address for messages.
    pub(crate) fn address(&self) -> String {
        self.0
            .local_addr()
            .map_or_else(|_| "the address".to_owned(), |at| at.to_string())
    }
}

/// What may go wrong in `accept` without harm to the next one: on Linux it gives the errors of the new connection, too.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    let network = [
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EHOSTDOWN,
    ];
    matches!(
        error.kind(),
        Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::TimedOut
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
    ) || error
        .raw_os_error()
        .is_some_and(|code| network.contains(&code))
}

/// What `address` stands for: at least one address.
fn resolve(address: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = address.to_socket_addrs().map_err(Error::Io)?.collect();
    if addresses.is_empty() {
        return Err(Error::Io(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name stands for no address",
        )));
    }
    Ok(addresses)
}

/// Refuses `addresses` if any of them leaves the machine.
fn loopback_only(addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>> {
    let is_outside = |address: &&SocketAddr| match address.ip() {
        IpAddr::V4(ip) => !ip.is_loopback(),
        IpAddr::V6(ip) => !ip.to_canonical().is_loopback(),
    };
    match addresses.iter().find(is_outside) {
        Some(outside) => Err(Error::NotLoopback(*outside)),
        None => Ok(addresses),
    }
}

/// A connected TCP transport.
///
/// Dropping it sends what is queued, as long as the peer keeps reading, then closes the connection. Dropping it while
/// the thread panics closes at once.
pub struct Stream {
    socket: Arc<Socket>,
    queue: Arc<Pipe>,
    writer: Option<JoinHandle<()>>,
    /// The read timeout that the socket has now.
    read_timeout: Mutex<Option<Duration>>,
    /// How long dropping waits without progress.
    patience: Duration,
    /// Waits in vain that are left, at most [`VAIN_WAITS`].
    waits: AtomicU32,
    /// Bytes written since a wait was given back.
    written: AtomicU64,
    /// A call has timed out, so that dropping need not wait for this peer again.
    is_peer_slow: AtomicBool,
    /// How long connecting took, at the side that did.
    round_trip: Option<Duration>,
}

/// Ends a connection that somebody else has.
#[cfg(feature = "tls")]
pub(crate) struct Breaker(Arc<Socket>);

#[cfg(feature = "tls")]
impl Breaker {
    pub(crate) fn end(&self) {
        // It may have ended by itself.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Stream {
    /// Connects to `address`, trying again until a listener is there, at most for `timeout`.
    ///
    /// # Errors
    /// As [`connect`].
    pub fn connect(address: impl ToSocketAddrs, timeout: Duration) -> Result<Self> {
        Self::connect_to(&loopback_only(resolve(address)?)?, timeout)
    }

    /// Connects to any address, for a connection that is then authenticated.
    #[cfg(feature = "tls")]
    pub(crate) fn connect_anywhere(address: impl ToSocketAddrs, timeout: Duration) -> Result<Self> {
        Self::connect_to(&resolve(address)?, timeout)
    }

    fn connect_to(addresses: &[SocketAddr], timeout: Duration) -> Result<Self> {
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let mut refused = None;
            let mut is_hopeless = true;
            for (tried, address) in addresses.iter().enumerate() {
                // An address that swallows everything leaves time for the next one.
                let share = (addresses.len() - tried).try_into().unwrap_or(u32::MAX);
                let left = timeout.saturating_sub(start.elapsed()) / share;
                let left = left.max(Duration::from_millis(1));
                let asked = Instant::now();
                match TcpStream::connect_timeout(address, left) {
                    Ok(stream) if is_connected_to_itself(&stream) => is_hopeless = false,
                    Ok(stream) => {
                        let round_trip = Some(asked.elapsed());
                        let mut stream = Self::new(stream, timeout).map_err(Error::Io)?;
                        stream.round_trip = round_trip;
                        return Ok(stream);
                    }
                    Err(error) if may_come_up(error.kind()) => is_hopeless = false,
                    // A name may stand for an address of a kind that this machine does not have.
                    Err(error) => refused = Some(error),
                }
            }
            if let Some(error) = refused.filter(|_| is_hopeless) {
                return Err(Error::Io(error));
            }
            let Some(left) = timeout.checked_sub(start.elapsed()) else {
                let list = addresses
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>()
                    .join(" or ");
                return Err(Error::TimedOut(format!(
                    "nobody listened on {list} within {timeout:?}"
                )));
            };
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }

    /// Takes over a connected stream; `patience` is how long dropping waits without progress.
    fn new(stream: TcpStream, patience: Duration) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(READER))?;
        let socket = Arc::new(Socket::from(stream));
        socket.set_tcp_keepalive(
            &TcpKeepalive::new()
                .with_time(QUIET)
                .with_interval(QUIET / 3)
                .with_retries(3),
        )?;
        let queue = Arc::new(Pipe::new());
        let writer = thread::Builder::new()
            .name("volery tcp writer".into())
            .spawn({
                let (socket, queue) = (Arc::clone(&socket), Arc::clone(&queue));
                move || send_queued(&socket, &queue)
            })?;
        Ok(Self {
            socket,
            queue,
            writer: Some(writer),
            read_timeout: Mutex::new(None),
            patience,
            waits: AtomicU32::new(VAIN_WAITS),
            written: AtomicU64::new(0),
            is_peer_slow: AtomicBool::new(false),
            round_trip: None,
        })
    }

    /// Ends the connection from outside, whatever its owner waits for.
    #[cfg(feature = "tls")]
    pub(crate) fn breaker(&self) -> Breaker {
        Breaker(Arc::clone(&self.socket))
    }

    /// Sends what the system takes at once, and if this write may wait, until a moment is over what it takes as the peer reads; returns
    /// the number of bytes.
    ///
    /// While the queue is idle the writer thread sends nothing, and only this thread can give it something.
    fn send_directly(&self, bytes: &[u8]) -> io::Result<usize> {
        let may_wait = self.may_wait(bytes.len());
        let until = Instant::now() + MOMENT;
        if !self.queue.is_idle() {
            if !may_wait {
                return Ok(0);
            }
            if !self.queue.drains(until, READER) {
                self.waited_in_vain();
                return Ok(0);
            }
        }
        let mut sent = 0;
        while sent < bytes.len() {
            let waits = may_wait && Instant::now() < until;
            let waiting = if waits { 0 } else { libc::MSG_DONTWAIT };
            match self
                .socket
                .send_with_flags(&bytes[sent..], waiting | libc::MSG_NOSIGNAL)
            {
                Ok(count) => sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if may_wait {
                        self.waited_in_vain();
                    }
                    break;
                }
                Err(error) => return Err(dead(error)),
            }
        }
        Ok(sent)
    }

    /// Whether a write of so many bytes may wait, which also counts them.
    fn may_wait(&self, bytes: usize) -> bool {
        let written = self.written.load(Ordering::Relaxed) + bytes as u64;
        let waits = self.waits.load(Ordering::Relaxed);
        let forgiven = (written / FORGIVEN).min(VAIN_WAITS.into()) as u32;
        let waits = (waits + forgiven).min(VAIN_WAITS);
        self.written.store(written % FORGIVEN, Ordering::Relaxed);
        self.waits.store(waits, Ordering::Relaxed);
        waits > 0
    }

    /// The peer read nothing, or not enough.
    fn waited_in_vain(&self) {
        let waits = self.waits.load(Ordering::Relaxed);
        self.waits.store(waits.saturating_sub(1), Ordering::Relaxed);
    }

    fn note_timeout<T>(&self, result: io::Result<T>) -> io::Result<T> {
        let timed_out = result.as_ref().is_err_and(|error| is_timeout(error.kind()));
        self.is_peer_slow.store(timed_out, Ordering::Relaxed);
        result
    }

    /// Receives and drops what has come, without waiting. Unread bytes at closing time would make the system reset the
    /// connection, and the peer could lose what it has not read yet.
    ///
    /// Bounded, so that a peer that never stops sending cannot keep this party here.
    fn drain(&self) {
        let mut bytes = [MaybeUninit::uninit(); 16 << 10];
        for _ in 0..256 {
            match self.socket.recv_with_flags(&mut bytes, libc::MSG_DONTWAIT) {
                Ok(count) if count > 0 => {}
                _ => return,
            }
        }
    }
}

/// The system's own timeout says that the peer's machine does not answer any more; ours is another error.
fn dead(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ETIMEDOUT) => io::ErrorKind::ConnectionAborted.into(),
        _ => error,
    }
}

/// While nobody listens on a port that the system hands out, connecting to it can succeed by connecting to itself.
fn is_connected_to_itself(stream: &TcpStream) -> bool {
    matches!((stream.local_addr(), stream.peer_addr()), (Ok(local), Ok(peer)) if local == peer)
}

/// Errors of `connect` that go away when the listener, its machine or the network starts.
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
    )
}

/// The writer thread.
fn send_queued(socket: &Socket, queue: &Pipe) {
    // Short enough that a slow peer shows as progress.
    const PIECE: usize = 128 << 10;
    while let Ok(Some(chunk)) = queue.take(None) {
        let mut rest = &chunk.bytes[..];
        while !rest.is_empty() {
            match socket.send_with_flags(&rest[..rest.len().min(PIECE)], libc::MSG_NOSIGNAL) {
                Ok(count) => {
                    queue.release(count);
                    rest = &rest[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The socket's timeout is for who has something else to do.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return queue.fail(dead(error).kind()),
            }
        }
    }
}

impl Transport for Stream {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        if let Some(kind) = self.queue.failure() {
            return Err(kind.into());
        }
        let sent = self.send_directly(bytes)?;
        self.note_timeout(self.queue.push(&bytes[sent..], timeout))
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        // The system has microseconds, and takes zero for ever.
        let timeout = timeout.map(|timeout| timeout.max(Duration::from_millis(1)));
        let mut current = self
            .read_timeout
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if *current != timeout {
            self.socket.set_read_timeout(timeout)?;
            *current = timeout;
        }
        drop(current);
        self.note_timeout(
            self.queue
                .read_patiently(|| io::Read::read(&mut &*self.socket, bytes).map_err(dead)),
        )
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
        let hurry = thread::panicking() || self.is_peer_slow.load(Ordering::Relaxed);
        while !hurry && !self.queue.is_idle() && self.queue.failure().is_none() {
            // Both parties may be here: if neither read, neither would get rid of its queue.
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
            // The end of the stream goes out behind the last byte. If the peer is gone, there is nothing to tell it.
            let _ = self.socket.shutdown(Shutdown::Write);
            self.drain();
        } else {
            // Wakes the writer thread.
            let _ = self.socket.shutdown(Shutdown::Both);
            self.queue.fail(io::ErrorKind::BrokenPipe);
        }
        if let Some(writer) = self.writer.take() {
            // It does not panic.
            let _ = writer.join();
        }
    }
}

/// Both ends of a connection over the loopback interface.
pub(crate) fn pair(timeout: Duration) -> Result<(Stream, Stream)> {
    let listener = Listener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    // The system completes the connection before it is accepted.
    let left = Stream::connect(listener.local_addr()?, timeout)?;
    Ok((left, listener.accept(timeout)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_millis(50);

    fn waits(stream: &Stream) -> u32 {
        stream.waits.load(Ordering::Relaxed)
    }

    /// Each write that does not go out costs a wait, whether it finds the queue idle or not, until none is left.
    #[test]
    fn a_peer_that_does_not_read_is_waited_for_a_few_times() {
        let (left, right) = pair(PATIENCE).unwrap();
        // More than the system then keeps for both of them.
        left.socket.set_send_buffer_size(1 << 16).unwrap();
        right.socket.set_recv_buffer_size(1 << 16).unwrap();
        let much = vec![0; 4 << 20];
        for expected in (0..VAIN_WAITS).rev().chain([0, 0]) {
            left.write(&much, None).unwrap();
            assert_eq!(waits(&left), expected);
        }
        drop((right, left));
    }

    #[test]
    fn a_peer_that_reads_costs_no_wait() {
        let (left, right) = pair(PATIENCE).unwrap();
        let mut bytes = vec![0; 64 << 10];
        for _ in 0..1000 {
            left.write(&bytes, None).unwrap();
            let mut rest = &mut bytes[..];
            while !rest.is_empty() {
                let count = right.read(rest, None).unwrap();
                rest = &mut rest[count..];
            }
        }
        assert_eq!(waits(&left), VAIN_WAITS);
    }

    #[test]
    fn waits_come_back_with_what_is_written() {
        let (left, _right) = pair(PATIENCE).unwrap();
        let (mut given, piece) = (0, 1 << 20);
        (0..VAIN_WAITS).for_each(|_| left.waited_in_vain());
        for written in 1..=3 * FORGIVEN / piece {
            if left.may_wait(piece as usize) {
                given += 1;
                left.waited_in_vain();
            }
            assert_eq!(given, written * piece / FORGIVEN);
        }
        assert!(left.may_wait(100 * FORGIVEN as usize));
        assert_eq!(waits(&left), VAIN_WAITS);
    }
}
