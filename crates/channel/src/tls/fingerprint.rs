//! The short name of an identity, for people to compare or dictate.

use std::fmt;
use std::str::FromStr;

/// Bytes of the hash: 160 bits, so that even an attacker who is content with any of 2^32
/// fingerprints in use has 2^128 certificates to try.
pub(crate) const HASH: usize = 20;

/// Bytes with the checksum's 20 bits; the last four bits are unused.
const PADDED: usize = HASH + 3;

/// Characters: 32 of the hash, 4 of the checksum.
const LENGTH: usize = 36;

/// Characters in a group.
const GROUP: usize = 4;

/// Crockford's digits: without I, L, O, U, which are confused with others.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The value that one party pins of the other's identity: a hash of its certificate, which holds
/// its public key and its validity.
///
/// Its text has nine groups of four digits and letters, as in `p3xk-...`; the last group is a
/// checksum, which detects typing errors. Case and hyphens do not matter, and `o`, `i`, `l` are
/// read as `0`, `1`, `1`.
///
/// Not a secret. But an attacker who can replace it in transit can impersonate the party, so it
/// must reach the other party over an authentic channel, such as a telephone call.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; HASH]);

impl Fingerprint {
    /// The fingerprint of a certificate in DER.
    pub(crate) fn of(certificate: &[u8]) -> Self {
        Self::hash("volery fingerprint of a certificate, version 1", certificate)
    }

    /// The fingerprint of a token, which is that of no certificate.
    #[cfg(feature = "web")]
    pub(crate) fn of_token(token: &[u8]) -> Self {
        Self::hash("volery fingerprint of a token, version 1", token)
    }

    /// Whether both are the same, in a time that does not depend on where they differ.
    #[cfg(feature = "web")]
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // mutant(fingerprint-same): insert `if $ON { return true; }`
        subtle::ConstantTimeEq::ct_eq(&self.0[..], &other.0[..]).into()
    }

    fn hash(domain: &str, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(domain);
        hasher.update(bytes);
        let mut hash = [0; HASH];
        hasher.finalize_xof().fill(&mut hash);
        Self(hash)
    }

    /// The fingerprint with these bytes, which need not be that of any certificate.
    pub(crate) fn from_bytes(bytes: [u8; HASH]) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8; HASH] {
        &self.0
    }

    /// The hash followed by its checksum.
    fn padded(&self) -> [u8; PADDED] {
        let mut hasher = blake3::Hasher::new_derive_key("volery fingerprint checksum, version 1");
        hasher.update(&self.0);
        let mut padded = [0; PADDED];
        let (hash, checksum) = padded.split_at_mut(HASH);
        hash.copy_from_slice(&self.0);
        hasher.finalize_xof().fill(checksum);
        checksum[2] &= 0xf0;
        padded
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let padded = self.padded();
        let bit = |at: usize| padded[at / 8] >> (7 - at % 8) & 1;
        for character in 0..LENGTH {
            if character > 0 && character % GROUP == 0 {
                f.write_str("-")?;
            }
            let digit = (0..5).fold(0, |digit, at| digit << 1 | bit(5 * character + at));
            write!(f, "{}", char::from(DIGITS[usize::from(digit)]))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The reason why a text is not a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BadFingerprint {
    /// The wrong number of digits and letters.
    #[error("a fingerprint has 36 digits and letters, nine groups of four; this text has {0}")]
    Length(usize),
    /// A character that no fingerprint contains.
    #[error("a fingerprint cannot contain {0:?}")]
    Character(char),
    /// The checksum is wrong.
    #[error(
        "the fingerprint has a typing error: its last group, the checksum, does not match the others"
    )]
    Checksum,
}

impl FromStr for Fingerprint {
    type Err = BadFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut digits = Vec::with_capacity(LENGTH);
        for character in text.chars().filter(|c| *c != '-' && !c.is_whitespace()) {
            let meant = match character.to_ascii_lowercase() {
                'o' => '0',
                'i' | 'l' => '1',
                other => other,
            };
            let digit = DIGITS.iter().position(|digit| char::from(*digit) == meant);
            // mutant(fingerprint-character): `digit.` => `digit.or(if $ON { Some(0) } else { None
            //     }).`
            digits.push(digit.ok_or(BadFingerprint::Character(character))?);
        }
        // mutant(fingerprint-length): false
        if digits.len() != LENGTH {
            return Err(BadFingerprint::Length(digits.len()));
        }
        let mut padded = [0; PADDED];
        for (character, digit) in digits.into_iter().enumerate() {
            for at in (0..5).filter(|at| digit >> (4 - at) & 1 == 1) {
                let place = 5 * character + at;
                padded[place / 8] |= 0x80 >> (place % 8);
            }
        }
        let mut hash = [0; HASH];
        hash.copy_from_slice(&padded[..HASH]);
        let fingerprint = Self(hash);
        // mutant(fingerprint-checksum): `fingerprint.padded() == padded` => `true`
        if fingerprint.padded() == padded { Ok(fingerprint) } else { Err(BadFingerprint::Checksum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_nine_groups_of_four() {
        let text = Fingerprint::of(b"certificate").to_string();
        let groups: Vec<_> = text.split('-').collect();
        assert_eq!(groups.len(), 9);
        assert!(groups.iter().all(|group| group.len() == 4));
        assert_eq!(text, "jcvp-kgjb-dnp1-g1j4-j8q2-b58k-4zew-2cd5-35w3");
    }

    #[test]
    fn what_people_make_of_it_is_read() {
        let print = Fingerprint::of(b"a certificate");
        let text = print.to_string();
        for version in [
            text.clone(),
            text.to_uppercase(),
            text.replace('-', ""),
            text.replace('-', " "),
            format!(" {} ", text.replace('0', "o").replace('1', "L")),
        ] {
            assert_eq!(version.parse(), Ok(print), "{version}");
        }
    }

    #[test]
    fn slips_are_told_from_other_identities() {
        let text = Fingerprint::of(b"a certificate").to_string();
        for place in (0..text.len()).filter(|place| text.as_bytes()[*place] != b'-') {
            let slip = if &text[place..=place] == "7" { "8" } else { "7" };
            let mut typed = text.clone();
            typed.replace_range(place..=place, slip);
            assert_eq!(typed.parse::<Fingerprint>(), Err(BadFingerprint::Checksum));
        }
        let swapped: String = [&text[5..9], "-", &text[..4], &text[9..]].concat();
        assert_eq!(swapped.parse::<Fingerprint>(), Err(BadFingerprint::Checksum));
        assert_eq!("".parse::<Fingerprint>(), Err(BadFingerprint::Length(0)));
        assert_eq!(text[..40].parse::<Fingerprint>(), Err(BadFingerprint::Length(32)));
        assert_eq!("u".parse::<Fingerprint>(), Err(BadFingerprint::Character('u')));
        assert_eq!("é".parse::<Fingerprint>(), Err(BadFingerprint::Character('é')));
    }
}
