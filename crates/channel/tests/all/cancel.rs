//! Another thread ends calls that wait for the peer.

use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::tcp::{self, Patience};
use volery_channel::{Cancel, Channel, Error, Result};

use crate::LONG;

/// The bound on the time from a cancellation to the end of a call, for a busy machine; on an idle
/// one it is below 0.2 s.
const SOON: Duration = Duration::from_secs(2);

fn patience(cancel: &Cancel) -> Patience {
    Patience { cancel: cancel.clone(), ..LONG.into() }
}

/// Cancels while `call` waits, and checks that it ends.
fn ends<T: Send>(cancel: &Cancel, call: impl FnOnce() -> Result<T> + Send) {
    thread::scope(|scope| {
        let call = scope.spawn(call);
        thread::sleep(Duration::from_millis(50));
        assert!(!call.is_finished(), "the call waits");
        let start = Instant::now();
        cancel.cancel();
        let result = call.join().unwrap();
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert!(matches!(result, Err(Error::Cancelled)), "{:?}", result.err());
    });
}

fn channels(cancel: &Cancel) -> [Channel; 2] {
    let listener = tcp::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        let left = scope.spawn(|| tcp::connect(address, patience(cancel)).unwrap());
        let right = listener.accept_channel(LONG, |_| ()).unwrap();
        [left.join().unwrap(), right]
    })
}

#[test]
fn listening_and_connecting_end() {
    let cancel = Cancel::default();
    ends(&cancel, || tcp::listen("127.0.0.1:0", patience(&cancel)));
    let cancel = Cancel::default();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    ends(&cancel, || tcp::connect(address, patience(&cancel)));
    // What begins after it does not wait either.
    let late = tcp::connect(address, patience(&cancel));
    assert!(matches!(late, Err(Error::Cancelled)));
}

/// An address of a network for documentation does not answer; some machines have no route to it.
#[test]
#[cfg(all(target_os = "linux", feature = "tls"))]
fn connecting_to_a_machine_that_does_not_answer_ends() {
    use crate::tls::identity;
    let cancel = Cancel::default();
    let (own, peer) = (identity("own"), identity("peer"));
    ends(&cancel, || {
        let peer = peer.fingerprint();
        volery_channel::tls::connect("192.0.2.1:7000", &own, peer, patience(&cancel))
    });
}

#[test]
fn reading_and_writing_end_and_the_peer_is_told() {
    for writes in [false, true] {
        let cancel = Cancel::default();
        let [mut left, mut right] = channels(&cancel);
        ends(&cancel, || match writes {
            false => left.recv(&mut [0]),
            // More than what is queued for a peer that does not read.
            true => (0..1000).try_for_each(|_| left.send(&vec![0; 1 << 20])),
        });
        assert!(matches!(left.send(&[0; 1 << 17]), Err(Error::Broken)));
        let start = Instant::now();
        let told = (0..1000).try_for_each(|_| right.recv(&mut vec![0; 1 << 20]));
        assert!(matches!(told, Err(Error::Disconnected)), "{told:?}");
        assert!(start.elapsed() < SOON);
    }
}

#[test]
fn a_run_on_an_older_connection_cancels_it() {
    let connection = Cancel::default();
    let [mut left, mut right] = channels(&connection);
    let run = Cancel::default();
    drop(run.pass_on(&connection));
    run.cancel();
    assert!(!connection.is_cancelled(), "that run was over");
    let run = Cancel::default();
    let passed_on = run.pass_on(&connection);
    ends(&run, || left.recv(&mut [0]));
    drop(passed_on);
    assert!(connection.is_cancelled());
    assert!(matches!(right.recv(&mut [0]), Err(Error::Disconnected)));
    let _late = run.pass_on(&connection);
    let itself = Cancel::default();
    let _cycle = itself.pass_on(&itself);
    itself.cancel();
}

#[cfg(feature = "tls")]
mod tls {
    use volery_channel::tls::{self, Listener};

    use super::*;
    use crate::tls::identity;

    #[test]
    fn the_handshake_ends() {
        let (own, peer) = (identity("own"), identity("peer"));
        // A listener that never answers, and a client that never speaks.
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = silent.local_addr().unwrap();
        let cancel = Cancel::default();
        ends(&cancel, || tls::connect(address, &own, peer.fingerprint(), patience(&cancel)));
        let cancel = Cancel::default();
        let listener = Listener::bind("127.0.0.1:0").unwrap();
        let _client = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        ends(&cancel, || listener.accept(&own, peer.fingerprint(), patience(&cancel), |_| ()));
    }
}
