//! Peers that compute, stop, or send frames that no party sends.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;
use std::time::{Duration, Instant};

use volery_channel::tcp::{self, Listener, Patience};
use volery_channel::{Channel, Error, Hello, QUEUE_BOUND, Result, framed, handshake};

use crate::LONG;

/// The timeout of the parties. A busy machine may keep a thread from running for a while.
const TIMEOUT: Duration = Duration::from_millis(800);

fn patience() -> Patience {
    Patience { wait: LONG, ..TIMEOUT.into() }
}

const GREETING: &[u8] = b"\x89volery\x01\xe8\x03\0\0";

fn plain() -> [Channel; 2] {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let left = thread::spawn(move || tcp::connect(address, patience()).unwrap());
    let right = listener.accept_channel(patience(), |_| ()).unwrap();
    [left.join().unwrap(), right]
}

#[cfg(feature = "tls")]
fn secured() -> [Channel; 2] {
    use volery_channel::tls;

    use crate::tls::identity;
    let (here, there) = (identity("here"), identity("there"));
    let prints = [here.fingerprint(), there.fingerprint()];
    let listener = tls::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let left = thread::spawn(move || tls::connect(address, &there, prints[0], patience()).unwrap());
    let right = listener.accept(&here, prints[1], patience(), |_| ()).unwrap();
    [left.join().unwrap(), right]
}

fn pairs() -> Vec<[Channel; 2]> {
    vec![
        plain(),
        #[cfg(feature = "tls")]
        secured(),
    ]
}

fn exchange(a: &mut Channel, b: &mut Channel) -> Result<()> {
    for (from, to) in [(0, 1), (1, 0)] {
        let ends = [&mut *a, &mut *b];
        ends[from].send(b"word")?;
        ends[from].flush()?;
        let mut word = [0; 4];
        ends[to].recv(&mut word)?;
        assert_eq!(&word, b"word");
    }
    Ok(())
}

/// More than the queue holds, to a peer that computes before it reads, and had sent something that
/// this party has not read: heartbeats are heard behind it.
#[test]
fn a_writer_waits_for_a_peer_that_computes() {
    let [mut a, mut b] = plain();
    exchange(&mut a, &mut b).unwrap();
    let piece = vec![3; 1 << 20];
    let pieces = QUEUE_BOUND / piece.len() + 8;
    thread::scope(|scope| {
        scope.spawn(|| {
            b.send(&[5; 100_000]).unwrap();
            b.flush().unwrap();
            thread::sleep(TIMEOUT * 3);
            let mut got = vec![0; piece.len()];
            for _ in 0..pieces {
                b.recv(&mut got).unwrap();
                assert!(got == piece);
            }
        });
        for _ in 0..pieces {
            a.send(&piece).unwrap();
        }
        let mut early = [0; 100_000];
        a.recv(&mut early).unwrap();
        assert!(early == [5; 100_000]);
    });
}

#[test]
fn two_sides_that_wait_for_each_other_time_out() {
    for [mut a, mut b] in pairs() {
        exchange(&mut a, &mut b).unwrap();
        let start = Instant::now();
        let other = thread::spawn(move || b.recv(&mut [0]).unwrap_err());
        let error = a.recv(&mut [0]).unwrap_err();
        // A party that has given up waits no more, and would show life for ever.
        drop(a);
        let errors = [error, other.join().unwrap()];
        // One of them may see the other close.
        let first = errors.iter().filter(|error| matches!(error, Error::TimedOut(_)));
        assert!(first.count() > 0, "{errors:?}");
        assert!(start.elapsed() < TIMEOUT * 10, "{errors:?}");
    }
}

/// A channel whose peer says `said` after its greeting, and then nothing.
fn against(said: &[u8]) -> (Channel, TcpStream) {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let mut peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    peer.write_all(&[GREETING, said].concat()).unwrap();
    (listener.accept_channel(patience(), |_| ()).unwrap(), peer)
}

#[test]
fn a_stopped_peer_is_found_within_the_timeout() {
    // A stopped process keeps its connections, and its kernel acknowledges what comes.
    let (mut channel, _peer) = against(&[1, 0, 0, 0]);
    let start = Instant::now();
    let error = channel.recv(&mut [0]).unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(start.elapsed() >= TIMEOUT / 2 && start.elapsed() < TIMEOUT * 10);

    let (mut channel, _peer) = against(&[]);
    let sent = (0..QUEUE_BOUND >> 20).try_for_each(|_| channel.send(&[0; 1 << 20]));
    let error = sent.and_then(|()| channel.send(&[0; 32 << 20])).unwrap_err();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
}

#[test]
fn heartbeats_do_not_extend_the_time_of_the_handshake() {
    let (mut channel, mut peer) = against(&[]);
    let start = Instant::now();
    let error = thread::scope(|scope| {
        let hello = Hello { protocol: "p", role: "r", fields: Vec::new() };
        let met = scope.spawn(move || handshake(&mut channel, &hello, [0; 32]).unwrap_err());
        while peer.write_all(&[1, 0, 0, 0]).is_ok() && start.elapsed() < LONG {
            thread::sleep(TIMEOUT / 8);
        }
        met.join().unwrap()
    });
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
    assert!(start.elapsed() < TIMEOUT * 10);
}

