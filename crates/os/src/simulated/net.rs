//! Sockets.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::mem::MaybeUninit;
use std::net::{Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, TcpKeepalive, Type};

use super::world::{Me, me};

/// What a direction of a connection holds that was not read.
const BUFFER: usize = 256 << 10;

/// What a socket was told to do without waiting.
const AT_ONCE: i32 = libc::MSG_DONTWAIT;

/// One direction of a connection.
#[derive(Debug, Default)]
struct Way {
    /// Pieces, with the times at which they arrive.
    pieces: VecDeque<(Duration, Vec<u8>)>,
    bytes: usize,
    /// When the end of it arrives.
    end: Option<Duration>,
}

/// A connection, with the way from each end to the other one.
#[derive(Debug)]
pub(super) struct Wire {
    ways: [Way; 2],
    addresses: [SocketAddr; 2],
    latency: Duration,
    /// Nothing arrives before.
    held: Duration,
    is_reset: bool,
    is_closed: [bool; 2],
    /// When the system of an end gives up on the other machine.
    dead: [Option<Duration>; 2],
    /// The ends that heard of the failure: a system tells it once, then the connection has ended.
    told: [bool; 2],
}

impl Wire {
    /// What was sent arrives, and the end of it; what nobody will read resets the connection.
    pub(super) fn close(&mut self, end: usize, now: Duration) {
        self.is_closed[end] = true;
        let unread = self.ways[1 - end].pieces.front().is_some_and(|(at, _)| *at <= now);
        match unread {
            true => self.is_reset = true,
            false => self.finish(end, now),
        }
    }

    fn finish(&mut self, end: usize, now: Duration) {
        let arrival = self.arrival(end, now);
        self.ways[end].end.get_or_insert(arrival);
    }

    /// The machine of an end has no power: the other one hears nothing until `dead`.
    pub(super) fn fall_silent(&mut self, end: usize, dead: Duration) {
        self.dead[1 - end] = Some(dead);
    }

    pub(super) fn reset(&mut self) {
        self.is_reset = true;
    }

    pub(super) fn hold(&mut self, until: Duration) {
        self.held = self.held.max(until);
    }

    /// When a piece that is sent now arrives.
    fn arrival(&self, from: usize, now: Duration) -> Duration {
        let last = self.ways[from].pieces.back().map_or(Duration::ZERO, |(at, _)| *at);
        (now + self.latency).max(last)
    }

    fn failure(&self, end: usize, now: Duration) -> Option<io::Error> {
        match self.dead[end] {
            Some(at) if at <= now => Some(io::Error::from_raw_os_error(libc::ETIMEDOUT)),
            _ if self.is_reset => Some(io::ErrorKind::ConnectionReset.into()),
            _ => None,
        }
    }
}

/// Connections that a listener has not taken.
#[derive(Debug, Default)]
pub(super) struct Backlog(VecDeque<(Duration, Arc<Mutex<Wire>>)>);

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An end of a connection in a world.
struct End {
    me: Me,
    wire: Arc<Mutex<Wire>>,
    end: usize,
}

impl std::fmt::Debug for End {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{:?}", lock(&self.wire).addresses)
    }
}

/// Options of a socket in a world, and its end once it is connected.
#[derive(Debug, Default)]
struct Own {
    end: Option<Arc<End>>,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
    is_shut: bool,
}

/// As that of `socket2`.
#[derive(Debug)]
pub struct Socket(Kind);

#[derive(Debug)]
enum Kind {
    System(socket2::Socket),
    World(Mutex<Own>),
}

/// As that of the standard library, but for [`accept`].
#[derive(Debug)]
pub struct TcpListener(Listening);

#[derive(Debug)]
enum Listening {
    System(std::net::TcpListener),
    World(WorldListener),
}

struct WorldListener(Me, SocketAddr, Arc<Mutex<Backlog>>);

impl std::fmt::Debug for WorldListener {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "{}", self.1)
    }
}

impl Drop for WorldListener {
    fn drop(&mut self) {
        self.0.world.lock().listeners.remove(&self.1);
        for (_, wire) in lock(&self.2).0.drain(..) {
            lock(&wire).reset();
            self.0.wake(Arc::as_ptr(&wire) as usize);
        }
    }
}

