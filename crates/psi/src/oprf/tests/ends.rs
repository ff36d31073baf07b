//! Failed calls and the state after them.

use volery_channel::memory;
use volery_channel::tamper::Tampered;

use super::*;

#[test]
fn a_sender_that_failed_is_broken() {
    let code = Code::new(&SEED, 440);
    for missing in [1, 54, 55] {
        let (mut sender, mut receiver) = dealt(1);
        let first = extend(&mut sender, &mut receiver, &code, &inputs(3, 1));
        let (mut near, mut far) = Channel::memory_pair();
        near.send(&vec![0; 10 * 55 - missing]).unwrap();
        near.flush().unwrap();
        drop(near);
        assert!(matches!(sender.extend(&code, 10, &mut far), Err(Error::Disconnected)));
        assert!(sender.0.is_none(), "its secrets are gone");
        let (_near, mut far) = Channel::memory_pair();
        for n in [0, 1] {
            let again = sender.extend(&code, n, &mut far);
            assert!(matches!(again, Err(Error::Broken)));
        }
        let shifted = sender.shift(&code, &[], &mut []);
        assert!(matches!(shifted, Err(Error::Broken)));
        let value = first.keys.evaluate(&sender, &code, 0, Block::ONE);
        assert!(matches!(value, Err(Error::Broken)));
    }
}

#[test]
fn a_receiver_that_failed_is_broken() {
    let code = Code::new(&SEED, 440);
    // Cut in the first piece, and in the second.
    for end in [0, 54, (MESSAGE as u64) * 55 + 1] {
        let (_, mut receiver) = dealt(1);
        let (near, _far) = memory::pair();
        let mut cut = Channel::new(Tampered::truncated(near, end));
        let inputs = inputs(MESSAGE + 7, 1);
        let mut outputs = vec![Block::ZERO; inputs.len()];
        let failed = receiver.extend(&code, &inputs, &mut outputs, &mut cut);
        assert!(matches!(failed, Err(Error::Disconnected)), "{failed:?}");
        assert!(receiver.0.is_none(), "its secrets are gone");
        let (mut near, _far) = Channel::memory_pair();
        for n in [0, 1] {
            let again = receiver.extend(&code, &inputs[..n], &mut outputs[..n], &mut near);
            assert!(matches!(again, Err(Error::Broken)));
        }
        assert_eq!(near.stats().bytes_sent, 0);
    }
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn there_is_no_instance_after_the_last() {
    let code = Code::new(&SEED, 440);
    let (mut sender, mut receiver) = dealt(1);
    let made = extend(&mut sender, &mut receiver, &code, &inputs(5, 1));
    let _ = made.keys.evaluate(&sender, &code, 5, Block::ONE);
}
