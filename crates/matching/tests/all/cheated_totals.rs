//! A peer that deviates in a run for a total, for each check of its messages.

use volery_channel::{Channel, Role, SessionId, handshake, run_two_unchecked};
use volery_matching::totals::{Outcome, PreparedTable, Recipient};
use volery_matching::{Error, Options, ProtocolChoice, ResultKind};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::{circuit, count};
use volery_tables::{Reading, Rule};

use crate::common::{rows, table};

type CheatResult = Result<(), Box<dyn std::error::Error>>;

/// Keys of the honest party.
const KEYS: u32 = 5;

fn side(role: Role, name: ProtocolChoice) -> PreparedTable {
    let (result, to) = (ResultKind::Count, Some(Recipient::Both));
    let options = Options { role, result, to, protocol: name, ..Options::default() };
    let settings = options.totals().unwrap();
    let reading = Reading { rules: vec![Rule::parse("a").unwrap()], ..Reading::default() };
    PreparedTable::read(&table(&rows(0..KEYS)), &reading, &settings, &mut ()).unwrap()
}

/// Runs the honest sender against a receiver that goes its own way after the handshake.
fn against(
    name: ProtocolChoice,
    cheat: impl FnOnce((SessionId, Prg), &mut Channel) -> CheatResult + Send,
) -> Result<Outcome, Error> {
    let honest = side(Role::Sender, name);
    let cheating = side(Role::Receiver, name);
    let hello = cheating.settings().hello(&cheating.summary().key_description);
    run_two_unchecked(
        |channel| honest.run(channel, &mut ()),
        |channel| {
            let session = handshake(channel, &hello, [7; 32]).unwrap();
            // The honest party ends the run: the rest may fail.
            let _ = cheat((session, Prg::new(Block::new(1))), channel);
            let _ = channel.flush();
        },
    )
    .0
}

fn announce(keys: u64, channel: &mut Channel) -> CheatResult {
    channel.send(&keys.to_le_bytes())?;
    channel.recv(&mut [0; 8])?;
    Ok(())
}

fn assert_blamed(result: Result<Outcome, Error>, why: &str) {
    let error = result.err().unwrap().to_string();
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_set_larger_than_the_maximum() {
    for keys in [circuit::MAX_ITEMS + 1, u64::MAX] {
        let result = against(ProtocolChoice::Circuit, |_, channel| announce(keys, channel));
        assert_blamed(result, "it announced a set larger than the maximum");
    }
}

const ITEMS: [&str; 3] = ["a", "b", "c"];

#[test]
fn a_set_of_another_size_than_announced() {
    let result = against(ProtocolChoice::Circuit, |randomness, channel| {
        announce(2, channel)?;
        let settings = circuit::Settings { weights: 1, ..circuit::Settings::default() };
        let weights: &[&[u64]] = &[&[1, 1, 1]];
        let items = &ITEMS[..];
        circuit::Receiver::setup(items, weights, settings, randomness, &mut (), channel)?;
        Ok(())
    });
    assert_blamed(result, "its set has another size than it announced");
    let result = against(ProtocolChoice::Dh, |(session, rng), channel| {
        announce(4, channel)?;
        count::receive((session, rng), &ITEMS[..], &mut (), channel)?;
        Ok(())
    });
    assert_blamed(result, "its set has another size than it announced");
}

/// By Diffie-Hellman the receiver counts, and says the number to the sender.
#[test]
fn more_common_keys_than_there_are() {
    for (reported, most) in [(3, 3), (4, 3), (u64::MAX, 3)] {
        let result = against(ProtocolChoice::Dh, |(session, rng), channel| {
            announce(3, channel)?;
            count::receive((session, rng), &ITEMS[..], &mut (), channel)?;
            channel.send(&u64::to_le_bytes(reported))?;
            Ok(())
        });
        match reported <= most {
            true => assert_eq!(result.unwrap().totals[0].count, Some(3)),
            false => assert_blamed(result, "it reports more common keys than there are"),
        }
    }
}
