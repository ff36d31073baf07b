//! Proxies: what a party asks of one, and what it takes from one. `python/tests/test_proxies.py`
//! has runs through them.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use volery_channel::Error;
use volery_channel::tcp::{self, Listener, Patience, Route};

use crate::{LONG, SHORT};

fn route(peer: &str, proxy: &str) -> Route {
    Route { address: peer.to_owned(), proxy: Some(proxy.parse().unwrap()) }
}

/// The error of a party whose proxy expects and answers these bytes in turn, on one connection.
fn refused(url: &str, script: &[(&[u8], &[u8])]) -> Error {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let route = route("127.0.0.1:7", &format!("{url}{}", proxy.local_addr().unwrap()));
    thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(route, LONG).err().unwrap());
        let (mut stream, _) = proxy.accept().unwrap();
        for (expected, answer) in script {
            let mut asked = vec![0; expected.len()];
            stream.read_exact(&mut asked).unwrap();
            assert_eq!(asked.escape_ascii().to_string(), expected.escape_ascii().to_string());
            // The party has seen enough of a long answer.
            let _ = stream.write_all(answer);
        }
        connecting.join().unwrap()
    })
}

#[test]
fn an_answer_that_no_proxy_gives_ends_the_wait() {
    let connect: &[u8] = b"CONNECT 127.0.0.1:7 HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\r\n";
    let login = b"CONNECT 127.0.0.1:7 HTTP/1.1\r\nHost: 127.0.0.1:7\r\n\
        Proxy-Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==\r\n\r\n";
    let long = [b"HTTP/1.1 200 OK\r\nX: ".to_vec(), vec![b'x'; 1 << 15]].concat();
    let user: &[u8] = b"\x01\x07Aladdin\x0bopen sesame";
    let [http, socks] = ["http://Aladdin:open%20sesame@", "socks5://Aladdin:open%20sesame@"];
    let (hello, both): (&[u8], &[u8]) = (&[5, 1, 0], &[5, 2, 0, 2]);
    for (url, script, what) in [
        ("http://", &[(connect, &b"SSH-2.0-x\r\n"[..])][..], "as a proxy of its scheme"),
        ("http://", &[(connect, &long)], "as a proxy of its scheme"),
        ("http://", &[(connect, b"HTTP/1.1 \xff\r\n\r\n")], "as a proxy of its scheme"),
        (http, &[(login, b"HTTP/1.1 407 No\r\n\r\n")], "407: it does not accept the login"),
        ("socks5://", &[(hello, b"HTTP")], "as a proxy of its scheme"),
        ("socks5://", &[(hello, &[5, 255])], "requires a login"),
        (socks, &[(both, &[5, 255])], "takes no user"),
        (socks, &[(both, &[5, 2]), (user, &[1, 1])], "does not accept the login"),
        ("socks5://", &[(hello, &[5, 0]), (&[5, 1, 0, 1], &[5, 2, 0, 1])], "its rules forbid it"),
        ("socks5://", &[(hello, &[5, 0]), (&[5, 1, 0, 1], &[5, 0, 0, 9])], "of its scheme"),
    ] {
        let error = refused(url, script);
        let text = format!("{error} {error:?}");
        assert!(matches!(error, Error::Proxy(..)) && text.contains(what), "{what}: {text}");
        assert!(!text.contains("sesame"), "{text}");
    }
}

#[test]
fn without_tls_peer_and_proxy_are_on_this_machine() {
    for (peer, proxy) in [
        ("192.0.2.1:7", "http://127.0.0.1:1"),
        ("127.0.0.1:7", "http://192.0.2.1:1"),
        ("192.0.2.1:7", "socks5://127.0.0.1:1"),
    ] {
        let error = tcp::connect(route(peer, proxy), SHORT).err().unwrap();
        assert!(matches!(error, Error::NotLoopback(_)), "{peer} by {proxy}: {error}");
    }
    // A request has one peer and no other line.
    for peer in ["peer", "a\r\nX: b:7", "a b:7", ":7", "user@a:7"] {
        let error = tcp::connect(route(peer, "http://127.0.0.1:1"), SHORT).err().unwrap();
        assert!(error.to_string().contains("HOST:PORT"), "{peer}: {error}");
    }
}

/// The kernel takes connections for a program that never does.
#[test]
fn a_silent_address_leaves_time_for_the_next_one() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let listener = Listener::bind("127.0.0.1:0").unwrap();
    let both = [silent.local_addr().unwrap(), listener.local_addr().unwrap()];
    let patience = Patience { wait: LONG, ..(SHORT * 4).into() };
    thread::scope(|scope| {
        let connecting = scope.spawn(|| tcp::connect(&both[..], patience.clone()).unwrap());
        listener.accept_channel(LONG, |_| ()).unwrap();
        connecting.join().unwrap();
    });
    // Alone it has all of the time, and then the call fails.
    let error = tcp::connect(both[0], patience).err().unwrap();
    assert!(matches!(error, Error::TimedOut(_)), "{error:?}");
}