/// As the standard library's.
#[allow(missing_docs, clippy::missing_errors_doc, reason = "they are the standard library's")]
impl TcpListener {
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        let Some(me) = me() else {
            return std::net::TcpListener::bind(address).map(|it| Self(Listening::System(it)));
        };
        let mut address = address.to_socket_addrs()?.next().ok_or(io::ErrorKind::NotFound)?;
        if address.ip().is_unspecified() || address.ip().is_loopback() {
            address.set_ip(me.address());
        }
        let (own, machine) = (me.address(), me.machine());
        let mut inner = me.world.lock();
        if address.ip() != own {
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if address.port() == 0 {
            inner.machines[machine].next_port += 1;
            address.set_port(inner.machines[machine].next_port);
        }
        if inner.listeners.contains_key(&address) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        let backlog = Arc::default();
        inner.listeners.insert(address, (me.program, Arc::clone(&backlog)));
        drop(inner);
        Ok(Self(Listening::World(WorldListener(me, address, backlog))))
    }

    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match &self.0 {
            Listening::System(it) => it.local_addr(),
            Listening::World(it) => Ok(it.1),
        }
    }

    pub fn set_nonblocking(&self, value: bool) -> io::Result<()> {
        match &self.0 {
            Listening::System(it) => it.set_nonblocking(value),
            Listening::World(_) => Ok(()),
        }
    }
}

/// A connection of a listener, and its origin.
///
/// # Errors
/// Those of the system.
pub fn accept(listener: &TcpListener) -> io::Result<(Socket, SocketAddr)> {
    let it = match &listener.0 {
        Listening::System(it) => {
            return it.accept().map(|(it, from)| (it.into(), from));
        }
        Listening::World(it) => it,
    };
    let now = it.0.now();
    let mut backlog = lock(&it.2);
    let ready = backlog.0.front().is_some_and(|(at, _)| *at <= now);
    if !ready {
        return Err(io::ErrorKind::WouldBlock.into());
    }
    let (_, wire) = backlog.0.pop_front().expect("there is one");
    drop(backlog);
    // Another thread than the one that listens first.
    let me = me().ok_or(io::ErrorKind::NotConnected)?;
    me.call("accept");
    let from = lock(&wire).addresses[0];
    me.keep(&wire, 1);
    let end = Some(Arc::new(End { me, wire, end: 1 }));
    Ok((Socket(Kind::World(Mutex::new(Own { end, ..Own::default() }))), from))
}

impl From<TcpStream> for Socket {
    fn from(stream: TcpStream) -> Self {
        Self(Kind::System(stream.into()))
    }
}

/// As `socket2`'s; in a world options that change no result do nothing.
#[allow(missing_docs, clippy::missing_errors_doc, reason = "they are those of socket2")]
impl Socket {
    pub fn new(domain: Domain, kind: Type, protocol: Option<Protocol>) -> io::Result<Self> {
        Ok(Self(match me() {
            Some(_) => Kind::World(Mutex::default()),
            None => Kind::System(socket2::Socket::new(domain, kind, protocol)?),
        }))
    }

    pub fn connect_timeout(&self, address: &SockAddr, timeout: Duration) -> io::Result<()> {
        let own = match &self.0 {
            Kind::System(it) => return it.connect_timeout(address, timeout),
            Kind::World(own) => own,
        };
        let me = me().ok_or(io::ErrorKind::NotConnected)?;
        me.call("connect");
        let mut address = address.as_socket().ok_or(io::ErrorKind::InvalidInput)?;
        let (from, machine) = (me.address(), me.machine());
        if address.ip().is_loopback() {
            address.set_ip(from);
        }
        let mut inner = me.world.lock();
        let latency = Duration::from_micros(100 + inner.below(40_000));
        let listener = inner.listeners.get(&address).map(|(_, backlog)| Arc::clone(backlog));
        inner.machines[machine].next_port += 1;
        let port = inner.machines[machine].next_port;
        drop(inner);
        me.sleep((2 * latency).min(timeout));
        let Some(backlog) = listener else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let wire = Arc::new(Mutex::new(Wire {
            ways: Default::default(),
            addresses: [SocketAddr::new(from, port), address],
            latency,
            held: Duration::ZERO,
            is_reset: false,
            is_closed: [false; 2],
            dead: [None; 2],
            told: [false; 2],
        }));
        me.keep(&wire, 0);
        lock(&backlog).0.push_back((me.now(), Arc::clone(&wire)));
        let mut own = lock(own);
        if own.is_shut {
            return Err(io::ErrorKind::NotConnected.into());
        }
        own.end = Some(Arc::new(End { me, wire, end: 0 }));
        Ok(())
    }

