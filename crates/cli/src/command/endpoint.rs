//! The peer's address, its identity, and the connection to it.

use std::fs::File;
use std::io::Read as _;
use std::net::ToSocketAddrs as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use volery_channel::tcp::{Patience, Refusal};
use volery_channel::tls::{self, Fingerprint, Identity};
use volery_channel::{Channel, tcp};

use super::identity;
use super::options::Reporter;
use crate::exit::{Failure, Status};
use crate::{said, values};

/// Number of refused connections that are reported one by one; more would flood the screen.
const MAX_REPORTED: usize = 10;

/// Remaining validity below which the expiry of an identity is reported.
const EXPIRY_NOTICE: Duration = Duration::from_secs(30 * 86_400);

/// The peer's address and identity.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArguments {
    /// Wait for the peer at this address
    #[arg(long, value_name = "HOST:PORT")]
    listen: Option<String>,

    /// Connect to the peer at this address, retrying until --wait ends
    #[arg(long, value_name = "HOST:PORT")]
    connect: Option<String>,

    /// This party's identity, a folder made by 'volery keygen'. With --identity and --peer the
    /// connection is authenticated and encrypted; addresses off the loopback interface require both
    #[arg(long, value_name = "DIR")]
    identity: Option<PathBuf>,

    /// Fingerprint of the peer's identity, or a file that holds it; every other identity is refused
    #[arg(long, value_name = "FINGERPRINT", value_parser = fingerprint)]
    peer: Option<Fingerprint>,

    /// How long to wait for the peer to be there, such as 90s, 10m or 1h
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = values::time)]
    wait: Duration,

    /// Accept an --identity that its group can read, such as a mounted secret; never one that all
    /// users can read
    #[arg(long)]
    allow_group_readable_identity: bool,
}

/// Longest file with a fingerprint, in bytes.
const FINGERPRINT_BOUND: u64 = 4096;

/// Parses a fingerprint, or reads it from the file of this name.
fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    let wrong = match text.parse::<Fingerprint>() {
        Ok(fingerprint) => return Ok(fingerprint),
        Err(wrong) => wrong,
    };
    let path = Path::new(text);
    if !path.is_file() {
        return Err(format!("{wrong}; and there is no file of this name"));
    }
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut contents = String::new();
    file.take(FINGERPRINT_BOUND)
        .read_to_string(&mut contents)
        .map_err(|error| format!("the file: {error}"))?;
    let read = contents.trim().parse::<Fingerprint>();
    read.map_err(|wrong| format!("the file holds no fingerprint: {wrong}"))
}

/// A checked endpoint.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    place: Address,
    wait: Duration,
    /// Own identity and the peer's fingerprint; `None` only for a connection within this machine.
    secured: Option<(Identity, Fingerprint)>,
}

/// Exactly one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    /// Wait for the peer.
    Listen(String),
    /// Connect to the peer.
    Connect(String),
}

impl EndpointArguments {
    /// The one endpoint given on the command line, with the identity read and checked.
    pub(crate) fn endpoint(&self) -> Result<Endpoint, Failure> {
        let place = self.place()?;
        let secured = match (&self.identity, self.peer) {
            (None, None) => {
                place.check_loopback()?;
                None
            }
            (Some(folder), Some(peer)) => {
                let identity = identity::load(folder, self.allow_group_readable_identity)?;
                if identity.fingerprint() == peer {
                    return Err(Failure::usage(
                        "--peer",
                        "this is the fingerprint of this party's own --identity",
                    )
                    .hint("--peer takes the fingerprint of the other party; ask it"));
                }
                Some((identity, peer))
            }
            (Some(_), None) => {
                return Err(Failure::usage("--peer", "required with --identity").hint(
                    "ask the other party for its fingerprint over a channel that cannot be forged",
                ));
            }
            (None, Some(_)) => {
                return Err(Failure::usage("--identity", "required with --peer")
                    .hint("'volery keygen --out DIR' makes one and prints its fingerprint"));
            }
        };
        let mut known = said::known();
        let print = |fingerprint: Fingerprint| fingerprint.to_string();
        known.identity = secured.as_ref().map(|(own, _)| print(own.fingerprint()));
        known.peer = secured.as_ref().map(|(_, peer)| print(*peer));
        drop(known);
        Ok(Endpoint {
            place,
            wait: self.wait,
            secured,
        })
    }

    fn place(&self) -> Result<Address, Failure> {
        let refuse = |what| {
            Failure::usage("--listen, --connect", what)
                .hint("start one side with --listen HOST:PORT, the other with --connect HOST:PORT")
        };
        let place = match (&self.listen, &self.connect) {
            (Some(address), None) => Address::Listen(address.clone()),
            (None, Some(address)) => Address::Connect(address.clone()),
            (None, None) => return Err(refuse("one of them is required")),
            (Some(_), Some(_)) => return Err(refuse("only one of them may be given")),
        };
        place.check_form()?;
        Ok(place)
    }
}

