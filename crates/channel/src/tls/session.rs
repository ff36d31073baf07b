//! TLS over any transport.

use std::io::{self, Read as _, Write as _};
use std::ops::Range;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::sign::SingleCertAndKey;
use rustls::time_provider::TimeProvider;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection, OtherError,
    ServerConfig, ServerConnection,
};
use volery_os::sync::{Arc, Mutex};
use volery_os::thread;
use volery_os::time::{Duration, Instant, wall_clock};

use super::pin::{AcceptedPeers, CertificateRejection, KnownIdentities, Peer, Pin, ShownIdentity};
use super::{Fingerprint, Identity, certificate};
use crate::pipe::{deadline_after, left, lock};
use crate::{Error, Result, Transport};

/// The application protocol (ALPN), which detects other TLS programs early.
const PROTOCOL: &[u8] = b"volery/1";

/// The first byte from the side that was connected to. Without it the client would not know whether
/// it was accepted: in TLS 1.3 the client is done before the server has seen its certificate.
const WELCOME: u8 = 0x57;

/// Bytes encrypted before they are handed on.
const PIECE: usize = 256 << 10;

/// Encrypted bytes read at a time.
const BUFFER: usize = 128 << 10;

/// How long closing may wait for the transport to take the last record.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// An authenticated and encrypted transport over the transport `T`, made by [`initiate`] or
/// [`respond`].
///
/// Dropping it sends the peer an authenticated end, and drops `T`.
pub struct Tls<T: Transport> {
    // Locks are taken in this order; no thread waits for the transport while it holds the
    // connection's lock.
    incoming: Mutex<Incoming>,
    outgoing: Mutex<Vec<u8>>,
    connection: Mutex<Connection>,
    suite: String,
    inner: T,
}

/// Encrypted bytes read and not yet decrypted.
struct Incoming {
    buffer: Vec<u8>,
    unread: Range<usize>,
}

/// Secures `transport` as the side that connected; the peer calls [`respond`]. Returns when both
/// sides have accepted each other. `peer` is a [`Fingerprint`](super::Fingerprint) or a [`Peer`].
///
/// # Errors
/// [`Error::Identity`] if `identity` is not valid now, or `peer` is its own fingerprint;
/// [`Error::Unauthenticated`] if the other side is not `peer`, or its identity is not valid now;
/// [`Error::Refused`] if it does not accept `identity`; [`Error::TimedOut`] if the handshake takes
/// longer than `timeout`; [`Error::PeerMisbehaved`] if it does not speak TLS 1.3 as volery does;
/// and if `transport` fails.
pub fn initiate<T: Transport>(
    transport: T,
    identity: &Identity,
    peer: impl Into<Peer>,
    timeout: Duration,
) -> Result<Tls<T>> {
    let peer = peer.into();
    check(identity, &peer)?;
    let provider = provider();
    let pin = Pin::new(AcceptedPeers::Peer(peer), Arc::clone(&provider));
    let mut config = ClientConfig::builder_with_details(provider, Arc::new(WallClock))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3")
        // rustls calls every custom check dangerous: `Pin` replaces the authorities, it omits
        // nothing.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pin))
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.pair())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_sni = false;
    let name = ServerName::try_from("volery").expect("the constant name is valid");
    let connection = ClientConnection::new(Arc::new(config), name)
        .map_err(|error| Error::Identity(error.to_string()))?;
    establish(transport, connection.into(), (identity, false), timeout)
}

/// Secures `transport` as the side that was connected to; the peer calls [`initiate`].
///
/// # Errors
/// The errors of [`initiate`].
pub fn respond<T: Transport>(
    transport: T,
    identity: &Identity,
    peer: impl Into<Peer>,
    timeout: Duration,
) -> Result<Tls<T>> {
    let peer = peer.into();
    check(identity, &peer)?;
    serve(transport, identity, AcceptedPeers::Peer(peer), timeout)
}

/// Secures `transport` like [`respond`], for a server of many clients: accepts any identity that
/// `known` knows, which [`Tls::peer`] then tells.
///
/// # Errors
/// The errors of [`initiate`].
pub(crate) fn respond_to<T: Transport>(
    transport: T,
    identity: &Identity,
    known: &KnownIdentities,
    timeout: Duration,
) -> Result<Tls<T>> {
    let now = wall_clock();
    identity.check(now)?;
    let accepted = AcceptedPeers::Known(Arc::clone(known));
    serve(transport, identity, accepted, timeout)
}

