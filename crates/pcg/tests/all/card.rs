//! Parties that compute on a card, with others on cards and on the processor: the same outputs and
//! the same messages. They need a card: `.ci/gpu` runs them.

use volery_channel::{
    Channel, Error, TranscriptHashes, memory, run_two_channels, run_two_parties, run_two_unchecked,
    tamper::Tampered,
};
use volery_field::{Fp61, Gf128};
use volery_ot::{CotSender as _, convert};
use volery_pcg::{
    Device, Kind, Plan, PlanOptions, Security,
    card::{
        CotReceiver, CotSender, Memory, RandomReceiver, RandomSender, VoleReceiver, VoleSender,
    },
    cot,
    vole::VoleRing,
};
use volery_primitives::{Block, bits};

use crate::common::{SESSION, Step, assert_cots, cot_receiver, cot_sender, rng, total};
use crate::common::{assert_voles, vole_receiver, vole_sender};

const CARD: Device = Device::Cuda(0);
const SECURITIES: [Security; 2] = [Security::SemiHonest, Security::Malicious];

/// A plan with that set, as `b10/4`.
fn plan(kind: Kind, security: Security, set: &str, total: Option<usize>) -> Plan {
    let (set, instances) = set.split_once('/').unwrap();
    let options = PlanOptions {
        total: total.map(|total| total as u64),
        security,
        set: Some(set),
        instances: Some(instances.parse().unwrap()),
        ..PlanOptions::default()
    };
    Plan::new(kind, &options).unwrap()
}

/// Outputs of both parties, and their messages. Each says no more than the other hears, also where
/// the last draw leaves a part of a round: a party that exchanged more than a draw needs would wait
/// for a peer that has something else to say.
fn run<A: Send, B: Send>(
    left: impl FnOnce(&mut Channel) -> A + Send,
    right: impl FnOnce(&mut Channel) -> B + Send,
) -> ((A, TranscriptHashes), (B, TranscriptHashes)) {
    fn recorded<T>(
        party: impl FnOnce(&mut Channel) -> T,
        channel: &mut Channel,
    ) -> (T, TranscriptHashes) {
        channel.record_transcript();
        let made = party(channel);
        channel.flush().unwrap();
        (made, channel.transcript().unwrap())
    }
    run_two_parties(|channel| recorded(left, channel), |channel| recorded(right, channel))
}

/// Both parties on the processor, one on a card, and both.
const PLACES: [[Device; 2]; 4] = [
    [Device::Processor, Device::Processor],
    [CARD, Device::Processor],
    [Device::Processor, CARD],
    [CARD, Device::Auto],
];

fn check_cots(plan: &Plan, steps: &[Step], delta: Option<Block>) {
    let mut first = None;
    for devices in PLACES {
        let on = |device| plan.clone().on(device).unwrap();
        let [sender, receiver] = devices.map(on);
        let ((sent, a), (received, b)) = run(
            |channel| cot_sender(&sender, delta, steps, channel),
            |channel| cot_receiver(&receiver, steps, channel),
        );
        let what = format!("{} {} {steps:?} {devices:?}", plan.security(), plan.describe());
        let made = (sent, received);
        let (first_made, first_a, first_b) = first.get_or_insert_with(|| {
            assert_cots(&made);
            (made.clone(), a, b)
        });
        assert!(a == *first_a && b == *first_b, "{what}: messages");
        assert!(made == *first_made, "{what}: outputs");
    }
}

fn check_voles<R: VoleRing>(plan: &Plan, draws: &[usize]) {
    let mut first = None;
    for devices in PLACES {
        let [sender, receiver] = devices.map(|device| plan.clone().on(device).unwrap());
        let ((sent, a), (received, b)) = run(
            |channel| vole_sender::<R>(&sender, draws, channel),
            |channel| vole_receiver::<R>(&receiver, draws, channel),
        );
        let what = format!("{} {} {devices:?}", plan.security(), plan.describe());
        let made = (sent, received);
        let (first_made, first_a, first_b) = first.get_or_insert_with(|| {
            assert_voles(&made);
            (made.clone(), a, b)
        });
        assert!(a == *first_a && b == *first_b, "{what}: messages");
        assert!(made == *first_made, "{what}: outputs");
    }
}

