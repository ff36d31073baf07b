//! One attack: an honest party against one that spoils a message.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use volery_channel::tamper::{Act, Mischief, Mischievous};
use volery_channel::{Channel, Error, Stats, memory, run_two_channels};

use crate::{Protocol, Side};

/// How an honest party came out of an attack.
#[derive(Debug)]
pub enum Verdict {
    /// It ended with an error.
    Refused(Error),
    /// Both ended, with results that belong together.
    Right,
    /// Both ended, with results that do not belong together.
    Wrong,
    /// It ended without an error, and the party that cheated did not: there is nothing to compare.
    Unheard(Error),
    /// A party panicked. This must never be.
    Panicked(String),
}

/// An honest party against one that follows the protocol but for one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Attack {
    /// Who cheats.
    pub cheat: Side,
    /// What it does.
    pub mischief: Mischief,
}

impl Attack {
    /// Runs it; the honest party waits no longer than `timeout` for a byte, and so nobody waits for ever.
    #[must_use]
    pub fn run(self, protocol: &Protocol, timeout: Duration) -> Verdict {
        self.run_timed(protocol, timeout).0
    }

    /// As [`run`](Self::run), and says when the honest party had ended, counted from the start.
    #[must_use]
    pub fn run_timed(self, protocol: &Protocol, timeout: Duration) -> (Verdict, Duration) {
        let (start, ended) = (Instant::now(), OnceLock::new());
        let party = |side: Side| {
            let ended = &ended;
            move |channel: &mut Channel| {
                let result = protocol.run(side, channel);
                if side != self.cheat {
                    ended.get_or_init(|| start.elapsed());
                }
                result
            }
        };
        let (left, right) = memory::pair();
        let channel = |transport| Channel::with_timeout(transport, Some(timeout));
        let spoilt = |transport| Channel::new(Mischievous::new(transport, self.mischief));
        let (left, right) = match self.cheat {
            Side::Left => (spoilt(left), channel(right)),
            Side::Right => (channel(left), spoilt(right)),
        };
        let both = AssertUnwindSafe(|| {
            let ((left, _), (right, _)) =
                run_two_channels(left, right, party(Side::Left), party(Side::Right));
            match (left, right) {
                (Ok(left), Ok(right)) if protocol.agree(&left, &right) => Verdict::Right,
                (Ok(_), Ok(_)) => Verdict::Wrong,
                (left, right) => {
                    let (cheat, honest) = match self.cheat {
                        Side::Left => (left.err(), right.err()),
                        Side::Right => (right.err(), left.err()),
                    };
                    let unheard = cheat.map(Verdict::Unheard);
                    let refused = honest.map(Verdict::Refused);
                    refused.or(unheard).expect("one of them failed")
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

/// Bytes of each message that each party sends, and what their channels count, between honest parties.
///
/// # Panics
/// If an honest party fails.
#[must_use]
pub fn messages(protocol: &Protocol) -> [(Vec<usize>, Stats); 2] {
    let (left, right) = memory::pair();
    let (left, of_left) = Mischievous::watched(left);
    let (right, of_right) = Mischievous::watched(right);
    let ((left, sent), (right, received)) = run_two_channels(
        Channel::new(left),
        Channel::new(right),
        |channel| protocol.run(Side::Left, channel),
        |channel| protocol.run(Side::Right, channel),
    );
    assert!(left.is_ok() && right.is_ok(), "{protocol:?}");
    let lengths = |of: volery_channel::tamper::Lengths| of.lock().expect("no panic").clone();
    [(lengths(of_left), sent), (lengths(of_right), received)]
}

/// Acts that change what is said, on a message of so many bytes; none of them makes anybody wait on its own.
///
/// The flips are at the start, in the middle and at the end.
#[must_use]
pub fn changes(length: usize) -> Vec<Act> {
    let flips = [
        (0, 0x01),
        (length / 2, 0x10),
        (length.saturating_sub(1), 0x80),
    ];
    let mut acts: Vec<_> = flips.map(|(at, mask)| Act::Flip { at, mask }).into();
    acts.extend([
        Act::Repeat,
        Act::Reorder,
        Act::Cut(length / 2),
        Act::Lengthen(1),
        Act::Lengthen(1 << 16),
    ]);
    acts
}

/// Acts that leave the peer without what it waits for.
#[must_use]
pub fn silences(length: usize) -> Vec<Act> {
    vec![
        Act::Drop,
        Act::Swap,
        Act::Shorten(0),
        Act::Shorten(length.saturating_sub(1)),
    ]
}
