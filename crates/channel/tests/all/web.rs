//! Browsers at a bridge and at a service, over real sockets.

pub(crate) mod browser;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use tungstenite::Message;
use tungstenite::error::Error as WsError;
use tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use volery_channel::service::{self, Service};
use volery_channel::web::{
    Bridge, Certificate, Event, Files, Limits, Origin, Settings, Target, Token, code,
};
use volery_channel::{Cancel, Error, tcp};

use self::browser::{Browser, Page, connect, frame, own, until_close};
use crate::{End, LONG, SHORT, pattern};

const BINARY: OpCode = OpCode::Data(Data::Binary);
const MORE: OpCode = OpCode::Data(Data::Continue);

const LIMITS: Limits = Limits { connections: 8, wait: SHORT, idle: LONG };

fn open() -> Settings {
    Settings { certificate: None, origins: Vec::new(), files: None, admits: Arc::new(|_| true) }
}

/// Runs `body` against a bridge to `target`; what the bridge has reported.
fn with(
    settings: Settings,
    limits: Limits,
    target: Target,
    body: impl FnOnce(SocketAddr),
) -> Vec<Event> {
    let bridge = Bridge::bind("127.0.0.1:0", settings, target).unwrap();
    let address: SocketAddr = bridge.addresses().parse().unwrap();
    let (stop, events) = (Cancel::default(), Mutex::new(Vec::new()));
    thread::scope(|scope| {
        let (stop, events) = (&stop, &events);
        let report = move |event| events.lock().unwrap().push(event);
        let serving = scope.spawn(move || bridge.serve(limits, stop, &report));
        let end = End(stop);
        body(address);
        drop(end);
        serving.join().unwrap();
    });
    events.into_inner().unwrap()
}

/// A native party that does `serve` with each connection.
fn native(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Target {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serve = Arc::new(serve);
    // It waits for connections as long as the process lives.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let serve = Arc::clone(&serve);
            thread::spawn(move || serve(stream.unwrap()));
        }
    });
    Target { address, secured: None }
}

/// A native party that reads to the end of each connection, after a while, and tells what came.
fn reader(after: Duration) -> (Target, mpsc::Receiver<Vec<u8>>) {
    let (told, end) = mpsc::channel();
    let target = native(move |mut stream| {
        thread::sleep(after);
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        told.send(bytes).unwrap();
    });
    (target, end)
}

/// Gives back everything, until the end of the stream.
fn echo(mut stream: TcpStream) {
    let mut bytes = vec![0; 70_001];
    while let Ok(count @ 1..) = stream.read(&mut bytes) {
        if stream.write_all(&bytes[..count]).is_err() {
            return;
        }
    }
}

fn take(browser: &mut Browser, count: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    while bytes.len() < count {
        match browser.read().unwrap() {
            Message::Binary(more) => bytes.extend_from_slice(&more),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(bytes.len(), count);
    bytes
}

fn send(browser: &mut Browser, bytes: &[u8]) {
    browser.send(Message::Binary(bytes.to_vec().into())).unwrap();
}

fn raw(browser: &mut Browser, bytes: &[u8]) {
    browser.get_mut().write_all(bytes).unwrap();
}

fn close_code(browser: &mut Browser) -> u16 {
    until_close(browser).1.unwrap().code.into()
}

#[test]
fn a_byte_stream_passes_whatever_the_messages_are() {
    let events = with(open(), LIMITS, native(echo), |address| {
        let mut browser = own(address, None);
        for size in [1, 2, 125, 126, 127, 65_535, 65_536, 65_537, 262_145, 1 << 20] {
            let bytes = pattern(size, 3);
            send(&mut browser, &bytes);
            assert!(take(&mut browser, size) == bytes, "{size}");
        }
        // One byte a message, an empty message, a ping between them.
        let bytes = pattern(3000, 5);
        for (number, byte) in bytes.iter().enumerate() {
            send(&mut browser, &[*byte]);
            if number % 1000 == 0 {
                send(&mut browser, &[]);
            }
        }
        assert_eq!(take(&mut browser, 3000), bytes);
        browser.send(Message::Ping("x".into())).unwrap();
        assert_eq!(browser.read().unwrap(), Message::Pong("x".into()));
        // Both directions at the same time, more than any buffer holds.
        let bytes = pattern(24 << 20, 7);
        let mut writer = browser.get_ref().try_clone().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                for piece in bytes.chunks(1 << 20) {
                    writer.write_all(&frame(piece, BINARY, true)).unwrap();
                }
            });
            assert!(take(&mut browser, bytes.len()) == bytes);
        });
        // The end from the page, after which the party ends, too.
        browser.close(None).unwrap();
        assert!(until_close(&mut browser).0.is_empty());
    });
    let [Event::Met { token: None, .. }, Event::Ended { bytes, reason, .. }] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(bytes[0] == bytes[1] && bytes[0] > 24 << 20, "{bytes:?}");
    assert!(reason.is_none(), "{reason:?}");
}

