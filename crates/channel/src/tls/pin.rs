//! The check of the peer's certificate: it must be the one pinned, and valid.

use std::error;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, SignatureScheme,
};

use super::Fingerprint;
use super::certificate::{self, Invalid, successor_name};

/// The pin of a peer: an identity, or a run certificate that the identity
/// [issued](super::Identity::issue).
///
/// A plain [`Fingerprint`] is the identity itself, which never passes for one of its run
/// certificates, nor the other way round.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// The fingerprint of the identity.
    pub fingerprint: Fingerprint,
    /// The name of the run certificate, where one is wanted.
    pub name: Option<String>,
    /// A second identity, accepted during a change of keys; not for run certificates.
    pub also: Option<Fingerprint>,
    /// Accepts the identity that the pinned one [announces](super::Identity::renew) as its
    /// successor.
    pub follow: Option<Follow>,
}

/// The successors of an identity that are not accepted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Follow {
    /// Announced before this time: that of the announcement of the pinned identity.
    pub since: SystemTime,
    /// The identities that were pinned before.
    pub earlier: Vec<Fingerprint>,
}

impl From<Fingerprint> for Peer {
    fn from(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, name: None, also: None, follow: None }
    }
}

impl Peer {
    /// The run certificate for `name` that an identity has issued.
    pub fn of_run(fingerprint: Fingerprint, name: String) -> Self {
        Self { name: Some(name), ..fingerprint.into() }
    }

    pub(super) fn pinned(&self) -> Vec<Fingerprint> {
        [self.fingerprint].into_iter().chain(self.also).collect()
    }
}

/// The identity that a peer has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownIdentity {
    /// Its fingerprint.
    pub fingerprint: Fingerprint,
    /// The time at which its predecessor announced it, if the peer has shown the announcement,
    /// which was checked where [`Peer::follow`] needs it.
    pub announced: Option<SystemTime>,
}

impl From<&Self> for Peer {
    fn from(peer: &Self) -> Self {
        peer.clone()
    }
}

/// The test whether a server of many clients knows an identity.
pub type KnownIdentities = Arc<dyn Fn(Fingerprint) -> bool + Send + Sync>;

/// The certificates that a party accepts.
#[derive(Clone)]
pub(super) enum AcceptedPeers {
    /// Only one.
    Peer(Peer),
    /// Identities that are known.
    Known(KnownIdentities),
}

/// The check, on either side of the connection.
pub(super) struct Pin {
    accepted: AcceptedPeers,
    provider: Arc<CryptoProvider>,
}

impl fmt::Debug for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin(..)")
    }
}

/// The reason why the peer's certificate was not accepted, for the error message.
#[derive(Debug)]
pub(super) enum CertificateRejection {
    /// It is not the pinned one.
    Other {
        /// The fingerprint that the peer presented.
        shown: Fingerprint,
        /// The pinned fingerprints.
        pinned: Vec<Fingerprint>,
    },
    /// The pinned identity announces it as its successor, and is not followed.
    Announced {
        /// The fingerprint that the peer presented.
        shown: Fingerprint,
    },
    /// It was pinned before, or announced before the pinned one was.
    Earlier {
        /// The fingerprint that the peer presented.
        shown: Fingerprint,
    },
    /// The announcement is not one of the pinned identity for it, or not valid.
    Announcement(Invalid),
    /// It is not a known one.
    Unknown {
        /// The fingerprint that the peer presented.
        shown: Fingerprint,
    },
    /// More certificates follow it.
    Chain,
    /// A run certificate is wanted, and this is not one with its identity's.
    NoChain,
    /// It is the pinned one, and not valid.
    Invalid(Invalid),
    /// The pinned one follows it, and it is not valid.
    Leaf(Invalid),
}

impl fmt::Display for CertificateRejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other { shown, pinned } => {
                let pinned: Vec<_> = pinned.iter().map(ToString::to_string).collect();
                let pinned = pinned.join(" or ");
                write!(f, "it presented the fingerprint {shown}, but {pinned} is pinned")
            }
            Self::Announced { shown } => write!(
                f,
                "it presented the fingerprint {shown}, which the pinned identity announces as its successor"
            ),
            Self::Earlier { shown } => write!(
                f,
                "it presented the fingerprint {shown}, which was pinned before, or announced before the pinned one was: keys are followed forward only"
            ),
            Self::Announcement(Invalid::Malformed | Invalid::Name) => f.write_str(
                "its announcement is not one of the pinned identity for its certificate",
            ),
            Self::Announcement(invalid) => {
                write!(f, "the announcement of its certificate is not accepted: {invalid}")
            }
            Self::Unknown { shown } => {
                write!(f, "it presented the fingerprint {shown}, which is not allowed here")
            }
            Self::Chain => f.write_str("it presented several certificates"),
            Self::NoChain => {
                f.write_str("it did not present a run certificate and that of its organisation")
            }
            Self::Leaf(Invalid::Malformed) => f.write_str(
                "its run certificate is damaged, or was not issued by the pinned identity",
            ),
            Self::Leaf(invalid) => write!(f, "its run certificate is not accepted: {invalid}"),
            Self::Invalid(invalid) => write!(f, "its certificate is the one pinned, but {invalid}"),
        }
    }
}

