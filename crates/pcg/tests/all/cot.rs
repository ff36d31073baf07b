//! Correlated OT in every mode, drawn in pieces of awkward sizes.

use volery_channel::{Channel, run_two_parties};
use volery_ot::softspoken::SmallField;
use volery_pcg::{
    Base, Kind, Noise, Plan, PlanOptions, Protocol, Security, Trees, cot, lpn::set_named,
};
use volery_primitives::Block;

use crate::common::{
    ReceivedCots, SESSION, SentCots, Step, assert_cots, cot_receiver, cot_sender, every_mode, rng,
};

fn plan(options: &PlanOptions<'_>) -> Plan {
    Plan::new(Kind::Cot, options).unwrap()
}

fn run(plan: &Plan, steps: &[Step]) -> (SentCots, ReceivedCots) {
    run_two_parties(
        |channel| cot_sender(plan, None, steps, channel),
        |channel| cot_receiver(plan, steps, channel),
    )
}

fn check(plan: &Plan, steps: &[Step]) {
    assert_cots(&run(plan, steps));
}

/// The smallest set for the noise.
fn small(noise: Noise) -> &'static str {
    match noise {
        Noise::Regular => "r14",
        _ => "u14",
    }
}

/// The number of correlations that a round of an unlimited stream returns.
fn made_by_a_round(plan: &Plan) -> usize {
    let (sender, receiver) = run_two_parties(
        |channel| {
            let mut sender = cot::Sender::setup(plan, None, SESSION, rng(1), channel).unwrap();
            sender.prepare(channel).unwrap()
        },
        |channel| {
            let mut receiver = cot::Receiver::setup(plan, SESSION, rng(2), channel).unwrap();
            receiver.prepare(channel).unwrap()
        },
    );
    assert_eq!(sender, receiver);
    sender
}

/// Totals that end in the middle of a round and at its ends.
#[test]
fn every_mode_at_awkward_totals() {
    for options in every_mode() {
        let set = Some(small(options.noise));
        let n = set_named(small(options.noise)).unwrap().n;
        let made = made_by_a_round(&plan(&PlanOptions { set, ..options }));
        let ends = [n, made + n, 2 * made + n];
        let around = ends.into_iter().flat_map(|end| [end - 1, end, end + 1]);
        for total in [0, 1, 4000].into_iter().chain(around) {
            let plan = plan(&PlanOptions { total: Some(total as u64), set, ..options });
            check(&plan, &[Step::Draw(total)]);
        }
    }
}

/// The steps of the draws do not change the stream: draws end around a group of columns, a task, a
/// tile and a window of tiles, and around the end of a round.
#[test]
fn pieces_make_no_difference() {
    let streams = [
        ("r14", Security::Malicious, Trees::Half),
        ("r14", Security::Malicious, Trees::Ggm),
        ("r14", Security::SemiHonest, Trees::Half),
        ("u14", Security::Malicious, Trees::Half),
        ("u17", Security::Malicious, Trees::Half),
        ("b10", Security::SemiHonest, Trees::Half),
    ];
    for (name, security, trees) in streams {
        let set = set_named(name).unwrap();
        let plan = plan(&PlanOptions {
            set: Some(name),
            noise: set.noise,
            security,
            trees,
            ..PlanOptions::default()
        });
        let made = made_by_a_round(&plan);
        let mut ends: Vec<_> = [48, 3072, 1 << 14, 1 << 16, 1 << 17, 1 << 18, 1 << 19, set.n]
            .into_iter()
            .chain([made, 2 * made])
            .flat_map(|end| [end - 1, end, end + 1])
            .filter(|end| *end <= 2 * made + 1)
            .collect();
        ends.sort_unstable();
        let ((delta, v), (u, w)) = run(&plan, &[Step::Draw(2 * made + 1)]);
        assert_cots(&((delta, v.clone()), (u.clone(), w.clone())));
        // All of the ends; then every other one, with messages in advance.
        for (skip, every, prepares) in [(0, 1, false), (0, 2, true), (1, 2, false)] {
            let (mut steps, mut drawn) = (Vec::new(), 0);
            for end in ends.iter().skip(skip).step_by(every) {
                steps.extend(prepares.then_some(Step::Prepare));
                steps.push(Step::Draw(end - drawn));
                drawn = *end;
            }
            let ((again, v_now), (u_now, w_now)) = run(&plan, &steps);
            let n = drawn;
            let same = again == delta && v_now == v[..n] && u_now == u[..n] && w_now == w[..n];
            assert!(same, "{name} {security} {trees:?} in {steps:?}");
        }
    }
}

/// From the base itself: each batch is separate.
#[test]
fn direct_in_pieces() {
    for security in [Security::SemiHonest, Security::Malicious] {
        let plan = plan(&PlanOptions {
            total: Some(110_000),
            security,
            protocol: Protocol::Direct(Base::SoftSpoken(SmallField::Bits4)),
            ..PlanOptions::default()
        });
        assert!(plan.is_direct());
        let sizes = [0, 1, 127, 128, 129, 32_767, 32_768, 32_769];
        check(&plan, &sizes.map(Step::Draw));
    }
}

/// The paper's own plan, and the largest set.
#[test]
fn large_sets() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check(&Plan::ferret(Some(300_000), Noise::Regular, security), &[Step::Draw(300_000)]);
        let named = plan(&PlanOptions {
            set: Some("b13"),
            total: Some(16_000_000),
            security,
            ..PlanOptions::default()
        });
        check(&named, &[Step::Draw(16_000_000)]);
    }
    check(
        &Plan::ferret(Some(300_000), Noise::Uniform, Security::Malicious),
        &[Step::Draw(300_000)],
    );
}

/// A given `delta`, with any bits; the result has that `delta`, and one of its bits carries the
/// choice.
#[test]
fn delta_may_be_given() {
    let streamed = plan(&PlanOptions { set: Some("r14"), ..PlanOptions::default() });
    let direct = plan(&PlanOptions { total: Some(100), ..PlanOptions::default() });
    for delta in [1u128, 2, 1 << 127, 3 << 70, u128::MAX, u128::MAX - 1] {
        for plan in [&streamed, &direct] {
            let steps = [Step::Draw(100)];
            let cots = run_two_parties(
                |channel| cot_sender(plan, Some(Block::from(delta)), &steps, channel),
                |channel| cot_receiver(plan, &steps, channel),
            );
            assert_eq!(u128::from(cots.0.0), delta);
            assert_cots(&cots);
        }
    }
}

#[test]
#[should_panic(expected = "a delta of zero hides nothing")]
fn a_delta_of_zero_is_refused() {
    let (mut channel, _peer) = Channel::memory_pair();
    let plan = plan(&PlanOptions::default());
    let zero = Some(Block::ZERO);
    drop(cot::Sender::setup(&plan, zero, SESSION, rng(1), &mut channel));
}
