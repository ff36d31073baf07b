//! Changes of bytes in transit lead to an error, or to a result that only lacks items: never to a
//! panic, an endless wait, or an item that is not common. Attacks by a peer that knows the protocol
//! are in the unit tests `session::malicious` of the crate.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use volery_channel::{Channel, Transport, memory, run_two_channels};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::intersect::{Received, Sent};
use volery_psi::{Error, Receiver, Result, Sender, Settings, Variant};
use volery_testing::fault::Tampered;

use super::{SESSION, items, receiver, sender};

/// Common are the receiver's items 0 to 7, the sender's 12 to 19.
const N: usize = 20;
const M: usize = 17;
const COMMON: usize = 8;

const SETTINGS: [Settings; 2] = [
    Settings {
        variant: Variant::Kkrt,
        both: true,
    },
    Settings {
        variant: Variant::KkrtPaper,
        both: false,
    },
];

type Outcome = (Result<Sent>, Result<Received>);

fn run(left: Channel, right: Channel, settings: Settings) -> Outcome {
    let (ours, theirs) = (items(0, N), items(N - COMMON, N - COMMON + M));
    let ((sent, _), (received, _)) = run_two_channels(
        left,
        right,
        |channel| sender(&ours, settings, channel),
        |channel| receiver(&theirs, settings, channel),
    );
    (sent, received)
}

/// Records the end of each write.
struct Marked<T> {
    inner: T,
    ends: Arc<Mutex<Vec<u64>>>,
}

impl<T: Transport> Transport for Marked<T> {
    fn write(&self, bytes: &[u8], timeout: Option<Duration>) -> io::Result<()> {
        let mut ends = self.ends.lock().unwrap();
        let before = ends.last().copied().unwrap_or(0);
        ends.push(before + bytes.len() as u64);
        self.inner.write(bytes, timeout)
    }

    fn read(&self, bytes: &mut [u8], timeout: Option<Duration>) -> io::Result<usize> {
        self.inner.read(bytes, timeout)
    }
}

/// The ends of the messages of both parties in an honest run.
fn boundaries(settings: Settings) -> [Vec<u64>; 2] {
    let ends = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let (left, right) = memory::pair();
    let mark = |inner, ends: &Arc<_>| {
        Channel::new(Marked {
            inner,
            ends: Arc::clone(ends),
        })
    };
    let (sent, received) = run(mark(left, &ends[0]), mark(right, &ends[1]), settings);
    sent.unwrap();
    assert_eq!(received.unwrap().common, (0..COMMON).collect::<Vec<_>>());
    ends.map(|ends| ends.lock().unwrap().clone())
}

/// A run in which the bytes of one party are changed.
fn tampered(
    party: usize,
    settings: Settings,
    timeout: Duration,
    change: impl FnOnce(memory::Memory) -> Tampered<memory::Memory>,
) -> Outcome {
    let (left, right) = memory::pair();
    let timeout = Some(timeout);
    let (left, right) = if party == 0 {
        let left = Channel::with_timeout(change(left), timeout);
        (left, Channel::with_timeout(right, timeout))
    } else {
        let right = Channel::with_timeout(change(right), timeout);
        (Channel::with_timeout(left, timeout), right)
    };
    run(left, right, settings)
}

/// No error names an item.
fn assert_discreet(outcome: &Outcome) {
    let errors = [outcome.0.as_ref().err(), outcome.1.as_ref().err()];
    for error in errors.into_iter().flatten() {
        assert!(!format!("{error} {error:?}").contains("item "), "{error}");
    }
}

/// The start of the online phase: it is the last `online` bytes of the whole.
fn online(settings: Settings, ends: &[Vec<u64>; 2]) -> [u64; 2] {
    let (left, right) = memory::pair();
    let (sent, _) = run(Channel::new(left), Channel::new(right), settings);
    let parameters = sent.unwrap().parameters;
    let shared = if settings.both { N.div_ceil(8) } else { 0 };
    let bytes = [
        parameters.tag_bytes() + 112,
        parameters.row_bytes() + 113 + shared as u64,
    ];
    std::array::from_fn(|party| ends[party].last().unwrap() - bytes[party])
}