fn serve<T: Transport>(
    transport: T,
    identity: &Identity,
    accepted: AcceptedPeers,
    timeout: Duration,
) -> Result<Tls<T>> {
    let provider = provider();
    let is_service = matches!(accepted, AcceptedPeers::Known(_));
    let pin = Pin::new(accepted, Arc::clone(&provider));
    // mutant(tls-client-asks-none): `Arc::new(pin)` => `Arc::new(rustls::server::NoClientAuth)`
    let mut config = ServerConfig::builder_with_details(provider, Arc::new(WallClock))
        .with_protocol_versions(&[&TLS13])
        .expect("the provider has TLS 1.3")
        .with_client_cert_verifier(Arc::new(pin))
        .with_cert_resolver(Arc::new(SingleCertAndKey::from(identity.pair())));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let connection = ServerConnection::new(Arc::new(config))
        .map_err(|error| Error::Identity(error.to_string()))?;
    establish(transport, connection.into(), (identity, is_service), timeout)
}

/// Secures a connection from a browser, whose certificate is not asked for.
///
/// # Errors
/// If the browser does not accept the certificate, does not speak TLS 1.3, or takes longer than
/// `timeout`.
#[cfg(feature = "web")]
pub(crate) fn respond_to_browser<T: Transport>(
    transport: T,
    config: &Arc<ServerConfig>,
    timeout: Duration,
) -> Result<Tls<T>> {
    let connection = ServerConnection::new(Arc::clone(config))
        .map_err(|error| Error::Identity(error.to_string()))?;
    let tls = Tls::over(transport, connection.into());
    tls.complete(deadline_after(Some(timeout)))
        .map_err(|error| match error {
            // no mutant: sorts an error of rustls, or names one where it is made
            Error::PeerMisbehaved(_) | Error::Refused(_) => Error::PeerMisbehaved(
                "its TLS failed: pages come by https:// and connect by wss:// here, and the browser must accept the certificate",
            ),
            error => error,
        })?;
    Ok(tls)
}

/// Checks identity and pin before anything is sent. Pinning one's own fingerprint is a mistake: it
/// would match only a peer that has this party's private key.
pub(crate) fn check(identity: &Identity, peer: &Peer) -> Result<()> {
    // mutant(tls-own-identity): drop
    identity.check(wall_clock())?;
    // mutant(tls-own-fingerprint): false
    if peer.pinned().contains(&identity.organisation()) {
        return Err(Error::Identity(
            "the fingerprint pinned as the peer's is its own; pin the other party's".to_owned(),
        ));
    }
    Ok(())
}

/// Hybrid key exchange only: traffic stays secret when elliptic curves are broken, as long as
/// ML-KEM holds.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        kx_groups: vec![aws_lc_rs::kx_group::X25519MLKEM768],
        ..aws_lc_rs::default_provider()
    })
}

/// The time of day at which certificates must be valid.
#[derive(Debug)]
pub(crate) struct WallClock;

impl TimeProvider for WallClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(certificate::unix_time(wall_clock()))
    }
}

/// Performs the handshake and exchanges the welcome.
fn establish<T: Transport>(
    inner: T,
    connection: Connection,
    (identity, is_service): (&Identity, bool),
    timeout: Duration,
) -> Result<Tls<T>> {
    let mut tls = Tls::over(inner, connection);
    tls.shake_hands(timeout).map_err(|error| match error {
        // A TLS client that never asked for volery is a health probe of a service.
        // no mutant: sorts an error of rustls, or names one where it is made
        Error::Refused(_)
        | Error::Unauthenticated(_)
        | Error::PeerMisbehaved(FOREIGN_PARAMETERS | ALERT)
            if is_service && lock(&tls.connection).alpn_protocol() != Some(PROTOCOL) =>
        {
            Error::Disconnected
        }
        Error::TimedOut(_) => Error::TimedOut(format!(
            "the peer did not complete the TLS handshake within {timeout:?}"
        )),
        // The peer's reason, with the remedy.
        Error::Refused(why) => Error::Refused(format!(
            "{why}; it must pin the fingerprint {}",
            identity.organisation()
        )),
        error => error,
    })?;
    tls.suite = lock(&tls.connection).describe();
    Ok(tls)
}

trait Describe {
    fn describe(&self) -> String;
}

impl Describe for Connection {
    /// Cipher suite and key exchange, for reports.
    fn describe(&self) -> String {
        let suite = self.negotiated_cipher_suite().map(|suite| suite.suite());
        let group = self.negotiated_key_exchange_group().map(|group| group.name());
        match (
            suite.as_ref().and_then(|suite| suite.as_str()),
            group.as_ref().and_then(|group| group.as_str()),
        ) {
            (Some(suite), Some(group)) => format!("TLS 1.3, {suite}, {group}"),
            _ => "TLS 1.3".to_owned(),
        }
    }
}

