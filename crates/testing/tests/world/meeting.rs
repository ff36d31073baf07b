//! Workers of two organisations meet at a gateway, and start again when they fail.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use volery_channel::gateway::{Client, Event, Gateway, Limits, Reason, Ticket, meet};
use volery_channel::tls::{Identity, Patience, Peer};
use volery_channel::{Cancel, Error, Result, Role};
use volery_os::thread;
use volery_os::time::{Duration, Instant, wall_clock};
use volery_os::world::{Exit, Program, World};

use super::{Dice, Scenario, cut, kill, power_loss, silence, stall};

/// The programs of the workers.
const NAMES: [&str; 2] = ["sender", "receiver"];

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "meeting",
    programs: &["gateway", "gateway", NAMES[0], NAMES[1]],
    calls: 500,
    faults: &[kill, kill, power_loss, cut, cut, silence, stall],
    play,
};

const HOUR: Duration = Duration::from_secs(3600);

/// After this time no fault lasts: the longest one, and what systems and gateways take to notice.
const AFTERMATH: Duration = Duration::from_secs(700);

/// The attempts of a worker after which no fault strikes, and the attempts after the aftermath.
const DISTURBED: u64 = 6;
const MOST: u64 = 4;

/// What all attempts have in common.
struct Run {
    organisations: [Identity; 2],
    gateway: SocketAddr,
    patience: Patience,
    /// Messages of each side, and the bytes of each.
    messages: u64,
    length: usize,
    /// The side that pauses in the middle.
    pauses: Option<(Role, Duration)>,
    /// Who met whom, as each attempt heard it from its peer.
    heard: Mutex<HashMap<Ticket, Ticket>>,
}

