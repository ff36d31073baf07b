//! Peers that follow the protocol but for one step. For every check of an honest party there is one that only this check
//! stops: without it the run ends in another way.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::time::Duration;

use volery_channel::{Channel, Error as ChannelError, run_two_channels};
use volery_primitives::aes::rekeyed;

use super::tests::{common, dealt, items};
use super::*;
use crate::error::Error;
use crate::intersect::{Received, Sent};
use crate::lookup::{Found, MAX_VALUE};
use crate::params::MAX_ITEMS;

/// Items of the sender, of the receiver; common are 10 to 12.
const N: usize = 13;
const M: usize = 11;

fn ours() -> Vec<Vec<u8>> {
    items(0..N)
}

fn theirs() -> Vec<Vec<u8>> {
    items(10..10 + M)
}

const ONE: Settings = Settings {
    variant: Variant::Kkrt,
    both: false,
};

const BOTH: Settings = Settings {
    variant: Variant::Kkrt,
    both: true,
};

const PAPER: Settings = Settings {
    variant: Variant::KkrtPaper,
    both: false,
};

/// Two parties in memory. One that gets nothing for a while gives up.
fn meet<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> (A, B) {
    let (mut near, mut far) = Channel::memory_pair();
    near.set_timeout(Some(Duration::from_secs(20)));
    far.set_timeout(Some(Duration::from_secs(20)));
    let ((a, _), (b, _)) = run_two_channels(near, far, left, right);
    (a, b)
}

/// What becomes of an honest sender.
fn sender_against(
    settings: Settings,
    villain: impl FnOnce(Receiver, &mut Channel) -> Result<()> + Send,
) -> Result<Sent> {
    let (sender, receiver) = dealt(1);
    let (sent, _) = meet(
        |channel| sender.intersect(&ours(), settings, &mut (), channel),
        |channel| {
            villain(receiver, channel)?;
            channel.flush().map_err(Error::from)
        },
    );
    sent
}

/// What becomes of an honest receiver.
fn receiver_against(
    settings: Settings,
    villain: impl FnOnce(Sender, &mut Channel) -> Result<()> + Send,
) -> Result<Received> {
    let (sender, receiver) = dealt(1);
    let (_, received) = meet(
        |channel| {
            villain(sender, channel)?;
            channel.flush().map_err(Error::from)
        },
        |channel| receiver.intersect(&theirs(), settings, &mut (), channel),
    );
    received
}

/// What becomes of an honest receiver that searches.
fn searcher_against(
    villain: impl FnOnce(Sender, &mut Channel) -> Result<()> + Send,
) -> Result<Found> {
    let (sender, receiver) = dealt(1);
    let (_, found) = meet(
        |channel| {
            villain(sender, channel)?;
            channel.flush().map_err(Error::from)
        },
        |channel| receiver.search(&theirs(), ONE, &mut (), channel),
    );
    found
}

/// The error is that of one check, and names no item.
fn assert_caught<T>(result: Result<T>, why: &str) {
    let Some(Error::Channel(error)) = result.err() else {
        panic!("not caught: {why}");
    };
    assert!(
        matches!(error, ChannelError::PeerMisbehaved(text) if text == why),
        "{error} instead of: {why}"
    );
    assert!(!format!("{error} {error:?}").contains("secret"));
}

fn assert_disconnected<T>(result: Result<T>) {
    let Some(Error::Channel(error)) = result.err() else {
        panic!("it did not fail");
    };
    assert!(matches!(error, ChannelError::Disconnected), "{error}");
}

const OPENING: &str = "it opened another share of the seed than it had committed to";
const TOO_LARGE: &str = "its set is larger than any version takes";
const FUNCTIONS_UNKNOWN: &str = "it names hash functions that there are not";
const WRONG_END: &str = "it sent more or less than the sizes of the sets ask for";
const PLACES: &str = "it names more places than there are items";
const TOO_MANY: &str = "it has more common items than items";
const TWICE: &str = "two of its outputs are for the same item";
const LONG_VALUES: &str = "its values are longer than values can be";
const LONG_VALUE: &str = "a value is longer than it said";