impl<T: Transport> Tls<T> {
    /// Before the handshake.
    fn over(inner: T, mut connection: Connection) -> Self {
        // Written bytes are handed on at once, piece by piece.
        connection.set_buffer_limit(None);
        Self {
            incoming: Mutex::new(Incoming { buffer: vec![0; BUFFER], unread: 0..0 }),
            outgoing: Mutex::default(),
            connection: Mutex::new(connection),
            suite: String::new(),
            inner,
        }
    }

    /// The protocol version, the cipher suite and the key exchange, in words.
    pub fn describe(&self) -> &str {
        &self.suite
    }

    /// The identity that the peer has shown.
    #[must_use]
    pub fn peer(&self) -> Option<ShownIdentity> {
        let connection = lock(&self.connection);
        let (shown, others) = connection.peer_certificates()?.split_first()?;
        let announced = match others {
            [announcement, earlier] => certificate::validity(announcement, earlier).ok(),
            _ => None,
        };
        let announced = announced.map(|validity| validity.start);
        Some(ShownIdentity { fingerprint: Fingerprint::of(shown), announced })
    }

    fn complete(&self, deadline: Option<Instant>) -> Result<()> {
        let mut incoming = lock(&self.incoming);
        loop {
            self.send_records(left(deadline)?)?;
            if !lock(&self.connection).is_handshaking() {
                return Ok(());
            }
            incoming.advance(self, left(deadline)?)?;
        }
    }

    fn shake_hands(&self, timeout: Duration) -> Result<()> {
        let deadline = deadline_after(Some(timeout));
        let left = || left(deadline);
        self.complete(deadline)?;
        // mutant(tls-protocol): false
        if lock(&self.connection).alpn_protocol() != Some(PROTOCOL) {
            return Err(FOREIGN);
        }
        if matches!(*lock(&self.connection), Connection::Server(_)) {
            return Ok(self.write(&[WELCOME], left()?)?);
        }
        let mut welcome = [0];
        loop {
            // The deadline covers the whole read, however slowly its bytes come.
            match self.read_once(&mut welcome, left()?)? {
                // mutant(tls-no-welcome): insert `Some(0) if $ON => return Ok(()),`
                Some(0) => return Err(Error::Disconnected),
                // mutant(tls-welcome): `welcome == [WELCOME]` => `true`
                Some(_) if welcome == [WELCOME] => return Ok(()),
                Some(_) => {
                    // no mutant: sorts an error of rustls, or names one where it is made
                    return Err(Error::PeerMisbehaved("it does not speak volery over TLS"));
                }
                None => {}
            }
        }
    }

    /// Hands finished records to the transport.
    fn send_records(&self, timeout: Option<Duration>) -> io::Result<()> {
        self.send_records_through(&mut lock(&self.outgoing), timeout)
    }

    fn send_records_through(
        &self,
        outgoing: &mut Vec<u8>,
        timeout: Option<Duration>,
    ) -> io::Result<()> {
        outgoing.clear();
        take_records(&mut lock(&self.connection), outgoing)?;
        if outgoing.is_empty() {
            return Ok(());
        }
        self.inner.write(outgoing, timeout)
    }

