//! Two parties with their offline phases set up, or with a dealer's OTs, for the tests of this
//! crate.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats, run_two_parties};
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
    (convert::Sender::new(sender, session), convert::Receiver::new(receiver, session))
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

/// The name of the setting on which both parties report a disagreement.
pub(crate) fn difference(
    left: impl FnOnce(&mut Channel) -> Result<()> + Send,
    right: impl FnOnce(&mut Channel) -> Result<()> + Send,
) -> String {
    let name = |result: Result<()>| match result {
        Err(Error::Channel(ChannelError::Mismatch { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    let (a, b) = run_two_parties(|channel| name(left(channel)), |channel| name(right(channel)));
    assert_eq!(a, b);
    a
}