#[test]
#[ignore = "needs a card"]
fn correlated_ots() {
    let mixed = [
        Step::Draw(1),
        Step::Draw(70_001),
        Step::Prepare,
        Step::Draw(4_000_000),
        Step::Prepare,
        Step::Prepare,
        Step::Draw(2_345_678),
    ];
    for security in SECURITIES {
        for set in ["b10/1", "b10/4", "b11/2"] {
            check_cots(&plan(Kind::Cot, security, set, Some(total(&mixed))), &mixed, None);
        }
        for set in ["b11/4", "b12/4", "b13/2"] {
            let steps = [Step::Draw(16_000_000)];
            let delta = Some(Block::from(6 << 70));
            check_cots(&plan(Kind::Cot, security, set, None), &steps, delta);
        }
    }
}

#[test]
#[ignore = "needs a card"]
fn vector_oles() {
    let draws = [1, 600_000, 77, 3_400_000];
    let total = Some(draws.iter().sum());
    for security in SECURITIES {
        for set in ["b10/1", "b10/4", "b11/2"] {
            check_voles::<Fp61>(&plan(Kind::Vole(Fp61::FIELD), security, set, total), &draws);
            check_voles::<Gf128>(&plan(Kind::Vole(Gf128::FIELD), security, set, total), &draws);
        }
        let draws = [12_000_000];
        check_voles::<Fp61>(&plan(Kind::Vole(Fp61::FIELD), security, "b12/4", None), &draws);
        check_voles::<Gf128>(&plan(Kind::Vole(Gf128::FIELD), security, "b11/4", None), &draws);
    }
}

/// Substreams, each with an order of work of its own on the card.
#[test]
#[ignore = "needs a card"]
fn substreams() {
    for security in SECURITIES {
        let options = PlanOptions {
            security,
            set: Some("b10"),
            instances: Some(2),
            substreams: Some(3),
            ..PlanOptions::default()
        };
        let plan = Plan::new(Kind::Cot, &options).unwrap();
        check_cots(&plan, &[Step::Draw(9), Step::Draw(9_000_000), Step::Draw(1)], None);
    }
}

/// Outputs that stay on the card are those that come down.
#[test]
#[ignore = "needs a card"]
fn outputs_on_the_card() {
    let draws = [5, 3_000_001, 64];
    let steps = draws.map(Step::Draw);
    for (security, delta) in SECURITIES.into_iter().zip([None, Some(Block::from(0b101 << 90))]) {
        let plan = plan(Kind::Cot, security, "b10/4", None);
        let on = plan.clone().on(CARD).unwrap();
        let expected = run(
            |channel| cot_sender(&plan, delta, &steps, channel),
            |channel| cot_receiver(&plan, &steps, channel),
        );
        let made = run(
            |channel| {
                let mut sender = CotSender::setup(&on, delta, SESSION, rng(1), channel).unwrap();
                let mut v = Vec::new();
                for n in draws {
                    let mut memory = Memory::zeroed(sender.device(), n).unwrap();
                    sender.extend(&mut memory.all(), channel).unwrap();
                    v.extend(read(&memory));
                }
                (sender.delta(), v)
            },
            |channel| {
                let mut receiver = CotReceiver::setup(&on, SESSION, rng(2), channel).unwrap();
                let (mut u, mut w) = (Vec::new(), Vec::new());
                for n in draws {
                    let mut memory = Memory::zeroed(receiver.device(), n).unwrap();
                    let mut packed = Memory::zeroed(receiver.device(), n.div_ceil(32)).unwrap();
                    receiver.extend(&mut packed.all(), &mut memory.all(), channel).unwrap();
                    w.extend(read(&memory));
                    u.extend(unpacked(&read(&packed), n));
                }
                (u, w)
            },
        );
        assert!(made == expected, "{security}");
        check_voles_on_card::<Fp61>(security, &draws);
        check_voles_on_card::<Gf128>(security, &draws);
    }
}

