//! The peer's address, its identity, and the connection to it.

use std::net::ToSocketAddrs as _;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;
use volery_channel::tcp::{Patience, Proxy, Refusal, Route};
use volery_channel::tls::{self, Fingerprint, Identity, Peer};
use volery_channel::{Cancel, CancelLink, Channel, tcp};
use volery_options::parse;
use volery_os::time::wall_clock;

use crate::failure::{Failure, Result, Status};
use crate::identity::{IdentitySource, PassphraseSource};
use crate::pin_file::PinFile;
use crate::proxy::{self, ProxyOption};
use crate::reporter::{Reporter, event};

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

        /// This party's identity, a folder created by 'volery keygen'. With --identity and --peer
        /// the connection is authenticated and encrypted; addresses other than loopback require
        /// both
        once identity: PathBuf ["Peer", "DIR", parse::path];

        /// Command that prints the identity in PEM, in place of --identity, such as 'vault kv get
        /// ..'; started without a shell
        once identity_command: String ["Peer", "COMMAND", parse::string];

        /// Passphrase of the identity's private key, if it is encrypted: file:PATH, env:NAME or
        /// prompt
        once identity_passphrase: PassphraseSource ["Peer", "SOURCE", parse::text];

        /// Fingerprint of the peer's identity, or a file that holds it; every other identity is
        /// refused. Named twice while the peer changes its identity: either is accepted
        many peer: PeerPin ["Peer", "FINGERPRINT", |value| pinned(parse::utf8(value)?)];

        /// Accept the new identity that the one in the --peer file announces ('volery keygen
        /// --renew'), and write it into the file; with --protocol served also a new key of the
        /// server's filter
        switch follow_key ["Peer"];

        /// Time to wait for the peer to become reachable, such as 90s, 10m or 1h
        default wait: Duration ["60s", "Peer", "TIME", parse::time];

        /// Connect through this proxy, http://[USER:PASSWORD@]HOST:PORT, or the same with socks5://
        /// or socks5h://; 'none': through none. Without it the variables HTTPS_PROXY, ALL_PROXY and
        /// NO_PROXY decide
        once proxy: ProxyOption ["Peer", "URL", ProxyOption::parse];

        /// Accept an --identity that its group can read, such as a mounted secret; never one that
        /// all users can read
        switch allow_group_readable_identity ["Peer"];
    }
}

/// The pin of a peer's identity, with the file that holds it.
#[derive(Clone, Debug)]
pub struct PeerPin {
    /// The fingerprint.
    pub fingerprint: Fingerprint,
    file: Option<PinFile>,
}

/// Parses a fingerprint, or reads it from the file of this name.
pub fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    pinned(text).map(|pin| pin.fingerprint)
}

fn pinned(text: &str) -> Result<PeerPin, String> {
    let wrong = match text.parse::<Fingerprint>() {
        Ok(fingerprint) => return Ok(PeerPin { fingerprint, file: None }),
        Err(wrong) => wrong,
    };
    let path = Path::new(text);
    if !path.is_file() {
        return Err(format!("{wrong}; and there is no file of this name"));
    }
    let file = PinFile::read(path)?;
    Ok(PeerPin { fingerprint: file.pinned(), file: Some(file) })
}

/// The identity of this party, and the pin of the peer's.
pub(crate) struct SecuredEndpoint {
    identity: Identity,
    peer: Peer,
    /// The file of the pin, if it is followed.
    pins: Option<PinFile>,
}

/// Where a run meets its peer, checked.
pub(crate) enum Endpoint<'a> {
    /// At an address.
    Address {
        place: Address,
        /// Only where this side connects.
        proxy: Option<Box<Proxy>>,
        wait: Duration,
        /// `None` only for a connection within this machine.
        secured: Option<Box<SecuredEndpoint>>,
    },
    /// On a connection that is there.
    Open(&'a mut Connection),
}

type Begin = Box<dyn FnOnce() -> volery_channel::Result<Channel> + Send>;

/// An open connection, on which several runs follow each other.
pub struct Connection {
    /// Whether the latest run has begun to speak with the peer.
    has_spoken: bool,
    /// None: a run has failed, or none has begun.
    channel: Option<Channel>,
    /// The state in which the first run begins.
    begin: Option<Begin>,
    /// The fingerprints of this party and of the peer.
    prints: Option<[String; 2]>,
    cancel: Cancel,
}

impl Connection {
    pub(crate) fn new(channel: Channel, prints: Option<[String; 2]>, cancel: Cancel) -> Self {
        Self { has_spoken: false, channel: Some(channel), begin: None, prints, cancel }
    }

