//! The setup, the traffic and the memory.

use volery_channel::{Stats, run_two_parties, run_two_parties_with_stats};
use volery_primitives::aes::Aes128;

use super::*;

/// The cost is as stated in the module documentation, apart from the setup.
#[test]
fn one_message_from_the_receiver_and_nothing_from_the_sender() {
    for width in [424, 448] {
        for n in [0, 1, 1000, MESSAGE + 1] {
            let code = Code::new(&SEED, width);
            let inputs = inputs(n, 3);
            let (mut sender, mut receiver) = dealt(1);
            let (((), sent), ((), received)) = run_two_parties_with_stats(
                |channel| {
                    let mut told = Vec::new();
                    let mut done = |instances| told.push(instances);
                    sender.extend_watched(&code, n, &mut done, channel).unwrap();
                    let pieces = (MESSAGE..n).step_by(MESSAGE);
                    let expected: Vec<_> = pieces.chain((n > 0).then_some(n)).collect();
                    assert_eq!(told, expected);
                },
                |channel| {
                    let mut outputs = vec![Block::ZERO; n];
                    receiver.extend(&code, &inputs, &mut outputs, channel).unwrap();
                },
            );
            assert_eq!(sent.bytes_sent, 0);
            assert_eq!(received.bytes_sent, (n * width / 8) as u64);
            assert_eq!(received.messages_sent, u64::from(n > 0));
        }
    }
}

/// The setup costs as much as the OTs and their conversion to random OTs, no more.
#[test]
fn the_setup_makes_keys_that_fit() {
    let ((mut sender, sent), (mut receiver, received)) = run_two_parties_with_stats(
        |channel| Sender::setup(SESSION, Prg::new(Block::new(1)), channel).unwrap(),
        |channel| Receiver::setup(SESSION, Prg::new(Block::new(2)), channel).unwrap(),
    );
    assert_eq!((sent, received), cost_of_the_ots());
    let code = Code::new(&SEED, 512);
    let inputs = inputs(200, 3);
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    assert_eq!(evaluate_all(&sender, &made.keys, &code, &inputs), made.outputs);
    // Each of the sender's keys is the one of the pair that the bit of s selects, and all are
    // distinct.
    let (sender, receiver) = (sender.0.unwrap(), receiver.0.unwrap());
    let stream = |key: &Aes128| key.encrypt(Block::new(1 << 100));
    let mut all = std::collections::HashSet::new();
    let mut ones = 0;
    let [zeros, ones_of] = receiver.columns.each_ref().map(|columns| columns.keys.iter());
    let pairs = zeros.zip(ones_of).map(|(zero, one)| [zero, one]);
    for (i, (own, pair)) in sender.columns.keys.iter().zip(pairs).enumerate() {
        let bit = sender.s[i / 128].bit(i % 128);
        ones += usize::from(bit);
        assert_eq!(stream(own), stream(pair[usize::from(bit)]), "{i}");
        all.extend(pair.map(|key| stream(key).to_bytes()));
    }
    assert_eq!(all.len(), 2 * MAX_WIDTH);
    assert!((180..332).contains(&ones), "{ones} ones are far from 256");
}

fn cost_of_the_ots() -> (Stats, Stats) {
    let ((_, left), (_, right)) = run_two_parties_with_stats(
        |channel| {
            let rng = Prg::new(Block::new(3));
            let cot = softspoken::Receiver::setup(FIELD, SESSION, rng, channel).unwrap();
            let (mut bits, mut keys) = ([0; 64], [Block::ZERO; 512]);
            convert::Receiver::new(cot, SESSION).random(&mut bits, &mut keys, channel).unwrap();
            channel.flush().unwrap();
        },
        |channel| {
            let rng = Prg::new(Block::new(4));
            let cot = softspoken::Sender::setup(None, FIELD, SESSION, rng, channel).unwrap();
            let mut keys = [[Block::ZERO; 2]; 512];
            convert::Sender::new(cot, SESSION).random(&mut keys, channel).unwrap();
        },
    );
    (left, right)
}

/// Sessions with different randomness have nothing in common; the same randomness repeats a
/// session.
#[test]
fn the_setup_depends_on_the_session_and_on_both_seeds() {
    let stream = |session: u8, left: u128, right: u128| {
        let session = SessionId::from_bytes([session; 32]);
        let (sender, _) = run_two_parties(
            |channel| Sender::setup(session, Prg::new(Block::new(left)), channel).unwrap(),
            |channel| Receiver::setup(session, Prg::new(Block::new(right)), channel).unwrap(),
        );
        sender.0.unwrap().columns.keys[0].encrypt(Block::ZERO)
    };
    let first = stream(1, 2, 3);
    assert_eq!(stream(1, 2, 3), first);
    for other in [stream(2, 2, 3), stream(1, 3, 3), stream(1, 2, 4)] {
        assert_ne!(other, first);
    }
}

/// The memory of both parties does not grow with the number of threads.
#[test]
fn pieces_are_bounded_for_many_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(64).build();
    pool.unwrap().install(|| {
        assert_eq!(size(1 << 26), CHUNK);
        assert_eq!(size(MESSAGE), MESSAGE);
    });
}
