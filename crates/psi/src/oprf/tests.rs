use volery_channel::tamper::Tampered;
use volery_channel::{memory, run_two_parties};

use super::plain::{self, Ots};
use super::*;

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
    let pairs = ots.keys.iter();
    let sender = LiveSender {
        s: Zeroizing::new(std::array::from_fn(|i| {
            Block::new(plain::block(&ots.s[128 * i..][..128]))
        })),
        columns: Streams::new(
            pairs.clone().zip(&ots.s).map(|(pair, &bit)| Block::new(pair[usize::from(bit)])),
            plain::SESSION,
        ),
        next: 0,
        pool: ScratchPool::default(),
    };
    let receiver = LiveReceiver {
        columns: [0, 1].map(|side| {
            let keys = pairs.clone().map(|pair| Block::new(pair[side]));
            Streams::new(keys, plain::SESSION)
        }),
        next: 0,
        pool: ScratchPool::default(),
    };
    (Sender(Some(sender)), Receiver(Some(receiver)))
}

fn inputs(n: usize, seed: u128) -> Vec<Block> {
    let mut inputs = vec![Block::ZERO; n];
    Prg::new(Block::new(seed)).fill_blocks(&mut inputs);
    inputs
}

/// One extension: the receiver's message and both parties' results.
struct Extension {
    message: Vec<u8>,
    outputs: Vec<Block>,
    keys: Keys,
}

/// Runs both parties one after the other on one thread: writing never blocks.
fn extend(
    sender: &mut Sender,
    receiver: &mut Receiver,
    code: &Code,
    inputs: &[Block],
) -> Extension {
    let (mut near, mut far) = Channel::memory_pair();
    let mut outputs = vec![Block::ZERO; inputs.len()];
    receiver.extend(code, inputs, &mut outputs, &mut near).unwrap();
    let mut message = vec![0; inputs.len() * code.width() / 8];
    far.recv(&mut message).unwrap();
    let (mut near, mut far) = Channel::memory_pair();
    near.send(&message).unwrap();
    near.flush().unwrap();
    let keys = sender.extend(code, inputs.len(), &mut far).unwrap();
    assert_eq!((keys.len(), keys.is_empty()), (inputs.len(), inputs.is_empty()));
    Extension { message, outputs, keys }
}

/// Evaluates each instance once.
fn evaluate_all(sender: &Sender, keys: &Keys, code: &Code, inputs: &[Block]) -> Vec<Block> {
    let mut values = vec![Block::ZERO; inputs.len()];
    sender.shift(code, inputs, &mut values).unwrap();
    let instances: Vec<_> = (0..inputs.len() as u32).collect();
    keys.evaluate_shifted(code, &instances, inputs, &mut values);
    values
}

/// Compares two extensions, of 5 and of `n` instances, with the reference.
fn check(width: usize, n: usize) {
    let ots = deal(1);
    let (mut sender, mut receiver) = parties(&ots);
    let (code, slow) = (Code::new(&SEED, width), plain::Code::new(&SEED, width));
    // Numbering continues at the next multiple of 128.
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
        assert!(same == outputs, "{what}: the sender at the receiver's inputs");
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
fn as_in_figure_2() {
    for width in [128, 136, 248, 256, 264, 384, 424, 432, 440, 448, 512] {
        for n in [0, 1, 2, 127, 128, 129] {
            check(width, n);
        }
    }
    // Around a task, and around a message.
    for (width, n) in [(440, TASK), (424, MESSAGE)] {
        for n in [n - 1, n, n + 1] {
            check(width, n);
        }
    }
}

/// Keys in two allocations: all agree with the receiver, and some are compared with the reference.
#[test]
fn as_in_figure_2_around_a_chunk() {
    let ots = deal(3);
    let (code, slow) = (Code::new(&SEED, 448), plain::Code::new(&SEED, 448));
    for n in [CHUNK - 1, CHUNK, CHUNK + 1, CHUNK + MESSAGE + 1] {
        let (mut sender, mut receiver) = parties(&ots);
        let inputs = inputs(n, 7);
        let made = extend(&mut sender, &mut receiver, &code, &inputs);
        assert!(evaluate_all(&sender, &made.keys, &code, &inputs) == made.outputs, "{n}");
        let near = |place: usize| place.saturating_sub(2)..n.min(place + 2);
        for i in [0, MESSAGE, CHUNK, n].into_iter().flat_map(near) {
            let (_, output) = ots.receive(&slow, i as u64, inputs[i]);
            assert_eq!(made.outputs[i], output, "{n}: {i}");
        }
    }
}

/// Calls of any sizes: the streams continue where they were, and keys of earlier calls stay valid.
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
    assert_eq!(evaluate_all(&sender, &made.keys, &code, &inputs), made.outputs);
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
