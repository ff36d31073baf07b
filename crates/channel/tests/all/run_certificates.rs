//! Run certificates: which are accepted in place of an identity, and which are not.

use std::ops::Range;
use std::thread;
use std::time::SystemTime;

use rustls::sign::SingleCertAndKey;
use volery_channel::tls::{self, Identity, Patience, Peer};
use volery_channel::{Error, memory};

use crate::strangers::shown;
use crate::tls::{DAY, PATIENCE, identity, stranger};

const NAME: &str = "w3.0123456789abcdef0123456789abcdef.volery.invalid";

pub(crate) fn today() -> Range<SystemTime> {
    let now = SystemTime::now();
    now - DAY / 2..now + DAY / 2
}

fn named(organisation: &Identity, name: &str) -> Peer {
    Peer::of_run(organisation.fingerprint(), name.to_owned())
}

/// Where each pins what the other has.
#[test]
fn a_run_certificate_and_an_identity_accept_each_other() {
    let organisations = ["left", "right"].map(identity);
    let leaf = organisations[0].issue(NAME, today()).unwrap();
    assert_eq!(leaf.organisation(), organisations[0].fingerprint());
    assert_ne!(leaf.fingerprint(), organisations[0].fingerprint());
    let (left, right) = memory::pair();
    thread::scope(|scope| {
        let there = organisations[1].fingerprint();
        let left = scope.spawn(move || tls::initiate(left, &leaf, there, PATIENCE));
        let here = named(&organisations[0], NAME);
        tls::respond(right, &organisations[1], &here, PATIENCE).unwrap();
        left.join().unwrap().unwrap();
    });
}

/// Why a listener that pins `peer` refuses a client with these certificates.
fn why(peer: impl Into<Peer>, certificates: SingleCertAndKey) -> String {
    let here = identity("here");
    let listener = tls::Listener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mut refused = String::new();
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(stranger(address, Some(certificates), b"volery/1"), b""));
        let patience = Patience::from(PATIENCE);
        let cancel = patience.cancel.clone();
        let accepted = listener.accept(&here, peer, patience, |refusal| {
            refused = refusal.error.to_string();
            cancel.cancel();
        });
        assert!(matches!(accepted, Err(Error::Cancelled)), "it came in");
    });
    refused
}

#[test]
fn other_run_certificates_are_refused() {
    let [own, other] = ["own", "other"].map(identity);
    let pinned = || named(&own, NAME);
    let [leaf, foreign] = [&own, &other].map(|by| by.issue(NAME, today()).unwrap());
    let now = SystemTime::now();
    let old = Identity::generate("own", now - 3 * DAY..now - DAY).unwrap();
    let old_leaf = old.issue(NAME, now - 2 * DAY..now + DAY).unwrap();
    let expired = own.issue(NAME, now - DAY / 2..now - DAY / 4).unwrap();
    let worker = NAME.replace("w3", "w30");
    let worker = own.issue(&worker, today()).unwrap();
    let run = NAME.replace("cdef.", "cdee.");
    let run = own.issue(&run, today()).unwrap();
    let chain = |chain: &[&Identity]| shown(chain, chain[0]);
    let not_presented = "did not present a run certificate";
    for (peer, certificates, reason) in [
        (pinned(), chain(&[&foreign, &other]), "is pinned"),
        (pinned(), chain(&[&foreign, &own]), "was not issued by"),
        (pinned(), chain(&[&expired, &own]), "not accepted: it expired on"),
        (named(&old, NAME), chain(&[&old_leaf, &old]), "one pinned, but it expired on"),
        (pinned(), chain(&[&worker, &own]), "for another run or worker"),
        (pinned(), chain(&[&run, &own]), "for another run or worker"),
        (pinned(), chain(&[&leaf, &own, &own]), not_presented),
        (pinned(), chain(&[&leaf, &own, &other]), not_presented),
        (pinned(), chain(&[&leaf]), not_presented),
        (pinned(), chain(&[&leaf, &other]), "is pinned"),
        // The certificate without its key.
        (pinned(), shown(&[&leaf, &own], &own), "signature"),
        // An identity in place of a run certificate.
        (pinned(), chain(&[&own]), not_presented),
        (pinned(), chain(&[&own, &own]), "for another run or worker"),
        // A run certificate in place of an identity.
        (own.fingerprint().into(), chain(&[&leaf, &own]), "is pinned"),
        (own.fingerprint().into(), chain(&[&own, &leaf]), "several certificates"),
        (leaf.fingerprint().into(), chain(&[&leaf]), "damaged"),
        (leaf.fingerprint().into(), chain(&[&leaf, &own]), "several certificates"),
        (named(&leaf, NAME), chain(&[&leaf, &leaf]), "damaged"),
    ] {
        let why = why(peer, certificates);
        assert!(why.contains(reason), "{reason}: {why}");
    }
}
