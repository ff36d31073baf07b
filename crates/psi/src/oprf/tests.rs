#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::tamper::Tampered;
use volery_channel::{Stats, memory, run_two_parties, run_two_parties_with_stats};
use volery_primitives::aes::rekeyed_on;
use volery_primitives::clmul::gf128_combine_on;
use volery_primitives::cpu::Cpu;
use volery_primitives::transpose::transpose_128_on;

use super::plain::{self, Ots};
use super::*;

const SESSION: SessionId = SessionId::from_bytes([4; 32]);

/// The seed of all codes here.
const SEED: [u8; 32] = [6; 32];

/// Both parties after the offline phase, with keys from a dealer.
pub(crate) fn dealt(seed: u128) -> (Sender, Receiver) {
    let ots = deal(seed);
    parties(&ots)
}

fn deal(seed: u128) -> Ots {
    let mut rng = Prg::new(Block::new(seed));
    let pairs = (0..MAX_WIDTH).map(|_| [rng.block().into(), rng.block().into()]);
    let pairs = pairs.collect();
    let s = (0..MAX_WIDTH).map(|_| rng.block().lsb()).collect();
    Ots::new(pairs, s)
}

fn parties(ots: &Ots) -> (Sender, Receiver) {
    let key = |key: u128| Aes128::new(Block::new(key));
    let pairs = ots.keys.iter();
    let sender = LiveSender {
        s: Zeroizing::new(std::array::from_fn(|i| {
            Block::new(plain::block(&ots.s[128 * i..][..128]))
        })),
        columns: pairs
            .clone()
            .zip(&ots.s)
            .map(|(pair, &bit)| key(pair[usize::from(bit)]))
            .collect(),
        next: 0,
        rooms: Rooms::default(),
    };
    let receiver = LiveReceiver {
        columns: [0, 1].map(|side| pairs.clone().map(|pair| key(pair[side])).collect()),
        next: 0,
        rooms: Rooms::default(),
    };
    (Sender(Some(sender)), Receiver(Some(receiver)))
}

fn inputs(n: usize, seed: u128) -> Vec<Block> {
    let mut inputs = vec![Block::ZERO; n];
    Prg::new(Block::new(seed)).fill_blocks(&mut inputs);
    inputs
}

/// One extension: what the receiver sent, what both parties have.
struct Extension {
    message: Vec<u8>,
    outputs: Vec<Block>,
    keys: Keys,
}

/// Both parties after each other, on one thread: writing never waits.
fn extend(
    sender: &mut Sender,
    receiver: &mut Receiver,
    code: &Code,
    inputs: &[Block],
) -> Extension {
    let (mut near, mut far) = Channel::memory_pair();
    let mut outputs = vec![Block::ZERO; inputs.len()];
    receiver
        .extend(code, inputs, &mut outputs, &mut near)
        .unwrap();
    let mut message = vec![0; inputs.len() * code.width() / 8];
    far.recv(&mut message).unwrap();
    let (mut near, mut far) = Channel::memory_pair();
    near.send(&message).unwrap();
    near.flush().unwrap();
    let keys = sender.extend(code, inputs.len(), &mut far).unwrap();
    assert_eq!(
        (keys.len(), keys.is_empty()),
        (inputs.len(), inputs.is_empty())
    );
    Extension {
        message,
        outputs,
        keys,
    }
}

/// Evaluates each instance once.
fn evaluate_all(sender: &Sender, keys: &Keys, code: &Code, inputs: &[Block]) -> Vec<Block> {
    let mut values = vec![Block::ZERO; inputs.len()];
    sender.shift(code, inputs, &mut values).unwrap();
    let instances: Vec<_> = (0..inputs.len() as u32).collect();
    keys.evaluate_shifted(code, &instances, inputs, &mut values);
    values
}

