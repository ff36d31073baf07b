//! Workers of two organisations meet at a gateway, and are started again when they fail.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use volery_channel::gateway::{Client, Event, Gateway, Limits, Reason, Ticket, meet};
use volery_channel::tls::{Identity, Patience, Peer};
use volery_channel::{Cancel, Error, Result, Role};
use volery_os::thread;
use volery_os::time::{Duration, Instant, wall_clock};
use volery_os::world::{Exit, Program, World};

use super::{Dice, Scenario, cut, kill, power_loss, silence, stall};

const NAMES: [&str; 2] = ["sender", "receiver"];

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "meeting",
    programs: &["gateway", "gateway", NAMES[0], NAMES[1]],
    calls: 200,
    faults: &[kill, kill, power_loss, cut, cut, silence, stall],
    play,
};

/// The validity of certificates.
const DAY: Duration = Duration::from_secs(86_400);

/// The attempts of a worker until the faults end, how long they last, and all attempts after that.
const DISTURBED: u64 = 6;
const AFTERMATH: Duration = Duration::from_secs(700);
const MOST: u64 = 12;

/// The tickets of a sender and of a receiver that meet.
type Pair = [Ticket; 2];

/// The setting of all attempts.
struct Setup {
    organisations: [Identity; 2],
    gateway: SocketAddr,
    patience: Patience,
    /// Messages of each side, and the bytes of each.
    messages: (u64, usize),
    /// The side that pauses in the middle of a dialogue.
    pause: (Role, Duration),
    /// The pair of which an attempt is, as it heard from its peer.
    heard: Mutex<HashMap<Ticket, Pair>>,
}

