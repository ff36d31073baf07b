//! Proxies between a party and its peer: HTTP `CONNECT` (RFC 9110) and SOCKS5 (RFC 1928, 1929).
//!
//! ```text
//! HTTP    CONNECT HOST:PORT, credentials  ---->
//!                                         <----  status, header
//! SOCKS5  5, methods                      ---->
//!                                         <----  5, method
//!         1, user, password               ---->  if the method is 2
//!                                         <----  1, 0
//!         5, 1, 0, HOST, PORT             ---->
//!                                         <----  5, reply, 0, an address
//! ```
//!
//! From then on the proxy passes bytes on. It learns the address of the peer, times and numbers of
//! bytes: TLS is between the two parties, and is checked as without a proxy.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use data_encoding::BASE64;
use volery_os::time::{Duration, Instant};
use zeroize::Zeroizing;

use super::{Stream, loopback_only, resolve};
use crate::pipe::{deadline_after, left};
use crate::{Error, Result, Transport};

/// Longest head of an answer to `CONNECT`.
const LONGEST: usize = 16 << 10;

/// A proxy, from a URL: `http://`, `socks5://` or `socks5h://`, perhaps `USER:PASSWORD@`, then
/// `HOST:PORT`. With `socks5` this party resolves the peer's name, otherwise the proxy does. Its
/// text form has no user and no password.
#[derive(Clone, PartialEq, Eq)]
pub struct Proxy {
    scheme: &'static str,
    host: String,
    port: u16,
    /// User and password.
    login: Option<[Zeroizing<Vec<u8>>; 2]>,
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}:{}", self.scheme, self.host, self.port)
    }
}

impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Proxy({self})")
    }
}

impl FromStr for Proxy {
    /// The form of a URL, without any part of the text, which may hold a password.
    type Err = &'static str;

    /// A text without a scheme is of `http`.
    fn from_str(text: &str) -> std::result::Result<Self, &'static str> {
        // no mutant: a text of this side
        Self::parse(text).ok_or(
            "it is not SCHEME://[USER:PASSWORD@]HOST:PORT, where SCHEME is http, socks5 or \
             socks5h, and %25 and %40 stand for % and @",
        )
    }
}

/// Decodes a part of a URL in which `%40` stands for `@`.
fn decoded(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let mut parts = text.split('%');
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len()));
    bytes.extend(parts.next()?.bytes());
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend(part[2..].bytes());
    }
    (bytes.len() < 256).then_some(bytes)
}

/// The host, with the brackets of an IPv6 address, and the port of `HOST:PORT`. A host has nothing
/// that could end a line.
fn host_port(place: &str) -> Option<(&str, u16)> {
    let (host, port) = place.rsplit_once(':')?;
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(host) => host.parse::<Ipv6Addr>().is_ok(),
        None => host.bytes().all(|c| c.is_ascii_alphanumeric() || b".-_".contains(&c)),
    };
    // mutant(proxy-host): `is_host` => `true`
    let is_known = is_host && (1..254).contains(&host.len());
    is_known.then_some((host, port.parse().ok()?))
}

/// The address of a peer, `HOST:PORT`, and the proxy on the way to it, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The address of the peer.
    pub address: String,
    /// The proxy that connects this party to it.
    pub proxy: Option<Proxy>,
}

/// A place to connect to: an address, or a [`Route`].
pub trait Destination {
    /// The addresses of the peer, as this machine resolves them.
    ///
    /// # Errors
    /// If its name does not resolve, or it is no address.
    fn resolve(&self) -> io::Result<Vec<SocketAddr>>;

    /// The address of the peer, and the proxy that connects this party to it.
    fn proxy(&self) -> Option<(&str, &Proxy)> {
        None
    }
}

impl<T: ToSocketAddrs> Destination for T {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self.to_socket_addrs().map(Iterator::collect)
    }
}

impl Destination for Route {
    fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        self.address.resolve()
    }

    fn proxy(&self) -> Option<(&str, &Proxy)> {
        Some((&self.address, self.proxy.as_ref()?))
    }
}