fn lock<T>(shared: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message of a dialogue, every byte of which follows from who sends it.
fn message(from: &Ticket, number: u64, length: usize) -> Vec<u8> {
    let worker = from.worker.unwrap_or(u32::MAX).to_le_bytes();
    let (attempt, number) = (from.attempt.to_le_bytes(), number.to_le_bytes());
    let name = [&attempt[..], &from.run, &worker, &[from.side as u8], &number].concat();
    name.into_iter().cycle().take(length).collect()
}

/// An attempt of a worker: meets its peer, and exchanges messages and a last confirmation with it.
fn attempt(run: &Run, own: Ticket) -> Result<()> {
    let (now, name) = (wall_clock(), own.name());
    let [ours, theirs] = own.side.sides(run.organisations.each_ref());
    let leaf = ours.issue(&name, now - HOUR..now + 24 * HOUR)?;
    let peer = Peer::of_run(theirs.fingerprint(), name);
    let mut channel = meet(run.gateway, &own, &leaf, &peer, run.patience.clone())?;
    let mut peer = Ticket { side: own.side.other(), ..own };
    let mut incoming = vec![0; run.length];
    for number in 0..run.messages {
        channel.send(&message(&own, number, run.length))?;
        channel.recv(&mut incoming)?;
        if number == 0 {
            let attempt = incoming.first_chunk().expect("a message is longer");
            peer.attempt = u64::from_le_bytes(*attempt);
        }
        let is_right = incoming == message(&peer, number, run.length);
        assert!(is_right, "message {number} to {own:?} is not from {peer:?}");
        if number == 0 {
            let before = lock(&run.heard).insert(own, peer);
            assert_eq!(before, None, "{own:?} meets twice");
        }
        match run.pauses {
            Some((side, time)) if side == own.side && number == run.messages / 2 => {
                channel.flush()?;
                thread::sleep(time);
            }
            _ => {}
        }
    }
    channel.send(&message(&peer, run.messages, run.length))?;
    channel.recv(&mut incoming)?;
    assert!(incoming == message(&own, run.messages, run.length), "{peer:?} met not {own:?}");
    Ok(())
}

/// Checks an error of an attempt: only the network and the gateway may cause one.
fn check_error(own: &Ticket, error: &Error, newest: u64) {
    let is = |why: &str, reason: Reason| why == reason.to_string();
    match error {
        Error::Disconnected | Error::TimedOut(_) | Error::Absent(_) => {}
        Error::Unavailable(why) if is(why, Reason::Newer) => {
            assert!(own.attempt < newest, "{own:?} is the newest: {why}");
        }
        Error::Unavailable(why) => {
            let reasons = [Reason::Full, Reason::Alone, Reason::Slow, Reason::Used];
            assert!(reasons.into_iter().any(|one| is(why, one)), "{own:?}: {why}");
        }
        other => panic!("{own:?}: {other}"),
    }
}

/// What the gateways told.
#[derive(Default)]
struct Told {
    /// For each start of the gateway.
    events: Vec<Arc<Mutex<Vec<Event>>>>,
    /// Senders and receivers that met.
    met: HashSet<[Ticket; 2]>,
}

impl Told {
    /// Checks the events of each gateway; returns the waiting clients and the pairs of the last.
    fn check(&mut self) -> (usize, usize) {
        let mut left = (0, 0);
        for events in &self.events {
            let (mut waiting, mut open) = (HashSet::new(), HashSet::new());
            let (mut newest, mut used) = (HashMap::new(), HashSet::new());
            let mut come = |client: &Client| {
                let newest = newest.entry(Ticket { attempt: 0, ..client.ticket }).or_insert(0);
                assert!(client.ticket.attempt >= *newest, "{client:?} comes after {newest}");
                *newest = client.ticket.attempt;
            };
            for event in lock(events).iter() {
                match event {
                    Event::Waiting(client) => {
                        come(client);
                        assert!(!used.contains(&client.ticket), "{client:?} waits again");
                        assert!(waiting.insert(*client), "{client:?} waits twice");
                    }
                    Event::Left { client, reason } => {
                        assert!(waiting.remove(client), "{client:?} leaves and does not wait");
                        let known = [None, Some(Reason::Newer), Some(Reason::Alone)];
                        assert!(known.contains(reason), "{event:?}");
                    }
                    Event::Met { sender, receiver } => {
                        let waited = [sender, receiver].map(|client| waiting.remove(client));
                        assert!(waited[0] != waited[1], "one waits and one comes: {event:?}");
                        for client in [sender, receiver] {
                            come(client);
                            assert!(used.insert(client.ticket), "{client:?} meets twice");
                        }
                        let (side, attempt) = (Role::Sender, sender.ticket.attempt);
                        let across = Ticket { side, attempt, ..receiver.ticket };
                        assert_eq!(sender.ticket, across, "they do not belong together");
                        let named = [receiver.organisation, sender.organisation];
                        assert_eq!([sender.peer, receiver.peer], named, "{event:?}");
                        self.met.insert([sender.ticket, receiver.ticket]);
                        open.insert([*sender, *receiver]);
                    }
                    Event::Ended { sender, receiver, .. } => {
                        assert!(open.remove(&[*sender, *receiver]), "it did not begin: {event:?}");
                    }
                    Event::Refused { reason, .. } => {
                        use Reason::{Full, Malformed, Newer, Slow, Used};
                        let known = [Full, Malformed, Newer, Slow, Used];
                        assert!(known.contains(reason), "{event:?}");
                    }
                    _ => {}
                }
            }
            left = (waiting.len(), open.len());
        }
        left
    }
}

/// A worker, as its operator sees it.
struct Worker {
    /// Of the newest attempt.
    ticket: Ticket,
    running: Vec<(Ticket, Program<Result<()>>)>,
    completed: HashSet<Ticket>,
    /// Attempts after the aftermath.
    late: u64,
}

impl Worker {
    /// Looks at the attempts that have ended.
    fn collect(&mut self, is_disturbed: bool) {
        let mut ended = Vec::new();
        while let Some(place) = self.running.iter().position(|(_, program)| program.is_over()) {
            ended.push(self.running.remove(place));
        }
        for (own, program) in ended {
            match program.wait() {
                Exit::Ended(Ok(())) => drop(self.completed.insert(own)),
                Exit::Ended(Err(error)) => {
                    assert!(is_disturbed, "without a fault, {own:?}: {error}");
                    check_error(&own, &error, self.ticket.attempt);
                }
                Exit::Killed => {}
                Exit::Panicked(what) => panic!("{own:?} panicked: {what}"),
            }
        }
    }

    /// Whether an attempt of this worker met one of `other` to the end, as far as it knows.
    fn has_met(&self, other: &Self, run: &Run) -> bool {
        lock(&run.heard).get(&self.ticket) == Some(&other.ticket)
            && self.completed.contains(&self.ticket)
    }
}

/// Whether two attempts met, and both know it.
fn is_done([sender, receiver]: &[Worker; 2], run: &Run) -> bool {
    let heard = lock(&run.heard);
    sender.completed.iter().any(|own| receiver.completed.contains(&heard[own]))
}

fn play(world: &World, dice: &mut Dice) {
    let (count, host) = (dice.in_range(1..4) as usize, world.machine("gateway"));
    let is_apart = dice.one_in(2);
    let machines = Role::ALL.map(|side| {
        let names = (0..if is_apart { count } else { 1 }).map(|number| format!("{side}{number}"));
        names.map(|name| world.machine(&name)).collect::<Vec<_>>()
    });
    let since = wall_clock() - HOUR;
    let organisations = Role::ALL.map(|side| {
        Identity::generate(side.name(), since..since + 1000 * HOUR).expect("an identity")
    });
    let allowed = organisations.each_ref().map(Identity::fingerprint).to_vec();
    let seconds = |dice: &mut Dice, all: &[u64]| Duration::from_secs(dice.of(all));
    let limits = Limits {
        connections: dice.of(&[2 * count, 1024]),
        waiting: dice.of(&[count, 512]),
        ticket: seconds(dice, &[5, 10]),
        wait: seconds(dice, &[5, 10, 60]),
        idle: seconds(dice, &[5, 20, 60]),
    };
    let (wait, timeout) = (seconds(dice, &[5, 10, 60]), seconds(dice, &[5, 10, 60]));
    // Heartbeats pass every 15 seconds.
    let pauses = limits.idle > Duration::from_secs(15) && dice.one_in(3);
    let (messages, length) = dice.of(&[(1, 60), (20, 60), (20, 5000), (3, 300_000)]);
    let run = Arc::new(Run {
        gateway: SocketAddr::new(host.address(), 7000),
        patience: Patience { wait, ..timeout.into() },
        pauses: pauses.then(|| (dice.of(&Role::ALL), seconds(dice, &[5, 30, 90]))),
        heard: Mutex::default(),
        organisations,
        messages,
        length,
    });
    let mut told = Told::default();
    let start_gateway = |told: &mut Told| {
        let (events, cancel) = (Arc::<Mutex<Vec<Event>>>::default(), Cancel::default());
        told.events.push(Arc::clone(&events));
        let (address, allowed, until) = (run.gateway, allowed.clone(), cancel.clone());
        let serve = move || {
            let gateway = Gateway::bind(address, limits, allowed)?;
            gateway.serve(&until, &|event| lock(&events).push(event))
        };
        (world.start(&host, "gateway", serve), cancel)
    };
    // Two runs, one of them with its driver.
    let pair = |place: usize| {
        let (run, worker) = ([(place == 1).into(); 32], (place != 2).then_some(3));
        Role::ALL.map(|side| Worker {
            ticket: Ticket { run, side, worker, attempt: 0 },
            running: Vec::new(),
            completed: HashSet::new(),
            late: 0,
        })
    };
    let mut pairs: Vec<_> = (0..count).map(pair).collect();
    let (start, is_hasty) = (Instant::now(), dice.one_in(4));
    let mut is_disturbed = is_hasty || world.has_faults();
    let (mut calm, mut gateway) = (None, None);
    while !pairs.iter().all(|pair| is_done(pair, &run)) {
        assert!(start.elapsed() < 3 * HOUR, "the workers never end");
        for (place, pair) in pairs.iter_mut().enumerate() {
            pair.iter_mut().for_each(|worker| worker.collect(is_disturbed));
            for side in [0, 1] {
                let stands = pair[side].has_met(&pair[1 - side], &run) || is_done(pair, &run);
                let worker = &mut pair[side];
                // An operator that is not patient does not wait for the end of an attempt.
                let is_due = match worker.running.len() {
                    0 => !stands,
                    1 => is_hasty && calm.is_none() && dice.one_in(20),
                    _ => false,
                };
                if !is_due {
                    continue;
                }
                worker.ticket.attempt += 1;
                worker.late += u64::from(calm.is_some_and(|calm| Instant::now() > calm));
                assert!(worker.late <= MOST, "{:?} never ends well", worker.ticket);
                if worker.ticket.attempt > DISTURBED && calm.is_none() {
                    world.end_faults();
                    calm = Some(Instant::now() + AFTERMATH);
                }
                let machine = &machines[side][place.min(machines[side].len() - 1)];
                let (own, run) = (worker.ticket, Arc::clone(&run));
                let program = world.start(machine, NAMES[side], move || attempt(&run, own));
                worker.running.push((own, program));
                thread::sleep(Duration::from_millis(dice.below(500)));
            }
        }
        let (program, cancel) = gateway.take().unwrap_or_else(|| start_gateway(&mut told));
        match program.is_over() {
            false => gateway = Some((program, cancel)),
            true => match program.wait() {
                Exit::Killed => thread::sleep(Duration::from_millis(dice.below(8000))),
                other => panic!("the gateway has ended: {other:?}"),
            },
        }
        thread::sleep(Duration::from_millis(dice.below(1000)));
    }
    let left = pairs.iter().flatten().flat_map(|worker| &worker.running);
    left.for_each(|(_, program)| program.kill());
    let (program, cancel) = gateway.take().unwrap_or_else(|| start_gateway(&mut told));
    let end = Instant::now();
    while told.check() != (0, 0) && !program.is_over() {
        assert!(end.elapsed() < AFTERMATH, "the gateway does not notice who has gone");
        thread::sleep(Duration::from_secs(1));
    }
    cancel.cancel();
    match program.wait() {
        Exit::Killed => {}
        Exit::Ended(Ok(())) => assert_eq!(told.check(), (0, 0), "clients and pairs are left"),
        other => panic!("the gateway: {other:?}"),
    }
    let heard = lock(&run.heard);
    for (own, peer) in &*heard {
        let sides = own.side.sides([*own, *peer]);
        assert!(told.met.contains(&sides), "the gateway knows nothing of {sides:?}");
        let theirs = heard.get(peer);
        assert!(theirs.is_none_or(|theirs| theirs == own), "{own:?}, {peer:?}, {theirs:?}");
    }
}
