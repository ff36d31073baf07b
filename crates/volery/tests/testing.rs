//! The tools for tests: that a protocol runs over ideal and real sources, `volery-mpc` tests.

use std::panic::catch_unwind;

use volery::prelude::*;
use volery::psi::{code::Code, oprf as kkrt};
use volery::testing::oprf::{OprfReceiver, OprfSender};
use volery::testing::{cot as ideal_cot, oprf, ots, vole as ideal_vole};

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
    let wrong = catch_unwind(|| ideal_cot::assert_cot(Block::ZERO, &v, &[0; 3], &w));
    let text = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("Some(7)") && text.contains("of 20"), "{text}");
    let (v, w) = ([Fp61::ZERO; 2], [Fp61::ZERO, Fp61::ONE]);
    let wrong = catch_unwind(|| ideal_vole::assert_vole(Fp61::ONE, &v, &v, &w));
    assert!(wrong.unwrap_err().downcast::<String>().unwrap().contains("Some(1)"));
}

#[test]
fn an_oprf_is_ideal_or_real() {
    fn check(
        mut sender: impl OprfSender<Keys: Send> + Send,
        mut receiver: impl OprfReceiver + Send,
    ) {
        for n in [3, 2] {
            let inputs: Vec<_> = (0..n).map(Block::from).collect();
            let mut outputs = vec![Block::ZERO; inputs.len()];
            let (keys, received) = run_two_parties(
                |channel| sender.extend(inputs.len(), channel),
                |channel| receiver.extend(&inputs, &mut outputs, channel),
            );
            let (keys, ()) = (keys.unwrap(), received.unwrap());
            for (j, (input, output)) in (0..).zip(inputs.iter().zip(outputs)) {
                assert_eq!(sender.evaluate(&keys, j, *input).unwrap(), output);
                assert_ne!(sender.evaluate(&keys, j, Block::ALL_ONES).unwrap(), output);
            }
        }
    }
    let (sender, receiver) = oprf::pair(Block::from(4));
    check(sender, receiver);
    let id = SessionId::from_bytes([3; 32]);
    let (sender, receiver) = run_two_parties(
        |channel| kkrt::Sender::setup(id, Prg::new(Block::from(1)), channel),
        |channel| kkrt::Receiver::setup(id, Prg::new(Block::from(2)), channel),
    );
    let code = || Code::new(&[1; 32], 448);
    check((sender.unwrap(), code()), (receiver.unwrap(), code()));
}
