//! The baselines and the trees of higher arity are not offered to users, but read messages of a
//! peer like every protocol: these are their registry entries, and the tests of `volery-testing`
//! run on them.

mod kary;
mod vectors;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use peak_alloc::PeakAlloc;
use volery_bench::baselines::hybrid::{self, Choice, Cost};
use volery_bench::baselines::pssz::{self, HashIndex};
use volery_bench::baselines::{Sizes, kk13, naive};
use volery_channel::{Channel, Error, Result};
use volery_primitives::Block;
use volery_psi::Variant;
use volery_testing::complete::Coverage;
use volery_testing::fixtures::{SEEDS, SESSION, random_bits, rng};
use volery_testing::{Model, Protocol, attacks, honest, transcript};

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The memory of an attack is that of the process, so no other test may run meanwhile.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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
    all.extend(kary::all());
    all
}

/// The functions of `src/baselines` and `src/kary` that take a channel, and the protocol that runs
/// each.
const RUN: &[(&str, &[&str])] = &[
    ("naive hashing", &["baselines::naive::{send, receive}"]),
    (
        "1-out-of-256 OT",
        &["baselines::kk13::{Sender, Receiver}::{setup, extend}"],
    ),
    (
        "pssz",
        &["baselines::pssz::{Sender, Receiver}::{setup, run}"],
    ),
    (
        "hybrid, by the oprf",
        &["baselines::hybrid::{Sender, Receiver}::{setup, run}"],
    ),
    (
        "distributed point functions",
        &["baselines::dpf::{first, second}"],
    ),
    (
        "point functions in buckets",
        &["baselines::floram::{key_holder, value_holder}"],
    ),
    (
        "points by whole trees",
        &["baselines::whole_domain::{key_holder, value_holder}"],
    ),
    (
        "gilboa, z64",
        &[
            "baselines::gilboa::{send, receive}",
            "baselines::gilboa::Z64::{multiply_receiver, multiply_sender}",
            "baselines::gilboa::Z64::{setup_receiver, setup_sender}",
        ],
    ),
    (
        "vector-OLE by point functions",
        &["baselines::dvole::{send, receive}"],
    ),
    ("OT of all but one", &["kary::all_but_one::{send, receive}"]),
    (
        "random OT of all but one",
        &["kary::all_but_one::{send_random, receive_random}"],
    ),
    (
        "random OT of n - 1, arity 4",
        &["kary::punctured_ot::{send, receive}"],
    ),
    (
        "point functions, arity 4",
        &["kary::spfss::{send, receive}"],
    ),
];

#[test]
fn every_protocol_of_the_lab_is_in_the_registry() {
    let _alone = alone();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folder = |name: &str| (name.to_owned(), source.join(name));
    let coverage = Coverage {
        crates: &["baselines", "kary"].map(folder),
        run: RUN,
        no_protocol: &[],
        within: &[],
        registry: &[],
    };
    coverage.assert_listed(&all());
}

#[test]
fn honest_parties_agree_and_repeat_themselves() {
    let _alone = alone();
    honest::assert_agreement(&all());
}

#[test]
fn they_send_what_they_sent() {
    let _alone = alone();
    let rows = all().into_iter().map(|protocol| {
        let hashes = transcript::of(&protocol);
        (protocol.name, hashes)
    });
    transcript::assert_unchanged(include_str!("transcripts.txt"), rows);
}

#[test]
fn nobody_gains_by_a_tampered_message() {
    let _alone = alone();
    let summary = attacks::withstand(all(), &HEAP);
    assert!(summary.changed["refused"] > 20, "{summary:?}");
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
