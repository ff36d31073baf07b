//! The gateway itself.

use std::io::{self, Read, Write as _};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs};

use socket2::TcpKeepalive;
use volery_os::net::Socket;
use volery_os::sync::{Arc, Mutex};
use volery_os::thread::{self, ScopeRef};
use volery_os::time::{Duration, Instant, wall_clock};
use volery_primitives::prg::Prg;

use super::table::{Connection, Table, WaitOutcome, tell};
use super::{CHALLENGE, Client, Event, HEARTBEAT, Limits, MAGIC, Reason, SILENCE, ticket};
use crate::pipe::{is_timeout, lock};
use crate::tcp::{Sockets, resolve, system};
use crate::tls::Fingerprint;
use crate::{Cancel, Error, Result};

/// The longest time between two looks for a new client.
const PAUSE: Duration = Duration::from_millis(10);

/// The pause where the system has no file descriptor or memory for another client.
const SHORTAGE: Duration = Duration::from_millis(100);

/// Idle time before keep-alive probes start.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A listening gateway.
#[derive(Debug)]
pub struct Gateway {
    sockets: Sockets,
    limits: Limits,
    allowed: Vec<Fingerprint>,
}

impl Gateway {
    /// Listens on `address`, any one; port 0 lets the system choose one. Only the organisations in
    /// `allowed` may meet here.
    ///
    /// # Errors
    /// [`Error::Io`] if the address is not usable.
    pub fn bind(
        address: impl ToSocketAddrs,
        limits: Limits,
        allowed: Vec<Fingerprint>,
    ) -> Result<Self> {
        let sockets = Sockets::bind(&resolve(&address)?).map_err(Error::Io)?;
        Ok(Self { sockets, limits, allowed })
    }

    /// All addresses listened on, with commas between them.
    pub fn addresses(&self) -> String {
        self.sockets.addresses()
    }

    /// Serves clients until `cancel`, then closes all connections. Attempts are remembered for the
    /// time of one call.
    ///
    /// `events` is called on the threads of the clients, several at a time, and must not block.
    ///
    /// # Errors
    /// [`Error::Io`] if the listening socket fails. Clients cause none.
    pub fn serve(&self, cancel: &Cancel, events: &(dyn Fn(Event) + Sync)) -> Result<()> {
        let service = Service { gateway: self, table: Mutex::new(Table::new(self.limits)), events };
        thread::scope(|scope| {
            let ended = service.accept(scope, cancel);
            lock(&service.table).close();
            ended
        })
    }
}

/// One call of [`Gateway::serve`].
struct Service<'a> {
    gateway: &'a Gateway,
    table: Mutex<Table>,
    events: &'a (dyn Fn(Event) + Sync),
}

