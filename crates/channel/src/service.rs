//! A server that many clients connect to at the same time.
//!
//! Each client gets a thread and a [`Channel`] with heartbeats, over TLS 1.3 with both certificates
//! known to the other side, or, on the loopback interface only, over plain TCP. Browsers come over
//! WebSocket, with a token.
//!
//! * **Bounds**: connections in all; clients that have not shown who they are, of which the oldest
//!   makes way for a new one; the time for their handshake ([`Limits`]). A client that is silent
//!   afterwards fails by the timeout of its channel.
//! * **Probes**: a client that leaves before it has shown who it is, or that sends what a health
//!   probe sends (an HTTP request, a TLS hello that is not volery's), is refused with
//!   [`Error::Disconnected`].
//! * **End**: after a first signal no client is accepted, and those that are served may finish for
//!   [`Limits::grace`]; then their connections are closed.

use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicUsize, Ordering};

use volery_os::sync::{Arc, Mutex};
use volery_os::thread::{self, ScopeRef};
use volery_os::time::{Duration, Instant, wall_clock};

use crate::pipe::lock;
use crate::tcp::{self, Breaker, HANDSHAKE_TIMEOUT, MAX_HANDSHAKES, Patience, Refusal, Stream};
use crate::tls::{self, Fingerprint, Identity, KnownIdentities, session};
#[cfg(feature = "web")]
use crate::web;
use crate::{Cancel, Channel, Error, Result};

/// The longest time between two looks for a new client.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause after an error of the listening socket, which may have no file descriptors.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Bytes that are queued for a client, and from it: a server has many that may read slowly.
const QUEUE: usize = 2 << 20;

/// Clients at the same time with one token, where they are counted by it.
const OF_ONE: usize = 8;

/// The bounds of a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Clients that are served at the same time; further ones are closed at once. Those and the
    /// ones that have not shown who they are, together at most 64, are not counted.
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
    /// The credential by which it has shown who it is.
    pub shown: ClientCredential,
    /// Where it connects from.
    pub address: SocketAddr,
    /// Cancelled when the connection is closed at the end of the service.
    pub closed: Cancel,
    breaker: Breaker,
}

impl Client {
    /// Closes the connection at once. Dropping the channel of one that is not cut waits for the
    /// client, which reads what was sent to it, or does not.
    pub fn cut(&self) {
        // mutant(service-cut): drop
        self.breaker.end();
    }
}

/// The credential by which a client has shown who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClientCredential {
    /// Not at all: on the loopback interface without TLS, or a browser without a token.
    Nothing,
    /// By a certificate with this fingerprint.
    Certificate(Fingerprint),
    /// By a token with this fingerprint: a browser.
    Token(Fingerprint),
}

/// A listening service.
pub struct Service {
    listener: tcp::Listener,
    entrance: Entrance,
    turned: Arc<Mutex<Instant>>,
}

/// Whom a service lets in.
enum Entrance {
    Loopback,
    Tls(Identity, KnownIdentities),
    #[cfg(feature = "web")]
    Web(web::Settings),
}

impl Service {
    /// Listens on `address`; port 0 lets the system choose one. With an identity clients are those
    /// that the function knows, which is called for each of them; without one the address must be
    /// on the loopback interface.
    ///
    /// # Errors
    /// [`Error::NotLoopback`]; [`Error::Identity`] if the identity is not valid now; [`Error::Io`]
    /// if the address is not usable.
    pub fn bind(
        address: impl ToSocketAddrs,
        identity: Option<(Identity, KnownIdentities)>,
    ) -> Result<Self> {
        let (listener, entrance) = match identity {
            None => (tcp::Listener::bind(address)?, Entrance::Loopback),
            Some((identity, known)) => {
                identity.check(wall_clock())?;
                let listener = tcp::Listener::bind_anywhere(address)?;
                (listener, Entrance::Tls(identity, known))
            }
        };
        Ok(Self::new(listener, entrance))
    }

