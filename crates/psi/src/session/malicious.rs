//! Malicious peers that deviate in one step. For every check of an honest party there is a peer
//! that only this check stops: without the check the run ends in another way.
//!
//! The tests here concern both parties; `receivers` and `senders` hold the attacks that only one of
//! them can make.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod receivers;
mod senders;

use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError};

use super::tests::{SESSION, dealt};
use super::*;
use crate::agree::commitment;
use crate::error::Error;
use crate::fixtures::{assert_caught, assert_disconnected, common, items, meet};
use crate::intersect::{ReceiverResult, SenderResult};
use crate::lookup::LookupReceiverResult;
use crate::params::MAX_ITEMS;

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

/// The terms of an honest party of an intersection with the first settings.
static TERMS: std::sync::LazyLock<Terms> =
    std::sync::LazyLock::new(|| ONE.terms(Protocol::Intersection, 1));

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

/// Step 0 as an honest receiver does it, with the given terms and size.
fn agree(
    receiver: &mut Receiver,
    terms: Terms,
    size: usize,
    channel: &mut Channel,
) -> Result<Agreement> {
    let (session, rng) = (receiver.session, &mut receiver.rng);
    Agreement::reach(Role::Receiver, session, rng, terms, (size, 0), channel)
}

const DIFFERENT: &str = "it runs another protocol or has other settings";
const TOO_LARGE: &str = "it announced a set larger than the maximum";
const FUNCTIONS_UNKNOWN: &str = "it selected an unknown set of hash functions";
const WRONG_END: &str = "it sent more or less data than the set sizes require";
const PLACES: &str = "it named a place beyond the sender's items";
const TOO_MANY: &str = "it reported more common items than it has items";
const LONG_VALUES: &str = "it announced values longer than the maximum";

/// The part of module `agree` with the given size and terms, then nothing.
fn claim(role: Role, terms: Terms, size: u64, channel: &mut Channel) -> Result<()> {
    let mut opening = [7; 64];
    opening[..8].copy_from_slice(&size.to_le_bytes());
    opening[16..32].copy_from_slice(&terms);
    channel.send(&commitment(SESSION, role, &opening))?;
    channel.recv(&mut [0; 32])?;
    channel.send(&opening)?;
    // Stays until the honest party detects it.
    channel.recv(&mut [0; 64 + 1])?;
    Ok(())
}

#[test]
fn a_size_above_the_bound() {
    for size in [MAX_ITEMS + 1, 1 << 32, u64::MAX] {
        let sent = sender_against(ONE, |_, channel| claim(Role::Receiver, *TERMS, size, channel));
        assert_caught(sent, TOO_LARGE);
        let terms = BOTH.terms(Protocol::Intersection, 1);
        let received =
            receiver_against(BOTH, |_, channel| claim(Role::Sender, terms, size, channel));
        assert_caught(received, TOO_LARGE);
        let terms = ONE.terms(Protocol::Search, 1);
        let found = searcher_against(|_, channel| claim(Role::Sender, terms, size, channel));
        assert_caught(found, TOO_LARGE);
    }
    // The bound itself is a valid size.
    let received =
        receiver_against(ONE, |_, channel| claim(Role::Sender, *TERMS, MAX_ITEMS, channel));
    assert_disconnected(received);
}

/// The largest possible set, and then nothing: the honest party waits, and has allocated no memory
/// for it.
#[test]
fn a_size_that_is_not_meant() {
    let size = MAX_ITEMS as usize;
    for settings in [ONE, BOTH, PAPER] {
        let terms = settings.terms(Protocol::Intersection, 1);
        let sent = sender_against(settings, |mut receiver, channel| {
            agree(&mut receiver, terms, size, channel)?;
            channel.send(&[0; 1000])?;
            Ok(())
        });
        assert_disconnected(sent);
        let received = receiver_against(settings, |sender, channel| {
            let Sender { session, mut rng, .. } = sender;
            Agreement::reach(Role::Sender, session, &mut rng, terms, (size, 0), channel)?;
            channel.send(&[0; 1000])?;
            // Waits for the rows.
            channel.recv(&mut [0; 500])?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

/// A peer that stays connected and sends nothing.
#[test]
fn a_peer_that_falls_silent() {
    let timed_out = |error: Option<Error>| {
        let Some(Error::Channel(ChannelError::TimedOut(text))) = error else {
            panic!("{error:?} is no timeout");
        };
        assert!(!text.contains("secret"));
    };
    let (sender, mut receiver) = dealt(1);
    let (sent, _) = meet(
        |channel| {
            channel.set_timeout(Some(Duration::from_millis(200)));
            sender.intersect(&ours(), ONE, &mut (), channel)
        },
        |channel| {
            agree(&mut receiver, *TERMS, M, channel)?;
            channel.recv(&mut [0]).map_err(Error::from)
        },
    );
    timed_out(sent.err());
    let (sender, receiver) = dealt(1);
    let (_, received) = meet(
        |channel| {
            senders::send(sender, ONE, |_, message| message.truncate(10), channel)?;
            channel.flush()?;
            channel.recv(&mut [0]).map_err(Error::from)
        },
        |channel| {
            channel.set_timeout(Some(Duration::from_millis(200)));
            receiver.intersect(&theirs(), ONE, &mut (), channel)
        },
    );
    timed_out(received.err());
}

/// One party runs set intersection, the other keyword search; or their settings differ.
#[test]
fn parties_that_run_different_things() {
    let (sender, receiver) = dealt(1);
    let timeout = Some(Duration::from_millis(200));
    let (sent, found) = meet(
        |channel| {
            channel.set_timeout(timeout);
            sender.intersect(&ours(), ONE, &mut (), channel)
        },
        |channel| {
            channel.set_timeout(timeout);
            receiver.search(&theirs(), ONE, &mut (), channel)
        },
    );
    assert_caught(sent, DIFFERENT);
    assert_caught(found, DIFFERENT);
    for (left, right) in [(ONE, BOTH), (BOTH, ONE), (ONE, PAPER), (PAPER, ONE)] {
        let (sender, receiver) = dealt(1);
        let (sent, received) = meet(
            |channel| {
                channel.set_timeout(timeout);
                sender.intersect(&ours(), left, &mut (), channel)
            },
            |channel| {
                channel.set_timeout(timeout);
                receiver.intersect(&theirs(), right, &mut (), channel)
            },
        );
        assert_caught(sent, DIFFERENT);
        assert_caught(received, DIFFERENT);
    }
}
