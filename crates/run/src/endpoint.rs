//! The peer's address, its identity, and the connection to it.

use std::fs::File;
use std::io::Read as _;
use std::net::ToSocketAddrs as _;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use volery_channel::tcp::{Patience, Refusal};
use volery_channel::tls::{self, Fingerprint, Identity};
use volery_channel::{Cancel, CancelLink, Channel, tcp};
use volery_options::parse;

use crate::failure::{Failure, Status};
use crate::identity;
use crate::reporter::Reporter;

/// Number of refused connections that are reported one by one; more would flood the screen.
const MAX_REPORTED: usize = 10;

/// Remaining validity below which the expiry of an identity is reported.
const EXPIRY_NOTICE: Duration = Duration::from_secs(30 * 86_400);

volery_options::options! {
    /// The peer's address and identity.
    pub struct EndpointOptions {
        /// Wait for the peer at this address
        once listen: String ["Peer", "HOST:PORT", parse::string];

        /// Connect to the peer at this address, retrying until the --wait time runs out
        once connect: String ["Peer", "HOST:PORT", parse::string];

        /// This party's identity, a folder made by 'volery keygen'. With --identity and --peer the
        /// connection is authenticated and encrypted; addresses off the loopback interface require
        /// both
        once identity: PathBuf ["Peer", "DIR", parse::path];

        /// Fingerprint of the peer's identity, or a file that holds it; every other identity is
        /// refused
        once peer: Fingerprint ["Peer", "FINGERPRINT", |value| fingerprint(parse::utf8(value)?)];

        /// Time to wait for the peer to become reachable, such as 90s, 10m or 1h
        default wait: Duration ["60s", "Peer", "TIME", parse::time];

        /// Accept an --identity that its group can read, such as a mounted secret; never one that
        /// all users can read
        switch allow_group_readable_identity ["Peer"];
    }
}

/// Longest file with a fingerprint, in bytes.
const FINGERPRINT_BOUND: u64 = 4096;

/// Parses a fingerprint, or reads it from the file of this name.
pub fn fingerprint(text: &str) -> Result<Fingerprint, String> {
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

/// Where a run meets its peer, checked.
pub(crate) enum Endpoint<'a> {
    /// At an address.
    Address {
        place: Address,
        wait: Duration,
        /// Own identity and the peer's fingerprint; `None` only for a connection within this
        /// machine.
        secured: Option<(Identity, Fingerprint)>,
    },
    /// On a connection that is there.
    Open(&'a mut Connection),
}

/// An open connection, on which several runs follow each other. A run that fails closes it.
pub struct Connection {
    /// None: a run has failed.
    channel: Option<Channel>,
    /// The fingerprints of this party and of the peer.
    prints: Option<[String; 2]>,
    cancel: Cancel,
}

impl Connection {
    pub(crate) fn new(channel: Channel, prints: Option<[String; 2]>, cancel: Cancel) -> Self {
        Self { channel: Some(channel), prints, cancel }
    }
}

/// The channel of a run. Dropping it closes the connection; [`end`](Self::end) leaves the one that
/// was there open.
pub(crate) struct RunChannel<'a> {
    channel: Channel,
    prints: Option<[String; 2]>,
    back: Option<(&'a mut Connection, CancelLink)>,
}

impl RunChannel<'_> {
    /// The run is complete.
    pub(crate) fn end(self) {
        if let Some((connection, _)) = self.back {
            connection.channel = Some(self.channel);
        }
    }

    /// The connection for several runs.
    pub(crate) fn into_connection(self, cancel: Cancel) -> Connection {
        Connection::new(self.channel, self.prints, cancel)
    }

    /// For the report: the protection of the connection and the peer's identity.
    pub(crate) fn describe(&self) -> serde_json::Value {
        let protection = match self.channel.description() {
            "" => "none, within one machine",
            protection => protection,
        };
        let peer = self.prints.as_ref().map(|[_, peer]| peer);
        serde_json::json!({ "protection": protection, "peer": peer })
    }
}

