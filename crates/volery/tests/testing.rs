//! Ideal functionalities have the relations of the real ones, and fail as they do.

use volery::channel::{memory, run_two_channels};
use volery::ot::convert;
use volery::prelude::*;
use volery::psi::{code::Code, oprf as kkrt};
use volery::testing::oprf::{Kkrt, OprfReceiver, OprfSender};
use volery::testing::{Failing, cot as ideal_cot, oprf, ots, sessions, tamper, vole as ideal_vole};
use volery::vole::{VoleReceiver, VoleSender};

/// A protocol over any COT: the lengths do not fill bytes, and differ from call to call.
fn over_cot(mut sender: impl CotSender + Send, mut receiver: impl CotReceiver + Send) {
    for n in [0, 1, 9, 1000] {
        let (v, (u, w)) = run_two_parties(
            |channel| {
                let mut v = vec![Block::ZERO; n];
                sender.extend(&mut v, channel).unwrap();
                v
            },
            |channel| {
                let (mut u, mut w) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
                receiver.extend(&mut u, &mut w, channel).unwrap();
                (u, w)
            },
        );
        ideal_cot::assert_cot(sender.delta(), &v, &u, &w);
    }
}

fn over_vole<R: volery::field::ExtensionOf<B>, B: Ring>(
    mut sender: impl VoleSender<R, B> + Send,
    mut receiver: impl VoleReceiver<R> + Send,
) {
    for n in [0, 1, 1000] {
        let ((u, v), w) = run_two_parties(
            |channel| {
                let (mut u, mut v) = (vec![B::ZERO; n], vec![R::ZERO; n]);
                sender.extend(&mut u, &mut v, channel).unwrap();
                (u, v)
            },
            |channel| {
                let mut w = vec![R::ZERO; n];
                receiver.extend(&mut w, channel).unwrap();
                w
            },
        );
        ideal_vole::assert_vole(receiver.x(), &u, &v, &w);
    }
}

/// Starts both parties of an object, and sends what they have left unsent.
fn run_two_sessions<A: Send, B: Send>(
    (mut left, mut right): (Session, Session),
    start_left: impl FnOnce(&mut Session) -> Result<A, Error> + Send,
    start_right: impl FnOnce(&mut Session) -> Result<B, Error> + Send,
) -> (A, B) {
    std::thread::scope(|scope| {
        let started = scope.spawn(|| {
            let started = start_left(&mut left).unwrap();
            left.flush().unwrap();
            started
        });
        let other = start_right(&mut right).unwrap();
        right.flush().unwrap();
        (started.join().unwrap(), other)
    })
}

#[test]
fn a_protocol_runs_over_ideal_and_real_correlations() {
    let (sender, receiver) = ideal_cot::pair(Block::from(99), Block::from(1));
    over_cot(sender, receiver);
    let plan = cot::plan(Some(1010), Link::default(), Security::Malicious);
    let (sender, receiver) = run_two_sessions(
        sessions(3),
        |session| cot::Sender::start(&plan, None, session),
        |session| cot::Receiver::start(&plan, session),
    );
    over_cot(sender, receiver);

    let (sender, receiver) = ideal_vole::pair(Z64::new(5), Block::from(1));
    over_vole::<Z64, Z64>(sender, receiver);
    let (sender, receiver) = ideal_vole::pair(Gf128::new(Block::from(5)), Block::from(1));
    over_vole::<Gf128, F2>(sender, receiver);
    let plan = vole::plan::<Fp61>(Some(1001), Link::default(), Security::Malicious).unwrap();
    let (sender, receiver) = run_two_sessions(
        sessions(4),
        |session| vole::Sender::<Fp61>::start(&plan, session),
        |session| vole::Receiver::<Fp61>::start(&plan, None, session),
    );
    over_vole(sender, receiver);
}

#[test]
fn ideal_ots_send_what_was_chosen() {
    let messages = [[Block::from(1), Block::from(2)], [Block::from(3), Block::from(4)]];
    let (mut sender, mut receiver): (convert::Sender<_>, convert::Receiver<_>) = ots(5);
    let ((), chosen) = run_two_parties(
        |channel| sender.chosen(&messages, channel).unwrap(),
        |channel| {
            let mut chosen = [Block::ZERO; 2];
            receiver.chosen(&[0b10], &mut chosen, channel).unwrap();
            chosen
        },
    );
    assert_eq!(chosen, [messages[0][0], messages[1][1]]);
}