impl Service<'_> {
    fn accept<'scope>(&'scope self, scope: ScopeRef<'scope, '_>, cancel: &Cancel) -> Result<()> {
        let mut pause = Duration::from_micros(50);
        loop {
            let next = match self.gateway.sockets.accept() {
                Ok(Some((socket, address))) => {
                    self.begin(scope, Arc::new(socket), address);
                    pause = Duration::from_micros(50);
                    Duration::ZERO
                }
                Ok(None) => {
                    pause = (pause * 2).min(PAUSE);
                    pause
                }
                Err(error) if is_shortage(&error) => SHORTAGE,
                Err(error) => return Err(Error::Io(error)),
            };
            if cancel.sleep(next).is_err() {
                return Ok(());
            }
        }
    }

    /// A thread for a client. Without one the connection is dropped; the client comes again.
    fn begin<'scope>(
        &'scope self,
        scope: ScopeRef<'scope, '_>,
        socket: Arc<Socket>,
        address: SocketAddr,
    ) {
        let number = lock(&self.table).come(&socket);
        let spawned = thread::Builder::new()
            .name("volery gateway".into())
            .spawn_scoped(scope, move || self.serve_one(number, socket, address));
        if spawned.is_err() {
            lock(&self.table).forget(number);
        }
    }

    fn serve_one(&self, number: u64, socket: Arc<Socket>, address: SocketAddr) {
        let verified = self.verify(&socket, address);
        let mut table = lock(&self.table);
        table.forget(number);
        let admitted = verified.and_then(|client| {
            let connection = Connection::new(Arc::clone(&socket), client);
            let met = table.admit(&connection)?;
            Ok((connection, met))
        });
        drop(table);
        let (connection, met) = match admitted {
            Ok(admitted) => admitted,
            Err(reason) => {
                tell(&socket, reason.code());
                return (self.events)(Event::Refused { address, reason });
            }
        };
        let client = connection.client;
        let pair = match met {
            Some(pair) => {
                (self.events)(pair.met());
                WaitOutcome::Met(pair)
            }
            None => {
                (self.events)(Event::Waiting(client));
                self.wait(&connection)
            }
        };
        let event = match pair {
            WaitOutcome::Met(pair) => {
                set_user_timeout(&socket, None);
                pair.pass_on(client.ticket.side, self.gateway.limits.idle)
            }
            WaitOutcome::Left(reason) => Some(Event::Left { client, reason }),
            WaitOutcome::Waits => None,
        };
        lock(&self.table).leave(&connection);
        if let Some(event) = event {
            (self.events)(event);
        }
    }

    /// Sends the challenge, and reads and checks the ticket.
    fn verify(&self, socket: &Socket, address: SocketAddr) -> std::result::Result<Client, Reason> {
        let Limits { ticket: limit, .. } = self.gateway.limits;
        let mut challenge = [0; CHALLENGE];
        let presented = (|| {
            Prg::from_os()?.fill_bytes(&mut challenge);
            socket.set_nonblocking(false)?;
            socket.set_tcp_nodelay(true)?;
            let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
            socket.set_tcp_keepalive(&keepalive)?;
            set_user_timeout(socket, Some(SILENCE));
            let mut source = TimedSocket { socket, start: Instant::now(), limit };
            (&mut &*socket).write_all(&[&MAGIC[..], &challenge].concat())?;
            ticket::read(&mut source)
        })();
        let presented = match presented {
            // no mutant: an error that is passed on
            Ok(presented) => presented.ok_or(Reason::Malformed)?,
            Err(error) if is_timeout(error.kind()) => return Err(Reason::Slow),
            // no mutant: the client has closed the connection
            Err(_) => return Err(Reason::Malformed),
        };
        let allowed = &self.gateway.allowed;
        let organisation = presented.check(&challenge, allowed, wall_clock())?;
        Ok(Client { address, organisation, peer: presented.peer, ticket: presented.ticket })
    }

    /// Until the peer comes. A client that waits says nothing; its first byte after the meeting
    /// stays in the socket.
    fn wait(&self, connection: &Arc<Connection>) -> WaitOutcome {
        let (socket, start) = (&*connection.socket, Instant::now());
        let longest = self.gateway.limits.wait;
        loop {
            let left = longest.saturating_sub(start.elapsed());
            let pause = HEARTBEAT.min(left).max(Duration::from_millis(1));
            let heard = socket.set_read_timeout(Some(pause));
            let heard = heard.and_then(|()| socket.peek(&mut [MaybeUninit::uninit()]));
            let over = match heard {
                Ok(0) => Some(None),
                // mutant(gateway-early): `Some(Some(Reason::Malformed))` => `None`
                Ok(_) => Some(Some(Reason::Malformed)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if !is_timeout(error.kind()) => Some(None),
                // mutant(gateway-longest-wait): `start.elapsed() >= longest` => `false`
                Err(_) if start.elapsed() >= longest => Some(Some(Reason::Alone)),
                Err(_) => None,
            };
            match lock(&self.table).look(connection, over) {
                WaitOutcome::Waits => {}
                fate => return fate,
            }
        }
    }
}

/// A socket that is read until a time limit.
struct TimedSocket<'a> {
    socket: &'a Socket,
    start: Instant,
    limit: Duration,
}

impl Read for TimedSocket<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // mutant(gateway-drip): `self.limit.saturating_sub(self.start.elapsed())` => `self.limit`
        let left = self.limit.saturating_sub(self.start.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.socket.set_read_timeout(Some(left))?;
        (&mut &*self.socket).read(bytes)
    }
}

/// How long a client that waits may leave bytes unacknowledged. Not for one that is connected to
/// its peer: it may be busy.
fn set_user_timeout(socket: &Socket, timeout: Option<Duration>) {
    // Without it the system gives up later.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = socket.set_tcp_user_timeout(timeout);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = (socket, timeout);
}

/// Whether an error of `accept` goes away when other connections end.
fn is_shortage(error: &io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| system::SHORTAGE.contains(&code))
}