impl error::Error for CertificateRejection {}

impl Pin {
    pub(super) fn new(accepted: AcceptedPeers, provider: Arc<CryptoProvider>) -> Self {
        Self { accepted, provider }
    }

    fn check(
        &self,
        certificate: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), Error> {
        let checked = match &self.accepted {
            AcceptedPeers::Known(known) => check_known(known, certificate, others, now),
            AcceptedPeers::Peer(peer) => match &peer.name {
                None => check_identity(peer, certificate, others, now),
                Some(name) => check_chain(peer.fingerprint, certificate, others, name, now),
            },
        };
        checked.map_err(|why| CertificateError::Other(OtherError(Arc::new(why))).into())
    }

    /// Checks that the peer has the private key of its certificate.
    fn check_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        // mutant(tls-signature): insert `if $ON { return Ok(HandshakeSignatureValid::assertion());
        //     }`
        verify_tls13_signature(message, certificate, signature, algorithms)
    }
}

/// The fingerprint first: no other part of an unknown certificate is parsed.
fn check_print(
    pinned: &[Fingerprint],
    certificate: &CertificateDer<'_>,
) -> Result<(), CertificateRejection> {
    let shown = Fingerprint::of(certificate);
    // mutant(tls-pin): false
    if !pinned.contains(&shown) {
        return Err(CertificateRejection::Other { shown, pinned: pinned.to_vec() });
    }
    Ok(())
}

pub(super) fn check_identity(
    peer: &Peer,
    certificate: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    let checked = check_print(&peer.pinned(), certificate);
    // mutant(follow-pin): `Fingerprint::of(earlier) == peer.fingerprint` => `true`
    if checked.is_err()
        && let [announcement, earlier] = others
        && Fingerprint::of(earlier) == peer.fingerprint
    {
        let shown = Fingerprint::of(certificate);
        check_successor(peer.follow.as_ref(), shown, [announcement, earlier], now)?;
    } else {
        checked?;
    }
    check_alone(certificate, others, now)
}

/// Checks that `earlier`, the pinned identity, announces the one that was shown.
fn check_successor(
    follow: Option<&Follow>,
    shown: Fingerprint,
    [announcement, earlier]: [&CertificateDer<'_>; 2],
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    let name = successor_name(shown);
    // mutant(follow-expired): drop
    certificate::check(earlier, now).map_err(CertificateRejection::Announcement)?;
    // mutant(follow-signed): drop
    certificate::check_leaf(announcement, earlier, &name, now)
        .map_err(CertificateRejection::Announcement)?;
    // mutant(follow-unasked): insert `if $ON && follow.is_none() { return Ok(()); }`
    let refused = follow.ok_or(CertificateRejection::Announced { shown })?;
    let time = certificate::validity(announcement, earlier);
    let time = time.map_err(CertificateRejection::Announcement)?.start;
    // mutant(follow-back): `refused.earlier.contains(&shown)` => `false`
    // mutant(follow-time): `time < refused.since` => `false`
    if refused.earlier.contains(&shown) || time < refused.since {
        return Err(CertificateRejection::Earlier { shown });
    }
    Ok(())
}

fn check_known(
    known: &KnownIdentities,
    certificate: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    let shown = Fingerprint::of(certificate);
    // mutant(tls-known): false
    if !known(shown) {
        return Err(CertificateRejection::Unknown { shown });
    }
    check_alone(certificate, others, now)
}

fn check_alone(
    certificate: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    // Behind an identity there may be the announcement of it, with its predecessor.
    // mutant(tls-chain): false
    if !matches!(others.len(), 0 | 2) {
        return Err(CertificateRejection::Chain);
    }
    // mutant(tls-validity, 30 s): `certificate::check(certificate, now)` => `Ok(())`
    certificate::check(certificate, now).map_err(CertificateRejection::Invalid)
}

fn check_chain(
    pinned: Fingerprint,
    leaf: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    name: &str,
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    // mutant(run-certificate-chain): `others` => `&others[..others.len().min(1)]`
    let [organisation] = others else {
        return Err(CertificateRejection::NoChain);
    };
    // mutant(run-certificate-pin): drop
    check_print(&[pinned], organisation)?;
    // mutant(run-certificate-organisation): drop
    certificate::check(organisation, now).map_err(CertificateRejection::Invalid)?;
    // mutant(run-certificate-leaf): insert `if $ON { return Ok(()); }`
    certificate::check_leaf(leaf, organisation, name, now).map_err(CertificateRejection::Leaf)
}

/// TLS 1.2 is not offered, so this is never called; it refuses.
fn not_offered() -> Result<HandshakeSignatureValid, Error> {
    // no mutant: rustls asks for it and never calls it: TLS 1.3 alone is offered
    Err(PeerIncompatible::Tls12NotOffered.into())
}

impl ServerCertVerifier for Pin {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(end_entity, intermediates, now).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_offered()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        // mutant(tls-signature-of-server): insert `if $ON { return
        //     Ok(HandshakeSignatureValid::assertion()); }`
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}

impl ClientCertVerifier for Pin {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(end_entity, intermediates, now).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_offered()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
}
