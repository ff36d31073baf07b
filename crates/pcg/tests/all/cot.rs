//! Correlated OT over memory and TCP, in every mode, drawn in pieces of awkward sizes.

use volery_channel::{Channel, run_two_parties, run_two_parties_tcp};
use volery_ot::{convert, softspoken::SmallField};
use volery_pcg::{
    Base, Kind, Link, Noise, Plan, PlanOptions, Protocol, Security, Trees, cot, lpn::set_named,
};
use volery_primitives::{Block, bits, prg::Prg};

use crate::common::{
    ReceivedCots, SESSION, SentCots, Step, assert_cots, cot_receiver, cot_sender, rng, total,
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

fn every_mode() -> impl Iterator<Item = PlanOptions<'static>> {
    let securities = [Security::SemiHonest, Security::Malicious];
    let noises = [Noise::Regular, Noise::Uniform];
    let trees = [Trees::Ggm, Trees::Half];
    securities.into_iter().flat_map(move |security| {
        noises.into_iter().flat_map(move |noise| {
            trees.into_iter().map(move |trees| PlanOptions {
                security,
                noise,
                trees,
                ..PlanOptions::default()
            })
        })
    })
}

/// A slow link, so that even few correlations come from rounds.
fn slow() -> Link {
    Link { bits_per_second: 1e5, round_trip: 1e-3 }
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

/// Sizes at which a part of a round ends: a group of columns, a task, a tile and a window of tiles,
/// the bins of a batch, a run of trees; and places that follow from those.
#[derive(Clone, Copy)]
enum Size {
    Of(usize),
    /// This many more than remain in the round.
    Left(isize),
    /// Up to that place among all outputs of the round, unless it is already passed.
    UpTo(usize),
}

/// All sizes, from one below to one above each.
fn sizes() -> Vec<Size> {
    let of = [1, 48, 3072, 1 << 14, 1 << 16, 1 << 17];
    let up_to = [48, 3072, 1 << 16, 1 << 17, 1 << 18, 1 << 19];
    let mut sizes = Vec::new();
    for offset in [-1, 0, 1] {
        let near = |size: usize| size.checked_add_signed(offset).unwrap();
        sizes.extend(of.map(|size| Size::Of(near(size))));
        sizes.extend(up_to.map(|place| Size::UpTo(near(place))));
        sizes.push(Size::Left(offset));
    }
    sizes
}

/// Steps from some of the sizes, for a stream whose rounds make `n` correlations and return `made`.
fn steps(sizes: &[Size], (n, made): (usize, usize), random: &mut Prg) -> Vec<Step> {
    let mut left = made;
    let mut steps = Vec::new();
    for size in sizes {
        if random.below(4) == 0 {
            steps.push(Step::Prepare);
        }
        let size = match *size {
            Size::Of(size) => size,
            Size::Left(more) => left.checked_add_signed(more).unwrap(),
            Size::UpTo(place) => place.saturating_sub(n - left),
        };
        steps.push(Step::Draw(size));
        left = made - (made - left + size) % made;
    }
    steps
}

/// The steps of the draws do not change the stream.
#[test]
fn pieces_make_no_difference() {
    let mut random = Prg::new(Block::from(9));
    let streams = [
        ("r14", Security::Malicious, Trees::Half, 4),
        ("r14", Security::Malicious, Trees::Ggm, 2),
        ("r14", Security::SemiHonest, Trees::Half, 2),
        ("u14", Security::Malicious, Trees::Half, 4),
        ("u17", Security::Malicious, Trees::Half, 4),
        ("b10", Security::SemiHonest, Trees::Half, 4),
    ];
    for (name, security, trees, cases) in streams {
        let set = set_named(name).unwrap();
        let plan = plan(&PlanOptions {
            set: Some(name),
            noise: set.noise,
            security,
            trees,
            ..PlanOptions::default()
        });
        let made = made_by_a_round(&plan);
        let mut all = Vec::new();
        // All sizes once, in any order, in as many runs.
        let mut sizes = sizes();
        for i in (1..sizes.len()).rev() {
            sizes.swap(i, random.below(i as u64 + 1) as usize);
        }
        for sizes in sizes.chunks(sizes.len().div_ceil(cases)) {
            all.push(steps(sizes, (set.n, made), &mut random));
        }
        let longest = all.iter().map(|steps| total(steps)).max().unwrap();
        let whole = run(&plan, &[Step::Draw(longest)]);
        assert_cots(&whole);
        let ((delta, v), (u, w)) = whole;
        for steps in all {
            let ((again, v_now), (u_now, w_now)) = run(&plan, &steps);
            let n = v_now.len();
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

#[test]
fn over_tcp() {
    for options in every_mode() {
        for n in [0, 1, 5003, 150_001] {
            let plan = plan(&PlanOptions { total: Some(n as u64), link: slow(), ..options });
            assert_cots(&run_two_parties_tcp(
                |channel| cot_sender(&plan, None, &[Step::Draw(n)], channel),
                |channel| cot_receiver(&plan, &[Step::Draw(n)], channel),
            ));
        }
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

/// All forms of OT from the stream.
#[test]
fn every_conversion() {
    let plan = plan(&PlanOptions { set: Some("r14"), ..PlanOptions::default() });
    let n = 5003;
    let choices: Vec<u8> = (0..bits::bytes_for(n)).map(|i| (i * 37) as u8).collect();
    let messages: Vec<[Block; 2]> =
        (0..n as u128).map(|i| [Block::from(2 * i), Block::from(2 * i + 1)]).collect();
    let strings: [Vec<u8>; 2] = [0, 1].map(|side| (0..40 * n).map(|i| (i + side) as u8).collect());
    let ((v, delta, random), (w, chosen, long, (u, got))) = run_two_parties(
        |channel| {
            let cot = cot::Sender::setup(&plan, None, SESSION, rng(1), channel).unwrap();
            let mut ot = convert::Sender::new(cot, SESSION);
            let mut v = vec![Block::ZERO; n];
            ot.correlated_chosen(&mut v, channel).unwrap();
            ot.chosen(&messages, channel).unwrap();
            ot.chosen_bytes(&strings[0], &strings[1], 40, channel).unwrap();
            let mut random = vec![[Block::ZERO; 2]; n];
            ot.random(&mut random, channel).unwrap();
            (v, ot.delta(), random)
        },
        |channel| {
            let cot = cot::Receiver::setup(&plan, SESSION, rng(2), channel).unwrap();
            let mut ot = convert::Receiver::new(cot, SESSION);
            let mut w = vec![Block::ZERO; n];
            ot.correlated_chosen(&choices, &mut w, channel).unwrap();
            let mut chosen = vec![Block::ZERO; n];
            ot.chosen(&choices, &mut chosen, channel).unwrap();
            let mut long = vec![0; 40 * n];
            ot.chosen_bytes(&choices, &mut long, 40, channel).unwrap();
            let (mut u, mut got) = (vec![0; bits::bytes_for(n)], vec![Block::ZERO; n]);
            ot.random(&mut u, &mut got, channel).unwrap();
            (w, chosen, long, (u, got))
        },
    );
    for i in 0..n {
        let choice = usize::from(bits::bit(&choices, i));
        let shift = if choice == 1 { delta } else { Block::ZERO };
        assert!(w[i] == v[i] ^ shift, "chosen choice bit {i}");
        assert!(chosen[i] == messages[i][choice], "chosen message {i}");
        let string = 40 * i..40 * i + 40;
        assert_eq!(long[string.clone()], strings[choice][string]);
        assert!(got[i] == random[i][usize::from(bits::bit(&u, i))]);
        assert!(got[i] != random[i][usize::from(!bits::bit(&u, i))]);
    }
}
