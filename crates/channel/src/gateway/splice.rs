//! Two clients that are connected to each other.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use volery_os::net::Socket;
use volery_os::time::{Duration, Instant};

use super::{Client, Event};
use crate::Role;
use crate::pipe::is_timeout;

/// Bytes read at a time.
const BUFFER: usize = 128 << 10;

/// The longest and the shortest time between two looks at the idle time.
const SELDOM: Duration = Duration::from_secs(5);
const OFTEN: Duration = Duration::from_millis(10);

/// The connection of a sender and that of a receiver. The thread of each passes on the bytes of its
/// own client.
pub(super) struct Pair {
    sockets: [Arc<Socket>; 2],
    clients: [Client; 2],
    start: Instant,
    bytes: [AtomicU64; 2],
    /// When a byte moved last, in milliseconds from the start on.
    moved: AtomicU64,
    /// Directions that have not ended.
    open: AtomicUsize,
}

/// The place of a side in the arrays.
fn place(side: Role) -> usize {
    match side {
        Role::Sender => 0,
        Role::Receiver => 1,
    }
}

impl Pair {
    /// Two clients of different sides, with their connections.
    pub(super) fn new(mut both: [(&Arc<Socket>, Client); 2]) -> Self {
        both.sort_by_key(|(_, client)| place(client.ticket.side));
        Self {
            sockets: both.map(|(socket, _)| Arc::clone(socket)),
            clients: both.map(|(_, client)| client),
            start: Instant::now(),
            bytes: Default::default(),
            moved: AtomicU64::new(0),
            open: AtomicUsize::new(2),
        }
    }

    pub(super) fn met(&self) -> Event {
        let [sender, receiver] = self.clients;
        Event::Met { sender, receiver }
    }

    pub(super) fn close(&self) {
        for socket in &self.sockets {
            // It may be closed already.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    /// Passes on what comes from `side` until it ends, or no byte has moved in either direction for
    /// `idle`. The second direction to end returns what became of the pair.
    pub(super) fn pass_on(&self, side: Role, idle: Duration) -> Option<Event> {
        match self.copy(place(side), idle) {
            // The other direction goes on.
            Ok(()) => {
                let _ = self.sockets[place(side.other())].shutdown(Shutdown::Write);
            }
            Err(_) => self.close(),
        }
        if self.open.fetch_sub(1, Ordering::AcqRel) == 2 {
            return None;
        }
        let [sender, receiver] = self.clients;
        Some(Event::Ended {
            sender,
            receiver,
            bytes: [0, 1].map(|place| self.bytes[place].load(Ordering::Relaxed)),
            lasted: self.start.elapsed(),
        })
    }

    fn copy(&self, from: usize, idle: Duration) -> io::Result<()> {
        let (mut source, mut target) = (&*self.sockets[from], &*self.sockets[1 - from]);
        let tick = (idle / 4).clamp(OFTEN, SELDOM);
        source.set_read_timeout(Some(tick))?;
        target.set_write_timeout(Some(tick))?;
        let mut buffer = vec![0; BUFFER];
        loop {
            let count = match source.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) => count,
                Err(error) => {
                    self.go_on(error, idle)?;
                    continue;
                }
            };
            self.note_progress();
            let mut rest = &buffer[..count];
            while !rest.is_empty() {
                match target.write(rest) {
                    Ok(count) => {
                        rest = &rest[count..];
                        self.bytes[from].fetch_add(count as u64, Ordering::Relaxed);
                        self.note_progress();
                    }
                    Err(error) => self.go_on(error, idle)?,
                }
            }
        }
    }

    fn note_progress(&self) {
        let now = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved.store(now, Ordering::Relaxed);
    }

    /// Fails with an error that ends the direction.
    fn go_on(&self, error: io::Error, idle: Duration) -> io::Result<()> {
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok(());
        }
        let moved = Duration::from_millis(self.moved.load(Ordering::Relaxed));
        // mutant(gateway-idle): `idle` => `idle && !$ON`
        let is_idle = self.start.elapsed().saturating_sub(moved) >= idle;
        match is_timeout(error.kind()) && !is_idle {
            true => Ok(()),
            false => Err(error),
        }
    }
}