/// Two extensions, of 5 and of `n` instances, against the plain reading.
fn check(width: usize, n: usize) {
    let ots = deal(1);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, width), plain::Code::new(&SEED, width));
    // Instances are numbered on from the next multiple of 128.
    for (first, n) in [(0, 5), (128, n)] {
        let inputs = inputs(n, 2 + n as u128);
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        let (mut rows, mut outputs) = (Vec::new(), Vec::new());
        for (j, &input) in (first..).zip(&inputs) {
            let (row, output) = ots.receive(&slow, j, input);
            rows.push(row);
            outputs.push(output);
        }
        let what = format!("{n} instances of {width} bits");
        assert!(made.outputs == outputs, "{what}: the receiver's outputs");
        assert!(made.message == plain::message(&rows), "{what}: the message");
        let same = evaluate_all(&sender, &made.keys, &code, &inputs);
        assert!(
            same == outputs,
            "{what}: the sender at the receiver's inputs"
        );
        let others: Vec<_> = inputs.iter().map(|&input| input ^ Block::ONE).collect();
        let other = evaluate_all(&sender, &made.keys, &code, &others);
        for (i, &x) in others.iter().enumerate() {
            let j = first + i as u64;
            let q = ots.key(&slow, j, &rows[i]);
            assert_eq!(other[i], ots.evaluate(&slow, j, &q, x), "{what}: {i}");
            assert_ne!(other[i], outputs[i], "{what}: {i}");
        }
        if let Some(&x) = others.last() {
            let last = n as u32 - 1;
            let one = made.keys.evaluate(&sender, &code, last, x).unwrap();
            assert_eq!(one, other[n - 1], "{what}");
        }
    }
}

#[test]
fn as_in_figure_2_for_every_width() {
    for width in [128, 136, 248, 256, 264, 384, 424, 432, 440, 448, 512] {
        for n in [0, 1, 2, 127, 128, 129] {
            check(width, n);
        }
    }
}

#[test]
fn as_in_figure_2_around_a_task() {
    for n in [TASK - 1, TASK, TASK + 1] {
        check(440, n);
    }
}

#[test]
fn as_in_figure_2_around_a_message() {
    for n in [MESSAGE - 1, MESSAGE, MESSAGE + 1] {
        check(424, n);
    }
}

/// Keys in two allocations: all agree with the receiver, and some with the plain reading.
#[test]
fn as_in_figure_2_around_a_chunk() {
    let ots = deal(3);
    let (code, slow) = (Code::new(&SEED, 448), plain::Code::new(&SEED, 448));
    for n in [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + MESSAGE + 1] {
        let (mut sender, mut receiver) = parties(&ots);
        let inputs = inputs(n, 7);
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        assert!(
            evaluate_all(&sender, &made.keys, &code, &inputs) == made.outputs,
            "{n}"
        );
        let near = |place: usize| place.saturating_sub(2)..n.min(place + 2);
        for i in [0, MESSAGE, CHUNK, n].into_iter().flat_map(near) {
            let (_, output) = ots.receive(&slow, i as u64, inputs[i]);
            assert_eq!(made.outputs[i], output, "{n}: {i}");
        }
    }
}

/// Calls of any sizes: the streams go on where they were, and keys of earlier calls stay good.
#[test]
fn instances_are_numbered_on() {
    let ots = deal(5);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, 432), plain::Code::new(&SEED, 432));
    let mut first = 0;
    let mut all = Vec::new();
    for n in [1, 0, 128, 5, 2049, 0, 127, MESSAGE + 1, 3] {
        let inputs = inputs(n, first.into());
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        for i in (0..n).step_by(1 + n / 5) {
            let (_, output) = ots.receive(&slow, first + i as u64, inputs[i]);
            assert_eq!(made.outputs[i], output, "{i} of {n}, the first is {first}");
        }
        first += (n as u64).next_multiple_of(128);
        all.push((inputs, made));
    }
    for (inputs, made) in &all {
        let values = evaluate_all(&sender, &made.keys, &code, inputs);
        assert!(values == made.outputs, "{} instances", inputs.len());
    }
    // Another code in a later call.
    let code = Code::new(&[9; 32], 512);
    let inputs = inputs(10, 1);
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    assert_eq!(
        evaluate_all(&sender, &made.keys, &code, &inputs),
        made.outputs
    );
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let code = Code::new(&SEED, 440);
    let inputs = inputs(MESSAGE + TASK + 77, 8);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| {
            let (mut sender, mut receiver) = dealt(2);
            let made = extend(&mut sender, &mut receiver, &code, &inputs);
            let others: Vec<_> = inputs.iter().map(|&x| x ^ Block::new(77)).collect();
            let values = evaluate_all(&sender, &made.keys, &code, &others);
            (made.message, made.outputs, values)
        })
    };
    let one = run(1);
    for threads in [2, 3, 7] {
        assert!(run(threads) == one, "{threads} threads");
    }
}

