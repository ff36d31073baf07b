//! Where the peer is, who it is, and the connection to it.

use std::net::ToSocketAddrs as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use volery_channel::tls::{self, Fingerprint, Identity, Refusal};
use volery_channel::{Channel, tcp};

use super::identity;
use super::options::Voice;
use crate::exit::{Failure, Status};

/// Strangers that are told of; what more of them say would only fill the screen.
const TOLD: usize = 10;

/// How long before its end the expiry of an identity is told of.
const SOON: Duration = Duration::from_secs(30 * 86_400);

/// Where the peer is, and who it is.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArguments {
    /// Wait for the peer at this address
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Connect to the peer at this address; waits for it to listen until the timeout
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,

    /// This party's identity, made by 'volery keygen'. With it and --peer the connection is authenticated and encrypted; off the
    /// loopback interface there is no other
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,

    /// The fingerprint of the peer's identity: nobody else is talked to
    #[arg(long, value_name = "FINGERPRINT")]
    peer: Option<Fingerprint>,
}

/// A checked endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    place: Place,
    /// The two identities, unless the connection stays within the machine and goes without.
    secured: Option<(Identity, Fingerprint)>,
}

/// Exactly one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Wait for the peer.
    Listen(String),
    /// Go to the peer.
    Connect(String),
}

impl EndpointArguments {
    /// The one endpoint that was given, with the identity read and checked.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        let place = self.place()?;
        let secured = match (&self.identity, self.peer) {
            (None, None) => {
                place.check_loopback()?;
                None
            }
            (Some(folder), Some(peer)) => {
                let identity = identity::load(folder)?;
                if identity.fingerprint() == peer {
                    return Err(Failure::usage(
                        "--peer",
                        "this is the fingerprint of --identity itself",
                    )
                    .hint("--peer takes the other party's, which it tells you"));
                }
                Some((identity, peer))
            }
            (Some(_), None) => {
                return Err(
                    Failure::usage("--peer", "it is needed with --identity").hint(
                        "ask the other party for its fingerprint, by a way that cannot be forged",
                    ),
                );
            }
            (None, Some(_)) => {
                return Err(Failure::usage("--identity", "it is needed with --peer")
                    .hint("volery keygen --out DIR makes one, and prints its fingerprint"));
            }
        };
        Ok(Endpoint { place, secured })
    }

    fn place(&self) -> Result<Place, Failure> {
        let refuse = |what| {
            Failure::usage("--listen, --connect", what)
                .hint("one side takes --listen HOST:PORT, the other --connect HOST:PORT")
        };
        let place = match (&self.listen, &self.connect) {
            (Some(address), None) => Place::Listen(address.clone()),
            (None, Some(address)) => Place::Connect(address.clone()),
            (None, None) => return Err(refuse("one of them is needed")),
            (Some(_), Some(_)) => return Err(refuse("only one of them can be given")),
        };
        place.check_form()?;
        Ok(place)
    }
}

impl Place {
    /// The flag it was given by.
    fn option(&self) -> &'static str {
        match self {
            Self::Listen(_) => "--listen",
            Self::Connect(_) => "--connect",
        }
    }

    /// The address as given.
    fn address(&self) -> &str {
        match self {
            Self::Listen(address) | Self::Connect(address) => address,
        }
    }

    fn check_form(&self) -> Result<(), Failure> {
        let port = self
            .address()
            .rsplit_once(':')
            .map(|(_, port)| port.parse::<u16>());
        if matches!(port, Some(Ok(_))) {
            return Ok(());
        }
        let message = format_args!("'{}' is not HOST:PORT", self.address());
        Err(Failure::usage(self.option(), message).hint("for example 127.0.0.1:7000"))
    }

    /// Refuses, before any work, an address off the machine.
    fn check_loopback(&self) -> Result<(), Failure> {
        let mut addresses = self.address().to_socket_addrs().map_err(|error| {
            Failure::usage(self.option(), format_args!("{}: {error}", self.address()))
        })?;
        let outside = addresses.find(|address| !address.ip().to_canonical().is_loopback());
        let Some(outside) = outside else {
            return Ok(());
        };
        let message = format_args!(
            "{} is not on the loopback interface: --identity and --peer are needed",
            outside.ip()
        );
        Err(Failure::usage(self.option(), message).hint(
            "each party makes an identity, volery keygen --out DIR, and tells the other its fingerprint; both then take \
             --identity DIR --peer FINGERPRINT",
        ))
    }

    /// An address of this machine that cannot be used is no fault of the peer or the network.
    fn unusable(&self, error: volery_channel::Error) -> Failure {
        match error {
            volery_channel::Error::Io(error) => Failure::new(
                Status::Other,
                format_args!("{} {}: {error}", self.option(), self.address()),
            ),
            error => error.into(),
        }
    }
}

