//! The baselines of the experiments: not offered to users, but fed by a peer like everything else.

mod vectors;

use volery_channel::{Channel, Result};
use volery_experiments::baselines::hybrid::{self, Choice, Cost};
use volery_experiments::baselines::pssz::{self, HashIndex};
use volery_experiments::baselines::{Sizes, kk13, naive};
use volery_primitives::Block;
use volery_psi::Variant;

use super::psi::of_channel;
use super::{SEEDS, SESSION, random_bits, rng};
use crate::{Model, Protocol};

/// OTs of the 1-out-of-256 OT.
const OTS: usize = 130;

/// Items below 2^24; the last [`COMMON`] of the sender's are the first of the receiver's.
const SIZES: Sizes = Sizes {
    sender: 60,
    receiver: 40,
};
const COMMON: usize = 10;
const BITS: u32 = 24;

pub(super) fn all() -> Vec<Protocol> {
    let mut all = vec![
        naive(),
        kk13(),
        pssz(),
        hybrid(Choice::Pssz),
        hybrid(Choice::Bark),
    ];
    all.extend(vectors::all());
    all
}

fn items() -> [Vec<Block>; 2] {
    let first = SIZES.sender - COMMON;
    [0..SIZES.sender, first..first + SIZES.receiver]
        .map(|range| range.map(|i| Block::new(77 * i as u128)).collect())
}

fn is_common(found: &[usize]) -> bool {
    found.iter().copied().eq(0..COMMON)
}

fn naive() -> Protocol {
    Protocol::new(
        "naive hashing",
        Model::SemiHonest,
        |channel| naive::send(&items()[0], SIZES, SESSION, &mut rng(SEEDS[0]), channel),
        |channel| naive::receive(&items()[1], SIZES, SESSION, channel),
        |&(): &(), found: &Vec<usize>| is_common(found),
    )
}

fn kk13() -> Protocol {
    let choices = || random_bits(8 * OTS, 3);
    let send = move |channel: &mut Channel| -> Result<_> {
        let mut sender = kk13::Sender::setup(SESSION, rng(SEEDS[0]), channel)?;
        let batch = sender.extend(OTS, channel)?;
        let of: Vec<_> = (0..).zip(choices()).collect();
        let mut messages = vec![Block::ZERO; OTS];
        sender.messages(&batch, &of, &mut messages);
        Ok(messages)
    };
    let receive = move |channel: &mut Channel| -> Result<_> {
        let mut receiver = kk13::Receiver::setup(SESSION, rng(SEEDS[1]), channel)?;
        let mut messages = vec![Block::ZERO; OTS];
        receiver.extend(&choices(), &mut messages, channel)?;
        Ok(messages)
    };
    Protocol::new(
        "1-out-of-256 OT",
        Model::SemiHonest,
        send,
        receive,
        |left: &Vec<Block>, right: &Vec<Block>| left == right,
    )
}

fn pssz() -> Protocol {
    let plan = || pssz::Plan::new(SIZES, BITS, HashIndex::Chosen);
    Protocol::new(
        "pssz",
        Model::SemiHonest,
        move |channel| {
            pssz::Sender::setup(SESSION, rng(SEEDS[0]), channel)?.run(&items()[0], &plan(), channel)
        },
        move |channel| {
            let mut receiver = pssz::Receiver::setup(SESSION, rng(SEEDS[1]), channel)?;
            receiver.run(&items()[1], &plan(), channel)
        },
        |&(): &(), found: &Vec<usize>| is_common(found),
    )
}

fn hybrid(choice: Choice) -> Protocol {
    let bits = match choice {
        Choice::Pssz => 13,
        Choice::Bark => 64,
    };
    let plan =
        move || hybrid::Plan::new(SIZES, bits, Cost::Whole, Variant::Kkrt, HashIndex::Chosen);
    let name = match plan() {
        hybrid::Plan::Pssz(_) => "hybrid, by pssz",
        hybrid::Plan::Bark(_) => "hybrid, by the oprf",
    };
    let send = move |channel: &mut Channel| {
        hybrid::Sender::setup(&plan(), SESSION, rng(SEEDS[0]), channel)?.run(&items()[0], channel)
    };
    let receive = move |channel: &mut Channel| {
        hybrid::Receiver::setup(&plan(), SESSION, rng(SEEDS[1]), channel)?.run(&items()[1], channel)
    };
    Protocol::new(
        name,
        Model::SemiHonest,
        move |channel| send(channel).map_err(of_channel),
        move |channel| receive(channel).map_err(of_channel),
        |&(): &(), found: &Vec<usize>| is_common(found),
    )
}