    /// Listens on `address` for browsers; port 0 lets the system choose one. Without a certificate
    /// in `settings` it must be on the loopback interface.
    ///
    /// # Errors
    /// [`Error::NotLoopback`]; [`Error::Io`] if the address is not usable.
    #[cfg(feature = "web")]
    pub fn bind_web(address: impl ToSocketAddrs, settings: web::Settings) -> Result<Self> {
        let listener = match &settings.certificate {
            None => tcp::Listener::bind(address)?,
            Some(_) => tcp::Listener::bind_anywhere(address)?,
        };
        Ok(Self::new(listener, Entrance::Web(settings)))
    }

    fn new(listener: tcp::Listener, entrance: Entrance) -> Self {
        Self { listener, entrance, turned: Arc::new(Mutex::new(Instant::now())) }
    }

    /// The time of the last look for a new client, which [`serve`](Self::serve) renews many times
    /// a second.
    pub fn last_turn(&self) -> impl Fn() -> Instant + Send + Sync + use<> {
        let turned = Arc::clone(&self.turned);
        move || *lock(&turned)
    }

    /// All addresses listened on, with commas between them.
    pub fn addresses(&self) -> String {
        self.listener.addresses()
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
        let Self { listener, entrance, turned } = self;
        let timeout = limits.timeout;
        let limit = timeout.min(HANDSHAKE_TIMEOUT);
        let accepting = Acceptor {
            bounds: Bounds {
                connections: limits.connections,
                patience: timeout,
                grace: limits.grace,
            },
            shake: &|stream| entrance.shake(stream, timeout, limit),
            serve: &|(channel, shown), address, closed: &Cancel, breaker| {
                serve(Client { channel, shown, address, closed: closed.clone(), breaker });
            },
            who: &|_| None,
            full: &drop,
            refused,
            turned: &|| *lock(&turned) = Instant::now(),
        };
        accepting.run(listener, stop);
        Ok(())
    }
}

impl Entrance {
    /// Makes the channel to a client within `limit`.
    fn shake(
        &self,
        stream: Stream,
        timeout: Duration,
        limit: Duration,
    ) -> Result<Option<(Channel, ClientCredential)>> {
        let is_http = stream.is_http();
        let probe = |error| match error {
            Error::PeerMisbehaved(_) if is_http() => Error::Disconnected,
            error => error,
        };
        match self {
            Self::Loopback => {
                let channel = tcp::greeted(stream, timeout, limit).map_err(probe)?;
                Ok(Some((channel, ClientCredential::Nothing)))
            }
            Self::Tls(identity, known) => {
                let tls = session::respond_to(stream, identity, known, limit).map_err(probe)?;
                let shown = tls.peer().map_or(ClientCredential::Nothing, |shown| {
                    ClientCredential::Certificate(shown.fingerprint)
                });
                Ok(Some((tls::channel(tls, timeout)?, shown)))
            }
            #[cfg(feature = "web")]
            Self::Web(settings) => {
                let Some(visitor) = web::shake(stream, settings, limit)? else {
                    return Ok(None);
                };
                let shown =
                    visitor.token.map_or(ClientCredential::Nothing, ClientCredential::Token);
                let channel = tcp::greeted(visitor.socket, timeout, limit)?;
                Ok(Some((channel.described("WebSocket".to_owned()), shown)))
            }
        }
    }
}

/// The bounds of every listener of many clients.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// Clients that are served at the same time.
    pub(crate) connections: usize,
    /// How long closing a connection waits for a client that reads nothing.
    pub(crate) patience: Duration,
    /// How long clients that are served may take after the end was asked for.
    pub(crate) grace: Duration,
}