fn unpacked(packed: &[u32], n: usize) -> Vec<bool> {
    bits::unpack(bytemuck::cast_slice(packed), n)
}

fn read<T: bytemuck::Pod>(memory: &Memory<T>) -> Vec<T> {
    let mut out = vec![T::zeroed(); memory.len()];
    memory.read(0, &mut out).unwrap();
    out
}

fn check_voles_on_card<R: VoleRing>(security: Security, draws: &[usize]) {
    let plan = plan(Kind::Vole(R::FIELD), security, "b10/4", None);
    let on = plan.clone().on(CARD).unwrap();
    let elements = |memory: &Memory<u64>| -> Vec<R> {
        read(memory).chunks_exact(R::WORDS).map(R::from_words).collect()
    };
    let expected = run(
        |channel| vole_sender::<R>(&plan, draws, channel),
        |channel| vole_receiver::<R>(&plan, draws, channel),
    );
    let made = run(
        |channel| {
            let mut sender = VoleSender::<R>::setup(&on, SESSION, rng(1), channel).unwrap();
            let mut made = (Vec::new(), Vec::new());
            for n in draws {
                let memory = || Memory::zeroed(sender.device(), n * R::WORDS).unwrap();
                let (mut u, mut v) = (memory(), memory());
                sender.extend(&mut u.all(), &mut v.all(), channel).unwrap();
                made.0.extend(elements(&u));
                made.1.extend(elements(&v));
            }
            made
        },
        |channel| {
            let mut receiver =
                VoleReceiver::<R>::setup(&on, None, SESSION, rng(2), channel).unwrap();
            let mut made = Vec::new();
            for n in draws {
                let mut w = Memory::zeroed(receiver.device(), n * R::WORDS).unwrap();
                receiver.extend(&mut w.all(), channel).unwrap();
                made.extend(elements(&w));
            }
            (receiver.x(), made)
        },
    );
    assert!(made == expected, "{security} {}", R::NAME);
}

/// Random OTs of a party on a card are those of the peer on the processor.
#[test]
#[ignore = "needs a card"]
fn random_ots() {
    let plan = plan(Kind::Cot, Security::Malicious, "b10/4", None);
    let on = plan.clone().on(CARD).unwrap();
    let draws = [3, 1_000_000];
    let on_processor = |channel: &mut Channel| {
        let cots = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
        let mut ots = convert::Sender::new(cots, SESSION);
        let mut pairs = Vec::new();
        for n in draws {
            let mut some = vec![[Block::ZERO; 2]; n];
            ots.random(&mut some, channel).unwrap();
            pairs.extend(some);
        }
        pairs
    };
    let receiver = |channel: &mut Channel| {
        let cots = CotReceiver::setup(&on, SESSION, rng(2), channel).unwrap();
        let device = cots.device().clone();
        let mut ots = RandomReceiver::new(cots, SESSION);
        let mut made = Vec::new();
        for n in draws {
            let mut m = Memory::zeroed(&device, n).unwrap();
            let mut u = Memory::zeroed(&device, n.div_ceil(32)).unwrap();
            ots.extend(&mut u.all(), &mut m.all(), channel).unwrap();
            made.extend(unpacked(&read(&u), n).into_iter().zip(read::<Block>(&m)));
        }
        made
    };
    let on_card = |channel: &mut Channel| {
        let cots = CotSender::setup(&on, None, SESSION, rng(1), channel).unwrap();
        let device = cots.device().clone();
        let mut ots = RandomSender::new(cots, SESSION);
        let mut pairs = Vec::new();
        for n in draws {
            let mut m = Memory::<Block>::zeroed(&device, 2 * n).unwrap();
            ots.extend(&mut m.all(), channel).unwrap();
            pairs.extend_from_slice(read(&m).as_chunks::<2>().0);
        }
        pairs
    };
    let (pairs, chosen) = run_two_parties(on_processor, receiver);
    assert!(pairs.iter().zip(&chosen).all(|(pair, (u, m))| pair[usize::from(*u)] == *m));
    assert!(run_two_parties(on_card, receiver) == (pairs, chosen));
}

