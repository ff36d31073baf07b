//! The baselines are not offered to users, but read messages of a peer like every protocol: these
//! are their registry entries, and the tests of `volery-testing` run on them.

mod vectors;

use std::path::Path;

use peak_alloc::PeakAlloc;
use volery_bench::baselines::hybrid::{self, Choice, Cost};
use volery_bench::baselines::pssz::{self, HashIndex};
use volery_bench::baselines::{Sizes, kk13, naive};
use volery_channel::{Channel, Error, Result, SessionId};
use volery_primitives::Block;
use volery_primitives::prg::Prg;
use volery_psi::Variant;
use volery_testing::complete::Coverage;
use volery_testing::{Model, Protocol, attacks, honest, transcript};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The session of all protocols.
const SESSION: SessionId = SessionId::from_bytes([0x68; 32]);

/// The seed of the left party, and of the right one.
const SEEDS: [u128; 2] = [1, 2];

/// OTs of the 1-out-of-256 OT.
const OTS: usize = 130;

/// Items below 2^24; the last [`COMMON`] of the sender's are the first of the receiver's.
const SIZES: Sizes = Sizes {
    sender: 60,
    receiver: 40,
};
const COMMON: usize = 10;
const BITS: u32 = 24;

fn all() -> Vec<Protocol> {
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

/// The functions of `src/baselines` that take a channel, and the protocol above that runs each.
const RUN: &[(&str, &[&str])] = &[
    (
        "naive hashing",
        &["baselines::naive::send", "baselines::naive::receive"],
    ),
    (
        "1-out-of-256 OT",
        &[
            "baselines::kk13::Sender::setup",
            "baselines::kk13::Sender::extend",
            "baselines::kk13::Receiver::setup",
            "baselines::kk13::Receiver::extend",
        ],
    ),
    (
        "pssz",
        &[
            "baselines::pssz::Sender::setup",
            "baselines::pssz::Sender::run",
            "baselines::pssz::Receiver::setup",
            "baselines::pssz::Receiver::run",
        ],
    ),
    (
        "hybrid, by the oprf",
        &[
            "baselines::hybrid::Sender::setup",
            "baselines::hybrid::Sender::run",
            "baselines::hybrid::Receiver::setup",
            "baselines::hybrid::Receiver::run",
        ],
    ),
    (
        "distributed point functions",
        &["baselines::dpf::first", "baselines::dpf::second"],
    ),
    (
        "point functions in buckets",
        &[
            "baselines::floram::key_holder",
            "baselines::floram::value_holder",
        ],
    ),
    (
        "points by whole trees",
        &[
            "baselines::whole_domain::key_holder",
            "baselines::whole_domain::value_holder",
        ],
    ),
    (
        "gilboa, z64",
        &[
            "baselines::gilboa::send",
            "baselines::gilboa::receive",
            "baselines::gilboa::Z64::multiply_receiver",
            "baselines::gilboa::Z64::multiply_sender",
            "baselines::gilboa::Z64::setup_receiver",
            "baselines::gilboa::Z64::setup_sender",
        ],
    ),
    (
        "vector-OLE by point functions",
        &["baselines::dvole::send", "baselines::dvole::receive"],
    ),
];

#[test]
fn every_baseline_that_talks_is_in_the_registry() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/baselines");
    let coverage = Coverage {
        crates: &[("baselines".to_owned(), folder)],
        run: RUN,
        no_protocol: &[],
        within: &[],
        registry: &[],
    };
    coverage.assert_listed(&all());
}

#[test]
fn honest_parties_agree_and_repeat_themselves() {
    honest::assert_agreement(&all());
}

#[test]
fn baselines_send_what_they_sent() {
    let rows = all().into_iter().map(|protocol| {
        let hashes = transcript::of(&protocol);
        (protocol.name, hashes)
    });
    transcript::assert_unchanged(include_str!("transcripts.txt"), rows);
}

#[test]
fn nobody_gains_by_a_tampered_message() {
    let summary = attacks::withstand(all(), &HEAP);
    assert!(summary.changed["refused"] > 20, "{summary:?}");
}

fn rng(seed: u128) -> Prg {
    Prg::new(Block::new(seed))
}

/// `n` packed bits, low bit first, the unused ones zero.
fn random_bits(n: usize, seed: u128) -> Vec<u8> {
    let mut bits = vec![0; n.div_ceil(8)];
    rng(seed).fill_bytes(&mut bits);
    volery_primitives::bits::clear_from(&mut bits, n);
    bits
}

fn of_channel(error: volery_psi::Error) -> Error {
    match error {
        volery_psi::Error::Channel(error) => error,
        other => Error::Io(std::io::Error::other(other)),
    }
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
