//! Strangers with a TLS of their own: what no side of ours does, and what becomes of it.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};
use volery_channel::tls::{self, Identity, Refusal};
use volery_channel::{Channel, Error, Result};

use crate::tls::{PATIENCE, collect_refusals, identity, stranger};

/// The application protocol behind TLS, and the first byte of the listening side.
const PROTOCOL: &[u8] = b"volery/1";
const WELCOME: u8 = 0x57;

/// The certificates of some identities, with the key of one.
pub(crate) fn shown(chain: &[&Identity], owned: &Identity) -> SingleCertAndKey {
    let certificate = |shown: &&Identity| CertificateDer::from_pem_slice(shown.to_pem().as_bytes());
    let chain = chain.iter().map(certificate).map(std::result::Result::unwrap);
    let key = PrivateKeyDer::from_pem_slice(owned.to_pem().as_bytes()).unwrap();
    let key = aws_lc_rs::sign::any_supported_type(&key).unwrap();
    SingleCertAndKey::from(Arc::new(CertifiedKey::new(chain.collect(), key)))
}

/// The pinned identity with a second certificate, and with a client that announces no application
/// protocol or another one.
#[test]
fn the_pinned_identity_in_other_clients_is_refused() {
    let [here, peer, other] = ["here", "peer", "other"].map(identity);
    let refusals = collect_refusals(&here, &peer, 3, |address| {
        let chain = shown(&[&peer, &other], &peer);
        assert_eq!(stranger(address, Some(chain), PROTOCOL), b"");
        for protocol in [&b""[..], b"http/1.1"] {
            let certificate = shown(&[&peer], &peer);
            assert_eq!(stranger(address, Some(certificate), protocol), b"");
        }
    });
    let why: Vec<_> = refusals.iter().map(|one| one.error.to_string()).collect();
    for (reason, times) in [("several certificates", 1), ("not those of volery", 2)] {
        let found = why.iter().filter(|why| why.contains(reason)).count();
        assert_eq!(found, times, "{reason}: {why:#?}");
    }
}

/// More silent connections than a listener handles at a time: the oldest are dropped, and each one
/// costs a thread and a socket. The peer does not wait for them.
#[test]
fn silent_strangers_are_not_held_for_ever() {
    let [here, peer] = ["here", "peer"].map(identity);
    let (mut silent, start) = (Vec::new(), Instant::now());
    let refusals = collect_refusals(&here, &peer, 80, |address| {
        silent.extend((0..150).map(|_| TcpStream::connect(address).unwrap()));
        // One connection begins a record correctly and stops.
        silent[0].write_all(&[0x16, 3, 1, 2, 0]).unwrap();
    });
    assert!(start.elapsed() < PATIENCE / 2);
    let slow = |refusal: &&Refusal| refusal.error.to_string().contains("it was slow");
    assert!(refusals.iter().filter(slow).count() >= 80);
}

/// Connects to a server that presents a certificate with a key, requests none, and sends `said`
/// after the handshake.
fn connect_to(pinned: &Identity, owned: &Identity, said: &[u8]) -> Result<Channel> {
    let builder = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let mut config = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(shown(&[pinned], owned)));
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut connection = ServerConnection::new(Arc::new(config)).unwrap();
            let mut socket = listener.accept().unwrap().0;
            // The client's refusal is an error here.
            let _ = connection.complete_io(&mut socket);
            let _ = connection.writer().write_all(said);
            connection.send_close_notify();
            let _ = connection.complete_io(&mut socket);
        });
        tls::connect(address, &identity("here"), pinned.fingerprint(), PATIENCE)
    })
}

/// The certificate alone does not make the pinned server; and a side without the welcome byte does
/// not go on.
#[test]
fn a_server_must_be_the_pinned_one_and_welcome() {
    let [peer, other] = ["peer", "other"].map(identity);
    let connect = |owned: &Identity, said: &[u8]| connect_to(&peer, owned, said).map(|_| ());
    let why = connect(&other, &[WELCOME]).unwrap_err().to_string();
    assert!(why.contains("its signature does not match"), "{why}");
    let why = connect(&peer, b"HTTP/1.1 200 OK").unwrap_err().to_string();
    assert!(why.contains("not speak volery over TLS"), "{why}");
    assert!(matches!(connect(&peer, b""), Err(Error::Disconnected)));
    assert!(connect(&peer, &[WELCOME]).is_ok(), "right but for that");
}