#[test]
fn fragments_are_one_message() {
    with(open(), LIMITS, native(echo), |address| {
        let mut browser = own(address, None);
        let bytes = pattern(1000, 1);
        raw(&mut browser, &frame(&bytes[..10], BINARY, false));
        raw(&mut browser, &frame(&[], MORE, false));
        raw(&mut browser, &frame(b"y", OpCode::Control(Control::Ping), true));
        raw(&mut browser, &frame(&bytes[10..400], MORE, false));
        raw(&mut browser, &frame(&bytes[400..], MORE, true));
        assert_eq!(browser.read().unwrap(), Message::Pong("y".into()));
        assert_eq!(take(&mut browser, 1000), bytes);
    });
}

#[test]
fn what_breaks_the_rules_ends_the_connection() {
    let text = frame(b"hello", OpCode::Data(Data::Text), true);
    let long = frame(&vec![0; (1 << 20) + 1], BINARY, true);
    // Its length only.
    let huge = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    let mut many = frame(&vec![0; 1 << 19], BINARY, false);
    many.extend(frame(&vec![0; 1 << 19], MORE, false));
    many.extend(frame(&[0], MORE, false));
    let mut reserved = frame(b"abc", BINARY, true);
    reserved[0] |= 0x40;
    let begun_twice = [frame(&[0], BINARY, false), frame(&[0], BINARY, true)].concat();
    let cases = [
        (&text[..], code::TEXT),
        (&long, code::TOO_LONG),
        (&huge, code::TOO_LONG),
        (&many, code::TOO_LONG),
        // Not masked.
        (&[0x82, 1, 7], code::PROTOCOL),
        (&reserved, code::PROTOCOL),
        (&frame(&[0], MORE, true), code::PROTOCOL),
        (&begun_twice, code::PROTOCOL),
        (&frame(&[0; 126], OpCode::Control(Control::Ping), true), code::PROTOCOL),
        (b"GET / HTTP/1.1\r\n\r\n", code::PROTOCOL),
        // Text that is no UTF-8.
        (&frame(&[0xff], OpCode::Data(Data::Text), true), code::PROTOCOL),
    ];
    // All at the same time: each waits for a moment at its end.
    let check = |bytes: &[u8], expected| {
        let (target, end) = reader(Duration::ZERO);
        let events = with(open(), LIMITS, target, |address| {
            let mut browser = own(address, None);
            send(&mut browser, b"before");
            raw(&mut browser, bytes);
            assert_eq!(close_code(&mut browser), expected, "{:?}", &bytes[..3]);
            drop(browser);
            // The party gets what came before, and the end of its stream.
            assert_eq!(end.recv_timeout(LONG).unwrap(), b"before");
        });
        let ended = events.iter().find_map(|event| match event {
            Event::Ended { reason, .. } => reason.as_ref(),
            _ => None,
        });
        assert!(matches!(ended, Some(Error::PeerMisbehaved(_))), "{ended:?}");
    };
    thread::scope(|scope| {
        for (bytes, expected) in cases {
            let check = &check;
            scope.spawn(move || check(bytes, expected));
        }
    });
}

