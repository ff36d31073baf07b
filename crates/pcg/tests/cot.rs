//! Correlated OT over memory and TCP, its cost, and what it puts on the wire.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use volery_channel::{Channel, SessionId, run_two_parties, run_two_parties_tcp};
use volery_ot::{CotReceiver, CotSender, flavour};
use volery_pcg::{Kind, Link, Noise, Plan, Security, Trees, Wishes, cot};
use volery_primitives::{Block, bits, prg::Prg};

fn session() -> SessionId {
    SessionId::from_bytes([5; 32])
}

fn plan(wishes: &Wishes<'_>) -> Plan {
    Plan::new(Kind::Cot, wishes).unwrap()
}

/// The sender's `delta` and `v`, drawn in the given pieces.
fn sender(
    plan: &Plan,
    delta: Option<Block>,
    pieces: &[usize],
    channel: &mut Channel,
) -> (Block, Vec<Block>) {
    let rng = Prg::new(Block::from(1));
    let mut sender = cot::Sender::setup(plan, delta, session(), rng, channel).unwrap();
    let mut v = vec![Block::ZERO; pieces.iter().sum()];
    let mut rest = &mut v[..];
    for piece in pieces {
        let now;
        (now, rest) = rest.split_at_mut(*piece);
        sender.extend(now, channel).unwrap();
    }
    (sender.delta(), v)
}

/// The receiver's `u`, not packed, and `w`.
fn receiver(plan: &Plan, pieces: &[usize], channel: &mut Channel) -> (Vec<bool>, Vec<Block>) {
    let rng = Prg::new(Block::from(2));
    let mut receiver = cot::Receiver::setup(plan, session(), rng, channel).unwrap();
    let mut w = vec![Block::ZERO; pieces.iter().sum()];
    let mut u = Vec::with_capacity(w.len());
    let mut rest = &mut w[..];
    for piece in pieces {
        let now;
        (now, rest) = rest.split_at_mut(*piece);
        let mut packed = vec![0; bits::bytes_for(*piece)];
        receiver.extend(&mut packed, now, channel).unwrap();
        u.extend((0..*piece).map(|i| bits::bit(&packed, i)));
    }
    (u, w)
}

fn assert_cot(delta: Block, v: &[Block], u: &[bool], w: &[Block]) {
    assert_eq!((v.len(), v.len()), (u.len(), w.len()));
    for i in 0..v.len() {
        let shift = if u[i] { delta } else { Block::ZERO };
        assert!(w[i] == v[i] ^ shift, "correlation {i} of {}", v.len());
    }
    // Six standard deviations from the mean
    let ones = u.iter().filter(|u| **u).count() as f64;
    let n = u.len() as f64;
    assert!((ones - n / 2.0).abs() <= 3.0 * n.sqrt() + 1.0, "{ones} of {n}");
}

fn check(plan: &Plan, pieces: &[usize]) {
    let ((delta, v), (u, w)) = run_two_parties(
        |channel| sender(plan, None, pieces, channel),
        |channel| receiver(plan, pieces, channel),
    );
    assert_cot(delta, &v, &u, &w);
}

fn every_mode() -> impl Iterator<Item = Wishes<'static>> {
    let securities = [Security::SemiHonest, Security::Malicious];
    let noises = [Noise::Regular, Noise::Uniform];
    let trees = [Trees::Ggm, Trees::Half];
    securities.into_iter().flat_map(move |security| {
        noises.into_iter().flat_map(move |noise| {
            trees.into_iter().map(move |trees| Wishes {
                security,
                noise,
                trees,
                ..Wishes::default()
            })
        })
    })
}

/// A slow link, so that even few correlations come from rounds.
fn slow() -> Link {
    Link {
        bits_per_second: 1e5,
        round_trip: 1e-3,
    }
}

#[test]
fn every_mode_at_awkward_sizes() {
    for wishes in every_mode() {
        let regular = wishes.noise == Noise::Regular;
        let set = if regular { "r14" } else { "u14" };
        for total in [0, 1, 4000, 14_399, 14_400, 14_401, 18_689, 20_011] {
            let plan = plan(&Wishes {
                total: Some(total as u64),
                set: Some(set),
                ..wishes
            });
            check(&plan, &[total]);
        }
        // Without end, in pieces
        let plan = plan(&Wishes {
            set: Some(set),
            ..wishes
        });
        check(&plan, &[0, 1, 2, 47, 48, 49, 10_007, 1, 30_000, 9857, 7]);
    }
}