/// A peer that changes a message of a round is caught, and the party on the card keeps nothing.
#[test]
#[ignore = "needs a card"]
fn messages_that_are_changed() {
    const N: usize = 100_000;
    let plan = plan(Kind::Cot, Security::Malicious, "b10/4", None);
    let on = plan.clone().on(CARD).unwrap();
    // The sums of the trees are the last of the sender's bytes before the check.
    let (sent, _) = run_two_parties(
        |channel| {
            cot_sender(&plan, None, &[Step::Draw(N)], channel);
            channel.stats().bytes_sent
        },
        |channel| cot_receiver(&plan, &[Step::Draw(N)], channel),
    );
    for back in [100, 5_000, 100_000] {
        let (left, right) = memory::pair();
        let left = Tampered::flip(left, sent - back, 4);
        let ((sender, _), (receiver, _)) = run_two_channels(
            Channel::new(left),
            Channel::new(right),
            |channel| {
                let mut sender = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
                let mut v = vec![Block::ZERO; N];
                sender.extend(&mut v, channel).err()
            },
            |channel| {
                let mut receiver = CotReceiver::setup(&on, SESSION, rng(2), channel).unwrap();
                let device = receiver.device().clone();
                let mut w = Memory::<Block>::zeroed(&device, N).unwrap();
                let mut u = Memory::zeroed(&device, N.div_ceil(32)).unwrap();
                let error = receiver.extend(&mut u.all(), &mut w.all(), channel).err();
                assert!(read(&w).iter().all(|w| *w == Block::ZERO), "nothing is given");
                assert!(read(&u).iter().all(|u| *u == 0), "nothing is given");
                let again = receiver.extend(&mut u.all(), &mut w.all(), channel);
                assert!(matches!(again, Err(Error::Broken)), "{again:?}");
                error
            },
        );
        // The sender sees the receiver's value of the check first.
        let errors = [sender, receiver].map(|error| error.expect("both end"));
        let caught = |error: &Error| matches!(error, Error::PeerMisbehaved(_));
        assert!(errors.iter().any(caught), "{back}: {errors:?}");
    }
}

/// A plan for a card that is not there, and plans that no card computes.
#[test]
fn plans_for_cards() {
    let b10 = plan(Kind::Cot, Security::Malicious, "b10/4", None);
    assert_eq!(b10.device(), Device::Processor);
    let error = run_two_unchecked(
        |channel| {
            let plan = b10.clone().on(Device::Cuda(99)).unwrap();
            cot::Sender::setup(&plan, None, SESSION, rng(1), channel).err()
        },
        |channel| {
            let plan = b10.clone().on(Device::Processor).unwrap();
            cot::Receiver::setup(&plan, SESSION, rng(2), channel).err()
        },
    );
    assert!(matches!(error.0, Some(Error::Card(_))), "{error:?}");
    let options = PlanOptions { total: Some(1000), device: CARD, ..PlanOptions::default() };
    let error = Plan::new(Kind::Cot, &options).unwrap_err();
    assert!(error.to_string().contains("a card computes primal LPN"), "{error}");
    let auto = PlanOptions { device: Device::Auto, ..options };
    let auto = Plan::new(Kind::Cot, &auto).unwrap();
    assert_eq!(auto.device(), Device::Auto);
    let mut plain = options;
    plain.device = Device::Processor;
    assert_eq!(auto.describe(), Plan::new(Kind::Cot, &plain).unwrap().describe());
    assert_eq!(b10.describe(), b10.clone().on(CARD).unwrap().describe());
    // Outputs on a card need a plan for one.
    let refused = run_two_parties(
        |channel| CotSender::setup(&b10, None, SESSION, rng(1), channel).err(),
        |channel| CotReceiver::setup(&auto, SESSION, rng(2), channel).err(),
    );
    assert!(matches!(refused, (Some(Error::Card(_)), Some(Error::Card(_)))), "{refused:?}");
}