    /// Reads like [`Transport::read`]; returns `None` after reading encrypted bytes that did not
    /// complete a record.
    fn read_once(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<Option<usize>> {
        let mut incoming = lock(&self.incoming);
        match lock(&self.connection).reader().read(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return read.map(Some),
        }
        incoming.advance(self, timeout)?;
        Ok(None)
    }
}

impl Incoming {
    /// Decrypts some of the bytes already read, or else reads some.
    fn advance<T: Transport>(&mut self, tls: &Tls<T>, timeout: Option<Duration>) -> io::Result<()> {
        if self.unread.is_empty() {
            let count = tls.inner.read(&mut self.buffer, timeout)?;
            if count == 0 {
                // An end that the peer did not sign can come from anyone.
                // no mutant: rustls reports the same end when it is handed nothing
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.unread = 0..count;
        }
        let mut connection = lock(&tls.connection);
        let mut rest = &self.buffer[self.unread.clone()];
        connection.read_tls(&mut rest)?;
        self.unread.start = self.unread.end - rest.len();
        let result = connection.process_new_packets();
        let answers = connection.wants_write();
        drop(connection);
        // Replies to received records, such as new keys or an alert.
        // A thread that is in a write, perhaps this one, takes them along.
        let sent = match tls.outgoing.try_lock() {
            Ok(mut outgoing) if answers => tls.send_records_through(&mut outgoing, timeout),
            _ => Ok(()),
        };
        // mutant(tls-records): drop
        result.map_err(|error| io::Error::other(map_error(error)))?;
        sent
    }
}

fn take_records(connection: &mut Connection, records: &mut Vec<u8>) -> io::Result<()> {
    while connection.wants_write() {
        connection.write_tls(records)?;
    }
    Ok(())
}

const FOREIGN_PARAMETERS: &str =
    "its TLS parameters are not those of volery (TLS 1.3, X25519MLKEM768, Ed25519)";

const FOREIGN: Error = Error::PeerMisbehaved(FOREIGN_PARAMETERS);

const ALERT: &str = "its TLS reported an error";

/// Whether an alert is about this party's certificate.
fn of_identity(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::BadCertificate
            | Alert::UnsupportedCertificate
            | Alert::CertificateRevoked
            | Alert::CertificateExpired
            | Alert::CertificateUnknown
            | Alert::CertificateRequired
            | Alert::UnknownCA
            | Alert::AccessDenied
    )
}

/// Maps an error of TLS to one of this crate.
fn map_error(error: rustls::Error) -> Error {
    use rustls::Error as Tls;
    // no mutant: sorts an error of rustls, or names one where it is made
    match error {
        Tls::InvalidCertificate(CertificateError::Other(OtherError(why)))
            if why.is::<CertificateRejection>() =>
        {
            Error::Unauthenticated(why.to_string())
        }
        Tls::InvalidCertificate(_) => {
            Error::Unauthenticated("its signature does not match its certificate".to_owned())
        }
        Tls::NoCertificatesPresented => {
            Error::Unauthenticated("it presented no identity".to_owned())
        }
        Tls::AlertReceived(alert) if of_identity(alert) => Error::Refused(
            "it has pinned another identity, or this identity is not valid by its clock".to_owned(),
        ),
        // It left before the handshake was complete, as one that has waited for too long.
        Tls::AlertReceived(AlertDescription::CloseNotify) => Error::Disconnected,
        Tls::AlertReceived(_) => Error::PeerMisbehaved(ALERT),
        Tls::InvalidMessage(_) => Error::PeerMisbehaved(
            "it does not speak TLS: give the peer an identity and a fingerprint, too, and check that no other program uses this address",
        ),
        Tls::PeerIncompatible(_) | Tls::NoApplicationProtocol => FOREIGN,
        Tls::DecryptError => Error::PeerMisbehaved("a TLS record was modified in transit"),
        _ => Error::PeerMisbehaved("it violated TLS 1.3"),
    }
}

impl<T: Transport> Transport for Tls<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        self.write_while(bytes, timeout, &|| false)
    }

    fn write_while(
        &self,
        bytes: &[u8],
        timeout: Option<Duration>,
        alive: &dyn Fn() -> bool,
    ) -> io::Result<()> {
        let mut outgoing = lock(&self.outgoing);
        for piece in bytes.chunks(PIECE) {
            outgoing.clear();
            let mut connection = lock(&self.connection);
            connection.writer().write_all(piece)?;
            take_records(&mut connection, &mut outgoing)?;
            drop(connection);
            self.inner.write_while(&outgoing, timeout, alive)?;
        }
        Ok(())
    }

    fn is_idle(&self) -> bool {
        self.inner.is_idle()
    }

    fn queue_bound(&self) -> usize {
        self.inner.queue_bound()
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        // Bytes that complete no record are no progress, nor are empty records.
        let deadline = deadline_after(timeout);
        loop {
            if let Some(count) = self.read_once(bytes, left(deadline)?)? {
                return Ok(count);
            }
        }
    }

    fn round_trip(&self) -> Option<Duration> {
        self.inner.round_trip()
    }
}

impl<T: Transport> Drop for Tls<T> {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        lock(&self.connection).send_close_notify();
        // If the peer is gone, this fails harmlessly.
        let _ = self.send_records(Some(CLOSE_TIMEOUT));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_leaves_the_handshake_is_not_blamed() {
        let told = |alert| map_error(rustls::Error::AlertReceived(alert));
        assert!(matches!(told(AlertDescription::CloseNotify), Error::Disconnected));
        assert!(matches!(told(AlertDescription::DecodeError), Error::PeerMisbehaved(ALERT)));
        assert!(matches!(told(AlertDescription::UnknownCA), Error::Refused(_)));
    }
}
