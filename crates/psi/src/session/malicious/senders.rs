//! Malicious senders.

use super::*;
use crate::lookup::{MAX_VALUE, add_stream, split};
use crate::truncate::write_cut;

/// The sender, with a change to everything it sends in step 4.
pub(super) fn send(
    sender: Sender,
    settings: Settings,
    change: impl FnOnce(&Parameters, &mut Vec<u8>),
    channel: &mut Channel,
) -> Result<SenderSession> {
    let mut session = sender.begin(
        &ours(),
        0,
        (Protocol::Intersection, settings),
        &mut (),
        channel,
    )?;
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
    change(&session.parameters, &mut message);
    channel.send(&message)?;
    Ok(session)
}

#[test]
fn an_end_that_is_not_the_senders() {
    for settings in [ONE, BOTH, PAPER] {
        for deviation in 0..4 {
            let received = receiver_against(settings, |sender, channel| {
                let session = send(sender, settings, |_, _| (), channel)?;
                let mut end = session
                    .agreement
                    .end(Role::Sender, &session.parameters.words());
                match deviation {
                    0 => end[0] ^= 1,
                    1 => end[15] ^= 0x80,
                    2 => end = [0; 16],
                    _ => {
                        end = session
                            .agreement
                            .end(Role::Receiver, &session.parameters.words())
                    }
                }
                channel.send(&end)?;
                Ok(())
            });
            assert_caught(received, WRONG_END);
        }
        let received = receiver_against(settings, |sender, channel| {
            send(sender, settings, |_, _| (), channel)?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

/// One output more is read as the end; one less leaves the receiver waiting, until the sender
/// disconnects or the time is up.
#[test]
fn outputs_that_are_too_many_or_too_few() {
    for settings in [ONE, BOTH, PAPER] {
        let received = receiver_against(settings, |sender, channel| {
            let more = |parameters: &Parameters, message: &mut Vec<u8>| {
                message.resize(message.len() + parameters.tag, 5);
            };
            let session = send(sender, settings, more, channel)?;
            channel.send(
                &session
                    .agreement
                    .end(Role::Sender, &session.parameters.words()),
            )?;
            Ok(())
        });
        assert_caught(received, WRONG_END);
        let received = receiver_against(settings, |sender, channel| {
            let less = |parameters: &Parameters, message: &mut Vec<u8>| {
                message.truncate(message.len() - parameters.tag);
            };
            let session = send(sender, settings, less, channel)?;
            channel.send(
                &session
                    .agreement
                    .end(Role::Sender, &session.parameters.words())[..4],
            )?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

/// The same outputs at two places, as if two items of the sender were one.
#[test]
fn two_outputs_for_one_item() {
    let repeat = |sender: Sender, settings: Settings, times: usize, channel: &mut Channel| {
        let mut session = sender.begin(
            &ours(),
            0,
            (Protocol::Intersection, settings),
            &mut (),
            channel,
        )?;
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
        channel.send(
            &session
                .agreement
                .end(Role::Sender, &session.parameters.words()),
        )?;
        if settings.both {
            channel.recv(&mut [0; 2])?;
        }
        channel.recv(&mut [0; 16])?;
        Ok(())
    };
    for settings in [ONE, BOTH, PAPER] {
        for times in [2, 3, N] {
            let received = receiver_against(settings, |sender, channel| {
                repeat(sender, settings, times, channel)
            });
            assert_caught(received, TWICE);
        }
        let received = receiver_against(settings, |sender, channel| {
            repeat(sender, settings, 1, channel)
        });
        assert_eq!(received.unwrap().common, common(&theirs(), &ours()));
    }
}

/// A receiver that detects a deviation ends as usual before it reports the error: stopping early
/// would tell the sender that the receiver has the item in question.
#[test]
fn a_suspicion_is_kept_to_the_end() {
    for settings in [ONE, BOTH, PAPER] {
        for twice in [false, true] {
            let (sender, receiver) = dealt(1);
            let (ended, received) = meet(
                |channel| -> Result<bool> {
                    let mut session = sender.begin(
                        &ours(),
                        0,
                        (Protocol::Intersection, settings),
                        &mut (),
                        channel,
                    )?;
                    let tag = session.parameters.tag;
                    session.answer(&mut (), |sender_set, _, sets, _| {
                        let common = (0..N).find(|&place| sender_set.item(place) == 11).unwrap();
                        for set in sets {
                            let mut outputs = set.values.clone();
                            if twice {
                                outputs[(common + 1) % N] = outputs[common];
                            }
                            let mut message = vec![0; N * tag];
                            write_cut(outputs.iter().copied(), tag, &mut message);
                            channel.send(&message)?;
                        }
                        Ok(())
                    })?;
                    channel.send(
                        &session
                            .agreement
                            .end(Role::Sender, &session.parameters.words()),
                    )?;
                    if settings.both {
                        channel.recv(&mut [0; 2])?;
                    }
                    let mut end = [0; 16];
                    channel.recv(&mut end)?;
                    Ok(end
                        == session
                            .agreement
                            .end(Role::Receiver, &session.parameters.words()))
                },
                |channel| receiver.intersect(&theirs(), settings, &mut (), channel),
            );
            assert!(ended.unwrap(), "the sender saw another end");
            assert_eq!(received.is_err(), twice);
        }
    }
    let (sender, receiver) = dealt(1);
    let (ended, found) = meet(
        |channel| answer(sender, 3, 4, channel),
        |channel| receiver.search(&theirs(), ONE, &mut (), channel),
    );
    ended.unwrap();
    assert_caught(found, LONG_VALUE);
}

/// Random outputs, of none of the sender's items: the receiver finds nothing, and the run succeeds.
#[test]
fn outputs_that_are_noise() {
    for settings in [ONE, BOTH, PAPER] {
        let received = receiver_against(settings, |sender, channel| {
            let noise = |_: &Parameters, message: &mut Vec<u8>| {
                Prg::new(Block::new(9)).fill_bytes(message);
            };
            let session = send(sender, settings, noise, channel)?;
            channel.send(
                &session
                    .agreement
                    .end(Role::Sender, &session.parameters.words()),
            )?;
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
    channel.send(
        &session
            .agreement
            .end(Role::Sender, &session.parameters.words()),
    )?;
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
    for (longest, length) in [
        (0, 1),
        (3, 4),
        (3, u16::MAX),
        (MAX_VALUE as u64, MAX_VALUE as u16 + 1),
    ] {
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        assert_caught(found, LONG_VALUE);
    }
    for (longest, length) in [(0, 0), (3, 0), (3, 3), (MAX_VALUE as u64, MAX_VALUE as u16)] {
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        let found = found.unwrap();
        assert_eq!(found.items, common(&theirs(), &ours()));
        assert_eq!(found.values, vec![vec![0; usize::from(length)]; 3]);
    }
}
