//! The ticket that a client shows a gateway.

use std::sync::OnceLock;

use volery_channel::Role;
use volery_channel::gateway::{Ticket, encode_ticket, ticket_for_tests};
use volery_channel::tls::Identity;

use super::Script;
use super::edits::edited;

/// A run certificate of the first of the fictitious identities, valid as long as it is.
const LEAF: &str = include_str!("gateway/leaf.pem");

const OTHER: &str = include_str!("identity/right.pem");

const CHALLENGE: [u8; 32] = [5; 32];

const TICKET: Ticket = Ticket { run: [9; 32], side: Role::Sender, worker: Some(3), attempt: 1 };

fn identity(pem: &str) -> Identity {
    Identity::from_pem(pem).expect("the constant identity file is valid")
}

fn honest() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let peer = identity(OTHER).fingerprint();
        encode_ticket(&TICKET, &identity(LEAF), peer, &CHALLENGE).expect("the certificates fit")
    })
}

/// Changes of an honest ticket, or bytes in its place.
///
/// # Panics
/// If a guarantee is broken: see [the module](super).
pub fn gateway(data: &[u8]) {
    let theirs = edited(honest(), &mut Script(data));
    let allowed = [identity(LEAF).organisation(), identity(OTHER).fingerprint()];
    let taken = ticket_for_tests(&theirs, &CHALLENGE, &allowed);
    let is_honest = theirs.starts_with(honest());
    assert_eq!(taken.is_ok(), is_honest, "{taken:?}");
    if let Ok(taken) = taken {
        assert_eq!(taken, (TICKET, allowed[0]));
    }
}
