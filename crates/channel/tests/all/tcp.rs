//! Addresses, waiting, closing.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::tcp::{self, Listener, Stream};
use volery_channel::{Channel, Error, Transport as _};

use crate::{LONG, SHORT, pattern, tcp_pair};

#[test]
fn only_loopback_addresses_are_accepted() {
    for address in ["0.0.0.0:0", "192.0.2.1:1", "[::]:0", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1"]
    {
        let address: SocketAddr = address.parse().unwrap();
        let refused = |error: Error| {
            assert!(matches!(error, Error::NotLoopback(at) if at == address), "{error:?}");
            assert!(error.to_string().contains("authenticated"), "{error}");
        };
        refused(tcp::listen(address, SHORT).unwrap_err());
        refused(tcp::connect(address, SHORT).unwrap_err());
        // One bad address among good ones is enough.
        let both = [SocketAddr::from(([127, 0, 0, 1], 0)), address];
        refused(Listener::bind(&both[..]).unwrap_err());
    }
    assert!(Listener::bind("127.0.0.1:0").is_ok());
    assert!(Listener::bind("localhost:0").is_ok());
    assert!(Listener::bind(&[][..]).is_err());
}

/// A name may have several addresses, of which some are not of this machine.
#[cfg(all(target_os = "linux", feature = "tls"))]
#[test]
fn a_listener_is_on_all_addresses_of_a_name_with_one_port() {
    let hosts = [[127, 0, 0, 1], [192, 0, 2, 1], [127, 0, 0, 2], [127, 0, 0, 1]];
    let all = hosts.map(|host| SocketAddr::from((host, 0)));
    let listener = volery_channel::tls::Listener::bind(&all[..]).unwrap();
    let port = listener.local_addr().unwrap().port();
    assert_eq!(listener.addresses(), format!("127.0.0.1:{port}, 127.0.0.2:{port}"));
    assert!(volery_channel::tls::Listener::bind(&all[1..2]).is_err());

    let listener = Listener::bind(&all[2..]).unwrap();
    let port = listener.local_addr().unwrap().port();
    // Clients of the first address do not keep that of the second one waiting.
    let clients = [hosts[2], hosts[2], hosts[2], hosts[3]].map(|host| {
        let mut client = TcpStream::connect(SocketAddr::from((host, port))).unwrap();
        client.write_all(&host[3..]).unwrap();
        client
    });
    let mut first = [0, 0].map(|mut byte| {
        listener.accept(LONG).unwrap().read(std::slice::from_mut(&mut byte), Some(LONG)).unwrap();
        byte
    });
    first.sort_unstable();
    assert_eq!(first, [1, 2]);
    drop(clients);
}

#[test]
fn waiting_for_nobody_ends() {
    let started = Instant::now();
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    assert!(matches!(listener.accept(SHORT), Err(Error::TimedOut(_))));
    assert!(started.elapsed() >= SHORT);
    let address = listener.local_addr().unwrap();
    drop(listener);
    let started = Instant::now();
    let error = tcp::connect(address, SHORT).unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
    assert!(started.elapsed() >= SHORT);
}

#[test]
fn dropping_sends_what_is_queued() {
    const MUCH: usize = 40 << 20;
    let (mut left, mut right) = tcp_pair();
    thread::scope(|scope| {
        scope.spawn(move || {
            left.send(&pattern(MUCH, 0)).unwrap();
            left.flush().unwrap();
            drop(left);
        });
        thread::sleep(SHORT);
        let mut bytes = vec![0; MUCH];
        right.recv(&mut bytes).unwrap();
        assert!(bytes == pattern(MUCH, 0));
        assert!(matches!(right.recv(&mut [0]), Err(Error::Disconnected)));
    });
}

#[test]
fn dropping_gives_up_on_a_peer_that_does_not_read() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let stream = Stream::connect(listener.local_addr().unwrap(), SHORT).unwrap();
    let mut channel = Channel::new(stream);
    let (_peer, _) = listener.accept().unwrap();
    channel.send(&vec![0; 64 << 20]).unwrap();
    channel.flush().unwrap();
    let started = Instant::now();
    drop(channel);
    assert!(started.elapsed() < LONG / 2);
}

#[test]
fn a_slow_reader_is_not_a_timeout() {
    // The reader pauses for longer than the writer's timeout in total, and never for that long at
    // once; the writer meanwhile waits for an answer.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let timeout = Duration::from_millis(1500);
    const MUCH: usize = 48 << 20;
    thread::scope(|scope| {
        scope.spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut bytes = vec![0; MUCH / 16];
            for _ in 0..16 {
                thread::sleep(timeout / 8);
                std::io::Read::read_exact(&mut peer, &mut bytes).unwrap();
            }
            peer.write_all(&[1]).unwrap();
        });
        let stream = Stream::connect(address, timeout).unwrap();
        let mut channel = Channel::with_timeout(stream, Some(timeout));
        channel.send(&vec![0; MUCH]).unwrap();
        let mut answer = [0];
        channel.recv(&mut answer).unwrap();
        assert_eq!(answer, [1]);
    });
}