/// The same with the kernels of every level of this processor, one step of the module after the other.
#[test]
fn every_level_of_the_processor_gives_the_same() {
    let (width, n) = (424, 300);
    let ots = deal(6);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, width), plain::Code::new(&SEED, width));
    let inputs = inputs(n, 9);
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    for cpu in Cpu::available() {
        let mut folded = vec![Block::ZERO; n];
        let rows: [Vec<Block>; BLOCKS] = std::array::from_fn(|block| {
            let row_blocks = n.div_ceil(128);
            let mut columns = vec![Block::ZERO; 128 * row_blocks];
            let keys = ots.keys[128 * block..].iter().take(code.bits(block));
            for ([key, _], column) in keys.zip(columns.chunks_exact_mut(row_blocks)) {
                Aes128::with_cpu(Block::new(*key), cpu).ctr(0, column);
            }
            let mut rows = vec![Block::ZERO; columns.len()];
            transpose_128_on(cpu, &columns, &mut rows);
            rows.truncate(n);
            rows
        });
        let columns = rows.each_ref().map(Vec::as_slice);
        let weights = std::array::from_fn(|i| {
            let mut row = vec![false; 128 * i + 1];
            row[128 * i] = true;
            Block::new(slow.fold(&row))
        });
        gf128_combine_on(cpu, columns, weights, &mut folded);
        let numbered = (0..).zip(&inputs);
        let keys: Vec<_> = numbered.map(|(j, &x)| code.hash_key(j, x)).collect();
        rekeyed_on(cpu, &keys, &mut folded);
        assert!(folded == made.outputs, "{cpu}");
    }
}

/// What the module documentation says of the cost, beside the setup.
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
                    receiver
                        .extend(&code, &inputs, &mut outputs, channel)
                        .unwrap();
                },
            );
            assert_eq!(sent.bytes_sent, 0);
            assert_eq!(received.bytes_sent, (n * width / 8) as u64);
            assert_eq!(received.messages_sent, u64::from(n > 0));
        }
    }
}

/// The setup is that of the OTs and of their random flavour, no more.
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
    assert_eq!(
        evaluate_all(&sender, &made.keys, &code, &inputs),
        made.outputs
    );
    // Each of the sender's keys is the one of the pair that the bit of s names, and all are different.
    let (sender, receiver) = (sender.0.unwrap(), receiver.0.unwrap());
    let stream = |key: &Aes128| key.encrypt(Block::new(1 << 100));
    let mut all = std::collections::HashSet::new();
    let mut ones = 0;
    let [zeros, ones_of] = &receiver.columns;
    let pairs = zeros.iter().zip(ones_of).map(|(zero, one)| [zero, one]);
    for (i, (own, pair)) in sender.columns.iter().zip(pairs).enumerate() {
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
            flavour::Receiver::new(cot, SESSION)
                .random(&mut bits, &mut keys, channel)
                .unwrap();
            channel.flush().unwrap();
        },
        |channel| {
            let rng = Prg::new(Block::new(4));
            let cot = softspoken::Sender::setup(None, FIELD, SESSION, rng, channel).unwrap();
            let mut keys = [[Block::ZERO; 2]; 512];
            flavour::Sender::new(cot, SESSION)
                .random(&mut keys, channel)
                .unwrap();
        },
    );
    (left, right)
}

/// Two sessions with other randomness have nothing in common, and one with the same repeats itself.
#[test]
fn the_setup_depends_on_the_session_and_on_both_seeds() {
    let stream = |session: u8, left: u128, right: u128| {
        let session = SessionId::from_bytes([session; 32]);
        let (sender, _) = run_two_parties(
            |channel| Sender::setup(session, Prg::new(Block::new(left)), channel).unwrap(),
            |channel| Receiver::setup(session, Prg::new(Block::new(right)), channel).unwrap(),
        );
        sender.0.unwrap().columns[0].encrypt(Block::ZERO)
    };
    let first = stream(1, 2, 3);
    assert_eq!(stream(1, 2, 3), first);
    for other in [stream(2, 2, 3), stream(1, 3, 3), stream(1, 2, 4)] {
        assert_ne!(other, first);
    }
}

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
        assert!(matches!(
            sender.extend(&code, 10, &mut far),
            Err(Error::Disconnected)
        ));
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