    /// A connection that its first run begins, when all that this side can check has been checked.
    pub(crate) fn later(begin: Begin, cancel: Cancel) -> Self {
        Self { has_spoken: false, channel: None, begin: Some(begin), prints: None, cancel }
    }

    /// Runs `work`. If it fails once it has begun to speak with the peer, the connection is closed:
    /// the two sides would be out of step.
    pub fn run<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.has_spoken = false;
        let result = work(self);
        if result.is_err() && self.has_spoken {
            self.channel = None;
        }
        result
    }

    /// Whether a run can use the connection.
    pub fn is_open(&self) -> bool {
        (self.channel.is_some() || self.begin.is_some()) && !self.cancel.is_cancelled()
    }
}

/// The channel of a run. Dropping it closes the connection; [`end`](Self::end) leaves the one that
/// was there open.
pub(crate) struct RunChannel<'a> {
    channel: Channel,
    prints: Option<[String; 2]>,
    /// The file of the peer's pin, if it is followed.
    pub(crate) pins: Option<PinFile>,
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
    ) -> Result<Endpoint<'a>> {
        if let Some(connection) = connection {
            let named = [
                ("--listen", self.listen.is_some()),
                ("--connect", self.connect.is_some()),
                ("--identity", self.identity.is_some()),
                ("--identity-command", self.identity_command.is_some()),
                ("--peer", !self.peer.is_empty()),
                ("--proxy", self.proxy.is_some()),
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
        let proxy = match &place {
            // A connection in plain text stays on this machine, whatever name its address has here.
            Address::Connect(_) if secured.is_none() && self.proxy.is_none() => None,
            Address::Connect(address) => {
                proxy::route(address, self.proxy.as_ref())?.proxy.map(Box::new)
            }
            Address::Listen(_) if self.proxy.is_some() => {
                return Err(Failure::usage("--proxy", "this side listens, and connects to nobody")
                    .with_hint("remove --proxy; the peer may use a proxy of its own"));
            }
            Address::Listen(_) => None,
        };
        let secured = secured.map(Box::new);
        Ok(Endpoint::Address { place, proxy, wait: self.wait, secured })
    }

    /// The place of the identity.
    fn identity_source(&self) -> IdentitySource<'_> {
        IdentitySource {
            folder: self.identity.as_deref(),
            command: self.identity_command.as_deref(),
            passphrase: self.identity_passphrase.as_ref(),
            group: self.allow_group_readable_identity,
        }
    }

    /// The identity and the peer's pin, if they are given.
    fn secured(&self, reporter: &Reporter) -> Result<Option<SecuredEndpoint>> {
        let (first, second) = match &self.peer[..] {
            [] => (None, None),
            [first] => (Some(first), None),
            [first, second] => (Some(first), Some(second.fingerprint)),
            _ => {
                let what = "named more than twice: the old identity of the peer and its new one";
                return Err(Failure::usage("--peer", what).with_hint("remove those that expired"));
            }
        };
        let file = first.and_then(|first| first.file.as_ref());
        if self.follow_key && (file.is_none() || second.is_some()) {
            let what = "requires one --peer, in a file of its own";
            return Err(Failure::usage("--follow-key", what).with_hint(
                "write the peer's fingerprint to a file, and name the file with --peer",
            ));
        }
        let secured = match (self.identity_source().load()?, first) {
            (None, None) => None,
            (Some(identity), Some(first)) => {
                let pins = file.filter(|_| self.follow_key).cloned();
                let follow = pins.as_ref().map(PinFile::follow).transpose()?;
                let peer = Peer { also: second, follow, ..first.fingerprint.into() };
                if [Some(peer.fingerprint), peer.also].contains(&Some(identity.fingerprint())) {
                    return Err(Failure::usage(
                        "--peer",
                        "this is the fingerprint of this party's own --identity",
                    )
                    .with_hint("--peer takes the fingerprint of the other party; ask it"));
                }
                Some(SecuredEndpoint { identity, peer, pins })
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
        let prints = secured.as_ref().map(|one| prints_of(one, one.peer.fingerprint));
        note_prints(prints.as_ref(), reporter);
        Ok(secured)
    }

    /// The identity and the peer's fingerprint for a run at a gateway, which gives the address.
    ///
    /// # Errors
    /// As `secured`, and if they or the address of a peer are given otherwise.
    pub fn at_gateway(&self, reporter: &Reporter) -> Result<(Identity, Fingerprint)> {
        for (option, given) in [("--listen", &self.listen), ("--connect", &self.connect)] {
            if given.is_some() {
                let what = "the two sides meet at --gateway";
                return Err(Failure::usage(option, what).with_hint(format_args!("remove {option}")));
            }
        }
        // The connection itself comes after much work.
        proxy::route("", self.proxy.as_ref())?;
        let secured = self.secured(reporter)?.ok_or_else(|| {
            Failure::usage("--identity, --peer", "a run with workers requires both")
                .with_hint("'volery keygen --out DIR' makes an identity and prints its fingerprint")
        })?;
        if secured.peer.also.is_some() || secured.pins.is_some() {
            let what = "a run with workers has one peer: the two identities name the run";
            return Err(Failure::usage("--peer", what)
                .with_hint("name the identity that the peer uses now, without --follow-key"));
        }
        Ok((secured.identity, secured.peer.fingerprint))
    }

    /// The identity and the pin for the connections of a gateway, if they are given.
    pub fn identity_and_peer(&self, reporter: &Reporter) -> Result<Option<(Identity, Peer)>> {
        let secured = self.secured(reporter)?;
        Ok(secured.map(|secured| (secured.identity, secured.peer)))
    }

    /// The identity.
    pub fn load_identity(&self) -> Result<Identity> {
        self.identity_source().load()?.ok_or_else(|| Failure::usage("--identity", "required"))
    }

    fn place(&self) -> Result<Address> {
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
pub fn host_port(option: &str, address: &str) -> Result<()> {
    if let Some((_, rest)) = address.split_once("://") {
        let message = format_args!("'{address}' is a URL, not HOST:PORT");
        return Err(Failure::usage(option, message).with_hint(format_args!("write {rest}")));
    }
    let port = address.rsplit_once(':');
    if port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        return Ok(());
    }
    let message = format_args!("'{address}' is not HOST:PORT");
    Err(Failure::usage(option, message).with_hint("for example 127.0.0.1:7000"))
}

/// The fingerprints of this party and of the peer.
fn prints_of(secured: &SecuredEndpoint, peer: Fingerprint) -> [String; 2] {
    [secured.identity.fingerprint(), peer].map(|print| print.to_string())
}

fn note_prints(prints: Option<&[String; 2]>, reporter: &Reporter) {
    let mut record = reporter.record();
    record.identity = prints.map(|[own, _]| own.clone());
    record.peer = prints.map(|[_, peer]| peer.clone());
}

/// The remedy for a port that another process has.
const TAKEN: &str = "another process listens there, perhaps an earlier run: 'ss -ltnp' names it; port 0, as in --listen 127.0.0.1:0, takes any free one";

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
    pub fn check_form(&self) -> Result<()> {
        host_port(self.option(), self.address())
    }

    /// Refuses an address off this machine before any work is done. A name that does not resolve
    /// yet is checked when it does.
    fn check_loopback(&self) -> Result<()> {
        self.check_loopback_of(["--identity and --peer", "--identity DIR --peer FINGERPRINT"])
    }

    /// The same, where other options say who the peers are.
    pub fn check_loopback_of(&self, [required, words]: [&str; 2]) -> Result<()> {
        let hint = format!(
            "each party makes an identity with 'volery keygen --out DIR' and gives the other its fingerprint; start each side with {words}"
        );
        self.check_loopback_as(self.option(), required, &hint)
    }

    /// The same, for an address that another option gave.
    pub fn check_loopback_as(&self, option: &str, required: &str, hint: &str) -> Result<()> {
        let Ok(mut addresses) = self.address().to_socket_addrs() else {
            return Ok(());
        };
        let outside = addresses.find(|address| !address.ip().to_canonical().is_loopback());
        let Some(outside) = outside else {
            return Ok(());
        };
        let message =
            format_args!("{} is not a loopback address: {required} are required", outside.ip());
        Err(Failure::usage(option, message).with_hint(hint))
    }

    /// A local address that cannot be used is not the fault of the peer or the network.
    pub fn unusable(&self, error: volery_channel::Error) -> Failure {
        unusable(self.option(), self.address(), error)
    }
}

/// The failure of a local address that an option gave.
pub(crate) fn unusable(option: &str, address: &str, error: volery_channel::Error) -> Failure {
    let volery_channel::Error::Io(error) = error else { return error.into() };
    let failure = Failure::new(Status::Other, format_args!("{option} {address}: {error}"));
    match error.kind() {
        std::io::ErrorKind::AddrInUse => failure.with_hint(TAKEN),
        _ => failure,
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
    pub(crate) fn open(self, timeout: Duration, reporter: &Reporter) -> Result<RunChannel<'a>> {
        let (place, proxy, wait, secured) = match self {
            Self::Open(connection) => return connection.lend(reporter),
            Self::Address { place, proxy, wait, secured } => (place, proxy, wait, secured),
        };
        if let Some(secured) = &secured {
            note_expiry(&secured.identity, reporter);
        }
        let patience = Patience {
            wait,
            timeout,
            cancel: reporter.cancel().clone(),
            queue: volery_channel::QUEUE_BOUND,
        };
        let mut channel = match &place {
            Address::Connect(address) => {
                let by = proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}"));
                let by = by.unwrap_or_default();
                let fields = json!({ "address": address, "wait_seconds": wait.as_secs() });
                let text = format!("trying to connect to {address}{by} for at most {wait:?}");
                reporter.tell_with(text, event("connecting", fields));
                reporter.begin("connecting");
                let route = Route { address: address.clone(), proxy: proxy.map(|proxy| *proxy) };
                let connected = match &secured {
                    None => tcp::connect(route, patience),
                    Some(secured) => {
                        tls::connect(route, &secured.identity, &secured.peer, patience)
                    }
                };
                connected.map_err(|error| place.unusable(error))?
            }
            Address::Listen(address) => {
                // With port 0 the first line is the only way to learn the port.
                let tell = |here: String| {
                    reporter.announce_listener(&here);
                    let text = format!("waiting for the peer to connect, for at most {wait:?}");
                    let fields = event("waiting", json!({ "wait_seconds": wait.as_secs() }));
                    reporter.tell_with(text, fields);
                    reporter.begin("connecting");
                };
                let bound = |error| place.unusable(error);
                let mut left = MAX_REPORTED;
                let refused = |refusal: Refusal| report_refusal(&refusal, &mut left, reporter);
                match &secured {
                    None => {
                        let listener = tcp::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.addresses());
                        listener.accept_channel(patience, refused)?
                    }
                    Some(secured) => {
                        let listener = tls::Listener::bind(&**address).map_err(bound)?;
                        tell(listener.addresses());
                        listener.accept(&secured.identity, &secured.peer, patience, refused)?
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
        channel.count_in(reporter.traffic());
        let mut pins = secured.as_ref().and_then(|secured| secured.pins.clone());
        let shown = channel.peer();
        if let (Some(file), Some(shown)) = (&mut pins, shown)
            && shown.fingerprint != file.pinned()
        {
            *file = file.pin(shown)?;
            reporter.warn(format_args!(
                "--follow-key: the peer's identity is now {}, as the one before announced; it is in the --peer file",
                shown.fingerprint
            ));
        }
        let prints = secured.as_ref().zip(shown);
        let prints = prints.map(|(secured, shown)| prints_of(secured, shown.fingerprint));
        note_prints(prints.as_ref(), reporter);
        Ok(RunChannel { channel, prints, pins, back: None })
    }
}

/// Tells of an identity that is valid only for some days more.
pub fn note_expiry(identity: &Identity, reporter: &Reporter) {
    let left = identity.validity().end.duration_since(wall_clock());
    if left.is_ok_and(|left| left < EXPIRY_NOTICE) {
        let last = identity.last_day();
        reporter.say(format_args!("note: the identity of --identity expires on {last}"));
    }
}

/// The facts that every peer learns.
const LEARNED: &str = "the peer learned the address, the settings and the duration of this run";

impl Connection {
    /// Gives the channel to a run, which gives it back when it is complete.
    fn lend(&mut self, reporter: &Reporter) -> Result<RunChannel<'_>> {
        self.has_spoken = true;
        if let Some(begin) = self.begin.take() {
            reporter.begin("connecting");
            self.channel = Some(begin()?);
            reporter.end();
        }
        let mut channel = self.channel.take().ok_or_else(|| {
            let what = "the connection is closed, because an earlier run on it failed";
            Failure::new(Status::Network, what).with_hint("open another connection on both sides")
        })?;
        channel.restart_stats();
        channel.count_in(reporter.traffic());
        reporter.record().revealed.push(LEARNED.to_owned());
        let passed_on = reporter.cancel().pass_on(&self.cancel);
        let prints = self.prints.clone();
        Ok(RunChannel { channel, prints, pins: None, back: Some((self, passed_on)) })
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
