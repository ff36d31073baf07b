//! The memory that parameters predict, beside what an allocator counts.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use peak_alloc::PeakAlloc;
use volery_channel::{Channel, Role, SessionId, run_two_parties_tcp};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::{Receiver, Sender, Settings, dh, vole};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

const SESSION: SessionId = SessionId::from_bytes([7; 32]);

fn rng(role: Role) -> Prg {
    Prg::new(Block::new(role as u128))
}

/// The peak memory of a run of both parties, in bytes, and the result of the receiver.
fn peak<A: Send, B: Send>(
    sender: impl FnOnce(&mut Channel) -> A + Send,
    receiver: impl FnOnce(&mut Channel) -> B + Send,
) -> (f64, B) {
    let before = PEAK.current_usage();
    PEAK.reset_peak_usage();
    let (_, received) = run_two_parties_tcp(sender, receiver);
    ((PEAK.peak_usage() - before) as f64, received)
}

/// The sizes of the small run of each pair, and of the large one: the difference is what grows with
/// the sets, of both parties together. With one large set almost all of it is of one party. The
/// parties need not be at their peaks at the same time, so the count may be far below.
fn check(what: &str, sizes: [[u64; 2]; 2], run: impl Fn(u64, u64) -> (f64, u64)) {
    let [(less, below), (more, above)] = sizes.map(|[n, m]| run(n, m));
    let (counted, predicted) = (more - less, (above - below) as f64);
    let ratio = counted / predicted;
    assert!(
        (0.5..1.15).contains(&ratio),
        "{what}, {:?}: {ratio}",
        sizes[1]
    );
}

fn items(count: u64) -> Vec<[u8; 8]> {
    (0..count).map(u64::to_le_bytes).collect()
}

/// Growth of either set, and of both, between two numbers of items.
fn growth(small: u64, large: u64) -> [[[u64; 2]; 2]; 3] {
    [
        [[small, small], [large, small]],
        [[small, small], [small, large]],
        [[small, small], [large, large]],
    ]
}

const BOTH: [Role; 2] = [Role::Sender, Role::Receiver];

#[test]
fn memory_is_as_predicted() {
    for sizes in growth(1 << 17, 1 << 19) {
        check("kkrt", sizes, |n, m| {
            let (ours, theirs, settings) = (items(n), items(m), Settings::default());
            let (counted, received) = peak(
                |channel| {
                    let sender = Sender::setup(SESSION, rng(Role::Sender), channel).unwrap();
                    let sent = sender.intersect(&ours[..], settings, &mut (), channel);
                    sent.unwrap()
                },
                |channel| {
                    let receiver = Receiver::setup(SESSION, rng(Role::Receiver), channel).unwrap();
                    let received = receiver.intersect(&theirs[..], settings, &mut (), channel);
                    received.unwrap()
                },
            );
            let predicted = BOTH.map(|role| received.parameters.memory(role, false));
            (counted, predicted.iter().sum())
        });
        for form in vole::Form::ALL {
            check(form.name(), sizes, |n, m| {
                let (ours, theirs) = (items(n), items(m));
                let settings = vole::Settings { form, both: false };
                let (counted, received) = peak(
                    |channel| {
                        let sender = vole::Sender::new(SESSION, rng(Role::Sender));
                        let sent = sender.intersect(&ours[..], settings, &mut (), channel);
                        sent.unwrap()
                    },
                    |channel| {
                        let receiver = vole::Receiver::new(SESSION, rng(Role::Receiver));
                        let received = receiver.intersect(&theirs[..], settings, &mut (), channel);
                        received.unwrap()
                    },
                );
                let predicted = BOTH.map(|role| received.parameters.memory(role, false, false));
                (counted, predicted.iter().sum())
            });
        }
    }
    for sizes in growth(1 << 8, 1 << 11) {
        check("dh", sizes, |n, m| {
            let (ours, theirs) = (items(n), items(m));
            let (counted, received) = peak(
                |channel| {
                    let sender = dh::Sender::new(SESSION, rng(Role::Sender));
                    sender.intersect(&ours[..], &mut (), channel).unwrap()
                },
                |channel| {
                    let receiver = dh::Receiver::new(SESSION, rng(Role::Receiver));
                    receiver.intersect(&theirs[..], &mut (), channel).unwrap()
                },
            );
            let predicted = BOTH.map(|role| received.parameters.memory(role));
            (counted, predicted.iter().sum())
        });
    }
}
