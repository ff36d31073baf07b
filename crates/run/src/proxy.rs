//! The proxy on the way to a peer: that of an option, or else that of the environment.

use std::ffi::OsStr;
use std::fmt;
use std::net::IpAddr;

use volery_channel::tcp::{Proxy, Route};
use zeroize::Zeroizing;

use crate::failure::{Failure, Result};

/// The value of `--proxy`: a URL or `none`. Its text may hold a password, so the checks come when
/// it is used: the messages of a command line quote the values that they refuse.
#[derive(Clone)]
pub struct ProxyOption(Zeroizing<String>);

impl fmt::Debug for ProxyOption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProxyOption(..)")
    }
}

impl ProxyOption {
    /// Takes any text.
    pub fn parse(value: &OsStr) -> Result<Self, String> {
        Ok(Self(Zeroizing::new(value.to_string_lossy().into_owned())))
    }

    /// The text, which may hold a password.
    pub fn text(&self) -> &str {
        &self.0
    }

    fn proxy(&self) -> Result<Option<Proxy>, &'static str> {
        match &**self.0 {
            "none" => Ok(None),
            url => url.parse().map(Some),
        }
    }
}

/// The way to `address`: through the proxy of the option, if it is given, or of the environment, if
/// that names one and no exception holds.
///
/// # Errors
/// If the value of the option or of the variable is none.
pub fn route(address: &str, option: Option<&ProxyOption>) -> Result<Route> {
    route_by(address, option, |name| std::env::var(name).ok())
}

fn route_by(
    address: &str,
    option: Option<&ProxyOption>,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Route> {
    let through = |proxy| Route { address: address.to_owned(), proxy };
    if let Some(given) = option {
        return given.proxy().map(through).map_err(|wrong| Failure::usage("--proxy", wrong));
    }
    // The first one that is not empty counts.
    let first = |names: &[&'static str]| {
        let values = names.iter().map(|name| (*name, variable(name).map(Zeroizing::new)));
        values
            .into_iter()
            .find_map(|(name, value)| Some((name, value.filter(|it| !it.is_empty())?)))
    };
    let exceptions = first(&["no_proxy", "NO_PROXY"]);
    if is_excepted(address, exceptions.as_ref().map_or("", |(_, list)| list)) {
        return Ok(through(None));
    }
    match first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]) {
        None => Ok(through(None)),
        Some((name, url)) => url.parse().map(|proxy| through(Some(proxy))).map_err(|wrong| {
            Failure::usage(&format!("the environment variable {name}"), wrong)
                .with_hint("correct it; or give --proxy URL, or --proxy none for no proxy")
        }),
    }
}

/// Whether the proxy of the environment is not for `address`: one of this machine, or one in the
/// list, which has names (with all below them), addresses, networks and `*`.
fn is_excepted(address: &str, list: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_matches(['[', ']']).to_ascii_lowercase();
    let ip = host.parse::<IpAddr>().ok();
    let is_below = |name: &str| {
        let rest = host.strip_suffix(name);
        !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if is_below("localhost") || ip.is_some_and(|ip| ip.to_canonical().is_loopback()) {
        return true;
    }
    list.to_ascii_lowercase().split([',', ' ']).any(|entry| match (ip, entry.split_once('/')) {
        _ if entry == "*" => true,
        (Some(ip), Some((net, length))) => is_within(ip, net, length),
        (Some(ip), None) => entry.trim_matches(['[', ']']).parse() == Ok(ip),
        (None, _) => is_below(entry.trim_start_matches('*').trim_start_matches('.')),
    })
}

fn is_within(ip: IpAddr, net: &str, length: &str) -> bool {
    let bits = |ip| match ip {
        IpAddr::V4(ip) => (u128::from(u32::from(ip)), 32),
        IpAddr::V6(ip) => (u128::from(ip), 128),
    };
    let (Ok(net), Ok(length)) = (net.parse::<IpAddr>(), length.parse::<u32>()) else {
        return false;
    };
    let ((ip, width), (net, other)) = (bits(ip), bits(net));
    width == other && length <= width && (ip ^ net).checked_shr(width - length).unwrap_or(0) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_option_goes_before_the_environment() {
        let by = |option: &str, variables: &str| {
            let option = (!option.is_empty()).then(|| ProxyOption::parse(option.as_ref()).unwrap());
            let value = |name: &str| {
                let given = variables.split(' ').find_map(|given| given.strip_prefix(name));
                given.and_then(|value| value.strip_prefix('=')).map(str::to_owned)
            };
            match route_by("peer.example:7000", option.as_ref(), value) {
                Ok(route) => route.proxy.map_or("none".to_owned(), |proxy| proxy.to_string()),
                Err(failure) => failure.to_string(),
            }
        };
        let all = "https_proxy= HTTPS_PROXY=http://u:secret@a:1 all_proxy=socks5://b:2";
        for (option, variables, proxy) in [
            ("socks5://d:4", all, "socks5://d:4"),
            ("none", all, "none"),
            ("", all, "http://a:1"),
            ("", "all_proxy=socks5://b:2 ALL_PROXY=http://c:3", "socks5://b:2"),
            ("", "", "none"),
            ("", "HTTPS_PROXY=http://a:1 NO_PROXY=example", "none"),
            ("", "HTTPS_PROXY=http://a:1 NO_PROXY=example no_proxy=a", "http://a:1"),
            ("ftp://u:secret@a:1", all, "--proxy: it is not SCHEME"),
            ("", "ALL_PROXY=http://u:secret@c", "the environment variable ALL_PROXY: it is not"),
        ] {
            let found = by(option, variables);
            let is_right = found.trim_start_matches("error: ").starts_with(proxy);
            assert!(is_right && !found.contains("secret"), "{variables}: {found}");
        }
    }

    #[test]
    fn exceptions_are_names_addresses_and_networks() {
        for (address, list, is) in [
            ("localhost:1 db.localhost:1 127.9.9.9:1 [::1]:1 [::ffff:127.0.0.1]:1", "", true),
            ("peer.example:1 10.1.2.3:1 [2001:db8::1]:1", "", false),
            ("peer.example:1 10.1.2.3:1 [2001:db8::1]:1", "*", true),
            ("peer.example:1 Peer.Example:1", "other, Peer.Example", true),
            ("peer.example:1 example:1", ".example", true),
            ("peer.example:1", "*.example", true),
            ("peer.example:1", "eer.example", false),
            ("10.1.2.3:1", "10.0.0.0/8", true),
            ("11.1.2.3:1 [2001:db8::1]:1", "10.0.0.0/8", false),
            ("11.1.2.3:1", "0.0.0.0/0", true),
            ("10.1.2.3:1 [2001:db8::1]:1", "10.1.2.3,2001:db8::1", true),
            ("[2001:db8::1]:1", "2001:db8::/32", true),
            ("[2001:db8::1]:1", "::/0", true),
            ("10.1.2.3:1", "::/0, 10.0.0.0/33, x/8", false),
        ] {
            for address in address.split(' ') {
                assert_eq!(is_excepted(address, list), is, "{address} in {list:?}");
            }
        }
    }
}