/// All addresses to connect to, and the address that a proxy there is asked for. A connection that
/// is not secured stays on this machine, the part behind a proxy included.
pub(super) fn hops(
    destination: &impl Destination,
    is_secured: bool,
) -> Result<Vec<(SocketAddr, Option<String>)>> {
    // mutant(proxy-loopback): `loopback_only(addresses)` => `Ok(addresses)`
    let allowed = |addresses| if is_secured { Ok(addresses) } else { loopback_only(addresses) };
    let Some((peer, proxy)) = destination.proxy() else {
        let all = allowed(resolve(destination)?)?;
        return Ok(all.into_iter().map(|address| (address, None)).collect());
    };
    if host_port(peer).is_none() {
        // no mutant: `proxy-host` is that of the check
        return Err(Error::Io(io::Error::new(io::ErrorKind::InvalidInput, "it is not HOST:PORT")));
    }
    let mut asked = vec![peer.to_owned()];
    if !is_secured || proxy.scheme == "socks5" {
        // Asked for the name, a proxy of a plain connection could reach another machine.
        asked = allowed(resolve(destination)?)?.iter().map(ToString::to_string).collect();
    }
    let there = allowed(resolve(&(proxy.host.trim_matches(['[', ']']), proxy.port))?)?;
    Ok(there.iter().flat_map(|at| asked.iter().map(|peer| (*at, Some(peer.clone())))).collect())
}

/// The answer of a proxy that has not connected this party, and what to do if it lasts.
pub(super) type Refusal = (String, Option<&'static str>);

const LOGIN: &str = "check user and password: http://USER:PASSWORD@HOST:PORT";
const KIND: &str = "check scheme (http, socks5, socks5h), host and port of the proxy";
const POLICY: &str = "ask who runs the proxy to let this address and port through, or leave the \
                      proxy out: --proxy none, or NO_PROXY";

fn lasting(why: impl Into<String>, remedy: &'static str) -> Option<Refusal> {
    Some((why.into(), Some(remedy)))
}

/// The answer of a program that is no such proxy.
fn foreign() -> Option<Refusal> {
    lasting("it does not answer as a proxy of its scheme does", KIND)
}

struct Dialogue<'a>(&'a Stream, Option<Instant>);

impl Dialogue<'_> {
    fn write(&self, bytes: &[u8]) -> Result<()> {
        Ok(self.0.write(bytes, left(self.1)?)?)
    }

    /// The bytes behind the answer are the peer's: reads no more than `N`.
    fn read<const N: usize>(&self) -> Result<[u8; N]> {
        let (mut bytes, mut filled) = ([0; N], 0);
        while filled < N {
            match self.0.read(&mut bytes[filled..], left(self.1)?)? {
                // no mutant: the proxy has closed the connection
                0 => return Err(Error::Disconnected),
                count => filled += count,
            }
        }
        Ok(bytes)
    }
}

