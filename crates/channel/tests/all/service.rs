//! A service: who is served, how many at a time, and how it ends.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::service::{Client, ClientCredential, Limits, Service};
use volery_channel::tls::{self, Fingerprint, Identity, KnownIdentities};
use volery_channel::{Cancel, Channel, Error, tcp};

use crate::End;
use crate::tls::{PATIENCE, identity, stranger};

const LIMITS: Limits =
    Limits { connections: 3, timeout: PATIENCE, grace: Duration::from_millis(300) };

/// Gives each client its own bytes back, one by one, until it leaves.
fn echo(client: Client) {
    let mut channel = client.channel;
    let mut byte = [0];
    while channel.recv(&mut byte).is_ok() {
        if channel.send(&byte).and_then(|()| channel.flush()).is_err() {
            return;
        }
    }
}

fn speaks(channel: &mut Channel) -> bool {
    let mut byte = [0];
    let said = channel.send(&[7]).and_then(|()| channel.recv(&mut byte));
    said.is_ok() && byte == [7]
}

/// Runs `body` against a service, and ends it; the reasons of those who were refused.
fn with(
    secured: Option<(Identity, KnownIdentities)>,
    serve: &(dyn Fn(Client) + Sync),
    body: impl FnOnce(SocketAddr, &Cancel),
) -> Vec<Error> {
    let service = Service::bind("127.0.0.1:0", secured).unwrap();
    let address: SocketAddr = service.addresses().parse().unwrap();
    let (stop, refused) = (Cancel::default(), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            service.serve(LIMITS, &stop, serve, &|refusal| {
                refused.lock().unwrap().push(refusal.error);
            })
        });
        let end = End(&stop);
        body(address, &stop);
        drop(end);
        serving.join().unwrap().unwrap();
    });
    assert!(TcpStream::connect(address).is_err(), "it still listens");
    refused.into_inner().unwrap()
}

fn secured(known: &[Fingerprint]) -> (Fingerprint, Option<(Identity, KnownIdentities)>) {
    let (own, known) = (identity("server"), known.to_vec());
    let known: KnownIdentities = Arc::new(move |print| known.contains(&print));
    (own.fingerprint(), Some((own, known)))
}

#[test]
fn known_clients_are_served_and_no_others() {
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(identity);
    let (server, secured) = secured(&[ann.fingerprint(), bob.fingerprint()]);
    let names = Mutex::new(Vec::new());
    let serve = |client: Client| {
        names.lock().unwrap().push(client.shown);
        echo(client);
    };
    let refused = with(secured, &serve, |address, _| {
        for one in [&ann, &bob] {
            let mut channel = tls::connect(address, one, server, PATIENCE).unwrap();
            assert!(speaks(&mut channel));
        }
        let stranger = tls::connect(address, &eve, server, PATIENCE).err().unwrap();
        assert!(matches!(stranger, Error::Refused(_)), "{stranger}");
        // The client, too, checks whom it meets.
        let other = tls::connect(address, &ann, eve.fingerprint(), PATIENCE);
        assert!(matches!(other, Err(Error::Unauthenticated(_))));
    });
    assert_eq!(
        *names.lock().unwrap(),
        [&ann, &bob].map(|one| ClientCredential::Certificate(one.fingerprint()))
    );
    let why = refused.iter().find(|error| matches!(error, Error::Unauthenticated(_)));
    let why = why.unwrap().to_string();
    assert!(why.contains(&eve.fingerprint().to_string()), "{why}");
    assert!(why.contains("not allowed here"), "{why}");
}

/// They leave before they show who they are, or ask for something else, as load balancers do.
#[test]
fn health_probes_are_told_from_clients() {
    for is_secured in [false, true] {
        let (_, secured) = secured(&[]);
        let refused = with(secured.filter(|_| is_secured), &echo, |address, _| {
            drop(TcpStream::connect(address).unwrap());
            for request in ["GET /healthz HTTP/1.1\r\n\r\n", "HEAD / HTTP/1.0\r\n\r\n"] {
                let mut socket = TcpStream::connect(address).unwrap();
                socket.write_all(request.as_bytes()).unwrap();
                let _ = socket.read_to_end(&mut Vec::new());
            }
            for protocol in [&b""[..], b"h2"].into_iter().filter(|_| is_secured) {
                stranger(address, None, protocol);
            }
        });
        // The last ones may meet the end of the service.
        let (ended, left): (Vec<_>, Vec<_>) =
            refused.iter().partition(|error| matches!(error, Error::Cancelled));
        assert!(left.iter().all(|error| matches!(error, Error::Disconnected)), "{refused:?}");
        assert!(left.len() + ended.len() >= if is_secured { 4 } else { 2 }, "{refused:?}");
        assert!(left.len() > ended.len(), "{refused:?}");
    }
}

#[test]
fn clients_are_counted() {
    let served = AtomicUsize::new(0);
    let serve = |client: Client| {
        assert!(client.shown == ClientCredential::Nothing && client.address.ip().is_loopback());
        served.fetch_add(1, Ordering::SeqCst);
        echo(client);
    };
    let refused = with(None, &serve, |address, _| {
        let connect = || tcp::connect(address, PATIENCE).unwrap();
        let mut held: Vec<_> = (0..3).map(|_| connect()).collect();
        assert!(held.iter_mut().all(speaks));
        assert!(!speaks(&mut connect()));
        assert!(held.iter_mut().all(speaks));
        held.pop();
        let start = Instant::now();
        while !speaks(&mut connect()) {
            assert!(start.elapsed() < PATIENCE);
        }
        // Strangers take no place: silent ones make way for each other.
        let silent: Vec<_> = (0..100).map(|_| TcpStream::connect(address).unwrap()).collect();
        let start = Instant::now();
        while !speaks(&mut connect()) {
            assert!(start.elapsed() < PATIENCE);
        }
        drop(silent);
    });
    let outside = Service::bind("0.0.0.0:0", None).err().unwrap();
    assert!(matches!(outside, Error::NotLoopback(_)));
    assert!(served.into_inner() >= 5);
    assert!(refused.iter().any(|error| matches!(error, Error::Unavailable(_))));
    assert!(refused.iter().any(|error| matches!(error, Error::TimedOut(_))));
}

/// A client that reads nothing does not fill the memory of the server: a write waits for it soon,
/// and no longer than the timeout.
#[test]
fn little_is_queued_for_a_client_that_does_not_read() {
    const MORE_THAN_SOCKETS_HOLD: usize = 64 << 20;
    let sent = Mutex::new(None);
    let serve = |mut client: Client| {
        client.channel.set_timeout(Some(Duration::from_millis(500)));
        let bytes = vec![0; MORE_THAN_SOCKETS_HOLD];
        let result = client.channel.send(&bytes);
        *sent.lock().unwrap() = Some(result.and_then(|()| client.channel.flush()));
    };
    with(None, &serve, |address, _| {
        let stream = tcp::connect(address, PATIENCE).unwrap();
        let start = Instant::now();
        while sent.lock().unwrap().is_none() {
            assert!(start.elapsed() < Duration::from_secs(60));
            thread::sleep(Duration::from_millis(10));
        }
        drop(stream);
    });
    let sent = sent.into_inner().unwrap().unwrap();
    assert!(matches!(sent, Err(Error::TimedOut(_))), "{sent:?}");
}
