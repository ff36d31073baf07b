//! A party's key pair and its certificate.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use rcgen::{
    CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair, PKCS_ED25519, SanType,
};
use rustls::SignatureScheme;
use rustls::crypto::aws_lc_rs::sign::any_eddsa_type;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, DnsName, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::sign::CertifiedKey;
use time::OffsetDateTime;
use zeroize::{Zeroize as _, Zeroizing};

use super::Fingerprint;
use super::certificate;
use crate::{Error, Result};

/// Longest name, in bytes.
const NAME_BOUND: usize = 64;

/// The identity of a party: an Ed25519 key pair and a self-signed certificate for it.
///
/// Certificates have no authority: the other party pins its [`Fingerprint`]. `Debug` shows only the
/// fingerprint.
///
/// Where an organisation runs many workers, its identity stays at one place and
/// [issues](Self::issue) each of them a *run certificate*: a key of its own, signed by the
/// organisation's, for one name. The other party pins the organisation and the name
/// ([`Peer`](super::Peer)).
#[derive(Clone)]
pub struct Identity {
    /// The certificate; behind a run certificate that of its organisation, and behind the successor
    /// of an identity its announcement and the certificate of that identity.
    pair: Arc<CertifiedKey>,
    pem: Zeroizing<String>,
    fingerprint: Fingerprint,
    organisation: Fingerprint,
    validity: Range<SystemTime>,
}

impl Identity {
    /// A new identity, valid during `validity`, to whole seconds. The `name` is part of the
    /// certificate and proves nothing; any client that connects to a listening party can read the
    /// party's certificate.
    ///
    /// # Errors
    /// [`Error::Identity`] if the name is invalid ([`check_name`](Self::check_name)), if the
    /// validity is empty or outside the years 1970 to 9999, or the operating system provides no
    /// randomness.
    pub fn generate(name: &str, validity: Range<SystemTime>) -> Result<Self> {
        Self::check_name(name)?;
        let parameters = parameters(name, validity)?;
        let mut key = KeyPair::generate_for(&PKCS_ED25519).map_err(made)?;
        let certificate = parameters.self_signed(&key);
        let private = Zeroizing::new(key.serialize_pem());
        key.zeroize();
        let certificate = certificate.map_err(made)?;
        Self::from_pem(&Zeroizing::new(certificate.pem() + &private))
    }

    /// A run certificate: an identity with a new key, signed by this one, for the DNS name `name`
    /// and no other, valid during `validity` and no longer than this one. It can issue nothing, and
    /// is accepted only by a party that pins this identity together with the name.
    ///
    /// # Errors
    /// [`Error::Identity`] if `name` is no DNS name, this identity is a run certificate itself or
    /// was not made by [`generate`](Self::generate), or as there.
    pub fn issue(&self, name: &str, validity: Range<SystemTime>) -> Result<Self> {
        if self.chain().len() > 1 {
            return Err(unusable("a run certificate can issue no other"));
        }
        if DnsName::try_from(name).is_err() {
            return Err(unusable("a run certificate must be for a DNS name"));
        }
        self.sign(&[name], validity)
    }

    /// The identity that takes the place of this one: with the same name and a new key, valid
    /// during `validity`, and with an *announcement* of it, signed by this one and valid no longer
    /// than this one. It shows the announcement to peers, of which those that pin this one may
    /// [follow](super::Follow) it.
    ///
    /// # Errors
    /// [`Error::Identity`] if this is a run certificate, has expired by the beginning of
    /// `validity`, or as [`generate`](Self::generate).
    pub fn renew(&self, validity: Range<SystemTime>) -> Result<Self> {
        const PRIVATE: &str = "-----BEGIN PRIVATE";
        if self.chain().len() > 1 {
            return Err(unusable(
                "a run certificate is not renewed; its organisation issues another",
            ));
        }
        let name = certificate::common_name(self.certificate());
        let name =
            name.ok_or_else(|| unusable("only an identity made by volery can be renewed"))?;
        let next = Self::generate(&name, validity.clone())?;
        let name = certificate::successor_name(next.fingerprint);
        // Its key signs nothing, and is wiped here.
        let announced = self.sign(&[&name], validity)?;
        let cut = |pem: &str| pem.find(PRIVATE).unwrap_or(pem.len());
        let (certificate, private) = next.pem.split_at(cut(&next.pem));
        let announced = &announced.pem[..cut(&announced.pem)];
        Self::from_pem(&Zeroizing::new([certificate, announced, private].concat()))
    }

