//! Two parties with their offline phases set up, or with a dealer's OTs, for the tests of this
//! crate.

use volery_channel::{Channel, Error as ChannelError, SessionId, Stats, run_two_parties};
use volery_field::Ring;
use volery_ot::{convert, ideal};
use volery_pcg::Security;
use volery_primitives::{Block, prg::Prg};

use crate::{
    error::{Error, Result},
    offline::{Receiver, Sender},
};

pub(crate) fn rng(seed: u128) -> Prg {
    Prg::new(Block::from(seed))
}

/// Random elements.
pub(crate) fn random<R: Ring>(n: usize, seed: u128) -> Vec<R> {
    let mut out = vec![R::ZERO; n];
    R::random_slice(&mut rng(seed), &mut out);
    out
}

/// The random elements of two parties.
pub(crate) fn random_pair<R: Ring>(n: usize) -> [Vec<R>; 2] {
    [random(n, 2 * n as u128), random(n, 2 * n as u128 + 1)]
}

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
            let source = &mut Sender::setup(security, session, rng(1), channel).unwrap();
            left(source, channel)
        },
        |channel| {
            let source = &mut Receiver::setup(security, session, rng(2), channel).unwrap();
            right(source, channel)
        },
    )
}

/// Asserts that both parties report a disagreement on a setting, whose name begins or ends so.
pub(crate) fn assert_differ(
    setting: &str,
    left: impl FnOnce(&mut Channel) -> Result<()> + Send,
    right: impl FnOnce(&mut Channel) -> Result<()> + Send,
) {
    let name = |result: Result<()>| match result {
        Err(Error::Channel(ChannelError::Mismatch { field, .. })) => field,
        other => panic!("{other:?}"),
    };
    let (a, b) = run_two_parties(|channel| name(left(channel)), |channel| name(right(channel)));
    assert!(a == b && a.contains(setting), "{a} and {b} are not {setting}");
}

/// [`assert_differ`] for two parties with their sources set up.
pub(crate) fn assert_offline_differ(
    setting: &str,
    left: impl FnOnce(&mut Sender, &mut Channel) -> Result<()> + Send,
    right: impl FnOnce(&mut Receiver, &mut Channel) -> Result<()> + Send,
) {
    let (security, session) = (Security::SemiHonest, SessionId::from_bytes([8; 32]));
    assert_differ(
        setting,
        |channel| left(&mut Sender::setup(security, session, rng(1), channel)?, channel),
        |channel| right(&mut Receiver::setup(security, session, rng(2), channel)?, channel),
    );
}

/// Asserts that the peer was found not to follow the protocol.
pub(crate) fn assert_misbehaved<T>(result: Result<T>) {
    assert!(matches!(result, Err(Error::Channel(ChannelError::PeerMisbehaved(_)))));
}

/// Sends elements of fp61, and then encodings of none.
pub(crate) fn send_no_elements(good: usize, bad: usize, channel: &mut Channel) {
    channel.send(&vec![0; 8 * good]).unwrap();
    channel.send(&vec![0xff; 8 * bad]).unwrap();
    channel.flush().unwrap();
}
