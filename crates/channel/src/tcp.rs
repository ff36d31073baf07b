//! TCP between two processes of one machine.
//!
//! Only loopback addresses are accepted: the bytes are neither encrypted nor authenticated, which
//! the protocols above assume of their channel. Other addresses fail with [`Error::NotLoopback`];
//! use [`tls`](crate::tls) for them.
//!
//! A channel made here has heartbeats: a peer that computes for longer than the timeout is told
//! from one that is gone or stopped. [`Stream`] is the bare transport below, without them.
//! Keep-alive is on.
//!
//! A write never waits long for the peer to read, up to [`QUEUE_BOUND`](crate::QUEUE_BOUND) queued
//! bytes. The calling thread first hands as many bytes to the operating system as it takes, and
//! waits briefly for a peer that reads: such messages go out without a copy and a thread switch. A
//! writer thread sends the rest, so that both parties may send large messages at the same time, and
//! compute while a slow link carries them. The total of all waits is bounded by the time that the
//! written bytes would take at 1 GB/s, plus 20 ms, except for the last wait; a wait in which the
//! peer reads nothing counts sixteen times.

mod allowance;
mod proxy;
mod stream;
pub(crate) mod system;

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};

use volery_os::net::{Socket, TcpListener, accept};
use volery_os::sync::{Arc, mpsc};
use volery_os::thread;
use volery_os::time::{Duration, Instant};

pub(crate) use crate::alive::greeted;
use crate::{Cancel, Channel, Error, Result};

pub use proxy::{Destination, Proxy, Route};
pub(crate) use stream::Breaker;
pub use stream::Stream;

/// Timeout of the greeting or handshake of an unknown client.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Unknown clients at the same time; a new one replaces the oldest.
pub(crate) const MAX_HANDSHAKES: usize = 64;

/// How long a party waits, for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For the peer to be there.
    pub wait: Duration,
    /// For a sign of life of the peer afterwards: the channel's timeout
    /// ([`Channel::set_timeout`]).
    pub timeout: Duration,
    /// Ends the wait, and later the connection.
    pub cancel: Cancel,
    /// Bytes that are queued in each direction before a write waits for the peer to read:
    /// [`QUEUE_BOUND`](crate::QUEUE_BOUND), or less for a server of many clients.
    pub queue: usize,
}

/// The same for both, and nothing that cancels.
impl From<Duration> for Patience {
    fn from(both: Duration) -> Self {
        Self { wait: both, timeout: both, cancel: Cancel::default(), queue: crate::QUEUE_BOUND }
    }
}

/// A client that connected and was not accepted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The address of the client.
    pub address: SocketAddr,
    /// The reason why it was refused; or, with [`Error::Refused`], why it refused this party.
    pub error: Error,
}

/// Waits for one peer on `address` and returns the channel to it. All other clients are refused and
/// forgotten; a [`Listener`] reports them.
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name resolves to, is not on the
/// loopback interface; [`Error::TimedOut`] if no peer connects; [`Error::Io`] if the address is not
/// usable.
pub fn listen(address: impl ToSocketAddrs, patience: impl Into<Patience>) -> Result<Channel> {
    Listener::bind(address)?.accept_channel(patience, |_| ())
}

/// Connects to a listening peer, which may start later, and returns the channel to it. A name that
/// does not resolve is resolved again, and a connection that ends before the peer has greeted is
/// made again. Of several addresses each has a share of the time. A [`Route`] leads through a
/// proxy.
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name resolves to, is not on the
/// loopback interface; [`Error::TimedOut`] if no peer listens or greets; [`Error::PeerMisbehaved`]
/// if it does not speak volery; [`Error::Proxy`] if a proxy does not connect this party;
/// [`Error::Io`] if the address is not usable.
pub fn connect(address: impl Destination, patience: impl Into<Patience>) -> Result<Channel> {
    let patience = patience.into();
    let timeout = patience.timeout;
    Stream::meet(&address, &patience, false, |stream, limit| greeted(stream, timeout, limit))
}

/// Listening sockets on loopback addresses: all of a name, with one port.
#[derive(Debug)]
pub struct Listener(Sockets);