    /// A run certificate for these names.
    fn sign(&self, names: &[&str], validity: Range<SystemTime>) -> Result<Self> {
        let Range { start, end } = self.validity();
        let validity = validity.start.max(start)..validity.end.min(end);
        // no mutant: this party's own identity is read
        let common = certificate::common_name(self.certificate()).ok_or_else(|| {
            unusable("only an identity made by volery can issue run certificates")
        })?;
        let issuer = parameters(&common, validity.clone())?;
        let mut parameters = parameters("volery run", validity)?;
        parameters.is_ca = IsCa::ExplicitNoCa;
        for name in names {
            let name = (*name).try_into().map_err(made)?;
            parameters.subject_alt_names.push(SanType::DnsName(name));
        }
        let mut own = private_key(&self.pem)?;
        let signer = KeyPair::from_pkcs8_der_and_sign_algo(&own, &PKCS_ED25519);
        own.zeroize();
        let mut signer = signer.map_err(made)?;
        let key = KeyPair::generate_for(&PKCS_ED25519);
        let leaf = key.and_then(|mut key| {
            let leaf = parameters.signed_by(&key, &Issuer::from_params(&issuer, &signer));
            let private = Zeroizing::new(key.serialize_pem());
            key.zeroize();
            Ok((leaf?, private))
        });
        signer.zeroize();
        let (leaf, private) = leaf.map_err(made)?;
        let pem = leaf.pem() + certificate_pem(&self.pem)? + &private;
        Self::from_pem(&Zeroizing::new(pem))
    }

    /// Checks that a name has 1 to 64 bytes and no control characters.
    ///
    /// # Errors
    /// [`Error::Identity`] otherwise.
    pub fn check_name(name: &str) -> Result<()> {
        if name.is_empty() || name.len() > NAME_BOUND || name.chars().any(char::is_control) {
            return Err(unusable("a name must have 1 to 64 bytes and no control characters"));
        }
        Ok(())
    }

    /// The identity in PEM, as [`to_pem`](Self::to_pem) returns it: a certificate and its private
    /// key; behind a run certificate there is also that of its organisation, and behind a renewed
    /// one its announcement. Its validity is not
    /// checked: [`check`](Self::check) does that.
    ///
    /// # Errors
    /// [`Error::Identity`] if one of them is missing or malformed, or they do not belong together.
    pub fn from_pem(pem: &str) -> Result<Self> {
        // Apart from the private key, of which the parser would leave a copy in memory.
        let mut parts = pem.split("-----BEGIN PRIVATE");
        let part = parts.find(|part| part.contains("-----BEGIN CERTIFICATE"));
        let chain: std::result::Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(part.unwrap_or_default().as_bytes()).collect();
        let chain = chain.ok().filter(|chain| !chain.is_empty());
        let chain = chain.ok_or_else(|| unusable("it contains no certificate in PEM"))?;
        let mut private = private_key(pem)?;
        let signer = any_eddsa_type(&private);
        private.zeroize();
        let signer = signer.map_err(|_| unusable("its private key is not an Ed25519 key"))?;
        let (leaf, organisation) = match &chain[..] {
            [own] => (own, own),
            [leaf, organisation] => (leaf, organisation),
            [own, announcement, earlier] => {
                certificate::validity(announcement, earlier).map_err(unusable)?;
                (own, own)
            }
            _ => return Err(unusable("it contains more than three certificates")),
        };
        let validity = certificate::validity(leaf, organisation).map_err(unusable)?;
        let longest = certificate::validity(organisation, organisation).map_err(unusable)?;
        let validity = validity.start.max(longest.start)..validity.end.min(longest.end);
        let (fingerprint, organisation) = (Fingerprint::of(leaf), Fingerprint::of(organisation));
        let pair = CertifiedKey::new(chain, signer);
        pair.keys_match()
            .map_err(|_| unusable("its private key does not match its certificate"))?;
        Ok(Self {
            pair: Arc::new(pair),
            pem: Zeroizing::new(pem.to_owned()),
            fingerprint,
            organisation,
            validity,
        })
    }

