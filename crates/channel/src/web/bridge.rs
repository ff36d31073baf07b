//! A bridge: it passes on bytes between browsers and a native party.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use volery_os::thread;
use volery_os::time::{Duration, Instant};

use super::{Settings, Visitor, WebSocket, code, shake};
use crate::pipe::is_timeout;
use crate::service::{Acceptor, Bounds};
use crate::tcp::{self, HANDSHAKE_TIMEOUT, Patience, Refusal, Stream};
use crate::tls::{Fingerprint, Identity, Peer, initiate};
use crate::{Cancel, Error, Result, Transport};

/// Bytes read at a time.
const BUFFER: usize = 64 << 10;

/// Bytes that are queued in each direction before the bridge reads no more.
const QUEUE: usize = 2 << 20;

/// The longest and the shortest time between two looks at the idle time and at the other direction.
const SELDOM: Duration = Duration::from_secs(1);
const OFTEN: Duration = Duration::from_millis(10);

/// The bounds of a [`Bridge`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Browsers at the same time, at most 8 of them with the same token; further ones are told so.
    /// The further ones and those that have not shown who they are, at most 64 together, are not
    /// counted.
    pub connections: usize,
    /// How long a browser waits for the native party to be there.
    pub wait: Duration,
    /// The longest time in which no byte passes. Heartbeats of a channel pass at least every 15
    /// seconds.
    pub idle: Duration,
}

/// The native party, which waits for a peer.
#[derive(Clone, Debug)]
pub struct Target {
    /// Its address: on the loopback interface, unless the connection is secured.
    pub address: String,
    /// The bridge's identity and the pin of the party's, for TLS.
    pub secured: Option<(Identity, Peer)>,
}

/// An event that a [`Bridge`] reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// A browser was refused, or the native party was not there.
    Refused(Refusal),
    /// A browser is connected to the native party.
    Met {
        /// Where it connects from.
        address: SocketAddr,
        /// The fingerprint of its token, if it has shown one.
        token: Option<Fingerprint>,
    },
    /// A connection has ended.
    Ended {
        /// Where the browser connected from.
        address: SocketAddr,
        /// The fingerprint of its token.
        token: Option<Fingerprint>,
        /// Bytes from the browser, and from the native party.
        bytes: [u64; 2],
        /// How long they were connected.
        lasted: Duration,
        /// Why it ended, if neither side ended it.
        reason: Option<Error>,
    },
}

/// A listening bridge.
pub struct Bridge {
    listener: tcp::Listener,
    settings: Settings,
    target: Target,
}

impl Bridge {
    /// Listens on `address`; port 0 lets the system choose one. Without a certificate in `settings`
    /// it must be on the loopback interface.
    ///
    /// # Errors
    /// [`Error::NotLoopback`]; [`Error::Io`] if the address is not usable.
    pub fn bind(address: impl ToSocketAddrs, settings: Settings, target: Target) -> Result<Self> {
        let listener = match &settings.certificate {
            None => tcp::Listener::bind(address)?,
            Some(_) => tcp::Listener::bind_anywhere(address)?,
        };
        Ok(Self { listener, settings, target })
    }

    /// All addresses listened on, with commas between them.
    pub fn addresses(&self) -> String {
        self.listener.addresses()
    }

    /// Serves browsers until `stop`, then closes all connections. Each gets a connection of its own
    /// to the native party. `events` is called on the threads of the browsers, several at a time.
    pub fn serve(self, limits: Limits, stop: &Cancel, events: &(dyn Fn(Event) + Sync)) {
        let Self { listener, settings, target } = self;
        let limit = limits.idle.min(HANDSHAKE_TIMEOUT);
        let accepting = Acceptor {
            bounds: Bounds {
                connections: limits.connections,
                patience: limits.idle,
                grace: Duration::ZERO,
            },
            shake: &|stream| shake(stream, &settings, limit),
            serve: &|visitor: Visitor, address, closed: &Cancel, _| {
                let patience = Patience {
                    wait: limits.wait,
                    timeout: limits.idle,
                    cancel: closed.clone(),
                    queue: QUEUE,
                };
                serve_one(&visitor, address, &target, &patience, events);
            },
            who: &|visitor| visitor.token,
            full: &|visitor| {
                let what = "there are too many connections: try again later";
                visitor.socket.close(code::FULL, what);
            },
            refused: &|refusal| events(Event::Refused(refusal)),
            turned: &|| (),
        };
        accepting.run(listener, stop);
    }
}

