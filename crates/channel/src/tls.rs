//! Authenticated and encrypted connections: TLS 1.3, with the certificates of both parties pinned.
//!
//! Each party has an [`Identity`] and knows the [`Fingerprint`] of the other's; there is no
//! certificate authority, and checks cannot be turned off. The protocols above assume such a
//! channel, so it is required off the loopback interface.
//!
//! ```text
//! connecting party                              listening party
//!   TLS 1.3 ClientHello (X25519MLKEM768)  ---->
//!                                         <----  ServerHello .. its certificate: the pinned one
//!   its certificate, the same             ---->
//!                                         <----  welcome (1 byte)
//! ```
//!
//! * [`connect`] and [`listen`] return a [`Channel`] over TCP. A [`Listener`] goes on listening
//!   when a client that is not the peer connects.
//! * [`initiate`] and [`respond`] secure any other [`Transport`](crate::Transport).
//! * No part of TLS is optional: no older version, no session resumption, no early data, no
//!   renegotiation of checked parameters. rustls checks the certificates; the pin replaces only the
//!   authorities.
//! * The end of a connection is authenticated too: a connection that is cut fails with
//!   [`Error::Disconnected`], as one that the peer closed.
//!
//! An eavesdropper sees addresses, times, and the number of bytes in each direction. A client that
//! connects to a listener is shown its certificate, with the name in it; the connecting party shows
//! its own to the pinned peer only.
//!
//! # Examples
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use volery_channel::tls::{self, Identity};
//!
//! let year = SystemTime::now()..SystemTime::now() + Duration::from_secs(365 * 86_400);
//! let left = Identity::generate("left", year.clone())?;
//! let right = Identity::generate("right", year)?;
//! // Each party tells the other its fingerprint over an authentic channel.
//! let (left_print, right_print) = (left.fingerprint(), right.fingerprint());
//!
//! let patience = Duration::from_secs(10);
//! let listener = tls::Listener::bind("127.0.0.1:0")?;
//! let address = listener.local_addr()?;
//! let connecting =
//!     std::thread::spawn(move || tls::connect(address, &right, left_print, patience));
//! let mut here = listener.accept(&left, right_print, patience, |_| ())?;
//! let mut there = connecting.join().expect("the connecting thread does not panic")?;
//!
//! there.send(b"hello")?;
//! there.flush()?;
//! let mut word = [0; 5];
//! here.recv(&mut word)?;
//! assert_eq!(&word, b"hello");
//! # Ok::<_, volery_channel::Error>(())
//! ```

mod certificate;
mod fingerprint;
mod identity;
mod pin;
mod session;

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

pub use fingerprint::{BadFingerprint, Fingerprint};
pub use identity::Identity;
pub use session::{Tls, initiate, respond};

use crate::tcp::{self, Breaker, Stream};
use crate::{Channel, Error, Result};

/// Timeout of the handshake with an unknown client.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Handshakes at the same time; a new one replaces the oldest.
const MAX_HANDSHAKES: usize = 64;

/// Connects to `peer`, which may start to listen later, and returns the channel to it.
///
/// `timeout` bounds the wait for the listener and then the handshake, and becomes the channel's
/// timeout ([`Channel::set_timeout`]).
///
/// # Errors
/// Those of [`initiate`]; [`Error::TimedOut`] if no peer listens; [`Error::Io`] if the address is
/// not usable.
pub fn connect(
    address: impl ToSocketAddrs,
    identity: &Identity,
    peer: Fingerprint,
    timeout: Duration,
) -> Result<Channel> {
    session::check(identity, peer)?;
    let stream = Stream::connect_anywhere(address, timeout)?;
    let tls = initiate(stream, identity, peer, timeout)?;
    Ok(channel(tls, timeout))
}

/// Waits for `peer` on `address` and returns the channel to it. All other clients are refused and
/// forgotten; a [`Listener`] reports them.
///
/// # Errors
/// As [`Listener::bind`] and [`Listener::accept`].
pub fn listen(
    address: impl ToSocketAddrs,
    identity: &Identity,
    peer: Fingerprint,
    timeout: Duration,
) -> Result<Channel> {
    Listener::bind(address)?.accept(identity, peer, timeout, |_| ())
}

fn channel(tls: Tls<Stream>, timeout: Duration) -> Channel {
    let description = tls.describe().to_owned();
    Channel::with_timeout(tls, Some(timeout)).described(description)
}

/// A listening socket on any address.
#[derive(Debug)]
pub struct Listener(tcp::Listener);

/// A client that connected and was not accepted.
#[derive(Debug)]
#[non_exhaustive]
pub struct Refusal {
    /// The address of the client.
    pub address: SocketAddr,
    /// The reason why it was refused; or, with [`Error::Refused`], why it refused this party.
    pub error: Error,
}

impl Listener {
    /// Listens on `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// [`Error::Io`] if the address is not usable.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self> {
        tcp::Listener::bind_anywhere(address).map(Self)
    }

    /// The address listened on.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// Waits for `peer` for at most `timeout`, which becomes the channel's timeout
    /// ([`Channel::set_timeout`]). Other clients are refused and reported to `refused`, and the
    /// wait goes on: an unknown client cannot end it, and a slow one is dropped for newer ones. (A
    /// flood of connections faster than the peer's handshake keeps the peer out: a firewall has to
    /// prevent that.)
    ///
    /// # Errors
    /// [`Error::Identity`] if `identity` is not valid now, or `peer` is its own fingerprint;
    /// [`Error::TimedOut`] if the peer does not come; [`Error::Io`] if the listening socket fails.
    pub fn accept(
        &self,
        identity: &Identity,
        peer: Fingerprint,
        timeout: Duration,
        mut refused: impl FnMut(Refusal),
    ) -> Result<Channel> {
        session::check(identity, peer)?;
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
                    Ok(tls) => {
                        waiting.iter().for_each(|(_, breaker)| breaker.end());
                        return Ok(channel(tls, timeout));
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
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                break self.not_connected(timeout, turned_away);
            }
            let (stream, address) = match self.0.poll(timeout) {
                Ok(Some(come)) => come,
                Ok(None) => {
                    thread::sleep(pause.min(left));
                    pause = (pause * 2).min(Duration::from_millis(10));
                    continue;
                }
                Err(error) => break error,
            };
            pause = Duration::from_micros(50);
            if waiting.len() == MAX_HANDSHAKES
                && let Some((_, oldest)) = waiting.pop_front()
            {
                oldest.end();
            }
            connections += 1;
            let number = connections;
            let (done, identity, breaker) = (done.clone(), identity.clone(), stream.breaker());
            let spawned = thread::Builder::new()
                .name("volery handshake".into())
                .spawn(move || {
                    let result = respond(stream, &identity, peer, left.min(HANDSHAKE_TIMEOUT));
                    // Once the peer has been found, nothing receives this.
                    let _ = done.send((number, address, result));
                });
            // Without a thread the connection is dropped; the next one may get a thread.
            if spawned.is_ok() {
                waiting.push_back((number, breaker));
            }
        };
        waiting.iter().for_each(|(_, breaker)| breaker.end());
        Err(ended)
    }

    fn not_connected(&self, timeout: Duration, turned_away: u64) -> Error {
        let address = self.0.address();
        Error::TimedOut(match turned_away {
            0 => format!("no peer connected to {address} within {timeout:?}"),
            many => format!(
                "the peer did not connect to {address} within {timeout:?}; {many} other connections were refused"
            ),
        })
    }
}
