//! Runs between parties that authenticate each other, and refused connections.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::common::{self, ProcessResult, RunningProcess, names, text, words};
use volery_channel::tls::Identity;

const DAY: Duration = Duration::from_secs(86_400);

/// A folder with identities, by name.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        text(&self.path(name)).to_owned()
    }

    /// Makes an identity by the command; returns its fingerprint.
    fn keygen(&self, name: &str) -> String {
        let out = self.text(name);
        let made = RunningProcess::start(&["keygen", "--out", &out, "--name", name]).finish();
        assert_eq!(made.status, Some(0), "{made:?}");
        made.stdout.trim().to_owned()
    }

    /// Makes an identity that expired yesterday; returns its fingerprint.
    fn expired(&self, name: &str) -> String {
        let now = SystemTime::now();
        let identity = Identity::generate(name, now - 3 * DAY..now - DAY).unwrap();
        fs::create_dir(self.path(name)).unwrap();
        let mut options = fs::OpenOptions::new();
        let path = self.path(name).join("identity.pem");
        let mut file = options.write(true).create_new(true).mode(0o600).open(path).unwrap();
        file.write_all(identity.to_pem().as_bytes()).unwrap();
        identity.fingerprint().to_string()
    }

    /// Starts a party that authenticates as `me` and expects `peer`.
    fn start(&self, call: &[&str], endpoint: [&str; 2], me: &str, peer: &str) -> RunningProcess {
        let identity = self.text(me);
        let secured = ["--identity", &identity, "--peer", peer, "--timeout", "60"];
        RunningProcess::start(&[call, &endpoint[..], &secured[..]].concat())
    }

    /// Both parties, the sender as `alice`, listening, the receiver as `bob`.
    fn both(&self, sender: &[&str], receiver: &[&str], prints: [&str; 2]) -> [ProcessResult; 2] {
        let sender = self.start(sender, ["--listen", "127.0.0.1:0"], "alice", prints[1]);
        let address = format!("127.0.0.1:{}", sender.port());
        let receiver = self.start(receiver, ["--connect", &address], "bob", prints[0]);
        [sender.finish(), receiver.finish()]
    }
}

fn report(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn correlations_and_matches_between_identities() {
    let place = Place::new();
    let [alice, bob] = ["alice", "bob"].map(|name| place.keygen(name));
    for verb in ["cot", "vole"] {
        let [s, r] = ["s", "r"].map(|side| place.text(&format!("{verb}-{side}")));
        let call = |role, out| [verb, "--role", role, "--n", "1000", "--out", out];
        let done = place.both(&call("sender", &s), &call("receiver", &r), [&alice, &bob]);
        common::assert_done(&done, "malicious");
        let verified = RunningProcess::start(&["verify", &s, &r]).finish();
        assert_eq!(verified.status, Some(0), "{verified:?}");
    }

    fs::write(place.path("s.csv"), "id\nann\nbea\ncal\n").unwrap();
    fs::write(place.path("r.csv"), "id,n\nbea,1\ndan,2\nann,3\n").unwrap();
    let [s, r, out, said] = ["s.csv", "r.csv", "out.csv", "report.json"].map(|n| place.text(n));
    let sender = ["psi", "--role", "sender", "--input", &s, "--key", "id"];
    let receiver = [
        "psi", "--role", "receiver", "--input", &r, "--key", "id", "--out", &out, "--report",
        &said, "-v",
    ];
    let done = place.both(&sender, &receiver, [&alice, &bob]);
    assert!(done.iter().all(|side| side.status == Some(0)), "{done:?}");
    assert_eq!(fs::read_to_string(place.path("out.csv")).unwrap(), "id,n\nbea,1\nann,3\n");
    let connection = &report(&place.path("report.json"))["result"]["connection"];
    assert_eq!(connection["peer"], alice.as_str());
    let protection = connection["protection"].as_str().unwrap();
    assert!(protection.starts_with("TLS 1.3, TLS13_") && protection.ends_with("X25519MLKEM768"));
    assert!(done[1].stderr.contains(protection), "-v says it");
}

#[test]
fn strangers_are_kept_out_and_the_peer_gets_in() {
    let place = Place::new();
    let [alice, bob, carol] = ["alice", "bob", "carol"].map(|name| place.keygen(name));
    place.expired("dave");
    let out = |name: &str| place.text(name);
    let (s, r, c) = (out("s"), out("r"), out("c"));
    fn call<'a>(role: &'a str, out: &'a str) -> [&'a str; 7] {
        ["cot", "--role", role, "--n", "100", "--out", out]
    }
    let sender = place.start(&call("sender", &s), ["--listen", "127.0.0.1:0"], "alice", &bob);
    let address = format!("127.0.0.1:{}", sender.port());
    let connect = ["--connect", &address];

    // Another identity.
    let other = place.start(&call("receiver", &c), connect, "carol", &alice).finish();
    assert_eq!(other.status, Some(3), "{other:?}");
    assert!(other.stderr.contains(&carol), "{other:?}");
    assert!(other.stderr.contains("hint: give the other party"), "{other:?}");
    // An expired one: the error comes before the connection.
    let late = place.start(&call("receiver", &c), connect, "dave", &alice).finish();
    assert_eq!(late.status, Some(1), "{late:?}");
    assert!(late.stderr.contains("it expired on"), "{late:?}");
    // The right one, which expects another peer.
    let wary = place.start(&call("receiver", &c), connect, "bob", &carol).finish();
    assert_eq!(wary.status, Some(3), "{wary:?}");
    assert!(wary.stderr.contains(&alice) && wary.stderr.contains(&carol), "{wary:?}");
    // Peers without TLS: our own program, which receives nothing it understands, and any other.
    let plain = RunningProcess::start(&[&call("receiver", &c)[..], &connect].concat()).finish();
    plain.assert_refused(3, &["it speaks TLS"]);
    let mut socket = TcpStream::connect(&address).unwrap();
    socket.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = socket.read_to_end(&mut answer);
    assert!(!answer.windows(6).any(|window| window == b"volery"));

    let receiver = place.start(&call("receiver", &r), connect, "bob", &alice).finish();
    let sender = sender.finish();
    assert_eq!([sender.status, receiver.status], [Some(0); 2], "{sender:?} {receiver:?}");
    let refused = sender.stderr.matches("note: a connection from 127.0.0.1:").count();
    assert_eq!(refused, 4, "{sender:?}");
    assert!(!place.path("c").exists());
}

