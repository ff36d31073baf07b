//! A server that many clients connect to at the same time.
//!
//! Each client gets a thread and a [`Channel`] with heartbeats, over TLS 1.3 with both certificates
//! known to the other side, or, on the loopback interface only, over plain TCP.
//!
//! * **Bounds**: connections in all; clients that have not shown who they are, of which the oldest
//!   makes way for a new one; the time for their handshake ([`Limits`]). A client that is silent
//!   afterwards fails by the timeout of its channel.
//! * **End**: after a first signal no client is accepted, and those that are served may finish for
//!   [`Limits::grace`]; then their connections are closed.

use std::collections::VecDeque;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use crate::tcp::{self, Breaker, HANDSHAKE_TIMEOUT, MAX_HANDSHAKES, Patience, Refusal, Stream};
use crate::tls::{self, Fingerprint, Identity, Known, session};
use crate::{Cancel, Channel, Error, Result};

/// The longest time between two looks for a new client.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause after an error of the listening socket, which may have no file descriptors.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Bytes that are queued for a client, and from it: a server has many that may read slowly.
const QUEUE: usize = 2 << 20;

/// The bounds of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients that are served at the same time; further ones are closed at once. Those that have
    /// not shown who they are, at most 64, are not counted.
    pub connections: usize,
    /// How long a client may be silent.
    pub timeout: Duration,
    /// How long clients that are served may take after the end of the service was asked for.
    pub grace: Duration,
}

/// A client that has shown who it is.
pub struct Client {
    /// The connection to it.
    pub channel: Channel,
    /// Its fingerprint; none on the loopback interface without TLS.
    pub fingerprint: Option<Fingerprint>,
    /// Where it connects from.
    pub address: SocketAddr,
    /// Cancelled when the connection is closed at the end of the service.
    pub closed: Cancel,
}

/// A listening service.
pub struct Service {
    listener: tcp::Listener,
    identity: Option<(Identity, Known)>,
}

impl Service {
    /// Listens on `address`; port 0 lets the system choose one. With an identity clients are those
    /// that the function knows, which is called for each of them; without one the address must be
    /// on the loopback interface.
    ///
    /// # Errors
    /// [`Error::NotLoopback`]; [`Error::Identity`] if the identity is not valid now; [`Error::Io`]
    /// if the address is not usable.
    pub fn bind(address: impl ToSocketAddrs, identity: Option<(Identity, Known)>) -> Result<Self> {
        let listener = match &identity {
            None => tcp::Listener::bind(address)?,
            Some((identity, _)) => {
                identity.check(std::time::SystemTime::now())?;
                tcp::Listener::bind_anywhere(address)?
            }
        };
        Ok(Self { listener, identity })
    }

    /// The address listened on.
    ///
    /// # Errors
    /// If the operating system does not report it.
    pub fn local_addr(&self) -> Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves clients until `stop`, then waits for those that are being served, at most for
    /// [`Limits::grace`]. `serve` and `refused` are called on the threads of the clients.
    ///
    /// # Errors
    /// None at present: those of clients go to `refused`, and a listening socket that fails is
    /// tried again.
    pub fn serve(
        self,
        limits: Limits,
        stop: &Cancel,
        serve: &(dyn Fn(Client) + Sync),
        refused: &(dyn Fn(Refusal) + Sync),
    ) -> Result<()> {
        let Self { listener, identity } = self;
        let running = Running {
            identity: identity.as_ref(),
            limits,
            closed: Cancel::default(),
            waiting: Mutex::default(),
            served: AtomicUsize::new(0),
            serve,
            refused,
        };
        thread::scope(|scope| {
            running.accept(scope, &listener, stop);
            // From now on the system refuses clients, which may find another server.
            drop(listener);
            running.waiting().iter().for_each(|(_, one)| one.end());
            let start = Instant::now();
            while running.served.load(Ordering::SeqCst) > 0 && start.elapsed() < limits.grace {
                thread::sleep(PAUSE);
            }
            running.closed.cancel();
        });
        Ok(())
    }
}

/// One call of [`Service::serve`].
struct Running<'a> {
    identity: Option<&'a (Identity, Known)>,
    limits: Limits,
    /// Closes all connections.
    closed: Cancel,
    /// Clients that have not shown who they are. One that is not there any more was abandoned.
    waiting: Mutex<VecDeque<(u64, Breaker)>>,
    served: AtomicUsize,
    serve: &'a (dyn Fn(Client) + Sync),
    refused: &'a (dyn Fn(Refusal) + Sync),
}

impl Running<'_> {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<(u64, Breaker)>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accept<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        listener: &tcp::Listener,
        stop: &Cancel,
    ) {
        let patience = Patience {
            cancel: self.closed.clone(),
            queue: QUEUE,
            ..self.limits.timeout.into()
        };
        let mut pause = Duration::from_micros(50);
        let mut number = 0;
        loop {
            let next = match listener.poll(&patience) {
                Ok(Some((stream, address))) => {
                    number += 1;
                    self.begin(scope, number, stream, address);
                    pause = Duration::from_micros(50);
                    Duration::ZERO
                }
                Ok(None) => {
                    pause = (pause * 2).min(PAUSE);
                    pause
                }
                Err(_) => SHORTAGE,
            };
            if stop.sleep(next).is_err() {
                return;
            }
        }
    }

    /// A thread for a client. Without one the connection is dropped; the client comes again.
    fn begin<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        number: u64,
        stream: Stream,
        address: SocketAddr,
    ) {
        let mut waiting = self.waiting();
        if waiting.len() == MAX_HANDSHAKES
            && let Some((_, oldest)) = waiting.pop_front()
        {
            oldest.end();
        }
        waiting.push_back((number, stream.breaker()));
        drop(waiting);
        let spawned = thread::Builder::new()
            .name("volery service".into())
            .spawn_scoped(scope, move || self.serve_one(number, stream, address));
        if spawned.is_err() {
            self.leave(number);
        }
    }

    /// Takes a client from those that have not shown who they are; false if it was abandoned.
    fn leave(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let place = waiting.iter().position(|(other, _)| *other == number);
        place.and_then(|place| waiting.remove(place)).is_some()
    }

    fn serve_one(&self, number: u64, stream: Stream, address: SocketAddr) {
        let shaken = self.shake(stream);
        let known = self.leave(number);
        let slow = || Error::TimedOut("it was slow, and newer connections arrived".to_owned());
        let refuse = |error| (self.refused)(Refusal { address, error });
        let (channel, fingerprint) = match shaken {
            Ok(shaken) if known => shaken,
            Err(error) if known => return refuse(error),
            _ => return refuse(slow()),
        };
        let before = self.served.fetch_add(1, Ordering::SeqCst);
        if before < self.limits.connections {
            (self.serve)(Client {
                channel,
                fingerprint,
                address,
                closed: self.closed.clone(),
            });
        } else {
            drop(channel);
            refuse(Error::Unavailable(
                "there are too many connections".to_owned(),
            ));
        }
        self.served.fetch_sub(1, Ordering::SeqCst);
    }

    fn shake(&self, stream: Stream) -> Result<(Channel, Option<Fingerprint>)> {
        let timeout = self.limits.timeout;
        let limit = timeout.min(HANDSHAKE_TIMEOUT);
        match self.identity {
            None => Ok((tcp::greeted(stream, timeout, limit)?, None)),
            Some((identity, known)) => {
                let tls = session::respond_to(stream, identity, known, limit)?;
                let fingerprint = tls.peer();
                Ok((tls::channel(tls, timeout)?, fingerprint))
            }
        }
    }
}