#[test]
fn the_ends_of_both_sides_reach_each_other() {
    // The party ends: everything that it sent arrives, then code 1000.
    let bytes = pattern(5_000_001, 9);
    let sent = bytes.clone();
    let target = native(move |mut stream| stream.write_all(&sent).unwrap());
    with(open(), LIMITS, target, |address| {
        let mut browser = own(address, None);
        let (come, frame) = until_close(&mut browser);
        assert!(come == bytes);
        assert_eq!(u16::from(frame.unwrap().code), code::END);
    });
    // The page ends: everything that it sent arrives, then the end.
    // Slower than the page.
    let (target, end) = reader(SHORT);
    with(open(), LIMITS, target, |address| {
        let mut browser = own(address, None);
        for piece in bytes.chunks(1 << 20) {
            send(&mut browser, piece);
        }
        browser.close(None).unwrap();
        assert!(end.recv_timeout(LONG).unwrap() == bytes);
    });
    // The browser is gone without a word: the party finds the end, and the bridge says so.
    let (target, end) = reader(Duration::ZERO);
    let events = with(open(), LIMITS, target, |address| {
        let mut browser = own(address, None);
        send(&mut browser, b"abc");
        drop(browser);
        assert_eq!(end.recv_timeout(LONG).unwrap(), b"abc");
    });
    let is_gone =
        |event: &Event| matches!(event, Event::Ended { reason: Some(Error::Disconnected), .. });
    assert!(events.iter().any(is_gone), "{events:?}");
    // A page that is left closes with another code, which is not the end of the stream.
    let (target, end) = reader(Duration::ZERO);
    let events = with(open(), LIMITS, target, |address| {
        let mut browser = own(address, None);
        send(&mut browser, b"abc");
        let left = tungstenite::protocol::CloseFrame { code: 1001.into(), reason: "".into() };
        browser.close(Some(left)).unwrap();
        assert_eq!(end.recv_timeout(LONG).unwrap(), b"abc");
    });
    assert!(events.iter().any(is_gone), "{events:?}");
    // The party's connection breaks.
    let target = native(|mut stream| {
        stream.read_exact(&mut [0; 3]).unwrap();
        socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    });
    with(open(), LIMITS, target, |address| {
        let mut browser = own(address, None);
        send(&mut browser, b"abc");
        assert_eq!(close_code(&mut browser), code::BROKEN);
    });
}

#[test]
fn refusals_have_codes_of_their_own() {
    // There is no party.
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let absent = Target { address, secured: None };
    let events = with(open(), LIMITS, absent, |address| {
        let mut browser = own(address, None);
        let (_, frame) = until_close(&mut browser);
        let frame = frame.unwrap();
        assert_eq!(u16::from(frame.code), code::NOT_THERE);
        assert!(frame.reason.contains("not there"), "{frame:?}");
    });
    assert!(matches!(&events[..], [Event::Refused(one)] if one.address.ip().is_loopback()));
    // The party would be elsewhere, without TLS.
    let elsewhere = Target { address: "192.0.2.1:9".to_owned(), secured: None };
    let events = with(open(), LIMITS, elsewhere, |address| {
        assert_eq!(close_code(&mut own(address, None)), code::NOT_THERE);
    });
    let [Event::Refused(refused)] = &events[..] else {
        panic!("{events:?}");
    };
    assert!(matches!(refused.error, Error::NotLoopback(_)), "{refused:?}");
    // There are too many.
    let few = Limits { connections: 1, ..LIMITS };
    let events = with(open(), few, native(echo), |address| {
        let mut first = own(address, None);
        send(&mut first, b"1");
        take(&mut first, 1);
        assert_eq!(close_code(&mut own(address, None)), code::FULL);
        send(&mut first, b"2");
        take(&mut first, 1);
    });
    let is_full = |event: &Event| matches!(event, Event::Refused(one) if matches!(one.error, Error::Unavailable(_)));
    assert!(events.iter().any(is_full), "{events:?}");
    // No byte passes, though pings do.
    let impatient = Limits { idle: SHORT * 3, ..LIMITS };
    let events = with(open(), impatient, native(echo), |address| {
        let mut browser = own(address, None);
        let mut writer = browser.get_ref().try_clone().unwrap();
        let pinging = thread::spawn(move || {
            while writer.write_all(&frame(b"x", OpCode::Control(Control::Ping), true)).is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        assert_eq!(close_code(&mut browser), code::SILENT);
        let _ = browser.get_ref().shutdown(Shutdown::Both);
        pinging.join().unwrap();
    });
    let is_idle =
        |event: &Event| matches!(event, Event::Ended { reason: Some(Error::TimedOut(_)), .. });
    assert!(events.iter().any(is_idle), "{events:?}");
}

#[test]
fn only_known_tokens_are_let_in() {
    let [good, bad] = [(); 2].map(|()| Token::random().unwrap());
    let known = good.fingerprint();
    let settings = Settings {
        admits: Arc::new(move |token| token.is_some_and(|token| token.is_same(&known))),
        ..open()
    };
    let events = with(settings, LIMITS, native(echo), |address| {
        for wrong in [None, Some(&**bad.text()), Some("x"), Some("")] {
            let (_, frame) = until_close(&mut own(address, wrong));
            let frame = frame.unwrap();
            assert_eq!(u16::from(frame.code), code::TOKEN);
            assert!(frame.reason.contains("access token"), "{frame:?}");
        }
        let mut browser = own(address, Some(&good.text()));
        send(&mut browser, b"1");
        assert_eq!(take(&mut browser, 1), b"1");
    });
    let refused = events.iter().filter(
        |event| matches!(event, Event::Refused(one) if matches!(one.error, Error::Unauthenticated(_))),
    );
    assert_eq!(refused.count(), 4);
    let met: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Met { token, .. } => Some(*token),
            _ => None,
        })
        .collect();
    assert_eq!(met, [Some(known)]);
}

