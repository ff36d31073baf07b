//! Two worlds: a peer, honest or not, runs against two inputs of the honest party that it must not
//! tell apart, and observes the same.
//!
//! A [`Scenario`] is a whole run: all connections of it, in their order, up to the end of the
//! honest party, with its worlds. In each world [`Scenario::view`] records what reaches the peer,
//! or could: the [`Event`]s of the honest party's side of the network. A deviating peer is honest
//! code with one message changed ([`Deviation`]): by a fault of the list, or by an edit that is
//! written for the protocol.
//!
//! With the same seeds in all worlds, the *shape* of two views is the same: order and lengths of
//! writes, bytes taken before each, connections opened and closed. So is the *work* between two
//! messages, counted in items touched, and where asked for the *bytes* of each write. Any
//! difference is one that a test lists with its reason.

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;
use volery_channel::memory::{self, Memory};
use volery_channel::{Channel, Transport};
use volery_os::thread::{self, carried};
use volery_os::time::Duration;
use volery_os::world::{self, World};
use volery_primitives::Block;
use volery_primitives::prg::seeded;
use volery_psi::{Phase, Watch};
use volery_testing::fault::{Edit, Fault, FaultKind, FaultyTransport, Lengths};
use volery_testing::{changes, silences};

/// An act of an honest party on the network, or between its messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// It takes part in a further connection.
    Opened,
    /// It hands bytes to the network: their number and hash.
    Sent(usize, [u8; 32]),
    /// It takes bytes from the network.
    Took(usize),
    /// It touches items, as many as its input says.
    Touched(u64),
    /// It closes the connection.
    Closed,
}

/// All events of one honest party in a run.
pub(crate) type View = Vec<Event>;

/// A difference between the views of two worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Difference {
    /// Order, lengths, or connections.
    Shape,
    /// Items touched before a further message.
    Work,
    /// Items touched after the last message, before the connection is closed.
    LastWork,
    /// The bytes of the write of this number.
    Bytes(usize),
}

/// Runs a party on one thread, with a seed in place of the system's randomness: the tasks of these
/// small runs are not worth handing over.
fn alone<T: Send>(seed: u128, party: impl FnOnce() -> T + Send) -> T {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build();
    let seeded = || seeded::run(Block::new(seed), party);
    pool.expect("a thread").install(carried(seeded))
}

/// A view without bytes and work.
fn shape(view: &[Event]) -> View {
    let shape = Log::default();
    for event in view {
        match event {
            Event::Touched(_) => {}
            Event::Sent(bytes, _) => shape.add(Event::Sent(*bytes, [0; 32])),
            other => shape.add(other.clone()),
        }
    }
    shape.take()
}

/// The differences between two views: of views with different shapes nothing else is compared.
pub(crate) fn differences(one: &[Event], other: &[Event]) -> BTreeSet<Difference> {
    if shape(one) != shape(other) {
        return [Difference::Shape].into();
    }
    let sent = |view: &[Event]| -> Vec<[u8; 32]> {
        let hashes = view.iter().filter_map(|event| match event {
            Event::Sent(_, hash) => Some(*hash),
            _ => None,
        });
        hashes.collect()
    };
    let mut found = BTreeSet::new();
    for (number, (one, other)) in sent(one).iter().zip(sent(other)).enumerate() {
        if *one != other {
            found.insert(Difference::Bytes(number));
        }
    }
    // Work before each write, and that before each close.
    let work = |view: &[Event]| -> [Vec<u64>; 2] {
        let (mut before, mut all) = (0, [Vec::new(), Vec::new()]);
        for event in view {
            match event {
                Event::Touched(items) => before += items,
                Event::Sent(..) => all[0].push(std::mem::take(&mut before)),
                Event::Closed => all[1].push(std::mem::take(&mut before)),
                Event::Opened | Event::Took(_) => {}
            }
        }
        all
    };
    let (one, other) = (work(one), work(other));
    for (kind, number) in [(Difference::Work, 0), (Difference::LastWork, 1)] {
        if one[number] != other[number] {
            found.insert(kind);
        }
    }
    found
}

/// A record of events.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<View>>);

impl Log {
    fn lock(&self) -> MutexGuard<'_, View> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> View {
        std::mem::take(&mut self.lock())
    }

    fn add(&self, event: Event) {
        let mut view = self.lock();
        match (view.last_mut(), event) {
            (Some(Event::Took(before)), Event::Took(bytes)) => *before += bytes,
            (_, event) => view.push(event),
        }
    }
}

/// How long a party waits for the other one: no real time, as all runs are in a simulated world.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The transport of an honest party. It reads as many bytes as are asked for and none ahead, and
/// takes bytes for a peer that has left, as a network does for a while, so that the order of events
/// is that of the protocol and not of the clock.
struct ObservingTransport {
    inner: Memory,
    log: Log,
}

impl Transport for ObservingTransport {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let hash = blake3::hash(bytes).into();
        self.log.add(Event::Sent(bytes.len(), hash));
        match self.inner.write(bytes, timeout) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        let mut read = 0;
        while read < bytes.len() {
            match self.inner.read(&mut bytes[read..], timeout)? {
                0 => break,
                more => {
                    read += more;
                    self.log.add(Event::Took(more));
                }
            }
        }
        Ok(read)
    }

    fn reads_ahead(&self) -> bool {
        false
    }
}

