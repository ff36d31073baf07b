//! Whose pages may connect.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// Where a page comes from: scheme, host and port, as a browser says it in the header `Origin`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    is_secure: bool,
    /// In lower case; an IPv6 address in brackets.
    host: String,
    port: u16,
}

/// The text is not an origin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an origin is https://HOST or http://HOST, with :PORT if it has one, and nothing behind it"
)]
pub struct BadOrigin;

impl FromStr for Origin {
    type Err = BadOrigin;

    fn from_str(text: &str) -> Result<Self, BadOrigin> {
        // no mutant: without the separator there is no origin to read
        let (scheme, authority) = text.split_once("://").ok_or(BadOrigin)?;
        let is_secure = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            // mutant(web-scheme): `"http"` => `other if $ON || other == "http"`
            "http" => false,
            // no mutant: the arm before has a mutant that widens it
            _ => return Err(BadOrigin),
        };
        // no mutant: what `of` finds, whose mutant is web-host
        Self::of(is_secure, authority).ok_or(BadOrigin)
    }
}

impl Origin {
    /// The origin of a host with or without a port.
    fn of(is_secure: bool, authority: &str) -> Option<Self> {
        let standard = if is_secure { 443 } else { 80 };
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().ok()?),
            _ => (authority, standard),
        };
        let is_bare = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?.parse::<std::net::Ipv6Addr>().is_ok(),
            None => {
                let allowed = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
                !host.is_empty() && host.chars().all(allowed)
            }
        };
        // mutant(web-host): `is_bare` => `true`
        is_bare.then(|| Self { is_secure, host: host.to_ascii_lowercase(), port })
    }

    /// Whether its host is this machine, whoever answers for names: `localhost` or a loopback
    /// address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let bare = self.host.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>();
        // mutant(web-local): `one.to_canonical().is_loopback()` => `true`
        self.host == "localhost" || address.is_ok_and(|one| one.to_canonical().is_loopback())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, standard) = if self.is_secure { ("https", 443) } else { ("http", 80) };
        write!(f, "{scheme}://{}", self.host)?;
        match self.port {
            port if port == standard => Ok(()),
            port => write!(f, ":{port}"),
        }
    }
}

/// Whether a page of `origin` may connect to `host`, both as the headers say: one of `allowed`, or
/// a page of this server itself.
///
/// Without TLS the latter holds for `localhost` and loopback addresses only: a page of another site
/// could have its name lead to this machine, and would then be of the same origin; and a proxy
/// brings pages of other machines, which are then named.
pub(super) fn may_connect(
    origin: Option<&str>,
    host: Option<&str>,
    is_secure: bool,
    allowed: &[Origin],
) -> bool {
    let Some(Ok(origin)) = origin.map(str::parse::<Origin>) else {
        return false;
    };
    if allowed.contains(&origin) {
        return true;
    }
    let own = host.and_then(|host| Origin::of(is_secure, host));
    // mutant(web-rebinding): `is_secure || own.is_local()` => `true`
    own.is_some_and(|own| own == origin && (is_secure || own.is_local()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_strictly() {
        for (text, shown) in [
            ("https://Match.Example", "https://match.example"),
            ("https://match.example:443", "https://match.example"),
            ("http://localhost:8080", "http://localhost:8080"),
            ("http://[::1]:80", "http://[::1]"),
            ("http://[::1]", "http://[::1]"),
        ] {
            assert_eq!(text.parse::<Origin>().unwrap().to_string(), shown);
        }
        for text in [
            "",
            "null",
            "https://",
            "match.example",
            "ftp://a",
            "https://a/",
            "https://a:b",
            "https://a:70000",
            "https://a b",
            "https://u@a",
            "https://[::1",
            "https://[a]",
            "https://a,https://b",
            "*",
            "https://*.a",
        ] {
            assert_eq!(text.parse::<Origin>(), Err(BadOrigin), "{text}");
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        let is_local = |host: &str| {
            let origin = format!("http://{host}:9000");
            origin.parse::<Origin>().unwrap().is_local()
        };
        for host in ["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "[::1]"] {
            assert!(is_local(host), "{host}");
        }
        for host in [
            "match.example",
            "localhost.example",
            "127.0.0.1.example",
            "192.0.2.1",
            "10.0.0.1",
            "0.0.0.0",
            "[2001:db8::1]",
            "[::ffff:192.0.2.1]",
        ] {
            assert!(!is_local(host), "{host}");
        }
    }

    #[test]
    fn pages_of_others_may_not_connect() {
        let allowed = ["https://match.example".parse().unwrap()];
        let may = |origin, host, is_secure| may_connect(origin, host, is_secure, &allowed);
        // Those that are named.
        assert!(may(Some("https://match.example"), Some("10.0.0.1"), false));
        assert!(!may(Some("http://match.example"), Some("10.0.0.1"), false));
        assert!(!may(Some("https://match.example:8443"), None, true));
        // The page of this server.
        assert!(may(Some("http://127.0.0.1:9000"), Some("127.0.0.1:9000"), false));
        assert!(may(Some("http://localhost:9000"), Some("LocalHost:9000"), false));
        assert!(may(Some("http://[::1]:9000"), Some("[::1]:9000"), false));
        assert!(may(Some("https://own.example"), Some("own.example"), true));
        assert!(!may(Some("https://own.example"), Some("own.example"), false));
        assert!(!may(Some("http://own.example"), Some("own.example"), true));
        assert!(!may(Some("http://127.0.0.1:9001"), Some("127.0.0.1:9000"), false));
        // A name of another site that leads here, and the address of a proxy.
        for origin in ["http://evil.example:9000", "http://192.0.2.1", "http://[2001:db8::1]:9000"]
        {
            assert!(!may(Some(origin), Some(&origin[7..]), false), "{origin}");
        }
        // No page at all, or one without an origin.
        assert!(!may(None, Some("127.0.0.1:9000"), false));
        assert!(!may(Some("null"), Some("127.0.0.1:9000"), false));
        assert!(!may(Some("http://127.0.0.1:9000"), None, false));
    }
}