#[test]
fn a_token_does_not_take_all_places() {
    let limits = Limits { connections: 64, ..LIMITS };
    with(open(), limits, native(echo), |address| {
        let [one, other] = [(); 2].map(|()| Token::random().unwrap().text());
        // Connected, or told that there is no place.
        let come = |token: Option<&str>| {
            let mut browser = own(address, token);
            send(&mut browser, b"1");
            match browser.read().unwrap() {
                Message::Close(frame) => {
                    assert_eq!(u16::from(frame.unwrap().code), code::FULL);
                    let _ = browser.flush();
                    None
                }
                _ => Some(browser),
            }
        };
        let mut all: Vec<_> = (0..8).map(|_| come(Some(&one)).unwrap()).collect();
        assert!(come(Some(&one)).is_none());
        for token in [Some(&**other), None] {
            let others: Vec<_> = (0..8).map(|_| come(token).unwrap()).collect();
            drop(others);
        }
        // A place of its own that is free again.
        drop(all.pop());
        let start = std::time::Instant::now();
        while come(Some(&one)).is_none() {
            assert!(start.elapsed() < LONG);
            thread::sleep(Duration::from_millis(5));
        }
    });
}

#[test]
fn only_pages_that_may_connect() {
    let settings =
        Settings { origins: vec!["https://match.example".parse::<Origin>().unwrap()], ..open() };
    let events = with(settings, LIMITS, native(echo), |address| {
        let status = |origin: &str, protocols| {
            let page = Page { origin: Some(origin), protocols };
            match connect(address, page) {
                Ok(_) => 101,
                Err(WsError::Http(answer)) => answer.status().as_u16(),
                Err(error) => panic!("{error}"),
            }
        };
        let ours = Some("volery.1");
        assert_eq!(status("https://match.example", ours), 101);
        assert_eq!(status(&format!("http://{address}"), Some("other, volery.1")), 101);
        assert_eq!(status("https://evil.example", ours), 403);
        assert_eq!(status("null", ours), 403);
        assert_eq!(status("https://match.example", None), 400);
        assert_eq!(status("https://match.example", Some("volery.2")), 400);
        // A name of another site that leads here.
        let port = address.port();
        let rebound = format!(
            "GET / HTTP/1.1\r\nHost: evil.example:{port}\r\nOrigin: http://evil.example:{port}\r\n{UPGRADE}"
        );
        assert!(http(address, &rebound).starts_with("HTTP/1.1 403 "));
        let none = format!("GET / HTTP/1.1\r\nHost: {address}\r\n{UPGRADE}");
        assert!(http(address, &none).starts_with("HTTP/1.1 403 "));
    });
    let refused = events.iter().filter(
        |event| matches!(event, Event::Refused(one) if matches!(one.error, Error::Unauthenticated(_))),
    );
    assert_eq!(refused.count(), 4);
}

/// The rest of a request for a WebSocket connection.
const UPGRADE: &str = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\
    Sec-WebSocket-Protocol: volery.1\r\n\r\n";

/// Everything that the server answers to these bytes, until it closes.
fn http(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_ref()).unwrap();
    let mut answer = Vec::new();
    // A server that refuses a long request may reset the connection.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[test]