/// A listener of many clients, each with a thread; `T` is a client that has shown who it is.
pub(crate) struct Acceptor<'a, T> {
    pub(crate) bounds: Bounds,
    /// Lets a client show who it is; `None` if it wanted nothing more.
    pub(crate) shake: &'a (dyn Fn(Stream) -> Result<Option<T>> + Sync),
    /// Serves a client. The connection is closed when the value is cancelled.
    pub(crate) serve: &'a (dyn Fn(T, SocketAddr, &Cancel, Breaker) + Sync),
    /// The token of a client, if those with the same are bounded, too.
    pub(crate) who: &'a (dyn Fn(&T) -> Option<Fingerprint> + Sync),
    /// Takes leave of a client beyond the bound.
    pub(crate) full: &'a (dyn Fn(T) + Sync),
    /// Is told of clients that are not served.
    pub(crate) refused: &'a (dyn Fn(Refusal) + Sync),
    /// Is called at each look for a new client.
    pub(crate) turned: &'a (dyn Fn() + Sync),
}

impl<T> Acceptor<'_, T> {
    /// Takes clients until `stop`, then waits for those that are served, at most for the grace.
    pub(crate) fn run(&self, listener: tcp::Listener, stop: &Cancel) {
        let running = AcceptorRun {
            accepting: self,
            closed: Cancel::default(),
            waiting: Mutex::default(),
            served: AtomicUsize::new(0),
            of_one: Mutex::default(),
        };
        thread::scope(|scope| {
            running.accept(scope, &listener, stop);
            // From now on the system refuses clients, which may find another server.
            drop(listener);
            lock(&running.waiting).iter().for_each(|(_, one)| one.end());
            let start = Instant::now();
            let grace = self.bounds.grace;
            while running.served.load(Ordering::SeqCst) > 0 && start.elapsed() < grace {
                thread::sleep(PAUSE);
            }
            running.closed.cancel();
        });
    }
}

/// One call of [`Acceptor::run`].
struct AcceptorRun<'a, T> {
    accepting: &'a Acceptor<'a, T>,
    /// Closes all connections.
    closed: Cancel,
    /// Clients that have not shown who they are. One that is not there any more was abandoned.
    waiting: Mutex<VecDeque<(u64, Breaker)>>,
    served: AtomicUsize,
    /// The number of served clients with each token.
    of_one: Mutex<HashMap<Fingerprint, usize>>,
}

