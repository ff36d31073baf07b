//! The client of a gateway.

use std::io;

use volery_os::time::{Duration, Instant};

use super::{CHALLENGE, GO, MAGIC, Reason, SILENCE, Ticket, WAITING, ticket};
use crate::pipe::deadline_after;
use crate::tcp::{Destination, Patience, Stream};
use crate::tls::{self, Identity, Peer, initiate, respond, session};
use crate::{Channel, Error, Result, Role, Transport};

/// The first and the longest pause before a client connects again.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(5)];

/// The time for a gateway to send its challenge.
const GREETING: Duration = Duration::from_secs(10);

/// Meets `peer` at the gateway at `address` and returns the channel to it, secured end to end.
///
/// Waits for the gateway and the peer for at most `patience.wait` in all. Where the gateway is not
/// there, is full or restarts, this connects again. `leaf` is a [run
/// certificate](Identity::issue) for [`ticket.name()`](Ticket::name), and the name in `peer` is
/// the same.
///
/// # Errors
/// [`Error::Refused`] with the reason if the gateway refuses this client; [`Error::Absent`] if this
/// client waited at the gateway to the end, and the peer did not come; [`Error::TimedOut`] if the
/// gateway is not there, or was not to the end; [`Error::Identity`] if `leaf` is no run
/// certificate; those of [`initiate`] for the connection to the peer; [`Error::Io`] if the address
/// is not usable.
pub fn meet(
    address: impl Destination,
    ticket: &Ticket,
    leaf: &Identity,
    peer: &Peer,
    patience: impl Into<Patience>,
) -> Result<Channel> {
    let patience = patience.into();
    session::check(leaf, peer)?;
    // mutant(gateway-client-leaf): false
    if leaf.chain().len() < 2 {
        let what = "a gateway takes a run certificate, not the identity that issues it";
        return Err(Error::Identity(what.to_owned()));
    }
    let stream = Meeting {
        ticket,
        leaf,
        peer,
        patience: &patience,
        deadline: deadline_after(Some(patience.wait)),
        has_waited: false,
        waits: false,
        refused: None,
    }
    .stream(address)?;
    let tls = match ticket.side {
        Role::Sender => initiate(stream, leaf, peer, patience.timeout),
        Role::Receiver => respond(stream, leaf, peer, patience.timeout),
    };
    tls::channel(tls?, patience.timeout)
}

/// Why there is no connection to the peer yet.
enum Failure {
    Refused(Reason),
    Channel(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Channel(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Channel(error.into())
    }
}

const NO_GATEWAY: Error = Error::PeerMisbehaved(
    "it is no gateway of this version: check the address, and install the same version of volery",
);

struct Meeting<'a> {
    ticket: &'a Ticket,
    leaf: &'a Identity,
    peer: &'a Peer,
    patience: &'a Patience,
    deadline: Option<Instant>,
    /// A gateway has accepted the ticket: from then on it may take this client for an earlier
    /// connection of itself, until it notices the end of that.
    has_waited: bool,
    /// The last thing that the gateway said on the last connection is that this client waits.
    waits: bool,
    /// Why the last connection was refused.
    refused: Option<Reason>,
}

impl Meeting<'_> {
    fn left(&self) -> Duration {
        let left = |end: Instant| end.saturating_duration_since(Instant::now());
        self.deadline.map_or(Duration::MAX, left)
    }

    /// Connects again and again until the peer is at the other end.
    fn stream(mut self, address: impl Destination) -> Result<Stream> {
        let [mut pause, longest] = PAUSES;
        loop {
            let failure = match self.connect(&address) {
                Ok(stream) => return Ok(stream),
                Err(failure) => failure,
            };
            self.patience.cancel.check()?;
            if let Failure::Refused(reason) = &failure {
                self.refused = Some(*reason);
            }
            let passes = match &failure {
                Failure::Refused(Reason::Full | Reason::Alone | Reason::Slow) => true,
                Failure::Refused(Reason::Used) => self.has_waited,
                Failure::Channel(error) => {
                    matches!(error, Error::Disconnected | Error::TimedOut(_))
                }
                Failure::Refused(_) => false,
            };
            if !passes || self.left().is_zero() {
                // no mutant: an error that is passed on
                return Err(self.worded(failure));
            }
            self.patience.cancel.sleep(pause.min(self.left()))?;
            pause = (pause * 2).min(longest);
        }
    }

    fn worded(&self, failure: Failure) -> Error {
        let wait = self.patience.wait;
        let is_silent = matches!(failure, Failure::Channel(Error::TimedOut(_)));
        match failure {
            Failure::Refused(_) | Failure::Channel(Error::TimedOut(_) | Error::Disconnected) => {}
            Failure::Channel(error) => return error,
        }
        match self.refused {
            Some(
                reason @ (Reason::Full
                | Reason::Alone
                | Reason::Slow
                | Reason::Newer
                | Reason::Used),
            ) => Error::Unavailable(reason.to_string()),
            Some(reason) => Error::Refused(format!("at the gateway, {reason}")),
            // A gateway that has closed the connection could not say that the peer has come.
            // mutant(gateway-gone): `self.waits && is_silent` => `self.has_waited`
            None if self.waits && is_silent => Error::Absent(wait),
            None if self.has_waited => Error::TimedOut(format!(
                "the gateway went away, and did not come back within {wait:?}"
            )),
            None => Error::TimedOut(format!("no gateway answered at this address within {wait:?}")),
        }
    }

    fn connect(&mut self, address: &impl Destination) -> std::result::Result<Stream, Failure> {
        self.waits = false;
        let patience = Patience { wait: self.left(), ..self.patience.clone() };
        let stream = Stream::meet(address, &patience, true, |stream, _| Ok(stream))?;
        let mut hello = [0; MAGIC.len() + CHALLENGE];
        self.read(&stream, &mut hello, GREETING)?;
        // mutant(gateway-magic): `(&MAGIC)` => `(&MAGIC).or(if $ON { hello.get(8..) } else { None
        //     })`
        let Some(challenge) = hello.strip_prefix(&MAGIC).and_then(|c| c.first_chunk()) else {
            return Err(NO_GATEWAY.into());
        };
        let peer = self.peer.fingerprint;
        let ticket = ticket::encode(self.ticket, self.leaf, peer, challenge)?;
        stream.write(&ticket, Some(GREETING.min(self.left())))?;
        loop {
            let mut said = [0];
            self.read(&stream, &mut said, SILENCE)?;
            match said {
                [WAITING] => {
                    (self.has_waited, self.waits, self.refused) = (true, true, None);
                }
                [GO] => return Ok(stream),
                [code] => {
                    let reason = Reason::of_code(code).map(Failure::Refused);
                    // no mutant: every other byte from a gateway is an error, with a reason or
                    //     without
                    return Err(reason.unwrap_or(NO_GATEWAY.into()));
                }
            }
        }
    }

    /// Fills `bytes`, which come without a longer pause than `silence`.
    fn read(&self, stream: &Stream, bytes: &mut [u8], silence: Duration) -> Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let left = silence.min(self.left());
            if left.is_zero() {
                return Err(io::Error::from(io::ErrorKind::TimedOut).into());
            }
            match stream.read(rest, Some(left)) {
                // no mutant: the gateway has closed the connection
                Ok(0) => return Err(Error::Disconnected),
                Ok(count) => rest = &mut rest[count..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // no mutant: an error that is passed on
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
