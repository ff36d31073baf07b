//! Malicious senders.

use super::*;
use crate::lookup::{MAX_VALUE, add_stream, split};
use crate::truncate::write_cut;

/// The sender, up to step 4.
pub(super) fn send(
    sender: Sender,
    settings: Settings,
    channel: &mut Channel,
) -> Result<SenderSession> {
    let mut session =
        sender.begin(&ours(), 0, (Protocol::Intersection, settings), &mut (), channel)?;
    let tag = session.parameters.tag;
    let mut message = Vec::new();
    session.answer(&mut (), |_, _, sets, _| {
        for set in sets {
            let start = message.len();
            message.resize(start + set.values.len() * tag, 0);
            write_cut(set.values.iter().copied(), tag, &mut message[start..]);
        }
        Ok(())
    })?;
    channel.send(&message)?;
    Ok(session)
}

/// The end of a party of this role in a run.
fn end(role: Role, session: &SenderSession) -> [u8; 16] {
    session.agreement.end(role, &session.parameters.words())
}

#[test]
fn an_end_that_is_not_the_senders() {
    for settings in [ONE, BOTH, PAPER] {
        for deviation in 0..4 {
            let received = receiver_against(settings, |sender, channel| {
                let session = send(sender, settings, channel)?;
                let mut last = end(Role::Sender, &session);
                match deviation {
                    0 => last[0] ^= 1,
                    1 => last[15] ^= 0x80,
                    2 => last = [0; 16],
                    _ => last = end(Role::Receiver, &session),
                }
                channel.send(&last)?;
                Ok(())
            });
            assert_caught(received, WRONG_END);
        }
        let received = receiver_against(settings, |sender, channel| {
            send(sender, settings, channel)?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

/// The same outputs at several places, as if these items of the sender were one. The run ends as
/// usual and with a result, in which the first place counts: an error, now or in place of further
/// parts of a larger run, would tell the sender that the receiver has the item.
#[test]
fn two_outputs_for_one_item() {
    for settings in [ONE, BOTH, PAPER] {
        for times in [1, 2, 3, N] {
            let (sender, receiver) = dealt(1);
            let (ended, received) = meet(
                |channel| repeat(sender, settings, times, channel),
                |channel| receiver.intersect(&theirs(), settings, &mut (), channel),
            );
            ended.unwrap();
            let found = received.unwrap().common;
            let all = common(&theirs(), &ours());
            assert!(found.contains(&COMMON_11) && found.iter().all(|item| all.contains(item)));
            assert!(times > 1 || found == all);
        }
    }
}

/// The receiver's number of item 11.
const COMMON_11: usize = 1;

/// A sender that repeats the outputs of item 11 at as many places, up to the receiver's end.
fn repeat(sender: Sender, settings: Settings, times: usize, channel: &mut Channel) -> Result<()> {
    let terms = (Protocol::Intersection, settings);
    let mut session = sender.begin(&ours(), 0, terms, &mut (), channel)?;
    let tag = session.parameters.tag;
    session.answer(&mut (), |sender_set, _, sets, _| {
        let common = (0..N).find(|&place| sender_set.item(place) == 11).unwrap();
        for set in sets {
            let mut outputs = set.values.clone();
            for step in 1..times {
                outputs[(common + step) % N] = outputs[common];
            }
            let mut message = vec![0; N * tag];
            write_cut(outputs.iter().copied(), tag, &mut message);
            channel.send(&message)?;
        }
        Ok(())
    })?;
    let words = session.parameters.words();
    channel.send(&session.agreement.end(Role::Sender, &words))?;
    if settings.both {
        channel.recv(&mut [0; 2])?;
    }
    let mut end = [0; 16];
    channel.recv(&mut end)?;
    assert_eq!(end, session.agreement.end(Role::Receiver, &words));
    Ok(())
}

/// Random outputs, of none of the sender's items: the receiver finds nothing, and the run succeeds.
#[test]
fn outputs_that_are_noise() {
    for settings in [ONE, BOTH, PAPER] {
        let received = receiver_against(settings, |sender, channel| {
            let terms = (Protocol::Intersection, settings);
            let mut session = sender.begin(&ours(), 0, terms, &mut (), channel)?;
            let (tag, mut noise) = (session.parameters.tag, Prg::new(Block::new(9)));
            session.answer(&mut (), |_, _, sets, _| {
                for set in sets {
                    let mut message = vec![0; set.values.len() * tag];
                    noise.fill_bytes(&mut message);
                    channel.send(&message)?;
                }
                Ok(())
            })?;
            channel.send(&end(Role::Sender, &session))?;
            if settings.both {
                let mut places = [0; 2];
                channel.recv(&mut places)?;
                assert_eq!(places, [0; 2]);
            }
            channel.recv(&mut [0; 16])?;
            Ok(())
        });
        assert_eq!(received.unwrap().common, Vec::<usize>::new());
    }
}

/// The sender of a keyword search, with a given length in each ciphertext.
fn answer(sender: Sender, longest: u64, length: u16, channel: &mut Channel) -> Result<()> {
    let mut session = sender.begin(&ours(), longest, (Protocol::Search, ONE), &mut (), channel)?;
    let (tag, base) = (session.parameters.tag, session.search());
    session.answer(&mut (), |_, _, sets, _| {
        let key = Block::new(5);
        for set in sets {
            let mut blocks = set.values.clone();
            let mut masks = vec![key; blocks.len()];
            split(base, &set.inputs, &mut blocks, &mut masks);
            let mut tags = vec![0; blocks.len() * tag];
            write_cut(blocks.iter().copied(), tag, &mut tags);
            channel.send(&tags)?;
            channel.send_blocks(&masks)?;
        }
        for place in 0..N {
            let mut ciphertext = vec![0; 2 + longest as usize];
            ciphertext[..2].copy_from_slice(&length.to_le_bytes());
            add_stream(key, base, place, &mut ciphertext);
            channel.send(&ciphertext)?;
        }
        Ok(())
    })?;
    channel.send(&end(Role::Sender, &session))?;
    channel.recv(&mut [0; 16])?;
    Ok(())
}

#[test]
fn values_that_are_too_long() {
    for longest in [MAX_VALUE as u64 + 1, u64::from(u32::MAX), u64::MAX] {
        let found = searcher_against(|sender, channel| {
            sender.begin(&ours(), longest, (Protocol::Search, ONE), &mut (), channel)?;
            Ok(())
        });
        assert_caught(found, LONG_VALUES);
    }
}

#[test]
fn a_value_longer_than_announced() {
    for (longest, length) in
        [(0, 1), (3, 4), (3, u16::MAX), (MAX_VALUE as u64, MAX_VALUE as u16 + 1)]
    {
        // The value is cut to what there is, and its item is as any other.
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        let found = found.unwrap();
        assert_eq!(found.items, common(&theirs(), &ours()));
        assert_eq!(found.values, vec![vec![0; longest as usize]; 3]);
    }
    for (longest, length) in [(0, 0), (3, 0), (3, 3), (MAX_VALUE as u64, MAX_VALUE as u16)] {
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        let found = found.unwrap();
        assert_eq!(found.items, common(&theirs(), &ours()));
        assert_eq!(found.values, vec![vec![0; usize::from(length)]; 3]);
    }
}
