//! Malicious or defective peers. Against each, our side ends with the documented status within the
//! timeout and leaves nothing on the disk.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::common::{ProcessResult, RunningProcess, names, text, words};

/// The longest that our side may take beyond its own timeout of two seconds, on a busy machine.
const LIMIT: Duration = Duration::from_secs(30);

/// Runs our side against `peer`, once listening and once connecting, in each role, all at the same
/// time; returns our side's messages.
fn against(peer: impl Fn(TcpStream) + Sync) -> Vec<ProcessResult> {
    let run = |role: &str, listening: bool| {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("out");
        let out = text(&out);
        let common = format!("vole --role {role} --n 1000 --wait 2 --timeout 2 --out {out}");
        let (us, stream) = if listening {
            let us = RunningProcess::start(&words(&format!("{common} --listen 127.0.0.1:0")));
            let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, us.port())).unwrap();
            (us, stream)
        } else {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let us = RunningProcess::start(&words(&format!("{common} --connect {address}")));
            (us, listener.accept().unwrap().0)
        };
        let finished = thread::scope(|scope| {
            scope.spawn(|| peer(stream));
            us.finish_within(LIMIT)
        });
        let left = names(place.path());
        assert!(left.is_empty(), "{finished:?} left {left:?}");
        finished
    };
    thread::scope(|scope| {
        let run = &run;
        let cases = [("sender", true), ("sender", false), ("receiver", true), ("receiver", false)];
        let cases = cases.map(|(role, listening)| scope.spawn(move || run(role, listening)));
        cases.into_iter().map(|case| case.join().unwrap()).collect()
    })
}

/// Reads until the other side disconnects, so that the peer does not end the connection.
fn drain(mut stream: TcpStream) {
    let mut bytes = [0; 4096];
    while stream.read(&mut bytes).is_ok_and(|count| count > 0) {}
}

/// Fails unless our side refused the stranger: as the only one that was there if it connects, as
/// one of whom it may have to wait for the right one if it listens.
fn assert_refused(all: &[ProcessResult], connecting: (i32, &str), listening: &str) {
    for pair in all.chunks(2) {
        pair[0].assert_refused(4, &["did not connect", "one other connection was refused"]);
        assert!(pair[0].stderr.contains(listening), "{:?}", pair[0]);
        pair[1].assert_refused(connecting.0, &[connecting.1]);
    }
}

#[test]
fn random_bytes() {
    let all = against(|mut stream| {
        // Any fixed part of a generator's output serves.
        let mut state = 1_u64;
        let bytes: Vec<u8> = (0..65_536)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 56) as u8
            })
            .collect();
        let _ = stream.write_all(&bytes);
        drain(stream);
    });
    assert_refused(&all, (3, "does not speak volery"), "does not speak volery");
}

#[test]
fn a_peer_that_closes_at_once() {
    let closed = "closed the connection";
    assert_refused(&against(drop), (4, closed), closed);
}

#[test]
fn a_peer_that_says_nothing() {
    for finished in against(drain) {
        finished.assert_refused(4, &["timed out"]);
    }
}

/// The first bytes of each direction, with a timeout of two seconds.
const GREETING: &[u8] = b"\x89volery\x01\xd0\x07\0\0";

#[test]
fn a_peer_that_only_beats() {
    for finished in against(|mut stream| {
        let _ = stream.write_all(GREETING);
        // The handshake has a time of its own: signs of life are not enough there.
        while stream.write_all(&[1, 0, 0, 0]).is_ok() {
            thread::sleep(Duration::from_millis(300));
        }
    }) {
        finished.assert_refused(4, &["timed out"]);
    }
}

#[test]
fn nobody_comes() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("out");
    // A port that was free a moment ago.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    for endpoint in ["--listen 127.0.0.1:0", &format!("--connect {address}")] {
        let out = text(&out);
        let call = format!("vole --role sender --n 5 --wait 1 --out {out} {endpoint}");
        RunningProcess::start(&words(&call)).finish_within(LIMIT).assert_refused(4, &["timed out"]);
        assert!(names(place.path()).is_empty());
    }
}

#[test]
fn a_signal_leaves_nothing() {
    for signal in ["INT", "TERM", "HUP"] {
        let place = tempfile::tempdir().unwrap();
        let (out, report) = (place.path().join("out"), place.path().join("report.json"));
        let us = RunningProcess::start(&words(&format!(
            "vole --role sender --n 5 --listen 127.0.0.1:0 --out {} --report {}",
            text(&out),
            text(&report)
        )));
        us.port(); // it waits for the peer now
        assert_eq!(names(place.path()).len(), 2, "the temporary folder and file");
        us.signal(signal);
        us.finish_within(LIMIT).assert_refused(1, &["signal"]);
        assert_eq!(names(place.path()), ["report.json"], "{signal}");
        let report = std::fs::read(&report).unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report).unwrap();
        assert_eq!((&report["status"], &report["protocol"]), (&1.into(), &"vole".into()));
        assert!(report["error"].as_str().unwrap().contains("signal"), "{report}");
    }
}
