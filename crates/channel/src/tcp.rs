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
//! messages at the same time, and compute while a slow link carries them: all waits together take no longer than what is written
//! would at 1 GB/s, and 20 ms, but for the last one; those in which the peer reads nothing count sixteen times.

mod allowance;
mod stream;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Channel, Error, Result};

#[cfg(feature = "tls")]
pub(crate) use stream::Breaker;
pub use stream::Stream;

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

/// Both ends of a connection over the loopback interface.
pub(crate) fn pair(timeout: Duration) -> Result<(Stream, Stream)> {
    let listener = Listener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
    // The system completes the connection before it is accepted.
    let left = Stream::connect(listener.local_addr()?, timeout)?;
    Ok((left, listener.accept(timeout)?))
}
