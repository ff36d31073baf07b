//! The tools for tests: that a protocol runs over ideal and real sources, `volery-mpc` tests.

use std::panic::catch_unwind;

use volery::prelude::*;
use volery::testing::{cot::assert_cot, ots, vole::assert_vole};

#[test]
fn ideal_ots_send_what_was_chosen() {
    let messages = [[Block::from(1), Block::from(2)], [Block::from(3), Block::from(4)]];
    let (mut sender, mut receiver) = ots(5);
    let mut chosen = [Block::ZERO; 2];
    let (sent, received) = run_two_parties(
        |channel| sender.chosen(&messages, channel),
        |channel| receiver.chosen(&[0b10], &mut chosen, channel),
    );
    assert!(sent.is_ok() && received.is_ok());
    assert_eq!(chosen, [messages[0][0], messages[1][1]]);
}

/// The message names the place, and no value.
#[test]
fn assertions_name_the_first_wrong_place() {
    let (v, mut w) = ([Block::ZERO; 20], [Block::ZERO; 20]);
    [w[7], w[9]] = [Block::ONE; 2];
    let wrong = catch_unwind(|| assert_cot(Block::ZERO, &v, &[0; 3], &w));
    let text = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("Some(7)") && text.contains("of 20"), "{text}");
    let (v, w) = ([Fp61::ZERO; 2], [Fp61::ZERO, Fp61::ONE]);
    let wrong = catch_unwind(|| assert_vole(Fp61::ONE, &v, &v, &w));
    assert!(wrong.unwrap_err().downcast::<String>().unwrap().contains("Some(1)"));
}
