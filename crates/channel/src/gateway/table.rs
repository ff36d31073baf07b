//! The table of workers and attempts: which worker is connected with which attempt.
//!
//! Computes only, apart from single bytes to clients that wait. They are sent under the lock of the
//! table and without waiting, so that nothing follows the byte that lets a client go.

use std::collections::{HashMap, VecDeque};
use std::net::Shutdown;
use std::sync::{Arc, OnceLock};

use volery_os::net::Socket;

use super::splice::Pair;
use super::{Client, GO, Limits, Reason, WAITING};
use crate::Role;
use crate::tcp::system;
use crate::tls::Fingerprint;

/// Workers of an organisation whose attempts are remembered; more where more can be connected.
const REMEMBERED: usize = 1 << 16;

/// Clients without a valid ticket at the same time; a new one replaces the oldest.
const UNVERIFIED: usize = 256;

/// The connection of a client with a valid ticket.
pub(super) struct Connection {
    pub(super) socket: Arc<Socket>,
    pub(super) client: Client,
    /// Set when its peer is there.
    met: OnceLock<Arc<Pair>>,
}

impl Connection {
    pub(super) fn new(socket: Arc<Socket>, client: Client) -> Arc<Self> {
        let met = OnceLock::new();
        Arc::new(Self { socket, client, met })
    }

    /// A newer attempt is there, or the gateway ends.
    fn close(&self, reason: Option<Reason>) {
        if let Some(pair) = self.met.get() {
            return pair.close();
        }
        if let Some(reason) = reason {
            tell(&self.socket, reason.code());
        }
        // It may be closed already.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// Sends a byte at once; false if the connection does not take it.
pub(super) fn tell(socket: &Socket, byte: u8) -> bool {
    let flags = system::AT_ONCE | system::NO_SIGNAL;
    let sent = socket.send_with_flags(&[byte], flags);
    sent.is_ok_and(|count| count == 1)
}

type Worker = ([u8; 32], Role, Option<u32>);

/// The highest attempt of a worker.
struct Attempt {
    number: u64,
    has_met: bool,
    connection: Option<Arc<Connection>>,
}

#[derive(Default)]
struct Organisation {
    attempts: HashMap<Worker, Attempt>,
    /// The workers, the one that came first in front.
    order: VecDeque<Worker>,
    waiting: usize,
}

impl Organisation {
    /// Remembers an attempt, and forgets workers that are not connected beyond `most`.
    fn remember(&mut self, worker: Worker, attempt: Attempt, most: usize) {
        if self.attempts.insert(worker, attempt).is_none() {
            self.order.push_back(worker);
        }
        for _ in 0..self.order.len().saturating_sub(most) {
            let Some(oldest) = self.order.pop_front() else {
                return;
            };
            match self.attempts.get(&oldest) {
                Some(attempt) if attempt.connection.is_some() => self.order.push_back(oldest),
                _ => drop(self.attempts.remove(&oldest)),
            }
        }
    }
}

/// The outcome of a look at a connection that waits.
pub(super) enum WaitOutcome {
    Waits,
    Met(Arc<Pair>),
    Left(Option<Reason>),
}

pub(super) struct Table {
    limits: Limits,
    organisations: HashMap<Fingerprint, Organisation>,
    unverified: VecDeque<(u64, Arc<Socket>)>,
    /// Clients that ever came.
    came: u64,
    connected: usize,
    is_closed: bool,
}

impl Table {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            organisations: HashMap::new(),
            unverified: VecDeque::new(),
            came: 0,
            connected: 0,
            is_closed: false,
        }
    }

    /// A client connects; returns its number. The oldest without a ticket makes way for it.
    pub(super) fn come(&mut self, socket: &Arc<Socket>) -> u64 {
        // mutant(gateway-unverified): `self.unverified.len() == UNVERIFIED` => `false`
        if self.unverified.len() == UNVERIFIED
            && let Some((_, oldest)) = self.unverified.pop_front()
        {
            let _ = oldest.shutdown(Shutdown::Both);
        }
        self.came += 1;
        self.unverified.push_back((self.came, Arc::clone(socket)));
        self.came
    }

    /// The client of this number has shown a ticket, or is refused.
    pub(super) fn forget(&mut self, number: u64) {
        self.unverified.retain(|(other, _)| *other != number);
    }