/// Of 2^14 blocks each bit is one about as often as not: within six standard deviations.
fn assert_balanced(blocks: &[Block], what: &str) {
    assert_eq!(blocks.len(), 1 << 14);
    for bit in 0..128 {
        let ones = blocks.iter().filter(|block| block.bit(bit)).count();
        assert!(ones.abs_diff(1 << 13) < 6 * 64, "{what}: bit {bit}: {ones}");
    }
}

/// Outputs are balanced, and so are the differences of any two that belong to different inputs or instances.
#[test]
fn outputs_look_unrelated() {
    let n = 1 << 14;
    let code = Code::new(&SEED, 448);
    let (mut sender, mut receiver) = dealt(11);
    // All inputs but one bit are the same.
    let inputs = vec![Block::new(12); n];
    let made = extend(&mut sender, &mut receiver, &code, &inputs);
    assert_balanced(&made.outputs, "outputs on one input");
    let neighbours = made.outputs.iter().zip(made.outputs.iter().cycle().skip(1));
    let differences: Vec<_> = neighbours.map(|(&a, &b)| a ^ b).collect();
    assert_balanced(&differences, "neighbouring instances");
    let mut last = made.outputs.clone();
    for change in [1, 2, 3, 1 << 127] {
        let others = vec![Block::new(12 ^ change); n];
        let values = evaluate_all(&sender, &made.keys, &code, &others);
        assert_balanced(&values, "outputs on another input");
        for (what, before) in [("own", &made.outputs), ("last", &last)] {
            let differences: Vec<_> = values.iter().zip(before).map(|(&a, &b)| a ^ b).collect();
            assert_balanced(&differences, what);
        }
        last = values;
    }
    // One instance on many inputs: no two outputs are equal.
    let many: Vec<_> = (0..n as u128).map(Block::new).collect();
    let mut values = vec![Block::ZERO; n];
    sender.shift(&code, &many, &mut values).unwrap();
    made.keys
        .evaluate_shifted(&code, &vec![5; n], &many, &mut values);
    assert_balanced(&values, "one instance");
    assert_eq!(values[12], made.outputs[5]);
    values.sort_unstable_by_key(|value| u128::from(*value));
    assert!(values.windows(2).all(|pair| pair[0] != pair[1]));
}

/// A receiver whose code word is not the sender's gets nothing the sender can make: the code is part of the agreement.
#[test]
fn another_code_gives_other_outputs() {
    let (mut sender, mut receiver) = dealt(1);
    let (ours, theirs) = (Code::new(&[1; 32], 440), Code::new(&[2; 32], 440));
    let inputs = inputs(100, 1);
    let (mut near, mut far) = Channel::memory_pair();
    let mut outputs = vec![Block::ZERO; 100];
    receiver
        .extend(&theirs, &inputs, &mut outputs, &mut near)
        .unwrap();
    let keys = sender.extend(&ours, 100, &mut far).unwrap();
    let values = evaluate_all(&sender, &keys, &ours, &inputs);
    assert!(values.iter().zip(&outputs).all(|(a, b)| a != b));
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn there_is_no_instance_after_the_last() {
    let code = Code::new(&SEED, 440);
    let (mut sender, mut receiver) = dealt(1);
    let made = extend(&mut sender, &mut receiver, &code, &inputs(5, 1));
    let _ = made.keys.evaluate(&sender, &code, 5, Block::ONE);
}

/// What both parties hold at a time does not grow with the number of threads.
#[test]
fn pieces_are_bounded_for_many_threads() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(64).build();
    pool.unwrap().install(|| {
        assert_eq!(size(1 << 26), CHUNK);
        assert_eq!(size(MESSAGE), MESSAGE);
    });
}
