//! The gateway as a program: workers meet there, and it ends well.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use crate::common::{RunningProcess, keygen, text, volery};
use serde_json::Value;
use volery_channel::gateway::{Ticket, meet};
use volery_channel::tls::{Identity, Peer};
use volery_channel::{Channel, Error, Result, Role};

const PATIENCE: Duration = Duration::from_secs(30);

/// Identities made by the command in a folder.
struct Organisations(tempfile::TempDir, Vec<Identity>);

impl Organisations {
    fn new(names: &[&str]) -> Self {
        let place = tempfile::tempdir().unwrap();
        let made = names.iter().map(|name| {
            let out = place.path().join(name);
            keygen(text(&out));
            Identity::from_pem(&fs::read_to_string(out.join("identity.pem")).unwrap()).unwrap()
        });
        let made = made.collect();
        Self(place, made)
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// A worker of the first two meets its peer.
    fn meet(&self, port: u16, side: Role, worker: u32) -> Result<Channel> {
        let ticket = Ticket { run: [0xab; 32], side, worker: Some(worker), attempt: 1 };
        let now = SystemTime::now();
        let [own, other] = [side, side.other()].map(|side| &self.1[side as usize]);
        let leaf = own.issue(&ticket.name(), now..now + PATIENCE * 100)?;
        let peer = Peer::of_run(other.fingerprint(), ticket.name());
        meet(("127.0.0.1", port), &ticket, &leaf, &peer, PATIENCE)
    }

    /// A pair exchanges a few bytes.
    fn exchange(&self, port: u16, worker: u32) {
        thread::scope(|scope| {
            scope.spawn(move || {
                let mut channel = self.meet(port, Role::Sender, worker).unwrap();
                channel.send(b"hello").unwrap();
                channel.recv(&mut [0]).unwrap();
            });
            let mut channel = self.meet(port, Role::Receiver, worker).unwrap();
            channel.recv(&mut [0; 5]).unwrap();
            channel.send(&[1]).unwrap();
            channel.flush().unwrap();
        });
    }
}

#[test]
fn workers_meet_and_a_signal_ends_it_well() {
    let some = Organisations::new(&["alice", "bob", "carol"]);
    let alice = some.1[0].fingerprint().to_string();
    let bob = some.folder().join("bob/fingerprint.txt");
    let report = some.folder().join("report.json");
    for signal in ["TERM", "INT"] {
        let mut call = vec!["gateway", "--listen", "127.0.0.1:0", "--report", text(&report)];
        call.extend(["--allow", &alice, "--allow", text(&bob)]);
        let running = RunningProcess::start(&call);
        let port = running.port();
        some.exchange(port, 3);
        let third =
            Organisations(tempfile::tempdir().unwrap(), vec![some.1[2].clone(), some.1[1].clone()]);
        let refused = third.meet(port, Role::Sender, 4).map(drop);
        let Err(Error::Refused(why)) = refused else { panic!("{refused:?}") };
        assert!(why.contains("not allowed"), "{why}");
        // One is connected and says nothing.
        let silent = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let start = Instant::now();
        running.signal(signal);
        let ended = running.finish();
        assert!(start.elapsed() < Duration::from_secs(5));
        drop(silent);
        assert_eq!(ended.status, Some(0), "{ended:?}");
        for part in [
            "3 of run abababab (attempt 1) waits for its peer",
            "sender 3 of run abababab (attempt 1) and receiver 3 of run abababab (attempt 1) are connected",
            "was refused: the organisation is not allowed there",
            "pairs connected: 1",
        ] {
            assert!(ended.stderr.contains(part), "{part}: {ended:?}");
        }
        let report: Value = serde_json::from_slice(&fs::read(&report).unwrap()).unwrap();
        assert_eq!(report["command"], "gateway");
        assert_eq!(report["result"]["met"], 1);
        assert!(report["result"]["bytes"].as_u64().unwrap() > 1000);
    }
}

#[test]
fn lines_can_be_objects() {
    let some = Organisations::new(&["alice", "bob"]);
    let prints = [0, 1].map(|i| some.1[i].fingerprint().to_string());
    let [alice, bob] = &prints;
    let call = ["gateway", "--listen", "127.0.0.1:0", "--log", "json"];
    let call = [&call[..], &["--allow", alice, "--allow", bob]].concat();
    let mut child = volery(&call).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let first = lines.next().unwrap();
    let address = first["address"].as_str().unwrap().rsplit_once(':').unwrap();
    some.exchange(address.1.parse().unwrap(), 7);
    let ended = lines.find(|line| line["event"] == "ended").unwrap();
    assert_eq!(ended["run"], "ab".repeat(16));
    assert_eq!(ended["worker"], 7);
    assert_eq!(ended["sender_organisation"], alice.as_str());
    assert_eq!(ended["receiver_organisation"], bob.as_str());
    assert!(ended["bytes_from_sender"].as_u64().unwrap() > 100);
    let signalled = std::process::Command::new("kill").arg(child.id().to_string()).status();
    assert!(signalled.unwrap().success());
    assert_eq!(lines.last().unwrap()["level"], "info");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
