//! Authenticated connections: who gets in, who does not, and what comes out.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};
use volery_channel::memory::{self, Memory};
use volery_channel::tamper::Tampered;
use volery_channel::tls::{self, Fingerprint, Identity, Refusal, Tls};
use volery_channel::{Channel, Error, Result, Transport, run_two_channels, tcp};

use crate::strangers::shown;

pub(crate) const PATIENCE: Duration = Duration::from_secs(20);
pub(crate) const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn identity(name: &str) -> Identity {
    let now = SystemTime::now();
    Identity::generate(name, now - DAY..now + DAY).unwrap()
}

/// An identity that expired yesterday.
fn expired() -> Identity {
    let now = SystemTime::now();
    Identity::generate("late", now - 3 * DAY..now - DAY).unwrap()
}

/// Both sides of a handshake over two transports.
fn secure<A: Transport + 'static, B: Transport + 'static>(
    (left, right): (A, B),
    (left_identity, right_identity): (&Identity, &Identity),
    (left_pins, right_pins): (Fingerprint, Fingerprint),
    patience: Duration,
) -> (Result<Tls<A>>, Result<Tls<B>>) {
    thread::scope(|scope| {
        let left = scope.spawn(move || tls::initiate(left, left_identity, left_pins, patience));
        let right = tls::respond(right, right_identity, right_pins, patience);
        (left.join().unwrap(), right)
    })
}

fn pair<A: Transport + 'static, B: Transport + 'static>(transports: (A, B)) -> (Tls<A>, Tls<B>) {
    let (a, b) = (identity("a"), identity("b"));
    let pins = (b.fingerprint(), a.fingerprint());
    let (left, right) = secure(transports, (&a, &b), pins, PATIENCE);
    (left.unwrap(), right.unwrap())
}

fn channel(transport: impl Transport + 'static) -> Channel {
    Channel::with_timeout(transport, Some(PATIENCE))
}

/// Sends `length` bytes, then receives as many and checks them.
fn exchange(channel: &mut Channel, ours: u8, length: usize) -> Result<()> {
    channel.send(&vec![ours; length])?;
    channel.send(&[ours, 1, 2, 3])?;
    let mut theirs = vec![0; length + 4];
    channel.recv(&mut theirs)?;
    let (body, end) = theirs.split_at(length);
    assert!(body.iter().all(|byte| *byte == !ours));
    assert_eq!(end, [!ours, 1, 2, 3]);
    Ok(())
}

#[test]
fn both_may_send_a_lot_first() {
    for length in [0, 1, 16 << 10, (16 << 10) + 1, 20_000_003] {
        let (left, right) = pair(memory::pair());
        let ((a, sent), (b, received)) = run_two_channels(
            channel(left),
            channel(right),
            |channel| exchange(channel, 0x5a, length),
            |channel| exchange(channel, !0x5a, length),
        );
        a.unwrap();
        b.unwrap();
        // The overhead of TLS is not counted as the protocol's traffic.
        assert_eq!(sent.bytes_sent, length as u64 + 4);
        assert_eq!(received.bytes_received, length as u64 + 4);
    }
}

#[test]
fn only_the_pinned_peer_is_accepted() {
    let [a, b, other] = ["a", "b", "other"].map(identity);
    // The connecting side has pinned another identity.
    let pins = (other.fingerprint(), a.fingerprint());
    let (left, right) = secure(memory::pair(), (&a, &b), pins, PATIENCE);
    let Err(Error::Unauthenticated(why)) = left.map(drop) else { panic!("accepted") };
    assert!(why.contains(&b.fingerprint().to_string()), "{why}");
    assert!(why.contains(&other.fingerprint().to_string()), "{why}");
    let Err(Error::Refused(why)) = right.map(drop) else { panic!("not told") };
    assert!(why.contains(&b.fingerprint().to_string()), "{why}");

    // The listening side has.
    let pins = (b.fingerprint(), other.fingerprint());
    let (left, right) = secure(memory::pair(), (&a, &b), pins, PATIENCE);
    assert!(matches!(left, Err(Error::Refused(why)) if why.contains(&a.fingerprint().to_string())));
    assert!(matches!(right, Err(Error::Unauthenticated(_))));
}

#[test]
fn an_identity_that_has_expired_is_not_even_shown() {
    let (late, b) = (expired(), identity("b"));
    let (left, right) = memory::pair();
    for result in [
        tls::initiate(left, &late, b.fingerprint(), PATIENCE),
        tls::respond(right, &late, b.fingerprint(), PATIENCE),
    ] {
        let Err(Error::Identity(why)) = result.map(drop) else { panic!("used") };
        assert!(why.contains("expired"), "{why}");
    }
    let unused_address = ("127.0.0.1", 1);
    assert!(matches!(
        tls::connect(unused_address, &late, b.fingerprint(), PATIENCE),
        Err(Error::Identity(_))
    ));
}