/// The first message with a size, and a share that was never committed to.
fn claim(size: u64, channel: &mut Channel) -> Result<()> {
    let mut message = [0; 48];
    message[..8].copy_from_slice(&size.to_le_bytes());
    channel.send(&message)?;
    channel.send(&[7; 32])?;
    // Stays until it is found out.
    channel.recv(&mut [0; 48 + 33])?;
    Ok(())
}

#[test]
fn a_share_that_was_not_committed_to() {
    for settings in [ONE, BOTH, PAPER] {
        let sent = sender_against(settings, |_, channel| claim(5, channel));
        assert_caught(sent, OPENING);
        let received = receiver_against(settings, |_, channel| claim(5, channel));
        assert_caught(received, OPENING);
    }
    assert_caught(searcher_against(|_, channel| claim(5, channel)), OPENING);
}

/// Who repeats what the other says would choose the seed to be one that both shares cancel from: the role is part of the
/// commitment.
#[test]
fn a_share_that_is_the_others() {
    fn echo(channel: &mut Channel) -> Result<()> {
        let mut bytes = [0; 48];
        channel.recv(&mut bytes)?;
        channel.send(&bytes)?;
        let mut share = [0; 32];
        channel.recv(&mut share)?;
        channel.send(&share)?;
        Ok(())
    }
    assert_caught(sender_against(ONE, |_, channel| echo(channel)), OPENING);
    assert_caught(receiver_against(ONE, |_, channel| echo(channel)), OPENING);
}

#[test]
fn a_size_above_the_bound() {
    for size in [MAX_ITEMS + 1, 1 << 32, u64::MAX] {
        let sent = sender_against(ONE, |_, channel| claim(size, channel));
        assert_caught(sent, TOO_LARGE);
        let received = receiver_against(BOTH, |_, channel| claim(size, channel));
        assert_caught(received, TOO_LARGE);
        assert_caught(
            searcher_against(|_, channel| claim(size, channel)),
            TOO_LARGE,
        );
    }
    // The bound itself is a size like any other.
    let sent = sender_against(ONE, |_, channel| claim(MAX_ITEMS, channel));
    assert_caught(sent, OPENING);
}