#[test]
fn frames_that_no_party_sends_are_errors() {
    let refused = |said: &[u8]| against(said).0.recv(&mut [0; 8]).unwrap_err();
    for header in [[0, 0, 0, 0], [1, 1, 0, 0], [1, 255, 255, 255], [2, 1, 0, 0], [255; 4]] {
        let error = refused(&header);
        let frame = matches!(error, Error::PeerMisbehaved(why) if why.contains("malformed frame"));
        assert!(frame, "{header:?}: {error:?}");
    }
    let error = refused(&[1, 0, 0, 0].repeat(10_000));
    assert!(matches!(error, Error::PeerMisbehaved(why) if why.contains("floods")), "{error:?}");
    // The bytes before a cut are lost with their message.
    let (mut channel, peer) = against(&[0, 255, 255, 255, 1, 2]);
    drop(peer);
    let error = channel.recv(&mut [0; 8]).unwrap_err();
    assert!(matches!(error, Error::Disconnected), "{error:?}");
    // A frame may be split anywhere.
    let (mut channel, mut peer) = against(&[0, 3]);
    for byte in [0, 0, 9, 8, 7, 0, 1, 0, 0, 6] {
        peer.write_all(&[byte]).unwrap();
    }
    let mut bytes = [0; 4];
    channel.recv(&mut bytes).unwrap();
    assert_eq!(bytes, [9, 8, 7, 6]);
}

#[test]
fn a_plain_listener_survives_strangers() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let _silent = TcpStream::connect(address).unwrap();
    let mut open = Vec::new();
    let mut say = |bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(bytes).unwrap();
        open.push(stream);
    };
    say(b"GET / HTTP/1.1\r\n\r\n");
    say(b"\x16\x03\x01\x02\x00\x01");
    say(b"\x89volery\n\x01\0");
    say(b"\x00");
    drop(TcpStream::connect(address).unwrap());
    let mut why = Vec::new();
    let mut peer = None;
    thread::scope(|scope| {
        // The listener hears the strangers first.
        let connecting = scope.spawn(move || {
            thread::sleep(TIMEOUT);
            tcp::connect(address, patience()).unwrap()
        });
        let mut here = listener
            .accept_channel(patience(), |refusal| why.push(refusal.error.to_string()))
            .unwrap();
        let mut there = connecting.join().unwrap();
        exchange(&mut here, &mut there).unwrap();
        peer = Some((here, there));
    });
    let count = |what: &str| why.iter().filter(|why| why.contains(what)).count();
    assert_eq!(count("does not speak volery"), 2, "{why:?}");
    assert_eq!(count("speaks TLS"), 1, "{why:?}");
    assert_eq!(count("version of volery is another"), 1, "{why:?}");
    assert_eq!(count("closed the connection"), 1, "{why:?}");
    // A refused connection is closed.
    open[0].set_read_timeout(Some(LONG)).unwrap();
    let mut rest = Vec::new();
    let _ = open[0].read_to_end(&mut rest);
}

#[test]
fn a_name_is_resolved_until_the_wait_ends() {
    let patience = Patience { wait: Duration::from_millis(50), ..TIMEOUT.into() };
    let error = tcp::connect("no-such-name.invalid:7000", patience.clone()).err().unwrap();
    assert!(matches!(&error, Error::TimedOut(why) if why.contains("did not resolve")), "{error:?}");
    let error = tcp::connect("localhost", patience).err().unwrap();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
}

#[test]
fn a_party_to_which_a_long_message_comes_slowly_shows_life() {
    let (mut channel, mut peer) = against(&[0, 30, 0, 0]);
    peer.set_read_timeout(Some(LONG)).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| channel.recv(&mut [0; 30]).unwrap());
        // Thirty bytes in three times the peer's timeout, which is a second here.
        for _ in 0..30 {
            thread::sleep(Duration::from_millis(100));
            peer.write_all(&[7]).unwrap();
        }
    });
    drop(channel);
    let mut heard = Vec::new();
    peer.read_to_end(&mut heard).unwrap();
    let beats = heard[GREETING.len()..].chunks(4).filter(|frame| *frame == [1, 0, 0, 0]).count();
    // One in each quarter of a second.
    assert!((4..=13).contains(&beats), "{beats} heartbeats");
}

#[test]
fn a_proxy_whose_listener_comes_later_is_tried_again() {
    let proxy = Listener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap();
    thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(address, patience()).unwrap());
        for _ in 0..3 {
            drop(proxy.accept(LONG).unwrap());
        }
        let mut here = proxy.accept_channel(patience(), |_| ()).unwrap();
        exchange(&mut here, &mut connecting.join().unwrap()).unwrap();
    });
    let leaving = Patience { wait: Duration::from_millis(300), ..patience() };
    thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(address, leaving).err().unwrap());
        while let Ok(stream) = proxy.accept(TIMEOUT) {
            drop(stream);
        }
        let error = connecting.join().unwrap();
        let is_proxy = matches!(&error, Error::TimedOut(why) if why.contains("as by a proxy"));
        assert!(is_proxy, "{error:?}");
    });
}

/// A connection like a browser's, with a relay in between: a stream of the caller's own to a party
/// on TCP.
#[test]
fn a_stream_of_the_caller_reaches_a_party_on_tcp() {
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut channel = listener.accept_channel(LONG, |_| ()).unwrap();
            let mut bytes = vec![0; 300_000];
            channel.recv(&mut bytes).unwrap();
            channel.send(&bytes).unwrap();
            channel.flush().unwrap();
            assert!(matches!(channel.recv(&mut [0]), Err(Error::Disconnected)));
        });
        let stream = tcp::Stream::connect(address, LONG).unwrap();
        let mut channel = framed(stream, LONG).unwrap();
        channel.send(&vec![7; 300_000]).unwrap();
        let mut back = vec![0; 300_000];
        channel.recv(&mut back).unwrap();
        assert!(back.iter().all(|&byte| byte == 7));
    });
}
