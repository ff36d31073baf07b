//! Malicious receivers.

use super::*;

#[test]
fn unknown_hash_functions() {
    let say = |attempt: u8| {
        sender_against(ONE, move |mut receiver, channel| {
            agree(&mut receiver, *TERMS, M, channel)?;
            channel.send(&[attempt])?;
            Ok(())
        })
    };
    for attempt in [ATTEMPTS, ATTEMPTS + 1, u8::MAX] {
        assert_caught(say(attempt), FUNCTIONS_UNKNOWN);
    }
    assert_disconnected(say(ATTEMPTS - 1));
}

/// Runs the receiver up to its result, which it has not sent yet.
fn receive(
    receiver: Receiver,
    settings: Settings,
    items: &[Vec<u8>],
    channel: &mut Channel,
) -> Result<ReceiverSession> {
    let mut session =
        receiver.begin(items, (Protocol::Intersection, settings), None, &mut (), channel)?;
    let parameters = session.parameters.clone();
    session.listen(&mut (), |session, _, first, places| {
        let mut tags = vec![0; places * parameters.tag];
        for set in 0..parameters.sets() {
            channel.recv(&mut tags)?;
            session.look_up(set, first, &tags);
        }
        Ok(())
    })?;
    channel.recv(&mut [0; 16])?;
    Ok(session)
}

/// The end of a party of this role in a run.
fn end(role: Role, session: &ReceiverSession) -> [u8; 16] {
    session.agreement.end(role, &session.parameters.words())
}

/// Ends that are not the receiver's.
#[test]
fn an_end_that_is_not_the_receivers() {
    for set in [theirs(), Vec::new()] {
        for deviation in 0..4 {
            let sent = sender_against(ONE, |receiver, channel| {
                let session = receive(receiver, ONE, &set, channel)?;
                let mut last = end(Role::Receiver, &session);
                match deviation {
                    0 => last[0] ^= 1,
                    1 => last[15] ^= 0x80,
                    2 => last = [0; 16],
                    _ => last = end(Role::Sender, &session),
                }
                channel.send(&last)?;
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
        // The malicious party is otherwise honest.
        let sent = sender_against(ONE, |receiver, channel| {
            let session = receive(receiver, ONE, &set, channel)?;
            channel.send(&end(Role::Receiver, &session))?;
            Ok(())
        });
        assert!(sent.is_ok());
    }
}

/// Step 6, byte by byte.
fn name_places(bytes: &'static [u8]) -> Result<SenderResult> {
    sender_against(BOTH, |receiver, channel| {
        let session = receive(receiver, BOTH, &theirs(), channel)?;
        channel.send(bytes)?;
        channel.send(&end(Role::Receiver, &session))?;
        Ok(())
    })
}

#[test]
fn places_after_the_last() {
    for bytes in [&[0, 1 << 5], &[0, 1 << 6], &[0, 1 << 7], &[1, 0xff]] {
        assert_caught(name_places(bytes), PLACES);
    }
    // The last place.
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

/// The receiver can lie to the sender about the common items; the sender's numbers are ascending in
/// any case.
#[test]
fn places_that_are_not_common() {
    for settings in [BOTH, Settings { both: true, ..PAPER }] {
        let sent = sender_against(settings, |receiver, channel| {
            let session = receive(receiver, settings, &theirs(), channel)?;
            channel.send(&[0b1010_1010, 0b1_0101])?;
            channel.send(&end(Role::Receiver, &session))?;
            Ok(())
        });
        let common = sent.unwrap().common.unwrap();
        assert_eq!(common.len(), 7);
        assert!(common.is_sorted() && common.iter().all(|&item| item < N));
    }
}

/// One row more than the sizes require is read as the end; one row less leaves the sender waiting.
#[test]
fn rows_that_are_too_many_or_too_few() {
    let extend = |mut receiver: Receiver, more: isize, channel: &mut Channel| {
        let agreement = agree(&mut receiver, *TERMS, M, channel)?;
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
        channel.send(&agreement.end(Role::Receiver, &parameters.words()))?;
        channel.flush()?;
        Ok(())
    };
    let sent = sender_against(ONE, |receiver, channel| {
        let run = extend(receiver, 1, channel)?;
        finish(run, channel)
    });
    assert_caught(sent, WRONG_END);
    let sent = sender_against(ONE, |receiver, channel| extend(receiver, -1, channel).map(|_| ()));
    assert_disconnected(sent);
    let sent = sender_against(ONE, |receiver, channel| {
        let run = extend(receiver, 0, channel)?;
        finish(run, channel)
    });
    assert!(sent.is_ok(), "right but for the number of rows");
}
