//! The memory that parameters predict, beside what an allocator counts.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use peak_alloc::PeakAlloc;
use volery_channel::{Channel, Role, SessionId, run_two_parties_tcp};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::Variant;
use volery_psi::dh::Dh;
use volery_psi::kkrt::Kkrt;
use volery_psi::matching::{Output, Party, Protocol};
use volery_psi::vole::{Form, Vole};

#[global_allocator]
static PEAK: PeakAlloc = PeakAlloc;

const SESSION: SessionId = SessionId::from_bytes([7; 32]);

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
    assert!((0.5..1.15).contains(&ratio), "{what}, {:?}: {ratio}", sizes[1]);
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

#[test]
fn memory_is_as_predicted() {
    // Each thread more adds a batch to what is at work, which no figure counts.
    rayon::ThreadPoolBuilder::new().num_threads(2).build_global().unwrap();
    let output = Output::Items { both: false, search: false };
    let small = growth(1 << 8, 1 << 11);
    let large = growth(1 << 17, 1 << 19);
    let all: [(Protocol, _); 5] = [
        (&Kkrt(Variant::Kkrt), large),
        (&Vole(Form::Malicious), large),
        (&Vole(Form::Fast), large),
        (&Vole(Form::Low), large),
        (&Dh, small),
    ];
    for (protocol, growth) in all {
        let run = |role, items: &[[u8; 8]], channel: &mut Channel| {
            let party = Party {
                role,
                session: SESSION,
                rng: Prg::new(Block::new(role as u128)),
                parts: 1,
                items: &items,
                values: None,
                output,
            };
            protocol.run(party, &mut (), channel).unwrap()
        };
        for sizes in growth {
            check(&format!("{protocol:?}"), sizes, |n, m| {
                let (ours, theirs) = (items(n), items(m));
                let (counted, received) = peak(
                    |channel| run(Role::Sender, &ours, channel),
                    |channel| run(Role::Receiver, &theirs, channel),
                );
                let predicted = Role::ALL.map(|role| received.parameters.memory(role, &output));
                (counted, predicted.iter().sum())
            });
        }
    }
}