/// Neither side accepts its own fingerprint as the peer's.
#[test]
fn the_own_fingerprint_is_no_peer() {
    let a = identity("a");
    let own = a.fingerprint();
    let (left, right) = memory::pair();
    let unused_address = ("127.0.0.1", 1);
    let refused = [
        tls::initiate(left, &a, own, PATIENCE).map(drop),
        tls::respond(right, &a, own, PATIENCE).map(drop),
        tls::connect(unused_address, &a, own, PATIENCE).map(drop),
        tls::listen("127.0.0.1:0", &a, own, PATIENCE).map(drop),
    ];
    for refused in refused {
        let Err(Error::Identity(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("is its own"), "{why}");
    }
}

type VerifierResult<T> = std::result::Result<T, rustls::Error>;

/// A verifier of a non-conforming client: it accepts any server.
#[derive(Debug)]
struct AnyServer;

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> VerifierResult<ServerCertVerified> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> VerifierResult<HandshakeSignatureValid> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> VerifierResult<HandshakeSignatureValid> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

/// Connects as such a client; returns the bytes that the server sent after the handshake.
fn connect_unchecked(address: SocketAddr, certificate: Option<(&Identity, &Identity)>) -> Vec<u8> {
    let certificate = certificate.map(|(chain, owned)| shown(&[chain], owned));
    stranger(address, certificate, b"volery/1")
}

/// The same, with any certificates and any application protocol, which may be empty.
pub(crate) fn stranger(
    address: SocketAddr,
    certificate: Option<SingleCertAndKey>,
    protocol: &[u8],
) -> Vec<u8> {
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyServer));
    let mut config = match certificate {
        None => builder.with_no_client_auth(),
        Some(certificate) => builder.with_client_cert_resolver(Arc::new(certificate)),
    };
    if !protocol.is_empty() {
        config.alpn_protocols = vec![protocol.to_vec()];
    }
    let name = ServerName::try_from("volery").unwrap();
    let mut connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut socket = TcpStream::connect(address).unwrap();
    let mut stream = rustls::Stream::new(&mut connection, &mut socket);
    let mut said = Vec::new();
    // The server's refusal is an error here.
    let _ = stream.write_all(b"\x89volery\n");
    let _ = stream.read_to_end(&mut said);
    said
}

/// Runs `strangers` against a listener that waits for its peer, then, after `refused` refusals,
/// lets the peer connect; returns the refusals.
pub(crate) fn collect_refusals(
    here: &Identity,
    peer: &Identity,
    refused: usize,
    strangers: impl FnOnce(SocketAddr) + Send,
) -> Vec<Refusal> {
    let listener = tls::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut refusals = Vec::new();
    let (told, heard) = mpsc::channel();
    thread::scope(|scope| {
        let (here_pin, peer_pin) = (here.fingerprint(), peer.fingerprint());
        let connecting = scope.spawn(move || {
            strangers(address);
            (0..refused).for_each(|_| heard.recv_timeout(PATIENCE).unwrap());
            let mut channel = tls::connect(address, peer, here_pin, PATIENCE).unwrap();
            exchange(&mut channel, 7, 100).unwrap();
        });
        let accepted = listener.accept(here, peer_pin, PATIENCE, |refusal| {
            refusals.push(refusal);
            let _ = told.send(());
        });
        exchange(&mut accepted.unwrap(), !7, 100).unwrap();
        connecting.join().unwrap();
    });
    refusals
}

#[test]
fn strangers_are_refused_and_the_peer_gets_in_behind_them() {
    let [here, peer, other] = ["here", "peer", "other"].map(identity);
    let late = expired();
    let refusals = collect_refusals(&here, &peer, 6, |address| {
        // Another identity, by a conforming client, which is told about the refusal.
        let refused = tls::connect(address, &other, here.fingerprint(), PATIENCE);
        assert!(matches!(refused, Err(Error::Refused(_))));
        // None at all; the certificate of the peer without its key; one that has expired.
        assert_eq!(connect_unchecked(address, None), b"");
        assert_eq!(connect_unchecked(address, Some((&peer, &other))), b"");
        assert_eq!(connect_unchecked(address, Some((&late, &late))), b"");
        // No TLS.
        let mut plain = TcpStream::connect(address).unwrap();
        plain.write_all(b"\x89volery\n\x01\x00").unwrap();
        let _ = plain.read_to_end(&mut Vec::new());
        // A conforming client without TLS, which reports the mismatch.
        let met = tcp::connect(address, PATIENCE).err().unwrap();
        assert!(met.to_string().contains("it speaks TLS"), "{met}");
    });
    let why: Vec<_> = refusals.iter().map(|refusal| refusal.error.to_string()).collect();
    assert_eq!(refusals.len(), 6, "{why:#?}");
    // Each has a thread of its own: they may be reported in any order.
    let [other, late] = [&other, &late].map(|identity| identity.fingerprint().to_string());
    for (reason, times) in [
        (&other[..], 1),
        ("no identity", 1),
        ("signature", 1),
        (&late[..], 1),
        ("does not speak TLS", 2),
    ] {
        let found = why.iter().filter(|why| why.contains(reason)).count();
        assert_eq!(found, times, "{reason}: {why:#?}");
    }
    assert!(refusals.iter().all(|refusal| refusal.address.ip().is_loopback()));
}