impl Drop for ObservingTransport {
    fn drop(&mut self) {
        self.log.add(Event::Closed);
    }
}

/// The work of an honest party: it is given to each call that takes a watch.
#[derive(Clone, Default)]
pub(crate) struct Work(Log);

impl Watch for Work {
    fn begin(&mut self, _: Phase, _: u64) {}

    fn done(&mut self, _: u64) {}

    fn touched(&mut self, items: u64) {
        if items > 0 {
            self.0.add(Event::Touched(items));
        }
    }
}

impl volery_matching::Progress for Work {
    fn begin(&mut self, _: &'static str, _: u64) {}

    fn done(&mut self, _: u64) {}

    fn touched(&mut self, items: u64) {
        Watch::touched(self, items);
    }
}

/// The network of one party: its ends of all connections, in their order.
pub(crate) struct Network {
    ends: VecDeque<Memory>,
    wrap: Wrap,
    number: usize,
}

enum Wrap {
    Honest(Work),
    Peer(Option<Deviation>, Vec<Lengths>),
}

impl Network {
    /// The next connection.
    ///
    /// # Panics
    /// If the scenario has no more of them.
    pub(crate) fn connect(&mut self) -> Channel {
        let inner = self.ends.pop_front().expect("a connection of the scenario");
        let number = self.number;
        self.number += 1;
        match &mut self.wrap {
            Wrap::Honest(work) => {
                let log = work.0.clone();
                log.add(Event::Opened);
                Channel::with_timeout(ObservingTransport { inner, log }, Some(TIMEOUT))
            }
            Wrap::Peer(deviation, lengths) => {
                let chosen = deviation.as_ref().filter(|of| of.connection == number);
                let transport = match chosen.map(|of| (of.message, &of.act)) {
                    None => {
                        let (transport, of_it) = FaultyTransport::watched(inner);
                        lengths.push(of_it);
                        transport
                    }
                    Some((message, Act::Fault(kind))) => {
                        let kind = *kind;
                        FaultyTransport::new(inner, Fault { message, kind })
                    }
                    Some((message, Act::Edit(_, edit))) => {
                        FaultyTransport::edited(inner, message, Arc::clone(edit))
                    }
                };
                Channel::with_timeout(transport, Some(TIMEOUT))
            }
        }
    }

    /// The watch of the honest party.
    ///
    /// # Panics
    /// If this is the peer's network.
    pub(crate) fn work(&self) -> Work {
        match &self.wrap {
            Wrap::Honest(work) => work.clone(),
            Wrap::Peer(..) => panic!("the peer's work is not watched"),
        }
    }
}

/// One message of the peer, and its change.
#[derive(Clone)]
pub(crate) struct Deviation {
    /// The connection, counted from 0.
    pub(crate) connection: usize,
    /// The message among those that the peer sends there.
    pub(crate) message: u64,
    /// The change.
    pub(crate) act: Act,
}

/// A change of a message.
#[derive(Clone)]
pub(crate) enum Act {
    /// A fault of the list for all protocols.
    Fault(FaultKind),
    /// A change that is written for the protocol, with its name.
    Edit(String, Edit),
}

impl std::fmt::Debug for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "message {} of connection {}: ", self.message, self.connection)?;
        match &self.act {
            Act::Fault(kind) => write!(f, "{kind:?}"),
            Act::Edit(name, _) => f.write_str(name),
        }
    }
}

/// An honest party, given the number of the world.
pub(crate) type Honest = Box<dyn Fn(usize, &mut Network) + Send + Sync>;
/// A party that is the same in all worlds.
pub(crate) type Peer = Box<dyn Fn(&mut Network) + Send + Sync>;

/// A change that is written for a protocol.
#[derive(Clone)]
pub(crate) struct EditOf {
    pub(crate) name: String,
    /// Whether it changes a message of this length.
    pub(crate) of: fn(usize) -> bool,
    /// The change.
    pub(crate) edit: Edit,
}

/// A whole run of an honest party in several worlds, and of its peer.
pub(crate) struct Scenario {
    /// Its name: protocol, kind of run and honest party.
    pub(crate) name: String,
    /// The honest party's input in each world, in words.
    pub(crate) worlds: Vec<&'static str>,
    /// Connections of the run, at most.
    pub(crate) connections: usize,
    /// Whether the bytes of writes are compared.
    pub(crate) bytes: bool,
    /// Whether the protocol withstands a peer that deviates.
    pub(crate) malicious: bool,
    /// Changes that are written for the protocol.
    pub(crate) edits: Vec<EditOf>,
    /// The honest party in a world, up to its end.
    pub(crate) honest: Honest,
    /// Its peer, which follows the protocol.
    pub(crate) peer: Peer,
}