impl Proxy {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://").unwrap_or(("http", text));
        let known = ["http", "socks5", "socks5h"];
        let scheme = known.into_iter().find(|known| known.eq_ignore_ascii_case(scheme))?;
        let (login, place) = rest.rsplit_once('@').map_or((None, rest), |(a, b)| (Some(a), b));
        let (host, port) = host_port(place.strip_suffix('/').unwrap_or(place))?;
        let login = match login.map(|login| login.split_once(':').unwrap_or((login, ""))) {
            Some((user, password)) => Some([decoded(user)?, decoded(password)?]),
            None => None,
        };
        Some(Self { scheme, host: host.to_owned(), port, login })
    }

    pub(super) fn error(&self, peer: &str, why: &str, remedy: &'static str) -> Error {
        Error::Proxy(format!("{self} did not connect to {peer}: {why}"), remedy)
    }

    /// Asks the proxy at the other end of `stream` to connect it to `peer`, within `limit`. Nothing
    /// is returned if it does.
    pub(super) fn connect(&self, stream: &Stream, peer: &str, limit: Duration) -> Option<Refusal> {
        let dialogue = Dialogue(stream, deadline_after(Some(limit)));
        let answered = match self.scheme {
            "http" => self.connect_by_http(&dialogue, peer),
            _ => self.connect_by_socks(&dialogue, peer),
        };
        answered.unwrap_or_else(|error| match error {
            Error::Disconnected => Some(("it closed the connection".to_owned(), None)),
            Error::TimedOut(_) => Some(("it did not answer".to_owned(), None)),
            error => Some((error.to_string(), None)),
        })
    }

    fn connect_by_http(&self, dialogue: &Dialogue<'_>, peer: &str) -> Result<Option<Refusal>> {
        let login = self.login.as_ref().map(|[user, password]| {
            let both = Zeroizing::new([user, &b":"[..], password].concat());
            let both = Zeroizing::new(BASE64.encode(&both));
            Zeroizing::new(["Proxy-Authorization: Basic ", &both, "\r\n"].concat())
        });
        let head = format!("CONNECT {peer} HTTP/1.1\r\nHost: {peer}\r\n");
        // In one piece: there are proxies that read once.
        let request = [&*head, login.as_ref().map_or("", |login| login), "\r\n"].concat();
        dialogue.write(Zeroizing::new(request).as_bytes())?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(dialogue.read::<1>()?[0]);
            let known = head.len().min(7);
            // mutant(proxy-head): `head.len() > LONGEST` => `false`
            if head[..known] != b"HTTP/1."[..known] || head.len() > LONGEST {
                return Ok(foreign());
            }
        }
        let code = head.get(9..12).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
        Ok(match (code, &self.login) {
            (Some(200..=299), _) => None,
            (Some(code @ 502..=504), _) => {
                Some((format!("it answered {code}: it does not reach the peer"), None))
            }
            (Some(407), None) => lasting("it answered 407: it requires a login", LOGIN),
            (Some(407), _) => lasting("it answered 407: it does not accept the login", LOGIN),
            (Some(code), _) => lasting(format!("it answered {code}"), POLICY),
            (None, _) => foreign(),
        })
    }

    fn connect_by_socks(&self, dialogue: &Dialogue<'_>, peer: &str) -> Result<Option<Refusal>> {
        let methods: &[u8] = if self.login.is_some() { &[5, 2, 0, 2] } else { &[5, 1, 0] };
        dialogue.write(methods)?;
        match (dialogue.read()?, &self.login) {
            ([5, 0], _) => {}
            ([5, 2], Some([user, password])) => {
                let lengths = [user.len() as u8, password.len() as u8];
                let both = [&[1, lengths[0]], &user[..], &[lengths[1]], password].concat();
                dialogue.write(&Zeroizing::new(both))?;
                // mutant(proxy-login): `dialogue.read()?` => `({ let mut answer: [u8; 2] = $0;
                //     if $ON { answer[1] = 0; } answer })`
                let [_, 0] = dialogue.read()? else {
                    return Ok(lasting("it does not accept the login", LOGIN));
                };
            }
            ([5, _], None) => return Ok(lasting("it requires a login", LOGIN)),
            ([5, _], _) => return Ok(lasting("it takes no user and password", LOGIN)),
            _ => return Ok(foreign()),
        }
        let (host, port) = host_port(peer).unwrap_or((peer, 0));
        let mut request = vec![5, 1, 0];
        match host.trim_matches(['[', ']']).parse() {
            Ok(IpAddr::V4(ip)) => request.extend([&[1], &ip.octets()[..]].concat()),
            Ok(IpAddr::V6(ip)) => request.extend([&[4], &ip.octets()[..]].concat()),
            Err(_) => request.extend([&[3, host.len() as u8], host.as_bytes()].concat()),
        }
        request.extend(port.to_be_bytes());
        dialogue.write(&request)?;
        let [version, reply, _, kind] = dialogue.read()?;
        // The address at the proxy's other side, which nobody needs, and its port.
        let length = match (version, reply, kind) {
            (5, 0, 1) => 4,
            (5, 0, 3) => usize::from(dialogue.read::<1>()?[0]),
            (5, 0, 4) => 16,
            (5, 1 | 3..=6, _) => {
                let why = format!("it answered {reply}: it does not reach the peer");
                return Ok(Some((why, None)));
            }
            (5, 2, _) => return Ok(lasting("it answered 2: its rules forbid it", POLICY)),
            (5, 7.., _) => return Ok(lasting(format!("it answered {reply}"), KIND)),
            _ => return Ok(foreign()),
        };
        (0..length + 2).try_for_each(|_| dialogue.read::<1>().map(drop))?;
        Ok(None)
    }
}