#[test]
fn over_tcp() {
    for wishes in every_mode() {
        for n in [0, 1, 5003, 150_001] {
            let plan = plan(&Wishes {
                total: Some(n as u64),
                link: slow(),
                ..wishes
            });
            let ((delta, v), (u, w)) = run_two_parties_tcp(
                |channel| sender(&plan, None, &[n], channel),
                |channel| receiver(&plan, &[n], channel),
            );
            assert_cot(delta, &v, &u, &w);
        }
    }
}

/// The paper's own plan, and the largest set.
#[test]
fn large_sets() {
    for security in [Security::SemiHonest, Security::Malicious] {
        check(&Plan::ferret(Some(300_000), Noise::Regular, security), &[300_000]);
        let named = plan(&Wishes {
            set: Some("b13"),
            total: Some(16_000_000),
            security,
            ..Wishes::default()
        });
        check(&named, &[16_000_000]);
    }
    check(
        &Plan::ferret(Some(300_000), Noise::Uniform, Security::Malicious),
        &[300_000],
    );
}

/// A given `delta`, whichever bits it has; `delta` is as wanted, and one of its bits carries the choice.
#[test]
fn delta_may_be_given() {
    let streamed = plan(&Wishes {
        set: Some("r14"),
        ..Wishes::default()
    });
    let direct = plan(&Wishes {
        total: Some(100),
        ..Wishes::default()
    });
    for delta in [1u128, 2, 1 << 127, 3 << 70, u128::MAX, u128::MAX - 1] {
        for plan in [&streamed, &direct] {
            let ((got, v), (u, w)) = run_two_parties(
                |channel| sender(plan, Some(Block::from(delta)), &[100], channel),
                |channel| receiver(plan, &[100], channel),
            );
            assert_eq!(u128::from(got), delta);
            assert_cot(got, &v, &u, &w);
        }
    }
}

#[test]
#[should_panic(expected = "a delta of zero hides nothing")]
fn a_delta_of_zero_is_refused() {
    let (mut channel, _peer) = Channel::memory_pair();
    let plan = plan(&Wishes::default());
    let rng = Prg::new(Block::from(1));
    drop(cot::Sender::setup(&plan, Some(Block::ZERO), session(), rng, &mut channel));
}

/// All flavours of OT from the stream.
#[test]
fn every_flavour() {
    let plan = plan(&Wishes {
        set: Some("r14"),
        ..Wishes::default()
    });
    let n = 5003;
    let choices: Vec<u8> = (0..bits::bytes_for(n)).map(|i| (i * 37) as u8).collect();
    let messages: Vec<[Block; 2]> = (0..n as u128)
        .map(|i| [Block::from(2 * i), Block::from(2 * i + 1)])
        .collect();
    let strings: [Vec<u8>; 2] = [0, 1].map(|side| (0..40 * n).map(|i| (i + side) as u8).collect());
    let ((v, delta, random), (w, chosen, long, (u, got))) = run_two_parties(
        |channel| {
            let rng = Prg::new(Block::from(1));
            let cot = cot::Sender::setup(&plan, None, session(), rng, channel).unwrap();
            let mut ot = flavour::Sender::new(cot, session());
            let mut v = vec![Block::ZERO; n];
            ot.correlated_chosen(&mut v, channel).unwrap();
            ot.chosen(&messages, channel).unwrap();
            ot.chosen_bytes(&strings[0], &strings[1], 40, channel).unwrap();
            let mut random = vec![[Block::ZERO; 2]; n];
            ot.random(&mut random, channel).unwrap();
            (v, ot.delta(), random)
        },
        |channel| {
            let rng = Prg::new(Block::from(2));
            let cot = cot::Receiver::setup(&plan, session(), rng, channel).unwrap();
            let mut ot = flavour::Receiver::new(cot, session());
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

/// The number of threads changes nothing but the time.
#[test]
fn threads_make_no_difference() {
    let n = 300_000;
    for noise in [Noise::Regular, Noise::Uniform] {
        let plan = plan(&Wishes {
            total: Some(n as u64),
            noise,
            ..Wishes::default()
        });
        let run = |threads| {
            let pool = || {
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .unwrap()
            };
            run_two_parties(
                |channel| pool().install(|| sender(&plan, None, &[n], channel)),
                |channel| pool().install(|| receiver(&plan, &[n], channel)),
            )
        };
        let (one, three) = (run(1), run(3));
        assert!(one == three);
    }
}