impl Endpoint {
    /// Makes the connection.
    ///
    /// # Errors
    /// If the address cannot be used, nobody is there within `timeout`, or it is not the peer.
    pub(crate) fn open(&self, timeout: Duration, voice: Voice) -> Result<Channel, Failure> {
        if let Some((identity, _)) = &self.secured {
            let left = identity.validity().end.duration_since(SystemTime::now());
            if left.is_ok_and(|left| left < SOON) {
                let last = identity.last_day();
                voice.say(format_args!(
                    "note: the identity of --identity expires on {last}"
                ));
            }
        }
        let channel = match &self.place {
            Place::Connect(address) => {
                voice.explain(format_args!("connecting to {address}"));
                let connected = match &self.secured {
                    None => tcp::connect(&**address, timeout),
                    Some((identity, peer)) => tls::connect(&**address, identity, *peer, timeout),
                };
                connected.map_err(|error| self.place.unusable(error))?
            }
            Place::Listen(address) => {
                // With port 0 this line is the only way to learn the port.
                let tell = |here| {
                    let needed = address.ends_with(":0");
                    voice.announce(format_args!("listening on {here}"), needed);
                };
                let bound = |error| self.place.unusable(error);
                match &self.secured {
                    None => {
                        let listener = tcp::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.local_addr()?);
                        Channel::with_timeout(listener.accept(timeout)?, Some(timeout))
                    }
                    Some((identity, peer)) => {
                        let listener = tls::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.local_addr()?);
                        let mut left = TOLD;
                        listener.accept(identity, *peer, timeout, |refusal| {
                            tell_of(&refusal, &mut left, voice);
                        })?
                    }
                }
            }
        };
        match channel.description() {
            "" => voice.explain("connected"),
            protection => voice.explain(format_args!("connected, {protection}")),
        }
        Ok(channel)
    }

    /// For the report: what protects the connection, and who the peer is.
    pub(crate) fn describe(&self, channel: &Channel) -> serde_json::Value {
        let peer = self.secured.as_ref().map(|(_, peer)| peer.to_string());
        let protection = match channel.description() {
            "" => "none, within one machine",
            protection => protection,
        };
        serde_json::json!({ "protection": protection, "peer": peer })
    }
}

/// Says that somebody was refused, unless there were many already.
fn tell_of(refusal: &Refusal, left: &mut usize, voice: Voice) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Refusal { address, error, .. } = refusal;
    voice.say(format_args!(
        "note: a connection from {address} was refused: {error}"
    ));
    if *left == 0 {
        voice.say("note: more of them will not be told of");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_endpoint() {
        let endpoint = |listen: Option<&str>, connect: Option<&str>| {
            EndpointArguments {
                listen: listen.map(str::to_owned),
                connect: connect.map(str::to_owned),
                identity: None,
                peer: None,
            }
            .endpoint()
            .map(|endpoint| endpoint.place)
        };
        assert_eq!(
            endpoint(Some("[::1]:70"), None).unwrap(),
            Place::Listen("[::1]:70".to_owned())
        );
        for (listen, connect, fragment) in [
            (None, None, "one of them is needed"),
            (Some("a:1"), Some("b:1"), "only one"),
            (
                Some("localhost"),
                None,
                "--listen: 'localhost' is not HOST:PORT",
            ),
            (
                None,
                Some("localhost:99999"),
                "--connect: 'localhost:99999' is not HOST:PORT",
            ),
        ] {
            let refused = endpoint(listen, connect).unwrap_err();
            assert_eq!(refused.status(), Status::Usage);
            assert!(refused.to_string().contains(fragment), "{refused}");
        }
    }
}