/// The pinned peer with an expired identity and without its own check.
#[test]
fn the_pinned_identity_is_refused_once_it_has_expired() {
    let (here, late) = (identity("here"), expired());
    let listener = tls::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut refusals = Vec::new();
    let accepted = thread::scope(|scope| {
        scope.spawn(|| assert_eq!(connect_unchecked(address, Some((&late, &late))), b""));
        let patience = Duration::from_secs(2);
        listener.accept(&here, late.fingerprint(), patience, |refusal| refusals.push(refusal))
    });
    assert!(matches!(accepted, Err(Error::TimedOut(why)) if why.contains("one other connection")));
    let why = refusals[0].error.to_string();
    assert!(why.contains("pinned, but it expired on"), "{why}");
}

#[test]
fn a_plain_listener_says_that_it_cannot_speak_tls() {
    let [a, b] = ["a", "b"].map(identity);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let (mut socket, _) = listener.accept().unwrap();
            socket.write_all(b"\x89volery\n\x01\x00\x10\x00").unwrap();
            let _ = socket.read(&mut [0; 4096]);
        });
        let refused = tls::connect(address, &a, b.fingerprint(), PATIENCE).unwrap_err();
        assert!(refused.to_string().contains("does not speak TLS"), "{refused}");
    });
}

#[test]
fn a_peer_that_drips_does_not_outlast_the_timeout() {
    let [a, b] = ["a", "b"].map(identity);
    let (left, right) = memory::pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            // The beginning of a long record, a byte at a time.
            for byte in [0x16, 3, 3, 0x40, 0].into_iter().chain([2; 1000]) {
                if left.write(&[byte], None).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let patience = Duration::from_millis(300);
        let late = tls::respond(right, &a, b.fingerprint(), patience).map(drop);
        assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
    });
}

/// Sends byte by byte once it is told to.
struct Drip(Memory, Arc<AtomicBool>);

impl Transport for Drip {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        if !self.1.load(Ordering::SeqCst) {
            return self.0.write(bytes, timeout);
        }
        bytes.chunks(1).try_for_each(|byte| {
            thread::sleep(Duration::from_millis(50));
            self.0.write(byte, timeout)
        })
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.0.read(bytes, timeout)
    }
}

/// The pinned peer, whose record comes byte by byte: each byte in time, the whole record too late.
#[test]
fn bytes_that_complete_no_record_are_no_progress() {
    let (left, right) = memory::pair();
    let slow = Arc::new(AtomicBool::new(false));
    let (left, right) = pair((Drip(left, Arc::clone(&slow)), right));
    slow.store(true, Ordering::SeqCst);
    let mut right = Channel::with_timeout(right, Some(Duration::from_millis(400)));
    thread::scope(|scope| {
        // Fails once the other end is gone.
        scope.spawn(move || drop(left.write(&[1; 100], None)));
        let late = right.recv(&mut [0; 100]);
        assert!(matches!(late, Err(Error::TimedOut(_))), "{late:?}");
        drop(right);
    });
}

/// For every changed byte of the handshake: no party ends with a connection that the other lacks,
/// and every established connection notices a changed record.
#[test]
fn changed_handshakes_fail() {
    let [a, b] = ["a", "b"].map(identity);
    let pins = || (b.fingerprint(), a.fingerprint());
    let patience = Duration::from_millis(500);
    let mut failed = 0;
    for at in (0..2600).step_by(61) {
        let (left, right) = memory::pair();
        let (left, right) =
            secure((Tampered::flip(left, at, 0x10), right), (&a, &b), pins(), patience);
        if let (Ok(left), Ok(right)) = (left, right) {
            // The flip lies after the handshake: it then hits the first record.
            let (mut left, mut right) = (channel(left), channel(right));
            left.send(&[1; 2600]).unwrap();
            left.flush().unwrap();
            assert!(matches!(right.recv(&mut [0; 2600]), Err(Error::PeerMisbehaved(_))));
        } else {
            failed += 1;
        }
    }
    assert!(failed > 20, "{failed} of the flips hit the handshake");
}
