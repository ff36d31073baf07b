//! Two parties with their offline phases set up, or with a dealer's OTs, for the tests of this
//! crate.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use volery_channel::{
    Channel, Error as ChannelError, SessionId, Stats, memory, run_two_channels, run_two_parties,
    tamper::Tampered,
};
use volery_ot::{convert, ideal};
use volery_pcg::Security;
use volery_primitives::{Block, prg::Prg};

use crate::{
    error::{Error, Result},
    offline::{Receiver, Sender},
};

type OtSender = convert::Sender<ideal::Sender>;
type OtReceiver = convert::Receiver<ideal::Receiver>;

/// The dealer's OTs.
pub(crate) fn ots() -> (OtSender, OtReceiver) {
    let session = SessionId::from_bytes([1; 32]);
    let (sender, receiver) = ideal::pair(Block::from(5), Block::from(6));
    (
        convert::Sender::new(sender, session),
        convert::Receiver::new(receiver, session),
    )
}

/// Runs both parties over the dealer's OTs: returns their results and the traffic of the right
/// party's channel.
pub(crate) fn over_ots<A: Send, B: Send>(
    left: impl FnOnce(&mut OtSender, &mut Channel) -> A + Send,
    right: impl FnOnce(&mut OtReceiver, &mut Channel) -> B + Send,
) -> (A, B, Stats) {
    let (mut sender, mut receiver) = ots();
    let (left, (right, stats)) = run_two_parties(
        |channel| left(&mut sender, channel),
        |channel| {
            let result = right(&mut receiver, channel);
            (result, channel.stats())
        },
    );
    (left, right, stats)
}

/// Runs the two parties over memory.
pub(crate) fn sources<A: Send, B: Send>(
    security: Security,
    left: impl FnOnce(&mut Sender, &mut Channel) -> A + Send,
    right: impl FnOnce(&mut Receiver, &mut Channel) -> B + Send,
) -> (A, B) {
    let session = SessionId::from_bytes([8; 32]);
    run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let source = &mut Sender::setup(security, session, rng, channel).unwrap();
            left(source, channel)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let source = &mut Receiver::setup(security, session, rng, channel).unwrap();
            right(source, channel)
        },
    )
}

/// Runs the two parties once for each of `count` bits of their messages, with that bit flipped on
/// the way; returns both results of each run.
pub(crate) fn with_flips<A: Send, B: Send>(
    count: usize,
    left: impl Fn(&mut Sender, &mut Channel) -> Result<A> + Sync,
    right: impl Fn(&mut Receiver, &mut Channel) -> Result<B> + Sync,
) -> Vec<(Result<A>, Result<B>)> {
    let session = SessionId::from_bytes([8; 32]);
    let run = |ends: [Channel; 2]| {
        let [mut left_end, mut right_end] = ends;
        left_end.set_timeout(Some(Duration::from_secs(60)));
        right_end.set_timeout(Some(Duration::from_secs(60)));
        run_two_channels(
            left_end,
            right_end,
            |channel| {
                let rng = Prg::new(Block::from(1));
                left(
                    &mut Sender::setup(Security::Malicious, session, rng, channel)?,
                    channel,
                )
            },
            |channel| {
                let rng = Prg::new(Block::from(2));
                right(
                    &mut Receiver::setup(Security::Malicious, session, rng, channel)?,
                    channel,
                )
            },
        )
    };
    let ((_, clean), _) = run(Channel::memory_pair().into());
    let mut random = Prg::new(Block::from(77));
    let mut all = Vec::new();
    for number in 0..count {
        let from_left = number % 2 == 0;
        let length = if from_left {
            clean.bytes_sent
        } else {
            clean.bytes_received
        };
        // Half of the bits are near the end of the stream, in the online phase.
        let at = if number % 4 < 2 {
            random.below(length)
        } else {
            length - 1 - random.below(length.min(500))
        };
        let flip = 1 << random.below(8);
        let (a, b) = memory::pair();
        let ends = if from_left {
            [Channel::new(Tampered::flip(a, at, flip)), Channel::new(b)]
        } else {
            [Channel::new(a), Channel::new(Tampered::flip(b, at, flip))]
        };
        let ((a, _), (b, _)) = run(ends);
        all.push((a, b));
    }
    all
}

/// The name of the setting on which both parties report a disagreement.
pub(crate) fn difference(
    left: impl FnOnce(&mut Channel) -> Result<()> + Send,
    right: impl FnOnce(&mut Channel) -> Result<()> + Send,
) -> String {
    let name = |result: Result<()>| match result {
        Err(Error::Channel(ChannelError::Mismatch { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    let (a, b) = run_two_parties(
        |channel| name(left(channel)),
        |channel| name(right(channel)),
    );
    assert_eq!(a, b);
    a
}