#[test]
fn cut_at_every_message() {
    for settings in SETTINGS {
        let ends = boundaries(settings);
        for (party, ends) in ends.iter().enumerate() {
            let last = *ends.last().unwrap();
            let around = |&end: &u64| [end.saturating_sub(1), end, end + 1];
            let mut cuts: Vec<_> = ends.iter().flat_map(around).collect();
            cuts.push(0);
            cuts.sort_unstable();
            cuts.dedup();
            for cut in cuts.into_iter().filter(|&cut| cut < last) {
                let minute = Duration::from_secs(60);
                let outcome = tampered(party, settings, minute, |inner| {
                    Tampered::truncated(inner, cut)
                });
                assert_discreet(&outcome);
                let (sent, received) = outcome;
                let what = format!("party {party}, {cut} of {last} bytes");
                // The party that is cut off notices when it continues writing; the other one, when
                // no more bytes arrive.
                for error in [sent.err(), received.err()] {
                    let error = error.unwrap_or_else(|| panic!("{what}: no error"));
                    assert!(matches!(error, Error::Channel(_)), "{what}: {error}");
                    assert!(!error.to_string().contains("timed out"), "{what}: {error}");
                }
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_the_offline_phase() {
    let settings = SETTINGS[0];
    let ends = boundaries(settings);
    let start = online(settings, &ends);
    for party in 0..2 {
        // Positions around each boundary, and a few dozen between them.
        let mut places: Vec<_> = ends[party]
            .iter()
            .flat_map(|&end| [end.saturating_sub(1), end])
            .chain((0..start[party]).step_by(1 + start[party] as usize / 24))
            .filter(|&place| place < start[party])
            .collect();
        places.sort_unstable();
        places.dedup();
        for place in places {
            let minute = Duration::from_secs(60);
            let outcome = tampered(party, settings, minute, |inner| {
                Tampered::flip(inner, place, 1 << (place % 8))
            });
            assert_discreet(&outcome);
            // The OTs are secure against malicious parties: one of the two detects the change, and
            // the other is left alone.
            let what = format!("party {party}, byte {place}");
            assert!(outcome.0.is_err() && outcome.1.is_err(), "{what}");
        }
    }
}

#[test]
fn a_flipped_bit_in_the_online_phase() {
    for settings in SETTINGS {
        let ends = boundaries(settings);
        let start = online(settings, &ends);
        for party in 0..2 {
            let last = *ends[party].last().unwrap();
            let all = (start[party]..last).filter(|place| {
                let place = place - start[party];
                // All bytes that are not rows or outputs, and some of those.
                place < 132 || place + start[party] + 20 > last || place.is_multiple_of(97)
            });
            for place in all {
                check_flip(party, settings, place, place - start[party], last);
            }
        }
    }
}

/// A flipped bit at `place`, `online` bytes into the online phase of a party that sends `last` in
/// all.
fn check_flip(party: usize, settings: Settings, place: u64, online: u64, last: u64) {
    let what = format!("{settings:?}, party {party}, byte {online}");
    let outcome = tampered(party, settings, Duration::from_secs(60), |inner| {
        Tampered::flip(inner, place, 1 << (online % 8))
    });
    assert_discreet(&outcome);
    let (sent, received) = outcome;
    if let Err(error) = &received {
        assert!(!error.to_string().contains("timed out"), "{what}: {error}");
    }
    // Commitment and opening: every changed bit is detected.
    let before_rows = online < 96;
    let end = online >= last - 16;
    if before_rows {
        assert!(sent.is_err() && received.is_err(), "{what}");
        return;
    }
    match (party, end) {
        // The sender's last message: the receiver refuses it.
        (0, true) => assert!(sent.is_err() && received.is_err(), "{what}"),
        // The receiver's last message: the receiver has already ended with its result.
        (1, true) => assert!(sent.is_err() && received.is_ok(), "{what}"),
        // A row, an output, the number of an attempt: some items are not found, and no others are.
        _ => {
            let attempt = party == 1 && online == 96;
            if let Ok(received) = &received {
                let common = &received.common;
                assert!(common.iter().all(|&item| item < COMMON), "{what}");
                assert!(common.len() + 1 >= COMMON || attempt, "{what}");
            }
            if let Ok(sent) = &sent
                && let Some(common) = &sent.common
            {
                // A flipped bit of step 6 adds or removes one item.
                assert!(common.len().abs_diff(COMMON) <= 1 || attempt, "{what}");
                assert!(common.iter().all(|&item| item < N), "{what}");
            }
        }
    }
}

/// Keyword search, with a change in the sender's bytes: values may be wrong, as they are not
/// authenticated; keywords that it does not have are not found.
#[test]
fn a_flipped_bit_among_values() {
    let (ours, theirs) = (items(0, N), items(N - COMMON, N - COMMON + M));
    let values: Vec<_> = (0..N).map(|i| vec![i as u8; 5 + i]).collect();
    let search = |at: Option<u64>| {
        let (left, right) = memory::pair();
        let minute = Some(Duration::from_secs(60));
        let flipped = Tampered::flip(left, at.unwrap_or(u64::MAX), 1 << (at.unwrap_or(0) % 8));
        let ((_, stats), (found, _)) = run_two_channels(
            Channel::with_timeout(flipped, minute),
            Channel::with_timeout(right, minute),
            |channel| {
                let sender = Sender::setup(SESSION, Prg::new(Block::new(1)), channel)?;
                sender.answer(&ours, &values, SETTINGS[1], &mut (), channel)
            },
            |channel| {
                let receiver = Receiver::setup(SESSION, Prg::new(Block::new(2)), channel)?;
                receiver.search(&theirs, SETTINGS[1], &mut (), channel)
            },
        );
        (stats.bytes_sent, found)
    };
    let (whole, found) = search(None);
    let right = &values[N - COMMON..];
    assert_eq!(found.unwrap().values, right);
    let parameters = volery_psi::Parameters::new(SETTINGS[1].variant, N as u64, M as u64);
    let longest = 2 + 4 + N as u64;
    let values_start = whole - 16 - N as u64 * longest;
    let start = values_start - parameters.tag_bytes() - 16 * parameters.evaluations();
    let (mut errors, mut changed, mut lost) = (0, 0, 0);
    let outputs = (start..values_start).step_by(71);
    for place in outputs.chain((values_start..whole).step_by(9)) {
        match search(Some(place)).1 {
            Err(Error::Channel(error)) => {
                let error = error.to_string();
                assert!(
                    error.starts_with("the peer does not follow"),
                    "{place}: {error}"
                );
                errors += 1;
            }
            Err(other) => panic!("{place}: {other}"),
            Ok(found) => {
                assert!(found.items.iter().all(|&item| item < COMMON), "{place}");
                assert!(found.items.len() + 1 >= COMMON, "{place}");
                let wrong = found.items.iter().zip(&found.values);
                let wrong = wrong
                    .filter(|(item, value)| right[**item] != **value)
                    .count();
                assert!(wrong <= 1, "{place}");
                changed += wrong;
                lost += COMMON - found.items.len();
            }
        }
    }
    // All three outcomes occur.
    assert!(
        errors > 0 && changed > 0 && lost > 0,
        "{errors} {changed} {lost}"
    );
}