    /// The certificate, or the two, and the private key in PEM. A secret: its owner can act as this
    /// party.
    pub fn to_pem(&self) -> &str {
        &self.pem
    }

    /// The fingerprint of its certificate: the one that the other party pins, except for a run
    /// certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The fingerprint that the other party pins: that of the identity which issued this run
    /// certificate, or else its own.
    pub fn organisation(&self) -> Fingerprint {
        self.organisation
    }

    /// The validity period of the identity; of a run certificate, as far as its organisation's is
    /// valid, too.
    pub fn validity(&self) -> Range<SystemTime> {
        self.validity.clone()
    }

    /// The last day of the validity, as `2027-11-21`, in UTC.
    pub fn last_day(&self) -> String {
        certificate::day(self.validity.end)
    }

    /// Checks that the identity is valid at `now`; call it before using the identity.
    ///
    /// # Errors
    /// [`Error::Identity`] with the day.
    pub fn check(&self, now: SystemTime) -> Result<()> {
        let now = certificate::unix_time(now);
        let organisation = self.chain().last().unwrap_or(self.certificate());
        certificate::check_signed(self.certificate(), organisation, now).map_err(unusable)?;
        certificate::check(organisation, now)
            .map_err(|why| unusable(format_args!("the identity that issued it: {why}")))
    }

    pub(crate) fn certificate(&self) -> &CertificateDer<'static> {
        &self.pair.cert[0]
    }

    /// The certificate, and behind a run certificate that of its organisation.
    pub(crate) fn chain(&self) -> &[CertificateDer<'static>] {
        match &self.pair.cert[..] {
            [own, _, _] => std::slice::from_ref(own),
            chain => chain,
        }
    }

    /// A signature of `message` by the private key.
    pub(crate) fn signature(&self, message: &[u8]) -> Result<Vec<u8>> {
        let signer = self.pair.key.choose_scheme(&[SignatureScheme::ED25519]);
        let signer = signer.ok_or_else(|| unusable("its private key is not an Ed25519 key"))?;
        let signed = signer.sign(message);
        signed.map_err(|error| unusable(error.to_string()))
    }

    pub(super) fn pair(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.pair)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("fingerprint", &self.fingerprint).finish_non_exhaustive()
    }
}

fn unusable(why: impl fmt::Display) -> Error {
    Error::Identity(why.to_string())
}

fn made(error: rcgen::Error) -> Error {
    unusable(error)
}

fn private_key(pem: &str) -> Result<PrivatePkcs8KeyDer<'static>> {
    match PrivateKeyDer::from_pem_slice(pem.as_bytes()) {
        Ok(PrivateKeyDer::Pkcs8(private)) => Ok(private),
        Ok(_) => Err(unusable("its private key is not in PKCS #8")),
        Err(_) => Err(unusable("it contains no private key in PEM")),
    }
}

/// The text of the first certificate in PEM.
fn certificate_pem(pem: &str) -> Result<&str> {
    const END: &str = "-----END CERTIFICATE-----\n";
    let start = pem.find("-----BEGIN CERTIFICATE-----");
    let end = pem.find(END).map(|end| end + END.len());
    let text = start.zip(end).and_then(|(start, end)| pem.get(start..end));
    text.ok_or_else(|| unusable("it contains no certificate in PEM"))
}

