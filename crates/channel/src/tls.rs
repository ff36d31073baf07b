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
//!   [`Error::Disconnected`](crate::Error::Disconnected), as one that the peer closed.
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

pub(crate) mod certificate;
pub(crate) mod fingerprint;
mod identity;
mod pin;
pub(crate) mod session;

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::Duration;

pub use fingerprint::{BadFingerprint, Fingerprint};
pub use identity::Identity;
pub use pin::{Follow, KnownIdentities, Peer, ShownIdentity};
pub use session::{Tls, initiate, respond};

use crate::tcp::{self, Stream};
pub use crate::tcp::{Patience, Refusal};
use crate::{Channel, Result, framed};

/// Connects to `peer`, which may start to listen later, and returns the channel to it. A connection
/// that ends before anything came is made again.
///
/// `patience` is a [`Duration`] or has two of them: the wait for the listener,
/// and the timeout of the handshake and then of the channel ([`Channel::set_timeout`]).
///
/// # Errors
/// The errors of [`initiate`]; [`Error::TimedOut`](crate::Error::TimedOut) if no peer listens;
/// [`Error::Proxy`](crate::Error::Proxy) if a proxy does not connect this party;
/// [`Error::Io`](crate::Error::Io) if the address is not usable.
pub fn connect(
    address: impl tcp::Destination,
    identity: &Identity,
    peer: impl Into<Peer>,
    patience: impl Into<Patience>,
) -> Result<Channel> {
    let (peer, patience) = (peer.into(), patience.into());
    session::check(identity, &peer)?;
    let tls = Stream::meet(&address, &patience, true, |stream, limit| {
        initiate(stream, identity, peer.clone(), limit)
    })?;
    channel(tls, patience.timeout)
}

/// Waits for `peer` on `address` and returns the channel to it. All other clients are refused and
/// forgotten; a [`Listener`] reports them.
///
/// # Errors
/// The errors of [`Listener::bind`] and [`Listener::accept`].
pub fn listen(
    address: impl ToSocketAddrs,
    identity: &Identity,
    peer: impl Into<Peer>,
    patience: impl Into<Patience>,
) -> Result<Channel> {
    Listener::bind(address)?.accept(identity, peer, patience, |_| ())
}

pub(crate) fn channel(tls: Tls<Stream>, timeout: Duration) -> Result<Channel> {
    let (description, shown) = (tls.describe().to_owned(), tls.peer());
    Ok(framed(tls, timeout)?.described(description).shown(shown))
}

/// A listening socket on any address.
#[derive(Debug)]
pub struct Listener(tcp::Listener);

impl Listener {
    /// Listens on `address`; port 0 lets the system choose one.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the address is not usable.
    pub fn bind(address: impl ToSocketAddrs) -> Result<Self> {
        tcp::Listener::bind_anywhere(address).map(Self)
    }

    /// The first address listened on.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.0.local_addr()
    }

    /// All addresses listened on, with commas between them.
    pub fn addresses(&self) -> String {
        self.0.addresses()
    }

    /// Waits for `peer` for at most `patience.wait`. Other clients are refused and reported to
    /// `refused`, and the wait goes on: an unknown client cannot end it, and a slow one is dropped
    /// for newer ones. (A flood of connections faster than the peer's handshake keeps the peer out:
    /// a firewall has to prevent that.)
    ///
    /// # Errors
    /// [`Error::Identity`](crate::Error::Identity) if `identity` is not valid now, or `peer` is its
    /// own fingerprint; [`Error::TimedOut`](crate::Error::TimedOut) if the peer does not come;
    /// [`Error::Io`](crate::Error::Io) if the listening socket fails.
    pub fn accept(
        &self,
        identity: &Identity,
        peer: impl Into<Peer>,
        patience: impl Into<Patience>,
        refused: impl FnMut(Refusal),
    ) -> Result<Channel> {
        let (peer, patience) = (peer.into(), patience.into());
        session::check(identity, &peer)?;
        let identity = identity.clone();
        let shake = move |stream, limit| respond(stream, &identity, &peer, limit);
        let tls = self.0.accept_one(&patience, shake, refused)?;
        channel(tls, patience.timeout)
    }
}