impl<T> AcceptorRun<'_, T> {
    fn accept<'scope>(
        &'scope self,
        scope: ScopeRef<'scope, '_>,
        listener: &tcp::Listener,
        stop: &Cancel,
    ) {
        let patience = Patience {
            cancel: self.closed.clone(),
            queue: QUEUE,
            ..self.accepting.bounds.patience.into()
        };
        let mut pause = Duration::from_micros(50);
        let mut number = 0;
        loop {
            (self.accepting.turned)();
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
        scope: ScopeRef<'scope, '_>,
        number: u64,
        stream: Stream,
        address: SocketAddr,
    ) {
        let mut waiting = lock(&self.waiting);
        if waiting.len() == MAX_HANDSHAKES
            && let Some((_, oldest)) = waiting.pop_front()
        {
            // mutant(service-oldest): drop
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
        let mut waiting = lock(&self.waiting);
        let place = waiting.iter().position(|(other, _)| *other == number);
        place.and_then(|place| waiting.remove(place)).is_some()
    }

    fn serve_one(&self, number: u64, stream: Stream, address: SocketAddr) {
        let accepting = self.accepting;
        let breaker = stream.breaker();
        let shaken = (accepting.shake)(stream).and_then(|client| {
            let who = client.as_ref().and_then(accepting.who);
            match client {
                Some(client) if !self.take_place(who) => {
                    // It still counts among those of which the oldest makes way.
                    // mutant(service-told): insert `if $ON { self.served.fetch_add(1,
                    //     Ordering::SeqCst); }`
                    (accepting.full)(client);
                    let what = "there are too many connections";
                    // no mutant: what comes of the bound, whose mutant is service-places
                    Err(Error::Unavailable(what.to_owned()))
                }
                client => Ok(client.map(|client| (client, who))),
            }
        });
        let known = self.leave(number);
        let refuse = |error| (accepting.refused)(Refusal { address, error });
        let slow = || Error::TimedOut("it was slow, and newer connections arrived".to_owned());
        match shaken {
            Ok(Some((client, who))) => {
                match known {
                    true => (accepting.serve)(client, address, &self.closed, breaker),
                    false => refuse(slow()),
                }
                self.give_place_back(who);
            }
            Ok(None) => {}
            Err(error) => refuse(if known { error } else { slow() }),
        }
    }

    /// Counts one more client that is served, unless there are too many in all or of its token.
    fn take_place(&self, who: Option<Fingerprint>) -> bool {
        let mut of_one = lock(&self.of_one);
        let count = who.and_then(|who| of_one.get(&who)).copied().unwrap_or(0);
        // mutant(service-of-one): false
        if count >= OF_ONE {
            return false;
        }
        let most = self.accepting.bounds.connections;
        // mutant(service-places): `served < most` => `true`
        let more = |served| (served < most).then_some(served + 1);
        let taken = self.served.fetch_update(Ordering::SeqCst, Ordering::SeqCst, more);
        if let (Some(who), Ok(_)) = (who, taken) {
            of_one.insert(who, count + 1);
        }
        taken.is_ok()
    }

    fn give_place_back(&self, who: Option<Fingerprint>) {
        let mut of_one = lock(&self.of_one);
        if let Some(count) = who.and_then(|who| of_one.get_mut(&who)) {
            *count -= 1;
            of_one.retain(|_, count| *count > 0);
        }
        self.served.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpStream;
    use std::sync::mpsc;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    /// Ends the listener, also where the test fails.
    struct End<'a>([&'a Cancel; 2]);

    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.iter().for_each(|one| one.cancel());
        }
    }

    /// They stay here for as long as they like.
    #[test]
    fn clients_beyond_the_bound_take_no_place() {
        let listener = tcp::Listener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (let_go, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let (told, served) = mpsc::channel();
        let leaving = AtomicUsize::new(0);
        let [gone, stop] = [(); 2].map(|()| Cancel::default());
        let accepting = Acceptor {
            bounds: Bounds { connections: 1, patience: LONG, grace: Duration::ZERO },
            shake: &|stream| Ok(Some(stream)),
            serve: &|_stream, _, _, _| {
                told.send(()).unwrap();
                let _ = held.lock().unwrap().recv_timeout(LONG);
            },
            who: &|_| None,
            full: &|_stream| {
                leaving.fetch_add(1, Ordering::SeqCst);
                let _ = gone.sleep(LONG * 3);
            },
            refused: &|_| (),
            turned: &|| (),
        };
        thread::scope(|scope| {
            scope.spawn(|| accepting.run(listener, &stop));
            let _end = End([&gone, &stop]);
            let connect = || TcpStream::connect(address).unwrap();
            let _first = connect();
            served.recv_timeout(LONG).unwrap();
            let mut others: Vec<_> = (0..MAX_HANDSHAKES).map(|_| connect()).collect();
            let start = Instant::now();
            while leaving.load(Ordering::SeqCst) < MAX_HANDSHAKES {
                assert!(start.elapsed() < LONG);
                thread::sleep(PAUSE);
            }
            // The oldest makes way for a further one.
            others.push(connect());
            others[0].set_read_timeout(Some(LONG)).unwrap();
            assert_eq!(others[0].read(&mut [0]).unwrap(), 0);
            // The place of the first one is free, though all of them are there.
            let_go.send(()).unwrap();
            let start = Instant::now();
            while served.try_recv().is_err() {
                assert!(start.elapsed() < LONG);
                others.push(connect());
                thread::sleep(PAUSE);
            }
            let_go.send(()).unwrap();
        });
    }
}