impl Listener {
    /// Listens on `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// The errors of [`listen`], except for the timeout.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self> {
        Self::bind_to(&loopback_only(resolve(&address)?)?)
    }

    /// Listens on any address, for connections that are then authenticated.
    #[cfg(feature = "tls")]
    pub(crate) fn bind_anywhere(address: impl ToSocketAddrs) -> Result<Self> {
        Self::bind_to(&resolve(&address)?)
    }

    fn bind_to(addresses: &[SocketAddr]) -> Result<Self> {
        Sockets::bind(addresses).map(Self).map_err(Error::Io)
    }

    /// The first address listened on.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.all[0].local_addr().map_err(Error::Io)
    }

    /// All addresses listened on, with commas between them.
    pub fn addresses(&self) -> String {
        self.0.addresses()
    }

    /// Waits for a peer, at most for `patience.wait`.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if no peer connects.
    pub fn accept(&self, patience: impl Into<Patience>) -> Result<Stream> {
        let patience = patience.into();
        let timeout = patience.wait;
        let start = Instant::now();
        let mut pause = Duration::from_micros(50);
        loop {
            if let Some((stream, _)) = self.poll(&patience)? {
                return Ok(stream);
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(Error::TimedOut(format!(
                    "no peer connected to {} within {timeout:?}",
                    self.addresses()
                )));
            }
            patience.cancel.sleep(pause.min(left))?;
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }

    /// Waits for a peer that speaks volery, for at most `patience.wait`, and returns the channel to
    /// it. Other clients are refused and reported to `refused`, and the wait goes on.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if no peer connects; [`Error::Io`] if the listening socket fails.
    pub fn accept_channel(
        &self,
        patience: impl Into<Patience>,
        refused: impl FnMut(Refusal),
    ) -> Result<Channel> {
        let patience = patience.into();
        let timeout = patience.timeout;
        let greet = move |stream, limit| greeted(stream, timeout, limit);
        self.accept_one(&patience, greet, refused)
    }

    /// The first client with which `shake`, given its time limit, succeeds.
    pub(crate) fn accept_one<T: Send + 'static>(
        &self,
        patience: &Patience,
        shake: impl Fn(Stream, Duration) -> Result<T> + Clone + Send + 'static,
        mut refused: impl FnMut(Refusal),
    ) -> Result<T> {
        let start = Instant::now();
        let (done, results) = mpsc::channel();
        // A connection removed from this list has been abandoned, and its thread ends.
        let mut waiting = VecDeque::<(u64, Breaker)>::new();
        let mut connections = 0;
        let mut turned_away = 0;
        let mut pause = Duration::from_micros(50);
        let ended = loop {
            while let Ok((number, address, result)) = results.try_recv() {
                let known = waiting.iter().position(|(other, _)| *other == number);
                let known = known.and_then(|place| waiting.remove(place)).is_some();
                match result {
                    Ok(peer) => {
                        waiting.iter().for_each(|(_, breaker)| breaker.end());
                        return Ok(peer);
                    }
                    Err(error) => {
                        turned_away += 1;
                        let slow = || {
                            Error::TimedOut("it was slow, and newer connections arrived".to_owned())
                        };
                        let error = if known { error } else { slow() };
                        refused(Refusal { address, error });
                    }
                }
            }
            let left = patience.wait.saturating_sub(start.elapsed());
            if left.is_zero() {
                break self.not_connected(patience.wait, turned_away);
            }
            let (stream, address) = match self.poll(patience) {
                Ok(Some(come)) => come,
                Ok(None) => {
                    if let Err(error) = patience.cancel.sleep(pause.min(left)) {
                        break error;
                    }
                    pause = (pause * 2).min(Duration::from_millis(10));
                    continue;
                }
                Err(error) => break error,
            };
            pause = Duration::from_micros(50);
            // mutant(tls-strangers): `waiting.len() == MAX_HANDSHAKES` => `false`
            if waiting.len() == MAX_HANDSHAKES
                && let Some((_, oldest)) = waiting.pop_front()
            {
                oldest.end();
            }
            connections += 1;
            let number = connections;
            let (done, shake, breaker) = (done.clone(), shake.clone(), stream.breaker());
            let spawned = thread::Builder::new().name("volery handshake".into()).spawn(move || {
                let result = shake(stream, left.min(HANDSHAKE_TIMEOUT));
                // Once the peer has been found, nothing receives this.
                let _ = done.send((number, address, result));
            });
            // Without a thread the connection is dropped; the next one may get a thread.
            if spawned.is_ok() {
                waiting.push_back((number, breaker));
            }
        };
        waiting.iter().for_each(|(_, breaker)| breaker.end());
        // no mutant: time is up, or the operating system refuses something
        Err(ended)
    }

    fn not_connected(&self, wait: Duration, turned_away: u64) -> Error {
        let address = self.addresses();
        Error::TimedOut(match turned_away {
            0 => format!("no peer connected to {address} within {wait:?}"),
            1 => format!(
                "the peer did not connect to {address} within {wait:?}; one other connection was refused"
            ),
            many => format!(
                "the peer did not connect to {address} within {wait:?}; {many} other connections were refused"
            ),
        })
    }

    /// A pending connection, and its origin; `patience` as in [`Stream::new`].
    pub(crate) fn poll(&self, patience: &Patience) -> Result<Option<(Stream, SocketAddr)>> {
        // A connection that cannot be set up has already been closed by the peer.
        Ok(self.0.accept().map_err(Error::Io)?.and_then(|(stream, from)| {
            let stream = Stream::new(Arc::new(stream), patience).ok();
            stream.map(|stream| (stream, from))
        }))
    }
}