/// The largest set there can be, and then nothing: the honest party waits, and has taken no memory for it.
#[test]
fn a_size_that_is_not_meant() {
    let size = MAX_ITEMS as usize;
    for settings in [ONE, BOTH, PAPER] {
        let sent = sender_against(settings, |mut receiver, channel| {
            let (session, rng) = (receiver.session, &mut receiver.rng);
            Agreement::reach(Role::Receiver, size, 0, session, rng, channel)?;
            channel.send(&[0; 1000])?;
            Ok(())
        });
        assert_disconnected(sent);
        let received = receiver_against(settings, |mut sender, channel| {
            let (session, rng) = (sender.session, &mut sender.rng);
            Agreement::reach(Role::Sender, size, 0, session, rng, channel)?;
            channel.send(&[0; 1000])?;
            // Waits for the rows.
            channel.recv(&mut [0; 500])?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

#[test]
fn hash_functions_that_there_are_not() {
    let say = |attempt: u8| {
        sender_against(ONE, move |mut receiver, channel| {
            let (session, rng) = (receiver.session, &mut receiver.rng);
            Agreement::reach(Role::Receiver, M, 0, session, rng, channel)?;
            channel.send(&[attempt])?;
            Ok(())
        })
    };
    for attempt in [ATTEMPTS, ATTEMPTS + 1, u8::MAX] {
        assert_caught(say(attempt), FUNCTIONS_UNKNOWN);
    }
    assert_disconnected(say(ATTEMPTS - 1));
}

/// The receiver up to its result, which it has not sent yet.
fn receive(
    receiver: Receiver,
    settings: Settings,
    items: &[Vec<u8>],
    channel: &mut Channel,
) -> Result<ReceiverHalf> {
    let mut half = receiver.begin(items, settings, false, |_| (), &mut (), channel)?;
    let parameters = half.parameters.clone();
    half.listen(&mut (), |half, first, places| {
        let mut tags = vec![0; places * parameters.tag];
        for set in 0..parameters.sets() {
            channel.recv(&mut tags)?;
            half.look_up(set, first, &tags);
        }
        Ok(())
    })?;
    channel.recv(&mut [0; 16])?;
    Ok(half)
}

/// Ends that are not the receiver's.
#[test]
fn an_end_that_is_not_the_receivers() {
    for set in [theirs(), Vec::new()] {
        for cheat in 0..4 {
            let sent = sender_against(ONE, |receiver, channel| {
                let half = receive(receiver, ONE, &set, channel)?;
                let mut end = half.agreement.end(Role::Receiver);
                match cheat {
                    0 => end[0] ^= 1,
                    1 => end[15] ^= 0x80,
                    2 => end = [0; 16],
                    _ => end = half.agreement.end(Role::Sender),
                }
                channel.send(&end)?;
                Ok(())
            });
            assert_caught(sent, WRONG_END);
        }
        let sent = sender_against(ONE, |receiver, channel| {
            receive(receiver, ONE, &set, channel)?;
            channel.send(&[0; 15])?;
            Ok(())
        });
        assert_disconnected(sent);
        // What the villain does is right but for that.
        let sent = sender_against(ONE, |receiver, channel| {
            let half = receive(receiver, ONE, &set, channel)?;
            channel.send(&half.agreement.end(Role::Receiver))?;
            Ok(())
        });
        assert!(sent.is_ok());
    }
}

/// Step 6, byte by byte.
fn name_places(bytes: &'static [u8]) -> Result<Sent> {
    sender_against(BOTH, |receiver, channel| {
        let half = receive(receiver, BOTH, &theirs(), channel)?;
        channel.send(bytes)?;
        channel.send(&half.agreement.end(Role::Receiver))?;
        Ok(())
    })
}

#[test]
fn places_after_the_last() {
    for bytes in [[0, 1 << 5], [0, 1 << 6], [0, 1 << 7], [1, 0xff]] {
        assert_caught(name_places(bytes.to_vec().leak()), PLACES);
    }
    // The last place there is.
    let sent = name_places(&[0, 1 << 4]).unwrap();
    assert_eq!(sent.common.unwrap().len(), 1);
}

#[test]
fn more_common_items_than_items() {
    assert_caught(name_places(&[0xff, 0x0f]), TOO_MANY);
    assert_caught(name_places(&[0xff, 0x1f]), TOO_MANY);
    let sent = name_places(&[0xff, 0x0e]).unwrap();
    assert_eq!(sent.common.unwrap().len(), M);
}

/// The receiver may lie about what is common, to the sender alone; the sender's numbers are in order in any case.
#[test]
fn places_that_are_not_common() {
    for settings in [
        BOTH,
        Settings {
            both: true,
            ..PAPER
        },
    ] {
        let sent = sender_against(settings, |receiver, channel| {
            let half = receive(receiver, settings, &theirs(), channel)?;
            channel.send(&[0b1010_1010, 0b1_0101])?;
            channel.send(&half.agreement.end(Role::Receiver))?;
            Ok(())
        });
        let common = sent.unwrap().common.unwrap();
        assert_eq!(common.len(), 7);
        assert!(common.is_sorted() && common.iter().all(|&item| item < N));
    }
}

/// A row more than the sizes ask for is read as the end; a row less leaves the sender waiting.
#[test]
fn rows_that_are_too_many_or_too_few() {
    let extend = |receiver: Receiver, more: isize, channel: &mut Channel| {
        let (session, mut rng) = (receiver.session, receiver.rng);
        let agreement = Agreement::reach(Role::Receiver, M, 0, session, &mut rng, channel)?;
        let parameters = Parameters::new(ONE.variant, N as u64, M as u64);
        let code = Code::new(&agreement.code(), parameters.width);
        channel.send(&[0])?;
        let n = parameters.instances().strict_add_signed(more);
        let mut outputs = vec![Block::ZERO; n];
        let mut oprf = receiver.oprf;
        oprf.extend(&code, &vec![Block::ONE; n], &mut outputs, channel)?;
        Ok::<_, Error>((agreement, parameters))
    };
    let finish = |(agreement, parameters): (Agreement, Parameters), channel: &mut Channel| {
        channel.recv(&mut vec![0; parameters.tag_bytes() as usize + 16])?;
        channel.send(&agreement.end(Role::Receiver))?;
        channel.flush()?;
        Ok(())
    };
    let sent = sender_against(ONE, |receiver, channel| {
        let run = extend(receiver, 1, channel)?;
        finish(run, channel)
    });
    assert_caught(sent, WRONG_END);
    let sent = sender_against(ONE, |receiver, channel| {
        extend(receiver, -1, channel).map(|_| ())
    });
    assert_disconnected(sent);
    let sent = sender_against(ONE, |receiver, channel| {
        let run = extend(receiver, 0, channel)?;
        finish(run, channel)
    });
    assert!(sent.is_ok(), "right but for the number of rows");
}

/// The sender's part, with a change to all that it sends in step 4.
fn send(
    sender: Sender,
    settings: Settings,
    change: impl FnOnce(&Parameters, &mut Vec<u8>),
    channel: &mut Channel,
) -> Result<SenderHalf> {
    let mut half = sender.begin(&ours(), 0, settings, &mut (), channel)?;
    let tag = half.parameters.tag;
    let mut message = Vec::new();
    half.answer(&mut (), |_, _, sets, _| {
        for outputs in sets {
            let start = message.len();
            message.resize(start + outputs.len() * tag, 0);
            write_cut(outputs, tag, &mut message[start..]);
        }
        Ok(())
    })?;
    change(&half.parameters, &mut message);
    channel.send(&message)?;
    Ok(half)
}

#[test]
fn an_end_that_is_not_the_senders() {
    for settings in [ONE, BOTH, PAPER] {
        for cheat in 0..4 {
            let received = receiver_against(settings, |sender, channel| {
                let half = send(sender, settings, |_, _| (), channel)?;
                let mut end = half.agreement.end(Role::Sender);
                match cheat {
                    0 => end[0] ^= 1,
                    1 => end[15] ^= 0x80,
                    2 => end = [0; 16],
                    _ => end = half.agreement.end(Role::Receiver),
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

/// One output more is read as the end; one less leaves the receiver waiting, until the sender is gone or time is up.
#[test]
fn outputs_that_are_too_many_or_too_few() {
    for settings in [ONE, BOTH, PAPER] {
        let received = receiver_against(settings, |sender, channel| {
            let more = |parameters: &Parameters, message: &mut Vec<u8>| {
                message.resize(message.len() + parameters.tag, 5);
            };
            let half = send(sender, settings, more, channel)?;
            channel.send(&half.agreement.end(Role::Sender))?;
            Ok(())
        });
        assert_caught(received, WRONG_END);
        let received = receiver_against(settings, |sender, channel| {
            let less = |parameters: &Parameters, message: &mut Vec<u8>| {
                message.truncate(message.len() - parameters.tag);
            };
            let half = send(sender, settings, less, channel)?;
            channel.send(&half.agreement.end(Role::Sender)[..4])?;
            Ok(())
        });
        assert_disconnected(received);
    }
}

/// A peer that stays and says nothing.
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
            let (session, rng) = (receiver.session, &mut receiver.rng);
            Agreement::reach(Role::Receiver, M, 0, session, rng, channel)?;
            channel.flush()?;
            channel.recv(&mut [0]).map_err(Error::from)
        },
    );
    timed_out(sent.err());
    let (sender, receiver) = dealt(1);
    let (_, received) = meet(
        |channel| {
            send(sender, ONE, |_, message| message.truncate(10), channel)?;
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

/// The same outputs at two places, as if two items of the sender were one.
#[test]
fn two_outputs_for_one_item() {
    let repeat = |sender: Sender, settings: Settings, times: usize, channel: &mut Channel| {
        let mut half = sender.begin(&ours(), 0, settings, &mut (), channel)?;
        let tag = half.parameters.tag;
        half.answer(&mut (), |offer, _, sets, _| {
            let common = (0..N).find(|&place| offer.item(place) == 11).unwrap();
            for outputs in sets {
                let mut outputs = outputs.clone();
                for step in 1..times {
                    outputs[(common + step) % N] = outputs[common];
                }
                let mut message = vec![0; N * tag];
                write_cut(&outputs, tag, &mut message);
                channel.send(&message)?;
            }
            Ok(())
        })?;
        channel.send(&half.agreement.end(Role::Sender))?;
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

/// Outputs of other items than its own, at random: the receiver finds nothing, and nothing breaks.
#[test]
fn outputs_that_are_noise() {
    for settings in [ONE, BOTH, PAPER] {
        let received = receiver_against(settings, |sender, channel| {
            let noise = |_: &Parameters, message: &mut Vec<u8>| {
                Prg::new(Block::new(9)).fill_bytes(message);
            };
            let half = send(sender, settings, noise, channel)?;
            channel.send(&half.agreement.end(Role::Sender))?;
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

/// Keyword search as the sender does it, with a given length in each ciphertext.
fn answer(sender: Sender, longest: u64, length: u16, channel: &mut Channel) -> Result<()> {
    let mut half = sender.begin(&ours(), longest, ONE, &mut (), channel)?;
    let tag = half.parameters.tag;
    let expand = |outputs: &[Block], counter: Block| {
        let mut blocks = vec![counter; outputs.len()];
        rekeyed(outputs, &mut blocks);
        blocks
    };
    half.answer(&mut (), |_, _, sets, _| {
        let key = Block::new(5);
        for outputs in sets {
            let mut tags = vec![0; outputs.len() * tag];
            write_cut(&expand(outputs, Block::ZERO), tag, &mut tags);
            channel.send(&tags)?;
            let mut masks = expand(outputs, Block::ONE);
            masks.iter_mut().for_each(|mask| *mask ^= key);
            channel.send_blocks(&masks)?;
        }
        for _ in 0..N {
            let mut ciphertext = vec![0; 2 + longest as usize];
            Prg::new(key).fill_bytes(&mut ciphertext);
            let length = length.to_le_bytes();
            (ciphertext[0], ciphertext[1]) = (ciphertext[0] ^ length[0], ciphertext[1] ^ length[1]);
            channel.send(&ciphertext)?;
        }
        Ok(())
    })?;
    channel.send(&half.agreement.end(Role::Sender))?;
    channel.recv(&mut [0; 16])?;
    Ok(())
}

#[test]
fn values_that_are_too_long() {
    for longest in [MAX_VALUE as u64 + 1, u64::from(u32::MAX), u64::MAX] {
        let found = searcher_against(|sender, channel| {
            sender.begin(&ours(), longest, ONE, &mut (), channel)?;
            Ok(())
        });
        assert_caught(found, LONG_VALUES);
    }
}

#[test]
fn a_value_that_is_longer_than_it_said() {
    for (longest, length) in [(0, 1), (3, 4), (3, u16::MAX), (MAX_VALUE as u64, 1025)] {
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        assert_caught(found, LONG_VALUE);
    }
    for (longest, length) in [(0, 0), (3, 0), (3, 3), (MAX_VALUE as u64, 1024)] {
        let found = searcher_against(|sender, channel| answer(sender, longest, length, channel));
        let found = found.unwrap();
        assert_eq!(found.items, common(&theirs(), &ours()));
        assert_eq!(found.values, vec![vec![0; usize::from(length)]; 3]);
    }
}

/// One party thinks it is set intersection, the other keyword search; or they have different settings.
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
    assert!(sent.is_err() && found.is_err());
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
        // A receiver that shares what nobody asked for has its result.
        assert!(sent.is_err(), "{left:?} {right:?}");
        assert!(received.is_err() || left.variant == right.variant);
    }
}