impl Address {
    /// The option that gave the address.
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

    /// Refuses an address off this machine before any work is done. A name that does not resolve
    /// yet is checked when it does.
    fn check_loopback(&self) -> Result<(), Failure> {
        let Ok(mut addresses) = self.address().to_socket_addrs() else {
            return Ok(());
        };
        let outside = addresses.find(|address| !address.ip().to_canonical().is_loopback());
        let Some(outside) = outside else {
            return Ok(());
        };
        let message = format_args!(
            "{} is not on the loopback interface: --identity and --peer are required",
            outside.ip()
        );
        Err(Failure::usage(self.option(), message).hint(
            "each party makes an identity with 'volery keygen --out DIR' and gives the other its fingerprint; start both with \
             --identity DIR --peer FINGERPRINT",
        ))
    }

    /// A local address that cannot be used is not the fault of the peer or the network.
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
    /// Makes the connection; `timeout` is for the time after it.
    ///
    /// # Errors
    /// If the address cannot be used, no peer is there in time, or the peer has another identity.
    pub(crate) fn open(&self, timeout: Duration, reporter: Reporter) -> Result<Channel, Failure> {
        self.open_within(self.wait, timeout, reporter)
    }

    /// As [`open`](Self::open), with another time to wait for the peer.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub(crate) fn open_within(
        &self,
        wait: Duration,
        timeout: Duration,
        reporter: Reporter,
    ) -> Result<Channel, Failure> {
        if let Some((identity, _)) = &self.secured {
            let left = identity.validity().end.duration_since(SystemTime::now());
            if left.is_ok_and(|left| left < EXPIRY_NOTICE) {
                let last = identity.last_day();
                reporter.say(format_args!(
                    "note: the identity of --identity expires on {last}"
                ));
            }
        }
        let patience = Patience { wait, timeout };
        let channel = match &self.place {
            Address::Connect(address) => {
                reporter.tell(format_args!(
                    "connecting to {address}, for at most {wait:?}"
                ));
                reporter.begin("meeting");
                let connected = match &self.secured {
                    None => tcp::connect(&**address, patience),
                    Some((identity, peer)) => tls::connect(&**address, identity, *peer, patience),
                };
                connected.map_err(|error| self.place.unusable(error))?
            }
            Address::Listen(address) => {
                // With port 0 the first line is the only way to learn the port.
                let tell = |here| {
                    reporter.announce(format_args!("listening on {here}"));
                    reporter.tell(format_args!(
                        "waiting for the peer to connect, for at most {wait:?}"
                    ));
                    reporter.begin("meeting");
                };
                let bound = |error| self.place.unusable(error);
                let mut left = MAX_REPORTED;
                let refused = |refusal: Refusal| report_refusal(&refusal, &mut left, reporter);
                match &self.secured {
                    None => {
                        let listener = tcp::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.local_addr()?);
                        listener.accept_channel(patience, refused)?
                    }
                    Some((identity, peer)) => {
                        let listener = tls::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.local_addr()?);
                        listener.accept(identity, *peer, patience, refused)?
                    }
                }
            }
        };
        reporter.end();
        let learned = "the peer learned the address, the settings and the duration of this run";
        said::known().revealed.push(learned.to_owned());
        match channel.description() {
            "" => reporter.explain("connected"),
            protection => reporter.explain(format_args!("connected, {protection}")),
        }
        Ok(channel)
    }

    /// For the report: the protection of the connection and the peer's identity.
    pub(crate) fn describe(&self, channel: &Channel) -> serde_json::Value {
        let peer = self.secured.as_ref().map(|(_, peer)| peer.to_string());
        let protection = match channel.description() {
            "" => "none, within one machine",
            protection => protection,
        };
        serde_json::json!({ "protection": protection, "peer": peer })
    }
}

/// Reports a refused connection, up to the limit.
fn report_refusal(refusal: &Refusal, left: &mut usize, reporter: Reporter) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Refusal { address, error, .. } = refusal;
    reporter.say(format_args!(
        "note: a connection from {address} was refused: {error}"
    ));
    if *left == 0 {
        reporter.say("note: further refused connections are not reported");
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
                wait: Duration::from_secs(1),
                allow_group_readable_identity: false,
            }
            .endpoint()
            .map(|endpoint| endpoint.place)
        };
        assert_eq!(
            endpoint(Some("[::1]:70"), None).unwrap(),
            Address::Listen("[::1]:70".to_owned())
        );
        for (listen, connect, fragment) in [
            (None, None, "one of them is required"),
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