fn what_is_not_http_is_refused() {
    with(open(), LIMITS, native(echo), |address| {
        let host = format!("Host: {address}\r\nOrigin: http://{address}\r\n");
        let upgrade = |change: &dyn Fn(&str) -> String| {
            http(address, format!("GET / HTTP/1.1\r\n{host}{}", change(UPGRADE)))
        };
        let without = |line: &str| {
            let start = UPGRADE.find(line).unwrap();
            let end = start + UPGRADE[start..].find("\r\n").unwrap() + 2;
            format!("{}{}", &UPGRADE[..start], &UPGRADE[end..])
        };
        for (answer, status) in [
            (http(address, "hello\r\n\r\n"), "400"),
            (http(address, "GET / HTTP/1.0\r\n\r\n"), "400"),
            (http(address, b"\x16\x03\x01\x02\x00\r\n\r\n"), "400"),
            (http(address, "POST / HTTP/1.1\r\n\r\n"), "405"),
            (http(address, "GET / HTTP/1.1\r\n\r\n"), "404"),
            (http(address, "GET * HTTP/1.1\r\n\r\n"), "404"),
            (http(address, format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(65))), "400"),
            (http(address, format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "x".repeat(18_000))), "431"),
            (upgrade(&|_| without("Sec-WebSocket-Version")), "426"),
            (upgrade(&|rest| rest.replace(": 13", ": 12")), "426"),
            (upgrade(&|_| without("Sec-WebSocket-Key")), "400"),
            (upgrade(&|rest| rest.replace("AAAA==", "AAA=")), "400"),
            (upgrade(&|_| without("Connection")), "400"),
            (upgrade(&|_| without("Sec-WebSocket-Protocol")), "400"),
            (upgrade(&|rest| format!("Origin: null\r\n{rest}")), "400"),
            (upgrade(&|rest| format!("Host: a\r\n{rest}")), "400"),
        ] {
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{status}: {answer}");
            assert!(answer.contains("\r\nX-Content-Type-Options: nosniff\r\n"), "{answer}");
        }
        // The head in pieces of one byte, and frames right behind it.
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        for byte in format!("GET / HTTP/1.1\r\n{host}{UPGRADE}").as_bytes() {
            stream.write_all(&[*byte]).unwrap();
        }
        let mut head = vec![0; 12];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(head, b"HTTP/1.1 101");
        let mut stream = TcpStream::connect(address).unwrap();
        let mut request = format!("GET / HTTP/1.1\r\n{host}{UPGRADE}").into_bytes();
        request.extend(frame(b"early", BINARY, true));
        stream.write_all(&request).unwrap();
        let mut answer = Vec::new();
        let mut bytes = [0; 1000];
        while !answer.ends_with(b"\x82\x05early") {
            let count = stream.read(&mut bytes).unwrap();
            assert!(count > 0);
            answer.extend_from_slice(&bytes[..count]);
        }
    });
}

/// Requests and frames with bytes changed, lost and repeated: each gives an answer or an end, and
/// no panic, which would end the scope of the bridge's threads.
#[test]
fn damaged_bytes_end_a_connection_and_nothing_else() {
    let mut state = 1_u64;
    let mut draw = move |most: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        (state >> 33) as usize % most
    };
    with(open(), LIMITS, native(echo), |address| {
        let head =
            format!("GET / HTTP/1.1\r\nHost: {address}\r\nOrigin: http://{address}\r\n{UPGRADE}");
        let ping = OpCode::Control(Control::Ping);
        let frames = [
            frame(&pattern(300, 1), BINARY, true),
            frame(b"ab", BINARY, false),
            frame(b"x", ping, true),
            frame(b"cd", MORE, true),
            frame(&[3, 232], OpCode::Control(Control::Close), true),
        ]
        .concat();
        for case in 0..120 {
            let (mut request, mut rest) = (head.clone().into_bytes(), frames.clone());
            let damaged = if case % 2 == 0 { &mut request } else { &mut rest };
            for _ in 0..=draw(3) {
                let at = draw(damaged.len());
                match draw(4) {
                    0 => damaged[at] ^= 1 << draw(8),
                    1 => damaged[at] = draw(256) as u8,
                    2 => drop(damaged.drain(at..damaged.len().min(at + 1 + draw(8)))),
                    _ => damaged.insert(at, draw(256) as u8),
                }
            }
            request.append(&mut rest);
            let mut stream = TcpStream::connect(address).unwrap();
            // The bridge may have closed it.
            let _ = stream.write_all(&request);
            let _ = stream.shutdown(Shutdown::Write);
            let _ = stream.read_to_end(&mut Vec::new());
        }
        let mut browser = own(address, None);
        send(&mut browser, b"still here");
        assert_eq!(take(&mut browser, 10), b"still here");
    });
}

#[test]
fn a_silent_browser_is_not_waited_for() {
    let impatient = Limits { idle: SHORT, ..LIMITS };
    let events = with(open(), impatient, native(echo), |address| {
        let mut silent = TcpStream::connect(address).unwrap();
        silent.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        assert_eq!(silent.read(&mut [0]).unwrap_or(0), 0);
        // Nor one that sends a byte now and then.
        let mut slow = TcpStream::connect(address).unwrap();
        while slow.write_all(b"x").is_ok() {
            thread::sleep(SHORT / 4);
        }
    });
    let slow = |event: &Event| matches!(event, Event::Refused(one) if matches!(one.error, Error::TimedOut(_)));
    assert_eq!(events.iter().filter(|event| slow(event)).count(), 2, "{events:?}");
}

