//! A gateway: both parties connect to it, and it passes on the bytes between them.
//!
//! Workers of two clusters cannot usually listen for each other. Each dials a gateway instead,
//! which either party or a third one runs, and which needs one open TCP port. The two are then
//! secured end to end ([`tls`](crate::tls)): the gateway is not trusted with anything but their
//! meeting.
//!
//! ```text
//! gateway                                            client
//!   magic (8) | challenge (32)                ---->
//!                                             <----  ticket
//!   waiting, a byte at least every 10 s       ---->
//!   go, or a reason for a refusal (1 byte)    ---->
//!   the peer's bytes                          <--->  TLS 1.3; the sender is the client of it
//!
//! ticket = run (32) | side (1) | worker (4) | attempt (8) | fingerprint of the peer (20)
//!        | lengths of two certificates (2 each, at most 4,096) | run certificate | that of its
//!          organisation | Ed25519 signature (64)
//! ```
//!
//! Numbers are little endian. The signature is by the key of the run certificate over the challenge
//! and the ticket, so a ticket that was overheard opens no other connection.
//!
//! * **Who meets**: two clients of different sides and organisations that have the same run and
//!   worker, and name each other's organisation. Organisations that are not allowed are refused by
//!   their fingerprint; no other part of their certificates is read.
//! * **Attempts**: a worker that is started again has a higher attempt. It closes the connection of
//!   the lower one. An attempt that is connected, or has met its peer, is refused.
//! * **Bounds**: connections in all and waiting connections of an organisation, the time for a
//!   ticket, for a peer, and without a byte ([`Limits`]). Clients without a valid ticket take no
//!   place of others: of 256 at a time the oldest makes way.
//!
//! Security: the gateway and everyone on the path learn the addresses, organisations, run, workers,
//! attempts, sizes and times. A malicious one can refuse, delay and close connections, and nothing
//! else: each party pins the other's organisation and the name of its run certificate.
//!
//! Cost: 40 bytes from the gateway and about 700 bytes from each client for a meeting, and a byte
//! every 5 seconds of a wait.

mod client;
mod server;
mod splice;
mod table;
mod ticket;

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

pub use client::meet;
pub use server::Gateway;
#[doc(hidden)]
pub use ticket::{encode as encode_ticket, ticket_for_tests};

use crate::Role;
use crate::tls::Fingerprint;

/// The first bytes from a gateway; the last one is the version. The first one is not ASCII, so no
/// text protocol begins with it.
const MAGIC: [u8; 8] = *b"\x89volgtw\x01";

/// Bytes of a challenge.
const CHALLENGE: usize = 32;

/// The peer is not there yet.
const WAITING: u8 = 0;
/// The next byte is the peer's.
const GO: u8 = 1;

/// Time between two bytes that say that a client still waits: short enough for address
/// translators, which forget idle connections.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long a client hears nothing before it takes the gateway for gone.
const SILENCE: Duration = Duration::from_secs(20);

/// Who a client of a gateway is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ticket {
    /// The run, which both parties derive from what they have agreed on. Not a secret.
    pub run: [u8; 32],
    /// The side of this party.
    pub side: Role,
    /// The number of the worker, below `u32::MAX`; `None` for the driver of the run.
    pub worker: Option<u32>,
    /// How often this worker was started; each start must have a higher number than those before.
    pub attempt: u64,
}

impl Ticket {
    /// The name in the run certificate of this worker and of its peer:
    /// `w7.0123456789abcdef0123456789abcdef.volery.invalid`, or `driver` instead of `w7`, with the
    /// first half of the run in hexadecimal.
    pub fn name(&self) -> String {
        let worker = match self.worker {
            Some(worker) => format!("w{worker}"),
            None => "driver".to_owned(),
        };
        let run: String = self.run[..16].iter().map(|b| format!("{b:02x}")).collect();
        format!("{worker}.{run}.volery.invalid")
    }
}

/// The bounds of a [`Gateway`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients with a valid ticket at the same time, waiting or connected to their peer.
    pub connections: usize,
    /// Clients of one organisation that wait at the same time.
    pub waiting: usize,
    /// The time for a ticket, from the connection on.
    pub ticket: Duration,
    /// The longest wait for the peer.
    pub wait: Duration,
    /// The longest time in which no byte passes between two peers. Heartbeats of their channel
    /// pass at least every 15 seconds.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            waiting: 512,
            ticket: Duration::from_secs(10),
            wait: Duration::from_secs(24 * 3600),
            idle: Duration::from_secs(300),
        }
    }
}

/// A client whose ticket is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// Where it connects from.
    pub address: SocketAddr,
    /// The fingerprint of its organisation.
    pub organisation: Fingerprint,
    /// The fingerprint of its peer's organisation.
    pub peer: Fingerprint,
    /// Its ticket.
    pub ticket: Ticket,
}

/// An event that a [`Gateway`] reports.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A client was refused.
    Refused {
        /// Where it connected from.
        address: SocketAddr,
        /// The reason.
        reason: Reason,
    },
    /// A client waits for its peer.
    Waiting(Client),
    /// A client waits no longer, and has not met its peer.
    Left {
        /// The client.
        client: Client,
        /// Why the gateway closed the connection; `None` if the client did.
        reason: Option<Reason>,
    },
    /// Two clients are connected to each other.
    Met {
        /// The side of the sender.
        sender: Client,
        /// The side of the receiver.
        receiver: Client,
    },
    /// A connection between two clients has ended.
    Ended {
        /// The side of the sender.
        sender: Client,
        /// The side of the receiver.
        receiver: Client,
        /// Bytes from the sender, and from the receiver.
        bytes: [u64; 2],
        /// How long they were connected.
        lasted: Duration,
    },
}

/// Why a gateway refuses a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It sent no ticket in time.
    Slow,
    /// It sent something else than a ticket.
    Malformed,
    /// Its organisation is not allowed.
    Organisation,
    /// Its peer's organisation is not allowed, or is its own.
    Peer,
    /// Its certificates are not valid, or for another run or worker.
    Certificate,
    /// Its signature is wrong.
    Signature,
    /// The same worker has connected with a higher attempt.
    Newer,
    /// Its attempt is connected, or has met its peer before.
    Used,
    /// There are too many connections.
    Full,
    /// Its peer did not come.
    Alone,
}

impl Reason {
    /// All reasons in their order, with what a user reads.
    const ALL: [(Self, &str); 10] = [
        (Self::Slow, "no ticket came in time"),
        (Self::Malformed, "what came is no ticket of this version of volery"),
        (Self::Organisation, "the organisation is not allowed there"),
        (Self::Peer, "the organisation of the peer is not allowed there, or is the same"),
        (Self::Certificate, "the run certificate is not valid now, or not for this run and worker"),
        (Self::Signature, "the ticket is not signed by the key of the run certificate"),
        (Self::Newer, "a newer attempt of this worker is connected"),
        (Self::Used, "this attempt was used already"),
        (Self::Full, "there are too many connections"),
        (Self::Alone, "the peer did not come in time"),
    ];

    /// The byte that a client gets.
    fn code(self) -> u8 {
        self as u8 + GO + 1
    }

    fn of_code(code: u8) -> Option<Self> {
        let place = code.checked_sub(GO + 1)?;
        Self::ALL.get(usize::from(place)).map(|&(reason, _)| reason)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::ALL[*self as usize].1)
    }
}
