//! An honest party of any protocol against one that tampers with a message, while their machine
//! and connection fail.

use std::sync::OnceLock;

use volery_channel::tcp::{Listener, Stream};
use volery_channel::{Channel, Error, Role, Transport};
use volery_os::time::{Duration, Instant};
use volery_os::world::{Exit, FaultKind, World};
use volery_testing::fault::{Fault, FaultKind as Act, FaultyTransport};
use volery_testing::{
    Attack, Output, Protocol, Verdict, benign, changes, messages, registry, silences,
};

use super::{Dice, Scenario, cut, kill, silence, stall};

const NAMES: [&str; 2] = ["honest", "deviating"];

pub(crate) const SCENARIO: Scenario = Scenario {
    name: "deviating",
    programs: &NAMES,
    calls: 100,
    faults: &[kill, cut, silence, stall],
    play,
};

const TIMEOUT: Duration = Duration::from_secs(10);

/// A protocol, and the lengths of each party's messages.
struct Target {
    protocol: Protocol,
    lengths: OnceLock<[Vec<usize>; 2]>,
}

fn targets() -> &'static [Target] {
    static TARGETS: OnceLock<Vec<Target>> = OnceLock::new();
    let target = |protocol| Target { protocol, lengths: OnceLock::new() };
    TARGETS.get_or_init(|| registry().into_iter().map(target).collect())
}

/// A party: its end of the connection, to which it gives what it sends.
fn party<T: Transport + 'static>(
    side: Role,
    wrap: impl FnOnce(Stream) -> T,
    protocol: &Protocol,
) -> Result<Output, Error> {
    const ADDRESS: &str = "127.0.0.1:7000";
    let stream = match side {
        Role::Sender => Listener::bind(ADDRESS)?.accept(TIMEOUT)?,
        Role::Receiver => Stream::connect(ADDRESS, TIMEOUT)?,
    };
    protocol.run(side, &mut Channel::with_timeout(wrap(stream), Some(TIMEOUT)))
}

fn play(world: &World, dice: &mut Dice) {
    let Target { protocol, lengths } = &targets()[dice.below(targets().len() as u64) as usize];
    // The honest run is of no world.
    let outside = || messages(protocol).map(|(lengths, _)| lengths);
    let lengths =
        lengths.get_or_init(|| std::thread::spawn(outside).join().expect("honest parties agree"));
    let corrupted = dice.of(&Role::ALL);
    // The message after the last one is none: both are honest.
    let message = dice.below(lengths[corrupted as usize].len() as u64 + 1);
    let length = lengths[corrupted as usize].get(message as usize).copied();
    let is_honest = length.is_none();
    let length = length.unwrap_or(0);
    let delay = Act::Delay(Duration::from_secs(dice.of(&[1, 5, 15])));
    let acts = [changes(length), silences(length), vec![delay]].concat();
    let attack = Attack { corrupted, fault: Fault { message, kind: dice.of(&acts) } };
    let machine = world.machine("host");
    world.note(World::own_program(), format!("{protocol:?}, {attack:?}"));
    let start = Instant::now();
    let honest = world.start(&machine, NAMES[0], move || {
        (party(corrupted.other(), |stream| stream, protocol), start.elapsed())
    });
    let tampered = move |stream| FaultyTransport::new(stream, attack.fault);
    let deviating = world.start(&machine, NAMES[1], move || party(corrupted, tampered, protocol));
    let (honest, deviating) = (honest.wait(), deviating.wait());
    let struck = world.struck();
    if let Exit::Panicked(what) = &deviating {
        panic!("honest code for a peer panicked: {what}");
    }
    let verdict = match (honest, deviating) {
        (Exit::Panicked(what), _) => Verdict::Panicked(what),
        (Exit::Killed, _) => return,
        (Exit::Ended((result, time)), peer) => {
            // It waits for a connection, for a message and for an end.
            let late = struck.iter().map(|kind| match kind {
                FaultKind::Silence(time) | FaultKind::Stall(time) => *time,
                _ => Duration::ZERO,
            });
            let most = late.sum::<Duration>() + 4 * TIMEOUT;
            assert!(time < most, "the honest party ends after {time:?}");
            match (result, peer) {
                (Err(error), _) => Verdict::Refused(error),
                (Ok(_), Exit::Killed) => return,
                (Ok(_), Exit::Ended(Err(error))) => Verdict::PeerFailed(error),
                (Ok(own), Exit::Ended(Ok(other))) => {
                    let [left, right] = corrupted.other().sides([&own, &other]);
                    match protocol.agree(left, right) {
                        true => Verdict::Right,
                        false => Verdict::Wrong,
                    }
                }
                (Ok(_), Exit::Panicked(_)) => return,
            }
        }
    };
    let is_undisturbed = is_honest && struck.is_empty();
    assert!(!is_undisturbed || matches!(verdict, Verdict::Right), "{protocol:?}: {verdict:?}");
    let by_fault = matches!(verdict, Verdict::PeerFailed(_)) && !struck.is_empty();
    let is_benign = by_fault || benign(protocol, attack, &verdict).is_some();
    assert!(is_benign, "{protocol:?}, {attack:?}: {verdict:?}");
}