#[test]
fn files_are_served_and_nothing_outside_their_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("page");
    fs::create_dir_all(folder.join("pkg/empty")).unwrap();
    fs::create_dir_all(folder.join(".git")).unwrap();
    let large = pattern(3_000_003, 2);
    for (name, text) in [
        ("page/index.html", &b"<p>hello"[..]),
        ("page/main.js", b"export {}"),
        ("page/style.css", b""),
        ("page/pkg/volery_bg.wasm", &large),
        ("page/data.xyz", b"?"),
        ("page/.env", b"secret"),
        ("page/.git/config", b"secret"),
        ("outside.txt", b"secret"),
    ] {
        fs::write(place.path().join(name), text).unwrap();
    }
    #[cfg(unix)]
    for (to, link) in [("../outside.txt", "leak.txt"), ("..", "up"), ("index.html", "alias.html")] {
        std::os::unix::fs::symlink(to, folder.join(link)).unwrap();
    }
    let settings = Settings { files: Some(Files::new(&folder).unwrap()), ..open() };
    assert!(Files::new(&folder.join("index.html")).is_err());
    assert!(Files::new(&folder.join("absent")).is_err());
    with(settings, LIMITS, native(echo), |address| {
        let get = |target: &str| {
            let mut stream = TcpStream::connect(address).unwrap();
            let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).unwrap();
            let split = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
            let head = String::from_utf8(answer[..split + 2].to_vec()).unwrap();
            (head, answer[split + 4..].to_vec())
        };
        for (target, kind, body) in [
            ("/", "text/html; charset=utf-8", &b"<p>hello"[..]),
            ("/index.html?a=../b", "text/html; charset=utf-8", b"<p>hello"),
            ("/main.js", "text/javascript; charset=utf-8", b"export {}"),
            ("/style.css", "text/css; charset=utf-8", b""),
            ("/pkg/volery_bg.wasm", "application/wasm", &large),
            ("/data.xyz", "application/octet-stream", b"?"),
        ] {
            let (head, come) = get(target);
            assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{target}: {head}");
            for line in [
                &format!("Content-Type: {kind}"),
                &format!("Content-Length: {}", body.len()),
                "Cross-Origin-Opener-Policy: same-origin",
                "Cross-Origin-Embedder-Policy: require-corp",
                "X-Content-Type-Options: nosniff",
                "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; \
                 style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; \
                 worker-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; \
                 frame-ancestors 'none'",
            ] {
                assert!(head.contains(&format!("\r\n{line}\r\n")), "{line}: {head}");
            }
            assert!(come == body, "{target}");
        }
        #[cfg(unix)]
        assert_eq!(get("/alias.html").1, b"<p>hello");
        for target in [
            "/absent",
            "/pkg",
            "/pkg/",
            "/pkg/empty/",
            "//index.html",
            "/./index.html",
            "/../outside.txt",
            "/pkg/../../outside.txt",
            "/%2e%2e/outside.txt",
            "/..%2foutside.txt",
            "/..\\outside.txt",
            "/.env",
            "/.git/config",
            "/leak.txt",
            "/up/outside.txt",
            "index.html",
            "http://x/index.html",
            "/index.html/",
            "/index%2ehtml",
        ] {
            let (head, body) = get(target);
            assert!(head.starts_with("HTTP/1.1 404 "), "{target}: {head}");
            assert!(!body.windows(6).any(|six| six == b"secret"), "{target}");
        }
    });
}

