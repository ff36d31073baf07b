//! A ticket on the wire, and the checks of it.

use std::io::{self, Read};
use std::time::SystemTime;

use rustls::pki_types::CertificateDer;

use super::{CHALLENGE, Reason, Ticket};
use crate::tls::certificate::{self, unix_time};
use crate::tls::fingerprint::HASH;
use crate::tls::{Fingerprint, Identity};
use crate::{Error, Result, Role};

/// Bytes before the certificates.
const HEADER: usize = 32 + 1 + 4 + 8 + HASH + 2 + 2;

/// Longest certificate. Those of volery have about 350 bytes.
const LONGEST: usize = 4096;

/// Bytes of a signature.
const SIGNATURE: usize = 64;

/// The number of a driver.
const DRIVER: u32 = u32::MAX;

/// Separates these signatures from all others by the same key. TLS signs texts that begin with
/// spaces.
const DOMAIN: &[u8] = b"volery gateway ticket, version 1\0";

/// A ticket as it came, not checked.
#[derive(Debug)]
pub(super) struct PresentedTicket {
    pub(super) ticket: Ticket,
    pub(super) peer: Fingerprint,
    leaf: CertificateDer<'static>,
    organisation: CertificateDer<'static>,
    /// The signed bytes, without the challenge.
    signed: Vec<u8>,
    signature: [u8; SIGNATURE],
}

fn message(challenge: &[u8; CHALLENGE], signed: &[u8]) -> Vec<u8> {
    // mutant(ticket-challenge): `challenge` => `if $ON { &[0; CHALLENGE] } else { $0 }`
    [DOMAIN, challenge, signed].concat()
}

/// The bytes of a ticket, signed by the run certificate `leaf`.
///
/// # Errors
/// [`Error::Identity`] if a certificate is too long.
#[doc(hidden)]
pub fn encode(
    ticket: &Ticket,
    leaf: &Identity,
    peer: Fingerprint,
    challenge: &[u8; CHALLENGE],
) -> Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(HEADER + 2 * LONGEST + SIGNATURE);
    bytes.extend(ticket.run);
    bytes.push(ticket.side as u8);
    bytes.extend(ticket.worker.unwrap_or(DRIVER).to_le_bytes());
    bytes.extend(ticket.attempt.to_le_bytes());
    bytes.extend(peer.as_bytes());
    for certificate in leaf.chain() {
        let length = u16::try_from(certificate.len()).unwrap_or(u16::MAX);
        if usize::from(length) > LONGEST {
            return Err(Error::Identity("its certificate is too long".to_owned()));
        }
        bytes.extend(length.to_le_bytes());
    }
    leaf.chain().iter().for_each(|one| bytes.extend_from_slice(one));
    let signature = leaf.signature(&message(challenge, &bytes))?;
    bytes.extend(signature);
    Ok(bytes)
}

/// Takes `N` bytes from the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (taken, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*taken)
}

/// The fields of a header, and the lengths of the certificates.
fn header(mut bytes: &[u8]) -> Option<(Ticket, Fingerprint, [usize; 2])> {
    let bytes = &mut bytes;
    let run = take(bytes)?;
    let [side] = take(bytes)?;
    let worker = u32::from_le_bytes(take(bytes)?);
    let ticket = Ticket {
        run,
        side: Role::ALL.into_iter().find(|role| *role as u8 == side)?,
        worker: (worker != DRIVER).then_some(worker),
        attempt: u64::from_le_bytes(take(bytes)?),
    };
    let peer = Fingerprint::from_bytes(take(bytes)?);
    let lengths = [take(bytes)?, take(bytes)?].map(|length| u16::from_le_bytes(length).into());
    // mutant(ticket-length): `(1..=LONGEST).contains(length)` => `true`
    (lengths.iter().all(|length| (1..=LONGEST).contains(length))).then_some((ticket, peer, lengths))
}

/// Reads a ticket.
///
/// # Errors
/// The errors of `source`; [`Reason::Malformed`] in the inner result.
pub(super) fn read(source: &mut impl Read) -> io::Result<Option<PresentedTicket>> {
    let mut signed = vec![0; HEADER];
    source.read_exact(&mut signed)?;
    let Some((ticket, peer, [leaf, organisation])) = header(&signed) else {
        return Ok(None);
    };
    signed.resize(HEADER + leaf + organisation, 0);
    source.read_exact(&mut signed[HEADER..])?;
    let mut signature = [0; SIGNATURE];
    source.read_exact(&mut signature)?;
    let (leaf, organisation) = signed[HEADER..].split_at(leaf);
    Ok(Some(PresentedTicket {
        ticket,
        peer,
        leaf: leaf.to_vec().into(),
        organisation: organisation.to_vec().into(),
        signed,
        signature,
    }))
}

impl PresentedTicket {
    /// Checks everything and returns the organisation.
    ///
    /// # Errors
    /// The first reason to refuse it.
    pub(super) fn check(
        &self,
        challenge: &[u8; CHALLENGE],
        allowed: &[Fingerprint],
        now: SystemTime,
    ) -> std::result::Result<Fingerprint, Reason> {
        // The fingerprint first: no other part of an unknown certificate is parsed.
        let own = Fingerprint::of(&self.organisation);
        // mutant(ticket-organisation): false
        if !allowed.contains(&own) {
            return Err(Reason::Organisation);
        }
        // mutant(ticket-peer-allowed): `!allowed.contains(&self.peer)` => `false`
        // mutant(ticket-peer): `self.peer == own` => `false`
        if self.peer == own || !allowed.contains(&self.peer) {
            return Err(Reason::Peer);
        }
        let (now, name) = (unix_time(now), self.ticket.name());
        // mutant(ticket-organisation-validity): `certificate::check(&self.organisation, now)` =>
        //     `Ok(())`
        // mutant(ticket-leaf): `certificate::check_leaf(&self.leaf, &self.organisation, &name,
        //     now)` => `Ok(())`
        certificate::check(&self.organisation, now)
            .and_then(|()| certificate::check_leaf(&self.leaf, &self.organisation, &name, now))
            .map_err(|_| Reason::Certificate)?;
        let message = message(challenge, &self.signed);
        // mutant(ticket-signature): `certificate::check_signature(&self.leaf, &message,
        //     &self.signature)` => `Ok(())`
        certificate::check_signature(&self.leaf, &message, &self.signature)
            .map_err(|_| Reason::Signature)?;
        Ok(own)
    }
}

/// Reads and checks a ticket as the gateway does. For tests and fuzzing.
///
/// # Errors
/// The reason to refuse it.
#[doc(hidden)]
pub fn ticket_for_tests(
    mut bytes: &[u8],
    challenge: &[u8; 32],
    allowed: &[Fingerprint],
) -> std::result::Result<(Ticket, Fingerprint), Reason> {
    // no mutant: an error that is passed on
    let presented = read(&mut bytes).ok().flatten().ok_or(Reason::Malformed)?;
    let organisation = presented.check(challenge, allowed, volery_os::time::wall_clock())?;
    Ok((presented.ticket, organisation))
}
