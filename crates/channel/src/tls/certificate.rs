//! Parsing and checking of certificates, this party's own and the peer's.

use std::fmt;
use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, UnixTime};
use time::OffsetDateTime;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

/// The reason why a certificate is not accepted, this party's or the peer's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Invalid {
    /// It has expired.
    Expired(SystemTime),
    /// It is not valid yet.
    Early(SystemTime),
    /// It is not a certificate, or not self-signed.
    Malformed,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Expired(last) => write!(f, "it expired on {}", day(*last)),
            Self::Early(first) => write!(
                f,
                "it is valid only from {} on; check the clock of this machine",
                day(*first)
            ),
            Self::Malformed => f.write_str("its certificate is damaged"),
        }
    }
}

/// Checks that `certificate` is well formed, self-signed, and valid at `now`.
pub(super) fn check(certificate: &CertificateDer<'_>, now: UnixTime) -> Result<(), Invalid> {
    let end_entity = EndEntityCert::try_from(certificate).map_err(|_| Invalid::Malformed)?;
    let anchor = anchor_from_trusted_cert(certificate).map_err(|_| Invalid::Malformed)?;
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
        Err(webpki::Error::CertExpired { not_after, .. }) => {
            Err(Invalid::Expired(system_time(not_after)))
        }
        Err(webpki::Error::CertNotValidYet { not_before, .. }) => {
            Err(Invalid::Early(system_time(not_before)))
        }
        Err(_) => Err(Invalid::Malformed),
    }
}

/// The validity period of `certificate`. The only parser of certificates is that of [`check`],
/// which reports the limits when asked about the beginning and the end of time.
pub(super) fn validity(certificate: &CertificateDer<'_>) -> Result<Range<SystemTime>, Invalid> {
    let ask = |seconds| {
        check(
            certificate,
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
        )
    };
    let start = match ask(0) {
        Err(Invalid::Early(start)) => start,
        Err(Invalid::Malformed) => return Err(Invalid::Malformed),
        _ => UNIX_EPOCH,
    };
    match ask(u64::MAX) {
        Err(Invalid::Expired(end)) => Ok(start..end),
        _ => Err(Invalid::Malformed),
    }
}

/// Seconds since 1970.
pub(super) fn seconds(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_secs()).ok(),
        Err(before) => i64::try_from(before.duration().as_secs())
            .ok()
            .map(|seconds| -seconds),
    }
}

/// A time as the checks take it; a time before 1970 becomes 1970.
pub(super) fn unix_time(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(time.duration_since(UNIX_EPOCH).unwrap_or_default())
}

fn system_time(time: UnixTime) -> SystemTime {
    UNIX_EPOCH
        .checked_add(Duration::from_secs(time.as_secs()))
        .unwrap_or(UNIX_EPOCH)
}

/// The day of a time, as `2026-11-21`, in UTC.
pub(super) fn day(time: SystemTime) -> String {
    let time = seconds(time).and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
    time.map_or_else(
        || "a day out of range".to_owned(),
        |time| time.date().to_string(),
    )
}