impl Deref for RunChannel<'_> {
    type Target = Channel;

    fn deref(&self) -> &Channel {
        &self.channel
    }
}

impl DerefMut for RunChannel<'_> {
    fn deref_mut(&mut self) -> &mut Channel {
        &mut self.channel
    }
}

/// Exactly one of the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Wait for the peer.
    Listen(String),
    /// Connect to the peer.
    Connect(String),
}

impl EndpointOptions {
    /// The one endpoint given on the command line, with the identity read and checked, or the
    /// connection that is there.
    pub(crate) fn endpoint<'a>(
        &self,
        connection: Option<&'a mut Connection>,
        reporter: &Reporter,
    ) -> Result<Endpoint<'a>, Failure> {
        if let Some(connection) = connection {
            let named = [
                ("--listen", self.listen.is_some()),
                ("--connect", self.connect.is_some()),
                ("--identity", self.identity.is_some()),
                ("--peer", self.peer.is_some()),
            ];
            if let Some((option, _)) = named.into_iter().find(|(_, given)| *given) {
                return Err(Failure::usage(option, "cannot be combined with an open connection"));
            }
            note_prints(connection.prints.as_ref(), reporter);
            return Ok(Endpoint::Open(connection));
        }
        let place = self.place()?;
        let secured = self.secured(reporter)?;
        if secured.is_none() {
            place.check_loopback()?;
        }
        Ok(Endpoint::Address { place, wait: self.wait, secured })
    }

    /// The identity and the peer's fingerprint, if they are given.
    ///
    /// # Errors
    /// If one of them is missing, or the identity cannot be used.
    pub(crate) fn secured(
        &self,
        reporter: &Reporter,
    ) -> Result<Option<(Identity, Fingerprint)>, Failure> {
        let secured = match (&self.identity, self.peer) {
            (None, None) => None,
            (Some(folder), Some(peer)) => {
                let identity = identity::load(folder, self.allow_group_readable_identity)?;
                if identity.fingerprint() == peer {
                    return Err(Failure::usage(
                        "--peer",
                        "this is the fingerprint of this party's own --identity",
                    )
                    .with_hint("--peer takes the fingerprint of the other party; ask it"));
                }
                Some((identity, peer))
            }
            (Some(_), None) => {
                return Err(Failure::usage("--peer", "required with --identity").with_hint(
                    "ask the other party for its fingerprint over a channel that cannot be forged",
                ));
            }
            (None, Some(_)) => {
                return Err(Failure::usage("--identity", "required with --peer")
                    .with_hint("'volery keygen --out DIR' makes one and prints its fingerprint"));
            }
        };
        note_prints(prints(secured.as_ref()).as_ref(), reporter);
        Ok(secured)
    }

    /// The identity and the peer's fingerprint for a run at a gateway, which gives the address.
    ///
    /// # Errors
    /// As `secured`, and if they or the address of a peer are given otherwise.
    pub fn at_gateway(&self, reporter: &Reporter) -> Result<(Identity, Fingerprint), Failure> {
        for (option, given) in [("--listen", &self.listen), ("--connect", &self.connect)] {
            if given.is_some() {
                let what = "the two sides meet at --gateway";
                return Err(Failure::usage(option, what).with_hint(format_args!("remove {option}")));
            }
        }
        self.secured(reporter)?.ok_or_else(|| {
            Failure::usage("--identity, --peer", "a run with workers requires both")
                .with_hint("'volery keygen --out DIR' makes an identity and prints its fingerprint")
        })
    }

    /// The identity.
    ///
    /// # Errors
    /// If it is not given, or cannot be used.
    pub fn load_identity(&self) -> Result<Identity, Failure> {
        let folder = self.identity.as_deref();
        let folder = folder.ok_or_else(|| Failure::usage("--identity", "required"))?;
        identity::load(folder, self.allow_group_readable_identity)
    }

    fn place(&self) -> Result<Address, Failure> {
        let refuse = |what| {
            Failure::usage("--listen, --connect", what).with_hint(
                "start one side with --listen HOST:PORT, the other with --connect HOST:PORT",
            )
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

/// Checks the form of an address.
pub fn host_port(option: &str, address: &str) -> Result<(), Failure> {
    let port = address.rsplit_once(':');
    if port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        return Ok(());
    }
    let message = format_args!("'{address}' is not HOST:PORT");
    Err(Failure::usage(option, message).with_hint("for example 127.0.0.1:7000"))
}

/// The fingerprints of this party and of the peer.
fn prints(secured: Option<&(Identity, Fingerprint)>) -> Option<[String; 2]> {
    secured.map(|(own, peer)| [own.fingerprint(), *peer].map(|print| print.to_string()))
}

fn note_prints(prints: Option<&[String; 2]>, reporter: &Reporter) {
    let mut record = reporter.record();
    record.identity = prints.map(|[own, _]| own.clone());
    record.peer = prints.map(|[_, peer]| peer.clone());
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
    pub fn address(&self) -> &str {
        match self {
            Self::Listen(address) | Self::Connect(address) => address,
        }
    }

    /// Checks that it is an address.
    ///
    /// # Errors
    /// If it is none.
    pub fn check_form(&self) -> Result<(), Failure> {
        host_port(self.option(), self.address())
    }

    /// Refuses an address off this machine before any work is done. A name that does not resolve
    /// yet is checked when it does.
    fn check_loopback(&self) -> Result<(), Failure> {
        self.check_loopback_of(["--identity and --peer", "--identity DIR --peer FINGERPRINT"])
    }

    /// The same, where other options say who the peers are.
    pub fn check_loopback_of(&self, [required, words]: [&str; 2]) -> Result<(), Failure> {
        let hint = format!(
            "each party makes an identity with 'volery keygen --out DIR' and gives the other its fingerprint; start both with {words}"
        );
        self.check_loopback_as(self.option(), required, &hint)
    }

    /// The same, for an address that another option gave.
    pub fn check_loopback_as(
        &self,
        option: &str,
        required: &str,
        hint: &str,
    ) -> Result<(), Failure> {
        let Ok(mut addresses) = self.address().to_socket_addrs() else {
            return Ok(());
        };
        let outside = addresses.find(|address| !address.ip().to_canonical().is_loopback());
        let Some(outside) = outside else {
            return Ok(());
        };
        let message = format_args!(
            "{} is not on the loopback interface: {required} are required",
            outside.ip()
        );
        Err(Failure::usage(option, message).with_hint(hint))
    }

    /// A local address that cannot be used is not the fault of the peer or the network.
    pub fn unusable(&self, error: volery_channel::Error) -> Failure {
        match error {
            volery_channel::Error::Io(error) => Failure::new(
                Status::Other,
                format_args!("{} {}: {error}", self.option(), self.address()),
            ),
            error => error.into(),
        }
    }
}

impl<'a> Endpoint<'a> {
    /// The same with at most `most` to wait for the peer.
    pub(crate) fn within(mut self, most: Duration) -> Self {
        if let Self::Address { wait, .. } = &mut self {
            *wait = most;
        }
        self
    }

    /// Makes the connection; `timeout` is for the time after it.
    ///
    /// # Errors
    /// If the address cannot be used, no peer is there in time, or the peer has another identity.
    pub(crate) fn open(
        self,
        timeout: Duration,
        reporter: &Reporter,
    ) -> Result<RunChannel<'a>, Failure> {
        let (place, wait, secured) = match self {
            Self::Open(connection) => return connection.lend(reporter),
            Self::Address { place, wait, secured } => (place, wait, secured),
        };
        if let Some((identity, _)) = &secured {
            note_expiry(identity, reporter);
        }
        let patience = Patience {
            wait,
            timeout,
            cancel: reporter.cancel().clone(),
            queue: volery_channel::QUEUE_BOUND,
        };
        let channel = match &place {
            Address::Connect(address) => {
                reporter.tell(format_args!("trying to connect to {address} for at most {wait:?}"));
                reporter.begin("connecting");
                let connected = match &secured {
                    None => tcp::connect(&**address, patience),
                    Some((identity, peer)) => tls::connect(&**address, identity, *peer, patience),
                };
                connected.map_err(|error| place.unusable(error))?
            }
            Address::Listen(address) => {
                // With port 0 the first line is the only way to learn the port.
                let tell = |here| {
                    reporter.announce(format_args!("listening on {here}"));
                    reporter.tell(format_args!(
                        "waiting for the peer to connect, for at most {wait:?}"
                    ));
                    reporter.begin("connecting");
                };
                let bound = |error| place.unusable(error);
                let mut left = MAX_REPORTED;
                let refused = |refusal: Refusal| report_refusal(&refusal, &mut left, reporter);
                match &secured {
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
        reporter.record().revealed.push(LEARNED.to_owned());
        match channel.description() {
            "" => reporter.explain("connected"),
            protection => reporter.explain(format_args!("connected, {protection}")),
        }
        Ok(RunChannel { channel, prints: prints(secured.as_ref()), back: None })
    }
}

/// Tells of an identity that is valid only for some days more.
pub fn note_expiry(identity: &Identity, reporter: &Reporter) {
    let left = identity.validity().end.duration_since(SystemTime::now());
    if left.is_ok_and(|left| left < EXPIRY_NOTICE) {
        let last = identity.last_day();
        reporter.say(format_args!("note: the identity of --identity expires on {last}"));
    }
}

/// The facts that every peer learns.
const LEARNED: &str = "the peer learned the address, the settings and the duration of this run";

impl Connection {
    /// Gives the channel to a run, which gives it back when it is complete.
    fn lend(&mut self, reporter: &Reporter) -> Result<RunChannel<'_>, Failure> {
        let mut channel = self.channel.take().ok_or_else(|| {
            let what = "the connection is closed, because an earlier run on it failed";
            Failure::new(Status::Network, what).with_hint("open another connection on both sides")
        })?;
        channel.restart_stats();
        reporter.record().revealed.push(LEARNED.to_owned());
        let passed_on = reporter.cancel().pass_on(&self.cancel);
        Ok(RunChannel { channel, prints: self.prints.clone(), back: Some((self, passed_on)) })
    }
}

/// Reports a refused connection, up to the limit.
fn report_refusal(refusal: &Refusal, left: &mut usize, reporter: &Reporter) {
    if *left == 0 {
        return;
    }
    *left -= 1;
    let Refusal { address, error, .. } = refusal;
    reporter.caution(format_args!("a connection from {address} was refused: {error}"));
    if *left == 0 {
        reporter.caution("further refused connections are not reported");
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
mod tests {
    use super::*;

    #[test]
    fn exactly_one_endpoint() {
        let endpoint = |listen: Option<&str>, connect: Option<&str>| {
            EndpointOptions {
                listen: listen.map(str::to_owned),
                connect: connect.map(str::to_owned),
                ..EndpointOptions::default()
            }
            .endpoint(None, &Reporter::for_tests())
            .map(|endpoint| match endpoint {
                Endpoint::Address { place, .. } => place,
                Endpoint::Open(_) => unreachable!("no connection was given"),
            })
        };
        assert_eq!(
            endpoint(Some("[::1]:70"), None).unwrap(),
            Address::Listen("[::1]:70".to_owned())
        );
        for (listen, connect, fragment) in [
            (None, None, "one of them is required"),
            (Some("a:1"), Some("b:1"), "only one"),
            (Some("localhost"), None, "--listen: 'localhost' is not HOST:PORT"),
            (None, Some("localhost:99999"), "--connect: 'localhost:99999' is not HOST:PORT"),
        ] {
            let refused = endpoint(listen, connect).unwrap_err();
            assert_eq!(refused.status(), Status::Usage);
            assert!(refused.to_string().contains(fragment), "{refused}");
        }
    }
}