impl Scenario {
    /// A run without edits, over one connection.
    pub(crate) fn new(
        name: impl Into<String>,
        malicious: bool,
        worlds: &[&'static str],
        honest: impl Fn(usize, &mut Network) + Send + Sync + 'static,
        peer: impl Fn(&mut Network) + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            worlds: worlds.to_vec(),
            connections: 1,
            bytes: false,
            malicious,
            edits: Vec::new(),
            honest: Box::new(honest),
            peer: Box::new(peer),
        }
    }

    /// The peer's view of the run in a world, with the coins of this number, and the lengths of the
    /// messages that it sent over each connection. Either party may fail.
    ///
    /// # Panics
    /// If a party panics.
    pub(crate) fn view(
        &self,
        world: usize,
        deviation: Option<&Deviation>,
        coins: u128,
    ) -> (View, Vec<Vec<usize>>) {
        static ROOT: LazyLock<TempDir> = LazyLock::new(|| tempfile::tempdir().expect("a folder"));
        let play = |_: &World| self.play(world, deviation, coins);
        world::run(ROOT.path(), coins as u64, &[], play).result.expect("no party panics")
    }

    /// A run, in a simulated world.
    fn play(
        &self,
        world: usize,
        deviation: Option<&Deviation>,
        coins: u128,
    ) -> (View, Vec<Vec<usize>>) {
        let pairs = (0..self.connections).map(|_| memory::pair());
        let (ours, theirs): (VecDeque<_>, VecDeque<_>) = pairs.unzip();
        let work = Work::default();
        let mut honest = Network { ends: ours, wrap: Wrap::Honest(work.clone()), number: 0 };
        let mut peer =
            Network { ends: theirs, wrap: Wrap::Peer(deviation.cloned(), Vec::new()), number: 0 };
        let lengths = thread::scope(|scope| {
            // The party that ends first drops the connections that it has not used.
            scope.spawn(move || alone(2 * coins, move || (self.honest)(world, &mut honest)));
            let peer = scope.spawn(move || {
                alone(2 * coins + 1, move || {
                    (self.peer)(&mut peer);
                    match peer.wrap {
                        Wrap::Peer(_, lengths) => lengths,
                        Wrap::Honest(_) => Vec::new(),
                    }
                })
            });
            peer.join().expect("the peer does not panic")
        });
        let lengths = lengths.iter().map(|of| {
            let of = of.lock().unwrap_or_else(PoisonError::into_inner);
            of.clone()
        });
        (work.0.take(), lengths.collect())
    }

    /// All deviations of the peer: each fault and each edit of this scenario, on each message.
    ///
    /// # Panics
    /// If an edit changes no message.
    pub(crate) fn deviations(&self) -> Vec<Deviation> {
        let (_, lengths) = self.view(0, None, 0);
        let changed = |edit: &EditOf| lengths.iter().flatten().any(|length| (edit.of)(*length));
        assert!(self.edits.iter().all(changed), "{}: an edit of nothing", self.name);
        let mut all = Vec::new();
        for (connection, lengths) in lengths.iter().enumerate() {
            for (message, &length) in (0..).zip(lengths) {
                let faults = changes(length).into_iter().chain(silences(length));
                let faults = faults.map(Act::Fault);
                let edits = self.edits.iter().filter(|edit| (edit.of)(length));
                let edits = edits.map(|of| Act::Edit(of.name.clone(), Arc::clone(&of.edit)));
                all.extend(faults.chain(edits).map(|act| Deviation { connection, message, act }));
            }
        }
        all
    }

    /// Whether the shapes of views tell a world from the first one, over many coins: whether one
    /// shape is more frequent by half of all runs in one of the two. Where both have one
    /// distribution, counts of 32 differ by 16 with probability below 2^-13, and a test repeats.
    fn tells_apart(&self, world: usize, deviation: Option<&Deviation>) -> bool {
        const COINS: u128 = 32;
        let mut counts: Vec<(View, i32)> = Vec::new();
        for coins in 1..=COINS {
            for (world, step) in [(0, 1), (world, -1)] {
                let shape = shape(&self.view(world, deviation, coins).0);
                match counts.iter_mut().find(|(seen, _)| *seen == shape) {
                    Some((_, count)) => *count += step,
                    None => counts.push((shape, step)),
                }
            }
        }
        counts.iter().any(|(_, count)| count.abs() >= COINS as i32 / 2)
    }

    /// The differences between the first world and each other one.
    pub(crate) fn compare(&self, deviation: Option<&Deviation>) -> BTreeSet<Difference> {
        let views = (0..self.worlds.len()).map(|world| self.view(world, deviation, 0).0);
        let views: Vec<_> = views.collect();
        let mut found = BTreeSet::new();
        for (world, view) in (1..).zip(&views[1..]) {
            let mut differ = differences(&views[0], view);
            // Bytes of a changed message may be of a group or not, in any world: the coins decide.
            // Without a change the shape is the same for each coin, as the peer knows some of them,
            // such as the seed by which items go to buckets.
            if differ == [Difference::Shape].into()
                && deviation.is_some()
                && !self.tells_apart(world, deviation)
            {
                differ.clear();
            }
            found.append(&mut differ);
        }
        if !self.bytes {
            found.retain(|one| !matches!(one, Difference::Bytes(_)));
        }
        found
    }
}
