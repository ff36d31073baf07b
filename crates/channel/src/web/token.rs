//! Access tokens of browsers, which have no certificate.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64URL_NOPAD;
use volery_primitives::prg::Prg;
use zeroize::Zeroizing;

use crate::Result;
use crate::tls::Fingerprint;

/// Bytes of a token.
const BYTES: usize = 32;

/// A secret of 256 bits by which a server knows a browser.
///
/// The server has its [fingerprint](Self::fingerprint) only. Its text is 43 characters of
/// base64url.
#[derive(Clone)]
pub struct Token(Zeroizing<[u8; BYTES]>);

/// The text is not a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a token has 43 letters, digits, '-' and '_', as 'volery keygen --token' writes it")]
pub struct BadToken;

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// If the operating system gives no randomness.
    pub fn random() -> Result<Self> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        Prg::from_os()?.fill_bytes(&mut *bytes);
        Ok(Self(bytes))
    }

    /// Its text, which is the secret.
    pub fn text(&self) -> Zeroizing<String> {
        Zeroizing::new(BASE64URL_NOPAD.encode(&*self.0))
    }

    /// The fingerprint by which a server knows it. It tells nothing of the token.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of_token(&*self.0)
    }
}

impl FromStr for Token {
    type Err = BadToken;

    fn from_str(text: &str) -> std::result::Result<Self, BadToken> {
        let mut bytes = Zeroizing::new([0; BYTES]);
        // mutant(web-token-length): false
        if BASE64URL_NOPAD.decode_len(text.len()) != Ok(BYTES) {
            return Err(BadToken);
        }
        let read = BASE64URL_NOPAD.decode_mut(text.as_bytes(), &mut *bytes);
        read.map(|_| Self(bytes)).map_err(|_| BadToken)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_back_and_nothing_else_is_one() {
        let token = Token::random().unwrap();
        let text = token.text();
        assert_eq!(text.len(), 43);
        assert_eq!(text.parse::<Token>().unwrap().fingerprint(), token.fingerprint());
        assert_ne!(Token::random().unwrap().fingerprint(), token.fingerprint());
        assert_eq!(format!("{token:?}"), "Token");
        let longer = format!("{}A", *text);
        let padded = format!("{}=", *text);
        // 43 characters have two bits to spare, which are zero.
        let spare = format!("{}B", "A".repeat(42));
        for wrong in ["", &text[1..], &longer, &padded, &spare, &"+".repeat(43), &"é".repeat(22)] {
            assert!(wrong.parse::<Token>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_fingerprint_of_a_token_is_not_that_of_a_certificate() {
        assert_ne!(Fingerprint::of_token(b"x"), Fingerprint::of(b"x"));
        // The stored form, which must not change.
        let token: Token = "A".repeat(43).parse().unwrap();
        let print = "gx92-0dm0-j5x8-ehz6-r92j-9t3q-yqe7-jd49-tkpn";
        assert_eq!(token.fingerprint().to_string(), print);
    }
}
