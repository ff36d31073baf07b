use std::sync::{Arc, Mutex};

use volery_channel::tamper::Tampered;
use volery_channel::{Error as ChannelError, memory, run_two_channels};

use super::*;
use crate::error::Error;
use crate::fixtures::{common, items};
use crate::intersect::{ReceiverResult, SenderResult};

pub(super) const SESSION: SessionId = SessionId::from_bytes([8; 32]);

/// Both parties after an offline phase with a dealer.
pub(super) fn dealt(seed: u128) -> (Sender, Receiver) {
    let (sender, receiver) = oprf::tests::dealt(seed);
    let mut rng = Prg::new(Block::new(seed << 8));
    let receiver =
        Receiver { oprf: receiver, session: SESSION, rng: rng.fork("receiver"), parts: 1 };
    let sender = Sender { oprf: sender, session: SESSION, rng, parts: 1 };
    (sender, receiver)
}

/// The bytes that a party sent.
type Tap = Arc<Mutex<Vec<u8>>>;

/// A run after a dealer, and the bytes that the receiver sent.
fn run(
    seed: u128,
    ours: &[Vec<u8>],
    theirs: &[Vec<u8>],
    settings: Settings,
) -> (Result<SenderResult>, Result<ReceiverResult>, Vec<u8>) {
    let (sender, receiver) = dealt(seed);
    let (near, far) = memory::pair();
    let tap = Tap::default();
    let copy = Arc::clone(&tap);
    let far = Tampered::new(far, move |_, bytes: &mut [u8]| {
        copy.lock().unwrap().extend_from_slice(bytes);
    });
    let ((sent, _), (received, _)) = run_two_channels(
        Channel::new(near),
        Channel::new(far),
        |channel| sender.intersect(ours, settings, &mut (), channel),
        |channel| receiver.intersect(theirs, settings, &mut (), channel),
    );
    let bytes = std::mem::take(&mut *tap.lock().unwrap());
    (sent, received, bytes)
}

/// The offset of the attempt's number in the bytes that the receiver sends.
pub(super) const ATTEMPT: usize = 32 + 64;

/// Tables so tight that hash functions have to be drawn again: both results are exact nevertheless.
#[test]
fn a_placement_that_fails_is_made_again() {
    let mut by_attempt = [0; ATTEMPTS as usize + 1];
    for seed in 0..150 {
        let n = 20 + seed as usize % 7;
        let (ours, theirs) = (items(0..40), items(30..30 + n));
        let settings = Settings { variant: Variant::Tight, both: true };
        let (sent, received, bytes) = run(seed, &ours, &theirs, settings);
        match received {
            Ok(received) => {
                assert_eq!(received.common, common(&theirs, &ours), "{seed}");
                assert_eq!(sent.unwrap().common.unwrap(), common(&ours, &theirs));
                by_attempt[usize::from(bytes[ATTEMPT])] += 1;
            }
            Err(Error::Unplaced { attempts: 8 }) => by_attempt[8] += 1,
            Err(other) => panic!("{seed}: {other}"),
        }
    }
    assert!(by_attempt[..4].iter().all(|&runs| runs > 0), "{by_attempt:?}");
    assert!(by_attempt[8] < 50, "{by_attempt:?}");
}

#[test]
fn items_that_find_no_place_are_an_error_that_names_none() {
    let settings = Settings { variant: Variant::Tight, both: true };
    let (sent, received, bytes) = run(1, &items(0..5), &items(0..3000), settings);
    let error = received.err().unwrap();
    assert!(matches!(error, Error::Unplaced { attempts: 8 }));
    assert_eq!(
        error.to_string(),
        "the items did not fit with any of 8 sets of hash functions: run again in a new session"
    );
    assert!(matches!(sent, Err(Error::Channel(ChannelError::Disconnected))));
    assert_eq!(bytes.len(), ATTEMPT, "nothing is sent that depends on them");
}

/// A run with a full stash, which most tables do not need.
#[test]
fn items_in_the_stash_are_found() {
    for (n, m) in [(1, 1), (2, 9), (50, 40), (1, 41), (300, 100)] {
        for both in [false, true] {
            let settings = Settings { variant: Variant::Stashed, both };
            let (ours, theirs) = (items(0..n), items(n / 2..n / 2 + m));
            let (sent, received, _) = run(n as u128, &ours, &theirs, settings);
            let (sent, received) = (sent.unwrap(), received.unwrap());
            assert!(received.parameters.stash >= m.min(n));
            assert_eq!(received.common, common(&theirs, &ours), "{n} {m}");
            assert_eq!(sent.common, both.then(|| common(&ours, &theirs)), "{n} {m}");
        }
    }
}

/// In step 6 the receiver names places in an order that the sender drew: these places are uniform,
/// for any common items at any position in the input.
#[test]
fn the_places_of_common_items_are_uniform() {
    const RUNS: usize = 640;
    let forward: Vec<_> = (0..8).collect();
    let backward: Vec<_> = (0..8).rev().collect();
    for (order, wanted) in [
        (&forward, vec![0]),
        (&forward, vec![7]),
        (&backward, vec![7]),
        (&forward, vec![3, 4]),
        (&backward, vec![0, 1]),
    ] {
        let (ours, theirs) = (items(order.iter().copied()), items(wanted.iter().copied()));
        let settings = Settings { both: true, ..Settings::default() };
        let mut counts = vec![0; 256];
        for seed in 0..RUNS {
            let (sent, _, bytes) = run(1000 + seed as u128, &ours, &theirs, settings);
            // The byte before the end.
            counts[usize::from(bytes[bytes.len() - 17])] += 1;
            assert_eq!(sent.unwrap().common.unwrap(), common(&ours, &theirs));
        }
        let cells: Vec<_> =
            (0_usize..256).filter(|places| places.count_ones() as usize == wanted.len()).collect();
        assert_eq!(cells.len(), [8, 28][wanted.len() - 1]);
        let expected = RUNS as f64 / cells.len() as f64;
        let chi_square: f64 =
            cells.iter().map(|&cell| (f64::from(counts[cell]) - expected).powi(2) / expected).sum();
        // A uniform choice exceeds these bounds once in 10^6 times, for 7 and 27 degrees of
        // freedom.
        let bound = [40.5, 77.2][wanted.len() - 1];
        assert!(chi_square < bound, "{order:?}, {wanted:?}: {chi_square}");
        assert_eq!(cells.iter().map(|&cell| counts[cell]).sum::<u32>() as usize, RUNS);
    }
}
