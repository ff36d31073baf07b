//! A size announced by the peer alone allocates no memory.
//!
//! The test runs itself once more, as a separate process with little address space: an allocation
//! for the largest possible set would fail before the machine runs out of memory.
#![cfg(target_os = "linux")]

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::common::{Kind, SESSION, items};
use volery_channel::tamper::Tampered;
use volery_channel::{
    Channel, Error as ChannelError, Role, memory, run_two_channels, run_two_parties_with_stats,
};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_primitives::ro::RandomOracle;
use volery_psi::params::MAX_ITEMS;
use volery_psi::{Error, Receiver, Result, Sender};

/// The environment variable that marks the second process.
const INSIDE: &str = "VOLERY_TEST_LITTLE_MEMORY";

/// Address space of the second process, in units of 1024 bytes. The largest set has 2^31 items.
const LIMIT: &str = "2097152";

/// Memory that a run may take on top of an honest one, in units of 1024 bytes; with vector OLE, a
/// batch of bins and a round of the largest set.
const ALLOWED: u64 = 64 << 10;
const ALLOWED_VOLE: u64 = 768 << 10;

#[test]
fn a_stated_size_takes_no_memory() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let limited = format!("ulimit -v {LIMIT} && exec \"$0\" \"$@\"");
    let status = Command::new("sh")
        .args(["-c", &limited])
        .arg(std::env::current_exe().unwrap())
        .args(["memory::a_stated_size_takes_no_memory", "--exact", "--nocapture"])
        .env(INSIDE, "1")
        // Excludes arenas and threads of a large machine from the measurement.
        .env("MALLOC_ARENA_MAX", "2")
        .env("RAYON_NUM_THREADS", "2")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// The peak address space of this process, in units of 1024 bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmPeak:"));
    line.unwrap().trim().trim_end_matches(" kB").parse().unwrap()
}

fn inside() {
    let large = |kind: &Kind| kind.protocol.most_items() == MAX_ITEMS;
    for kind in Kind::all().into_iter().filter(large) {
        let lies = [0, 1].map(|party| lie(kind, party));
        let before = peak();
        for (party, lie) in lies.into_iter().enumerate() {
            let error = run(kind, party, MOMENT, lie).unwrap_err();
            assert!(of_the_peer(kind, &error), "{error}, {kind:?} {party}");
        }
        let more = peak() - before;
        let allowed = match kind.is_kkrt() {
            true => ALLOWED,
            false => ALLOWED_VOLE,
        };
        assert!(more < allowed, "{kind:?}: {more} KiB more");
    }
}

/// A party's bytes before the online phase.
fn setup_bytes(kind: Kind) -> [u64; 2] {
    if !kind.is_kkrt() {
        return [0, 0];
    }
    let ((_, left), (_, right)) = run_two_parties_with_stats(
        |channel| Sender::setup(SESSION, Prg::new(Block::new(1)), channel).map(|_| ()),
        |channel| Receiver::setup(SESSION, Prg::new(Block::new(2)), channel).map(|_| ()),
    );
    [left.bytes_sent, right.bytes_sent]
}

/// A change to the bytes of a party, given their offset in all that it sends.
type Change = Box<dyn FnMut(u64, &mut [u8]) + Send>;

/// Bytes that a party sends about its set: a commitment, then the size, and more.
const SAID: usize = 32 + 64;

/// Makes a party announce, and commit to, the largest possible set.
fn lie(kind: Kind, party: usize) -> Change {
    let start = setup_bytes(kind)[party];
    let said = move |place: u64| (place.checked_sub(start)).filter(|at| *at < SAID as u64);
    let heard = Arc::new(Mutex::new([0; SAID]));
    let copy = Arc::clone(&heard);
    let listen = move |offset: u64, bytes: &mut [u8]| {
        for (place, byte) in (offset..).zip(bytes) {
            if let Some(at) = said(place) {
                copy.lock().unwrap()[at as usize] = *byte;
            }
        }
    };
    run(kind, party, MINUTE, Box::new(listen)).unwrap();
    let mut claim = *heard.lock().unwrap();
    let (commitment, opening) = claim.split_at_mut(32);
    let commit = |opening: &[u8]| {
        RandomOracle::new("volery psi: commitment")
            .absorb(SESSION.as_bytes())
            .absorb(&[party as u8])
            .absorb(opening)
            .finish32()
    };
    assert_eq!(commitment, commit(opening), "as the documentation has it");
    opening[..8].copy_from_slice(&MAX_ITEMS.to_le_bytes());
    commitment.copy_from_slice(&commit(opening));
    Box::new(move |offset, bytes| {
        for (place, byte) in (offset..).zip(bytes) {
            if let Some(at) = said(place) {
                *byte = claim[at as usize];
            }
        }
    })
}

const MINUTE: Duration = Duration::from_secs(60);

/// The time that a lying party waits for the other one before it disconnects.
const MOMENT: Duration = Duration::from_millis(400);

/// Runs with a change to the bytes of one party; returns the result of the other one.
fn run(kind: Kind, liar: usize, patience: Duration, change: Change) -> Result<()> {
    let mut change = Some(change);
    let mut lie = |party: usize, transport: memory::Memory| -> Channel {
        if liar != party {
            return Channel::with_timeout(transport, Some(MINUTE));
        }
        let changed = Tampered::new(transport, change.take().unwrap());
        Channel::with_timeout(changed, Some(patience))
    };
    let (left, right) = memory::pair();
    let (ours, theirs) = (items(0, 500), items(200, 800));
    let values = vec![vec![7; 100]; 500];
    let ((sent, _), (received, _)) = run_two_channels(
        lie(0, left),
        lie(1, right),
        |channel| kind.run(Role::Sender, &ours, &values, channel).map(drop),
        |channel| kind.run(Role::Receiver, &theirs, &values, channel).map(drop),
    );
    if liar == 0 { received } else { sent }
}

/// Whether the error only says what the other party did: it disconnected, or with vector OLE, whose
/// parts depend on the sizes, something else came than was due.
fn of_the_peer(kind: Kind, error: &Error) -> bool {
    match error {
        Error::Channel(ChannelError::Disconnected) => true,
        Error::Channel(ChannelError::PeerMisbehaved(_) | ChannelError::Mismatch { .. }) => {
            !kind.is_kkrt()
        }
        _ => false,
    }
}