    /// Takes a client with a valid ticket: it waits, or its peer is there. Its thread calls
    /// [`leave`](Self::leave) at its end.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub(super) fn admit(
        &mut self,
        connection: &Arc<Connection>,
    ) -> Result<Option<Arc<Pair>>, Reason> {
        let Client { organisation, peer, ticket, .. } = connection.client;
        let worker = (ticket.run, ticket.side, ticket.worker);
        let across = (ticket.run, ticket.side.other(), ticket.worker);
        let other = self.attempt(peer, across).and_then(|attempt| {
            let other = attempt.connection.as_ref()?;
            // mutant(gateway-pair): `other.client.peer == organisation` => `true`
            let is_ours = other.met.get().is_none() && other.client.peer == organisation;
            is_ours.then(|| Arc::clone(other))
        });
        let (limits, connected) = (self.limits, self.connected);
        let own = self.organisations.entry(organisation).or_default();
        let mut replaced = None;
        if let Some(known) = own.attempts.get_mut(&worker) {
            // mutant(gateway-newer): false
            if known.number > ticket.attempt {
                return Err(Reason::Newer);
            }
            // One that is gone before it met its peer may come again.
            // mutant(gateway-used): `known.has_met` => `false`
            let is_used = known.has_met || known.connection.is_some();
            // mutant(gateway-equal): false
            if known.number == ticket.attempt && is_used {
                return Err(Reason::Used);
            }
            replaced = known.connection.clone();
        }
        let replaces = replaced.is_some();
        let waiting =
            own.waiting - usize::from(replaced.as_ref().is_some_and(|c| c.met.get().is_none()));
        let is_full = connected - usize::from(replaces) >= limits.connections;
        // mutant(gateway-waiting): `other.is_none() && waiting >= limits.waiting` => `false`
        // mutant(gateway-full): `is_full` => `false`
        if self.is_closed || is_full || other.is_none() && waiting >= limits.waiting {
            return Err(Reason::Full);
        }
        own.waiting = waiting;
        if let Some(replaced) = replaced {
            // mutant(gateway-fence, 40 s): drop
            replaced.close(Some(Reason::Newer));
        }
        self.connected += 1;
        let attempt = Attempt {
            number: ticket.attempt,
            has_met: other.is_some(),
            connection: Some(Arc::clone(connection)),
        };
        own.remember(worker, attempt, REMEMBERED.max(2 * limits.connections));
        let Some(other) = other else {
            own.waiting += 1;
            tell(&connection.socket, WAITING);
            return Ok(None);
        };
        let both = [connection, &other].map(|one| (&one.socket, one.client));
        let pair = Arc::new(Pair::new(both));
        let theirs = self.organisations.entry(peer).or_default();
        theirs.waiting -= 1;
        if let Some(attempt) = theirs.attempts.get_mut(&across) {
            attempt.has_met = true;
        }
        for connection in [connection, &other] {
            // Both are set here for the first time.
            let _ = connection.met.set(Arc::clone(&pair));
            tell(&connection.socket, GO);
        }
        Ok(Some(pair))
    }

    fn attempt(&self, organisation: Fingerprint, worker: Worker) -> Option<&Attempt> {
        self.organisations.get(&organisation)?.attempts.get(&worker)
    }

    /// A waiting client is told that it still waits, or that it is `over`, unless its peer has come
    /// or a newer attempt.
    pub(super) fn look(
        &mut self,
        connection: &Arc<Connection>,
        over: Option<Option<Reason>>,
    ) -> WaitOutcome {
        // mutant(world-late-byte): insert `if $ON && connection.met.get().is_some() {
        //     tell(&connection.socket, WAITING); }`
        if let Some(pair) = connection.met.get() {
            return WaitOutcome::Met(Arc::clone(pair));
        }
        let Client { organisation, ticket, .. } = connection.client;
        let attempt = self.attempt(organisation, (ticket.run, ticket.side, ticket.worker));
        let current = attempt.and_then(|attempt| attempt.connection.as_ref());
        if !current.is_some_and(|current| Arc::ptr_eq(current, connection)) {
            return WaitOutcome::Left(Some(Reason::Newer));
        }
        let reason = match over {
            None if tell(&connection.socket, WAITING) => return WaitOutcome::Waits,
            None => None,
            Some(reason) => {
                if let Some(reason) = reason {
                    tell(&connection.socket, reason.code());
                }
                reason
            }
        };
        // From now on no peer meets it.
        self.clear(connection);
        WaitOutcome::Left(reason)
    }

    /// A connection has ended.
    pub(super) fn leave(&mut self, connection: &Arc<Connection>) {
        self.connected -= 1;
        self.clear(connection);
    }

    /// Forgets the connection of an attempt, if it is still this one.
    fn clear(&mut self, connection: &Arc<Connection>) {
        let Client { organisation, ticket, .. } = connection.client;
        let worker = (ticket.run, ticket.side, ticket.worker);
        let own = self.organisations.entry(organisation).or_default();
        let Some(attempt) = own.attempts.get_mut(&worker) else {
            return;
        };
        let current = attempt.connection.as_ref();
        if current.is_some_and(|current| Arc::ptr_eq(current, connection)) {
            attempt.connection = None;
            // mutant(world-waiting): drop
            own.waiting -= usize::from(connection.met.get().is_none());
        }
    }

    /// The gateway ends: closes all connections, and takes no others.
    pub(super) fn close(&mut self) {
        self.is_closed = true;
        for (_, socket) in &self.unverified {
            let _ = socket.shutdown(Shutdown::Both);
        }
        let organisations = self.organisations.values();
        let attempts = organisations.flat_map(|organisation| organisation.attempts.values());
        for connection in attempts.filter_map(|attempt| attempt.connection.as_ref()) {
            connection.close(None);
        }
    }
}