/// A worker, as its operator sees it.
struct Worker {
    /// Of the newest attempt.
    ticket: Ticket,
    running: Vec<(Ticket, Program<Result<Pair>>)>,
    completed: HashSet<Pair>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A message of a dialogue: each byte follows from the attempt that sends it.
fn message(from: &Ticket, number: u64, length: usize) -> Vec<u8> {
    let worker = from.worker.unwrap_or(u32::MAX).to_le_bytes();
    let (attempt, number) = (from.attempt.to_le_bytes(), number.to_le_bytes());
    let name = [&attempt[..], &from.run, &worker, &[from.side as u8], &number].concat();
    name.into_iter().cycle().take(length).collect()
}

/// An attempt of a worker: exchanges messages with its peer, and confirms at last whom it met.
fn attempt(setup: &Setup, own: Ticket) -> Result<Pair> {
    let [ours, theirs] = own.side.sides(setup.organisations.each_ref());
    let leaf = ours.issue(&own.name(), ours.validity())?;
    let peer = Peer::of_run(theirs.fingerprint(), own.name());
    let mut channel = meet(setup.gateway, &own, &leaf, &peer, setup.patience.clone())?;
    let mut peer = Ticket { side: own.side.other(), ..own };
    let (count, length) = setup.messages;
    let mut incoming = vec![0; length];
    for number in 0..count {
        channel.send(&message(&own, number, length))?;
        channel.recv(&mut incoming)?;
        if number == 0 {
            peer.attempt = u64::from_le_bytes(*incoming.first_chunk().expect("8 bytes"));
            let before = lock(&setup.heard).insert(own, own.side.sides([own, peer]));
            assert!(before.is_none(), "{own:?} meets {before:?} and {peer:?}");
        }
        assert!(incoming == message(&peer, number, length), "{own:?} hears another than {peer:?}");
        if (own.side, number) == (setup.pause.0, count / 2) {
            thread::sleep(setup.pause.1);
        }
    }
    channel.send(&message(&peer, count, length))?;
    channel.recv(&mut incoming)?;
    assert!(incoming == message(&own, count, length), "{peer:?} has not met {own:?}");
    Ok(own.side.sides([own, peer]))
}

/// Checks what a gateway told, and adds who met; returns how many clients wait, and how many pairs
/// are connected.
fn check_events(events: &Mutex<Vec<Event>>, met: &mut HashSet<Pair>) -> [usize; 2] {
    use Reason::{Alone, Full, Malformed, Newer, Slow, Used};
    let (mut waiting, mut open) = (HashSet::new(), HashSet::new());
    let (mut used, mut newest) = (HashSet::new(), HashMap::new());
    for event in &*lock(events) {
        let mut come = |ticket: Ticket| {
            let newest = newest.entry(Ticket { attempt: 0, ..ticket }).or_insert(0);
            *newest = ticket.attempt.max(*newest);
            *newest == ticket.attempt
        };
        let may_be = match event {
            Event::Waiting(Client { address, ticket, .. }) => {
                waiting.insert(*address) && !used.contains(ticket) && come(*ticket)
            }
            Event::Left { client, reason } => {
                waiting.remove(&client.address) && matches!(reason, None | Some(Newer | Alone))
            }
            Event::Met { sender, receiver } => {
                let waited = [sender, receiver].map(|client| waiting.remove(&client.address));
                let pair = [sender.ticket, receiver.ticket];
                let is_new = pair.map(|ticket| used.insert(ticket) && come(ticket));
                let across = Ticket { side: Role::Sender, attempt: pair[0].attempt, ..pair[1] };
                open.insert(pair);
                met.insert(pair);
                let named = [receiver.organisation, sender.organisation];
                let belong = pair[0] == across && [sender.peer, receiver.peer] == named;
                waited[0] != waited[1] && is_new == [true; 2] && belong
            }
            Event::Ended { sender, receiver, .. } => open.remove(&[sender.ticket, receiver.ticket]),
            Event::Refused { reason, .. } => [Slow, Malformed, Newer, Used, Full].contains(reason),
            _ => true,
        };
        assert!(may_be, "the gateway tells {event:?}");
    }
    [waiting.len(), open.len()]
}

impl Worker {
    /// Looks at the attempts that have ended.
    fn collect(&mut self, world: &World, is_disturbed: bool) {
        for (own, program) in self.running.extract_if(.., |(_, program)| program.is_over()) {
            let ended = program.wait();
            world.note(World::own_program(), format!("{own:?} ends with {ended:?}"));
            match ended {
                Exit::Ended(Ok(pair)) => drop(self.completed.insert(pair)),
                Exit::Ended(Err(error)) => {
                    let newer = Reason::Newer.to_string();
                    let may_be = match &error {
                        Error::Disconnected | Error::TimedOut(_) | Error::Absent(_) => true,
                        Error::Unavailable(why) => *why != newer || own != self.ticket,
                        _ => false,
                    };
                    assert!(may_be && is_disturbed, "{own:?} fails: {error:?}");
                }
                Exit::Killed => {}
                Exit::Panicked(what) => panic!("{own:?} panicked: {what}"),
            }
        }
    }
}

fn play(world: &World, dice: &mut Dice) {
    let (count, apart) = (dice.size(1..4) as usize, dice.below(2) as usize);
    let host = world.machine("gateway");
    let machines = NAMES.map(|name| [0, 1, 2].map(|at| world.machine(&format!("{name}{at}"))));
    let validity = wall_clock() - AFTERMATH..wall_clock() + DAY;
    let identity = |name| Identity::generate(name, validity.clone()).expect("an identity");
    let organisations = NAMES.map(identity);
    let allowed = organisations.each_ref().map(Identity::fingerprint);
    let [longest, idle, wait, timeout] = [[5, 10, 60], [5, 20, 60], [5, 10, 60], [5, 10, 60]]
        .map(|all| Duration::from_secs(dice.of(&all)));
    let (connections, waiting) = (dice.of(&[2 * count, 1024]), dice.of(&[count, 512]));
    let limits = Limits { connections, waiting, wait: longest, idle, ..Limits::default() };
    // Heartbeats may be 15 seconds apart.
    let pauses: &[u64] = if idle.as_secs() > 15 { &[0, 0, 30, 90] } else { &[0] };
    let setup = Arc::new(Setup {
        organisations,
        gateway: SocketAddr::new(host.address(), 7000),
        patience: Patience { wait, ..timeout.into() },
        messages: dice.of(&[(1, 60), (20, 60), (20, 5000), (3, 300_000)]),
        pause: (dice.of(&Role::ALL), Duration::from_secs(dice.of(pauses))),
        heard: Mutex::default(),
    });
    let start_gateway = || {
        let (events, cancel) = (Arc::<Mutex<Vec<Event>>>::default(), Cancel::default());
        let (address, until, told) = (setup.gateway, cancel.clone(), Arc::clone(&events));
        let program = world.start(&host, "gateway", move || {
            let gateway = Gateway::bind(address, limits, allowed.to_vec())?;
            gateway.serve(&until, &|event| lock(&told).push(event))
        });
        (program, cancel, events)
    };
    let pair = |place| {
        // Two runs, one of them with its driver.
        let (run, worker) = ([u8::from(place == 1); 32], (place != 2).then_some(3));
        Role::ALL.map(|side| Worker {
            ticket: Ticket { run, side, worker, attempt: 0 },
            running: Vec::new(),
            completed: HashSet::new(),
        })
    };
    let mut pairs: Vec<_> = (0..count).map(pair).collect();
    let is_done = |pair: &[Worker; 2]| !pair[0].completed.is_disjoint(&pair[1].completed);
    // Whether the operator now and then starts a worker again that has not ended.
    let is_hasty = dice.one_in(4);
    let (mut calm, mut late, mut gateway, mut met) = (None, 0, None, HashSet::new());
    while !pairs.iter().all(is_done) {
        for (place, pair) in pairs.iter_mut().enumerate() {
            let is_disturbed = is_hasty || !world.struck().is_empty();
            pair.iter_mut().for_each(|worker| worker.collect(world, is_disturbed));
            for side in [0, 1] {
                let newest = [pair[0].ticket, pair[1].ticket];
                let (running, completed) = (pair[side].running.len(), &pair[side].completed);
                let is_extra = running == 1 && is_hasty && calm.is_none() && dice.one_in(20);
                if is_done(pair) || !is_extra && (running > 0 || completed.contains(&newest)) {
                    continue;
                }
                let worker = &mut pair[side];
                worker.ticket.attempt += 1;
                late += u64::from(calm.is_some_and(|calm| Instant::now() > calm));
                assert!(late <= MOST, "{:?} never ends well", worker.ticket);
                if worker.ticket.attempt > DISTURBED && calm.is_none() {
                    world.end_faults();
                    calm = Some(Instant::now() + AFTERMATH);
                }
                let (own, setup) = (worker.ticket, Arc::clone(&setup));
                let machine = &machines[side][apart * place];
                let program = world.start(machine, NAMES[side], move || attempt(&setup, own));
                worker.running.push((own, program));
                thread::sleep(Duration::from_millis(dice.below(500)));
            }
        }
        let (program, cancel, events) = gateway.take().unwrap_or_else(&start_gateway);
        if program.is_over() {
            let ended = program.wait();
            assert!(matches!(ended, Exit::Killed), "the gateway ends with {ended:?}");
            check_events(&events, &mut met);
        } else {
            gateway = Some((program, cancel, events));
        }
        thread::sleep(Duration::from_millis(dice.below(1000)));
    }
    let running = pairs.iter().flatten().flat_map(|worker| &worker.running);
    running.for_each(|(_, program)| program.kill());
    let (program, cancel, events) = gateway.unwrap_or_else(&start_gateway);
    let end = Instant::now();
    while check_events(&events, &mut met) != [0, 0] && !program.is_over() {
        assert!(end.elapsed() < AFTERMATH, "the gateway does not notice who has gone");
        thread::sleep(Duration::from_secs(1));
    }
    cancel.cancel();
    match (program.wait(), check_events(&events, &mut met)) {
        (Exit::Ended(Ok(())), [0, 0]) | (Exit::Killed, _) => {}
        (ended, left) => panic!("the gateway ends with {ended:?} and leaves {left:?}"),
    }
    let heard = lock(&setup.heard);
    for pair in heard.values() {
        let is_agreed = pair.iter().all(|own| heard.get(own).is_none_or(|other| other == pair));
        assert!(is_agreed && met.contains(pair), "others met: {pair:?}");
    }
}
