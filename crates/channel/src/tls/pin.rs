//! The check of the peer's certificate: it must be the one pinned, and valid.

use std::error;
use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, OtherError,
    PeerIncompatible, SignatureScheme,
};

use super::Fingerprint;
use super::certificate::{self, Invalid};

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
}

impl From<Fingerprint> for Peer {
    fn from(fingerprint: Fingerprint) -> Self {
        Self { fingerprint, name: None }
    }
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
        /// The pinned fingerprint.
        pinned: Fingerprint,
    },
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
                write!(f, "it presented the fingerprint {shown}, but {pinned} is pinned")
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
            AcceptedPeers::Peer(Peer { fingerprint, name: None }) => {
                check_identity(*fingerprint, certificate, others, now)
            }
            AcceptedPeers::Peer(Peer { fingerprint, name: Some(name) }) => {
                check_chain(*fingerprint, certificate, others, name, now)
            }
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
    pinned: Fingerprint,
    certificate: &CertificateDer<'_>,
) -> Result<(), CertificateRejection> {
    let shown = Fingerprint::of(certificate);
    // mutant(tls-pin): false
    if shown != pinned {
        return Err(CertificateRejection::Other { shown, pinned });
    }
    Ok(())
}

fn check_identity(
    pinned: Fingerprint,
    certificate: &CertificateDer<'_>,
    others: &[CertificateDer<'_>],
    now: UnixTime,
) -> Result<(), CertificateRejection> {
    check_print(pinned, certificate)?;
    check_alone(certificate, others, now)
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
    // mutant(tls-chain): false
    if !others.is_empty() {
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
    check_print(pinned, organisation)?;
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
