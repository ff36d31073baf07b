//! Runs between parties that authenticate each other, and refused connections.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::common::pair::Folder;
use crate::common::{RunningProcess, keygen, names, run, words};

/// The sender renews its identity, and encrypts the new key; the receiver follows it, or not.
#[test]
fn a_renewed_identity_is_followed() {
    let folder = Folder::new();
    let [old, bob] = ["alice", "bob"].map(|name| keygen(&folder.path(name)));
    let word = folder.write("word", "a long word\n");
    fs::set_permissions(&word, fs::Permissions::from_mode(0o600)).unwrap();
    let [alice, next, me] = ["alice", "next", "bob"].map(|name| folder.path(name));
    let lock = format!("--identity-passphrase file:{word}");
    let made = run(&words(&format!("keygen --renew {alice} --out {next} {lock}")));
    assert_eq!(made.status, Some(0), "{made:?}");
    let new = made.stdout.trim();
    let pem = folder.read("next/identity.pem");
    assert!(pem.contains("ENCRYPTED PRIVATE KEY") && !pem.contains("BEGIN PRIVATE"));
    let pins = folder.write("pins", &old);
    let print = format!("cat {next}/identity.pem");
    let own = [format!("--identity {next} {lock}"), format!("{lock} --identity-command")];
    for (sender, receivers) in [
        (
            [words(&own[0]), vec![]],
            &[
                (format!("--peer {pins}"), Some("which the pinned identity announces")),
                (format!("--peer {old} --peer {new}"), None),
            ][..],
        ),
        ([words(&own[1]), vec![&*print]], &[(format!("--peer {pins} --follow-key"), None)]),
        (
            [vec!["--identity", &alice], vec![]],
            &[(format!("--peer {pins} --follow-key"), Some("is pinned"))],
        ),
    ] {
        let call = format!(
            "cot --role sender --listen 127.0.0.1:0 --n 100 --out {} --force",
            folder.path("s")
        );
        let sender = RunningProcess::start(
            &[words(&call), words(&format!("--peer {bob}")), sender.concat()].concat(),
        );
        let port = sender.port();
        for (pin, refused) in receivers {
            let [out, report] = ["r", "report.json"].map(|name| folder.path(name));
            let met = run(&words(&format!(
                "cot --role receiver --connect 127.0.0.1:{port} --n 100 --out {out} --force \
                 --report {report} --identity {me} {pin}"
            )));
            match refused {
                Some(why) => met.assert_refused(3, &[why]),
                None => {
                    assert_eq!(met.status, Some(0), "{met:?}");
                    let report = folder.json("report.json");
                    let connection = &report["result"]["connection"];
                    assert_eq!([&report["peer"], &connection["peer"]], [new; 2]);
                    let protection = connection["protection"].as_str().unwrap();
                    assert!(protection.starts_with("TLS 1.3, TLS13_"), "{protection}");
                    assert!(protection.ends_with("X25519MLKEM768"), "{protection}");
                }
            }
        }
        if receivers.iter().any(|(_, refused)| refused.is_none()) {
            let ended = sender.finish();
            assert_eq!(ended.status, Some(0), "{ended:?}");
            let notes = ended.stderr.matches("note: a connection from 127.0.0.1:").count();
            assert_eq!(notes + 1, receivers.len(), "{ended:?}");
        } else {
            sender.signal("KILL");
        }
    }
    let lines = folder.read("pins");
    let prints: Vec<_> = lines.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(prints, [&old, new]);
    assert_eq!(fs::metadata(&pins).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn keygen_makes_a_folder_for_its_owner_only() {
    let folder = Folder::new();
    let out = folder.path("alice");
    let print = keygen(&out);
    assert_eq!(print.split('-').count(), 9, "{print}");
    assert_eq!(names(out.as_ref()), ["fingerprint.txt", "identity.pem"]);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let pem = folder.path("alice/identity.pem");
    assert_eq!([mode(out.as_ref()), mode(pem.as_ref())], [0o700, 0o600]);

    // An identity is never replaced, not even with --force of another subcommand.
    let before = fs::read(&pem).unwrap();
    let cot = format!("cot --role sender --listen 127.0.0.1:0 --n 10 --out {out} --force");
    for call in [format!("keygen --out {out}"), cot] {
        assert_eq!(run(&words(&call)).status, Some(2));
    }
    assert_eq!(fs::read(&pem).unwrap(), before);
    let call = ["keygen", "--out", &folder.path("other"), "--name", ""];
    run(&call).assert_refused(2, &["--name"]);
}
