//! Malicious receivers.

use super::*;

#[test]
fn unknown_hash_functions() {
    let say = |attempt: u8| {
        sender_against(ONE, move |receiver, channel| {
            let Receiver { session, mut rng, .. } = receiver;
            let terms = ONE.terms(Protocol::Intersection, 1);
            Agreement::reach(Role::Receiver, session, &mut rng, terms, (M, 0), channel)?;
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