#[test]
fn keygen_makes_a_folder_for_its_owner_only() {
    let place = Place::new();
    let print = place.keygen("alice");
    assert_eq!(print.split('-').count(), 9, "{print}");
    assert_eq!(names(&place.path("alice")), ["fingerprint.txt", "identity.pem"]);
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("alice"), mode("alice/identity.pem")], [0o700, 0o600]);

    // An identity is never replaced, not even with --force of another subcommand.
    let before = fs::read(place.path("alice/identity.pem")).unwrap();
    let out = place.text("alice");
    let again = RunningProcess::start(&["keygen", "--out", &out]).finish();
    assert_eq!(again.status, Some(2), "{again:?}");
    let cot = format!("cot --role sender --listen 127.0.0.1:0 --n 10 --out {out} --force");
    assert_eq!(RunningProcess::start(&words(&cot)).finish().status, Some(2));
    assert_eq!(fs::read(place.path("alice/identity.pem")).unwrap(), before);

    for (option, value) in [("--name", ""), ("--days", "0"), ("--days", "99999")] {
        let out = place.text("other");
        let refused = RunningProcess::start(&["keygen", "--out", &out, option, value]).finish();
        assert_eq!(refused.status, Some(2), "{refused:?}");
        assert!(refused.stderr.contains(option), "{refused:?}");
        assert!(!place.path("other").exists());
    }
}

#[test]
fn what_is_missing_or_wrong_is_said_before_anything_is_done() {
    let place = Place::new();
    let [alice, bob] = ["alice", "bob"].map(|name| place.keygen(name));
    let me = place.text("alice");
    let slip = bob.replacen(&bob[..1], if bob.starts_with('7') { "8" } else { "7" }, 1);
    let refused = |more: &[&str], status, fragments: [&str; 2]| {
        let out = place.text("out");
        let call = ["cot", "--role", "sender", "--n", "10", "--out", &out];
        let refused = RunningProcess::start(&[&call[..], more].concat()).finish();
        assert_eq!(refused.status, Some(status), "{refused:?}");
        for fragment in fragments {
            assert!(refused.stderr.contains(fragment), "{fragment}: {refused:?}");
        }
        assert!(!place.path("out").exists());
    };
    let listen = ["--listen", "127.0.0.1:0"];
    let with = |more: &[&'static str]| [&listen[..], more].concat();
    // Off the loopback interface, identities are required.
    refused(&["--listen", "0.0.0.0:0"], 2, ["--identity and --peer", "volery keygen"]);
    refused(&["--connect", "192.0.2.1:7"], 2, ["--identity and --peer", "volery keygen"]);
    refused(&["--listen", "0.0.0.0:0", "--identity", &me], 2, ["--peer: required", "fingerprint"]);
    refused(&["--listen", "0.0.0.0:0", "--peer", &bob], 2, ["--identity: required", "keygen"]);
    let mine = [&with(&[])[..], &["--identity", &me, "--peer", &alice]].concat();
    refused(&mine, 2, ["--peer: this is the fingerprint of this party's own --identity", "hint"]);
    let typed = [&with(&[])[..], &["--identity", &me, "--peer", &slip]].concat();
    refused(&typed, 2, ["--peer", "typing error"]);
    let absent = place.text("nobody");
    let nobody = [&with(&[])[..], &["--identity", &absent, "--peer", &bob]].concat();
    refused(&nobody, 1, ["--identity", "volery keygen"]);
    fs::set_permissions(place.path("alice/identity.pem"), fs::Permissions::from_mode(0o644))
        .unwrap();
    let open = [&with(&[])[..], &["--identity", &me, "--peer", &bob]].concat();
    refused(&open, 1, ["other users can read", "chmod 600"]);
}