/// The parameters that every certificate has.
fn parameters(name: &str, validity: Range<SystemTime>) -> Result<CertificateParams> {
    if validity.is_empty() {
        return Err(unusable("its validity period is empty"));
    }
    let mut parameters = CertificateParams::default();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.not_before = date_time(validity.start)?;
    parameters.not_after = date_time(validity.end)?;
    Ok(parameters)
}

/// A time as a certificate holds it.
fn date_time(time: SystemTime) -> Result<OffsetDateTime> {
    const FIRST: i64 = 0; // 1970-01-01: before, no certificate is accepted
    const LAST: i64 = 253_402_300_799; // 9999-12-31
    let seconds = certificate::seconds(time).filter(|seconds| (FIRST..=LAST).contains(seconds));
    seconds
        .and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok())
        .ok_or_else(|| unusable("it would be valid before 1970 or after 9999"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::pin::{Follow, Peer, check_identity};
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    /// 2026-11-21, noon.
    const NOON: Duration = Duration::from_secs(1_795_262_400);

    fn valid_for(days: u32) -> Range<SystemTime> {
        let now = UNIX_EPOCH + NOON;
        now - DAY..now + DAY * days
    }

    fn why<T: fmt::Debug>(result: Result<T>) -> String {
        match result.unwrap_err() {
            Error::Identity(why) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_identity_is_read_back_from_its_text() {
        let identity = Identity::generate("hospital", valid_for(30)).unwrap();
        let again = Identity::from_pem(identity.to_pem()).unwrap();
        assert_eq!(again.fingerprint(), identity.fingerprint());
        assert_eq!(again.validity(), valid_for(30));
        assert_eq!(again.to_pem(), identity.to_pem());
        assert_eq!(identity.last_day(), "2026-12-21");
    }

    #[test]
    fn no_two_identities_are_the_same() {
        let [one, other] = [1, 2].map(|_| Identity::generate("same name", valid_for(30)).unwrap());
        assert_ne!(one.fingerprint(), other.fingerprint());
    }

    #[test]
    fn it_is_valid_from_its_first_second_to_its_last() {
        let identity = Identity::generate("a", valid_for(1)).unwrap();
        let Range { start, end } = identity.validity();
        let second = Duration::from_secs(1);
        for now in [start, UNIX_EPOCH + NOON, end] {
            identity.check(now).unwrap();
        }
        assert_eq!(why(identity.check(end + second)), "it expired on 2026-11-22");
        assert_eq!(
            why(identity.check(start - second)),
            "it is valid only from 2026-11-20 on; check the clock of this machine"
        );
    }

    #[test]
    fn what_is_no_identity_is_refused() {
        let [one, other] = [1, 2].map(|_| Identity::generate("a", valid_for(30)).unwrap());
        let key = |identity: &Identity| {
            let pem = identity.to_pem();
            pem[pem.find("-----BEGIN PRIVATE").unwrap()..].to_owned()
        };
        let certificate = one.to_pem().replace(&key(&one), "");
        for (pem, fragment) in [
            (String::new(), "no certificate"),
            ("nonsense".to_owned(), "no certificate"),
            (certificate.clone(), "no private key"),
            (key(&one), "no certificate"),
            (certificate.clone() + &key(&other), "does not match its certificate"),
            (certificate.replace("CERTIFICATE", "PRIVATE KEY") + &certificate, "Ed25519"),
            (one.to_pem().replacen("\nMI", "\nMJ", 1), "certificate"),
            (one.to_pem().replacen("-----END", "", 1), "certificate"),
        ] {
            let refused = why(Identity::from_pem(&pem));
            assert!(refused.contains(fragment), "{refused}");
        }
    }

    const NAME: &str = "w1.volery.invalid";

    #[test]
    fn a_run_certificate_is_read_back_from_its_text() {
        let organisation = Identity::generate("hospital, ü", valid_for(30)).unwrap();
        let leaf = organisation.issue(NAME, valid_for(1)).unwrap();
        let again = Identity::from_pem(leaf.to_pem()).unwrap();
        for leaf in [&leaf, &again] {
            assert_eq!(leaf.organisation(), organisation.fingerprint());
            assert_eq!(leaf.validity(), valid_for(1));
            leaf.check(UNIX_EPOCH + NOON).unwrap();
            let late = why(leaf.check(UNIX_EPOCH + NOON + 2 * DAY));
            assert_eq!(late, "it expired on 2026-11-22");
        }
        assert_eq!(again.fingerprint(), leaf.fingerprint());
        assert_ne!(leaf.fingerprint(), organisation.fingerprint());
        assert_eq!(organisation.organisation(), organisation.fingerprint());
        let key =
            |identity: &Identity| identity.to_pem().split_once("PRIVATE").unwrap().1.to_owned();
        assert_ne!(key(&leaf), key(&organisation));
    }

    #[test]
    fn a_run_certificate_is_valid_no_longer_than_its_organisation() {
        let organisation = Identity::generate("a", valid_for(2)).unwrap();
        let leaf = organisation.issue(NAME, valid_for(30)).unwrap();
        assert_eq!(leaf.validity(), valid_for(2));
        let late = UNIX_EPOCH + NOON + 40 * DAY;
        let empty = organisation.issue(NAME, late..late + DAY);
        assert!(why(empty).contains("period is empty"));
        // One of a longer validity, as another program could issue it.
        let longer = Identity { validity: valid_for(30), ..organisation.clone() };
        let leaf = longer.issue(NAME, valid_for(30)).unwrap();
        assert_eq!(leaf.validity(), valid_for(2));
        let late = why(leaf.check(UNIX_EPOCH + NOON + 10 * DAY));
        assert!(late.contains("issued it: it expired on 2026-11-23"), "{late}");
    }

    #[test]
    fn what_is_no_chain_is_refused() {
        let [one, other] = [1, 2].map(|_| Identity::generate("a", valid_for(30)).unwrap());
        let leaf = one.issue(NAME, valid_for(1)).unwrap();
        assert!(why(leaf.issue(NAME, valid_for(1))).contains("can issue no other"));
        for name in ["", "a b", "*.volery.invalid", "ü.invalid"] {
            assert!(why(one.issue(name, valid_for(1))).contains("DNS name"), "{name}");
        }
        let [one, other] = [&one, &other].map(|one| certificate_pem(one.to_pem()).unwrap());
        let foreign = leaf.to_pem().replace(one, other);
        assert!(why(Identity::from_pem(&foreign)).contains("damaged"));
        let long = leaf.to_pem().replace(one, &one.repeat(3));
        assert!(why(Identity::from_pem(&long)).contains("more than three"));
        // An announcement that the identity behind it has not signed.
        let foreign = leaf.to_pem().replace(one, &[one, other].concat());
        assert!(Identity::from_pem(&foreign).is_err());
        let alone = leaf.to_pem().replace(one, "");
        assert!(why(Identity::from_pem(&alone)).contains("damaged"));
    }

    /// A leaf that is good for other names, too, is good for none.
    #[test]
    fn a_run_certificate_is_for_one_name() {
        let organisation = Identity::generate("a", valid_for(30)).unwrap();
        let good = |names: &[&str]| {
            let leaf = organisation.sign(names, valid_for(1)).unwrap();
            let now = certificate::unix_time(UNIX_EPOCH + NOON);
            let [leaf, organisation] = leaf.chain() else { panic!("no chain") };
            certificate::check_leaf(leaf, organisation, NAME, now)
        };
        assert_eq!(good(&[NAME]), Ok(()));
        for names in [
            &["*.volery.invalid"][..],
            &["w2.volery.invalid"],
            &[NAME, "w2.volery.invalid"],
            &["volery.invalid"],
            &[],
        ] {
            assert_eq!(good(names), Err(certificate::Invalid::Name), "{names:?}");
        }
    }

    /// A pinned identity that is followed, and peers that only hold something like its successor.
    #[test]
    fn a_successor_is_followed_forward_only() {
        let [own, other] = [1, 2].map(|_| Identity::generate("a", valid_for(30)).unwrap());
        let next = own.renew(valid_for(90)).unwrap();
        assert_eq!(Identity::from_pem(next.to_pem()).unwrap().validity(), valid_for(90));
        assert_eq!(certificate::common_name(next.certificate()).unwrap(), "a");
        assert!(next.issue(NAME, valid_for(1)).is_ok() && next.chain().len() == 1);
        let [_, announcement, earlier] = &next.pair.cert[..] else { panic!("no announcement") };
        let time = UNIX_EPOCH + NOON;
        let follow = |since, earlier| Some(Follow { since, earlier });
        let start = valid_for(1).start;
        let follows =
            Peer { follow: follow(start, vec![other.fingerprint()]), ..own.fingerprint().into() };
        let check = |peer: &Peer, shown: &Identity, others: &[CertificateDer<'_>], now| {
            let checked =
                check_identity(peer, shown.certificate(), others, certificate::unix_time(now));
            checked.map_err(|why| why.to_string())
        };
        let others = [announcement.clone(), earlier.clone()];
        assert_eq!(check(&follows, &next, &others, time), Ok(()));
        // The identity itself and its successor are accepted where they are pinned, without more.
        assert_eq!(check(&follows, &own, &[], time), Ok(()));
        let both = Peer { also: Some(next.fingerprint()), ..own.fingerprint().into() };
        for shown in [(&own, &[][..]), (&next, &others[..]), (&next, &[])] {
            assert_eq!(check(&both, shown.0, shown.1, time), Ok(()));
        }
        // An announcement beyond the last day of the identity, as another program could sign it.
        let longer = Identity { validity: valid_for(90), ..own.clone() };
        let by = |one: &Identity, of: &Identity| {
            let name = certificate::successor_name(of.fingerprint());
            one.sign(&[&name], valid_for(60)).unwrap().certificate().clone()
        };
        let late = time + 40 * DAY;
        let [own_, other_] = [&own, &other].map(|one| one.certificate().clone());
        let run = own.issue(NAME, valid_for(1)).unwrap().certificate().clone();
        let plain = Peer::from(own.fingerprint());
        let back = Peer { follow: follow(start, vec![next.fingerprint()]), ..plain.clone() };
        let newer = Peer { follow: follow(start + DAY, Vec::new()), ..plain.clone() };
        for (peer, shown, others, now, reason) in [
            (&follows, &next, [by(&longer, &next), own_.clone()], late, "not accepted: it expired"),
            (&follows, &next, others.clone(), late, "not accepted: it expired"),
            (&follows, &next, [by(&other, &next), own_.clone()], time, "not one of the pinned"),
            (&follows, &next, [by(&other, &next), other_], time, "is pinned"),
            (&follows, &other, others.clone(), time, "not one of the pinned"),
            (&follows, &other, [run, own_], time, "not one of the pinned"),
            (&plain, &next, others.clone(), time, "announces as its successor"),
            (&back, &next, others.clone(), time, "followed forward only"),
            (&newer, &next, others, time, "followed forward only"),
        ] {
            let why = check(peer, shown, &others, now).unwrap_err();
            assert!(why.contains(reason), "{reason}: {why}");
        }
    }

    #[test]
    fn names_and_times_are_checked() {
        for name in ["", "a\nb", &"x".repeat(65)] {
            assert!(why(Identity::generate(name, valid_for(1))).contains("name"));
        }
        Identity::generate(&"x".repeat(64), valid_for(1)).unwrap();
        let now = UNIX_EPOCH + NOON;
        assert!(why(Identity::generate("a", now..now)).contains("period is empty"));
        let late = now + DAY * 4_000_000;
        assert!(why(Identity::generate("a", now..late)).contains("9999"));
    }

    #[test]
    fn debug_shows_no_key() {
        let identity = Identity::generate("a", valid_for(30)).unwrap();
        let text = format!("{identity:?}");
        assert!(text.contains(&identity.fingerprint().to_string()));
        assert!(text.len() < 100, "{text}");
    }
}