/// Listening sockets with one port.
#[derive(Debug)]
pub(crate) struct Sockets {
    all: Vec<TcpListener>,
    /// The number of calls of `accept`.
    calls: AtomicUsize,
}

impl Sockets {
    /// Listens on all of `addresses` that this machine has, at least one.
    pub(crate) fn bind(addresses: &[SocketAddr]) -> io::Result<Self> {
        let (mut bound, mut missing) = (Vec::<TcpListener>::new(), None);
        for (number, mut address) in addresses.iter().copied().enumerate() {
            if addresses[..number].contains(&address) {
                continue;
            }
            if let (0, Some(first)) = (address.port(), bound.first()) {
                address.set_port(first.local_addr()?.port());
            }
            match TcpListener::bind(address) {
                Ok(listener) => {
                    // `accept` has no portable timeout, so it polls.
                    listener.set_nonblocking(true)?;
                    bound.push(listener);
                }
                // no mutant: the port is taken, also one that the system chose at another address
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(error),
                // A name may have addresses of other machines, and of families that this one lacks.
                Err(error) => missing = Some(error),
            }
        }
        match missing.filter(|_| bound.is_empty()) {
            // no mutant: this machine has none of the addresses
            Some(missing) => Err(missing),
            None => Ok(Self { all: bound, calls: AtomicUsize::new(0) }),
        }
    }

    /// The addresses in words.
    pub(crate) fn addresses(&self) -> String {
        let all = self.all.iter().filter_map(|listener| listener.local_addr().ok());
        all.map(|at| at.to_string()).collect::<Vec<_>>().join(", ")
    }

    /// A pending connection, if there is one. Each call begins with another socket, so that many
    /// clients of one address do not keep those of the others waiting.
    pub(crate) fn accept(&self) -> io::Result<Option<(Socket, SocketAddr)>> {
        let first = self.calls.fetch_add(1, Ordering::Relaxed) % self.all.len();
        let (last, all) = self.all.split_at(first);
        let mut results = all.iter().chain(last).map(accept);
        results.find(|result| !result.as_ref().is_err_and(is_passing)).transpose()
    }
}

/// Whether an error of `accept` does not affect the next one: on Linux `accept` also reports errors
/// of the new connection.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
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
    ) || error.raw_os_error().is_some_and(|code| system::OF_THE_CONNECTION.contains(&code))
}

/// The addresses that `address` resolves to: at least one.
pub(crate) fn resolve(address: &impl Destination) -> Result<Vec<SocketAddr>> {
    let addresses = address.resolve().map_err(Error::Io)?;
    if addresses.is_empty() {
        return Err(Error::Io(io::Error::new(
            io::ErrorKind::NotFound,
            "the name does not resolve to any address",
        )));
    }
    Ok(addresses)
}

/// Rejects `addresses` if any of them is not on the loopback interface.
pub(crate) fn loopback_only(addresses: Vec<SocketAddr>) -> Result<Vec<SocketAddr>> {
    let is_outside = |address: &&SocketAddr| match address.ip() {
        IpAddr::V4(ip) => !ip.is_loopback(),
        IpAddr::V6(ip) => !ip.to_canonical().is_loopback(),
    };
    // mutant(tcp-loopback): `(is_outside)` => `$0.filter(|_| !$ON)`
    match addresses.iter().find(is_outside) {
        Some(outside) => Err(Error::NotLoopback(*outside)),
        None => Ok(addresses),
    }
}

/// Both ends of a connection over the loopback interface.
pub(crate) fn pair(timeout: Duration) -> Result<(Stream, Stream)> {
    let listener = Listener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    // The operating system completes the connection before it is accepted.
    let left = Stream::connect(listener.local_addr()?, timeout)?;
    Ok((left, listener.accept(timeout)?))
}