    pub fn local_addr(&self) -> io::Result<SockAddr> {
        self.address(0)
    }

    pub fn peer_addr(&self) -> io::Result<SockAddr> {
        self.address(1)
    }

    fn address(&self, other: usize) -> io::Result<SockAddr> {
        match &self.0 {
            Kind::System(it) if other == 0 => it.local_addr(),
            Kind::System(it) => it.peer_addr(),
            Kind::World(own) => {
                let end = Self::end(own)?;
                let wire = lock(&end.wire);
                Ok(wire.addresses[end.end ^ other].into())
            }
        }
    }

    fn end(own: &Mutex<Own>) -> io::Result<Arc<End>> {
        lock(own).end.clone().ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    pub fn set_nonblocking(&self, value: bool) -> io::Result<()> {
        self.option(|it| it.set_nonblocking(value), |_| {})
    }

    pub fn set_tcp_nodelay(&self, value: bool) -> io::Result<()> {
        self.option(|it| it.set_tcp_nodelay(value), |_| {})
    }

    pub fn set_tcp_keepalive(&self, value: &TcpKeepalive) -> io::Result<()> {
        self.option(|it| it.set_tcp_keepalive(value), |_| {})
    }

    pub fn set_tcp_user_timeout(&self, value: Option<Duration>) -> io::Result<()> {
        self.option(|it| it.set_tcp_user_timeout(value), |_| {})
    }

    pub fn set_send_buffer_size(&self, value: usize) -> io::Result<()> {
        self.option(|it| it.set_send_buffer_size(value), |_| {})
    }

    pub fn set_recv_buffer_size(&self, value: usize) -> io::Result<()> {
        self.option(|it| it.set_recv_buffer_size(value), |_| {})
    }

    pub fn set_read_timeout(&self, value: Option<Duration>) -> io::Result<()> {
        self.option(|it| it.set_read_timeout(value), |own| own.read_timeout = value)
    }

    pub fn set_write_timeout(&self, value: Option<Duration>) -> io::Result<()> {
        self.option(|it| it.set_write_timeout(value), |own| own.write_timeout = value)
    }

    fn option(
        &self,
        system: impl FnOnce(&socket2::Socket) -> io::Result<()>,
        world: impl FnOnce(&mut Own),
    ) -> io::Result<()> {
        match &self.0 {
            Kind::System(it) => system(it),
            Kind::World(own) => {
                world(&mut lock(own));
                Ok(())
            }
        }
    }

    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let own = match &self.0 {
            Kind::System(it) => return it.shutdown(how),
            Kind::World(own) => own,
        };
        lock(own).is_shut |= how == Shutdown::Both;
        let end = Self::end(own)?;
        let now = end.me.now();
        lock(&end.wire).finish(end.end, now);
        end.me.wake(Arc::as_ptr(&end.wire) as usize);
        Ok(())
    }

