//! Parsing and checking of certificates, this party's own and the peer's.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, DnsName, ServerName, UnixTime};
use time::OffsetDateTime;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use super::Fingerprint;

/// The reason why a certificate is not accepted, this party's or the peer's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Invalid {
    /// It has expired.
    #[error("it expired on {}", day(*.0))]
    Expired(SystemTime),
    /// It is not valid yet.
    #[error("it is valid only from {} on; check the clock of this machine", day(*.0))]
    Early(SystemTime),
    /// It is not a certificate, or not signed by the key that it should be signed by.
    #[error("its certificate is damaged")]
    Malformed,
    /// It is not for the name, or not for the name alone.
    #[error("it is for another run or worker")]
    Name,
}

/// Checks that `certificate` is well formed, self-signed, and valid at `now`.
pub(crate) fn check(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Invalid> {
    check_signed(certificate, certificate, now)
}

/// The name for which an identity signs the announcement of its successor: no run certificate has
/// it, because a worker's name has no such label.
pub(super) fn successor_name(successor: Fingerprint) -> String {
    format!("{successor}.successor.volery.invalid")
}

/// Checks that `leaf` is well formed, signed by the key of `organisation`, valid at `now`, and for
/// `name` alone.
pub(crate) fn check_leaf(
    leaf: &CertificateDer<'_>,
    organisation: &CertificateDer<'_>,
    name: &str,
    now: UnixTime,
) -> Result<(), Invalid> {
    // mutant(run-certificate-issuer): drop
    check_signed(leaf, organisation, now)?;
    let end_entity = EndEntityCert::try_from(leaf).map_err(|_| Invalid::Malformed)?;
    let wanted = DnsName::try_from(name).map_err(|_| Invalid::Name)?;
    let verified = end_entity.verify_is_valid_for_subject_name(&ServerName::DnsName(wanted));
    // A wildcard, or one name of several, would be good for other workers, too.
    // mutant(run-certificate-name): `verified.is_err() || !end_entity.valid_dns_names().eq([name])`
    //     => `!$ON && (verified.is_err() || !$ON[run-certificate-one-name] &&
    //     !end_entity.valid_dns_names().eq([name]))`
    // mutant(run-certificate-one-name): in run-certificate-name
    if verified.is_err() || !end_entity.valid_dns_names().eq([name]) {
        return Err(Invalid::Name);
    }
    Ok(())
}

/// Checks that `certificate` is well formed, signed by the key of `issuer`, and valid at `now`.
/// The validity of `issuer` is not checked.
pub(crate) fn check_signed(
    certificate: &CertificateDer<'_>,
    issuer: &CertificateDer<'_>,
    now: UnixTime,
) -> Result<(), Invalid> {
    let end_entity = EndEntityCert::try_from(certificate).map_err(|_| Invalid::Malformed)?;
    let anchor = anchor_from_trusted_cert(issuer).map_err(|_| Invalid::Malformed)?;
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    let anchors = [anchor];
    let verified = end_entity.verify_for_usage(
        algorithms.all,
        &anchors,
        &[],
        now,
        KeyUsage::client_auth(),
        None,
        None,
    );
    match verified {
        Ok(_) => Ok(()),
        // mutant(certificate-expired): insert `Err(webpki::Error::CertExpired { .. }) if $ON &&
        //     now.as_secs() != u64::MAX => Ok(()),`
        Err(webpki::Error::CertExpired { not_after, .. }) => {
            Err(Invalid::Expired(system_time(not_after)))
        }
        // mutant(certificate-early): insert `Err(webpki::Error::CertNotValidYet { .. }) if $ON &&
        //     now.as_secs() != 0 => Ok(()),`
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
            Err(Invalid::Early(system_time(not_before)))
        }
        // no mutant: this party's own identity is read
        Err(_) => Err(Invalid::Malformed),
    }
}

/// Checks that `signature` is one of `message` by the key of `certificate`.
pub(crate) fn check_signature(
    certificate: &CertificateDer<'_>,
    message: &[u8],
    signature: &[u8],
) -> Result<(), Invalid> {
    let end_entity = EndEntityCert::try_from(certificate).map_err(|_| Invalid::Malformed)?;
    end_entity
        .verify_signature(webpki::aws_lc_rs::ED25519, message, signature)
        .map_err(|_| Invalid::Malformed)
}

/// The validity period of `certificate`, signed by the key of `issuer`. The only parser of
/// certificates is that of [`check`], which reports the limits when asked about the beginning and
/// the end of time.
pub(crate) fn validity(
    certificate: &CertificateDer<'_>,
    issuer: &CertificateDer<'_>,
) -> Result<Range<SystemTime>, Invalid> {
    let ask = |seconds| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        check_signed(certificate, issuer, time)
    };
    let start = match ask(0) {
        Err(Invalid::Early(start)) => start,
        // no mutant: this party's own identity is read
        Err(invalid @ (Invalid::Malformed | Invalid::Name)) => return Err(invalid),
        _ => UNIX_EPOCH,
    };
    let Err(Invalid::Expired(end)) = ask(u64::MAX) else {
        // no mutant: this party's own identity is read
        return Err(Invalid::Malformed);
    };
    // The signature is checked last, of a certificate that is valid otherwise.
    // mutant(certificate-signed): drop
    check_signed(certificate, issuer, unix_time(start)).map_err(|_| Invalid::Malformed)?;
    Ok(start..end)
}

/// The end of the validity of a certificate of any issuer, which is read before the signature.
#[cfg(feature = "web")]
pub(crate) fn end(certificate: &CertificateDer<'_>) -> Option<SystemTime> {
    let late = UnixTime::since_unix_epoch(Duration::from_secs(u64::MAX));
    match check_signed(certificate, certificate, late) {
        Err(Invalid::Expired(end)) => Some(end),
        _ => None,
    }
}

/// The name in a certificate made by [`Identity::generate`](super::Identity::generate).
pub(crate) fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let anchor = anchor_from_trusted_cert(certificate).ok()?;
    // One set with one attribute, a common name in UTF-8, all shorter than 128 bytes.
    match anchor.subject.as_ref() {
        [0x31, _, 0x30, _, 6, 3, 0x55, 4, 3, 0x0c, _, name @ ..] => {
            String::from_utf8(name.to_vec()).ok()
        }
        _ => None,
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).ok(),
        Err(before) => i64::try_from(before.duration().as_secs()).ok().map(|seconds| -seconds),
    }
}

/// A time as the checks take it; a time before 1970 becomes 1970.
pub(crate) fn unix_time(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn system_time(time: UnixTime) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_secs(time.as_secs())).unwrap_or(UNIX_EPOCH)
}

/// The day of a time, as `2026-11-21`, in UTC.
pub(crate) fn day(time: SystemTime) -> String {
    let time = seconds(time).and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.map_or_else(|| "a day out of range".to_owned(), |time| time.date().to_string())
}