fn reach(target: &Target, patience: &Patience) -> Result<Box<dyn Transport>> {
    let address = &*target.address;
    match &target.secured {
        None => {
            // mutant(web-loopback): `false` => `true`
            let stream = Stream::meet(&address, patience, false, |stream, _| Ok(stream))?;
            Ok(Box::new(stream))
        }
        Some((identity, peer)) => {
            let shake = |stream, limit: Duration| {
                initiate(stream, identity, peer, limit.min(HANDSHAKE_TIMEOUT))
            };
            Ok(Box::new(Stream::meet(&address, patience, true, shake)?))
        }
    }
}

fn serve_one(
    visitor: &Visitor,
    address: SocketAddr,
    target: &Target,
    patience: &Patience,
    events: &(dyn Fn(Event) + Sync),
) {
    let Visitor { socket, token } = visitor;
    let native = match reach(target, patience) {
        Ok(native) => native,
        Err(error) => {
            let what = "the other party is not there: ask it to start, then try again";
            socket.close(code::NOT_THERE, what);
            return events(Event::Refused(Refusal { address, error }));
        }
    };
    let token = *token;
    events(Event::Met { address, token });
    let pair = Pair {
        socket,
        native: &*native,
        idle: patience.timeout,
        start: Instant::now(),
        bytes: Default::default(),
        moved: AtomicU64::new(0),
        end: OnceLock::new(),
    };
    pair.pass_on();
    let Pair { start, bytes, end, .. } = pair;
    let lasted = start.elapsed();
    // The native party finds the end of the stream behind the last byte.
    drop(native);
    events(Event::Ended {
        address,
        token,
        bytes: bytes.map(AtomicU64::into_inner),
        lasted,
        reason: end.into_inner().flatten(),
    });
}

/// A browser and a connection to the native party.
struct Pair<'a> {
    socket: &'a WebSocket,
    native: &'a dyn Transport,
    idle: Duration,
    start: Instant,
    /// From the browser, and from the native party.
    bytes: [AtomicU64; 2],
    /// When a byte moved last, in milliseconds from the start on.
    moved: AtomicU64,
    /// Set when a direction has ended, with the reason if neither side ended the stream. The other
    /// direction then ends, too.
    end: OnceLock<Option<Error>>,
}

impl Pair<'_> {
    /// Passes on bytes in both directions until one of them ends.
    fn pass_on(&self) {
        thread::scope(|scope| {
            let spawned = thread::Builder::new()
                .name("volery bridge".into())
                .spawn_scoped(scope, || self.copy(0, self.socket, self.native));
            match spawned {
                Ok(_) => self.copy(1, self.native, self.socket),
                // no mutant: the system has no thread: the connection ends
                Err(error) => self.finish(Err(error), false),
            }
        });
    }

    /// Passes on what comes from a side, 0 for the browser and 1 for the native party, until it
    /// ends, the other direction ends, or no byte has moved for too long.
    fn copy(&self, from: usize, source: &dyn Transport, target: &dyn Transport) {
        let tick = (self.idle / 4).clamp(OFTEN, SELDOM);
        let goes_on = || self.end.get().is_none() && !self.is_idle();
        let mut buffer = vec![0; BUFFER];
        // no mutant: an error of a connection ends it
        while self.end.get().is_none() {
            let count = match source.read(&mut buffer, Some(tick)) {
                Ok(0) => return self.finish(Ok(()), from == 1),
                Ok(count) => count,
                Err(error) if is_timeout(error.kind()) && goes_on() => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return self.finish(Err(error), from == 1),
            };
            self.note_progress();
            match target.write_while(&buffer[..count], Some(tick), &goes_on) {
                Ok(()) => {
                    self.bytes[from].fetch_add(count as u64, Ordering::Relaxed);
                    self.note_progress();
                }
                Err(error) => return self.finish(Err(error), from == 0),
            }
        }
    }

    /// A direction has ended, by the native party or by the browser. The first to end tells the
    /// browser.
    fn finish(&self, ended: io::Result<()>, by_native: bool) {
        let timed_out = ended.as_ref().is_err_and(|error| is_timeout(error.kind()));
        let is_error = ended.is_err();
        let reason = ended.err().map(|error| match timed_out {
            true => Error::TimedOut(format!("no byte passed for {:?}", self.idle)),
            false => error.into(),
        });
        if self.end.set(reason).is_err() {
            return;
        }
        match (timed_out, is_error, by_native) {
            (true, ..) => self.socket.close(code::SILENT, "nothing came for too long: start again"),
            (_, true, true) => {
                let what = "the connection to the other party broke: see its own error message";
                self.socket.close(code::BROKEN, what);
            }
            (_, false, true) => self.socket.close(code::END, ""),
            // The browser has closed, is gone, or was told.
            (.., false) => {}
        }
    }

    fn note_progress(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    fn is_idle(&self) -> bool {
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        // mutant(web-idle, 60 s): insert `!$ON &&`
        self.start.elapsed().saturating_sub(moved) >= self.idle
    }
}