    pub fn send_with_flags(&self, bytes: &[u8], flags: i32) -> io::Result<usize> {
        let own = match &self.0 {
            Kind::System(it) => return it.send_with_flags(bytes, flags),
            Kind::World(own) => own,
        };
        let end = Self::end(own)?;
        let me = me().ok_or(io::ErrorKind::NotConnected)?;
        me.call("send");
        let now = me.now();
        let timeout = match flags & AT_ONCE {
            0 => lock(own).write_timeout,
            _ => Some(Duration::ZERO),
        };
        let until = timeout.map(|timeout| now + timeout);
        loop {
            let now = me.now();
            let mut wire = lock(&end.wire);
            let failure = wire.failure(end.end, now);
            let is_told = failure.is_some() && std::mem::replace(&mut wire.told[end.end], true);
            if let Some(error) = failure.filter(|_| !is_told) {
                return Err(error);
            }
            if is_told || wire.ways[end.end].end.is_some() || wire.is_closed[1 - end.end] {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let room = BUFFER - wire.ways[end.end].bytes;
            if room > 0 {
                let count = room.min(bytes.len());
                let arrival = wire.arrival(end.end, now);
                let way = &mut wire.ways[end.end];
                way.pieces.push_back((arrival, bytes[..count].to_vec()));
                way.bytes += count;
                drop(wire);
                me.wake(Arc::as_ptr(&end.wire) as usize);
                return Ok(count);
            }
            let dead = wire.dead[end.end];
            drop(wire);
            if until.is_some_and(|until| now >= until) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            me.wait(Arc::as_ptr(&end.wire) as usize, earlier(until, dead));
        }
    }

    pub fn recv_with_flags(&self, bytes: &mut [MaybeUninit<u8>], flags: i32) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => it.recv_with_flags(bytes, flags),
            Kind::World(own) => receive(own, flags, &mut Sink::Raw(bytes)),
        }
    }

    pub fn peek(&self, bytes: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => it.peek(bytes),
            Kind::World(own) => receive(own, libc::MSG_PEEK, &mut Sink::Raw(bytes)),
        }
    }
}

/// Where received bytes go.
enum Sink<'a> {
    Raw(&'a mut [MaybeUninit<u8>]),
    Bytes(&'a mut [u8]),
}

impl Sink<'_> {
    /// Takes as many bytes as it has place for, and returns their number.
    fn take(&mut self, piece: &[u8]) -> usize {
        match self {
            Self::Raw(place) => {
                place.iter_mut().zip(piece).map(|(to, from)| to.write(*from)).count()
            }
            Self::Bytes(place) => place.iter_mut().zip(piece).map(|(to, from)| *to = *from).count(),
        }
    }
}

/// Receives what has arrived.
fn receive(own: &Mutex<Own>, flags: i32, sink: &mut Sink<'_>) -> io::Result<usize> {
    let end = Socket::end(own)?;
    let me = me().ok_or(io::ErrorKind::NotConnected)?;
    me.call("receive");
    let timeout = match flags & AT_ONCE {
        0 => lock(own).read_timeout,
        _ => Some(Duration::ZERO),
    };
    let until = timeout.map(|timeout| me.now() + timeout);
    loop {
        let now = me.now();
        if lock(own).is_shut {
            return Ok(0);
        }
        let mut wire = lock(&end.wire);
        let held = wire.held;
        let dead = wire.dead[end.end];
        let failure = wire.failure(end.end, now);
        let is_told = failure.is_some() && std::mem::replace(&mut wire.told[end.end], true);
        let way = &mut wire.ways[1 - end.end];
        let next = way.pieces.front().map(|(at, _)| (*at).max(held));
        if failure.is_none() && next.is_some_and(|at| at <= now) {
            let mut count = 0;
            if let Some((_, piece)) = way.pieces.front_mut() {
                count = sink.take(piece);
                if flags & libc::MSG_PEEK == 0 {
                    piece.drain(..count);
                    way.bytes -= count;
                }
            }
            if way.pieces.front().is_some_and(|(_, piece)| piece.is_empty()) {
                way.pieces.pop_front();
            }
            drop(wire);
            me.wake(Arc::as_ptr(&end.wire) as usize);
            return Ok(count);
        }
        let over = way.end.map(|at| at.max(held)).filter(|_| way.pieces.is_empty());
        drop(wire);
        if let Some(error) = failure {
            return if is_told { Ok(0) } else { Err(error) };
        }
        if over.is_some_and(|at| at <= now) {
            return Ok(0);
        }
        if until.is_some_and(|until| now >= until) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let until = earlier(earlier(until, next), earlier(over, dead));
        me.wait(Arc::as_ptr(&end.wire) as usize, until);
    }
}

fn earlier(a: Option<Duration>, b: Option<Duration>) -> Option<Duration> {
    a.into_iter().chain(b).min()
}

impl Read for &Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => (&mut &*it).read(bytes),
            Kind::World(own) => receive(own, 0, &mut Sink::Bytes(bytes)),
        }
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.0 {
            Kind::System(it) => (&mut &*it).write(bytes),
            Kind::World(_) => self.send_with_flags(bytes, 0),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let now = self.me.now();
        lock(&self.wire).close(self.end, now);
        self.me.wake(Arc::as_ptr(&self.wire) as usize);
    }
}
