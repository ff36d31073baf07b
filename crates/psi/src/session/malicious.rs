//! Malicious peers that deviate in one step. For every check of an honest party there is a peer
//! that only this check stops: without the check the run ends in another way.
//!
//! The tests here concern both parties; `receivers` and `senders` hold the attacks that only one of
//! them can make.

mod receivers;
mod senders;

use volery_channel::Channel;

use super::tests::dealt;
use super::*;
use crate::error::Error;
use crate::fixtures::{assert_caught, assert_disconnected, common, items, meet};
use crate::intersect::{ReceiverResult, SenderResult};
use crate::lookup::LookupReceiverResult;

/// Number of the sender's items. Items 10 to 12 are common to both parties.
const N: usize = 13;
/// Number of the receiver's items.
const M: usize = 11;

fn ours() -> Vec<Vec<u8>> {
    items(0..N)
}

fn theirs() -> Vec<Vec<u8>> {
    items(10..10 + M)
}

const ONE: Settings = Settings { variant: Variant::Kkrt, both: false };

const BOTH: Settings = Settings { variant: Variant::Kkrt, both: true };

const PAPER: Settings = Settings { variant: Variant::KkrtPaper, both: false };

/// The result of an honest sender.
fn sender_against(
    settings: Settings,
    malicious: impl FnOnce(Receiver, &mut Channel) -> Result<()> + Send,
) -> Result<SenderResult> {
    let (sender, receiver) = dealt(1);
    let (sent, _) = meet(
        |channel| sender.intersect(&ours(), settings, &mut (), channel),
        |channel| {
            malicious(receiver, channel)?;
            channel.flush().map_err(Error::from)
        },
    );
    sent
}

/// The result of an honest receiver.
fn receiver_against(
    settings: Settings,
    malicious: impl FnOnce(Sender, &mut Channel) -> Result<()> + Send,
) -> Result<ReceiverResult> {
    let (sender, receiver) = dealt(1);
    let (_, received) = meet(
        |channel| {
            malicious(sender, channel)?;
            channel.flush().map_err(Error::from)
        },
        |channel| receiver.intersect(&theirs(), settings, &mut (), channel),
    );
    received
}

/// The result of an honest receiver that searches.
fn searcher_against(
    malicious: impl FnOnce(Sender, &mut Channel) -> Result<()> + Send,
) -> Result<LookupReceiverResult> {
    let (sender, receiver) = dealt(1);
    let (_, found) = meet(
        |channel| {
            malicious(sender, channel)?;
            channel.flush().map_err(Error::from)
        },
        |channel| receiver.search(&theirs(), ONE, &mut (), channel),
    );
    found
}

const DIFFERENT: &str = "it runs another protocol or has other settings";
const FUNCTIONS_UNKNOWN: &str = "it selected an unknown set of hash functions";
const WRONG_END: &str = "it sent more or less data than the set sizes require";
const PLACES: &str = "it named a place beyond the sender's items";
const TOO_MANY: &str = "it reported more common items than it has items";
const LONG_VALUES: &str = "it announced values longer than the maximum";

/// One party runs set intersection, the other keyword search; or their settings differ.
#[test]
fn parties_that_run_different_things() {
    let (sender, receiver) = dealt(1);
    let (sent, found) = meet(
        |channel| sender.intersect(&ours(), ONE, &mut (), channel),
        |channel| receiver.search(&theirs(), ONE, &mut (), channel),
    );
    assert_caught(sent, DIFFERENT);
    assert_caught(found, DIFFERENT);
    for (left, right) in [(ONE, BOTH), (BOTH, ONE), (ONE, PAPER), (PAPER, ONE)] {
        let (sender, receiver) = dealt(1);
        let (sent, received) = meet(
            |channel| sender.intersect(&ours(), left, &mut (), channel),
            |channel| receiver.intersect(&theirs(), right, &mut (), channel),
        );
        assert_caught(sent, DIFFERENT);
        assert_caught(received, DIFFERENT);
    }
}