/// Neither side makes the bridge hold more than its queues: a side that does not read stops the
/// other one.
#[test]
fn a_slow_reader_does_not_grow_memory() {
    /// Writes until nothing is taken for a while; how much was.
    fn write_on(mut stream: &TcpStream, piece: &[u8]) -> u64 {
        stream.set_write_timeout(Some(SHORT * 5)).unwrap();
        let mut sent = 0;
        while sent < 256 << 20 {
            match stream.write(piece) {
                Ok(count) => sent += count as u64,
                Err(_) => break,
            }
        }
        sent
    }
    // The queue of the bridge, what it reads at a time, and the buffers of four sockets.
    const MOST: u64 = 64 << 20;
    let sent = Arc::new(AtomicU64::new(u64::MAX));
    let told = Arc::clone(&sent);
    let target = native(move |stream| {
        let count = write_on(&stream, &vec![0; 1 << 16]);
        told.store(count, Ordering::SeqCst);
        let _ = (&stream).read(&mut [0]);
    });
    with(open(), LIMITS, target, |address| {
        let browser = own(address, None);
        let start = std::time::Instant::now();
        while sent.load(Ordering::SeqCst) == u64::MAX {
            assert!(start.elapsed() < LONG);
            thread::sleep(Duration::from_millis(10));
        }
        drop(browser);
    });
    let count = sent.load(Ordering::SeqCst);
    assert!((1 << 16..MOST).contains(&count), "{count}");
    // The other way round.
    let (hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let target = native(move |stream| {
        let _ = held.lock().unwrap().recv();
        drop(stream);
    });
    with(open(), LIMITS, target, |address| {
        let browser = own(address, None);
        let count = write_on(browser.get_ref(), &frame(&vec![0; 1 << 20], BINARY, true));
        assert!((1 << 20..MOST).contains(&count), "{count}");
        drop(hold);
    });
}

/// The first bytes of a peer without a timeout.
const GREETING: &[u8] = b"\x89volery\x01\0\0\0\0";

/// A service for anyone, which does `serve` with each client; its address, and what ends when the
/// service does.
fn service_for(
    limits: service::Limits,
    stop: &Cancel,
    serve: impl Fn(service::Client) + Send + Sync + 'static,
) -> (SocketAddr, thread::JoinHandle<Vec<Error>>) {
    let service = Service::bind_web("127.0.0.1:0", open()).unwrap();
    let address: SocketAddr = service.addresses().parse().unwrap();
    let stop = stop.clone();
    let serving = thread::spawn(move || {
        let refused = Mutex::new(Vec::new());
        let refuse = |one: tcp::Refusal| refused.lock().unwrap().push(one.error);
        service.serve(limits, &stop, &serve, &refuse).unwrap();
        refused.into_inner().unwrap()
    });
    (address, serving)
}

/// A browser that breaks the rules while this side waits for it in a write, and looks by the same
/// thread whether it is alive.
#[test]
fn a_writer_does_not_wait_for_itself() {
    for wrong in [frame(b"hello", OpCode::Data(Data::Text), true), frame(&[0], MORE, true)] {
        let limits = service::Limits { connections: 1, timeout: SHORT * 2, grace: SHORT };
        let (told, end) = mpsc::channel();
        let stop = Cancel::default();
        let (address, serving) = service_for(limits, &stop, move |client| {
            let mut channel = client.channel;
            let bytes = vec![0; 16 << 20];
            let sent = channel.send(&bytes).and_then(|()| channel.flush());
            // Closing it ends, too.
            drop(channel);
            told.send(sent).unwrap();
        });
        let mut browser = own(address, None);
        let greeting = frame(GREETING, BINARY, true);
        raw(&mut browser, &[greeting, wrong].concat());
        assert!(end.recv_timeout(LONG).unwrap().is_err());
        stop.cancel();
        serving.join().unwrap();
    }
}

/// Sends `first`, then `next` now and then; whether the connection has ended before it was sent
/// many times.
fn drip(mut stream: &TcpStream, first: &[u8], next: &[u8]) -> bool {
    let mut sent = stream.write_all(first);
    for _ in 0..LONG.as_millis() / (SHORT / 4).as_millis() {
        if sent.is_err() {
            return true;
        }
        thread::sleep(SHORT / 4);
        sent = stream.write_all(next);
    }
    false
}

/// A browser whose message never becomes whole is no other than a silent one.
#[test]
fn a_browser_that_drips_is_not_waited_for() {
    let impatient = Limits { idle: SHORT * 3, ..LIMITS };
    let full = Limits { connections: 0, ..LIMITS };
    let nobody = Settings { admits: Arc::new(|_| false), ..open() };
    // The header of a message of 1 MiB, whose bytes come one by one; a message without an end.
    let mut header = frame(&vec![0; 1 << 20], BINARY, true);
    header.truncate(14);
    let begun = frame(&[], BINARY, false);
    let more = frame(&[], MORE, false);
    let drips = [(&header[..], &[0][..]), (&begun[..], &more[..])];
    let greeted = frame(GREETING, BINARY, true);
    let greeting = &greeted[..];
    let all = |address: SocketAddr, greeting: &[u8], expected: Option<u16>| {
        thread::scope(|scope| {
            for (first, next) in drips {
                scope.spawn(move || {
                    let mut browser = own(address, None);
                    let stream = browser.get_ref().try_clone().unwrap();
                    let first = [greeting, first].concat();
                    let dripping = thread::scope(|scope| {
                        let dripping = scope.spawn(|| drip(&stream, &first, next));
                        // The close frame is not answered.
                        let come = loop {
                            match browser.read() {
                                Ok(Message::Close(frame)) => {
                                    break frame.map(|one| one.code.into());
                                }
                                Ok(_) => {}
                                Err(_) => break None,
                            }
                        };
                        assert_eq!(come, expected);
                        dripping.join().unwrap()
                    });
                    assert!(dripping, "{expected:?}");
                });
            }
        });
    };
    thread::scope(|scope| {
        let all = &all;
        for (settings, limits, expected) in [
            (open(), impatient, code::SILENT),
            (open(), full, code::FULL),
            (nobody, LIMITS, code::TOKEN),
        ] {
            scope.spawn(move || {
                with(settings, limits, native(echo), |address| {
                    all(address, &[], Some(expected));
                })
            });
        }
        // A service without a place, for one that has greeted; and one that waits for a greeting.
        for (greeting, timeout) in [(greeting, LONG), (&[], SHORT * 3)] {
            scope.spawn(move || {
                let limits = service::Limits { connections: 0, timeout, grace: SHORT };
                let stop = Cancel::default();
                let _end = End(&stop);
                let (address, _) = service_for(limits, &stop, |_| ());
                all(address, greeting, Some(code::END));
            });
        }
    });
}

#[test]
fn a_browser_that_is_cut_is_not_waited_for() {
    let limits = service::Limits { connections: 1, timeout: LONG, grace: LONG };
    let stop = Cancel::default();
    let (address, serving) = service_for(limits, &stop, |client| {
        assert_eq!(client.channel.description(), "WebSocket");
        client.cut();
    });
    // A page that speaks something else.
    let mut foreign = own(address, None);
    send(&mut foreign, b"hello, world");
    until_close(&mut foreign);
    let mut browser = own(address, None);
    raw(&mut browser, &frame(GREETING, BINARY, true));
    // No close frame comes: it would be waited for that this side answers it.
    let end = loop {
        match browser.read() {
            Ok(Message::Binary(_)) => {}
            end => break end,
        }
    };
    assert!(end.is_err(), "{end:?}");
    stop.cancel();
    let refused = serving.join().unwrap();
    assert!(matches!(refused[..], [Error::PeerMisbehaved(_)]), "{refused:?}");
}

#[test]
fn browsers_come_by_tls_with_a_certificate_that_they_accept() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let (chain, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let certificate = Certificate::from_pem(chain.as_bytes(), key.as_bytes()).unwrap();
    let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let other_key = other.signing_key.serialize_pem();
    for (chain, key) in [
        ("", &*key),
        (&*chain, ""),
        (&*chain, "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"),
        ("-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", &*key),
        ("-----BEGIN CERTIFICATE-----\n?\n-----END CERTIFICATE-----\n", &*key),
        // Of another certificate.
        (&*chain, &*other_key),
    ] {
        let refused = Certificate::from_pem(chain.as_bytes(), key.as_bytes());
        assert!(matches!(refused, Err(Error::Identity(_))), "{refused:?}");
    }
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("index.html"), "over TLS").unwrap();
    let settings = Settings {
        certificate: Some(certificate),
        files: Some(Files::new(place.path()).unwrap()),
        ..open()
    };
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let config = Arc::new(config);
    let events = with(settings, LIMITS, native(echo), |address| {
        let secured = || {
            let name = "localhost".try_into().unwrap();
            let client = rustls::ClientConnection::new(Arc::clone(&config), name).unwrap();
            rustls::StreamOwned::new(client, TcpStream::connect(address).unwrap())
        };
        let mut file = secured();
        file.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
        let mut page = String::new();
        file.read_to_string(&mut page).unwrap();
        assert!(page.ends_with("\r\n\r\nover TLS"), "{page}");
        let page = Page { origin: Some("https://localhost:1"), protocols: Some("volery.1") };
        let mut request = browser::request(address, page);
        let host = tungstenite::http::HeaderValue::from_static("localhost:1");
        request.headers_mut().insert("Host", host);
        let (mut browser, _) = tungstenite::client(request, secured()).unwrap();
        let bytes = pattern(1 << 20, 6);
        browser.send(Message::Binary(bytes.clone().into())).unwrap();
        let mut come = Vec::new();
        while come.len() < bytes.len() {
            let Message::Binary(more) = browser.read().unwrap() else {
                panic!("no binary message");
            };
            come.extend_from_slice(&more);
        }
        assert!(come == bytes);
        browser.close(None).unwrap();
        // Not TLS.
        let answer = http(address, "GET / HTTP/1.1\r\n\r\n");
        assert!(!answer.contains("HTTP"), "{answer}");
    });
    let plain = events.iter().find_map(|event| match event {
        Event::Refused(one) => Some(&one.error),
        _ => None,
    });
    assert!(matches!(plain, Some(Error::PeerMisbehaved(why)) if why.contains("https://")));
}

#[test]
fn plain_connections_stay_on_the_machine() {
    let target = || native(echo);
    let refused = Bridge::bind("0.0.0.0:0", open(), target()).err().unwrap();
    assert!(matches!(refused, Error::NotLoopback(_)), "{refused}");
    let refused = Service::bind_web("0.0.0.0:0", open()).err().unwrap();
    assert!(matches!(refused, Error::NotLoopback(_)), "{refused}");
}
