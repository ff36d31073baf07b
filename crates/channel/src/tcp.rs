//! TCP between two processes of one machine.
//!
//! Only loopback addresses are accepted: the bytes are neither encrypted nor authenticated, which
//! the protocols above assume of their channel. Other addresses fail with [`Error::NotLoopback`];
//! use [`tls`](crate::tls) for them.
//!
//! Keep-alive is on: it detects a peer whose machine is gone, and keeps routers from dropping a
//! connection that is idle while a party computes.
//!
//! A write never waits long for the peer to read, up to [`QUEUE_BOUND`](crate::QUEUE_BOUND) queued
//! bytes. The calling thread first hands as many bytes to the operating system as it takes, and
//! waits briefly for a peer that reads: such messages go out without a copy and a thread switch. A
//! writer thread sends the rest, so that both parties may send large messages at the same time, and
//! compute while a slow link carries them. The total of all waits is bounded by the time that the
//! written bytes would take at 1 GB/s, plus 20 ms, except for the last wait; a wait in which the
//! peer reads nothing counts sixteen times.

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

/// Waits for one peer on `address` and returns the channel to it.
///
/// `timeout` bounds the wait for the peer and becomes the channel's timeout
/// ([`Channel::set_timeout`]).
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name resolves to, is not on the
/// loopback interface; [`Error::TimedOut`] if no peer connects; [`Error::Io`] if the address is not
/// usable.
pub fn listen(address: impl ToSocketAddrs, timeout: Duration) -> Result<Channel> {
    let stream = Listener::bind(address)?.accept(timeout)?;
    Ok(Channel::with_timeout(stream, Some(timeout)))
}

/// Connects to a listening peer, which may start later, and returns the channel to it.
///
/// `timeout` bounds the wait for the listener and becomes the channel's timeout
/// ([`Channel::set_timeout`]).
///
/// # Errors
/// [`Error::NotLoopback`] if the address, or any address that a name resolves to, is not on the
/// loopback interface; [`Error::TimedOut`] if no peer listens; [`Error::Io`] if the address is not
/// usable.
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
    /// As [`listen`], except for the timeout.
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
        // `accept` has no portable timeout, so it polls.
        listener.set_nonblocking(true).map_err(Error::Io)?;
        Ok(Self(listener))
    }

    /// The address listened on.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr().map_err(Error::Io)
    }

    /// Waits for a peer, at most for `timeout`.
    ///
    /// # Errors
    /// [`Error::TimedOut`] if no peer connects.
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

    /// A pending connection, and its origin; `patience` as in [`Stream::new`].
    pub(crate) fn poll(&self, patience: Duration) -> Result<Option<(Stream, SocketAddr)>> {
        match self.0.accept() {
            // A connection that cannot be set up has already been closed by the peer.
            Ok((stream, from)) => Ok(Stream::new(stream, patience)
                .ok()
                .map(|stream| (stream, from))),
            Err(error) if is_passing(&error) => Ok(None),
            Err(error) => Err(Error::Io(error)),
        }
    }

    /// The address for error messages.
    pub(crate) fn address(&self) -> String {
        self.0
            .local_addr()
            .map_or_else(|_| "the address".to_owned(), |at| at.to_string())
    }
}

/// Whether an error of `accept` does not affect the next one: on Linux `accept` also reports errors
/// of the new connection.
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

/// The addresses that `address` resolves to: at least one.
fn resolve(address: impl ToSocketAddrs) -> Result<Vec<SocketAddr>> {
    let addresses: Vec<_> = address.to_socket_addrs().map_err(Error::Io)?.collect();
    if addresses.is_empty() {
        return Err(Error::Io(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the name does not resolve to any address",
        )));
    }
    Ok(addresses)
}

/// Rejects `addresses` if any of them is not on the loopback interface.
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
    // The operating system completes the connection before it is accepted.
    let left = Stream::connect(listener.local_addr()?, timeout)?;
    Ok((left, listener.accept(timeout)?))
}
