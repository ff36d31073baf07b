//! One attack: an honest party against a party that tampers with one message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;

use volery_channel::{Channel, Error, Role, Stats, memory, run_two_channels};
use volery_os::time::{Duration, Instant};

use crate::Protocol;
use crate::fault::{Fault, FaultKind, FaultyTransport, Lengths};

/// The outcome of an attack for the honest party.
#[derive(Debug)]
pub enum Verdict {
    /// It ended with an error.
    Refused(Error),
    /// Both ended, with results that satisfy the relation.
    Right,
    /// Both ended, with results that do not satisfy the relation.
    Wrong,
    /// It ended without an error, but the corrupted party failed: there is nothing to compare.
    PeerFailed(Error),
    /// A party panicked. This must never happen.
    Panicked(String),
}

impl Verdict {
    /// Its name in counts of verdicts.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Right => "right",
            Self::Wrong => "wrong",
            Self::PeerFailed(_) => "peer failed",
            Self::Panicked(_) => "panicked",
        }
    }
}

/// An honest party against one that follows the protocol except for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attack {
    /// The corrupted party.
    pub corrupted: Role,
    /// The fault of one of its messages.
    pub fault: Fault,
}

impl Attack {
    /// Runs it; the honest party waits at most `timeout` for a byte, so neither party waits for
    /// ever.
    #[must_use]
    pub fn run(self, protocol: &Protocol, timeout: Duration) -> Verdict {
        self.run_timed(protocol, timeout).0
    }

    /// Runs it, and also returns the time after which the honest party ended.
    #[must_use]
    pub fn run_timed(self, protocol: &Protocol, timeout: Duration) -> (Verdict, Duration) {
        let (start, ended) = (Instant::now(), OnceLock::new());
        let party = |side: Role| {
            let ended = &ended;
            move |channel: &mut Channel| {
                let result = protocol.run(side, channel);
                if side != self.corrupted {
                    ended.get_or_init(|| start.elapsed());
                }
                result
            }
        };
        let (left, right) = memory::pair();
        let channel = |transport| Channel::with_timeout(transport, Some(timeout));
        let tampered = |transport| Channel::new(FaultyTransport::new(transport, self.fault));
        let (left, right) = match self.corrupted {
            Role::Sender => (tampered(left), channel(right)),
            Role::Receiver => (channel(left), tampered(right)),
        };
        let both = AssertUnwindSafe(|| {
            let ((left, _), (right, _)) =
                run_two_channels(left, right, party(Role::Sender), party(Role::Receiver));
            match (left, right) {
                (Ok(left), Ok(right)) if protocol.agree(&left, &right) => Verdict::Right,
                (Ok(_), Ok(_)) => Verdict::Wrong,
                (left, right) => {
                    let (corrupted, honest) = match self.corrupted {
                        Role::Sender => (left.err(), right.err()),
                        Role::Receiver => (right.err(), left.err()),
                    };
                    let failed = corrupted.map(Verdict::PeerFailed);
                    let refused = honest.map(Verdict::Refused);
                    refused.or(failed).expect("a refused attack has an error of one party")
                }
            }
        });
        let verdict = catch_unwind(both).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let literal = || panic.downcast_ref::<&str>().map(|&text| text.to_owned());
            Verdict::Panicked(text.or_else(literal).unwrap_or_default())
        });
        (verdict, *ended.get_or_init(|| start.elapsed()))
    }
}

/// The lengths of the messages of each party, and the statistics of their channels, between honest
/// parties.
///
/// # Panics
/// If an honest party fails.
pub fn messages(protocol: &Protocol) -> [(Vec<usize>, Stats); 2] {
    let (left, right) = memory::pair();
    let (left, of_left) = FaultyTransport::watched(left);
    let (right, of_right) = FaultyTransport::watched(right);
    let ((left, sent), (right, received)) = run_two_channels(
        Channel::new(left),
        Channel::new(right),
        |channel| protocol.run(Role::Sender, channel),
        |channel| protocol.run(Role::Receiver, channel),
    );
    assert!(left.is_ok() && right.is_ok(), "{protocol:?}");
    let lengths = |of: Lengths| of.lock().expect("the lock is not poisoned").clone();
    [(lengths(of_left), sent), (lengths(of_right), received)]
}

/// Faults that change the contents of a message of this many bytes; none of them alone makes a
/// party wait.
///
/// The flips are at the start, in the middle and at the end.
pub fn changes(length: usize) -> Vec<FaultKind> {
    let flips = [(0, 0x01), (length / 2, 0x10), (length.saturating_sub(1), 0x80)];
    let mut kinds: Vec<_> = flips.map(|(at, mask)| FaultKind::Flip { at, mask }).into();
    kinds.extend([
        FaultKind::Repeat,
        FaultKind::Reorder,
        FaultKind::Cut(length / 2),
        FaultKind::Lengthen(1),
        FaultKind::Lengthen(1 << 16),
    ]);
    kinds
}

/// Faults after which the peer does not receive a message it waits for.
pub fn silences(length: usize) -> Vec<FaultKind> {
    vec![
        FaultKind::Drop,
        FaultKind::Swap,
        FaultKind::Shorten(0),
        FaultKind::Shorten(length.saturating_sub(1)),
    ]
}