#[test]
fn a_failing_source_refuses_every_later_call() {
    let (sender, receiver) = ideal_cot::pair(Block::ONE, Block::ONE);
    let (mut sender, mut receiver) = (Failing::after(1, sender), Failing::after(0, receiver));
    let channel = &mut Channel::memory_pair().0;
    sender.extend(&mut [Block::ZERO; 3], channel).unwrap();
    for error in [Error::Disconnected, Error::Broken] {
        let failed = sender.extend(&mut [], channel).unwrap_err();
        assert_eq!(failed.to_string(), error.to_string());
        let failed = receiver.extend(&mut [], &mut [], channel).unwrap_err();
        assert_eq!(failed.to_string(), error.to_string());
    }
    assert!(matches!(sender.try_delta(), Err(Error::Broken)));
    let (sender, receiver) = ideal_vole::pair::<Fp61, Fp61>(Fp61::ONE, Block::ONE);
    let mut receiver = Failing::after(1, receiver);
    receiver.extend(&mut [Fp61::ZERO], channel).unwrap();
    assert!(receiver.extend(&mut [], channel).is_err() && receiver.try_x().is_err());
    assert!(Failing::after(0, sender).extend(&mut [], &mut [], channel).is_err());
}

/// The message names the place, and no value.
#[test]
fn assertions_name_the_first_wrong_place() {
    let (v, mut w) = ([Block::ZERO; 20], [Block::ZERO; 20]);
    [w[7], w[9]] = [Block::ONE; 2];
    let wrong = std::panic::catch_unwind(|| ideal_cot::assert_cot(Block::ZERO, &v, &[0; 3], &w));
    let text = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("Some(7)") && text.contains("of 20"), "{text}");
    let (v, w) = ([Fp61::ZERO; 2], [Fp61::ZERO, Fp61::ONE]);
    let wrong = std::panic::catch_unwind(|| ideal_vole::assert_vole(Fp61::ONE, &v, &v, &w));
    let text = *wrong.unwrap_err().downcast::<String>().unwrap();
    assert!(text.contains("Some(1)"), "{text}");
}

#[test]
fn a_tampered_channel_flips_one_byte() {
    let (left, right) = memory::pair();
    let left = Channel::new(tamper::Tampered::flip(left, 1, 4));
    let (_, (bytes, _)) = run_two_channels(
        left,
        Channel::new(right),
        |channel| channel.send(&[0; 3]).and_then(|()| channel.flush()).unwrap(),
        |channel| {
            let mut bytes = [0; 3];
            channel.recv(&mut bytes).unwrap();
            bytes
        },
    );
    assert_eq!(bytes, [0, 4, 0]);
}

fn over_oprf(mut sender: impl OprfSender + Send, mut receiver: impl OprfReceiver + Send) {
    let inputs: Vec<_> = (0..5).map(Block::from).collect();
    let ((), outputs) = run_two_parties(
        |channel| [3, 2].into_iter().for_each(|n| sender.extend(n, channel).unwrap()),
        |channel| {
            let mut outputs = vec![Block::ZERO; 5];
            let (first, second) = outputs.split_at_mut(3);
            receiver.extend(&inputs[..3], first, channel).unwrap();
            receiver.extend(&inputs[3..], second, channel).unwrap();
            outputs
        },
    );
    for j in 0..5 {
        assert_eq!(sender.evaluate(j, inputs[j]).unwrap(), outputs[j]);
        assert_ne!(sender.evaluate(j, Block::ALL_ONES).unwrap(), outputs[j]);
    }
}

#[test]
fn an_oprf_is_ideal_or_real() {
    let (sender, receiver) = oprf::pair(Block::from(4));
    over_oprf(sender, receiver);
    let id = SessionId::from_bytes([3; 32]);
    let (sender, receiver) = run_two_parties(
        |channel| kkrt::Sender::setup(id, Prg::new(Block::from(1)), channel).unwrap(),
        |channel| kkrt::Receiver::setup(id, Prg::new(Block::from(2)), channel).unwrap(),
    );
    let code = || Code::new(&[1; 32], 448);
    over_oprf(Kkrt::new(sender, code()), Kkrt::new(receiver, code()));
}
