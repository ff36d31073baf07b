#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod costs;
mod ends;
mod figure;
mod outputs;

use super::plain::{self, Ots};
use super::*;

const SESSION: SessionId = plain::SESSION;

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
